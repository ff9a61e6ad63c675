// What a token is worth and when it stops: claims and signature, the events that end it at once, tokens for
// other namespaces, and forged ones, which are refused in every form.
import { createHmac, createSign, generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { operations } from '@hawser/contract'
import type { Role } from '@hawser/contract/access'
import { call, type Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { runCommand } from '../../server/src/commands/admin.ts'
import { day_ms, hour_ms, iso, minute_ms } from '../../server/src/kit/clock.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { linkIn, ownFolder, refused, statusOf } from './people.ts'

const { owner, administrator, operator, observer, stranger, tenant, otherTenant } = sample
const uuid4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

async function signIn(service: Service, person: { username: string; password: string }) {
  const { username, password } = person
  return (await service.api().users.login({ body: { username, password } })).body
}

const base64url = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

function partsOf(token: string): {
  header: Record<string, unknown>
  claims: Record<string, unknown>
  signature: string
} {
  const [header = '', claims = '', signature = ''] = token.split('.')
  const read = (text: string) =>
    JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>
  return { header: read(header), claims: read(claims), signature }
}

/** Whether the token opens anything: a read that every member may do. */
const works = (service: Service, token: string) => statusOf(service.api({ token }).devices.list({}))

describe('a user’s token', () => {
  test('is signed with RS256 and says who asks, in which namespace, and for 72 hours; never the role', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { token } = await signIn(service, observer)
    const { header, claims } = partsOf(token)
    expect(header).toMatchObject({ alg: 'RS256', typ: 'JWT' })
    expect(claims).toMatchObject({
      id: observer.id,
      tenant,
      name: observer.username,
      mfa: false,
      claims: 'user',
    })
    expect(claims['jti']).toMatch(uuid4)
    expect(claims['nbf']).toBe(claims['iat'])
    expect(claims['exp']).toBe((claims['iat'] as number) + 72 * 3600)
    expect(Math.abs((claims['iat'] as number) - service.clock.now() / 1000)).toBeLessThan(30)
    for (const name of ['role', 'iss', 'sub', 'aud', 'password']) expect(claims).not.toHaveProperty(name)
    expect(partsOf((await signIn(service, observer)).token).claims['jti']).not.toBe(claims['jti'])
  })

  test('works for 72 hours and not longer, whether it was used before or not', async () => {
    await using service = await startService()
    await buildWorld(service)
    const used = (await signIn(service, observer)).token
    const unused = (await signIn(service, operator)).token
    expect(await works(service, used)).toBe(200)
    service.clock.forward(72 * hour_ms - minute_ms)
    expect(await works(service, used)).toBe(200)
    service.clock.forward(minute_ms)
    for (const token of [used, unused]) {
      const failure = await refused(service.api({ token }).devices.list({}))
      expect(failure.status).toBe(401)
      expect(failure.body).toEqual({ message: 'missing or malformed jwt or API token' })
      expect(await statusOf(service.api({ token }).users.refresh({}))).toBe(401)
    }
  })

  test('works beside others of the same user', async () => {
    await using service = await startService()
    await buildWorld(service)
    const tokens = [(await signIn(service, observer)).token, (await signIn(service, observer)).token]
    for (const token of tokens) expect(await works(service, token)).toBe(200)
  })

  test('outlives a restart of the server', async () => {
    using folder = ownFolder()
    let token: string
    {
      await using service = await startService({ folder: folder.path })
      await buildWorld(service)
      ;({ token } = await signIn(service, observer))
    }
    await using service = await startService({ folder: folder.path })
    expect(await works(service, token)).toBe(200)
  })

  test('is still good after the signing key was rotated, and new ones are signed with the new key', async () => {
    using folder = ownFolder()
    let token: string
    {
      await using service = await startService({ folder: folder.path })
      await buildWorld(service)
      ;({ token } = await signIn(service, observer))
      const { privateKey, publicKey } = newKeyPair()
      const { stores, vault } = service.rooms
      const created_at = iso(service.clock.now() + 1000)
      await stores.signingKeys.insert({
        kid: 'rotated',
        private_key: vault.seal('signing key', privateKey),
        public_key: publicKey,
        created_at,
      })
    }
    await using service = await startService({ folder: folder.path })
    expect(await works(service, token)).toBe(200)
    const fresh = (await signIn(service, observer)).token
    expect(partsOf(fresh).header).toMatchObject({ kid: 'rotated' })
    expect(await works(service, fresh)).toBe(200)
  })
})

function newKeyPair() {
  return generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
}

describe('a forged token', () => {
  test('is refused in every form', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { token } = await signIn(service, observer)
    const { header, claims, signature } = partsOf(token)
    const [first = '', second = ''] = token.split('.')
    const publicKey = (await service.rooms.stores.signingKeys.list())[0]!.public_key
    const other = newKeyPair()
    const sign = (head: object, body: object, key = other.privateKey) => {
      const text = `${base64url(head)}.${base64url(body)}`
      return `${text}.${createSign('sha256').update(text).sign(key).toString('base64url')}`
    }
    const hmac = (head: object, secret: string) => {
      const text = `${base64url(head)}.${second}`
      return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
    }
    const forged: Record<string, string> = {
      'no algorithm, no signature': `${base64url({ ...header, alg: 'none' })}.${second}.`,
      'no algorithm in other letters': `${base64url({ ...header, alg: 'nOnE' })}.${second}.`,
      'no algorithm, the old signature': `${base64url({ ...header, alg: 'none' })}.${second}.${signature}`,
      'HS256 with the public key as the secret': hmac({ ...header, alg: 'HS256' }, publicKey),
      'HS256 with an empty secret': hmac({ ...header, alg: 'HS256' }, ''),
      'another key under our name': sign(header, claims),
      'another key that it brings along': sign(
        { ...header, jwk: { kty: 'RSA' }, x5c: [other.publicKey] },
        claims,
      ),
      'another key under its own name': sign({ ...header, kid: 'mine' }, claims),
      'no name of a key': sign({ alg: 'RS256', typ: 'JWT' }, claims),
      'another user': `${first}.${base64url({ ...claims, id: owner.id })}.${signature}`,
      'a longer life': `${first}.${base64url({ ...claims, exp: (claims['exp'] as number) + 3600 })}.${signature}`,
      'a device made of a user': `${first}.${base64url({ claims: 'device', uid: sample.device, tenant })}.${signature}`,
      'no signature': `${first}.${second}.`,
      'two parts': `${first}.${second}`,
      'a cut signature': token.slice(0, -4),
      'no token at all': 'vera',
      'an empty object': `${base64url({})}.${base64url({})}.${base64url('')}`,
      'a body that is no object': `${first}.${base64url('null')}.${signature}`,
    }
    for (const [what, text] of Object.entries(forged)) expect(await works(service, text), what).toBe(401)
    expect(await works(service, token)).toBe(200)
  })

  test('is not looked at where no credential is needed', async () => {
    await using service = await startService()
    await buildWorld(service)
    const api = service.api({ token: 'not.a.token', apiKey: 'not-a-key' })
    expect((await api.announcements.list({})).status).toBe(200)
    expect((await api.users.recover({ body: { username: 'nobody' } })).status).toBe(200)
  })

  test('a header that holds no bearer token is no credential', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const authorization of ['Basic dmVyYTpyb3Bl', 'Bearer', 'Bearer ', 'Token x', 'Bearer a b'])
      expect(
        await statusOf(service.api({ headers: { authorization } }).devices.list({})),
        authorization,
      ).toBe(401)
  })

  test('identity headers, as a gateway in front would set them, are worth nothing', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const headers = {
      'x-id': owner.id,
      'x-role': 'owner',
      'x-tenant-id': tenant,
      'x-username': owner.username,
      'x-device-uid': sample.device,
      'x-request-id': 'forged',
    }
    expect(await statusOf(service.api({ headers }).devices.list({}))).toBe(401)
    const login = await service
      .api({ headers })
      .users.login({ body: { username: observer.username, password: observer.password } })
    expect(login.body).toMatchObject({ id: observer.id, role: 'observer' })
    expect(login.headers.get('x-request-id')).not.toBe('forged')
    const low = service.api({ token: await world.token('observer'), headers })
    expect(await statusOf(low.devices.remove({ params: { uid: sample.device } }))).toBe(403)
    const elsewhere = service.api({ token: await world.token('stranger'), headers })
    expect(await statusOf(elsewhere.devices.get({ params: { uid: sample.device } }))).toBe(404)
  })
})

describe('the token that changes the password', () => {
  const forms: [string, (api: Client, current: string, next: string) => Promise<{ status: number }>][] = [
    [
      'Update user',
      (api, current_password, password) => api.users.update({ body: { password, current_password } }),
    ],
    [
      'Update user password',
      (api, current_password, new_password) =>
        api.users.updatePassword({ params: { id: observer.id }, body: { current_password, new_password } }),
    ],
  ]
  test.each(forms)('%s: stays good on every route, as often as it does so', async (_, change) => {
    await using service = await startService()
    await buildWorld(service)
    const { token } = await signIn(service, observer)
    const api = service.api({ token })
    let password: string = observer.password
    for (const next of ['a-new-rope', 'a-newer-rope']) {
      expect(await statusOf(change(api, password, next))).toBe(200)
      password = next
      expect(await works(service, token)).toBe(200)
      expect(await statusOf(api.users.update({ body: {} }))).toBe(200)
      const fresh = (await api.users.refresh({})).body.token
      expect(await works(service, fresh)).toBe(200)
    }
  })

  test.each(forms)('%s: ends when another one does so, and with its 72 hours', async (_, change) => {
    await using service = await startService()
    await buildWorld(service)
    const first = (await signIn(service, observer)).token
    await change(service.api({ token: first }), observer.password, 'a-new-rope')
    const second = (await signIn(service, { ...observer, password: 'a-new-rope' })).token
    const third = (await signIn(service, { ...observer, password: 'a-new-rope' })).token
    await change(service.api({ token: second }), 'a-new-rope', 'a-newer-rope')
    expect([await works(service, first), await works(service, second), await works(service, third)]).toEqual([
      401, 200, 401,
    ])
    service.clock.forward(72 * hour_ms)
    expect(await works(service, second)).toBe(401)
  })

  test('ends when the administrator sets the password', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { token } = await signIn(service, observer)
    await service
      .api({ token })
      .users.update({ body: { password: 'a-new-rope', current_password: observer.password } })
    await runCommand(service.rooms, { words: 'user password', given: [observer.username, 'a-newer-rope'] })
    expect(await works(service, token)).toBe(401)
  })

  test('ends when the password is set with a link from an e-mail', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { token } = await signIn(service, observer)
    await service
      .api({ token })
      .users.update({ body: { password: 'a-new-rope', current_password: observer.password } })
    await service.api().users.recover({ body: { username: observer.username } })
    const link = linkIn(await service.newestEmail(observer.email)).searchParams
    const body = { password: 'a-newer-rope', token: link.get('token') ?? '' }
    await service.api().users.resetPassword({ params: { uid: observer.id }, body })
    expect(await works(service, token)).toBe(401)
  })
})

describe('a user’s token ends at once', () => {
  const endings: [string, (service: Service) => Promise<unknown>][] = [
    [
      'when another one changes the password',
      async (service) =>
        service
          .api({ token: (await signIn(service, observer)).token })
          .users.update({ body: { password: 'a-new-rope', current_password: observer.password } }),
    ],
    [
      'when another one changes the password by the older form',
      async (service) =>
        service.api({ token: (await signIn(service, observer)).token }).users.updatePassword({
          params: { id: observer.id },
          body: { current_password: observer.password, new_password: 'a-new-rope' },
        }),
    ],
    [
      'when the password is set with a recovery token',
      (service) =>
        service.api().users.resetPassword({
          params: { uid: observer.id },
          body: { password: 'a-new-rope', token: sample.recoveryToken },
        }),
    ],
    [
      'when the member is removed',
      async (service) =>
        service
          .api({ token: (await signIn(service, owner)).token })
          .namespaces.removeMember({ params: { tenant, uid: observer.id } }),
    ],
    [
      'when the namespace is deleted',
      async (service) =>
        service
          .api({ token: (await signIn(service, owner)).token })
          .namespaces.remove({ params: { tenant } }),
    ],
    ['when the user is deleted', (service) => service.rooms.stores.users.remove(observer.id)],
  ]
  test.each(endings)('%s, on every route', async (_, end) => {
    await using service = await startService()
    await buildWorld(service)
    const { token } = await signIn(service, observer)
    expect(await works(service, token)).toBe(200)
    await end(service)
    const api = service.api({ token })
    expect(await statusOf(api.devices.list({}))).toBe(401)
    expect(await statusOf(api.users.update({ body: {} }))).toBe(401)
    expect(await statusOf(api.namespaces.list({}))).toBe(401)
    expect(await statusOf(api.users.namespaceToken({ params: { tenant } }))).toBe(401)
    expect(await statusOf(api.users.refresh({}))).toBe(401)
  })

  test('when the role changes, everywhere but on GET /api/auth/user, which gives a fresh one', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { token } = await signIn(service, observer)
    const admin = service.api({ token: (await signIn(service, administrator)).token })
    await admin.namespaces.updateMember({ params: { tenant, uid: observer.id }, body: { role: 'operator' } })
    const old = service.api({ token })
    expect(await statusOf(old.devices.list({}))).toBe(401)
    expect(await statusOf(old.users.update({ body: {} }))).toBe(401)
    expect(await statusOf(old.users.namespaceToken({ params: { tenant } }))).toBe(401)
    expect(await statusOf(old.namespaces.list({}))).toBe(401)
    const { body } = await old.users.refresh({})
    expect(body).toMatchObject({ id: observer.id, tenant, role: 'operator' })
    expect(body.token).not.toBe(token)
    expect(await works(service, body.token)).toBe(200)
    expect(await works(service, token)).toBe(401)
  })

  test('a role set to what it was changes nothing', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { token } = await signIn(service, observer)
    const admin = service.api({ token: (await signIn(service, administrator)).token })
    await admin.namespaces.updateMember({ params: { tenant, uid: observer.id }, body: { role: 'observer' } })
    expect(await works(service, token)).toBe(200)
  })

  test('it does not come back when the member is added again or the old role returns', async () => {
    await using service = await startService()
    await buildWorld(service)
    const admin = service.api({ token: (await signIn(service, administrator)).token })
    const removed = (await signIn(service, observer)).token
    await admin.namespaces.removeMember({ params: { tenant, uid: observer.id } })
    await admin.namespaces.addMember({
      params: { tenant },
      body: { identifier: observer.username, role: 'observer' },
    })
    expect(await works(service, removed)).toBe(401)
    const changed = (await signIn(service, operator)).token
    for (const role of ['observer', 'operator'] as const satisfies readonly Role[])
      await admin.namespaces.updateMember({ params: { tenant, uid: operator.id }, body: { role } })
    expect(await works(service, changed)).toBe(401)
  })

  test('a change in one namespace leaves the tokens for others alone', async () => {
    await using service = await startService()
    await buildWorld(service)
    await service.rooms.namespaces.join(tenant, stranger.id, 'observer')
    const elsewhere = await signIn(service, stranger)
    const here = (await service.api({ token: elsewhere.token }).users.namespaceToken({ params: { tenant } }))
      .body
    const admin = service.api({ token: (await signIn(service, administrator)).token })
    await admin.namespaces.removeMember({ params: { tenant, uid: stranger.id } })
    expect(await works(service, here.token)).toBe(401)
    expect(await works(service, elsewhere.token)).toBe(200)
  })

  test('a changed profile does not end it', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { token } = await signIn(service, observer)
    await service.api({ token }).users.update({ body: { username: 'vera2', email: 'vera2@example.com' } })
    expect(await works(service, token)).toBe(200)
    expect((await service.api({ token }).users.refresh({})).body).toMatchObject({
      user: 'vera2',
      email: 'vera2@example.com',
    })
  })
})

/** Of a client that stays where it is. */
const kept = { query: { keep_namespace: true } }

describe('a token for another namespace', () => {
  test.each(['namespaceToken', 'token'] as const)('users.%s gives one to a member', async (verb) => {
    await using service = await startService()
    const world = await buildWorld(service)
    await service.rooms.namespaces.join(tenant, stranger.id, 'operator')
    const api = service.api({ token: await world.token('stranger') })
    const { body } = await api.users[verb]({ params: { tenant } })
    expect(body).toMatchObject({ id: stranger.id, tenant, role: 'operator', mfa: false })
    expect(partsOf(body.token).claims).toMatchObject({ tenant })
    const there = await service.api({ token: body.token }).devices.get({ params: { uid: sample.device } })
    expect(there.body.tenant_id).toBe(tenant)
    // The old one goes on for its own namespace, and the new one is preferred from now on.
    expect(await statusOf(api.devices.get({ params: { uid: sample.device } }))).toBe(404)
    expect((await api.users.refresh({})).body.tenant).toBe(tenant)
  })

  test('and the old one are each renewed for their own, which does not change the preferred one', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    await service.rooms.namespaces.join(tenant, stranger.id, 'operator')
    const old = service.api({ token: await world.token('stranger') })
    const { token } = (await old.users.namespaceToken({ params: { tenant } })).body
    const renewed = (await old.users.refresh(kept)).body
    expect(renewed.tenant).toBe(otherTenant)
    expect(partsOf(renewed.token).claims).toMatchObject({ tenant: otherTenant })
    expect((await service.api({ token }).users.refresh(kept)).body.tenant).toBe(tenant)
    expect((await old.users.refresh(kept)).body.tenant).toBe(otherTenant)
    expect((await signIn(service, stranger)).tenant).toBe(tenant)
  })

  test('is renewed for its own after a change of role there, whichever is preferred', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    await service.rooms.namespaces.join(tenant, stranger.id, 'operator')
    const api = service.api({ token: await world.token('stranger') })
    const { token } = (await api.users.namespaceToken({ params: { tenant } })).body
    await api.users.namespaceToken({ params: { tenant: otherTenant } })
    const admin = service.api({ token: await world.token('administrator') })
    await admin.namespaces.updateMember({ params: { tenant, uid: stranger.id }, body: { role: 'observer' } })
    expect((await service.api({ token }).users.refresh(kept)).body).toMatchObject({
      tenant,
      role: 'observer',
    })
  })

  test('one for none is renewed for the namespace that its user has joined since', async () => {
    await using service = await startService()
    await buildWorld(service)
    const lone = { username: 'lone', password: 'lonely-rope-1' }
    const { id } = await service.rooms.users.create(
      { name: 'Lone', email: 'lone@example.com', ...lone },
      true,
    )
    const { token, tenant: none } = await signIn(service, lone)
    expect(none).toBe('')
    await service.rooms.namespaces.join(tenant, id, 'observer')
    expect((await service.api({ token }).users.refresh(kept)).body).toMatchObject({
      tenant,
      role: 'observer',
    })
  })

  test('is 404 for a namespace of others, one that does not exist, and a malformed id', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const api = service.api({ token: await world.token('observer') })
    for (const wanted of [otherTenant, '00000000-0000-4000-8000-00000000dead', 'harbour'])
      for (const verb of ['namespaceToken', 'token'] as const)
        expect(await statusOf(api.users[verb]({ params: { tenant: wanted } })), `${verb} ${wanted}`).toBe(404)
  })

  test('is not needed where the path names the namespace: the role there decides', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const api = service.api({ token: await world.token('stranger') })
    const edit = () => statusOf(api.namespaces.edit({ params: { tenant }, body: { name: 'lagoon' } }))
    // An owner, but of another namespace: here they are nobody.
    expect(await edit()).toBe(404)
    expect(await statusOf(api.namespaces.get({ params: { tenant } }))).toBe(404)
    await service.rooms.namespaces.join(tenant, stranger.id, 'observer')
    expect(await statusOf(api.namespaces.get({ params: { tenant } }))).toBe(200)
    expect(await edit()).toBe(403)
  })

  test('is what a user without a namespace needs: 403 until then', async () => {
    await using service = await startService()
    await service.rooms.users.create(
      { name: 'Nora', username: 'nora', email: 'nora@example.com', password: 'lighthouse' },
      true,
    )
    const { token } = await signIn(service, { username: 'nora', password: 'lighthouse' })
    const api = service.api({ token })
    expect((await refused(api.devices.list({}))).status).toBe(403)
    expect((await api.namespaces.list({})).body).toEqual([])
    const { body } = await api.namespaces.create({ body: { name: 'Lagoon' } })
    expect(await statusOf(api.devices.list({}))).toBe(403)
    const fresh = (await api.users.namespaceToken({ params: { tenant: body.tenant_id } })).body
    expect(fresh).toMatchObject({ tenant: body.tenant_id, role: 'owner' })
    expect(await works(service, fresh.token)).toBe(200)
  })
})

describe('a device’s token', () => {
  test('has no end, names the device, and ends when the device is rejected or deleted', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const token = await world.deviceToken()
    const { header, claims } = partsOf(token)
    expect(header).toMatchObject({ alg: 'RS256' })
    expect(claims).toMatchObject({
      uid: sample.device,
      tenant,
      claims: 'device',
      jti: expect.stringMatching(uuid4) as string,
    })
    for (const name of ['exp', 'nbf', 'role']) expect(claims).not.toHaveProperty(name)
    const offline = () => statusOf(service.api({ token }).devices.offline({ params: { uid: sample.device } }))
    expect(await offline()).toBe(200)
    service.clock.forward(5 * 365 * day_ms)
    expect(await offline()).toBe(200)
    const admin = async () => service.api({ token: (await signIn(service, administrator)).token })
    await (await admin()).devices.setStatus({ params: { uid: sample.device, status: 'reject' } })
    expect(await offline()).toBe(401)
    await (await admin()).devices.accept({ params: { uid: sample.device } })
    expect(await offline()).toBe(200)
    await (await admin()).devices.remove({ params: { uid: sample.device } })
    expect(await offline()).toBe(401)
  })

  test('is refused on everything that is for people', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const token = await world.deviceToken()
    for (const { id, op } of operations) {
      if (op.access.who === 'anyone' || op.access.who === 'device' || op.access.who === 'device-or-member')
        continue
      expect((await call(op, op.example, { url: service.url, token })).status, id).toBe(403)
    }
  })
})

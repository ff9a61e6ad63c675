// Auth device, as real agents make it: what the first call makes, what later calls change, and that nothing
// an operator does to the device or its namespace is answered from memory afterwards.
import { createHash, generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { bothDatabases, sharedPlace, startPlace } from '../harness/place.ts'
import { startService, type Service } from '../harness/service.ts'
import { times } from '../harness/tier.ts'

const pem = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({
  type: 'pkcs1',
  format: 'pem',
})
const info = {
  id: 'debian',
  pretty_name: 'Debian GNU/Linux 12 (bookworm)',
  version: 'v0.16.4',
  arch: 'amd64',
  platform: 'native',
}
const mac = '86:5a:17:64:37:9d'
const body = { info, identity: { mac }, public_key: pem, tenant_id: sample.tenant }

let keys = 0
/** A device that no other test has. */
const another = () => ({ ...body, public_key: `key ${++keys}`, identity: { mac: `02:00:00:00:00:${keys}` } })

/**
 * The bytes that an agent of version 0.16.4 sends: its order of fields, no host name unless one was chosen.
 */
const asAgent = (key = pem): string =>
  `{"info":${JSON.stringify(info)},"identity":{"mac":"${mac}"},"public_key":${JSON.stringify(key)},"tenant_id":"${sample.tenant}"}`

const post = (
  service: Service,
  text: string,
  headers: Record<string, string> = {},
  address = '/api/devices/auth',
) =>
  fetch(service.url + address, {
    method: 'POST',
    body: text,
    headers: { 'content-type': 'application/json', ...headers },
  })

describe('the first call', () => {
  const place = sharedPlace()

  test('of an agent makes a pending device named after its MAC, and answers as JSON', async () => {
    const before = new Date(place.clock.now()).toISOString()
    const response = await post(place, asAgent())
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toMatch(/^application\/json\b/)
    const answer = (await response.json()) as Record<'uid' | 'token' | 'name' | 'namespace', string>
    expect(Object.keys(answer).toSorted()).toEqual(['name', 'namespace', 'status', 'token', 'uid'])
    expect(answer).toMatchObject({ name: '86-5a-17-64-37-9d', namespace: sample.namespace })
    const { body: device } = await place.observer.devices.get({ params: { uid: answer.uid } })
    expect(device).toEqual({
      uid: answer.uid,
      name: '86-5a-17-64-37-9d',
      identity: { mac },
      info,
      public_key: pem,
      tenant_id: sample.tenant,
      namespace: sample.namespace,
      status: 'pending',
      online: true,
      remote_addr: '127.0.0.1',
      position: { latitude: 0, longitude: 0 },
      tags: [],
      public_url: false,
      public_url_address: '',
      acceptable: true,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown,
      last_seen: expect.any(String) as unknown,
      status_update_at: device.created_at,
      status_updated_at: device.created_at,
    })
    expect(device.created_at >= before && device.last_seen >= device.created_at).toBe(true)
  })

  test('at the other address is the same operation', async () => {
    const uids = await Promise.all(
      ['/api/devices/auth', '/api/auth/device'].map(async (address) => {
        const response = await post(place, asAgent('two doors'), {}, address)
        return ((await response.json()) as { uid: string }).uid
      }),
    )
    expect(uids[1]).toBe(uids[0])
  })

  test('derives the uid from identity, key and namespace, byte for byte', async () => {
    const tenant_id = '00000000-0000-4000-0000-000000000000'
    await place.rooms.namespaces.create(sample.owner.id, 'vectors', tenant_id)
    const uidOf = async (more: object) =>
      (await place.nobody.devices.auth({ body: { info, public_key: 'key', tenant_id, ...more } })).body.uid
    expect(await uidOf({ identity: { mac: '00:00:5e:00:53:01' } })).toBe(
      'b71dc12eb70e5c1371ffa81a41050569de6493dc6ccb23dec773b05ab4050541',
    )
    expect(await uidOf({ hostname: 'crane' })).toBe(
      'e5ce10fc2dafb1b7c3e1638d664af693696e612a6a53e5e98f135933eedfe407',
    )
    const text = `{Identity:{MAC:"${mac}"},PublicKey:"${pem}",TenantID:"${tenant_id}"}`
    expect(await uidOf({ identity: { mac }, public_key: pem, hostname: 'any' })).toBe(
      createHash('sha256').update(text).digest('hex'),
    )
  })

  test.each([
    [{ hostname: 'Crane-7' }, 'crane-7'],
    [{ hostname: 'crane_7' }, 'crane_7'],
    [{ hostname: 'crane.dock.example' }, 'crane-dock-example'],
    [{ hostname: '', identity: { mac } }, '86-5a-17-64-37-9d'],
    [{ identity: { mac: 'AA:BB:CC:00:11:22' } }, 'aa-bb-cc-00-11-22'],
    [{ identity: { mac: '4f1c09d2a7be' }, hostname: 'db_main' }, 'db_main'],
    [{ identity: { mac: 'my own / identity' } }, 'my-own---identity'],
    [{ hostname: 'x'.repeat(80) }, 'x'.repeat(64)],
  ])('with %j gives the name %s', async (more, name) => {
    expect((await place.nobody.devices.auth({ body: { ...another(), ...more } })).body.name).toBe(name)
  })

  test('without an identity needs a host name', async () => {
    const { info: told, public_key, tenant_id } = another()
    const { uid } = (
      await place.nobody.devices.auth({ body: { info: told, public_key, tenant_id, hostname: 'plain' } })
    ).body
    expect((await place.observer.devices.get({ params: { uid } })).body).toMatchObject({
      name: 'plain',
      identity: { mac: '' },
    })
  })

  test('with fields that we do not know is taken, and they change nothing: newer agents send more', async () => {
    const told = another()
    const { uid } = (await place.nobody.devices.auth({ body: told })).body
    const response = await post(
      place,
      JSON.stringify({ ...told, install_key: 'k', uid: 'f'.repeat(64), status: 'accepted', online: false }),
    )
    expect(await response.json()).toMatchObject({ uid })
    expect((await place.observer.devices.get({ params: { uid } })).body).toMatchObject({
      status: 'pending',
      online: true,
    })
  })

  test('needs no credential, and one that is sent is not looked at', async () => {
    for (const headers of [
      { authorization: 'Bearer nonsense' },
      { 'x-api-key': 'nonsense' },
      { 'x-tenant-id': sample.otherTenant },
    ])
      expect((await post(place, asAgent(), headers)).status).toBe(200)
  })

  test.each([
    ['neither host name nor identity', { identity: undefined }],
    ['an empty host name and an empty identity', { hostname: '', identity: { mac: '' } }],
    ['an identity without a MAC', { identity: {} }],
    ['no info', { info: undefined }],
    ['info that is no object', { info: 'debian' }],
    ['a number in info', { info: { ...info, id: 1 } }],
    ['no public key', { public_key: undefined }],
    ['an empty public key', { public_key: '' }],
    ['no tenant', { tenant_id: undefined }],
    ['an empty tenant', { tenant_id: '' }],
    ['a host name with other letters', { hostname: 'crane 7' }],
    ['sessions that are no list', { sessions: sample.session }],
    ['an identity that is no object', { identity: mac }],
  ])('with %s is refused with 400', async (_, more) => {
    const response = await post(place, JSON.stringify({ ...body, ...more }))
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({ message: expect.stringMatching(/\w+/) as unknown })
  })

  test.each([
    ['unknown', '00000000-0000-4000-8000-0000000000ff'],
    ['malformed', 'harbour'],
    ['misspelt', `${sample.tenant} `],
  ])('for a tenant that is %s is refused with 404', async (_, tenant_id) => {
    await expect(place.nobody.devices.auth({ body: { ...body, tenant_id } })).rejects.toMatchObject({
      status: 404,
    })
  })
})

describe('later calls', () => {
  const place = sharedPlace()

  test('of one device are the same device, with the same name, and update what they tell', async () => {
    const told = another()
    const first = (await place.nobody.devices.auth({ body: told })).body
    const before = (await place.owner.devices.get({ params: first })).body
    const { total } = await place.owner.devices.list()
    place.clock.forward(30_000)
    const changed = { ...info, version: 'v0.17.0', pretty_name: 'Debian GNU/Linux 13 (trixie)' }
    const second = await post(place, JSON.stringify({ ...told, hostname: 'other', info: changed }), {
      'x-real-ip': '198.51.100.4',
    })
    expect(await second.json()).toMatchObject({ uid: first.uid, name: first.name })
    const after = (await place.owner.devices.get({ params: first })).body
    expect(after).toEqual({
      ...before,
      info: changed,
      remote_addr: '198.51.100.4',
      last_seen: after.last_seen,
    })
    expect(Date.parse(after.last_seen)).toBeGreaterThanOrEqual(Date.parse(before.last_seen) + 30_000)
    expect((await place.owner.devices.list()).total).toBe(total)
  })

  test('from two addresses in turn always leave the latest one', async () => {
    const told = JSON.stringify(another())
    for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1', '2001:db8::7', '192.0.2.1']) {
      const { uid } = (await (await post(place, told, { 'x-real-ip': address })).json()) as { uid: string }
      expect((await place.owner.devices.get({ params: { uid } })).body.remote_addr).toBe(address)
    }
  })

  test('with another key, another MAC or another namespace are another device', async () => {
    const told = another()
    const changes = [
      {},
      { public_key: 'new' },
      { identity: { mac: '00:00:5e:00:53:02' } },
      { tenant_id: sample.otherTenant },
    ]
    const uids = await Promise.all(
      changes.map(async (more) => (await place.nobody.devices.auth({ body: { ...told, ...more } })).body.uid),
    )
    expect(new Set(uids).size).toBe(4)
  })

  test('refresh the sessions that the agent still holds, and only those of its own device', async () => {
    const sessions = place.rooms.stores.of(sample.tenant).sessions
    const told = another()
    const { uid } = (await place.nobody.devices.auth({ body: told })).body
    const row = (await sessions.find(sample.session))!
    const mine = { ...row, uid: 'a'.repeat(64), device_uid: uid }
    const ended = { ...mine, uid: 'b'.repeat(64), active: 0 as const }
    for (const each of [mine, ended]) await sessions.insert(each)
    place.clock.forward(30_000)
    await place.nobody.devices.auth({
      body: { ...told, sessions: [mine.uid, ended.uid, sample.session, 'unknown', 'f'.repeat(64)] },
    })
    const seen = async (of: string) =>
      (await place.owner.sessions.get({ params: { uid: of } })).body.last_seen
    expect(Date.parse(await seen(mine.uid))).toBeGreaterThanOrEqual(Date.parse(row.last_seen) + 30_000)
    expect(await seen(ended.uid)).toBe(row.last_seen)
    expect(await seen(sample.session)).toBe(row.last_seen)
  })

  test('say the new name at once after a rename', async () => {
    const told = another()
    const { uid } = (await place.nobody.devices.auth({ body: told })).body
    await place.owner.devices.update({ params: { uid }, body: { name: 'Gantry' } })
    expect((await place.nobody.devices.auth({ body: told })).body.name).toBe('gantry')
    await place.owner.devices.rename({ params: { uid }, body: { name: 'derrick' } })
    expect((await place.nobody.devices.auth({ body: told })).body.name).toBe('derrick')
  })

  test('make a deleted device again, at once, as pending and as it was first named', async () => {
    const told = another()
    const { uid, name, token } = (await place.nobody.devices.auth({ body: told })).body
    await place.owner.devices.accept({ params: { uid } })
    await place.owner.devices.update({ params: { uid }, body: { name: 'bollard' } })
    await place.owner.devices.setTags({ params: { uid }, body: { tags: ['winch'] } })
    await place.owner.devices.remove({ params: { uid } })
    await expect(place.owner.devices.get({ params: { uid } })).rejects.toMatchObject({ status: 404 })
    await expect(place.api({ token }).devices.offline({ params: { uid } })).rejects.toMatchObject({
      status: 401,
    })
    expect((await place.nobody.devices.auth({ body: told })).body).toMatchObject({ uid, name })
    const again = (await place.owner.devices.get({ params: { uid } })).body
    expect(again).toMatchObject({ name, status: 'pending', tags: [], online: true })
  })

  test('say the new name of the namespace at once, and 404 when it is gone', async () => {
    const { tenant_id } = await place.rooms.namespaces.create(sample.owner.id, 'basin')
    const told = { ...another(), tenant_id }
    expect((await place.nobody.devices.auth({ body: told })).body.namespace).toBe('basin')
    await place.owner.namespaces.edit({ params: { tenant: tenant_id }, body: { name: 'Marina' } })
    expect((await place.nobody.devices.auth({ body: told })).body.namespace).toBe('marina')
    await place.owner.namespaces.remove({ params: { tenant: tenant_id } })
    await expect(place.nobody.devices.auth({ body: told })).rejects.toMatchObject({ status: 404 })
    await expect(place.nobody.devices.auth({ body: { ...another(), tenant_id } })).rejects.toMatchObject({
      status: 404,
    })
  })
})

describe('a device token', () => {
  const place = sharedPlace()

  test('is RS256, says who it is and has no end', async () => {
    await using later = await startPlace()
    const { uid, token } = (await later.nobody.devices.auth({ body })).body
    expect(decodeProtectedHeader(token).alg).toBe('RS256')
    const claims = decodeJwt(token)
    expect(claims).toMatchObject({ uid, tenant: sample.tenant, claims: 'device' })
    expect(claims.exp).toBeUndefined()
    later.clock.forward(5 * 365 * 86_400_000)
    expect((await later.api({ token }).devices.offline({ params: { uid } })).status).toBe(200)
  })

  test('stops working when the device is rejected and works again when it no longer is', async () => {
    const told = another()
    const { uid, token } = (await place.nobody.devices.auth({ body: told })).body
    const offline = () => place.api({ token }).devices.offline({ params: { uid } })
    await offline()
    await place.owner.devices.setStatus({ params: { uid, status: 'reject' } })
    await expect(offline()).rejects.toMatchObject({ status: 401 })
    // Its calls are still answered, so that an agent does not have to be restarted when someone changes their
    // mind.
    expect((await place.nobody.devices.auth({ body: told })).body.uid).toBe(uid)
    await expect(offline()).rejects.toMatchObject({ status: 401 })
    await place.owner.devices.accept({ params: { uid } })
    await offline()
  })

  test('may not call what members call', async () => {
    const { uid, token } = (await place.nobody.devices.auth({ body: another() })).body
    const device = place.api({ token })
    const calls = [
      device.devices.list(),
      device.devices.get({ params: { uid } }),
      device.devices.accept({ params: { uid } }),
      device.namespaces.list(),
      device.namespaces.get({ params: { tenant: sample.tenant } }),
      device.sessions.list(),
      device.system.stats(),
    ]
    await Promise.all(calls.map((call) => expect(call).rejects.toMatchObject({ status: 403 })))
  })

  test('asks for a signature in vain while nobody logs in with that key, and nobody else may ask', async () => {
    const { token } = (await place.nobody.devices.auth({ body: another() })).body
    const asked = { fingerprint: sample.fingerprint, data: '{"Username":"root","Namespace":"crane"}' }
    const device = place.api({ token })
    await expect(device.devices.authSsh({ body: asked })).rejects.toMatchObject({ status: 404 })
    for (const more of [
      { fingerprint: '' },
      { fingerprint: 'SHA256:abc' },
      { data: '' },
      { data: undefined as unknown as string },
    ])
      await expect(device.devices.authSsh({ body: { ...asked, ...more } })).rejects.toMatchObject({
        status: 400,
      })
    for (const client of [place.owner, place.key])
      await expect(client.devices.authSsh({ body: asked })).rejects.toMatchObject({ status: 403 })
    await expect(place.nobody.devices.authSsh({ body: asked })).rejects.toMatchObject({ status: 401 })
  })

  test('of before a restart still works after it', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-restart-'))
    try {
      const first = await startPlace({ folder })
      const { uid, token } = (await first.nobody.devices.auth({ body })).body
      await first[Symbol.asyncDispose]()
      await using second = await startService({ folder })
      expect((await second.api({ token }).devices.offline({ params: { uid } })).status).toBe(200)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe.each(bothDatabases)('calls at the same time, on %s', (_, options) => {
  const place = sharedPlace(options)
  const owner = {
    kind: 'user',
    id: sample.owner.id,
    username: 'olga',
    token_id: 'none',
    epoch: 1,
    exp: 0,
    tenant_id: sample.tenant,
    role: 'owner',
  } as const
  const from = { source: '127.0.0.1', host: 'hawser.test', secure: false }

  test('make one device', async () => {
    const told = another()
    const { total } = await place.owner.devices.list()
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => place.nobody.devices.auth({ body: told })),
    )
    expect(new Set(answers.map((answer) => answer.body.uid)).size).toBe(1)
    expect((await place.owner.devices.list()).total).toBe(total + 1)
  })

  test('and a delete that comes in between leave no device that only memory knows', async () => {
    const { rules, stores } = place.rooms
    for (let round = 0; round < 5; round++) {
      const told = another()
      const call = Promise.resolve(
        rules.devices.auth({ params: {}, query: {}, body: told }, { ...from, kind: 'anonymous' }),
      )
      const stored = async () =>
        (await stores.of(sample.tenant).devices.list({ ...byKey, groups: groupsOf(told.public_key) }))
          .items[0]
      // Inserted, and its token still being signed.
      let row = await stored()
      while (!row) row = await stored()
      await rules.devices.remove(
        { params: { uid: row.uid }, query: {}, body: undefined },
        { ...from, ...owner },
      )
      await call
      await place.nobody.devices.auth({ body: told })
      expect((await place.owner.devices.get({ params: { uid: row.uid } })).body.status).toBe('pending')
    }
  })

  test('and a rename leave the name that is stored', async () => {
    const told = another()
    const { uid } = (await place.nobody.devices.auth({ body: told })).body
    for (let round = 0; round < 15; round++) {
      const next = { ...told, info: { ...info, version: `v0.16.${round}` } }
      await Promise.all([
        place.nobody.devices.auth({ body: next }),
        place.owner.devices.update({ params: { uid }, body: { name: `tug-${round}` } }),
      ])
      expect((await place.nobody.devices.auth({ body: next })).body.name).toBe(`tug-${round}`)
    }
  })

  test('and the end of the namespace leave nobody an answer', async () => {
    for (let round = 0; round < 10; round++) {
      const { tenant_id } = await place.rooms.namespaces.create(sample.owner.id, `basin-${round}`)
      const told = { ...another(), tenant_id }
      const calls = await Promise.allSettled([
        place.nobody.devices.auth({ body: told }),
        place.owner.namespaces.remove({ params: { tenant: tenant_id } }),
        place.nobody.devices.auth({ body: told }),
      ])
      for (const call of calls)
        if (call.status === 'rejected') expect(call.reason).toMatchObject({ status: 404 })
      await expect(place.nobody.devices.auth({ body: told })).rejects.toMatchObject({ status: 404 })
    }
  })

  test('whatever letters an agent sends, the answer is a device or a refusal that says why', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 40 })
    const nul = { mac: 'a\0b', public_key: 'k', id: '', pretty_name: '', session: '' }
    await fc.assert(
      fc.asyncProperty(
        fc.record({ mac: text, public_key: text, id: text, pretty_name: text, session: text }),
        async (told) => {
          const asked = {
            info: { id: told.id, pretty_name: told.pretty_name },
            hostname: 'buoy',
            identity: { mac: told.mac },
            public_key: told.public_key,
            sessions: [told.session],
            tenant_id: sample.tenant,
          }
          const response = await post(place, JSON.stringify(asked))
          const answer = (await response.json()) as object
          if (response.status === 200) expect(answer).toHaveProperty('uid')
          else expect([response.status, Object.keys(answer)]).toEqual([400, ['message']])
        },
      ),
      {
        numRuns: times(15, 60),
        examples: [
          [nul],
          [{ ...nul, mac: 'a', id: 'a\0b' }],
          [{ ...nul, mac: '\ud800' }],
          [{ ...nul, mac: 'b', session: '\0' }],
        ],
      },
    )
  })
})

const byKey = { page: 1, per_page: 10, sort: 'last_seen', order: 'desc' } as const
const groupsOf = (public_key: string) =>
  [{ join: 'or', conditions: [{ property: 'public_key', operator: 'eq', value: public_key }] }] as const

describe('limits', () => {
  test('one device that calls without end is told to wait, and others are not', async () => {
    await using place = await startPlace({ env: { HAWSER_DEVICE_RATE_LIMIT: '3/10' } })
    const statuses: number[] = []
    for (let call = 0; call < 5; call++) statuses.push((await post(place, asAgent())).status)
    expect(statuses).toEqual([200, 200, 200, 429, 429])
    const refused = await post(place, asAgent(), {}, '/api/auth/device')
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await place.nobody.devices.auth({ body: another() })).status).toBe(200)
    place.clock.forward(10_000)
    expect((await post(place, asAgent())).status).toBe(200)
  })

  test('one address cannot fill a namespace with new devices, and known ones are let through', async () => {
    await using place = await startPlace({ env: { HAWSER_RATE_LIMIT: '3/10' } })
    const [one, two, three, four] = [another(), another(), another(), another()]
    for (const told of [one, two, three]) await place.nobody.devices.auth({ body: told })
    await expect(place.nobody.devices.auth({ body: four })).rejects.toMatchObject({ status: 429 })
    await place.nobody.devices.auth({ body: one })
    place.clock.forward(10_000)
    await place.nobody.devices.auth({ body: four })
  })
})

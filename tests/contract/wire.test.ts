// What the wire looks like, whatever the operation: addresses, methods, odd requests, the spellings that
// clients of different ages expect, and whose word counts about who is calling.
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { contract } from '@hawser/contract'
import { sample } from '@hawser/contract/examples'
import { failureHeader } from '@hawser/contract/failures'
import { describe, expect, test } from 'vitest'
import { isObjectSchema } from './bad-input.ts'
import { cases, fill, humblest, isOfNamespace, outcomeOf, request, rolesBelow, type Case } from './cases.ts'
import { expectAnswer, expectHeaders, expectRefusal } from './expectations.ts'
import { onStage, openStage, type Got, type Sent, type Credential } from './stage.ts'

const stage = onStage(() => openStage())

const some = (filter: (one: Case) => boolean) => cases.filter(filter)
const caseOf = (id: string): Case => {
  const found = cases.find((one) => one.id === id)
  if (!found) throw new Error(`there is no operation ${id}`)
  return found
}
const get = (path: string, sent: Partial<Sent> = {}) =>
  stage().send({ method: 'GET', path, by: stage().cast.observer, ...sent })
/** The example of an operation by the humblest who may. */
const play = (id: string, change: Parameters<typeof request>[2] = {}): Promise<Got> =>
  stage().send({ ...request(caseOf(id), stage(), change), by: humblest(caseOf(id), stage().cast) })
const deviceAt = (uid: string) => `/api/devices/${uid}`

describe('addresses', () => {
  test.each([
    '/api',
    '/api/',
    '/api/nonsense',
    '/api/devices/x/y/z/0',
    '/nonsense',
    '/internal',
    '/api/users',
    '/.env',
    '/api//devices',
  ])('%s is nowhere, with or without a token', async (path) => {
    const status = path === '/api/users' ? 405 : 404
    for (const by of [{}, stage().cast.owner, stage().cast.device, { token: 'garbage' }])
      expectRefusal(await get(path, { by }), status)
  })

  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
  const paths = Map.groupBy(cases, ({ path }) => path)
  test.each([...paths.keys()])('%s takes its own methods only, and names them', async (path) => {
    const own = paths.get(path)!.map(({ method }) => method)
    const example = paths.get(path)![0]!.op.example.params
    // `/api/devices/:uid/:status` also takes what looks like a status.
    const others = cases
      .filter((one) => one.path !== path && matches(one.path, fill(path, example)))
      .map(({ method }) => method)
    for (const method of methods.filter((method) => !own.includes(method) && !others.includes(method))) {
      const got = await stage().send({ method, path: fill(path, example) })
      expectRefusal(got, 405, undefined, undefined, method)
      const allowed = new Set<string>([...own, ...others])
      const isStreamed = cases.some((one) => one.path === path && one.op.streamed === true)
      if (allowed.has('GET') && !isStreamed) allowed.add('HEAD')
      expect(got.headers.get('allow')?.split(', ').toSorted()).toEqual([...allowed].toSorted())
    }
  })

  test('a slash at the end changes nothing', async () => {
    expectAnswer(await get('/api/devices/'), contract.devices.list)
    expectAnswer(await get(`${deviceAt(sample.device)}/?x=1`), contract.devices.get)
    expectRefusal(await get('/api/devices/', { by: {} }), 401)
  })

  test('the colons of a fingerprint may be percent-encoded or not', async () => {
    const by = stage().cast.administrator
    const { body } = await play('publicKeys.update')
    for (const fingerprint of [
      sample.fingerprint,
      sample.fingerprint.replaceAll(':', '%3A'),
      sample.fingerprint.replaceAll(':', '%3a'),
    ]) {
      const sent = {
        method: 'PUT',
        path: `/api/sshkeys/public-keys/${fingerprint}`,
        by,
        json: contract.publicKeys.update.example.body,
      }
      expect((await stage().send(sent)).body).toEqual(body)
    }
  })

  test.each(['/api/devices/%zz', '/api/devices/%', '/api/devices/%E4%', '/%zz', '/api/devices/%C3%28'])(
    'percent signs that mean nothing are refused: %s',
    async (path) => {
      for (const by of [{}, stage().cast.observer]) expectRefusal(await get(path, { by }), 400)
    },
  )

  test('an encoded slash stays within its part of the path', async () => {
    expectRefusal(await get(`/api/devices%2F${sample.device}`), 404)
    expectRefusal(await get(`/api/devices/${sample.device}%2Ftags`), 404)
    expectRefusal(await get(`/api/devices/..%2F..%2Finfo`), 404)
  })
})

function matches(pattern: string, path: string): boolean {
  return new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+')}$`).test(path)
}

describe('methods that no operation has', () => {
  test('HEAD passes the same gate as GET and gets its headers', async () => {
    const head = (path: string, by?: Credential) =>
      stage().send({ method: 'HEAD', path, ...(by ? { by } : {}) })
    const list = await head('/api/devices', stage().cast.observer)
    expect(list.status).toBe(200)
    expect(list.headers.get('x-total-count')).not.toBeNull()
    expect(list.text).toBe('')
    expect((await head('/api/devices')).status).toBe(401)
    expect((await head('/healthcheck')).status).toBe(200)
  })

  test('HEAD is refused where an answer is streamed, and makes nothing of it', async () => {
    const streamed = cases.filter(({ op }) => op.streamed === true)
    expect(streamed.length).toBeGreaterThan(3)
    for (const { path, op } of streamed) {
      const got = await stage().send({
        method: 'HEAD',
        path: fill(path, op.example.params),
        by: stage().cast.owner,
      })
      expect([path, got.status]).toEqual([path, 405])
    }
  })

  test('OPTIONS gets no data and no permission to read across origins', async () => {
    for (const path of ['/api/devices', '/healthcheck', deviceAt(sample.device)]) {
      const got = await stage().send({
        method: 'OPTIONS',
        path,
        by: stage().cast.observer,
        headers: { origin: 'https://elsewhere.example' },
      })
      expect(got.status).toBe(405)
      expectHeaders(got)
      expect(got.headers.get('allow')).toContain('GET')
      expect([...got.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
      expect(got.text).not.toContain(sample.device)
    }
  })

  test('one that is unknown to HTTP is refused in the same shape', async () => {
    const { port } = new URL(stage().service.url)
    for (const [said, status, kind] of [
      ['NONSENSE /api/devices HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'invalid'],
      ['garbage\r\n\r\n', 400, 'invalid'],
      [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`, 431, 'headersTooLarge'],
    ] as const) {
      const socket = connect(Number(port), '127.0.0.1')
      socket.write(said)
      const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
      expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
      expect(head.toLowerCase()).toContain('content-type: application/json')
      expect(head).toContain(`\r\n${failureHeader}: ${kind}\r\n`)
      expect(Object.keys(JSON.parse(body) as object)).toEqual(['message'])
    }
  })
})

test('a refused WebSocket names the kind of its failure, as any other refusal', async () => {
  const { port } = new URL(stage().service.url)
  for (const [path, status, kind] of [
    ['/agent/connection', 401, 'unauthenticated'],
    ['/ws/ssh?token=garbage', 403, 'forbidden'],
    [`/api/sessions/${sample.session}/live?channel=x`, 401, 'unauthenticated'],
  ] as const) {
    const socket = connect(Number(port), '127.0.0.1')
    const upgrade = 'Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13'
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: x\r\n${upgrade}\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    )
    const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(head).toContain(`\r\n${failureHeader}: ${kind}\r\n`)
    expect(Object.keys(JSON.parse(body) as object)).toEqual(['message'])
  }
})

describe('bodies', () => {
  const changing = some(({ op }) => op.method === 'PUT' || op.method === 'PATCH').filter(({ op }) => {
    const { required } = (op.body ?? { required: ['no body at all'] }) as { required?: string[] }
    return !required?.length
  })
  test.each(changing)('an empty change by $name is 200 and changes nothing', async (one) => {
    const before = await stage().fingerprint()
    const by = humblest(one, stage().cast)
    const { json: _, ...bare } = request(one, stage())
    // Disable MFA has no fields that are always needed, and yet needs one of two.
    const status = one.id === 'mfa.disable' ? 400 : 200
    for (const sent of [{ json: {} }, { raw: '', type: 'application/json' }, {}])
      expect((await stage().send({ ...bare, ...sent, by })).status).toBe(status)
    expect(await stage().fingerprint()).toBe(before)
  })

  const withBoth = some(({ op }) => op.params !== undefined && op.body !== undefined)
  test.each(withBoth)('what the path names is not overridden by the body of $name', async (one) => {
    // Times, ids and password hashes are new each time; all else must come out the same.
    const masked = async () =>
      (await stage().fingerprint())
        .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'moment')
        .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'uuid')
        .replaceAll(/"id":\d+/g, 'number')
        .replaceAll(/^((?:audit_|session_invitations ).*"hash":)"[0-9a-f]{64}"/gm, '$1hash')
        .replaceAll(/\$argon2id[^"]*/g, 'hash')
        // Decided whenever the recordings of the namespace are measured first.
        .replaceAll(/"recording_quota":\d+/g, '"recording_quota":null')
        .split('\n')
        // Rows come in the order of ids that are new each time.
        .toSorted()
        .join('\n')
    const before = await masked()
    expect((await play(one.id)).status).toBe(200)
    const expected = await masked()
    await stage().reset()
    const others = {
      uid: sample.pendingDevice,
      id: sample.firewallRule,
      tenant: sample.otherTenant,
      tenant_id: sample.otherTenant,
    }
    const more = {
      key: 'as-owner',
      fingerprint: sample.taggedFingerprint,
      user_id: sample.owner.id,
      status: 'accept',
    }
    const got = await play(one.id, {
      body: { ...others, ...more, ...(one.op.example.body as object), ...liveCode(one) },
    })
    expect(got.status, got.text).toBe(200)
    expect(await masked()).toBe(expected)
    // An example that changes nothing would prove nothing.
    expect(expected).not.toBe(before)
  })
  const liveCode = (one: Case) => request(one, stage()).json ?? {}

  test('a session is not recorded under another uid than that of the path', async () => {
    const before = await stage().fingerprint()
    const { body } = contract.sessions.record.example
    expectRefusal(await play('sessions.record', { body: { ...body, uid: sample.device } }), 422)
    expect(await stage().fingerprint()).toBe(before)
  })

  /** What somebody would like to set; of an operation that has such a field, the others. */
  const unknownTo = (body: unknown): object => {
    const wished = { nonsense: { deep: [1] }, max_devices: 1, confirmed: true, owner: sample.stranger.id }
    const { properties = {} } = body as { properties?: object }
    return Object.fromEntries(Object.entries(wished).filter(([name]) => !(name in properties)))
  }

  test.each(some(({ op }) => isObjectSchema(op.body)))(
    'fields that $name does not know are ignored',
    async (one) => {
      if (one.id === 'system.setup') await stage().empty()
      const got = await stage().send({
        ...request(one, stage(), {
          body: { ...liveCode(one), ...unknownTo(one.op.body) },
        }),
        by: humblest(one, stage().cast),
      })
      expect(got.status, got.text).toBe(outcomeOf(one.id).status)
    },
  )

  test.each([
    '{"name":"gantry","__proto__":{"role":"owner"}}',
    '{"name":"gantry","constructor":{"prototype":{"role":"owner"}}}',
  ])('a poisoned body is refused: %s', async (raw) => {
    const before = await stage().fingerprint()
    expectRefusal(
      await stage().send({ method: 'PUT', path: deviceAt(sample.device), by: stage().cast.operator, raw }),
      400,
    )
    expect(await stage().fingerprint()).toBe(before)
    expect(({} as { role?: string }).role).toBeUndefined()
  })

  test('JSON with a character set is JSON', async () => {
    const json = { raw: '{"name":"gantry"}', type: 'application/json; charset=utf-8' }
    expectAnswer(
      await stage().send({
        method: 'PUT',
        path: deviceAt(sample.device),
        by: stage().cast.operator,
        ...json,
      }),
      contract.devices.update,
    )
  })
})

describe('queries', () => {
  test.each(some(({ op }) => op.query !== undefined))(
    'a field that comes twice is refused by $name',
    async (one) => {
      const { path, ...sent } = request(one, stage())
      const [bare, search] = path.split('?')
      for (const name of Object.keys(one.op.query?.properties ?? {})) {
        const value = new URLSearchParams(search).get(name) ?? '1'
        const rest = new URLSearchParams(search)
        rest.delete(name)
        const twice = [...rest.entries(), [name, value], [name, value]] as [string, string][]
        const got = await stage().send({
          ...sent,
          path: `${bare}?${new URLSearchParams(twice).toString()}`,
          by: humblest(one, stage().cast),
        })
        expectRefusal(got, 400, one.op, undefined, name)
        expect(got.text).toContain(name)
      }
    },
  )

  test('fields that nobody knows are ignored, poisonous ones too', async () => {
    const query = 'nonsense=1&nonsense=2&__proto__=x&constructor=y&page[]=2&toString=z'
    expectAnswer(await get(`/api/devices?${query}`), contract.devices.list)
  })
})

describe('spellings', () => {
  test('a device says when its status changed in both', async () => {
    const { body } = await play('devices.get')
    const { status_update_at, status_updated_at } = body as Record<string, unknown>
    expect(status_update_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(status_updated_at).toBe(status_update_at)
  })
  test('a namespace says how many devices it has in both', async () => {
    expect((await play('namespaces.get')).body).toMatchObject({ device_count: 1, devices_count: 1 })
  })
  test('a new API key says who made it in both', async () => {
    const { id } = sample.administrator
    expect((await play('apiKeys.create')).body).toMatchObject({ created_by: id, user_id: id })
  })
  test('a connector says its state in both', async () => {
    expect((await play('connectors.get')).body).toMatchObject({
      status: { State: 'disconnected', state: 'disconnected', Message: '', message: '' },
    })
  })
  test('a member is added by identifier, username or e-mail', async () => {
    for (const who of [
      { identifier: sample.stranger.email },
      { username: sample.stranger.username },
      { email: sample.stranger.email },
    ]) {
      await stage().reset()
      const { body } = await play('namespaces.addMember', { body: { ...who, role: 'observer' } })
      expect((body as { members: object[] }).members).toContainEqual({
        id: sample.stranger.id,
        username: sample.stranger.username,
        role: 'observer',
      })
    }
  })
  test('every moment in every answer is RFC 3339 in UTC with milliseconds', async () => {
    let seen = 0
    for (const one of some(({ op }) => op.method === 'GET' && (op.answer ?? op.list) !== undefined)) {
      const { text } = await stage().send({ ...request(one, stage()), by: humblest(one, stage().cast) })
      for (const [, name, value] of text.matchAll(/"(\w+_at|last_seen|date|time)":"([^"]*)"/g)) {
        expect(value, `${one.id} ${name}`).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
        seen += 1
      }
    }
    expect(seen).toBeGreaterThan(20)
  })
})

describe('who is calling', () => {
  test('an API key counts, not the token beside it', async () => {
    const { cast } = stage()
    const one = caseOf('devices.update')
    const as = async (token: string, key: string) =>
      (await stage().send({ ...request(one, stage()), by: { token, apiKey: key } })).status
    expect(await as(cast.owner.token!, cast.key.observer.apiKey!)).toBe(403)
    expect(await as(cast.owner.token!, 'garbage')).toBe(401)
    expect(await as(cast.observer.token!, cast.key.operator.apiKey!)).toBe(200)
    expect(await as('garbage', cast.key.operator.apiKey!)).toBe(200)
    expectRefusal(await get('/api/auth/user', { by: { ...cast.owner, ...cast.key.owner } }), 403)
    expect((await get('/api/devices', { by: { ...cast.stranger, ...cast.key.observer } })).text).toContain(
      sample.device,
    )
  })

  test.each(['Bearer', 'Bearer  ', 'Basic b2xnYTpyb3Bl', 'JWT x', 'Bearer a b', 'Token'])(
    '%s is no credential',
    async (authorization) => {
      expectRefusal(await get('/api/devices', { by: {}, headers: { authorization } }), 401)
    },
  )

  test('the word Bearer may be written in any case', async () => {
    expectAnswer(
      await get('/api/devices', {
        by: {},
        headers: { authorization: `bEARER ${stage().cast.observer.token}` },
      }),
      contract.devices.list,
    )
  })

  describe('identity headers are anybody’s word', () => {
    const claims = (person: 'owner' | 'stranger', tenant: string) => ({
      'x-id': sample[person].id,
      'x-username': sample[person].username,
      'x-role': 'owner',
      'x-tenant-id': tenant,
      'x-device-uid': sample.device,
      'x-api-key-id': sample.apiKeyName,
    })

    test('they admit nobody', async () => {
      for (const one of some(({ op }) => op.access.who !== 'anyone'))
        expectRefusal(
          await stage().send({ ...request(one, stage()), headers: claims('owner', sample.tenant) }),
          401,
          one.op,
          undefined,
          one.name,
        )
    })
    test('they raise no role', async () => {
      const { observer, key } = stage().cast
      for (const one of some(({ op }) => rolesBelow(op).length > 0))
        for (const by of [observer, key.observer])
          expectRefusal(
            await stage().send({ ...request(one, stage()), by, headers: claims('owner', sample.tenant) }),
            403,
            one.op,
            undefined,
            one.name,
          )
    })
    test('they open no other namespace', async () => {
      const before = await stage().fingerprint()
      for (const one of some(({ op }) => isOfNamespace(op) && op.params !== undefined))
        expectRefusal(
          await stage().send({
            ...request(one, stage()),
            by: stage().cast.stranger,
            headers: claims('owner', sample.tenant),
          }),
          404,
          one.op,
          undefined,
          one.name,
        )
      for (const path of [
        '/api/devices',
        '/api/sessions',
        '/api/tags',
        '/api/stats',
        '/api/namespaces',
        '/api/auth/user',
      ]) {
        const { text } = await get(path, {
          by: stage().cast.stranger,
          headers: claims('owner', sample.tenant),
        })
        expect(text).not.toContain(sample.tenant)
        expect(text).not.toContain(sample.session)
      }
      expect(await stage().fingerprint()).toBe(before)
    })
    test('they make no device another', async () => {
      const { otherDevice } = stage().cast
      for (const one of some(({ op }) => op.access.who === 'device-or-member'))
        expectRefusal(
          await stage().send({
            ...request(one, stage()),
            by: otherDevice,
            headers: claims('owner', sample.tenant),
          }),
          404,
          one.op,
        )
    })
    test('the answer to those who may call is the same with them', async () => {
      for (const one of cases) {
        await stage().reset()
        if (one.id === 'system.setup') await stage().empty()
        const got = await stage().send({
          ...request(one, stage()),
          by: humblest(one, stage().cast),
          headers: claims('stranger', sample.otherTenant),
        })
        expect(got.status, `${one.name} ${got.text}`).toBe(outcomeOf(one.id).status)
        // Whoever accepts an invitation into another namespace is told which.
        if (one.id !== 'invitations.accept') expect(got.text).not.toContain(sample.otherTenant)
      }
    })
  })
})

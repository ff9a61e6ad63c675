// A stranger sends open operations, or an address where nothing is, JSON that is dear to read: a mebibyte of
// arrays within arrays behind a `constructor` key cost 0.4 s of the only thread each. Size, depth and number
// of values are known before JSON is read: whoever sends too much is refused, and `JSON.parse` never sees it.
// What operations need still fits.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { addresses, operations } from '@hawser/contract'
import { sample } from '@hawser/contract/examples'
import { failures } from '@hawser/contract/failures'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()
const few = 8 * 1024

const nested = (bytes: number): string => {
  const depth = Math.floor((bytes - 40) / 2)
  return `{"constructor":{"x":${'['.repeat(depth)}${']'.repeat(depth)}}}`
}
const wide = (bytes: number): string => `{"constructor":[${'[],'.repeat(Math.floor((bytes - 40) / 3))}0]}`

const spy = () => vi.spyOn(JSON, 'parse')
let parse: ReturnType<typeof spy>
beforeEach(() => {
  parse = spy()
})
afterEach(() => void vi.restoreAllMocks())
/** How often anybody began to read such a text. */
const read = (): number => parse.mock.calls.filter(([text]) => text.startsWith('{"constructor"')).length

async function send(method: string, path: string, body: string, headers: Record<string, string> = {}) {
  const answer = await fetch(`${place.url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
  return { status: answer.status, text: await answer.text() }
}

const taking = operations
  .filter(({ op }) => op.method !== 'GET')
  .flatMap(({ id, op }) =>
    addresses(op).map(({ method, path }) => ({
      id,
      op,
      method,
      path: path.replaceAll(/:[a-z_]+/g, (name) => op.example.params?.[name.slice(1)] ?? 'x'),
    })),
  )
const open = taking.filter(({ op }) => op.access.who === 'anyone' && op.body)

describe('a stranger', () => {
  test.each(open)('is refused a mebibyte by $method $path', async ({ method, path }) => {
    expect((await send(method, path, nested(1024 * 1024))).status).toBe(413)
    expect(read()).toBe(0)
  })

  test.each(open)('has no nested arrays read by $method $path', async ({ op, method, path }) => {
    const { status, text } = await send(method, path, nested(few))
    expect(status, text).toBe(failures[op.badInput ?? 'invalid'].status)
    expect(text).toContain('nested')
    expect(read()).toBe(0)
  })

  test('has nothing read at an address where nothing is', async () => {
    for (const path of ['/api/nonsense', '/nonsense', '/api/devices/x/y/z', '/healthcheck'])
      expect([404, 405]).toContain((await send('POST', path, wide(few))).status)
    expect(read()).toBe(0)
  })

  test.each(taking.filter(({ op }) => op.access.who !== 'anyone'))(
    'has nothing read by $method $path',
    async ({ method, path }) => {
      expect((await send(method, path, wide(few))).status).toBe(401)
      expect(read()).toBe(0)
    },
  )
})

describe('a member', () => {
  test('is refused deep and endless lists, whatever the operation takes', async () => {
    const authorization = `Bearer ${await place.world.token('owner')}`
    for (const [body, status] of [
      [nested(60 * 1024), 400],
      [wide(60 * 1024), 400],
      [nested(1024 * 1024), 413],
    ] as const)
      expect((await send('PUT', `/api/devices/${sample.device}`, body, { authorization })).status).toBe(
        status,
      )
    const path = `/api/sessions/${sample.session}/record`
    for (const body of [nested(1_000_000), wide(1_000_000)])
      expect((await send('POST', path, body, { authorization })).status).toBe(422)
    expect(read()).toBe(0)
  })
})

describe('what is needed still fits', () => {
  test('an agent with a thousand sessions', async () => {
    const body = {
      info: { id: 'debian', pretty_name: 'Debian', version: 'v0.16.4', arch: 'amd64', platform: 'native' },
      sessions: Array.from({ length: 1000 }, (_, i) => i.toString(16).padStart(64, '0')),
      hostname: 'busy',
      identity: { mac: '00:00:5e:00:53:99' },
      public_key: `-----BEGIN RSA PUBLIC KEY-----\n${'A'.repeat(8000)}\n-----END RSA PUBLIC KEY-----\n`,
      tenant_id: sample.tenant,
    }
    expect((await send('POST', '/api/devices/auth', JSON.stringify(body))).status).toBe(200)
  })

  test('a password of 1024 characters, each of them escaped', async () => {
    const password = String.raw`\u00e4`.repeat(1024)
    const { status } = await send(
      'POST',
      '/api/login',
      `{"username":"nobody-there","password":"${password}"}`,
    )
    expect(status).toBe(401)
  })

  test('a frame of a recording that is nearly a mebibyte, brackets and quotes and all', async () => {
    const authorization = `Bearer ${await place.world.token('owner')}`
    const message = '[{"\\'.repeat(150_000)
    const body = JSON.stringify({ uid: sample.session, message, width: 80, height: 24 })
    expect(body.length).toBeGreaterThan(800_000)
    const { status, text } = await send('POST', `/api/sessions/${sample.session}/record`, body, {
      authorization,
    })
    expect(status, text).toBe(200)
  })
})

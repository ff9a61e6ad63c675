// Callers who mean harm or speak no HTTP: the server answers in the shape of all its answers or closes, never
// with a 5xx, keeps its memory and its time bounded, and goes on serving everybody else. (Rate limits and
// lock-outs are contract tests.)
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { operations } from '@hawser/contract'
import { sample } from '@hawser/contract/examples'
import { boundConnections } from '../../server/src/http/bounded-requests.ts'
import { metrics } from '../../server/src/http/metrics.ts'
import { turnOf } from '../../server/src/domain/callers/callers.ts'
import { httpServer } from '../../server/src/http/serve.ts'
import { openLog } from '../../server/src/kit/log.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { openRaw } from './raw.ts'

let service: Service
let port: number
let token: string
beforeAll(async () => {
  service = await startService()
  port = Number(new URL(service.url).port)
  token = await (await buildWorld(service)).token('owner')
}, 120_000)
afterAll(() => service[Symbol.asyncDispose]())
// Whatever was sent, nothing of it went wrong inside.
afterEach(({ expect }) => expect(service.log()).not.toContain('"request.failed"'))

const healthy = async () => expect((await fetch(`${service.url}/healthcheck`)).status).toBe(200)

/** Sends bytes as they are and reads until the server closes. */
async function exchange(bytes: string): Promise<string> {
  using raw = await openRaw(port)
  raw.send(bytes)
  return await raw.closed
}

const statusesOf = (answers: string): number[] =>
  [...answers.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]))

/** The last answer has a JSON body with a message, as every refusal has. */
function expectMessage(answers: string): void {
  const last = answers.slice(answers.lastIndexOf('HTTP/1.1 '))
  expect(last).toMatch(/\r\ncontent-type: application\/json/i)
  const body = last.slice(last.indexOf('\r\n\r\n') + 4)
  expect(JSON.parse(body)).toEqual({ message: expect.any(String) as string })
}

const noOthers = {
  owns: () => false,
  request: () => undefined,
  isUpgrade: () => false,
  upgrade: () => undefined,
}

test('a request has a bounded time for its head and its body, and a connection for its silence', async () => {
  const { rules, gate, lines } = service.rooms
  const parts = {
    rules,
    gate,
    turnOf,
    log: openLog('silent'),
    openCalls: { take: () => 0, peek: () => 0, add: () => undefined },
    metrics: metrics(false),
    isFull: () => false,
    lines,
    served: [],
    doors: {},
    services: noOthers,
  }
  const { BlockList } = await import('node:net')
  await using app = httpServer({ ...parts, believed: { trusted: new BlockList(), header: '' } })
  await app.ready()
  const { requestTimeout, headersTimeout, keepAliveTimeout, timeout } = app.server
  // A body has its own limit: uploads to services take any time.
  expect(requestTimeout).toBe(0)
  expect(headersTimeout).toBeGreaterThan(0)
  expect(headersTimeout).toBeLessThanOrEqual(60_000)
  for (const limit of [keepAliveTimeout, timeout]) {
    expect(limit).toBeGreaterThan(0)
    expect(limit).toBeLessThanOrEqual(120_000)
  }
})

test('the silence of a connection whose answer is being made does not count', async () => {
  const asked = Promise.withResolvers<{ request: IncomingMessage; response: ServerResponse }>()
  await using server = createServer((request, response) => asked.resolve({ request, response }))
  boundConnections(server, noOthers, 30_000)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  using raw = await openRaw((server.address() as AddressInfo).port)
  raw.send('GET / HTTP/1.1\r\nHost: hawser\r\n\r\n')
  const { request, response } = await asked.promise
  const { socket } = request
  socket.emit('timeout')
  expect(socket.destroyed).toBe(false)
  response.end()
  await once(response, 'close')
  socket.emit('timeout')
  expect(socket.destroyed).toBe(true)
})

test('those who open connections and say nothing, or a letter now and then, keep nobody out', async () => {
  const connections = await Promise.all(Array.from({ length: 200 }, () => openRaw(port)))
  for (const [index, raw] of connections.entries()) {
    if (index % 2 === 0)
      raw.send(
        'POST /api/login HTTP/1.1\r\nHost: hawser\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
      )
    if (index % 4 === 1) raw.send('GET /info HTTP/1.1\r\nX-Slow: ')
  }
  await healthy()
  expect((await service.api({ token }).devices.list({})).status).toBe(200)
  for (const raw of connections) {
    expect(raw.received()).toBe('')
    raw[Symbol.dispose]()
  }
})

test.each([
  [
    'a head that is too large',
    `GET /info HTTP/1.1\r\nHost: hawser\r\nX-Large: ${'x'.repeat(40_000)}\r\n\r\n`,
    [431],
  ],
  [
    'too many small headers',
    `GET /info HTTP/1.1\r\nHost: hawser\r\n${'X-Small: 1\r\n'.repeat(4000)}\r\n`,
    [431],
  ],
  ['an address that is too long', `GET /info?${'x'.repeat(40_000)} HTTP/1.1\r\nHost: hawser\r\n\r\n`, [431]],
  ['something else than HTTP', 'SSH-2.0-OpenSSH_9.9\r\n\r\n', [400]],
  ['TLS on the plain port', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', [400]],
  ['a version that there is not', 'GET /info HTTP/9.9\r\nHost: hawser\r\n\r\n', [400]],
  ['a method that there is not', 'SMUGGLE /info HTTP/1.1\r\nHost: hawser\r\n\r\n', [400]],
  ['a header with a line break in it', 'GET /info HTTP/1.1\r\nHost: haw\rser\r\n\r\n', [400]],
  [
    'a request with garbage right behind it',
    'GET /info HTTP/1.1\r\nHost: hawser\r\n\r\n\x00\x01\x02\x03 garbage\r\n\r\n',
    [400],
  ],
  [
    'two lengths',
    'POST /api/login HTTP/1.1\r\nHost: hawser\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
    [400],
  ],
  [
    'a length and chunks',
    'POST /api/login HTTP/1.1\r\nHost: hawser\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /info HTTP/1.1\r\nHost: hawser\r\n\r\n',
    [400],
  ],
  [
    'a chunk of no size',
    'POST /api/login HTTP/1.1\r\nHost: hawser\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    [400],
  ],
])('%s is refused in the usual shape, and the connection ends', async (_what, bytes, statuses) => {
  const answers = await exchange(bytes)
  expect(statusesOf(answers)).toEqual(statuses)
  expectMessage(answers)
  await healthy()
})

test('a body without end is refused as soon as it is too large, whether its length was told or not', async () => {
  const head = 'POST /api/login HTTP/1.1\r\nHost: hawser\r\nContent-Type: application/json\r\n'
  const told = await exchange(`${head}Content-Length: 1073741824\r\n\r\n{"username": "`)
  expect(statusesOf(told)).toEqual([413])
  expectMessage(told)
  using endless = await openRaw(port)
  endless.send(`${head}Transfer-Encoding: chunked\r\n\r\n`)
  const chunk = 'x'.repeat(0x8000)
  for (let sent = 0; sent <= 1024 * 1024; sent += chunk.length) endless.send(`8000\r\n${chunk}\r\n`)
  expect(statusesOf(await endless.until(/HTTP\/1\.1 \d{3}[^]*\}$/))).toEqual([413])
  expectMessage(endless.received())
  await healthy()
})

const nested = (depth: number, open: string, middle: string, close: string): string =>
  `${open.repeat(depth)}${middle}${close.repeat(depth)}`
const bodies = {
  'lists in lists': nested(500_000, '[', '', ']'),
  'objects in objects': nested(150_000, '{"a":', '1', '}'),
  'lists without an end': '['.repeat(1_000_000),
  'a prototype': '{"__proto__": {"admin": true}, "constructor": {"prototype": {"admin": true}}}',
  'a number beyond numbers': `{"a": 1${'0'.repeat(400_000)}}`,
  'the same name over and over': `{${Array.from({ length: 60_000 }, () => '"a":1').join(',')}}`,
}

test.each(Object.entries(bodies))(
  '%s as the body of any operation is a refusal, not a failure',
  { timeout: 120_000 },
  async (_what, body) => {
    for (const { op, id } of operations) {
      if (!op.body) continue
      const path = op.path.replace(
        /:(\w+)/g,
        (_, name: string) => op.example.params?.[name as never] ?? sample.tenant,
      )
      const answer = await fetch(`${service.url}${path}`, {
        method: op.method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body,
      })
      await answer.arrayBuffer()
      expect([id, answer.status < 500]).toEqual([id, true])
    }
    expect(({} as { admin?: unknown }).admin).toBeUndefined()
    await healthy()
  },
)

test('a value that is nested where a text belongs is refused', async () => {
  const deep = nested(3_000, '[', '"x"', ']')
  for (const field of ['username', 'password'])
    expect(
      (
        await fetch(`${service.url}/api/login`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: `{"username": "olga", "password": "wrong-one", "${field}": ${deep}}`,
        })
      ).status,
    ).toBe(400)
})

test.each(
  [
    '/%',
    '/%c0%af..%c0%af',
    '/..%2f..%2f..%2fetc%2fpasswd',
    '/assets/..%2f..%2fpackage.json',
    '/api/devices/%00',
    '//api//devices',
    '/api/tags/%ff%fe',
    `/api/devices/${'1'.repeat(5000)}`,
  ].map((address) => ({ address, shown: address.slice(0, 60) })),
)('the address $shown leads nowhere', async ({ address }) => {
  const answers = await exchange(
    `GET ${address} HTTP/1.1\r\nHost: hawser\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  )
  const [status] = statusesOf(answers)
  expect([400, 404, 405, 414]).toContain(status)
  expectMessage(answers)
})

test('a caller who leaves before the answer is no failure', async () => {
  for (let round = 0; round < 20; round++) {
    const leave = new AbortController()
    const asked = fetch(`${service.url}/api/devices`, {
      headers: { authorization: `Bearer ${token}` },
      signal: leave.signal,
    }).catch(() => 'left')
    if (round % 2 === 0) await pause(0)
    leave.abort()
    await asked
  }
  await healthy()
})

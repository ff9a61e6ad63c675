// Somebody asks and does not read: a thousand requests on one connection without waiting for an answer, or
// exports of a large audit log that are left unread. Each of them was begun at once, and all answers were held
// in memory. A connection has few requests at a time, and a namespace few downloads and few calls that run.
import net from 'node:net'
import fastify from 'fastify'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { theServer } from '../../server/src/domain/audit/audit.ts'
import type { Caller } from '../../server/src/domain/callers/callers.ts'
import { boundedCalls } from '../../server/src/http/bounded-requests.ts'
import { serveDocs } from '../../server/src/http/docs.ts'
import { eventually } from '../harness/eventually.ts'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()

const dial = (): net.Socket => {
  const { hostname, port } = new URL(place.url)
  return net.connect({ host: hostname, port: Number(port), allowHalfOpen: true }).on('error', () => undefined)
}
/** All that comes until the server closes the connection. */
async function allOf(socket: net.Socket): Promise<string> {
  let all = ''
  socket.on('data', (chunk: Buffer) => (all += chunk.toString()))
  socket.on('end', () => socket.end())
  await new Promise((resolve) => socket.once('close', resolve))
  return all
}
const get = (path: string, token: string, more = ''): string =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n${more}\r\n`
const answers = (all: string): number => all.split('HTTP/1.1 ').length - 1

test('a connection with a thousand requests at once is closed, and few of them are begun', async () => {
  const token = await place.world.token('observer')
  const socket = dial()
  socket.write(get('/api/devices', token).repeat(1_000))
  expect(answers(await allOf(socket))).toBeLessThanOrEqual(4)
  expect((await place.observer.devices.list({ query: {} })).status).toBe(200)
})

test('a few at once are answered in their order', async () => {
  const token = await place.world.token('observer')
  const socket = dial()
  socket.write(
    get('/healthcheck', token) +
      get('/api/nonsense', token) +
      get('/api/devices', token) +
      get('/healthcheck', token, 'connection: close\r\n'),
  )
  const all = await allOf(socket)
  expect([...all.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
    '200',
    '404',
    '200',
    '200',
  ])
})

test('a namespace has few downloads at a time, and gets the next when one has ended', async () => {
  const filler = { filler: Array<string>(75).fill('x'.repeat(200)) }
  for (let entry = 0; entry < 2_000; entry += 1)
    await place.rooms.audit.event(
      { ...theServer, tenant_id: sample.tenant },
      { action: 'audit.exported', target: { kind: 'audit log', id: 'x', name: '' }, detail: filler },
    )
  const token = await place.world.token('owner')
  const head = async (socket: net.Socket): Promise<string> => {
    socket.write(get('/api/audit/export', token))
    const [first] = (await new Promise<Buffer>((resolve) => socket.once('data', resolve)))
      .toString()
      .split('\r\n')
    socket.pause()
    return first!
  }
  const sockets = Array.from({ length: 9 }, dial)
  const heads: string[] = []
  for (const socket of sockets) heads.push(await head(socket))
  expect(heads.map((line) => line.split(' ')[1])).toEqual([...Array<string>(8).fill('200'), '429'])
  // Another namespace does not notice.
  expect((await place.stranger.audit.list({ query: {} })).status).toBe(200)
  sockets[0]!.destroy()
  await eventually(async () => {
    const socket = dial()
    sockets.push(socket)
    expect(await head(socket)).toContain('200')
  })
  for (const socket of sockets) socket.destroy()
})

test('all who read the documentation slowly share its bytes', async () => {
  await using app = fastify()
  const sent: unknown[] = []
  app.addHook('onSend', async (_request, _reply, payload) => void sent.push(payload))
  serveDocs(app, '1.2.3', {})
  const docs = ['/openapi.json', '/docs', '/docs/reference.css', '/docs/reference.js']
  const guides = ['/docs/guides', '/docs/guides/team', '/docs/guides.css']
  for (const path of [...docs, ...guides]) {
    sent.length = 0
    const answers = [await app.inject(path), await app.inject(path)]
    for (const { statusCode, headers, rawPayload } of answers)
      expect([statusCode, headers['content-length']]).toEqual([200, String(rawPayload.length)])
    expect(sent).toEqual([expect.any(Buffer), expect.any(Buffer)])
    expect(sent[0]).toBe(sent[1])
  }
})

test('calls of one namespace take turns, and one whose caller has left is not made', async () => {
  const calls = boundedCalls()
  const caller = { kind: 'user', id: 'u', tenant_id: 'one', source: '192.0.2.1' } as Caller
  const going = Promise.withResolvers<void>()
  let begun = 0
  const call = async (): Promise<void> => {
    begun += 1
    await going.promise
  }
  const left = new AbortController()
  const all = Array.from({ length: 100 }, () => calls.run(caller, call, {}))
  const gone = Array.from({ length: 100 }, () => calls.run(caller, call, { signal: left.signal }))
  expect(begun).toBe(8)
  await calls.run({ ...caller, tenant_id: 'other' } as Caller, async () => undefined, {})
  left.abort(new Error('left'))
  for (const one of gone) await expect(one).rejects.toThrow('left')
  going.resolve()
  await Promise.all(all)
  expect(begun).toBe(100)
  const many = Array.from({ length: 300 }, () => calls.run(caller, async () => undefined, {}))
  const refused = (await Promise.allSettled(many)).filter(({ status }) => status === 'rejected')
  expect(refused).toHaveLength(300 - 8 - 256)
})

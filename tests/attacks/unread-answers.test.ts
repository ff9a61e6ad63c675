// Somebody asks and does not read: a thousand requests on one connection without waiting for an answer, or
// exports of a large audit log that are left unread. Each of them was begun at once, and all answers were held
// in memory. A connection has few requests at a time, and a person few downloads and few calls that run. Connections
// cost nothing, so the answers that nobody has read are counted by person, too: 800 large pages of the audit log on
// 200 connections took 5 GB. What a person may have does not depend on the namespace: a member with the lowest role
// kept all others of a namespace from every call, and an account with 90 namespaces everybody from the search.
import net from 'node:net'
import fastify from 'fastify'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { Failure } from '@hawser/contract/failures'
import { theServer } from '../../server/src/domain/audit/audit.ts'
import { turnOf, type Caller } from '../../server/src/domain/callers/callers.ts'
import { answerFailure } from '../../server/src/http/answer.ts'
import { boundedCalls, whenOver } from '../../server/src/http/bounded-requests.ts'
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

test('a person has few downloads at a time, and gets the next when one has ended', async () => {
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
  // Others do not notice, of this namespace or of another.
  const other = dial()
  sockets.push(other)
  other.write(get('/api/audit/export', await place.world.token('administrator')))
  const [line] = (await new Promise<Buffer>((resolve) => other.once('data', resolve)))
    .toString()
    .split('\r\n')
  other.pause()
  expect(line).toContain('200')
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

const user = (id: string, tenant_id = 'one', signIn = 'a'): Caller =>
  ({ kind: 'user', id, token_id: `${signIn}.b`, tenant_id, source: '192.0.2.1' }) as Caller

test('calls of one person take turns, and one whose caller has left is not made', async () => {
  const calls = boundedCalls(turnOf)
  const going = Promise.withResolvers<void>()
  let begun = 0
  const call = async (): Promise<void> => {
    begun += 1
    await going.promise
  }
  const left = new AbortController()
  const all = Array.from({ length: 100 }, (_, index) => calls.run(user('u', `tenant ${index}`), call, {}))
  const gone = Array.from({ length: 100 }, () => calls.run(user('u'), call, { signal: left.signal }))
  expect(begun).toBe(8)
  await calls.run(user('somebody else'), async () => undefined, {})
  left.abort(new Error('left'))
  for (const one of gone) await expect(one).rejects.toThrow('left')
  going.resolve()
  await Promise.all(all)
  expect(begun).toBe(100)
  const many = Array.from({ length: 300 }, () => calls.run(user('u'), async () => undefined, {}))
  const refused = (await Promise.allSettled(many)).filter(({ status }) => status === 'rejected')
  expect(refused).toHaveLength(300 - 8 - 256)
})

test('whoever floods with a stolen token or a stolen key does not keep its owner out', async () => {
  const calls = boundedCalls(turnOf)
  const going = Promise.withResolvers<void>()
  const key = { kind: 'key', name: 'k', created_by: 'u', tenant_id: 'one', source: '' } as unknown as Caller
  const flood = [user('u'), key].flatMap((thief) =>
    Array.from({ length: 264 }, () => calls.run(thief, () => going.promise, {})),
  )
  await expect(calls.run(user('u'), async () => undefined, {})).rejects.toMatchObject({ kind: 'tooMany' })
  const own = calls.run(user('u', 'one', 'another sign-in'), async () => 'ended', {})
  going.resolve()
  expect(await own).toBe('ended')
  await Promise.all(flood)
})

test('a person takes few places on the threads that all share, whatever their namespaces', () => {
  const calls = boundedCalls(turnOf)
  const places = Array.from({ length: 16 }, (_, index) => calls.onThread(user('u', `tenant ${index}`)))
  expect(() => calls.onThread(user('u', 'the next'))).toThrow()
  calls.onThread(user('somebody else'))
  places[0]![Symbol.dispose]()
  calls.onThread(user('u', 'the next'))
})

test('answers that a person does not read are counted together, and what was changed is answered in any case', () => {
  const calls = boundedCalls(turnOf)
  const mebibyte = 1024 * 1024
  const held: (Disposable | undefined)[] = []
  const one = (hasChanged = false): Disposable | undefined => calls.answer(user('u'), mebibyte, hasChanged)
  for (let count = 0; count < 96; count += 1) held.push(one())
  expect(() => one()).toThrow()
  // Nothing is changed for those who do not read the answers.
  expect(() => calls.mayAnswer(user('u', 'another namespace'))).toThrow()
  calls.mayAnswer(user('somebody else'))
  held.push(one(true))
  for (let count = 0; count < 32; count += 1) calls.answer(user('somebody else'), mebibyte, false)
  for (const answer of held) answer?.[Symbol.dispose]()
  one()
})

test('what is held for a call is given back once when its connection is lost', async () => {
  let over = 0
  await using app = fastify()
  const begun = Promise.withResolvers<net.Socket>()
  app.get('/', (request, reply) => {
    whenOver(request.raw, reply.raw, () => (over += 1))
    begun.resolve(request.raw.socket)
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const client = net.connect((app.server.address() as net.AddressInfo).port, '127.0.0.1')
  client.on('error', () => undefined).write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  const closed = new Promise((resolve) => void begun.promise.then((socket) => socket.once('close', resolve)))
  await begun.promise
  client.destroy()
  await closed
  await new Promise(setImmediate)
  expect(over).toBe(1)
})

test('strangers and tokens of devices, which anybody gets, take nothing of what people have', () => {
  const calls = boundedCalls(turnOf)
  const strangers = Array.from({ length: 3_000 }, (_, index) => {
    const source = `2001:db8:${index.toString(16)}::1`
    return (
      index % 2 === 0 ? { kind: 'anonymous', source } : { kind: 'device', uid: `${index}`, source }
    ) as Caller
  })
  const refused = strangers.filter((stranger) => {
    try {
      calls.answer(stranger, 500 * 1024, false)
      return false
    } catch {
      return true
    }
  })
  expect(refused.length).toBeGreaterThan(2_500)
  // Signing in and Auth device go on.
  for (const stranger of strangers) calls.mayAnswer(stranger)
  calls.answer(user('u'), 1024 * 1024, false)
})

test('a refusal in the place of a compressed answer can be read', async () => {
  await using app = fastify()
  app.setErrorHandler<Failure>((error, request, reply) => answerFailure(error, request, reply))
  app.get('/', (_, reply) => {
    reply.headers({ 'content-encoding': 'gzip', 'x-total-count': '7' })
    throw new Failure('tooMany', { retryAfter: 10 })
  })
  const { statusCode, headers, body } = await app.inject('/')
  expect([statusCode, headers['retry-after'], JSON.parse(body)]).toEqual([
    429,
    '10',
    { message: expect.any(String) as string },
  ])
  expect(headers).not.toHaveProperty('content-encoding')
  expect(headers).not.toHaveProperty('x-total-count')
})

test('a page of large entries ends early, and the pages together have them all', async () => {
  const detail = { filler: Array<string>(75).fill('漢'.repeat(200)) }
  const target = { kind: 'audit log', id: 'large', name: '' }
  for (let entry = 0; entry < 200; entry += 1)
    await place.rooms.audit.event(
      { ...theServer, tenant_id: sample.tenant },
      { action: 'audit.exported', target, detail },
    )
  for (const filter of [{}, { target: 'large' }]) {
    const seqs: number[] = []
    let before: number | undefined
    for (let page = 0; page < 3; page += 1) {
      const { body } = await place.owner.audit.list({ query: { ...filter, limit: 500, before } })
      expect(body.entries.length).toBeLessThan(150)
      seqs.push(...body.entries.map(({ seq }) => seq))
      before = body.next ?? undefined
    }
    expect(seqs.length).toBeGreaterThanOrEqual(200)
    expect(seqs).toEqual(Array.from(seqs, (_, index) => seqs[0]! - index))
  }
})

// Audit streams: what receivers get, in which order and how often, when they are down, slow or refuse; what
// people see of it, and what never leaves the server. Receivers are real servers on 127.0.0.1, which the
// setting of these tests allows.
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { describe, expect, test } from 'vitest'
import { theServer } from '../../server/src/domain/audit/audit.ts'
import { day_ms, hour_ms, minute_ms } from '../../server/src/kit/clock.ts'
import { sharedPlace, startPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'
import { receiverCa, startSyslog, startWebhook, type TestWebhook } from '../harness/receivers.ts'

const env = { HAWSER_STREAM_ALLOW: '127.0.0.1' }
type Wanted = Parameters<Client['auditStreams']['create']>[0]['body']

let names = 0
const create = async (place: Place, body: Partial<Wanted> & { url: string }) =>
  (
    await place.key.auditStreams.create({
      body: { name: `stream-${++names}`, ca: receiverCa, ...body },
    })
  ).body
const shown = async (place: Place, uid: string) =>
  (await place.key.auditStreams.get({ params: { uid } })).body
const remove = (place: Place, uid: string) => place.key.auditStreams.remove({ params: { uid } })
const settle = (place: Place) => place.rooms.streams.settle()
/** Leaves entries in the log of the sample namespace. */
const leave = async (place: Place, times = 1) => {
  for (let i = 0; i < times; i++)
    await place.rooms.audit.event(
      { ...theServer, tenant_id: sample.tenant },
      { action: 'device.updated', target: { kind: 'device', id: sample.device, name: `crane-${++names}` } },
    )
}

/** A webhook, and a stream to it. */
async function streaming(place: Place, body: Partial<Wanted> = {}) {
  let secret = ''
  const webhook = await startWebhook({ secret: () => secret, now: () => place.clock.now() })
  const stream = await create(place, { url: webhook.url, ...body })
  secret = stream.secret ?? ''
  return { webhook, stream }
}

/** Every number once or more, the first time in order, without a gap. */
function expectAll(webhook: TestWebhook, from: number, to: number): void {
  const first = [...new Set(webhook.seqs())]
  expect(first).toEqual(Array.from({ length: to - from + 1 }, (_, i) => from + i))
}

const newest = async (place: Place) => (await place.key.audit.head({})).body.seq

describe.each(oneDatabase)('on %s', (_, options) => {
  const place = sharedPlace(async () => ({ ...(await options()), env }))

  test('a webhook gets every entry from the creation of the stream on, signed', async () => {
    const { webhook, stream } = await streaming(place)
    await using _ = webhook
    expect(stream.secret).toMatch(/^hws_[\w-]{43}$/)
    expect(stream).toMatchObject({ kind: 'webhook', enable: true, state: 'sending', dead_letters: 0 })
    await leave(place, 3)
    await settle(place)
    const [first] = webhook.taken
    expect(first).toMatchObject({
      stream: stream.uid,
      tenant_id: sample.tenant,
      redelivery: false,
      test: false,
    })
    expect(first?.entries[0]).toMatchObject({ action: 'audit-stream.created', target: { id: stream.uid } })
    const { entries } = (await place.key.audit.list({ query: { after: stream.sent_seq, limit: 500 } })).body
    expect(webhook.taken.flatMap((body) => body.entries)).toEqual(entries)
    expect(await shown(place, stream.uid)).toMatchObject({
      sent_seq: entries.at(-1)?.seq,
      unsent: 0,
      failures: 0,
      error: '',
    })
    await remove(place, stream.uid)
    const before = webhook.requests
    await leave(place)
    await settle(place)
    expect(webhook.requests).toBe(before)
  })

  test('one that begins at the start gets the whole log, in batches', async () => {
    await leave(place, 160)
    const { webhook, stream } = await streaming(place, { from_start: true })
    await using _ = webhook
    await settle(place)
    expectAll(webhook, 1, await newest(place))
    expect(Math.max(...webhook.taken.map(({ entries }) => entries.length))).toBe(100)
    await remove(place, stream.uid)
  })

  test('a receiver that is down for an hour gets everything, in order', async () => {
    let secret = 'a-secret-of-ours-1234'
    const began = await startWebhook({ secret: () => secret, now: () => place.clock.now() })
    const { port } = began
    const stream = await create(place, { url: began.url, secret })
    secret = stream.secret ?? ''
    await settle(place)
    const from = began.seqs()[0] ?? 0
    expect(from).toBeGreaterThan(0)
    const last = began.seqs().at(-1) ?? 0
    await began[Symbol.asyncDispose]()
    let attempts = 0
    for (let passed = 0; passed < hour_ms; passed += minute_ms) {
      await leave(place)
      place.clock.forward(minute_ms)
      await settle(place)
      const { failures } = await shown(place, stream.uid)
      attempts = Math.max(attempts, failures)
    }
    expect(await shown(place, stream.uid)).toMatchObject({
      state: 'failing',
      error: 'The receiver cannot be reached (ECONNREFUSED).',
      sent_seq: last,
      dead_letters: 0,
    })
    // 5, 10, 20 … seconds and then a quarter of an hour: far fewer than the sixty looks.
    expect(attempts).toBeGreaterThan(5)
    expect(attempts).toBeLessThan(25)
    await using back = await startWebhook({ secret: () => secret, port, now: () => place.clock.now() })
    place.clock.forward(15 * minute_ms)
    await settle(place)
    expectAll(back, last + 1, await newest(place))
    expect(await shown(place, stream.uid)).toMatchObject({ state: 'sending', unsent: 0, failing_since: null })
    expect(place.log()).toMatch(/"audit-stream\.failing"/)
    expect(place.log()).toMatch(/"audit-stream\.recovered"/)
    await remove(place, stream.uid)
  })

  test('what is not taken for a week is a dead letter, which can be sent again', async () => {
    const { webhook, stream } = await streaming(place)
    await using _ = webhook
    const { uid } = stream
    await settle(place)
    webhook.answer = (_request, response) => response.writeHead(503).end()
    await leave(place, 3)
    const from = (await shown(place, uid)).sent_seq + 1
    const to = await newest(place)
    await settle(place)
    place.clock.forward(8 * day_ms)
    await leave(place)
    await settle(place)
    const letters = async () => (await place.key.auditStreams.deadLetters({ params: { uid } })).body
    expect(await letters()).toMatchObject([
      {
        from_seq: from,
        to_seq: to,
        reason: 'unsent',
        error: 'The receiver answered with status 503.',
        queued: false,
      },
    ])
    expect(await shown(place, uid)).toMatchObject({ dead_letters: 1, sent_seq: to, state: 'failing' })
    const { entries } = (await place.key.audit.list({ query: { action: 'audit-stream.gave-up' } })).body
    expect(entries[0]).toMatchObject({
      actor: { kind: 'server' },
      target: { id: uid },
      detail: { from_seq: from, to_seq: to },
    })
    // Another failure after that adds no letter and no entry.
    place.clock.forward(hour_ms)
    await settle(place)
    expect(await letters()).toHaveLength(1)

    webhook.answer = undefined
    const { body } = await place.key.auditStreams.redeliver({ params: { uid }, body: {} })
    expect(body).toEqual({ queued: 1 })
    await settle(place)
    expect(await letters()).toEqual([])
    const again = webhook.taken.filter(({ redelivery }) => redelivery)
    expect(again.flatMap(({ entries: some }) => some.map(({ seq }) => seq))).toEqual(
      Array.from({ length: to - from + 1 }, (_, i) => from + i),
    )
    expect(await shown(place, uid)).toMatchObject({ unsent: 0, dead_letters: 0 })
    expectAll(
      { ...webhook, seqs: () => webhook.seqs().toSorted((a, b) => a - b) },
      stream.sent_seq + 1,
      await newest(place),
    )
    await remove(place, uid)
  })

  test('entries that the log does not keep are given up, and cannot be sent again', async () => {
    const { webhook, stream } = await streaming(place, { enable: false })
    await using _ = webhook
    const { uid } = stream
    await leave(place, 2)
    const last = await newest(place)
    place.clock.forward(3 * day_ms)
    await place.rooms.stores.namespaces.save(sample.tenant, { audit_retention_days: 1 })
    await place.rooms.auditLog.trim()
    await place.key.auditStreams.update({ params: { uid }, body: { enable: true } })
    await settle(place)
    const { body: letters } = await place.key.auditStreams.deadLetters({ params: { uid } })
    expect(letters).toMatchObject([{ from_seq: stream.sent_seq + 1, to_seq: last, reason: 'trimmed' }])
    expectAll(webhook, last + 1, await newest(place))
    const redeliver = place.key.auditStreams.redeliver
    expect((await redeliver({ params: { uid }, body: {} })).body).toEqual({ queued: 0 })
    await expect(
      redeliver({ params: { uid }, body: { dead_letter: letters[0]?.id ?? '' } }),
    ).rejects.toMatchObject({ status: 404 })
    await place.rooms.stores.namespaces.save(sample.tenant, { audit_retention_days: 365 })
    await remove(place, uid)
  })

  test('a stream that is switched off goes on where it was', async () => {
    const { webhook, stream } = await streaming(place)
    await using _ = webhook
    const params = { uid: stream.uid }
    await settle(place)
    await place.key.auditStreams.update({ params, body: { enable: false } })
    await leave(place, 2)
    await settle(place)
    expect(await shown(place, stream.uid)).toMatchObject({ state: 'off' })
    await place.key.auditStreams.update({ params, body: { enable: true } })
    await settle(place)
    expectAll(webhook, stream.sent_seq + 1, await newest(place))
    await remove(place, stream.uid)
  })
})

describe('a stream', () => {
  const place = sharedPlace(async () => ({ env }))

  test('a receiver that never answers does not hold up another one', async () => {
    const silent = await streaming(place)
    const quick = await streaming(place)
    await using servers = new AsyncDisposableStack()
    for (const { webhook } of [silent, quick]) servers.use(webhook)
    await settle(place)
    silent.webhook.answer = () => undefined
    const { sent_seq } = await shown(place, silent.stream.uid)
    await leave(place)
    const to = await newest(place)
    place.rooms.streams.wake()
    await expect.poll(() => quick.webhook.seqs().at(-1)).toBe(to)
    expect(await shown(place, silent.stream.uid)).toMatchObject({ sent_seq })
    await remove(place, silent.stream.uid)
    await remove(place, quick.stream.uid)
  })

  test('what is more than 100,000 entries behind is a dead letter', async () => {
    await using own = await startPlace({ env })
    const { webhook, stream } = await streaming(own)
    await using _ = webhook
    const { uid } = stream
    await settle(own)
    webhook.answer = (_request, response) => response.writeHead(503).end()
    await leave(own, 3)
    const { sent_seq } = await shown(own, uid)
    const first = await newest(own)
    // As if so many had been written since; a log of that size takes a minute to write.
    const heads = () =>
      own.rooms.database.db.updateTable('audit_heads').where('tenant_id', '=', sample.tenant)
    await heads()
      .set({ seq: first - 2 + 100_000 })
      .execute()
    await settle(own)
    await heads().set({ seq: first }).execute()
    const { body: letters } = await own.key.auditStreams.deadLetters({ params: { uid } })
    expect(letters).toMatchObject([{ from_seq: sent_seq + 1, to_seq: first - 2, reason: 'unsent' }])
  })

  test('is delivered without anybody asking', async () => {
    const { webhook, stream } = await streaming(place)
    await using _ = webhook
    await expect.poll(() => webhook.seqs().length, { timeout: 10_000 }).toBe(1)
    await leave(place)
    const to = await newest(place)
    await expect.poll(() => webhook.seqs().at(-1), { timeout: 10_000 }).toBe(to)
    await remove(place, stream.uid)
  })

  test.each([
    ['a redirect', 302, 'The receiver answered with status 302; redirects are not followed.'],
    ['a refusal', 401, 'The receiver answered with status 401.'],
    ['a failure', 500, 'The receiver answered with status 500.'],
  ])('%s does not count as taken', async (_what, status, error) => {
    const { webhook, stream } = await streaming(place)
    await using _ = webhook
    webhook.answer = (_request, response) =>
      response.writeHead(status, { location: 'https://127.0.0.1:1/' }).end()
    await settle(place)
    expect(await shown(place, stream.uid)).toMatchObject({ failures: 1, error, sent_seq: stream.sent_seq })
    await remove(place, stream.uid)
  })

  test('can be tested, ten times in a minute', async () => {
    const { webhook, stream } = await streaming(place)
    await using _ = webhook
    await settle(place)
    const probe = () => place.key.auditStreams.test({ params: { uid: stream.uid } })
    await probe()
    expect(webhook.taken.at(-1)).toMatchObject({ test: true, entries: [], stream: stream.uid })
    webhook.answer = (_request, response) => response.writeHead(418).end()
    await expect(probe()).rejects.toMatchObject({
      status: 424,
      message: 'The receiver answered with status 418.',
    })
    for (let i = 2; i < 10; i++) await expect(probe()).rejects.toMatchObject({ status: 424 })
    await expect(probe()).rejects.toMatchObject({ status: 429 })
    // Whoever looks for open ports by it leaves a trace, with what they have learned.
    const { entries } = (
      await place.key.audit.list({
        query: { action: 'audit-stream.tested', target: stream.uid, after: 0 },
      })
    ).body
    const receiver = `127.0.0.1:${webhook.port}`
    expect(entries.map(({ detail }) => detail)).toEqual([
      { receiver, outcome: 'taken' },
      ...Array.from({ length: 9 }, () => ({
        receiver,
        outcome: 'failed',
        why: 'The receiver answered with status 418.',
      })),
    ])
    place.clock.forward(minute_ms)
    // What failed meanwhile is sent at once when a test is taken.
    await leave(place)
    await settle(place)
    expect(await shown(place, stream.uid)).toMatchObject({ state: 'failing' })
    webhook.answer = undefined
    await probe()
    await settle(place)
    expect(await shown(place, stream.uid)).toMatchObject({ state: 'sending', unsent: 0 })
    await remove(place, stream.uid)
  })

  test('a changed URL or secret is used at once', async () => {
    const { webhook, stream } = await streaming(place, { url: 'https://127.0.0.1:1/' })
    await using _ = webhook
    await settle(place)
    expect(await shown(place, stream.uid)).toMatchObject({ state: 'failing' })
    const params = { uid: stream.uid }
    await place.key.auditStreams.update({ params, body: { url: webhook.url } })
    await settle(place)
    expect(await shown(place, stream.uid)).toMatchObject({ state: 'sending', unsent: 0 })
    await place.key.auditStreams.update({ params, body: { secret: 'another-secret-of-16' } })
    await settle(place)
    expect(await shown(place, stream.uid)).toMatchObject({ error: 'The receiver answered with status 401.' })
    await remove(place, stream.uid)
  })

  test('a namespace has ten, each with a name of its own', async () => {
    await using own = await startPlace({ env })
    const body = { name: 'twin', url: 'https://127.0.0.1:9/', enable: false }
    const { uid } = await create(own, body)
    await expect(create(own, body)).rejects.toMatchObject({ status: 409 })
    // The world of the examples has one.
    for (let i = 2; i < 10; i++) await create(own, { ...body, name: `stream-${++names}` })
    await expect(create(own, { ...body, name: 'eleventh' })).rejects.toMatchObject({
      status: 403,
      message: 'The namespace has as many audit streams as it may have.',
    })
    const { body: all } = await own.key.auditStreams.list({})
    expect(all).toHaveLength(10)
    await expect(
      own.key.auditStreams.update({ params: { uid }, body: { name: 'siem' } }),
    ).rejects.toMatchObject({ status: 409 })
  })

  test.each([
    ['https://user:password@siem.example.com/', 'url: The URL may not have a user name or a password in it.'],
    ['https://siem.example.com/#part', 'url: The URL may not have a fragment (#).'],
    ['https://[::1/', 'url: The URL cannot be read.'],
    ['syslog+tls://siem.example.com:6514/path', 'url: The URL of a syslog server is a host and a port.'],
    [
      'https://10.0.0.1/',
      "url: The address 10.0.0.1 is private or the server's own; the server's administrator has not allowed it.",
    ],
    [
      'http://203.0.113.9/',
      "url: Without TLS nothing is sent to 203.0.113.9; the server's administrator has not allowed it.",
    ],
  ])('%s is refused with a sentence', async (url, message) => {
    await expect(create(place, { url })).rejects.toMatchObject({ status: 400, message })
  })

  test.each(['ftp://siem.example.com/', 'siem.example.com', 'https://siem example.com/'])(
    '%s is no URL of a receiver',
    (url) => expect(create(place, { url })).rejects.toMatchObject({ status: 400 }),
  )

  test('certificates that cannot be read are refused', async () => {
    for (const ca of ['nonsense', '-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n'])
      await expect(create(place, { url: 'https://siem.example.com/', ca })).rejects.toMatchObject({
        status: 400,
        message: expect.stringMatching(/^ca: The certificates \(ca\) cannot be used/) as string,
      })
  })
})

describe.each([
  ['TCP', false],
  ['TLS', true],
])('syslog over %s', (_, secure) => {
  const place = sharedPlace(async () => ({ env }))

  test('gets every entry as a message of RFC 5424, in order', async () => {
    await using syslog = await startSyslog({ secure })
    const stream = await create(place, { url: syslog.url })
    expect(stream).toMatchObject({ kind: 'syslog' })
    expect(stream).not.toHaveProperty('secret')
    await leave(place, 3)
    // A name that is not ASCII, with what could break a line or a field.
    await place.key.tags.rename({
      params: { tag: sample.spareTag },
      body: { tag: `ka"i]\\ –ü💡`.replaceAll(' ', '') },
    })
    await settle(place)
    expect(syslog.wrong).toEqual([])
    const { entries } = (await place.key.audit.list({ query: { after: stream.sent_seq, limit: 500 } })).body
    expect(syslog.taken.map(({ entry }) => entry)).toEqual(entries)
    expect(syslog.taken[0]).toMatchObject({
      facility: 13,
      severity: 5,
      host: 'hawser.test',
      application: 'hawser',
      id: 'audit-stream.created',
      at: entries[0]?.at,
    })
    expect(await shown(place, stream.uid)).toMatchObject({ state: 'sending', unsent: 0 })
    await place.key.auditStreams.test({ params: { uid: stream.uid } })
    expect(syslog.taken.at(-1)).toMatchObject({ id: 'test', entry: { test: true, stream: stream.uid } })
    await remove(place, stream.uid)
  })

  test('a receiver that is down, or hangs up before it has read, gets everything later', async () => {
    const began = await startSyslog({ secure })
    const { port } = began
    const stream = await create(place, { url: began.url })
    began.instead = (socket) => socket.destroy()
    await leave(place)
    await settle(place)
    expect(await shown(place, stream.uid)).toMatchObject({ state: 'failing', sent_seq: stream.sent_seq })
    began.instead = (socket) => socket.end()
    place.clock.forward(hour_ms)
    await settle(place)
    expect(await shown(place, stream.uid)).toMatchObject({ state: 'failing', sent_seq: stream.sent_seq })
    await began[Symbol.asyncDispose]()
    place.clock.forward(hour_ms)
    await settle(place)
    await using back = await startSyslog({ secure, port })
    place.clock.forward(hour_ms)
    await settle(place)
    expect(back.wrong).toEqual([])
    expect(back.taken.map(({ entry }) => entry.seq)).toEqual(
      Array.from({ length: (await newest(place)) - stream.sent_seq }, (_, i) => stream.sent_seq + 1 + i),
    )
    await remove(place, stream.uid)
  })
})

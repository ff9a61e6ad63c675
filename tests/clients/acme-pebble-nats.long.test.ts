// Certificates from a real ACME server: ordered at the first start, renewed while the server runs, retried
// after a failure, kept over a restart, and of two nodes one orders for both.
import { once } from 'node:events'
import tls from 'node:tls'
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { folder } from '../../ssh/test/programs.ts'
import { freshDatabase } from '../harness/postgres.ts'
import { startNats } from '../harness/nats.ts'
import { startPebble, type Pebble } from '../harness/pebble.ts'
import { startService, type Service } from '../harness/service.ts'
import { temporaryFolder } from '../failures/program.ts'
import { eventually } from '../harness/eventually.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 300_000 })

const inTime = async (check: () => void | Promise<void>): Promise<void> => eventually(check, 90_000)

const where = folder()
let pebble: Pebble
/** Short-lived, so that one is renewed while a test looks on. */
const validity_s = 30

beforeAll(async () => {
  pebble = await startPebble(where, validity_s)
})
afterAll(async () => {
  await pebble[Symbol.asyncDispose]()
  where[Symbol.dispose]()
})

const settings = (name: string): Record<string, string> => ({
  HAWSER_ACME_EMAIL: 'ops@example.com',
  HAWSER_ACME_DIRECTORY: pebble.directory,
  HAWSER_URL: `https://${name}`,
  HAWSER_HTTP: `127.0.0.1:${pebble.httpPort}`,
})

/** The certificate that new connections get; undefined while there is none. */
async function served({ tlsPort = 0 }: Service): Promise<tls.PeerCertificate | undefined> {
  const socket = tls.connect({ port: tlsPort, host: '127.0.0.1', rejectUnauthorized: false })
  try {
    await once(socket, 'secureConnect')
    return socket.getPeerCertificate()
  } catch {
    return undefined
  } finally {
    socket.destroy()
  }
}

const events = (service: Service, event: string): Record<string, unknown>[] =>
  service
    .log()
    .split('\n')
    .filter((line) => line.includes(`"${event}"`))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

test('it is ordered at the first start, renewed before it expires, and kept over a restart', async () => {
  using data = temporaryFolder()
  const before = pebble.issued()
  {
    await using service = await startService({ env: settings('first.example.com'), folder: data.path })
    const early = await fetch(`${service.url}/info`, { redirect: 'manual' })
    expect([308, 503]).toContain(early.status)
    expect((await fetch(`${service.url}/healthcheck`)).status).toBe(200)
    await inTime(async () => expect((await served(service))?.subjectaltname).toBe('DNS:first.example.com'))
    const first = await served(service)
    const sent = await fetch(`${service.url}/login`, { redirect: 'manual' })
    expect([sent.status, sent.headers.get('location')]).toEqual([308, 'https://first.example.com/login'])
    await inTime(async () => expect((await served(service))?.serialNumber).not.toBe(first?.serialNumber))
    expect(Date.parse((await served(service))?.valid_to ?? '')).toBeGreaterThan(
      Date.parse(first?.valid_to ?? ''),
    )
    expect(pebble.issued() - before).toBe(2)
    // An answer is given for the very token, and for nothing else.
    for (const token of ['unknown-token-of-nobody', '..%2f..%2fetc', "' or 1=1 --", 'x'.repeat(5_000)])
      expect((await fetch(`${service.url}/.well-known/acme-challenge/${token}`)).status).toBe(404)
  }
  await using again = await startService({ env: settings('first.example.com'), folder: data.path })
  await inTime(async () => expect(await served(again)).toBeDefined())
  expect(events(again, 'certificate.issued')).toHaveLength(0)
  expect(pebble.issued() - before).toBe(2)
})

test('what cannot be verified is told in a sentence and retried later, not at once', async () => {
  await pebble.pointTo('second.example.com', '127.0.0.9')
  await using service = await startService({ env: settings('second.example.com') })
  await inTime(() => expect(events(service, 'certificate.failed')).toHaveLength(1))
  const [failure] = events(service, 'certificate.failed')
  expect(failure?.['message']).toMatch(
    /^The ACME server could not verify second\.example\.com \(.+\)\. Port 80 of second\.example\.com must lead to HAWSER_HTTP/,
  )
  const wait_ms = Date.parse(String(failure?.['retry_at'])) - service.clock.now()
  expect(wait_ms).toBeGreaterThan(30_000)
  expect(await served(service)).toBeUndefined()
  expect((await fetch(`${service.url}/info`, { redirect: 'manual' })).status).toBe(503)

  await pebble.pointTo('second.example.com', undefined)
  service.clock.forward(80_000)
  await inTime(async () => expect((await served(service))?.subjectaltname).toBe('DNS:second.example.com'))
  expect(events(service, 'certificate.failed')).toHaveLength(1)
})

test('an ACME server that is away is told, with its address', async () => {
  await using service = await startService({
    env: { ...settings('away.example.com'), HAWSER_ACME_DIRECTORY: 'https://127.0.0.1:7099/dir' },
  })
  await inTime(() => expect(events(service, 'certificate.failed')).toHaveLength(1))
  expect(events(service, 'certificate.failed')[0]?.['message']).toBe(
    'The ACME server https://127.0.0.1:7099/dir did not answer as expected (fetch failed, ECONNREFUSED).',
  )
})

test('of two nodes one orders, the other answers the challenge, and both serve it', async () => {
  await using nats = await startNats()
  const database = await freshDatabase()
  const before = pebble.issued()
  const shared = {
    ...settings('both.example.com'),
    HAWSER_NATS: nats.url,
    HAWSER_NODE_ADDRESS: '127.0.0.1:0',
    HAWSER_SECRET: randomBytes(32).toString('hex'),
  }
  // The name leads to the second one; the first one has all the time to take the lease.
  await using first = await startService({ database, env: { ...shared, HAWSER_HTTP: '127.0.0.1:0' } })
  await using second = await startService({ database, env: shared })
  const both = async (): Promise<(string | undefined)[]> =>
    Promise.all([first, second].map(async (node) => (await served(node))?.serialNumber))
  await inTime(async () => {
    const [one, other] = await both()
    expect(one).toBeDefined()
    expect(other).toBe(one)
  })
  const orders = [first, second].map((node) => events(node, 'certificate.issued').length)
  expect(pebble.issued() - before).toBe((orders[0] ?? 0) + (orders[1] ?? 0))
  // Each certificate was ordered once, however many nodes wanted it.
  const life_ms = validity_s * 1_000
  expect((orders[0] ?? 0) + (orders[1] ?? 0)).toBeLessThanOrEqual(Math.ceil(100_000 / ((life_ms * 2) / 3)))
})

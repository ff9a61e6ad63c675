// A rogue device reports through its tunnel what no agent would: intervals that would keep a dead device
// online for hours, facts of any size, lines without end, streams that nobody asked for, and facts of a
// device whose key it does not hold.
import { generateKeyPairSync, sign } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Device } from '@hawser/contract/devices'
import { featuresHeader, proofText, protocols, reportProtocol, tunnelPaths } from '@hawser/contract/tunnel'
import { dialBytes, multistream, openMux, type Mux } from '@hawser/mux'
import { eventually } from '../harness/eventually.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = publicKey.export({ type: 'spki', format: 'pem' })
const info = { id: 'debian', pretty_name: 'Debian', version: 'hawser-1', arch: 'amd64', platform: 'native' }

let service: Service
let world: World
beforeAll(async () => {
  service = await startService({ env: { HAWSER_PING_INTERVAL: '120' } })
  world = await buildWorld(service)
})
afterAll(() => service[Symbol.asyncDispose]())

let count = 0
let [uid, token] = ['', '']
beforeEach(async () => {
  const body = { info, hostname: `rogue-${++count}`, public_key: pem, tenant_id: sample.tenant }
  ;({ uid, token } = (
    await service.api().devices.auth({ body: { ...body, identity: { mac: `rogue-${count}` } } })
  ).body)
})

const device = async (): Promise<Device> =>
  (await service.api({ token: await world.token('owner') }).devices.get({ params: { uid } })).body

interface Rogue extends Disposable {
  readonly mux: Mux
  /** Opens the stream for reports and says this on it. */
  say(...lines: readonly string[]): Duplex
}

/** `proves`: it holds the device's key, as far as the server can see. */
async function connect(proves = true): Promise<Rogue> {
  const url = `${service.url.replace('http', 'ws')}${tunnelPaths.streams}`
  const headers = { authorization: `Bearer ${token}`, [featuresHeader]: 'report' }
  const mux = openMux(await dialBytes(url, { headers }), { role: 'server' })
  void (async () => {
    for await (const stream of mux.incoming) {
      stream.on('error', () => undefined)
      await multistream.negotiate(stream, [protocols.proof])
      const { nonce } = JSON.parse(await multistream.readLine(stream, 4_096)) as { nonce: string }
      if (!proves) continue
      const signature = sign('sha256', Buffer.from(proofText(uid, nonce)), privateKey)
      stream.end(`${JSON.stringify({ signature: signature.toString('base64') })}\n`)
    }
  })().catch(() => undefined)
  return {
    mux,
    say(...lines) {
      const stream = mux.open(multistream.propose(reportProtocol))
      for (const line of lines) stream.write(`${line}\n`)
      return stream
    },
    [Symbol.dispose]: () => mux.close(),
  }
}

test('a report changes what is known of the device, and the longest interval is the server’s', async () => {
  using rogue = await connect()
  rogue.say(JSON.stringify({ info: { ...info, pretty_name: 'Debian 13' }, ping_s: 600 }))
  await eventually(async () =>
    expect(await device()).toMatchObject({ info: { pretty_name: 'Debian 13' }, ping_interval: 120 }),
  )
})

test('a report that turns the direction of a line is kept without that', async () => {
  using rogue = await connect()
  rogue.say(JSON.stringify({ info: { ...info, pretty_name: 'Debian \u202e12\u2069' } }))
  await eventually(async () => expect(await device()).toMatchObject({ info: { pretty_name: 'Debian ?12?' } }))
})

test('terminals of sessions of other devices are none of its business', async () => {
  await service.api({ token: await world.token('owner') }).devices.accept({ params: { uid } })
  const stores = service.rooms.stores.of(sample.tenant)
  const about = { username: 'root', ip_address: '192.0.2.7', term: 'xterm', type: 'shell', position: '{}' }
  const moments = { started_at: '2026-01-01T00:00:00.000Z', last_seen: new Date().toISOString() }
  const kept = { authenticated: 1, recorded: 0, kept_s: 600, kept_for: '{"standing":""}' } as const
  const [others, own] = ['a', 'b'].map((digit) => digit.repeat(64)) as [string, string]
  const insert = async (row: { uid: string; device_uid: string; active: 0 | 1 }) =>
    stores.sessions.insert({ ...row, ...about, ...moments, ...kept })
  await insert({ uid: others, device_uid: sample.device, active: 1 })
  await insert({ uid: own, device_uid: uid, active: 0 })
  using rogue = await connect()
  rogue.say(JSON.stringify({ kept: [others, 'f'.repeat(64), own] }))
  // Only about its own one it is asked, and has no answer.
  await eventually(() => expect(service.log()).toContain('"event":"session.not-restored"'), 40_000)
  const lines = service
    .log()
    .split('\n')
    .filter((line) => /"event":"session\./.test(line))
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain(own)
  expect(await stores.sessions.find(others)).toMatchObject({ active: 1, held_until: '' })
  expect(service.reach.sessions.size).toBe(0)
  await stores.sessions.save(others, { active: 0 })
})

test.each([
  ['more terminals than an agent keeps', { kept: Array.from({ length: 33 }, () => 'f'.repeat(64)) }],
  ['a terminal of no session', { kept: ['../../etc'] }],
  ['an interval of hours', { ping_s: 86_400 }],
  ['an endless interval', { ping_s: 1e308 }],
  ['no interval at all', { ping_s: 0 }],
  ['an interval below the shortest', { ping_s: 24 }],
  ['a broken number', { ping_s: 60.5 }],
  ['a text', { ping_s: '60' }],
  ['a fact that is too long', { info: { pretty_name: 'x'.repeat(256) } }],
  ['a fact of another kind', { info: { pretty_name: ['Debian'] } }],
  ['a zero within a text', { info: { pretty_name: 'a\0b' } }],
  ['a list', [1, 2, 3]],
] as const)('%s ends the tunnel and changes nothing', async (_, report) => {
  const before = await device()
  using rogue = await connect()
  rogue.say(JSON.stringify(report))
  await rogue.mux.ended
  await eventually(() => expect(service.reach.tunnels.find(uid)).toBeUndefined())
  expect(await device()).toMatchObject({ info: before.info })
  expect(await device()).not.toHaveProperty('ping_interval')
})

test.each([
  ['that is no JSON', 'hello'],
  ['without an end', 'x'.repeat(1024 * 1024)],
  ['that is nested deeply', '['.repeat(8_000)],
])('a line %s ends the tunnel', async (_, line) => {
  using rogue = await connect()
  rogue.say(line)
  await rogue.mux.ended
})

test('fields that no report has reach nothing', async () => {
  using rogue = await connect()
  rogue.say(JSON.stringify({ ping_s: 60, status: 'accepted', tenant_id: sample.otherTenant, name: 'other' }))
  await eventually(async () => expect((await device()).ping_interval).toBe(60))
  expect(await device()).toMatchObject({
    status: 'pending',
    name: `rogue-${count}`,
    tenant_id: sample.tenant,
  })
})

test('a device that reports without end is read slowly: few changes are saved, and little is held', async () => {
  using rogue = await connect()
  let saved = 0
  using _ = service.rooms.bus.hear('device.changed', (news) => void (news.uid === uid && saved++))
  const stream = rogue.say(JSON.stringify({ info }))
  let taken = 0
  const flood = (): void => {
    while (taken < 20_000) {
      const line = JSON.stringify({ info: { ...info, pretty_name: `${'y'.repeat(200)}${taken++}` } })
      if (!stream.write(`${line}\n`)) return void stream.once('drain', flood)
    }
  }
  flood()
  await eventually(() => expect(saved).toBeGreaterThanOrEqual(19))
  // Long enough for thousands of them; the server takes what one window of the stream holds
  // and stops to read.
  for (let turn = 0; turn < 2_000; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(saved).toBeLessThanOrEqual(20)
  expect(taken * 300).toBeLessThan(3 * 1024 * 1024)
  expect(service.reach.tunnels.find(uid)).toBeDefined()
})

test('a device may open one stream, and no other', async () => {
  using rogue = await connect()
  rogue.say(JSON.stringify({ ping_s: 60 }))
  await eventually(async () => expect((await device()).ping_interval).toBe(60))
  const second = rogue.say(JSON.stringify({ ping_s: 90 }))
  const third = rogue.mux.open(Buffer.from('anything'))
  await Promise.all([second, third].map((stream) => new Promise((resolve) => stream.once('close', resolve))))
  expect((await device()).ping_interval).toBe(60)
})

test('who has the token of a device and not its key reports nothing about it', async () => {
  using owner = await connect()
  owner.say(JSON.stringify({ info, ping_s: 60 }))
  await eventually(async () => expect((await device()).ping_interval).toBe(60))
  using thief = await connect(false)
  thief.say(JSON.stringify({ info: { ...info, pretty_name: 'stolen' }, ping_s: 90 }))
  for (let turn = 0; turn < 500; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(await device()).toMatchObject({ info: { pretty_name: 'Debian' }, ping_interval: 60 })
})

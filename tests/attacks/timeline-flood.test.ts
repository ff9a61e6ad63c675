// A rogue device tried to fill the server with its timeline: tunnels that come and go as fast as they are let in,
// reports without end, and words that no agent would say. Of a minute so much is kept, the rest is one count, and
// what people read is short and without control characters.
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { featuresHeader, reportProtocol, tunnelPaths } from '@hawser/contract/tunnel'
import { dialBytes, multistream, openMux } from '@hawser/mux'
import { eventually } from '../harness/eventually.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'

vi.setConfig({ testTimeout: 60_000 })

const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = publicKey.export({ type: 'spki', format: 'pem' })
let service: Service
let world: World
beforeAll(async () => {
  service = await startService()
  world = await buildWorld(service)
})
afterAll(() => service[Symbol.asyncDispose]())

let count = 0
async function enrol() {
  const { body } = await service.api().devices.auth({
    body: {
      info: { version: 'hawser-1' },
      hostname: `rogue-${++count}`,
      identity: { mac: `rogue-${count}` },
      public_key: pem,
      tenant_id: sample.tenant,
    },
  })
  return body
}

async function connect(token: string) {
  const url = `${service.url.replace('http', 'ws')}${tunnelPaths.streams}`
  const headers = { authorization: `Bearer ${token}`, [featuresHeader]: 'report' }
  const carrier = await dialBytes(url, { headers })
  const mux = openMux(carrier, { role: 'server' })
  return {
    mux,
    say(...lines: readonly object[]) {
      const stream = mux.open(multistream.propose(reportProtocol))
      stream.on('error', () => undefined)
      for (const line of lines) stream.write(`${JSON.stringify(line)}\n`)
    },
    [Symbol.dispose]: () => mux.close(),
  }
}

const rows = (uid: string) => service.rooms.stores.of(sample.tenant).timeline.newest(uid, 10_000)
const shown = async (uid: string) => {
  const api = service.api({ token: await world.token('observer') })
  return (await api.devices.timeline({ params: { uid }, query: { limit: 500 } })).body.events
}

test('of a device that flaps, twelve events a minute are kept, the others are counted, and the last word is right', async () => {
  const { uid } = await enrol()
  const { timeline } = service.rooms
  for (let time = 0; time < 1_000; time += 1) {
    timeline.note(uid, { kind: 'up', source: '192.0.2.1' })
    timeline.note(uid, { kind: 'down', reason: 'lost', lasted_s: 0 })
  }
  timeline.note(uid, { kind: 'down', reason: 'stopping', lasted_s: 0 })
  // Right at once, though it is not written yet.
  expect((await timeline.offlineReason({ tenant_id: sample.tenant, uid }))?.sentence).toMatch(
    /^The server stopped at /,
  )
  await timeline.flush()
  expect(await rows(uid)).toHaveLength(12)
  service.clock.forward(61_000)
  await timeline.flush()
  const written = await rows(uid)
  expect(written).toHaveLength(14)
  expect(written.slice(0, 2)).toMatchObject([
    { kind: 'down' },
    { kind: 'flapping', detail: '{"times":1988}' },
  ])
  expect((await shown(uid))[1]).toMatchObject({ kind: 'flapping', times: 1988 })
})

test('real tunnels that come and go are cut down, too', async () => {
  const { uid, token } = await enrol()
  for (let time = 0; time < 8; time += 1) {
    using rogue = await connect(token)
    rogue.say({ ping_s: 60, connection: { clock_ms: 0, lost: { why: 'x', ago_s: 1 } } })
    await eventually(() => expect(service.reach.tunnels.find(uid)).toBeDefined())
  }
  await eventually(() => expect(service.reach.tunnels.find(uid)).toBeUndefined())
  await service.rooms.timeline.flush()
  expect((await rows(uid)).length).toBeLessThanOrEqual(12)
})

test('a reboot and a clock that is wrong, as a device says them; other words are made safe', async () => {
  const { uid, token } = await enrol()
  const boots = [
    { boot_id: 'one', uptime_s: 9_000_000_000, clock_ms: service.clock.now() - 75_000 },
    {
      boot_id: 'two',
      uptime_s: 30,
      clock_ms: service.clock.now(),
      lost: { why: `\u001b]0;owned\u0007${'y'.repeat(200)}`, ago_s: 9_000_000_000 },
    },
  ]
  for (const connection of boots) {
    using rogue = await connect(token)
    rogue.say({ ping_s: 60, connection })
    await eventually(async () => {
      await service.rooms.timeline.flush()
      expect((await rows(uid)).filter(({ kind }) => kind === 'said')).toHaveLength(
        boots.indexOf(connection) + 1,
      )
    })
  }
  const events = await shown(uid)
  expect(events.find(({ kind }) => kind === 'reboot')?.sentence).toMatch(/^The machine was started again at /)
  expect(events.filter(({ kind }) => kind === 'clock').map(({ sentence }) => sentence)).toEqual([
    'Its clock is right again.',
    'Its clock is 75 s behind.',
  ])
  // oxlint-disable-next-line no-control-regex -- that is the point
  expect(JSON.stringify(events)).not.toMatch(/\\u00(0|1)|\u001b/)
})

test.each([
  { boot_id: 'x'.repeat(65) },
  { boot_id: 7 },
  { uptime_s: -1 },
  { uptime_s: 1e308 },
  { clock_ms: 1e308 },
  { clock_ms: 'now' },
  { lost: { why: 'x'.repeat(256), ago_s: 1 } },
  { lost: { why: 'x', ago_s: -1 } },
  { lost: { why: 'a\0b', ago_s: 1 } },
  { lost: 'x' },
])('%j ends the tunnel, and is not in the timeline', async (connection) => {
  const { uid, token } = await enrol()
  using rogue = await connect(token)
  rogue.say({ ping_s: 60, connection })
  await rogue.mux.ended
  await service.rooms.timeline.flush()
  expect((await rows(uid)).map(({ kind }) => kind)).not.toContain('said')
})

// These take days, in which every sign-in ends.
const told = (uid: string) => service.rooms.timeline.of(sample.tenant, uid, 1_500)

test('whoever has the token of a device cannot push out what happened before', async () => {
  const { uid } = await enrol()
  const { timeline } = service.rooms
  const hour_ms = 3_600_000
  const began = Math.ceil(service.clock.now() / hour_ms) * hour_ms
  service.clock.forward(began - service.clock.now())
  timeline.note(uid, { kind: 'up', source: '192.0.2.1', version: 'v1' })
  timeline.note(uid, { kind: 'down', reason: 'lost', lasted_s: 60 })
  timeline.note(uid, { kind: 'conflict', addresses: ['192.0.2.1', '192.0.2.2'] })
  timeline.note(uid, { kind: 'renamed', before: 'winch', after: 'crane' })
  service.clock.forward(10 * hour_ms)
  timeline.note(uid, { kind: 'up', source: '192.0.2.1', version: 'v2' })
  timeline.note(uid, { kind: 'down', reason: 'closed', lasted_s: 7_000 })
  timeline.note(uid, { kind: 'up', source: '192.0.2.1', version: 'v2' })
  // The thief is gentle, so that no minute counts as too much.
  async function flap(hours: number, each: number): Promise<void> {
    for (let time = 0; time < hours * each; time += 1) {
      timeline.note(uid, { kind: 'up', source: `198.51.100.${time % 200}`, version: 'v2' })
      timeline.note(uid, { kind: 'down', reason: 'closed', lasted_s: 1 })
      service.clock.forward(hour_ms / each)
      if (time % 10 === 0) await timeline.flush()
    }
    await timeline.flush()
  }
  await flap(23, 60)
  expect(await rows(uid)).toSatisfy((all: unknown[]) => all.length <= 500)
  const day = await told(uid)
  expect(day.map(({ sentence }) => sentence)).toEqual(
    expect.arrayContaining([
      'Its agent closed the connection. The connection had lasted 116 min.',
      'Its agent changed from v1 to v2.',
      'It was renamed from winch to crane.',
      expect.stringMatching(/^Two machines use its identity: /),
    ]),
  )
  // Every hour has its beginning and its end.
  const hoursOf = new Set(day.map(({ at }) => at.slice(0, 13)))
  expect(hoursOf.size).toBeGreaterThanOrEqual(24)
  await flap(40, 60)
  const later = (await told(uid)).map(({ kind }) => kind)
  expect(later).toEqual(expect.arrayContaining(['version', 'conflict', 'renamed']))
  // The last word is right.
  expect((await timeline.offlineReason({ tenant_id: sample.tenant, uid }))?.sentence).toMatch(
    /^Its agent closed/,
  )
})

test('nor with versions that change all the time, nor can one kind push out another', async () => {
  const { uid } = await enrol()
  const { timeline } = service.rooms
  timeline.note(uid, { kind: 'renamed', before: 'winch', after: 'crane' })
  for (let time = 0; time < 1_000; time += 1) {
    timeline.note(uid, { kind: 'up', source: '192.0.2.1', version: `v${time}` })
    timeline.note(uid, { kind: 'conflict', addresses: ['192.0.2.1', `198.51.100.${time % 200}`] })
    service.clock.forward(61_000)
    if (time % 10 === 0) await timeline.flush()
  }
  await timeline.flush()
  const kinds = (await rows(uid)).map(({ kind }) => kind)
  const count = (kind: string): number => kinds.filter((one) => one === kind).length
  expect(count('renamed')).toBe(1)
  // Of each sort 25, and those since it was last looked at.
  expect(count('conflict')).toBeLessThanOrEqual(25 + 16)
  expect(count('up')).toBeLessThanOrEqual(25 + 16)
})

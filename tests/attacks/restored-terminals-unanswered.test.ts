// Devices that say that they have kept the terminals of sessions, and then do not answer the server that wants to
// continue them. The terminals of other devices, of other namespaces, are continued meanwhile; nothing waits for an
// answer for ever, and nothing is forgotten because it was looked for often. Who names the session of another device
// does not keep that device from bringing it back.
import { generateKeyPairSync } from 'node:crypto'
import { duplexPair } from 'node:stream'
import { afterEach, expect, test, vi } from 'vitest'
import { acceptConnection, generatePrivateKey, privateKeyFrom, type Connection } from '@hawser/ssh'
import type { ClaimAnswer } from '../../server/src/domain/sessions/detached-sessions.ts'
import { restore, type RestoreParts } from '../../server/src/gateway/terminal/restore.ts'
import { eventually } from '../harness/eventually.ts'

vi.setConfig({ testTimeout: 60_000 })
afterEach(() => vi.useRealTimers())

const hostKey = generateKeyPairSync('ed25519')
const quiet = new Proxy({}, { get: () => () => undefined })
const uidOf = (number: number): string => String(number).padStart(64, '0')
const public_key = hostKey.publicKey.export({ type: 'spki', format: 'pem' })
const device = (uid: string, tenant_id = `namespace of ${uid}`) => ({
  uid,
  tenant_id,
  public_key,
  mustProve: false,
})

/** A gateway whose devices let it in and then say nothing, or do not even let it in. */
function place(claim: (uid: string, device: { uid: string }) => Promise<ClaimAnswer>, letsIn = true) {
  const connections: Connection[] = []
  const gatewayKey = generatePrivateKey('ed25519')
  const openSsh = async () => {
    if (!letsIn) return new Promise<never>(() => undefined)
    const [near, far] = duplexPair()
    void acceptConnection(far, {
      hostKeys: [privateKeyFrom(hostKey.privateKey)],
      methods: ['publickey'],
      authenticate: () => Promise.resolve('accept'),
      channelTypes: ['session'],
    }).then(async (connection) => {
      connections.push(connection)
      // No request of the channel is answered.
      for await (const opening of connection.channels) opening.accept()
    })
    return near
  }
  const parts = {
    log: quiet,
    clock: Date,
    open: new Map(),
    run: () => undefined,
    detachSecret: () => uidOf(0),
    detached: {
      claim: async (by: { uid: string }, uid: string) => claim(uid, by),
      arrived: async () => undefined,
    },
    logins: {
      find: async (uid: string) => ({
        namespace: { reconnect_grace_s: 0 },
        device: {
          ...device(uid),
          enrolment_key: null,
          info_version: 'v9.0.0',
          info_platform: 'native',
        },
      }),
    },
    findTunnel: async () => ({ features: new Set(), openSsh }),
    spares: { take: () => undefined, has: () => false, refill: () => undefined },
    signer: { open: () => ({ known: async () => undefined, [Symbol.dispose]: () => undefined }) },
    gatewayKey: async () => gatewayKey,
  }
  return { connections, restored: restore(parts as unknown as RestoreParts) }
}

const left = (uid: string): ClaimAnswer =>
  ({
    state: 'left',
    session: { uid, username: 'root', until: Date.now() + 3_600_000 },
    record: { leave: () => undefined, finish: () => undefined },
  }) as unknown as ClaimAnswer

test('one device that answers nothing holds up the terminals of no other, and is given up in time', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const claimed: string[] = []
  const { connections, restored } = place(async (uid) => {
    claimed.push(uid)
    return left(uid)
  })
  const many = Array.from({ length: 32 }, (_, number) => uidOf(number + 1))
  restored.reported(device('rogue'), many)
  const honest = uidOf(100)
  restored.reported(device('honest'), [honest])
  const settled = async (): Promise<void> => {
    for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  for (let second = 0; second < 10 && !claimed.includes(honest); second++) {
    await settled()
    await vi.advanceTimersByTimeAsync(1_000)
  }
  expect(claimed).toContain(honest)
  await eventually(() => expect(connections.length).toBeGreaterThan(0))
  const [first] = connections
  const over = vi.fn<() => void>()
  void first!.ended.then(over)
  for (let second = 0; second < 40 && over.mock.calls.length === 0; second++) {
    await settled()
    await vi.advanceTimersByTimeAsync(1_000)
  }
  expect(over).toHaveBeenCalledOnce()
  restored.stop()
})

test('a hundred devices of one namespace hold up those of another by the turn of a few', async () => {
  const claimed: string[] = []
  const { restored } = place(async (uid) => {
    claimed.push(uid)
    return left(uid)
  }, false)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  for (let rogue = 0; rogue < 100; rogue++) {
    const many = Array.from({ length: 32 }, (_, number) => uidOf(32 * rogue + number + 1))
    restored.reported(device(`rogue ${rogue}`, 'rogue namespace'), many)
  }
  const honest = uidOf(999_999)
  restored.reported(device('honest'), [honest])
  for (let second = 0; second < 600 && !claimed.includes(honest); second++) {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    await vi.advanceTimersByTimeAsync(1_000)
  }
  restored.stop()
  expect(claimed.indexOf(honest)).toBeGreaterThanOrEqual(0)
  expect(claimed.indexOf(honest)).toBeLessThan(32)
})

test('what a device has kept is looked for until it is found, however often that was', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  const began = Date.now()
  const found = new Set<string>()
  const { restored } = place(async (uid) => {
    // For so long another node answers that it has it.
    if (Date.now() - began < 60_000) return { state: 'elsewhere' }
    found.add(uid)
    return undefined
  })
  const many = Array.from({ length: 32 }, (_, number) => uidOf(number + 1))
  restored.reported(device('honest'), many)
  for (let second = 0; second < 300 && found.size < many.length; second++)
    await vi.advanceTimersByTimeAsync(1_000)
  expect(found.size).toBe(many.length)
  restored.stop()
})

test('a device whose terminals were found is looked after soon again, when it has another one', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  const began = Date.now()
  const asked: number[] = []
  const { restored } = place(async (uid) => {
    const since_ms = Date.now() - began
    if (uid === uidOf(2)) asked.push(since_ms)
    return since_ms < 60_000 || (uid === uidOf(2) && asked.length === 1) ? { state: 'elsewhere' } : undefined
  })
  restored.reported(device('honest'), [uidOf(1)])
  await vi.advanceTimersByTimeAsync(180_000)
  restored.reported(device('honest'), [uidOf(2)])
  await vi.advanceTimersByTimeAsync(120_000)
  expect(asked).toHaveLength(2)
  expect(asked[1]! - asked[0]!).toBeLessThan(5_000)
  restored.stop()
})

test('a device that names the session of another does not keep it from that device', async () => {
  const asking = Promise.withResolvers<undefined>()
  const claimed: string[] = []
  const { restored } = place(async (_, { uid }) => {
    claimed.push(uid)
    return uid === 'thief' ? asking.promise : undefined
  })
  restored.reported(device('thief'), [uidOf(1)])
  await eventually(() => expect(claimed).toEqual(['thief']))
  restored.reported(device('honest'), [uidOf(1)])
  await eventually(() => expect(claimed).toEqual(['thief', 'honest']))
  asking.resolve(undefined)
  restored.stop()
})

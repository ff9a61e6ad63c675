// After a login the gateway keeps a spare leg to the device for whoever comes next. A spare leg belongs to
// nobody: it must not carry one person's attempt to another, must not be used up by a stranger, and must not
// reach a device that was removed, or whose firewall forbids it by now.
import { once } from 'node:events'
import net from 'node:net'
import os from 'node:os'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Client } from '@hawser/contract/client'
import {
  generatePrivateKey,
  openClient,
  publicKeyLine,
  startSession,
  type Proof,
  type Unauthenticated,
} from '@hawser/ssh'
import { makePerson } from '../../agent/test/person.ts'
import { spareLegs } from '../../server/src/gateway/device/spare-legs.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { eventually } from '../harness/eventually.ts'
import { startLink, type Link } from '../harness/link.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const key = generatePrivateKey('ed25519')
const byKey: Proof = { method: 'publickey', key }

let opened: AsyncDisposableStack
let service: Service
let link: Link
let owner: Client
let user: { readonly name: string; readonly password: string }

beforeAll(async () => {
  opened = new AsyncDisposableStack()
  service = opened.use(await startService({ env: { HAWSER_SSH_FAILURE_LIMIT: '0/60' } }))
  const world = await buildWorld(service)
  owner = service.api({ token: await world.token('owner') })
  user =
    process.getuid?.() === 0
      ? opened.use(await makePerson())
      : { name: os.userInfo().username, password: 'pilot' }
  const data = Buffer.from(publicKeyLine(key.type, key.blob)).toString('base64')
  await owner.publicKeys.create({
    body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' } },
  })
  link = opened.use(await startLink({ port: Number(new URL(service.url).port) }, { delay_ms: 30 }))
})
afterAll(async () => opened.disposeAsync())

async function newDevice(hostname: string): Promise<Agent> {
  const { rooms } = service
  return opened.use(await startAgent({ url: `http://127.0.0.1:${link.port}`, rooms }, { hostname }))
}

async function knock(signal?: AbortSignal): Promise<Unauthenticated> {
  const socket = net.connect(service.sshPort, '127.0.0.1')
  opened.defer(() => void socket.destroy())
  await once(socket, 'connect')
  return openClient(socket, { checkHostKey: () => true, ...(signal ? { signal } : {}) })
}

const sshid = ({ name }: Agent, as = user.name): string => `${as}@${sample.namespace}.${name}`

/** The output of a command, or undefined if the login is refused. */
async function run(device: Agent, command: string, proof: Proof): Promise<string | undefined> {
  const client = await knock()
  const { accepted } = await client.attempt(sshid(device), proof).catch(() => ({ accepted: false }))
  if (!accepted) return undefined
  await using connection = client.connection()
  const { channel } = await startSession(connection, { program: { type: 'exec', command } })
  let output = ''
  for await (const { bytes } of channel) output += bytes.toString()
  return output
}

/** Waits for the spare leg to the only device that has one. */
const spared = async (count = 1): Promise<void> =>
  eventually(() => expect(service.reach.spares.size).toBe(count))

test('a refused attempt takes the spare leg with it: the next person gets another one', async () => {
  const device = await newDevice('shared')
  expect(await run(device, 'echo first', byKey)).toBe('first\n')
  await spared()
  const mallory = await knock()
  const wrong: Proof = { method: 'password', password: 'wrong' }
  expect(await mallory.attempt(sshid(device, 'mallory'), wrong)).toMatchObject({ accepted: false })
  expect(service.reach.spares.size).toBe(0)
  // The agent ends a connection whose user changes; this is another one.
  expect(await run(device, 'id -un', byKey)).toBe(`${user.name}\n`)
  const refused = device.lines.filter(({ event }) => event === 'login.refused')
  expect(refused.map((line) => line['user'])).toEqual(['mallory'])
  await owner.devices.remove({ params: { uid: device.uid } })
})

test('a stranger who names the device does not use the spare leg up', async () => {
  const device = await newDevice('named')
  await run(device, 'true', byKey)
  await spared()
  const stranger = await knock()
  const other: Proof = { method: 'publickey', key: generatePrivateKey('ed25519') }
  for (const proof of [{ method: 'none' } as const, other])
    expect(await stranger.attempt(sshid(device), proof)).toMatchObject({ accepted: false })
  // A person who seems to type makes the gateway prepare a leg: not with the spare one.
  await new Promise((resolve) => setTimeout(resolve, 400))
  expect(service.reach.spares.size).toBe(1)
  await owner.devices.remove({ params: { uid: device.uid } })
})

test('a removed device is not reached by its spare leg, which is closed', async () => {
  const device = await newDevice('removed')
  await run(device, 'true', byKey)
  await spared()
  await owner.devices.remove({ params: { uid: device.uid } })
  await spared(0)
  expect(await run(device, 'echo in', byKey)).toBeUndefined()
  const password: Proof = { method: 'password', password: user.password }
  expect(await run(device, 'echo in', password)).toBeUndefined()
})

test('a firewall rule that is made meanwhile holds for a spare leg', async () => {
  const device = await newDevice('walled')
  await run(device, 'true', byKey)
  await spared()
  const rule = { action: 'deny', active: true, priority: 0, source_ip: '.*', username: '.*' } as const
  await owner.firewall.create({ body: { ...rule, filter: { hostname: 'walled' } } })
  expect(await run(device, 'echo in', byKey)).toBeUndefined()
  await owner.devices.remove({ params: { uid: device.uid } })
  await spared(0)
})

test('an agent that is gone takes its spare leg along', async () => {
  const device = await newDevice('killed')
  await run(device, 'true', byKey)
  await spared()
  device.kill('SIGKILL')
  await spared(0)
  expect(await run(device, 'echo in', byKey)).toBeUndefined()
})

type Dialled = Parameters<ReturnType<typeof spareLegs>['refill']>[0]

/** A pool whose legs are connections to an SSH server of nobody. */
function pool(limits: { most: number; kept_ms: number }) {
  const ended: string[] = []
  const spares = spareLegs({
    limits,
    async dial({ uid }, _, signal) {
      signal.addEventListener('abort', () => ended.push(uid))
      const client = await knock(signal)
      return { client, features: new Set(), dialled_ms: 100, resumable: undefined, keep: () => undefined }
    },
  })
  const device = (uid: string, change: Partial<Dialled> = {}): Dialled =>
    ({ uid, tenant_id: 'ours', public_key: 'key', ...change }) as Dialled
  const ready = async (count: number): Promise<void> => eventually(() => expect(spares.size).toBe(count))
  return { spares, device, ended, ready }
}

test('a spare leg is given away once, and only for the same namespace, key and time to wait', async () => {
  const { spares, device, ended, ready } = pool({ most: 8, kept_ms: 60_000 })
  for (const uid of ['a', 'b', 'c']) spares.refill(device(uid), 0)
  spares.refill(device('a'), 0)
  await ready(3)
  expect(await spares.take(device('a'), 0)).toBeDefined()
  expect(spares.take(device('a'), 0)).toBeUndefined()
  expect(spares.take(device('b', { tenant_id: 'theirs' }), 0)).toBeUndefined()
  spares.refill(device('b'), 0)
  expect(spares.take(device('b'), 300)).toBeUndefined()
  expect(spares.has(device('b'))).toBe(false)
  expect(spares.take(device('c', { public_key: 'another' }), 0)).toBeUndefined()
  expect(ended).toEqual(['b', 'b', 'c'])
  expect(spares.size).toBe(0)
})

test('spare legs are bounded in number and in time, and end with the server', async () => {
  const { spares, device, ended, ready } = pool({ most: 2, kept_ms: 60_000 })
  for (const uid of ['a', 'b', 'c']) spares.refill(device(uid), 0)
  await ready(2)
  expect(ended).toEqual(['a'])
  spares[Symbol.dispose]()
  expect(ended).toEqual(['a', 'b', 'c'])
  spares.refill(device('d'), 0)
  expect(spares.has(device('d'))).toBe(false)
  const short = pool({ most: 2, kept_ms: 50 })
  short.spares.refill(short.device('e'), 0)
  await eventually(() => expect(short.ended).toEqual(['e']))
  expect(short.spares.has(short.device('e'))).toBe(false)
})

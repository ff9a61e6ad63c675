// The SSH door against those who try it: every attempt is judged alone, nothing happens for whoever has
// proved nothing, and nobody learns what exists. With our own client, because these are things that an honest
// one does not do.
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import net from 'node:net'
import { once } from 'node:events'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import {
  generatePrivateKey,
  openClient,
  publicKeyLine,
  type PrivateKey,
  type Unauthenticated,
} from '@hawser/ssh'
import { withoutReference } from '../attacks/door.ts'
import { eventually, until } from '../harness/eventually.ts'
import { startOldAgent, type OldAgent } from '../harness/old-agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let service: Service
let world: World
let agent: OldAgent
const olga = generatePrivateKey('ed25519')
const mallory = generatePrivateKey('ed25519')
const sshid = `pilot@${sample.namespace}.crane-9`

async function register(key: PrivateKey, change: object = {}): Promise<void> {
  const data = Buffer.from(publicKeyLine(key.type, key.blob)).toString('base64')
  const body = { data, name: 'key', username: '.*', filter: { hostname: '.*' }, ...change }
  await service.api({ token: await world.token('owner') }).publicKeys.create({ body })
}

beforeAll(async () => {
  service = await startService({ env: { HAWSER_SSH_FAILURE_LIMIT: '0/60' } })
  world = await buildWorld(service)
  agent = await startOldAgent(service, { version: 2, tenant_id: sample.tenant, hostname: 'crane-9' })
  await service.api({ token: await world.token('owner') }).devices.accept({ params: { uid: agent.uid } })
  await register(olga)
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
const knocking: net.Socket[] = []
beforeEach(async () => {
  // Who still waits at the door may have a leg made ready, which would be seen on the device.
  await Promise.all(
    knocking.splice(0).map(async (socket) => socket.destroy().closed || once(socket, 'close')),
  )
  await until(() => service.reach.sessions.size === 0)
  agent.seen.attempts.length = 0
  agent.seen.streams = 0
})

async function knock(
  options: { port?: number; first?: string | Buffer; banners?: string[] } = {},
): Promise<Unauthenticated> {
  const socket = net.connect(options.port ?? service.sshPort, '127.0.0.1')
  knocking.push(socket)
  await once(socket, 'connect')
  if (options.first) socket.write(options.first)
  return openClient(socket, {
    checkHostKey: () => true,
    onBanner: (text) => void options.banners?.push(text),
    handshake_ms: 10_000,
  })
}

const sessions = async () =>
  (await service.api({ token: await world.token('owner') }).sessions.list({ query: {} })).body.length

/** The key that is only shown: signing it is refused. */
const shownOnly = (key: PrivateKey) => ({
  blob: key.blob,
  algorithms: key.algorithms,
  askFirst: true,
  sign: (): never => {
    throw new Error('not signed')
  },
})

describe('attempts stand alone', () => {
  test('a wrong password does not open the door to an unknown key, nor to a known one that is not proved', async () => {
    const client = await knock()
    expect(await client.attempt(sshid, { method: 'password', password: 'wrong' })).toMatchObject({
      accepted: false,
    })
    expect(await client.attempt(sshid, { method: 'publickey', key: mallory })).toMatchObject({
      accepted: false,
    })
    // A signature by somebody else's key under the known key's name.
    const forged = { ...mallory, blob: olga.blob }
    expect(await client.attempt(sshid, { method: 'publickey', key: forged })).toMatchObject({
      accepted: false,
    })
    expect(agent.seen.attempts).toEqual(['password pilot'])
  })

  test('the right password after wrong ones gets in, on the leg that is there already', async () => {
    const client = await knock()
    for (const password of ['wrong', 'wronger']) await client.attempt(sshid, { method: 'password', password })
    expect(await client.attempt(sshid, { method: 'password', password: 'pilot' })).toEqual({ accepted: true })
    expect(agent.seen.streams).toBe(1)
    await client.connection().end()
  })

  test('a key that is good for another user is refused', async () => {
    const limited = generatePrivateKey('ed25519')
    await register(limited, { username: '^skipper$' })
    const client = await knock()
    expect(await client.attempt(sshid, { method: 'publickey', key: limited })).toMatchObject({
      accepted: false,
    })
    expect(agent.seen.streams).toBe(0)
  })

  test('after six failures the connection is over', async () => {
    const client = await knock()
    for (let attempt = 0; attempt < 5; attempt += 1)
      await client.attempt(sshid, { method: 'publickey', key: mallory })
    await expect(client.attempt(sshid, { method: 'publickey', key: mallory })).rejects.toThrow(
      'Too many authentication failures',
    )
  })
})

describe('nothing before proof', () => {
  test('a known key that is offered and not signed reaches no device and leaves no session', async () => {
    const before = await sessions()
    const client = await knock()
    await expect(client.attempt(sshid, { method: 'publickey', key: shownOnly(olga) })).rejects.toThrow(
      'not signed',
    )
    await service.rooms.background.settled()
    expect(agent.seen.streams).toBe(0)
    expect(await sessions()).toBe(before)
  })

  test('a refused login leaves no session, an accepted one leaves one that ends with the connection', async () => {
    const before = await sessions()
    const refused = await knock()
    await refused.attempt(sshid, { method: 'password', password: 'wrong' })
    expect(await sessions()).toBe(before)
    const client = await knock()
    await client.attempt(sshid, { method: 'publickey', key: olga })
    const { body } = await service.api({ token: await world.token('owner') }).sessions.list({ query: {} })
    expect(body).toHaveLength(before + 1)
    expect(body[0]).toMatchObject({
      active: true,
      authenticated: true,
      username: 'pilot',
      ip_address: '127.0.0.1',
      device_uid: agent.uid,
      type: 'none',
      term: 'none',
    })
    await client.connection().end()
    await eventually(async () => {
      const { body: after } = await service
        .api({ token: await world.token('owner') })
        .sessions.get({ params: { uid: body[0]!.uid } })
      expect(after.active).toBe(false)
    })
  })
})

describe('what exists is not told', () => {
  /** With whether the name says which namespace it is of. */
  test.each([
    ['an unknown namespace', 'pilot@nowhere.crane-9', false],
    ['an unknown device', `pilot@${sample.namespace}.nobody`, true],
    ['an unknown uid', `pilot@${'0'.repeat(64)}`, false],
    ['a device that is pending', `pilot@${sample.namespace}.buoy`, true],
    ['the uid of a device that is pending', `pilot@${sample.pendingDevice}`, true],
    ['a device that is offline', `pilot@${sample.namespace}.crane-1`, true],
  ])(
    '%s is offline, as far as whoever holds a key can tell, and takes no password of a stranger',
    async (_, name, isHere) => {
      const banners: string[] = []
      const data = name.slice(name.indexOf('@') + 1)
      const stranger = await knock({ banners })
      expect(await stranger.attempt(name, { method: 'none' })).toMatchObject({ accepted: false })
      expect(await stranger.attempt(name, { method: 'password', password: 'pilot' })).toMatchObject({
        accepted: false,
      })
      expect(banners.splice(0).map(withoutReference)).toEqual([
        `${data} is offline or cannot be reached, or does not let you in with this password\r\n`,
      ])
      const holder = await knock({ banners })
      if (isHere) await expect(holder.attempt(name, { method: 'publickey', key: olga })).rejects.toThrow()
      else
        expect(await holder.attempt(name, { method: 'publickey', key: olga })).toMatchObject({
          accepted: false,
        })
      expect(banners.map(withoutReference)).toEqual(
        isHere ? [`${data} is offline or cannot be reached\r\n`] : [],
      )
    },
  )

  test('a name that is no SSHID is told so', async () => {
    const banners: string[] = []
    const client = await knock({ banners })
    await expect(client.attempt('root', { method: 'none' })).rejects.toThrow()
    expect(banners.map(withoutReference)).toEqual(['root is not a valid SSHID\r\n'])
  })

  test('what a stranger typed does not reach a terminal as it came', async () => {
    const banners: string[] = []
    const client = await knock({ banners })
    expect(
      await client.attempt('a@\u001b]0;owned\u0007.x', { method: 'password', password: 'x' }),
    ).toMatchObject({ accepted: false })
    expect(banners.join('')).toContain('owned')
    for (const control of ['\u001b', '\u0007']) expect(banners.join('')).not.toContain(control)
  })

  test('a device is found by its uid, in any letters', async () => {
    const client = await knock()
    expect(
      await client.attempt(`pilot@${agent.uid.toUpperCase()}`, { method: 'password', password: 'pilot' }),
    ).toEqual({ accepted: true })
    await client.connection().end()
  })
})

describe('the firewall', () => {
  test('refuses whom a rule denies, says so to whoever proved a key, and lets others through', async () => {
    const api = service.api({ token: await world.token('owner') })
    const rule = {
      action: 'deny',
      active: true,
      priority: 0,
      source_ip: '.*',
      username: '^drunk$',
      filter: { hostname: '.*' },
    } as const
    await api.firewall.create({ body: rule })
    const banners: string[] = []
    const drunk = sshid.replace('pilot', 'drunk')
    const stranger = await knock()
    expect(await stranger.attempt(drunk, { method: 'password', password: 'drunk' })).toMatchObject({
      accepted: false,
    })
    expect(agent.seen.attempts).toEqual([])
    const client = await knock({ banners })
    await expect(client.attempt(drunk, { method: 'publickey', key: olga })).rejects.toThrow()
    expect(banners.map(withoutReference)).toEqual([
      `you cannot access ${sample.namespace}.crane-9 due a policy rule\r\n`,
    ])
    const sober = await knock()
    expect(await sober.attempt(sshid, { method: 'password', password: 'pilot' })).toEqual({ accepted: true })
    await sober.connection().end()
  })
})

describe('whose address it is', () => {
  const header = 'PROXY TCP4 203.0.113.9 127.0.0.1 4242 22\r\n'

  test('a trusted proxy says where a connection comes from', async () => {
    const client = await knock({ first: header })
    await client.attempt(sshid, { method: 'password', password: 'pilot' })
    const { body } = await service.api({ token: await world.token('owner') }).sessions.list({ query: {} })
    expect(body[0]!.ip_address).toBe('203.0.113.9')
    await client.connection().end()
  })

  test('from anybody else the same header is no SSH, and nothing else', async () => {
    await using distrusting = await startService({ env: { HAWSER_TRUSTED_PROXIES: 'none' } })
    await expect(knock({ port: distrusting.sshPort, first: header })).rejects.toThrow()
  })
})

describe('a stolen identity', () => {
  /** Everything that members can read of a device, and a key of one's own. */
  const steal = (key: KeyObject) =>
    service.rooms.stores
      .of(sample.tenant)
      .devices.find(agent.uid)
      .then(async (row) => {
        const { body } = await service.api().devices.auth({
          body: {
            info: {},
            identity: { mac: row!.mac },
            public_key: row!.public_key,
            tenant_id: sample.tenant,
          },
        })
        expect(body.uid).toBe(agent.uid)
        return startOldAgent(service, {
          version: 2,
          tenant_id: sample.tenant,
          hostname: 'crane-9',
          key,
          token: body.token,
          publicKey: row!.public_key,
        })
      })

  test('does not take over a tunnel that stands: the thief cannot prove the key, and sessions go to the device', async () => {
    const thief = await steal(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey)
    await thief.lost
    agent.seen.streams = 0
    const client = await knock()
    expect(await client.attempt(sshid, { method: 'password', password: 'pilot' })).toEqual({ accepted: true })
    expect(thief.seen.attempts).toEqual([])
    expect(agent.seen.streams).toBe(1)
    await client.connection().end()
  })

  test('gets no password where the device is away: the host key is not the device’s', async () => {
    agent.cut()
    await agent.lost
    const thief = await steal(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey)
    const banners: string[] = []
    const client = await knock({ banners })
    expect(await client.attempt(sshid, { method: 'password', password: 'secret' })).toMatchObject({
      accepted: false,
    })
    expect(banners.join('')).toContain('is offline or cannot be reached')
    expect(thief.seen.attempts).toEqual([])
    await thief[Symbol.asyncDispose]()
  })
})

// A fleet moves from a ShellHub while its agents run. They have tokens that ShellHub signed and ask for no
// others while they are not connected, so these tokens have to open their tunnels: with ShellHub's public
// key, in the namespaces it was given for, for devices of these, until they come with a token of ours; and
// for nothing else, whoever makes one and however.
import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { dialWebSocket, UpgradeFailed } from '@hawser/mux'
import { generatePrivateKey, openClient, publicKeyLine, startSession } from '@hawser/ssh'
import { readShellHubKey } from '../../server/src/domain/callers/shellhub-tokens.ts'
import { environmentFor, hawser, run, temporaryFolder } from '../failures/program.ts'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent, type OldAgent } from '../harness/old-agent.ts'
import { startPlace, type Place } from '../harness/place.ts'
import { startService, type Service } from '../harness/service.ts'
import { hostname, shellHub, target, type ShellHub, type Target } from './fixture.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const signing = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = signing.publicKey.export({ type: 'spki', format: 'pem' })
const another = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey

/** Its agent has come with a token of ours, and proved itself. */
const renewed = async ({ rooms }: Service, uid: string): Promise<void> =>
  eventually(async () =>
    expect((await rooms.stores.of(sample.tenant).devices.find(uid))?.token_at).not.toBeNull(),
  )

interface Made {
  readonly key?: KeyObject
  readonly claims?: Record<string, unknown>
  readonly header?: Record<string, unknown>
}

/** A token as ShellHub 0.16.4 makes it for a device; later versions add `nbf`. */
const tokenFor = async (
  uid: string,
  { key = signing.privateKey, claims = {}, header = {} }: Made = {},
): Promise<string> =>
  new SignJWT({
    uid,
    tenant: sample.tenant,
    claims: 'device',
    jti: 'c7d7a0f2-4f6a-4c0b-9b13-7d3a1a1f2b3c',
    ...claims,
  })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...header })
    .setIssuedAt(1_700_000_000)
    .sign(key)

/** How the door for tunnels answers: 101, or why not. */
async function knock(service: Service, token: string, door = '/ssh/connection'): Promise<number> {
  try {
    const socket = await dialWebSocket(`${service.url.replace('http', 'ws')}${door}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    socket.terminate()
    return 101
  } catch (error) {
    if (error instanceof UpgradeFailed && error.status !== undefined) return error.status
    throw error
  }
}

describe.each([
  [1, 'relaxed', {}],
  [2, 'canonical', { nbf: 1_700_000_000 }],
] as const)('agents of transport %i that go on running', (version, shape, claims) => {
  const desk = temporaryFolder()
  const keyFile = path.join(desk.path, 'api_public_key')
  let shellhub: ShellHub
  let here: Target
  beforeAll(async () => {
    shellhub = await shellHub(shape)
    here = await target('sqlite')
    writeFileSync(keyFile, pem)
  })
  afterAll(() => {
    shellhub[Symbol.dispose]()
    here[Symbol.dispose]()
    desk[Symbol.dispose]()
  })

  const olga = generatePrivateKey('ed25519')
  const agentOf = async (service: Service): Promise<OldAgent> =>
    startOldAgent(service, {
      version,
      tenant_id: sample.tenant,
      hostname,
      key: shellhub.key,
      begun: { uid: shellhub.uid, name: 'crane-1', token: await tokenFor(shellhub.uid, { claims }) },
      retry_ms: 50,
    })
  const serve = async (): Promise<Service> => startService({ folder: here.folder })
  /** Logs in with a key, and has a program say something. */
  async function logIn(service: Service): Promise<string> {
    const socket = net.connect(service.sshPort, '127.0.0.1')
    try {
      const client = await openClient(socket, { checkHostKey: () => true })
      const { accepted } = await client.attempt('pilot@harbour.crane-1', { method: 'publickey', key: olga })
      if (!accepted) return 'refused'
      await using connection = client.connection()
      const { channel } = await startSession(connection, { program: { type: 'exec', command: 'echo in' } })
      let said = ''
      for await (const { bytes } of channel) said += bytes.toString()
      return said
    } finally {
      socket.destroy()
    }
  }

  test('stay away without the key, dialling again and again with the token they have, and the report says so', async () => {
    const { code, stdout } = await here.import(shellhub.from)
    expect([code, stdout]).toEqual([0, expect.stringContaining('Without --public-key')])
    await using service = await serve()
    await using agent = await agentOf(service)
    await eventually(() => expect(agent.seen.dials.slice(0, 3)).toEqual(['401', '401', '401']))
    await agent.ping()
    expect(service.log()).not.toContain('/api/devices/auth')
  })

  test('come back with it, log people in, and go on with a token of ours when they have asked for one', async () => {
    const again = await here.import(shellhub.from, '--public-key', keyFile)
    expect([again.code, again.stdout]).toEqual([0, expect.not.stringContaining('Without --public-key')])
    await using service = await serve()
    const { body: signedIn } = await service.api().users.login({ body: sample.owner })
    const owner = service.api({ token: signedIn.token })
    const data = Buffer.from(publicKeyLine(olga.type, olga.blob)).toString('base64')
    await owner.publicKeys.create({
      body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' } },
    })
    const device = async () => (await owner.devices.get({ params: { uid: shellhub.uid } })).body

    await using agent = await agentOf(service)
    await eventually(async () => expect(await device()).toMatchObject({ online: true, status: 'accepted' }))
    expect(await logIn(service)).toBe('in\n')

    // Ten minutes later: it dials with the new token from now on, and asks for signatures with the old one
    // all its life.
    await agent.ping()
    agent.cut()
    await eventually(() => expect(agent.seen.dials).toEqual(['up', 'up']))
    await eventually(async () => expect(await logIn(service)).toBe('in\n'))
    await renewed(service, shellhub.uid)
    for (const door of ['/ssh/connection', '/agent/connection'])
      expect(await knock(service, agent.token, door)).toBe(401)
  })

  test('what was noted of a device outlasts a restart', async () => {
    await using service = await serve()
    expect(await knock(service, await tokenFor(shellhub.uid, { claims }))).toBe(401)
  })
})

test('an administrator adds the key later, sees it, and takes it back', async () => {
  using shellhub = await shellHub('relaxed')
  using here = await target('sqlite')
  using desk = temporaryFolder()
  const file = path.join(desk.path, 'api_public_key')
  writeFileSync(file, pem)
  const admin = async (...words: string[]) =>
    run([process.execPath, hawser, 'admin', 'shellhub', 'key', ...words], {
      env: environmentFor(here.folder),
    })
  expect((await here.import(shellhub.from)).code).toBe(0)
  const added = await admin('add', file)
  expect([added.code, added.stdout]).toEqual([
    0,
    'Key added successfully\nNamespace: elsewhere\nNamespace: harbour\n',
  ])
  {
    await using service = await startService({ folder: here.folder })
    expect(await knock(service, await tokenFor(shellhub.uid))).toBe(101)
  }
  expect((await admin('list')).stdout).toMatch(/^elsewhere\t[0-9a-f]{64}\t\S+\nharbour\t[0-9a-f]{64}\t\S+\n$/)
  expect((await admin('remove', 'harbour')).code).toBe(0)
  {
    await using service = await startService({ folder: here.folder })
    expect(await knock(service, await tokenFor(shellhub.uid))).toBe(401)
  }
})

test('what is not a public key of a ShellHub is refused with what it is', () => {
  const secret = signing.privateKey.export({ type: 'pkcs8', format: 'pem' })
  const small = generateKeyPairSync('rsa', {
    modulusLength: 1024,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).publicKey
  const curve = generateKeyPairSync('ed25519', {
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).publicKey
  expect(() => readShellHubKey(secret)).toThrow('This is a private key')
  expect(() => readShellHubKey('nothing')).toThrow('This is no public key')
  for (const key of [small, curve]) expect(() => readShellHubKey(key)).toThrow('2048 bits or more')
  const inOtherForm = signing.publicKey.export({ type: 'pkcs1', format: 'pem' })
  expect(readShellHubKey(inOtherForm)).toEqual(readShellHubKey(pem))
})

describe('a token of a ShellHub whose key counts for one namespace', () => {
  let place: Place
  beforeAll(async () => {
    place = await startPlace()
    await trust(place)
  })
  afterAll(async () => {
    await place[Symbol.asyncDispose]()
  })
  const trust = async ({ rooms, clock }: Service): Promise<void> => {
    const added_at = new Date(clock.now()).toISOString()
    await rooms.stores.shellHubKeys.add({
      tenant_id: sample.tenant,
      fingerprint: 'f',
      public_key: pem,
      added_at,
    })
  }
  /** Of a device as an import leaves it: here, and never given a token. */
  const uid = sample.device

  test('opens a tunnel for a device of that namespace, at both doors', async () => {
    for (const door of ['/ssh/connection', '/agent/connection'])
      expect(await knock(place, await tokenFor(uid), door)).toBe(101)
    // Early tokens do not say the namespace.
    expect(await knock(place, await tokenFor(uid, { claims: { tenant: undefined } }))).toBe(101)
  })

  const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { uid, tenant: sample.tenant, claims: 'device' }

  test.each<[string, () => string | Promise<string>]>([
    ['another key', () => tokenFor(uid, { key: another })],
    [
      'the public key as a password (HS256)',
      () => {
        const text = `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded(claims)}`
        return `${text}.${createHmac('sha256', pem).update(text).digest('base64url')}`
      },
    ],
    ['nothing (alg none)', () => `${encoded({ alg: 'none', typ: 'JWT' })}.${encoded(claims)}.`],
    ['nothing, cut off', () => `${encoded({ alg: 'RS256', typ: 'JWT' })}.${encoded(claims)}.`],
    ['ShellHub’s key under another algorithm', () => tokenFor(uid, { header: { alg: 'PS256' } })],
  ])('is not made with %s', async (_, make) => {
    expect(await knock(place, await make())).toBe(401)
  })

  test('is no good for a device of another namespace, whichever it names', async () => {
    await place.rooms.stores.of(sample.otherTenant).devices.insert({
      ...(await place.rooms.stores
        .of(sample.tenant)
        .devices.find(uid)
        .then((row) => {
          const { id: _, tenant_id: __, ...rest } = row!
          return rest
        })),
      uid: 'd'.repeat(64),
    })
    for (const tenant of [sample.otherTenant, sample.tenant, undefined])
      expect(await knock(place, await tokenFor('d'.repeat(64), { claims: { tenant } }))).toBe(401)
    expect(await knock(place, await tokenFor(uid, { claims: { tenant: sample.otherTenant } }))).toBe(401)
  })

  test('is no good when it has ended, or is for no device that is here and welcome', async () => {
    expect(await knock(place, await tokenFor(uid, { claims: { exp: 1_700_000_100 } }))).toBe(401)
    expect(await knock(place, await tokenFor('e'.repeat(64)))).toBe(401)
    await place.owner.devices.setStatus({ params: { uid: sample.pendingDevice, status: 'reject' } })
    expect(await knock(place, await tokenFor(sample.pendingDevice))).toBe(401)
  })

  test('is nobody’s token but a device’s', async () => {
    const user = await tokenFor(uid, {
      claims: { claims: 'user', id: sample.owner.id, name: 'olga', ver: '1.1', mfa: false },
    })
    const mixed = await tokenFor(uid, { claims: { id: sample.owner.id, name: 'olga', ver: '1.1' } })
    expect(await knock(place, user)).toBe(401)
    for (const token of [user, mixed, await tokenFor(uid)]) {
      const asked = place.api({ token })
      await expect(asked.devices.list({ query: {} })).rejects.toMatchObject({ status: 401 })
      await expect(asked.users.refresh({})).rejects.toMatchObject({ status: 401 })
      await expect(asked.namespaces.get({ params: { tenant: sample.tenant } })).rejects.toMatchObject({
        status: 401,
      })
      await expect(asked.devices.offline({ params: { uid } })).rejects.toMatchObject({ status: 401 })
      await expect(asked.devices.remove({ params: { uid } })).rejects.toMatchObject({ status: 401 })
    }
  })

  test('asks for signatures, and gets none without a login', async () => {
    const body = { fingerprint: sample.fingerprint, data: '{"Username":"root","Namespace":"crane-1"}' }
    await expect(place.api({ token: await tokenFor(uid) }).devices.authSsh({ body })).rejects.toMatchObject({
      status: 404,
    })
    await expect(
      place.api({ token: await tokenFor(uid, { key: another }) }).devices.authSsh({ body }),
    ).rejects.toMatchObject({
      status: 401,
    })
  })

  test('is no good for a device that was first seen here', async () => {
    const device = await place.enrol({ hostname: 'late' })
    expect(await knock(place, await tokenFor(device.uid))).toBe(401)
  })

  test.each([1, 2] as const)(
    'is good until the agent (transport %i) has come with one of ours, whoever else asks for one',
    async (version) => {
      const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
      const public_key = createPublicKey(key).export({ type: 'pkcs1', format: 'pem' })
      const moved = await place.enrol({ hostname: `moved-${version}`, public_key })
      await place.rooms.stores.of(sample.tenant).devices.save(moved.uid, { token_at: null })
      const token = await tokenFor(moved.uid)
      expect(await knock(place, token)).toBe(101)
      // What Auth device remembers of it is dropped, as a restart would.
      place.rooms.bus.tell('device.changed', {
        uid: moved.uid,
        tenant_id: sample.tenant,
        status: 'accepted',
      } as never)
      // Whoever knows what the device is called gets a token for it, and opens a tunnel, without the device's
      // key.
      const { body } = await place.api().devices.auth({ body: moved.body })
      expect(await knock(place, body.token)).toBe(101)
      {
        await using impostor = await startOldAgent(place, { version, begun: body, tenant_id: sample.tenant })
        // It was asked for its key and had another one.
        await eventually(() => expect(impostor.seen.streams).toBeGreaterThan(0))
        expect(await knock(place, token)).toBe(101)
      }
      await using _ = await startOldAgent(place, { version, key, begun: body, tenant_id: sample.tenant })
      await renewed(place, moved.uid)
      expect(await knock(place, token)).toBe(401)
    },
  )

  test('is good for as many days as the setting says, after its key was added', async () => {
    await using days = await startPlace({ env: { HAWSER_SHELLHUB_TOKENS: '30' } })
    await trust(days)
    const device = await days.enrol({ hostname: 'late' })
    expect(await knock(days, await tokenFor(device.uid))).toBe(101)
    days.clock.forward(30 * 24 * 3_600_000)
    expect(await knock(days, await tokenFor(device.uid))).toBe(401)
    await using never = await startPlace({ env: { HAWSER_SHELLHUB_TOKENS: '0' } })
    await trust(never)
    expect(await knock(never, await tokenFor(uid))).toBe(401)
  })
})

// Auth device gives a device's token to whoever knows the device's public key and MAC address, which every
// member of its namespace can read. A stranger with such a token overwrote the device's facts, took it
// offline, changed the authentication status of its sessions, wrote frames into their recordings, and
// reported through a tunnel in its place. None of that counts without the private key. The device itself
// goes on as before: our agent, and ShellHub's, which prove the key in their tunnels.
import { generateKeyPairSync } from 'node:crypto'
import net from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { featuresHeader, reportProtocol, tunnelPaths } from '@hawser/contract/tunnel'
import { dialBytes, multistream, openMux } from '@hawser/mux'
import { connect, startSession } from '@hawser/ssh'
import { startAgent } from '../harness/agent.ts'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent, type OldAgent, type OldAgentOptions } from '../harness/old-agent.ts'
import { startPlace, type Place } from '../harness/place.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let place: Place
beforeAll(async () => {
  place = await startPlace({ env: { HAWSER_SSH_FAILURE_LIMIT: '0/60' } })
})
afterAll(() => place[Symbol.asyncDispose]())

const device = async (uid: string) => (await place.observer.devices.get({ params: { uid } })).body
const online = async (uid: string) => eventually(async () => expect((await device(uid)).online).toBe(true))
/** The device has proved its key, so that there is something to protect. */
const proved = async (uid: string) =>
  eventually(async () => {
    const row = await place.rooms.stores.of(sample.tenant).devices.find(uid)
    expect(row?.proved_token ?? '').not.toBe('')
  })

const forged = { id: 'evil', pretty_name: 'Forged OS', version: 'v0.0.1', arch: 'mips', platform: 'docker' }

/** Calls Auth device from elsewhere with nothing but what members can read; gives the stranger's client. */
async function impersonate(
  uid: string,
  more: object = {},
): Promise<{ readonly token: string; readonly client: Client }> {
  const { public_key, identity, tenant_id } = await device(uid)
  const response = await fetch(`${place.url}/api/devices/auth`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.66' },
    body: JSON.stringify({ info: forged, hostname: 'forged', identity, public_key, tenant_id, ...more }),
  })
  expect(response.status).toBe(200)
  const answer = (await response.json()) as { uid: string; token: string }
  expect(answer.uid).toBe(uid)
  return { token: answer.token, client: place.api({ token: answer.token }) }
}

let hosts = 0
const old = async (version: 1 | 2, more: Partial<OldAgentOptions> = {}): Promise<OldAgent> => {
  const agent = await startOldAgent(place, {
    version,
    tenant_id: sample.tenant,
    hostname: `winch-${++hosts}`,
    ...more,
  })
  await place.owner.devices.accept({ params: { uid: agent.uid } })
  return agent
}

/** A session through the gateway, with a terminal, which the gateway records, or without. */
async function session({ name, uid }: Pick<OldAgent, 'name' | 'uid'>, terminal: boolean) {
  const connection = await connect(net.connect(place.sshPort, '127.0.0.1'), {
    user: `pilot@${sample.namespace}.${name}`,
    proofs: [{ method: 'password', password: 'pilot' }],
    checkHostKey: () => true,
  })
  const pty = { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map() }
  await startSession(connection, {
    program: { type: 'exec', command: 'echo genuine; exec cat' },
    ...(terminal ? { pty } : {}),
  })
  const found = await eventually(async () => {
    const { body } = await place.owner.sessions.list({ query: { active: true, device_uid: uid } })
    const one = body.find(({ type }) => type === 'exec')
    expect(one?.recorded).toBe(terminal)
    return one!
  })
  return { uid: found.uid, [Symbol.asyncDispose]: async () => connection.end() }
}

const frame = (uid: string) => ({
  params: { uid },
  body: { uid, message: 'FORGED', width: 80, height: 24 },
})
const shown = async (uid: string): Promise<string> =>
  (await place.owner.sessions.play({ params: { uid } })).body.map(({ message }) => message).join('')
const sessionOf = async (uid: string) => (await place.observer.sessions.get({ params: { uid } })).body

/** Facts that a stranger must not change. */
const factsOf = async (uid: string) => {
  const { info, name, remote_addr, position, public_url, identity, status } = await device(uid)
  return { info, name, remote_addr, position, public_url, identity, status }
}

describe.each([1, 2] as const)('a ShellHub agent with tunnel version %s', (version) => {
  test('keeps the facts that it gave, and those of its next start count', async () => {
    const options = { hostname: `hoist-${version}`, agentVersion: 'v0.16.4' }
    const first = await old(version, options)
    const { uid } = first
    await proved(uid)
    const before = await factsOf(uid)
    const { token } = await impersonate(uid)
    expect(await factsOf(uid)).toEqual(before)
    // A tunnel with the stranger's token does not bring them in, either.
    const rogue = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    const begun = { uid, name: first.name, token }
    await using thief = await startOldAgent(place, {
      version,
      tenant_id: sample.tenant,
      key: rogue,
      begun,
    })
    await thief.lost
    expect(await factsOf(uid)).toEqual(before)
    await first[Symbol.asyncDispose]()
    await eventually(async () => expect((await device(uid)).online).toBe(false))
    await impersonate(uid)
    // Nobody but the device itself brings it online.
    expect((await device(uid)).online).toBe(false)
    await using second = await startOldAgent(place, {
      version,
      tenant_id: sample.tenant,
      ...options,
      agentVersion: 'v0.19.0',
    })
    expect(second.uid).toBe(uid)
    await eventually(async () => expect((await device(uid)).info.version).toBe('v0.19.0'))
    expect(await factsOf(uid)).toEqual({ ...before, info: { ...before.info, version: 'v0.19.0' } })
  })

  test('is not taken offline by a stranger, and may say itself that it is', async () => {
    await using agent = await old(version)
    await proved(agent.uid)
    await online(agent.uid)
    const { client } = await impersonate(agent.uid)
    await client.devices.offline({ params: { uid: agent.uid } })
    expect((await device(agent.uid)).online).toBe(true)
    await place.api({ token: agent.token }).devices.offline({ params: { uid: agent.uid } })
    expect((await device(agent.uid)).online).toBe(false)
  })

  test('writes only into sessions on its own tunnel that the gateway does not record', async () => {
    await using agent = await old(version)
    await using other = await old(version)
    await Promise.all([agent, other].map(({ uid }) => proved(uid)))
    const own = place.api({ token: agent.token })
    await using recorded = await session(agent, true)
    const bare = await session(other, false)
    const { client: stranger } = await impersonate(agent.uid)
    for (const { uid } of [recorded, bare])
      for (const client of [stranger, own]) {
        await expect(client.sessions.record(frame(uid))).rejects.toThrow()
        const change = client.sessions.setAuthenticated({ params: { uid }, body: { authenticated: false } })
        await expect(change).rejects.toThrow()
      }
    expect(await shown(recorded.uid)).not.toContain('FORGED')
    expect(await shown(bare.uid)).toBe('')
    for (const { uid } of [recorded, bare]) expect((await sessionOf(uid)).authenticated).toBe(true)

    const { client: next } = await impersonate(other.uid)
    const params = { uid: bare.uid }
    await expect(next.sessions.record(frame(bare.uid))).rejects.toMatchObject({ status: 404 })
    await expect(
      next.sessions.setAuthenticated({ params, body: { authenticated: false } }),
    ).rejects.toMatchObject({ status: 404 })
    const its = place.api({ token: other.token })
    for (let count = 0; count < 2; count++) await its.sessions.record(frame(bare.uid))
    expect(await shown(bare.uid)).toBe('FORGEDFORGED')
    await its.sessions.setAuthenticated({ params, body: { authenticated: true } })
    await bare[Symbol.asyncDispose]()
    await eventually(async () => expect((await sessionOf(bare.uid)).active).toBe(false))
    await expect(its.sessions.record(frame(bare.uid))).rejects.toMatchObject({ status: 404 })
    expect(await shown(bare.uid)).toBe('FORGEDFORGED')
  })

  test('has its token to itself: whoever asks next gets another', async () => {
    await using agent = await old(version)
    await proved(agent.uid)
    const { body: same } = await place.nobody.devices.auth({
      body: {
        info: (await device(agent.uid)).info,
        hostname: agent.name,
        identity: (await device(agent.uid)).identity,
        public_key: (await device(agent.uid)).public_key,
        tenant_id: sample.tenant,
      },
    })
    expect(same.token).not.toBe(agent.token)
    await place.api({ token: same.token }).devices.offline({ params: { uid: agent.uid } })
    expect((await device(agent.uid)).online).toBe(true)
  })
})

test('facts of a stranger who was there before the first tunnel give way to the device’s own', async () => {
  const hostname = 'capstan'
  const { privateKey: key } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const agent = await startOldAgent(place, { version: 2, tenant_id: sample.tenant, hostname, key })
  const { uid, token, name } = agent
  await agent[Symbol.asyncDispose]()
  await place.rooms.stores.of(sample.tenant).devices.save(uid, { proved_token: null })
  await impersonate(uid)
  expect((await device(uid)).info.pretty_name).toBe('Forged OS')
  const begun = { uid, token, name }
  await using back = await startOldAgent(place, {
    version: 2,
    tenant_id: sample.tenant,
    hostname,
    key,
    begun,
  })
  void back
  await eventually(async () => expect((await device(uid)).info.pretty_name).toBe('Debian'))
  expect((await device(uid)).remote_addr).toBe('127.0.0.1')
})

test('a stranger’s tunnel reports nothing, even while the device is away and never gave a signature', async () => {
  const agent = await old(1)
  const { uid } = agent
  await proved(uid)
  await agent[Symbol.asyncDispose]()
  await eventually(async () => expect((await device(uid)).online).toBe(false))
  const before = await factsOf(uid)
  const { token } = await impersonate(uid)
  const carrier = await dialBytes(`${place.url.replace('http', 'ws')}${tunnelPaths.streams}`, {
    headers: { authorization: `Bearer ${token}`, [featuresHeader]: 'report' },
  })
  const mux = openMux(carrier, { role: 'server' })
  void (async () => {
    // It says that it knows nothing of proofs, and has no SSH server, either.
    for await (const stream of mux.incoming) {
      stream.on('error', () => undefined)
      void multistream.negotiate(stream, ['/nothing/1.0.0']).catch(() => undefined)
    }
  })().catch(() => undefined)
  const reports = mux.open(multistream.propose(reportProtocol))
  reports.on('error', () => undefined)
  reports.write(`${JSON.stringify({ info: forged, hostname: 'forged', leaving: 'gone' })}\n`)
  await mux.ended
  expect(await factsOf(uid)).toEqual(before)
  expect((await device(uid)).online).toBe(false)
})

test('our own agent keeps its facts and its state', async () => {
  await using agent = await startAgent(place, { hostname: 'derrick' })
  const { uid } = agent
  await proved(uid)
  await online(uid)
  const before = await factsOf(uid)
  const row = () => place.rooms.stores.of(sample.tenant).devices.find(uid)
  const columns = await row()
  const report = { ability: 'self', build: 'b'.repeat(16), phase: 'trying' }
  const hawser = { ...forged, version: 'hawser-9.9.9' }
  const { client } = await impersonate(uid, { info: hawser, agent: report })
  await client.devices.offline({ params: { uid } })
  expect(await factsOf(uid)).toEqual(before)
  expect((await device(uid)).online).toBe(true)
  const { agent_build, update_phase } = (await row())!
  expect({ agent_build, update_phase }).toEqual({
    agent_build: columns?.agent_build,
    update_phase: columns?.update_phase,
  })
})

test('sessions that a stranger names in Auth device are not touched', async () => {
  await using agent = await old(2)
  await proved(agent.uid)
  await using live = await session(agent, false)
  const seen = async () =>
    (await place.rooms.stores.of(sample.tenant).sessions.find(live.uid))?.last_seen ?? ''
  const before = await seen()
  using _ = place.clock.stop()
  place.clock.forward(10_000)
  await impersonate(agent.uid, { sessions: [live.uid] })
  expect(await seen()).toBe(before)
})

// Updates of agents as the server decides them: what a device is told and when, whose turn it is, the waves of
// a namespace that updates by itself, what stops them, and what members of other roles and namespaces cannot
// do. Devices here are their calls of Auth device; the real agent updates itself in tests/clients.
import { createPublicKey, verify } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { AgentAnswer, AgentReport } from '@hawser/contract/agents'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { encodeFilter } from '@hawser/contract/filters'
import { endorsementText, releaseText } from '@hawser/contract/releases'
import { version } from '@hawser/contract/version'
import { buildOf, offerFakeAgent } from '../harness/agent-release.ts'
import { eventually } from '../harness/eventually.ts'
import { startService, type Service } from '../harness/service.ts'
import { oneDatabase } from '../harness/tier.ts'
import { buildWorld, type World } from '../harness/world.ts'

const [a, b, c] = ['a', 'b', 'c'].map(buildOf) as [string, string, string]
const hour_ms = 3_600_000

describe.each(oneDatabase)('on %s', (_, options) => {
  let [folder, service, world, owner]: [string, Service, World, Client] = [] as never
  beforeEach(async () => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-served-'))
    offerFakeAgent(folder, { build: a }, 'x64')
    const env = { HAWSER_AGENT_UPDATES: '3' }
    service = await startService({ ...(await options()), agents: folder, env })
    world = await buildWorld(service)
    owner = service.api({ token: await world.token('owner') })
    await decide()
  })
  afterEach(async () => {
    await service[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  const decide = () => service.rooms.updates.decide()
  /** A newer agent, which the server notices. */
  async function offer(build: string, arch = 'x64'): Promise<void> {
    offerFakeAgent(folder, { build }, arch)
    service.clock.forward(1000)
    await decide()
  }
  const key = () => service.rooms.releases.updateKey()

  /** What an agent says of itself; without a key it has pinned none. */
  type Said = Omit<AgentReport, 'key' | 'build'> & { key?: string | undefined; build?: string | undefined }
  /** What an agent sends and hears. */
  async function auth(name: string, report: Said = {}, tenant_id: string = sample.tenant) {
    const { body } = await service.api().devices.auth({
      body: {
        info: { id: 'debian', version: `hawser-${version}`, arch: 'amd64' },
        hostname: name,
        identity: { mac: name },
        public_key: `key of ${name}`,
        tenant_id,
        agent: JSON.parse(
          JSON.stringify({ build: a, ability: 'self', key: key(), ...report }),
        ) as AgentReport,
      },
    })
    return body
  }
  /** An accepted device, online as the database has it. */
  async function device(name: string, report: Said = {}): Promise<string> {
    const { uid } = await auth(name, report)
    await owner.devices.accept({ params: { uid } })
    await service.rooms.stores.presence.write([
      { uid, last_seen: new Date(service.clock.now()).toISOString(), online: true },
    ])
    return uid
  }
  const told = async (name: string, report: Said = {}): Promise<AgentAnswer | undefined> =>
    (await auth(name, report)).agent
  const agentOf = async (uid: string) => (await owner.devices.get({ params: { uid } })).body.agent
  const many = (count: number) => Array.from({ length: count }, (_unused, n) => `crane-${100 + n}`)
  const asked = async (names: readonly string[]): Promise<string[]> => {
    const found: string[] = []
    for (const name of names) if ((await told(name))?.request !== undefined) found.push(name)
    return found
  }
  /**
   * After the clock was moved, devices are online again when they have called, and the database knows it
   * within a second. `current` are those that run the new agent.
   */
  const soon = (current: readonly string[], check: () => Promise<void>): Promise<void> =>
    eventually(async () => {
      for (const name of current) await told(name, { build: b })
      await decide()
      await check()
    })
  const mode = (agent_updates: 'off' | 'manual' | 'automatic') =>
    owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings: { agent_updates } } })

  test('a device hears of an update when a member asked for it, with a statement that the key has signed', async () => {
    const uid = await device('crane')
    expect(await agentOf(uid)).toEqual({ build: a, state: 'current', reason: '', updates_itself: true })
    await offer(b)
    expect(await told('crane')).toEqual({ update_key: key() })
    expect(await agentOf(uid)).toMatchObject({ state: 'behind' })
    expect((await owner.agents.update({ body: { devices: [uid] } })).body).toEqual({ asked: 1 })
    expect(await agentOf(uid)).toMatchObject({ state: 'updating', reason: 'It waits for its turn.' })
    await decide()
    const { release, request } = (await told('crane')) ?? {}
    expect(request).toBeTypeOf('string')
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: key() }, format: 'jwk' })
    const text = Buffer.from(releaseText(release?.statement ?? ''))
    expect(verify(null, text, publicKey, Buffer.from(release?.signature ?? '', 'base64'))).toBe(true)
    const statement = JSON.parse(release?.statement ?? '') as Record<string, unknown>
    expect(statement).toMatchObject({ format: 1, version, build: b, arch: 'x64' })
    // It says what it does; the new one counts when it is connected.
    for (const [phase, reason] of [
      ['fetching', 'It is fetching the new agent.'],
      ['waiting', 'It waits until its sessions have ended.'],
    ] as const) {
      await told('crane', { phase })
      expect(await agentOf(uid)).toMatchObject({ state: 'updating', reason })
    }
    await told('crane', { build: b, phase: 'trying' })
    expect(await agentOf(uid)).toMatchObject({ build: b, state: 'updating' })
    expect((await told('crane', { build: b }))?.request).toBeUndefined()
    expect(await agentOf(uid)).toMatchObject({ build: b, state: 'current', reason: '' })
  })

  test('an agent of ShellHub hears nothing of updates, and its device has no such field', async () => {
    const answer = await fetch(`${service.url}/api/devices/auth`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        info: { id: 'debian', pretty_name: 'Debian', version: 'v0.16.4', arch: 'amd64', platform: 'native' },
        identity: { mac: '02:00:00:00:00:01' },
        public_key: 'key',
        tenant_id: sample.tenant,
      }),
    })
    const body = (await answer.json()) as { uid: string }
    expect(Object.keys(body).toSorted()).toEqual(['name', 'namespace', 'status', 'token', 'uid'])
    expect(await agentOf(body.uid)).toBeUndefined()
  })

  test('a failure is shown with its reason, and only another request tries again', async () => {
    const uid = await device('crane')
    await offer(b)
    await owner.agents.update({ body: { all: true } })
    await decide()
    const { request = '' } = (await told('crane')) ?? {}
    const failed = { build: b, request, reason: 'the disk is too full' }
    await told('crane', { failed })
    expect(await agentOf(uid)).toMatchObject({ state: 'failed', reason: 'the disk is too full' })
    await decide()
    expect((await told('crane', { failed }))?.request).toBeUndefined()
    expect((await owner.agents.update({ body: { all: true } })).body).toEqual({ asked: 1 })
    service.clock.forward(1000)
    await decide()
    // It still reports the old failure, which no longer counts.
    expect((await told('crane', { failed }))?.request).not.toBe(request)
    expect(await agentOf(uid)).toMatchObject({ state: 'updating' })
  })

  test('devices take turns: no more fetch at once than the setting says', async () => {
    const names = many(8)
    for (const name of names) await device(name)
    await offer(b)
    expect((await owner.agents.update({ body: { all: true } })).body).toEqual({ asked: 8 })
    for (let n = 0; n < 3; n += 1) await decide()
    const first = await asked(names)
    expect(first).toHaveLength(3)
    // One waits for its sessions, one is done, one is silent for an hour: three others follow.
    await told(first[0] ?? '', { phase: 'waiting' })
    await told(first[1] ?? '', { build: b })
    await decide()
    const rest = names.filter((name) => !first.includes(name))
    expect(await asked(rest)).toHaveLength(2)
    service.clock.forward(hour_ms + 1000)
    await soon([], async () => expect(await asked(rest)).toHaveLength(5))
    // Nobody hears of it for ever: after two days it has failed.
    service.clock.forward(48 * hour_ms)
    await decide()
    expect((await owner.agents.get({})).body.devices).toEqual({
      current: 1,
      behind: 0,
      updating: 0,
      failed: 7,
    })
  })

  test('a namespace that holds its share of the places lets others go first', async () => {
    const names = many(6)
    for (const name of names) await device(name)
    const stranger = service.api({ token: await world.token('stranger') })
    const { uid } = await auth('barge', {}, sample.otherTenant)
    await stranger.devices.accept({ params: { uid } })
    await service.rooms.stores.presence.write([
      { uid, last_seen: new Date(service.clock.now()).toISOString(), online: true },
    ])
    await offer(b)
    await owner.agents.update({ body: { all: true } })
    await decide()
    const first = await asked(names)
    expect(first).toHaveLength(3)
    // It asks later than three others, which wait already.
    service.clock.forward(1000)
    expect((await stranger.agents.update({ body: { all: true } })).body).toEqual({ asked: 1 })
    await told(first[0] ?? '', { build: b })
    await decide()
    expect((await auth('barge', {}, sample.otherTenant)).agent?.request).toBeTypeOf('string')
    expect(await asked(names)).toHaveLength(2)
    // Who is alone has all places.
    await auth('barge', { build: b }, sample.otherTenant)
    await decide()
    expect(await asked(names)).toHaveLength(3)
  })

  test('automatic: one device, then a quarter when that came back, then all', async () => {
    const names = many(16)
    for (const name of names) await device(name)
    await mode('automatic')
    await offer(b)
    const step = async (): Promise<void> => {
      for (let n = 0; n < 4; n += 1) await decide()
    }
    await step()
    const first = await asked(names)
    expect(first).toHaveLength(1)
    for (const name of first) await told(name, { build: b, phase: 'trying' })
    service.clock.forward(hour_ms)
    await step()
    // It has not connected yet.
    expect(await asked(names.filter((name) => !first.includes(name)))).toEqual([])
    let second: string[] = []
    await soon(first, async () => {
      second = await asked(names.filter((name) => !first.includes(name)))
      expect(second).toHaveLength(3)
    })
    expect((await owner.agents.get({})).body.wave).toEqual({ share: 0.25, stopped: '' })
    for (const name of second) await told(name, { build: b })
    await step()
    const left = names.filter((name) => ![...first, ...second].includes(name))
    expect(await asked(left)).toEqual([])
    // The second wave is watched for half an hour, too.
    service.clock.forward(hour_ms / 2)
    await soon([...first, ...second], async () => expect(await asked(left)).toHaveLength(3))
    const done = new Set<string>()
    await soon([...first, ...second], async () => {
      for (const name of await asked(left.filter((each) => !done.has(each)))) {
        done.add(name)
        await told(name, { build: b })
      }
      expect(done.size).toBe(12)
    })
    await decide()
    expect((await owner.agents.get({})).body).toMatchObject({
      devices: { current: 16, behind: 0 },
      wave: null,
    })
  })

  test('automatic: one that rolled back stops it, until somebody has seen to it', async () => {
    const names = many(20)
    for (const name of names) await device(name)
    await mode('automatic')
    await offer(b)
    await decide()
    await decide()
    const [first = ''] = await asked(names)
    const request = (await told(first))?.request ?? ''
    await told(first, { failed: { build: b, request, reason: 'it ended 3 times' } })
    service.clock.forward(hour_ms)
    for (let n = 0; n < 3; n += 1) await decide()
    expect(await asked(names)).toEqual([])
    expect((await owner.agents.get({})).body.wave).toEqual({
      share: 0.05,
      stopped: '1 of 20 devices could not be updated.',
    })
    expect(service.log()).toContain('updates.stopped')
    const { uid } = await auth(first)
    await owner.agents.update({ body: { devices: [uid] } })
    await soon([], async () => expect(await asked(names)).toEqual([first]))
    await told(first, { build: b })
    await decide()
    expect((await owner.agents.get({})).body.wave).toMatchObject({ stopped: '' })
  })

  test('automatic: devices that went offline after they were updated stop the next wave', async () => {
    const names = many(4)
    for (const name of names) await device(name)
    await mode('automatic')
    await offer(b)
    await decide()
    await decide()
    const [first = ''] = await asked(names)
    const { uid } = await auth(first, { build: b })
    await service.rooms.stores.presence.markOffline(uid)
    service.clock.forward(hour_ms)
    await service.rooms.stores.presence.markOffline(uid)
    for (let n = 0; n < 3; n += 1) await decide()
    expect(await asked(names.filter((name) => name !== first))).toEqual([])
  })

  test('off: nothing is asked for, and what was asked for ends', async () => {
    const uid = await device('crane')
    await offer(b)
    await owner.agents.update({ body: { all: true } })
    await decide()
    await mode('off')
    expect((await told('crane'))?.request).toBeUndefined()
    expect(await agentOf(uid)).toMatchObject({ state: 'behind' })
    const refused = await owner.agents.update({ body: { all: true } }).catch((error: unknown) => error)
    expect(refused).toMatchObject({ status: 409, message: 'Updates of agents are off in this namespace.' })
    const { body } = await owner.namespaces.get({ params: { tenant: sample.tenant } })
    expect(body.settings.agent_updates).toBe('off')
  })

  test('who cannot update itself is not asked, and what to do is said', async () => {
    const uids: Record<string, string> = {}
    for (const ability of ['package', 'not-installed', 'not-root', 'read-only'] as const)
      uids[ability] = await device(ability, { ability })
    uids['other-key'] = await device('other-key', { key: 'A'.repeat(43) })
    uids['arm'] = (await auth('arm')).uid
    await offer(b)
    expect((await owner.agents.update({ body: { all: true } })).body).toEqual({ asked: 0 })
    for (const [name, sentence] of [
      ['package', /npm/],
      ['not-installed', /install\.sh/],
      ['not-root', /root/],
      ['read-only', /read-only/],
      ['other-key', /another server/],
    ] as const)
      expect(await agentOf(uids[name] ?? '')).toMatchObject({
        state: 'behind',
        updates_itself: false,
        reason: expect.stringMatching(sentence) as string,
      })
  })

  test('the list of devices finds the outdated ones: those that are behind, updating or failed', async () => {
    await device('current', { build: b })
    await device('sources', { build: undefined, ability: 'package' })
    await device('old')
    await device('packaged', { ability: 'package' })
    await device('asked')
    const outdated = async (value: boolean) => {
      const params = { name: 'agent.outdated', operator: 'eq', value } as const
      const query = { per_page: 100, filter: encodeFilter([{ type: 'property', params }]) }
      return (await owner.devices.list({ query })).body.map(({ name }) => name).toSorted()
    }
    expect(await outdated(true)).toEqual(['current'])
    await offer(b)
    await owner.agents.update({ body: { devices: [(await auth('asked')).uid] } })
    expect(await outdated(true)).toEqual(['asked', 'old', 'packaged'])
    expect(await outdated(false)).toEqual(expect.arrayContaining(['current', 'sources']))
    // It agrees with what each device shows.
    const { body } = await owner.devices.list({ query: { per_page: 100 } })
    const shown = body.filter(({ agent }) => ['behind', 'updating', 'failed'].includes(agent?.state ?? ''))
    expect(shown.map(({ name }) => name).toSorted()).toEqual(await outdated(true))
  })

  test('an agent that runs from sources of the same version is not called old', async () => {
    const uid = (await auth('crane', { build: undefined, ability: 'package' })).uid
    await owner.devices.accept({ params: { uid } })
    await offer(b)
    expect(await agentOf(uid)).toMatchObject({ build: '', state: 'unknown', reason: '' })
  })

  test('a pending or rejected device is told nothing, whoever asked before', async () => {
    const uid = await device('crane')
    const pending = await auth('buoy')
    await offer(b)
    expect((await owner.agents.update({ body: { devices: [uid, pending.uid] } })).body).toEqual({ asked: 1 })
    await decide()
    await owner.devices.setStatus({ params: { uid, status: 'pending' } })
    expect((await told('crane'))?.request).toBeUndefined()
  })

  test('another namespace’s devices are not asked, and its reports change nothing here', async () => {
    const uid = await device('crane')
    await offer(b)
    const stranger = service.api({ token: await world.token('stranger') })
    expect((await stranger.agents.update({ body: { devices: [uid] } })).body).toEqual({ asked: 0 })
    expect((await stranger.agents.update({ body: { all: true } })).body).toEqual({ asked: 0 })
    // The same machine, as it may say itself, in another namespace.
    await auth('crane', { failed: { build: b, request: '', reason: 'a lie' } }, sample.otherTenant)
    expect(await agentOf(uid)).toMatchObject({ state: 'behind', reason: '' })
    expect((await stranger.agents.get({})).body.devices).toEqual({
      current: 0,
      behind: 0,
      updating: 0,
      failed: 0,
    })
  })

  test('asking again and again changes nothing more, and is limited', async () => {
    await device('crane')
    await offer(b)
    const answers: unknown[] = []
    for (let n = 0; n < 25; n += 1)
      answers.push(
        await owner.agents.update({ body: { all: true } }).then(
          ({ body }) => body.asked,
          (error: { status: number }) => error.status,
        ),
      )
    expect(answers.slice(0, 2)).toEqual([1, 0])
    expect(answers.at(-1)).toBe(429)
  })

  test('a newer release takes the place of the one that was asked for', async () => {
    const uid = await device('crane')
    await offer(b)
    await owner.agents.update({ body: { all: true } })
    await decide()
    await offer(c)
    await decide()
    const { release } = (await told('crane')) ?? {}
    expect(JSON.parse(release?.statement ?? '{}')).toMatchObject({ build: c })
    expect(await agentOf(uid)).toMatchObject({ state: 'updating' })
  })

  test('a server that went back to an older agent takes no device back, and says so', async () => {
    const uid = await device('crane')
    await offer(b)
    await told('crane', { build: b })
    const before = service.rooms.releases.offered()?.released_at ?? ''
    await offer(a)
    expect((service.rooms.releases.offered()?.released_at ?? '') < before).toBe(true)
    expect(await agentOf(uid)).toMatchObject({ state: 'current', reason: /newer/ })
    const refused = await owner.agents.update({ body: { all: true } }).catch((error: unknown) => error)
    expect(refused).toMatchObject({ status: 409 })
    await mode('automatic')
    await decide()
    expect((await told('crane', { build: b }))?.request).toBeUndefined()
  })

  test('the key stays the same, and a new one is endorsed by it', async () => {
    const before = key()
    expect((await told('crane', { key: undefined }))?.release).toBeDefined()
    const after = await service.rooms.releases.rotate()
    await decide()
    const answer = await told('crane', { key: before })
    expect(answer?.update_key).toBe(after)
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: before }, format: 'jwk' })
    const [endorsement] = answer?.endorsements ?? []
    expect(endorsement?.key).toBe(after)
    expect(
      verify(
        null,
        Buffer.from(endorsementText(before, after)),
        publicKey,
        Buffer.from(endorsement?.signature ?? '', 'base64'),
      ),
    ).toBe(true)
    expect((await told('crane', { key: after }))?.endorsements).toBeUndefined()
    const rows = await service.rooms.stores.updateKeys.list()
    expect(rows.map((row) => row.private_key).join('')).not.toContain('PRIVATE')
  })

  test('an archive is given by its hash, whole or from where it was interrupted', async () => {
    await device('crane')
    const address = `${service.url}/agent/hawser-agent-linux-x64.tar.gz`
    const whole = Buffer.from(await (await fetch(address)).arrayBuffer())
    const sha256 = service.rooms.archives.sha256Of('x64')
    expect((await fetch(`${address}?sha256=${'0'.repeat(64)}`)).status).toBe(404)
    const rest = await fetch(`${address}?sha256=${sha256}`, { headers: { range: 'bytes=100-' } })
    expect([rest.status, rest.headers.get('content-range')]).toEqual([
      206,
      `bytes 100-${whole.length - 1}/${whole.length}`,
    ])
    expect(Buffer.from(await rest.arrayBuffer()).equals(whole.subarray(100))).toBe(true)
    for (const range of ['bytes=5-7', 'bytes=-5', `bytes=${whole.length}-`, 'lines=1-'])
      expect((await fetch(address, { headers: { range } })).status).toBe(200)
  })

  test('HEAD says how large an archive is, and reads nothing of it', async () => {
    const large_bytes = 64 * 1024 * 1024
    const archive = offerFakeAgent(folder, { build: b }, 'arm64')
    await decide()
    truncateSync(archive, large_bytes)
    const read_bytes = (): number =>
      Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1] ?? Number.NaN)
    const before_bytes = read_bytes()
    for (let turn = 0; turn < 5; turn += 1) {
      const answer = await fetch(`${service.url}/agent/${path.basename(archive)}`, { method: 'HEAD' })
      expect([answer.status, answer.headers.get('content-length')]).toEqual([200, String(large_bytes)])
    }
    // A whole archive takes no longer.
    await (await fetch(`${service.url}/agent/${path.basename(archive)}`)).arrayBuffer()
    expect(read_bytes() - before_bytes).toBeLessThan(3 * large_bytes)
  })
})

// A stranger with a token of Auth device, and without the device's key, wrote evidence: four dials while the
// device was connected marked it as one of two machines with the same identity, in the audit log, too; and one
// dial while it was away showed it as online, with a line of its timeline that it had connected from the
// stranger's address. Only a tunnel that has proved the key counts, where the key was ever proved.
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent, type OldAgent } from '../harness/old-agent.ts'
import { startPlace, type Place } from '../harness/place.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let place: Place
beforeAll(async () => {
  place = await startPlace()
})
afterAll(() => place[Symbol.asyncDispose]())

const stranger = '203.0.113.66'
const otherKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const device = async (uid: string) => (await place.observer.devices.get({ params: { uid } })).body
const timeline = async (uid: string) =>
  (await place.observer.devices.timeline({ params: { uid }, query: {} })).body.events
const conflictsIn = async (uid: string) =>
  (await place.owner.audit.list({ query: { action: 'device.conflict' } })).body.entries.filter(
    ({ target }) => target.id === uid,
  )

let hosts = 0
async function proved(version: 1 | 2): Promise<OldAgent> {
  const agent = await startOldAgent(place, {
    version,
    tenant_id: sample.tenant,
    hostname: `davit-${++hosts}`,
  })
  await place.owner.devices.accept({ params: { uid: agent.uid } })
  await eventually(async () => {
    const row = await place.rooms.stores.of(sample.tenant).devices.find(agent.uid)
    expect(row?.proved_token ?? '').not.toBe('')
  })
  return agent
}

/** A token for somebody else's device, by what every member can read of it. */
async function tokenFor(uid: string): Promise<string> {
  const { public_key, identity, tenant_id, info, name } = await device(uid)
  const response = await fetch(`${place.url}/api/devices/auth`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': stranger },
    body: JSON.stringify({ info, hostname: name, identity, public_key, tenant_id }),
  })
  expect(response.status).toBe(200)
  return ((await response.json()) as { token: string }).token
}

/** Opens a tunnel with a token, and an SSH server with another key; resolves when the server has closed it. */
async function intrude({ uid, name }: OldAgent, version: 1 | 2, token: string): Promise<void> {
  const begun = { uid, name, token }
  await using thief = await startOldAgent(place, {
    version,
    tenant_id: sample.tenant,
    key: otherKey,
    begun,
    source: stranger,
  })
  await thief.lost
}

describe.each([1, 2] as const)('tunnel version %i', (version) => {
  test('dials without the key mark no device as one of two machines', async () => {
    await using agent = await proved(version)
    const { uid } = agent
    const token = await tokenFor(uid)
    const own = place.reach.tunnels.find(uid)
    for (let count = 0; count < 6; count += 1) await intrude(agent, version, token)
    await place.rooms.background.settled()
    expect((await device(uid)).conflict).toBeUndefined()
    expect((await timeline(uid)).map(({ kind }) => kind)).not.toContain('conflict')
    expect(await conflictsIn(uid)).toEqual([])
    expect(place.log()).not.toContain('"event":"device.conflict"')
    expect(place.reach.tunnels.find(uid)).toBe(own)
  })

  test('a dial without the key brings no device online that is away, and the device itself comes back', async () => {
    const agent = await proved(version)
    const { uid, key, name, token: its } = agent
    await agent[Symbol.asyncDispose]()
    await eventually(async () => expect((await device(uid)).online).toBe(false))
    const ups = async () => (await timeline(uid)).filter(({ kind }) => kind === 'connected').length
    await eventually(async () => expect(await ups()).toBe(1))
    const opened = place.reach.tunnelCounts.opened.of('')
    await intrude(agent, version, await tokenFor(uid))
    await place.rooms.background.settled()
    expect(place.reach.tunnelCounts.opened.of('')).toBe(opened)
    expect((await device(uid)).online).toBe(false)
    expect(await ups()).toBe(1)
    expect(JSON.stringify(await timeline(uid))).not.toContain(stranger)
    const begun = { uid, name, token: its }
    await using back = await startOldAgent(place, { version, tenant_id: sample.tenant, key, begun })
    void back
    await eventually(async () => expect((await device(uid)).online).toBe(true))
    await eventually(async () => expect(await ups()).toBe(2))
  })
})

test('two machines with the key are still reported, a stranger between them is not', async () => {
  const options = { version: 2, tenant_id: sample.tenant, hostname: 'twin', retry_ms: 200 } as const
  await using one = await startOldAgent(place, options)
  const { uid } = one
  await eventually(async () => {
    const row = await place.rooms.stores.of(sample.tenant).devices.find(uid)
    expect(row?.proved_token ?? '').not.toBe('')
  })
  await using two = await startOldAgent(place, { ...options, key: one.key })
  expect(two.uid).toBe(uid)
  await eventually(async () => expect((await device(uid)).conflict).toBeDefined())
  await intrude(one, 2, await tokenFor(uid))
  await place.rooms.background.settled()
  expect((await device(uid)).conflict?.addresses).toEqual(['127.0.0.1', '127.0.0.1'])
})

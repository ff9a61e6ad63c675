// The timeline of a device, and why it is offline, as real agents and their links make it: stopped, killed, cut off
// and back again. What both ends saw of a loss is there. Observers see it, other namespaces do not.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Client } from '@hawser/contract/client'
import type { TimelineEvent } from '@hawser/contract/timeline'
import { openDesk } from '../../cli/test/program.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { eventually, longestWait_ms, until } from '../harness/eventually.ts'
import { startLink, type Link } from '../harness/link.ts'
import { startOldAgent } from '../harness/old-agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let service: Service
let world: World
let link: Link
let agent: Agent
let observer: Client
let operator: Client
beforeAll(async () => {
  service = await startService()
  world = await buildWorld(service)
  link = await startLink({ port: Number(new URL(service.url).port) })
  observer = service.api({ token: await world.token('observer') })
  operator = service.api({ token: await world.token('operator') })
  agent = await startAgent(
    {
      url: `http://127.0.0.1:${link.port}`,
      tenant_id: sample.tenant,
      accept: (uid) => operator.devices.accept({ params: { uid } }),
    },
    { hostname: 'remote' },
  )
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await link[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const events = async (uid = agent.uid): Promise<TimelineEvent[]> =>
  (await observer.devices.timeline({ params: { uid }, query: {} })).body.events
const kinds = async (uid?: string) => (await events(uid)).map(({ kind }) => kind)
const shown = async (uid = agent.uid) => (await observer.devices.get({ params: { uid } })).body
/** Why the device is offline, which is known a moment after it is. */
const offline = (uid?: string) =>
  eventually(async () => {
    const { online, offline_reason } = await shown(uid)
    expect(online).toBe(false)
    expect(offline_reason).toBeDefined()
    return offline_reason
  })
const moment = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`

test('a device that connects and is accepted: from where, how fast, and no reason to be offline', async () => {
  await eventually(async () => expect(await kinds()).toContain('round-trip'))
  const found = await events()
  expect(found.at(-1)).toMatchObject({ kind: 'connected', sentence: 'It connected from 127.0.0.1.' })
  expect(found.at(-1)?.parts).toEqual([{ name: 'connected-from', values: { address: '127.0.0.1' } }])
  expect(found.find(({ kind }) => kind === 'status')).toMatchObject({ sentence: 'It is accepted now.' })
  expect(found.find(({ kind }) => kind === 'round-trip')?.milliseconds).toBeGreaterThanOrEqual(0)
  expect(found.map(({ kind }) => kind)).not.toContain('clock')
  expect(await shown()).not.toHaveProperty('offline_reason')
})

test('a cut link: the server says so at once, and the agent says what it saw when it is back', async () => {
  link.refuse(true)
  link.cut()
  expect(await offline()).toMatch(
    new RegExp(`^Its connection broke at ${moment}: its network was cut, or its agent was killed\\.$`),
  )
  const back = agent.logged('tunnel.up')
  link.refuse(false)
  await back
  await eventually(async () => expect(await kinds()).toContain('loss'))
  const found = await events()
  expect(found.find(({ kind }) => kind === 'disconnected')).toMatchObject({ reason: 'lost' })
  expect(found.find(({ kind }) => kind === 'loss')?.sentence).toMatch(
    new RegExp(`^Its agent reports how it lost the connection at ${moment}: `),
  )
  expect(found.map(({ kind }) => kind)).not.toContain('reboot')
  expect(await shown()).not.toHaveProperty('offline_reason')
})

test('a link that goes silent: since when its network is gone, and after how long that was noticed', async () => {
  await using silent = await startAgent(
    { url: `http://127.0.0.1:${link.port}`, rooms: service.rooms },
    { hostname: 'silent' },
  )
  const tunnel = await until(() => service.reach.tunnels.find(silent.uid))
  link.silence()
  service.clock.forward(40_000)
  // As somebody does who waits for the device in vain.
  await eventually(
    () => {
      tunnel.check?.()
      expect(service.reach.tunnels.find(silent.uid)).toBeUndefined()
    },
    longestWait_ms,
    500,
  )
  link.resume()
  expect(await offline(silent.uid)).toMatch(
    new RegExp(`^Its network has been gone since ${moment}; the server noticed after [45]\\d s\\.$`),
  )
  const [down] = (await events(silent.uid)).filter(({ kind }) => kind === 'disconnected')
  expect(down?.sentence).toMatch(/^Its network was gone: the server had not heard it for [45]\d s\. /)
})

test('a name, and the command line', async () => {
  await operator.devices.update({ params: { uid: agent.uid }, body: { name: 'davit' } })
  expect((await events())[0]).toMatchObject({
    kind: 'renamed',
    sentence: 'It was renamed from remote to davit.',
  })
  using desk = openDesk({ HAWSER_SERVER: service.url, HAWSER_API_KEY: sample.apiKey })
  const said = await desk.hawser(['devices', 'timeline', 'davit', '--limit', '2'])
  expect(said.code, said.stderr).toBe(0)
  expect(said.stdout).toMatch(
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}It was renamed from remote to davit\.\n.*\n$/,
  )
  expect(said.stderr).toBe('davit is online.\n')
})

test('an agent that is stopped says goodbye; one that is killed cannot', async () => {
  await using stopped = await startAgent(service, { hostname: 'stopped' })
  stopped.kill('SIGTERM')
  expect(await stopped.ended).toBe(0)
  expect(await offline(stopped.uid)).toMatch(new RegExp(`^Its agent was stopped at ${moment}\\.$`))
  expect((await kinds(stopped.uid)).slice(0, 2).toSorted()).toEqual(['disconnected', 'leaving'])
  await using killed = await startAgent(service, { hostname: 'killed' })
  killed.kill('SIGKILL')
  expect(await offline(killed.uid)).toMatch(/^Its connection broke at /)
  using desk = openDesk({ HAWSER_SERVER: service.url, HAWSER_API_KEY: sample.apiKey })
  const why = await desk.hawser(['why', 'root@stopped'])
  expect(why.code).toBe(1)
  expect(why.stderr).toMatch(
    new RegExp(`^Refused: stopped is offline\\. Its agent was stopped at ${moment}\\.`),
  )
})

test.each([1, 2] as const)('an agent of the field, version %i, has its timeline, too', async (version) => {
  const options = { version, tenant_id: sample.tenant, hostname: `field-${version}` } as const
  let uid = ''
  {
    await using old = await startOldAgent(service, options)
    ;({ uid } = old)
    await eventually(async () => expect(await kinds(uid)).toContain('connected'))
  }
  expect(await offline(uid)).toMatch(/^Its (connection broke|agent closed the connection) at /)
})

test('the timeline outlives the server, which says that it stopped', async () => {
  await using first = await startService()
  const one = await buildWorld(first)
  const api = first.api({ token: await one.token('observer') })
  await using device = await startAgent(first)
  await first.reach.stop()
  await eventually(async () => {
    const { body } = await api.devices.timeline({ params: { uid: device.uid }, query: {} })
    expect(body.events[0]).toMatchObject({ kind: 'disconnected', reason: 'stopping' })
  })
  await first.rooms.timeline.flush()
  const rows = await first.rooms.stores.of(sample.tenant).timeline.newest(device.uid, 1)
  expect(rows).toMatchObject([{ kind: 'down' }])
})

test('other namespaces, and limits beyond what is kept, are refused', async () => {
  const stranger = service.api({ token: await world.token('stranger') })
  const { uid } = agent
  await expect(stranger.devices.timeline({ params: { uid }, query: {} })).rejects.toMatchObject({
    status: 404,
  })
  for (const limit of [0, 1_501, -1, 1.5])
    await expect(observer.devices.timeline({ params: { uid }, query: { limit } })).rejects.toMatchObject({
      status: 400,
    })
})

// What whoever runs the server reads about tunnels: a line when one is the device's, with its source and its
// kind, and a line when it ends, with the reason. A device whose tunnel flaps does not fill the log.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { eventually, until } from '../harness/eventually.ts'
import { startOldAgent, type OldAgentOptions } from '../harness/old-agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'
import type { Line } from './program.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let service: Service
let world: World
beforeAll(async () => {
  service = await startService({ env: { HAWSER_LOG: 'info' } })
  world = await buildWorld(service)
})
afterAll(async () => service[Symbol.asyncDispose]())

const linesOf = (device: string): Line[] =>
  service
    .log()
    .split('\n')
    .filter((line) => line.includes('"event":"tunnel.') && line.includes(device))
    .map((line) => JSON.parse(line) as Line)

/** The lines about the device, once there are so many. */
const lines = async (device: string, count: number): Promise<Line[]> =>
  eventually(() => {
    const found = linesOf(device)
    expect(found).toHaveLength(count)
    return found
  })

const closed = (reason: string): number =>
  service.reach.tunnelCounts.closed.of(reason as Parameters<typeof service.reach.tunnelCounts.closed.of>[0])

let last = 0
const start = (change: Partial<OldAgentOptions> & Pick<OldAgentOptions, 'version'>) =>
  startOldAgent(service, { tenant_id: sample.tenant, hostname: `buoy-${(last += 1)}`, ...change })

test.each([1, 2] as const)('a version %d tunnel comes and is lost', async (version) => {
  const before = closed('lost')
  await using agent = await start({ version })
  expect(await lines(agent.uid, 1)).toMatchObject([
    {
      event: 'tunnel.opened',
      via: `v${version}`,
      source: '127.0.0.1',
      device: agent.uid,
      tenant_id: sample.tenant,
    },
  ])
  agent.cut()
  const [, gone] = await lines(agent.uid, 2)
  expect(gone).toMatchObject({
    event: 'tunnel.closed',
    reason: 'lost',
    lasted_s: expect.any(Number) as number,
  })
  expect(closed('lost')).toBe(before + 1)
})

test('a device that is removed loses its tunnel, and the line says that nobody else ended it', async () => {
  await using agent = await start({ version: 2 })
  await lines(agent.uid, 1)
  await service.api({ token: await world.token('owner') }).devices.remove({ params: { uid: agent.uid } })
  const [, gone] = await lines(agent.uid, 2)
  expect(gone).toMatchObject({ event: 'tunnel.closed', reason: 'revoked' })
})

test('a newer tunnel of the same device replaces the older one', async () => {
  await using agent = await start({ version: 2, hostname: 'twin' })
  await lines(agent.uid, 1)
  await using twin = await start({ version: 2, hostname: 'twin', key: agent.key })
  expect(twin.uid).toBe(agent.uid)
  const found = await lines(agent.uid, 3)
  expect(found.map(({ event, reason }) => [event, reason])).toEqual(
    expect.arrayContaining([
      ['tunnel.opened', undefined],
      ['tunnel.opened', undefined],
      ['tunnel.closed', 'replaced'],
    ]),
  )
})

test('a device whose tunnel flaps gets ten lines in a minute; every tunnel is counted', async () => {
  const before = service.reach.tunnelCounts.opened.of('')
  await using first = await start({ version: 2, hostname: 'flapping' })
  let agent = first
  for (let flap = 0; flap < 8; flap += 1) {
    agent.cut()
    await agent.lost
    await until(() => service.reach.tunnels.find(first.uid) === undefined)
    agent = await start({ version: 2, hostname: 'flapping', key: first.key })
  }
  agent.cut()
  await until(() => service.reach.tunnels.find(first.uid) === undefined)
  expect(service.reach.tunnelCounts.opened.of('')).toBe(before + 9)
  expect(await lines(first.uid, 10)).toHaveLength(10)
})

test('a server that stops lets its tunnels go, and says so', async () => {
  const other = await startService({ env: { HAWSER_LOG: 'info' } })
  await buildWorld(other)
  const agent = await startOldAgent(other, { version: 2, tenant_id: sample.tenant })
  await until(() => other.reach.tunnels.size === 1)
  await other[Symbol.asyncDispose]()
  await agent[Symbol.asyncDispose]()
  expect(other.log()).toMatch(/"event":"tunnel.closed".*"reason":"stopping"/)
})

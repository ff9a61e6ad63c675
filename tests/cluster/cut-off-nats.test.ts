// A node that is cut off from the others while agents come back to it. It cannot ask whether another node has
// a device's tunnel. It lets agents in all the same, and its log has no line for each.
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent } from '../harness/old-agent.ts'
import { startCluster } from './cluster.ts'

vi.setConfig({ testTimeout: 60_000 })

test('agents that come while NATS is away are let in, and fill no log', async () => {
  await using cluster = await startCluster(1)
  const [node] = cluster.nodes
  if (!node) throw new Error('there is no node')
  await cluster.nats.stop()
  await eventually(() => expect(node.rooms.bus.connected).toBe(false))
  await using agents = new AsyncDisposableStack()
  for (const hostname of ['gaff', 'boom', 'yard'])
    agents.use(await startOldAgent(node, { version: 2, tenant_id: sample.tenant, hostname }))
  await eventually(() => expect(node.reach.tunnels.size).toBe(3))
  const lines = node.log().split('\n')
  expect(lines.filter((line) => line.includes('node.unsought'))).toEqual([])
})

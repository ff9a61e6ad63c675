// Audit streams on two nodes: one of them delivers a stream at a time, and when it is killed in the middle of
// a batch the other one goes on, without a gap and in order.
import { sample } from '@hawser/contract/examples'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { theServer } from '../../server/src/domain/audit/audit.ts'
import { eventually } from '../harness/eventually.ts'
import { receiverCa, startWebhook, type TestWebhook } from '../harness/receivers.ts'
import { startCluster, type Cluster } from './cluster.ts'
import { startNode, type Node } from './node.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const opened = new AsyncDisposableStack()
let cluster: Cluster
let other: Node
let webhook: TestWebhook
let secret = ''
let uid = ''
let first = 0

/** For what may take the time after which a node counts as lost. */
const inTime = async <T>(check: () => T | Promise<T>): Promise<T> => eventually(check, 60_000)
const rooms = () => cluster.nodes[0]!.rooms
const leave = async (times: number): Promise<number> => {
  for (let i = 0; i < times; i++)
    await rooms().audit.event(
      { ...theServer, tenant_id: sample.tenant },
      { action: 'device.updated', target: { kind: 'device', id: sample.device, name: `crane-${i}` } },
    )
  return (await rooms().stores.of(sample.tenant).audit.head())?.seq ?? 0
}
const nodeOf = async () => (await rooms().stores.of(sample.tenant).auditStreams.find(uid))?.node
const upTo = (last: number) => Array.from({ length: last - first }, (_, i) => first + 1 + i)

beforeAll(async () => {
  cluster = opened.use(await startCluster(1, { env: { HAWSER_STREAM_ALLOW: '127.0.0.1' } }))
  other = opened.use(await startNode(cluster))
  webhook = opened.use(await startWebhook({ secret: () => secret }))
  const administrator = cluster.nodes[0]!.api({ token: await cluster.world.token('administrator') })
  const { body } = await administrator.auditStreams.create({
    body: { name: 'cluster', url: webhook.url, ca: receiverCa, enable: false },
  })
  secret = body.secret ?? ''
  uid = body.uid
  first = body.sent_seq
  // The other node has it.
  const nodes = await rooms().database.db.selectFrom('nodes').select('id').execute()
  const there = nodes.map(({ id }) => id).find((id) => id !== rooms().node)
  await rooms().stores.of(sample.tenant).auditStreams.save(uid, { node: there!, enable: 1 })
})
afterAll(() => opened.disposeAsync())

test('one node delivers a stream, and nothing comes twice', async () => {
  const last = await leave(250)
  await inTime(() => expect(webhook.seqs()).toEqual(upTo(last)))
  expect(await nodeOf()).not.toBe(rooms().node)
})

test('when it is killed in the middle of a batch, the other one goes on', async () => {
  const held = Promise.withResolvers<void>()
  webhook.answer = () => held.resolve()
  await leave(3)
  await held.promise
  await other.kill()
  webhook.answer = undefined
  const last = await leave(150)
  await inTime(() => expect([...new Set(webhook.seqs())]).toEqual(upTo(last)))
  expect(await nodeOf()).toBe(rooms().node)
})

test('a node that stops lets go of its streams at once', async () => {
  const next = opened.use(await startNode(cluster))
  const nodes = await rooms().database.db.selectFrom('nodes').select('id').execute()
  const there = nodes.map(({ id }) => id).find((id) => id !== rooms().node)
  await rooms().stores.of(sample.tenant).auditStreams.save(uid, { node: there! })
  const last = await leave(3)
  await inTime(() => expect([...new Set(webhook.seqs())]).toEqual(upTo(last)))
  next.child.kill('SIGTERM')
  await inTime(async () => expect(['', rooms().node]).toContain(await nodeOf()))
})

// Nodes on a real PostgreSQL: who is silent is written off by one of the others, and a node that comes back
// says again what it has; what somebody closed meanwhile stays closed.
import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test, vi } from 'vitest'
import { begunDatabase, startService } from '../../../tests/harness/service.ts'
import { buildWorld } from '../../../tests/harness/world.ts'
import { databases, openFresh } from '../../../tests/storage/databases.ts'
import { sample } from '@hawser/contract/examples'
import { eventually } from '../../../tests/harness/eventually.ts'
import { cleanUpAfter } from '../domain/sessions/live-sessions.ts'
import { iso } from '../kit/clock.ts'
import { nodes } from './nodes.ts'

vi.setConfig({ testTimeout: 120_000 })

test('what a node had is written off once, and a node that returns takes back what nobody closed', async () => {
  await using service = await startService({ database: await begunDatabase() })
  await buildWorld(service)
  const { stores, sessions } = service.rooms
  const begin = (uid: string) =>
    sessions.begin({
      uid,
      tenant_id: sample.tenant,
      device_uid: sample.device,
      username: 'root',
      ip_address: '192.0.2.1',
      person: { kind: 'unknown', id: '', name: '' },
      via: 'ssh',
      method: 'password',
      client: 'SSH-2.0-test',
    })
  const [kept, closed] = ['a'.repeat(64), 'b'.repeat(64)]
  await begin(kept)
  await begin(closed)
  const of = async (uid: string) => (await stores.of(sample.tenant).sessions.find(uid))!
  const { node } = await of(kept)
  expect(node).not.toBe('')
  // Somebody closes one of them, and then the node is thought lost.
  await stores.of(sample.tenant).sessions.save(closed, { active: 0 })
  const { audit, auditLog } = service.rooms
  expect(await cleanUpAfter({ stores, audit }, node)).toMatchObject({ sessions: 1 })
  expect(await cleanUpAfter({ stores, audit }, node)).toEqual({ devices: 0, sessions: 0 })
  expect(await auditLog.entries(sample.tenant, { action: 'session.closed', limit: 9 })).toMatchObject([
    { actor: { kind: 'server' }, target: { id: kept }, detail: { device: sample.device } },
  ])
  expect([(await of(kept)).active, (await of(kept)).node]).toEqual([0, ''])
  await sessions.revive()
  expect([(await of(kept)).active, (await of(kept)).node]).toEqual([1, node])
  expect((await of(closed)).active).toBe(0)
})

test('a node whose row is gone gives its sign anew, and leads when it is the only one', async () => {
  await using service = await startService({ database: await begunDatabase() })
  const { stores, nodes } = service.rooms
  expect(nodes!.leading).toBe(true)
  const first = await stores.nodes.first()
  await stores.nodes.leave(first!)
  await eventually(async () => expect(await stores.nodes.first()).toBe(first))
  await eventually(() => expect(service.log()).toContain('node.returned'))
})

test('a node that cannot write again what it has tries until it can', async () => {
  await using storage = await openFresh(databases.find(({ name }) => name === 'PostgreSQL')!)
  const errors: unknown[] = []
  let tries = 0
  await using _ = await nodes({
    stores: storage.stores,
    id: 'returning',
    address: undefined,
    async returned() {
      tries += 1
      if (tries === 1) throw new Error('The database is away again.')
    },
    cleanUp: async () => ({ devices: 0, sessions: 0 }),
    onLost: () => undefined,
    onError: (error) => void errors.push(error),
  })
  await storage.stores.nodes.leave('returning')
  await eventually(() => expect(tries).toBe(2))
  expect(errors).toHaveLength(1)
})

test('a command of the administrator is no node, and takes nothing from the one at its address', async () => {
  const database = await begunDatabase()
  const address = { HAWSER_NODE_ADDRESS: '127.0.0.1:7400' }
  await using service = await startService({ database, env: address })
  const { stores } = service.rooms
  const first = await stores.nodes.first()
  const env = {
    PATH: process.env['PATH'],
    HAWSER_DATA: service.folder,
    HAWSER_DATABASE: database,
    ...address,
  }
  const program = path.join(import.meta.dirname, '../../../hawser.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [program, 'admin', 'migrate'], { env })
  expect(stdout).toContain('up to date')
  expect(await stores.nodes.first()).toBe(first)
  expect(service.log()).not.toContain('node.returned')
})

test('of a device whose tunnel moves, the word of its newest tunnel counts, however early or late it is written', async () => {
  await using service = await startService({ database: await begunDatabase() })
  await buildWorld(service)
  const { stores } = service.rooms
  const { devices } = stores.of(sample.tenant)
  const uid = sample.device
  const written = async () => {
    const { online, node } = (await devices.find(uid))!
    return [online, node]
  }
  const write = (node: string, number: number, online: boolean) =>
    stores.presence.write([{ uid, last_seen: iso(Date.now()), online, tunnel: true, number }], node)
  const first = (await devices.claimTunnel(uid))!
  await write('a', first, true)
  expect(await written()).toEqual([1, 'a'])
  // It moves, and is gone before it was written that it came.
  const second = (await devices.claimTunnel(uid))!
  await write('b', second, false)
  expect(await written()).toEqual([0, ''])
  // The first node writes late.
  await write('a', first, true)
  expect(await written()).toEqual([0, ''])
  await write('b', second, true)
  await write('a', first, false)
  expect(await written()).toEqual([1, 'b'])
  // A device that was rejected no longer has a tunnel.
  await devices.save(uid, { status: 'rejected' })
  expect(await devices.claimTunnel(uid)).toBeUndefined()
})

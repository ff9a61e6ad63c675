// One node on PostgreSQL needs no NATS. A second one that would not hear the first, or not be heard by it,
// does not start; one that comes back after it was killed does.
import { randomBytes } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { startProgram, temporaryFolder } from '../failures/program.ts'
import { startNats } from '../harness/nats.ts'
import { freshDatabase } from '../harness/postgres.ts'
import { startService } from '../harness/service.ts'

vi.setConfig({ testTimeout: 60_000 })

test('beside a node without NATS no other one starts, with it or without', async () => {
  await using nats = await startNats()
  const database = await freshDatabase()
  const HAWSER_SECRET = randomBytes(32).toString('hex')
  await using only = await startService({ database, env: { HAWSER_SECRET } })
  await expect(startService({ database, env: { HAWSER_SECRET } })).rejects.toThrow(
    'Another node is at work on this database. Several nodes need the same HAWSER_NATS, and a HAWSER_NODE_ADDRESS each.',
  )
  const env = { HAWSER_SECRET, HAWSER_NATS: nats.url, HAWSER_NODE_ADDRESS: '127.0.0.1:0' }
  await expect(startService({ database, env })).rejects.toThrow(
    'A node without HAWSER_NATS is at work on this database.',
  )
  expect((await fetch(`${only.url}/healthcheck`)).status).toBe(200)
})

test('one without NATS does not start beside nodes that have it; when they have stopped, it does', async () => {
  await using nats = await startNats()
  const database = await freshDatabase()
  const HAWSER_SECRET = randomBytes(32).toString('hex')
  {
    await using _ = await startService({
      database,
      env: { HAWSER_SECRET, HAWSER_NATS: nats.url, HAWSER_NODE_ADDRESS: '127.0.0.1:0' },
    })
    await expect(startService({ database, env: { HAWSER_SECRET } })).rejects.toThrow('HAWSER_NATS')
  }
  await using alone = await startService({ database, env: { HAWSER_SECRET } })
  expect((await fetch(`${alone.url}/healthcheck`)).status).toBe(200)
})

test('one that was killed starts again', async () => {
  using folder = temporaryFolder()
  const env = { HAWSER_DATABASE: await freshDatabase() }
  {
    await using program = await startProgram({ folder: folder.path, env })
    await program.kill()
  }
  await using again = await startProgram({ folder: folder.path, env })
  expect((await fetch(`${again.url}/healthcheck`)).status).toBe(200)
})

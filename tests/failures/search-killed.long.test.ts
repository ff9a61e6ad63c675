// kill -9 while recordings are indexed, again and again: after the last start every recording is found, each
// line once, and the index is sound.
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { eventually } from '../harness/eventually.ts'
import { recordSession } from '../harness/recorded.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { startProgram, temporaryFolder } from './program.ts'

const kills = 8
const count = 20
const linesOfEach = 2_000

/** As `hawser admin search reindex`, while no server runs. */
function expire(folder: string): void {
  for (const [file, statement] of [
    ['search.db', 'update recordings set version = -1 where version > 0'],
    ['hawser.db', `update sessions set index_at = '' where recorded = 1`],
  ] as const) {
    const database = new DatabaseSync(path.join(folder, file))
    database.exec(statement)
    database.close()
  }
}

test('a server that is killed while it indexes goes on where it was', { timeout: 240_000 }, async () => {
  using folder = temporaryFolder()
  {
    await using service = await startService({ folder: folder.path })
    await buildWorld(service)
    await service.rooms.stores.namespaces.save(sample.tenant, { search: 0 })
    for (let session = 0; session < count; session++) {
      const lines = Array.from(
        { length: linesOfEach },
        (_, line) => `bird${session} line ${line} of the log\r\n`,
      )
      await recordSession(service.rooms, { lines })
    }
    await service.rooms.stores.namespaces.save(sample.tenant, { search: 1 })
  }
  for (let kill = 0; kill < kills; kill++) {
    // All of it again, every other time: what is replaced is killed in the middle as well.
    if (kill % 2 === 0) expire(folder.path)
    await using program = await startProgram({ folder: folder.path, env: { HAWSER_LOG: 'debug' } })
    await program.logged(kill % 2 === 0 ? 'search.indexed' : 'server.ready')
    await pause((kill * 37) % 200)
    await program.kill()
  }
  expire(folder.path)
  await using service = await startService({ folder: folder.path })
  const ask = (words: string[]) => {
    const query = { terms: words.map((word) => ({ words: [word], prefix: false })) }
    return service.rooms.search.find({ tenant_id: sample.tenant, query, commands: false, limit: 100 })
  }
  for (let session = 0; session < count; session++)
    await eventually(async () => {
      const { hits } = await ask([`bird${session}`, String(linesOfEach - 1)])
      expect(hits).toHaveLength(1)
    }, 60_000)
  await service.rooms.search.round()
  expect(await service.rooms.stores.searchQueue.count(sample.tenant)).toBe(0)
  const { hits } = await ask(['bird7', '7'])
  expect(hits).toHaveLength(1)
  const database = new DatabaseSync(path.join(folder.path, 'search.db'))
  expect(database.prepare('pragma integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
  const rows = database
    .prepare('select count(*) as n, count(distinct session_uid) as sessions from recordings')
    .all()
  expect(rows).toEqual([{ n: count, sessions: count }])
  database.close()
})

// A server on PostgreSQL is backed up and restored with the database's own tools, as docs/guides/backups.md
// says: the dump and the master key are a whole server. PostgreSQL and its tools are those of the system,
// because pg_dump must not be older than the server that it reads.
import { copyFileSync, globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { run } from '../../ssh/test/programs.ts'
import { blocksOf } from '../guides/blocks.ts'
import { startPostgres } from '../harness/postgres.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

vi.setConfig({ testTimeout: 120_000 })
const place = mkdtempSync(path.join(os.tmpdir(), 'hawser-backup-'))
afterAll(() => rmSync(place, { recursive: true, force: true }))

/** The newest one of Debian's. */
const installed = path.dirname(path.dirname(globSync('/usr/lib/postgresql/*/bin/pg_dump').toSorted().at(-1)!))
/** The commands of the guide that begin with this word, with paths of this test. */
const guided = (word: string): string =>
  blocksOf('docs/guides/backups.md')
    .flatMap(({ text }) => text.split('\n'))
    .filter((line) => line.startsWith(`${word} `))
    .join('\n')
    .replaceAll('/var/backups', place)
const tool = async (word: string, database: string): Promise<void> => {
  const { status, stderr } = await run('bash', ['-ec', guided(word)], undefined, {
    PATH: `${installed}/bin:${process.env['PATH']}`,
    HAWSER_DATABASE: database,
  })
  expect([status, stderr]).toEqual([0, ''])
}

test('a server on PostgreSQL is dumped while it runs, and restored elsewhere', async () => {
  await using postgres = await startPostgres(installed)
  const data = path.join(place, 'data')
  const fresh = path.join(place, 'fresh')
  for (const folder of [data, fresh]) mkdirSync(folder, { mode: 0o700 })
  const first = await postgres.url('first')
  {
    await using service = await startService({ database: first, folder: data })
    await buildWorld(service)
    await tool('pg_dump', first)
    copyFileSync(path.join(data, 'master.key'), path.join(fresh, 'master.key'))
  }
  const second = await postgres.url('second')
  await tool('pg_restore', second)
  await using restored = await startService({ database: second, folder: fresh })
  const { body } = await restored.api().users.login({ body: sample.owner })
  const owner = restored.api({ token: body.token })
  const devices = await owner.devices.list({ query: {} })
  expect(devices.body.map(({ uid }) => uid)).toContain(sample.device)
})

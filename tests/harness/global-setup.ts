// Shared by one run of the tests: the built console, a folder, and a desk that hands out databases of one
// PostgreSQL cluster. Workers are processes of their own, so they ask over a unix socket; the cluster starts
// when the first one asks, which keeps a run without such tests as quick as it was, and it stops with the
// run. The socket lies in a folder that only we may enter.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestProject } from 'vitest/node'
import { bundled } from '../../packages/bundled.ts'
import { ensureConsole } from '../../packages/console.ts'
import { openDatabase } from '../../server/src/storage/database.ts'
import { startPostgres, type DeskAnswer, type DeskRequest, type Postgres } from './postgres.ts'

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Once for the run, and only when their sources have changed.
  await Promise.all([ensureConsole(), bundled('agent'), bundled('cli')])
  const folder = await mkdtemp(path.join(tmpdir(), 'hawser-tests-'))
  let cluster: Promise<Postgres> | undefined
  let migrated: Promise<string> | undefined
  let handedOut = 0

  async function template({ url }: Postgres): Promise<string> {
    const now = (): string => new Date().toISOString()
    await using _ = await openDatabase({ url: await url('migrated'), folder, now, onError: () => undefined })
    return 'migrated'
  }

  async function answer(wanted: DeskRequest): Promise<DeskAnswer> {
    try {
      const postgres = await (cluster ??= startPostgres())
      const name = `test_${++handedOut}`
      if (wanted === 'empty') return { url: await postgres.url(name) }
      const from = wanted === 'migrated' ? await (migrated ??= template(postgres)) : wanted.slice(8)
      return { url: await postgres.url(name, from) }
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) }
    }
  }

  const desk = createServer((socket) => {
    // A worker that is killed while it waits is no reason to end the run.
    socket.on('error', () => {})
    socket.setEncoding('utf8').once('data', (wanted: DeskRequest) => {
      void answer(wanted).then((answer) => socket.end(JSON.stringify(answer)))
    })
  })
  desk.listen(path.join(folder, 'desk'))
  await once(desk, 'listening')
  project.provide('postgresDesk', path.join(folder, 'desk'))
  project.provide('shared', folder)

  return async function teardown() {
    desk.close()
    const started = await cluster?.catch(() => undefined)
    await started?.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

// What one run of the tests shares: the built console, a folder, and a desk that hands out databases of one
// PostgreSQL cluster. Workers are processes of their own, so they ask over a unix socket; the cluster starts
// when the first one asks, which keeps a run without such tests as quick as it was, and it stops with the
// run. The socket lies in a folder that only we may enter.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestProject } from 'vitest/node'
import { ensureConsole } from '../../packages/console.ts'
import { startPostgres, type DeskAnswer, type Postgres } from './postgres.ts'

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Once for the run, and only when its sources have changed: every service of a test serves it.
  await ensureConsole()
  const folder = await mkdtemp(path.join(tmpdir(), 'hawser-tests-'))
  let cluster: Promise<Postgres> | undefined
  let handedOut = 0

  async function answer(): Promise<DeskAnswer> {
    try {
      cluster ??= startPostgres()
      return { url: await (await cluster).url(`test_${++handedOut}`) }
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) }
    }
  }

  const desk = createServer((socket) => {
    // A worker that is killed while it waits is no reason to end the run.
    socket.on('error', () => {})
    void answer().then((answer) => socket.end(JSON.stringify(answer)))
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

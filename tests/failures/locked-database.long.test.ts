// Another program holds the SQLite file: a backup, a shell, an administrator's command. Writes wait for it
// without stopping the process, and when it does not let go they are refused with a sentence and a time to
// come back; then all is well again.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ApiError } from '@hawser/contract/client'
import { setUp, startProgram, temporaryFolder } from './program.ts'

interface Lock extends AsyncDisposable {
  /** Lets go, and waits until it has. */
  release(): Promise<void>
}

/** A process that begins to write and does not end. */
async function hold(folder: string): Promise<Lock> {
  const program = `
    const { DatabaseSync } = require('node:sqlite')
    const database = new DatabaseSync(process.argv[1], { timeout: 20_000 })
    database.exec('begin immediate')
    process.stdout.write('held')
    process.stdin.on('end', () => database.exec('rollback')).resume()`
  const child = spawn(process.execPath, ['-e', program, path.join(folder, 'hawser.db')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  await Promise.race([
    once(child.stdout, 'data'),
    ended.then(() => Promise.reject(new Error('it could not get hold of the file'))),
  ])
  async function release(): Promise<void> {
    child.stdin.end()
    await ended
  }
  return { release, [Symbol.asyncDispose]: release }
}

/** What became of it after a moment. */
const soFar = (work: Promise<unknown>) =>
  Promise.race([work.then(() => 'answered'), pause(300).then(() => 'waiting')])

test(
  'writes wait for another program that writes, and nothing else waits with them',
  { timeout: 120_000 },
  async () => {
    using folder = temporaryFolder()
    await using program = await startProgram({ folder: folder.path })
    const { api, tenant } = await setUp(program)
    const agent = { info: { id: 'debian' }, public_key: 'key', tenant_id: tenant, hostname: 'crane' }
    await program.api().devices.auth({ body: agent })
    await using lock = await hold(folder.path)
    const writes = ['one', 'two', 'three'].map((name) =>
      api.apiKeys.create({ body: { name, expires_at: 30 } }),
    )
    expect(await soFar(Promise.race(writes))).toBe('waiting')
    // What needs no database is answered, so the process is awake; and agents that are known need none.
    expect((await fetch(`${program.url}/openapi.json`)).status).toBe(200)
    expect((await program.api().devices.auth({ body: agent })).status).toBe(200)
    await lock.release()
    expect((await Promise.all(writes)).map((answer) => answer.status)).toEqual([200, 200, 200])
    expect((await api.apiKeys.list({})).body.map((key) => key.name).toSorted()).toEqual([
      'one',
      'three',
      'two',
    ])
  },
)

test(
  'when it does not let go, writes are refused with a time to come back, and the server lives on',
  { timeout: 180_000 },
  async () => {
    using folder = temporaryFolder()
    await using program = await startProgram({ folder: folder.path })
    const { api } = await setUp(program)
    await using lock = await hold(folder.path)
    const create = (name: string) =>
      api.apiKeys.create({ body: { name, expires_at: 30 } }).then(
        () => name,
        (error: unknown) => error,
      )
    const refused = await Promise.all(['one', 'two', 'three'].map(create))
    for (const error of refused) {
      expect(error).toBeInstanceOf(ApiError)
      const { status, headers, message } = error as ApiError
      expect([status, message]).toEqual([503, 'The database is held by another program; try again.'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    }
    const line = await program.logged('request.failed')
    expect(line).toMatchObject({
      level: 'error',
      operation: 'apiKeys.create',
      reqId: expect.any(String) as string,
    })
    await lock.release()
    expect(await create('after')).toBe('after')
    expect((await api.apiKeys.list({})).body.map((key) => key.name)).toEqual(['after'])
    program.child.kill('SIGTERM')
    expect(await program.ended).toEqual({ code: 0, signal: null })
  },
)

test(
  'a start waits for it too, and says what is the matter when it has to give up',
  { timeout: 180_000 },
  async () => {
    using folder = temporaryFolder()
    {
      await using first = await startProgram({ folder: folder.path })
      await setUp(first)
    }
    {
      await using lock = await hold(folder.path)
      const started = startProgram({ folder: folder.path })
      expect(await soFar(started)).toBe('waiting')
      await lock.release()
      await using program = await started
      expect((await fetch(`${program.url}/healthcheck`)).status).toBe(200)
    }
    await using lock = await hold(folder.path)
    await expect(startProgram({ folder: folder.path })).rejects.toThrow(
      'The database is held by another program; try again.',
    )
    await lock.release()
  },
)

// The health check when people cannot sign in: whatever is broken, really, it says 503 and names the part,
// soon, to any number of callers, and it is 200 again when the part is back. The log tells each change once.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, rmSync, closeSync, writeFileSync, constants } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { eventually } from '../harness/eventually.ts'
import { freshDatabase } from '../harness/postgres.ts'
import { hawser, setUp, startProgram, temporaryFolder, type Line, type Program } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })

async function health({ url }: Program): Promise<[number, string]> {
  const answer = await fetch(`${url}/healthcheck`)
  const text = await answer.text()
  return [answer.status, text === '' ? '' : (JSON.parse(text) as { message: string }).message]
}

const becomes = async (program: Program, expected: [number, string]): Promise<void> =>
  eventually(async () => expect(await health(program)).toEqual(expected), 60_000)

const ready = async ({ url }: Program): Promise<string | undefined> => {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: 'Bearer gauge' } })
  return /^hawser_ready (.+)$/m.exec(await answer.text())?.[1]
}

/** `health.failed` and `health.restored`, each with its part. */
const events = (program: Program): string[] =>
  program.printed
    .map((line) => JSON.parse(line) as Line)
    .filter(({ event }) => event.startsWith('health.'))
    .map(({ event, part }) => `${event} ${String(part)}`)

const env = { HAWSER_METRICS_TOKEN: 'gauge' }

test('another program holds the database', async () => {
  using folder = temporaryFolder()
  await using program = await startProgram({ folder: folder.path, env })
  const olga = await setUp(program)
  await becomes(program, [200, ''])
  expect(await ready(program)).toBe('1')
  const holding = `
    const { DatabaseSync } = require('node:sqlite')
    const database = new DatabaseSync(process.argv[1], { timeout: 20_000 })
    database.exec('begin immediate')
    process.stdout.write('held')
    process.stdin.on('end', () => database.exec('rollback')).resume()`
  const holder = spawn(process.execPath, ['-e', holding, path.join(folder.path, 'hawser.db')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(holder.stdout, 'data')
  const signIn = program
    .api()
    .users.login({ body: { username: olga.username, password: olga.password } })
    .catch(() => undefined)
  // Reads wait behind the write, so that nothing answers after a while.
  const sentence = /^The database (cannot be written|does not answer): nobody can sign in\.$/
  await becomes(program, [503, expect.stringMatching(sentence) as string])
  expect(await ready(program)).toBe('0')
  // Whoever goes on asking does not write to the log.
  const answers = await Promise.all(Array.from({ length: 100 }, async () => health(program)))
  expect(new Set(answers.map(([status]) => status))).toEqual(new Set([503]))
  expect(events(program).length).toBeLessThan(10)
  // The last successful write counts for a few seconds, so reads may be missed before it.
  await eventually(async () => {
    await health(program)
    expect(events(program)).toContain('health.failed database writes')
  })
  holder.stdin.end()
  await once(holder, 'exit')
  await signIn
  await becomes(program, [200, ''])
  expect(events(program).at(-1)).toMatch('health.restored')
  expect(
    program.printed.filter((line) => line.includes('request.failed') && line.includes('health')),
  ).toEqual([])
})

test('the threads that check passwords are blocked', async () => {
  using folder = temporaryFolder()
  const pipes = mkdtempSync(path.join(os.tmpdir(), 'hawser-pipes-'))
  const names = [0, 1, 2, 3].map((index) => path.join(pipes, String(index)))
  for (const name of names) execFileSync('mkfifo', [name])
  // Opening a pipe that nobody writes to blocks a thread, as a network disk that is gone does.
  const preload = path.join(pipes, 'preload.mjs')
  writeFileSync(
    preload,
    `import { open } from 'node:fs'
    process.on('SIGUSR2', () => { for (const name of ${JSON.stringify(names)}) open(name, 'r', () => {}) })`,
  )
  try {
    await using program = await startProgram({
      folder: folder.path,
      env: { ...env, UV_THREADPOOL_SIZE: '4' },
      command: [process.execPath, '--import', preload, hawser, 'serve'],
    })
    await setUp(program)
    await becomes(program, [200, ''])
    program.child.kill('SIGUSR2')
    await becomes(program, [503, 'Passwords cannot be checked: nobody can sign in.'])
    for (const name of names) closeSync(openSync(name, constants.O_WRONLY | constants.O_NONBLOCK))
    await becomes(program, [200, ''])
  } finally {
    rmSync(pipes, { recursive: true, force: true })
  }
})

test('PostgreSQL takes no writes, as a standby does', async () => {
  using folder = temporaryFolder()
  const url = await freshDatabase()
  await using program = await startProgram({ folder: folder.path, env: { ...env, HAWSER_DATABASE: url } })
  await becomes(program, [200, ''])
  const client = new pg.Client(url)
  await client.connect()
  const name = client.database
  const set = async (value: string): Promise<void> => {
    await client.query(`alter database "${name}" set default_transaction_read_only = ${value}`)
    await client.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
      [name],
    )
  }
  try {
    await set('on')
    await becomes(program, [503, 'The database cannot be written: nobody can sign in.'])
    await client.query('set transaction_read_only = off; set default_transaction_read_only = off')
    await set('off')
    await becomes(program, [200, ''])
  } finally {
    await client.end()
  }
})

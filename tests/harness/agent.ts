// The real agent, bundled as devices run it, in a process of its own: enrolled, accepted, its tunnel up. It runs as whoever runs the
// test: as root its users are those of the system; otherwise there is the one user with the password `pilot`.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { sample } from '@hawser/contract/examples'
import { bundled } from '../../packages/bundled.ts'
import type { Service } from './service.ts'

export interface Agent extends AsyncDisposable {
  readonly uid: string
  readonly name: string
  readonly pid: number
  /** Its log, one object a line. */
  readonly lines: readonly Record<string, unknown>[]
  /** The next line with this event that is not there yet. */
  logged(event: string): Promise<Record<string, unknown>>
  kill(signal: NodeJS.Signals): void
  readonly ended: Promise<number | null>
}

export interface AgentOptions {
  readonly hostname?: string
  readonly env?: Readonly<Record<string, string>>
  /** For its key; else a temporary folder. */
  readonly folder?: string
  readonly pending?: boolean
  /** Another form of the agent. */
  readonly program?: readonly [string, ...string[]]
}

let bundle: Promise<string> | undefined

/** The agent of this checkout. */
export async function agentProgram(): Promise<readonly [string, ...string[]]> {
  return [process.execPath, '--disable-warning=ExperimentalWarning', await (bundle ??= bundled('agent'))]
}

/** A service of the harness, or any server with a way to accept its devices. */
export type AgentServer =
  | Pick<Service, 'url' | 'rooms'>
  | { readonly url: string; readonly tenant_id: string; accept(uid: string): Promise<unknown> }

export async function startAgent(service: AgentServer, options: AgentOptions = {}): Promise<Agent> {
  const folder = options.folder ?? mkdtempSync(path.join(os.tmpdir(), 'hawser-device-'))
  const name = options.hostname ?? 'gantry'
  const isRoot = process.getuid?.() === 0
  const [file, ...words] = options.program ?? (await agentProgram())
  const child = spawn(file, words, {
    env: {
      PATH: process.env['PATH'],
      // Compiled code is kept for all agents of a run.
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      HAWSER_SERVER_ADDRESS: service.url,
      HAWSER_TENANT_ID: 'rooms' in service ? sample.tenant : service.tenant_id,
      HAWSER_PRIVATE_KEY: path.join(folder, 'device.key'),
      HAWSER_PREFERRED_HOSTNAME: name,
      HAWSER_PREFERRED_IDENTITY: `test-${name}`,
      ...(isRoot
        ? {}
        : {
            HAWSER_SINGLE_USER_PASSWORD: spawnSync('openssl', ['passwd', '-6', 'pilot'], {
              encoding: 'utf8',
            }).stdout.trim(),
          }),
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: Record<string, unknown>[] = []
  const waiting: { event: string; done: PromiseWithResolvers<Record<string, unknown>> }[] = []
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => void (complaint += chunk.toString()))
  createInterface(child.stdout).on('line', (text) => {
    const line = JSON.parse(text) as Record<string, unknown>
    lines.push(line)
    for (const waiter of waiting.filter(({ event }) => event === line['event'])) {
      waiting.splice(waiting.indexOf(waiter), 1)
      waiter.done.resolve(line)
    }
  })
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  void ended.then((code) => {
    for (const { event, done } of waiting)
      done.reject(new Error(`the agent ended with ${code} before ${event}: ${complaint}`))
  })
  const logged = (event: string): Promise<Record<string, unknown>> => {
    const done = Promise.withResolvers<Record<string, unknown>>()
    waiting.push({ event, done })
    return done.promise
  }
  const { uid } = (await logged('tunnel.up')) as { uid: string }
  if (!options.pending && !('rooms' in service)) await service.accept(uid)
  else if (!options.pending && 'rooms' in service) {
    const { rules } = service.rooms
    const owner = {
      kind: 'user',
      id: sample.owner.id,
      username: '',
      token_id: '',
      epoch: 1,
      exp: 0,
      tenant_id: sample.tenant,
      role: 'owner',
    } as const
    await rules.devices.accept({ params: { uid } } as never, {
      ...owner,
      source: '127.0.0.1',
      host: '',
      secure: false,
    })
  }
  return {
    uid,
    name,
    pid: child.pid!,
    lines,
    logged,
    kill: (signal) => void child.kill(signal),
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

// The whole way that a session takes, for tests with real clients: a service, the real agent of a device in a
// process of its own, somebody who has an account on that device, a folder of theirs there, and on this side
// a key that the namespace knows. As root the account is a user of the system that is made for the test and
// removed after it, as the agent then serves those; for anybody else it is their own, in the agent's mode for
// one user. One of each for all tests of a file.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import type { Session } from '@hawser/contract/sessions'
import { makePerson } from '../../agent/test/person.ts'
import { folder, keygen, quietArgs, run, type Folder, type Outcome } from '../../ssh/test/programs.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent, type OldAgent } from '../harness/old-agent.ts'
import { startService, type Service, type ServiceOptions } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'

export interface Way extends AsyncDisposable {
  readonly service: Service
  readonly world: World
  readonly owner: Client
  readonly agent: Agent
  /** The account on the device. */
  readonly user: { readonly name: string; readonly password: string }
  /** On the client's side: keys and the like. `olga` is a key for every user of every device. */
  readonly where: Folder
  /** A file in a folder of the user's, on the device. */
  there(name: string): string
  /** What a client is given before the last @. */
  sshid(to?: To): string
  /**
   * Arguments for ssh, without the name of the device; the key is `olga` unless another one is named, or
   * none.
   */
  args(how?: How): string[]
  /** The real client, run to its end. */
  ssh(command: string | undefined, how?: How): Promise<Outcome>
  /** The same, while it runs. */
  start(command: string | undefined, how?: How): Running
  /** Makes the client say this password whenever it is asked for one. */
  saying(password: string): { readonly key: null; readonly env: Record<string, string> }
  register(key: string, change?: object): Promise<void>
  /** The newest session in the records of the namespace, of the device. */
  newest(): Promise<Session>
  oldAgent(version: 1 | 2): Promise<OldAgent>
}

/** A client that runs; disposal kills it without mercy. */
export interface Running extends AsyncDisposable {
  readonly child: ChildProcessWithoutNullStreams
  stdout(): string
  stderr(): string
  /** Waits until something was printed; what the parentheses match. */
  until(pattern: RegExp): Promise<string>
  readonly status: Promise<number | null>
}

export interface To {
  readonly user?: string
  /** The name of a device. */
  readonly device?: string
}

export interface How extends To {
  /** The name of a key in the folder; null to have none. */
  readonly key?: string | null
  /** Of the client's configuration; they come before the usual ones. */
  readonly settings?: readonly string[]
  /** Of the command line. */
  readonly flags?: readonly string[]
  /** Undefined: it has nothing to read. */
  readonly input?: string | Buffer
  readonly env?: Record<string, string>
}

export { eventually }
export const isRoot = process.getuid?.() === 0

export async function openWay(
  env: Record<string, string> = {},
  options: Pick<ServiceOptions, 'database'> = {},
): Promise<Way> {
  await using opened = new AsyncDisposableStack()
  const service = opened.use(
    await startService({ ...options, env: { HAWSER_SSH_FAILURE_LIMIT: '0/60', ...env } }),
  )
  const world = await buildWorld(service)
  const owner = service.api({ token: await world.token('owner') })
  const where = opened.use(folder())
  const home = mkdtempSync(path.join(os.tmpdir(), 'hawser-there-'))
  opened.defer(() => rmSync(home, { recursive: true, force: true }))
  const person = isRoot ? opened.use(await makePerson()) : undefined
  if (person) chownSync(home, person.uid, person.gid)
  const agent = opened.use(await startAgent(service))
  const user = person ?? { name: os.userInfo().username, password: 'pilot' }
  await keygen(where, 'olga', '-t', 'ed25519')
  const teller = where.write('teller', '#!/bin/sh\nprintf "%s\\n" "$SECRET"\n')
  chmodSync(teller, 0o700)

  const sshid = ({ user: name = user.name, device = agent.name }: To = {}): string =>
    `${name}@${sample.namespace}.${device}`
  const args = ({ key = 'olga', settings = [], flags = [] }: How = {}): string[] => {
    const keyed =
      key === null
        ? ['IdentityFile=none', 'NumberOfPasswordPrompts=1']
        : [`IdentityFile=${where.file(key)}`, 'BatchMode=yes']
    return [...quietArgs(service.sshPort, ...settings, ...keyed), ...flags]
  }
  const way: Way = {
    service,
    world,
    owner,
    agent,
    user,
    where,
    there: (name) => path.join(home, name),
    sshid,
    args,
    ssh: async (command, how = {}) =>
      run(
        'ssh',
        [...args(how), `${sshid(how)}@127.0.0.1`, ...(command === undefined ? [] : [command])],
        how.input,
        how.env,
      ),
    start: (command, how = {}) =>
      watch(
        'ssh',
        [...args(how), `${sshid(how)}@127.0.0.1`, ...(command === undefined ? [] : [command])],
        how.env,
      ),
    saying: (password) => ({
      key: null,
      env: { SSH_ASKPASS: teller, SSH_ASKPASS_REQUIRE: 'force', SECRET: password },
    }),
    async register(key, change = {}) {
      const data = Buffer.from(where.read(`${key}.pub`)).toString('base64')
      await owner.publicKeys.create({
        body: { data, name: key, username: '.*', filter: { hostname: '.*' }, ...change },
      })
    },
    async newest() {
      const { body } = await owner.sessions.list({ query: {} })
      return body[0]!
    },
    async oldAgent(version) {
      const old = await startOldAgent(service, {
        version,
        tenant_id: sample.tenant,
        hostname: `field-${version}`,
      })
      await owner.devices.accept({ params: { uid: old.uid } })
      return old
    },
    [Symbol.asyncDispose]: async () => whole.disposeAsync(),
  }
  await way.register('olga')
  const whole = opened.move()
  return way
}

export function watch(program: string, words: readonly string[], env: Record<string, string> = {}): Running {
  const child = spawn(program, words, { stdio: 'pipe', env: { ...process.env, ...env } })
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []]
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  child.stdin.on('error', () => undefined)
  const status = once(child, 'close').then(([code]) => code as number | null)
  const text = (chunks: Buffer[]): string => Buffer.concat(chunks).toString()
  return {
    child,
    stdout: () => text(stdout),
    stderr: () => text(stderr),
    async until(pattern) {
      const said = (): string => text(stdout) + text(stderr)
      await eventually(() => expect(said()).toMatch(pattern))
      return pattern.exec(said())![1] ?? ''
    },
    status,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await status
    },
  }
}

/** One way for all tests of a file. */
export function sharedWay(env?: Record<string, string>): Way {
  vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })
  let opened: Way | undefined
  beforeAll(async () => {
    opened = await openWay(env)
  })
  afterAll(async () => {
    await opened?.[Symbol.asyncDispose]()
  })
  return standIn(() => opened)
}

/** An old agent of each version, for `describe.each`. */
export function sharedOldAgent(way: Way, version: 1 | 2): OldAgent {
  let started: OldAgent | undefined
  beforeAll(async () => {
    started = await way.oldAgent(version)
  })
  afterAll(async () => {
    await started?.[Symbol.asyncDispose]()
  })
  return standIn(() => started)
}

/** Tests name it before it is there, so this asks the real one each time. */
function standIn<Thing extends object>(find: () => Thing | undefined): Thing {
  return new Proxy({} as Thing, {
    get(_, name) {
      const thing = find()
      if (!thing) throw new Error('it is not there yet: it is for use inside of tests')
      return Reflect.get(thing, name, thing) as unknown
    },
  })
}

// A server that stops and starts again on the same data and ports, an agent on a device, and somebody with
// OpenSSH on a terminal: for tests of what outlives the server.
import { chmodSync } from 'node:fs'
import xterm from '@xterm/headless'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect } from 'vitest'
import type { Client } from '@hawser/contract/client'
import type { Session } from '@hawser/contract/sessions'
import { makePerson } from '../../agent/test/person.ts'
import { folder, freePort, keygen, quietArgs, type Folder } from '../../ssh/test/programs.ts'
import { admin, setUp, startProgram, temporaryFolder, type Program } from '../failures/program.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { openTerminal, type Terminal, type TerminalOptions } from './terminal.ts'
import { eventually, isRoot } from './way.ts'

export interface Restarts extends AsyncDisposable {
  readonly owner: { readonly token: string; readonly tenant: string }
  agent: Agent
  /** The account on the device. */
  readonly user: { readonly name: string; readonly password: string }
  /** Starts the agent again, with the same identity. */
  startAgent(): Promise<void>
  /** On the side of the client: keys. `olga` is a key of nobody in particular. */
  readonly where: Folder
  /** A folder on the device that its user may write. */
  there(name: string): string
  read(name: string): string
  write(name: string, text: string): void
  readonly sshPort: number
  /** The data of the server. */
  readonly data: string
  /** Makes somebody who is an operator. */
  employ(name: string): Promise<void>
  api(): Client
  program(): Program
  /** Starts the server again, and waits until the device has a tunnel, unless it is away. */
  start(device?: 'away'): Promise<void>
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
  sit(command?: readonly string[], options?: TerminalOptions & { readonly key?: string }): Terminal
  /** Those that go on. */
  list(): Promise<Session[]>
  held(): Promise<Session[]>
  register(key: string, change?: object): Promise<string>
  settings(change: object): Promise<void>
  /** Waits until the record says that the agent keeps the terminal. */
  isKept(uid: string): Promise<void>
}

export const question = /Your session of \d\d:\d\d UTC is still there: Enter continues it/

export async function openRestarts(env: Record<string, string> = {}): Promise<Restarts> {
  await using opened = new AsyncDisposableStack()
  const data = opened.use(temporaryFolder())
  const [http, ssh] = [await freePort(), await freePort()]
  const begin = async (): Promise<Program> =>
    startProgram({
      folder: data.path,
      env: {
        HAWSER_HTTP: `127.0.0.1:${http}`,
        HAWSER_SSH: `127.0.0.1:${ssh}`,
        HAWSER_SSH_KEEPALIVE: '1',
        HAWSER_SSH_RATE_LIMIT: '0/10',
        HAWSER_SSH_FAILURE_LIMIT: '0/60',
        ...env,
      },
    })
  let program = await begin()
  opened.defer(async () => program.kill())
  const owner = await setUp(program)
  const api = (): Client => program.api({ token: owner.token })
  const person = isRoot ? opened.use(await makePerson()) : undefined
  const user = person ?? { name: os.userInfo().username, password: 'pilot' }
  const home = opened.use(folder())
  chmodSync(home.file('.'), 0o777)
  const keys = opened.use(folder())
  const device = async (pending: boolean): Promise<Agent> =>
    startAgent(
      {
        url: `http://127.0.0.1:${http}`,
        tenant_id: owner.tenant,
        accept: async (uid) => api().devices.accept({ params: { uid } }),
      },
      { folder: keys.path, pending },
    )
  const agent = await device(false)
  opened.defer(async () => restarts.agent[Symbol.asyncDispose]())
  const where = opened.use(folder())
  const list = async (): Promise<Session[]> => (await api().sessions.list({ query: { active: true } })).body
  const restarts: Restarts = {
    owner,
    user,
    agent,
    async startAgent() {
      restarts.agent = await device(true)
    },
    where,
    there: (name) => home.file(name),
    read: home.read,
    write(name, text) {
      home.write(name, text)
      chmodSync(home.file(name), 0o666)
    },
    sshPort: ssh,
    data: data.path,
    async employ(name) {
      const words = ['user', 'create', name, 'rope-and-anchor', `${name}@example.com`]
      expect(await admin(data.path, words)).toMatchObject({ code: 0 })
      const member = ['namespace', 'member', 'add', name, 'harbour', 'operator']
      expect(await admin(data.path, member)).toMatchObject({ code: 0 })
    },
    api,
    program: () => program,
    async start(device) {
      program = await begin()
      if (device !== 'away') await program.logged('tunnel.opened')
    },
    async stop(signal) {
      program.child.kill(signal)
      await program.ended
    },
    sit: (command = [], { key = 'olga', ...options } = {}) =>
      openTerminal(
        'ssh',
        [
          ...quietArgs(ssh, `IdentityFile=${where.file(key)}`, 'BatchMode=yes'),
          ...(command.length > 0 ? ['-t'] : []),
          `${user.name}@harbour.${agent.name}@127.0.0.1`,
          ...command,
        ],
        options,
      ),
    list,
    held: async () => (await list()).filter((session) => session.held),
    async register(key, change = {}) {
      await keygen(where, key, '-t', 'ed25519')
      const data = Buffer.from(where.read(`${key}.pub`)).toString('base64')
      const { body } = await api().publicKeys.create({
        body: { data, name: key, username: '.*', filter: { hostname: '.*' }, ...change },
      })
      return body.fingerprint
    },
    async isKept(uid) {
      using database = new DatabaseSync(path.join(data.path, 'hawser.db'), { readOnly: true })
      const row = database.prepare('select kept_s from sessions where uid = ?')
      await eventually(() => expect(Number(row.get(uid)?.['kept_s'])).toBeGreaterThan(0))
    },
    settings: async (settings) =>
      void (await api().namespaces.edit({ params: { tenant: owner.tenant }, body: { settings } })),
    [Symbol.asyncDispose]: async () => whole.disposeAsync(),
  }
  await restarts.register('olga')
  const whole = opened.move()
  return restarts
}

/** A shell that is ready, and says its process. */
export async function begin(terminal: Terminal): Promise<string> {
  terminal.type('unset HISTFILE; stty -echo; PS1="> "; echo "sh""ell $$"\n')
  return terminal.until(/shell (\d+)\r\n/)
}

/** What somebody in front of the terminal sees. */
export async function screenOf(terminal: Terminal, columns = 80, rows = 24) {
  const one = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true })
  await new Promise<void>((resolve) => one.write(terminal.shown(), resolve))
  const { active } = one.buffer
  const lines = Array.from(
    { length: rows },
    (_, y) => active.getLine(active.baseY + y)?.translateToString(true) ?? '',
  )
  return { rows: lines, cursor: [active.cursorX, active.cursorY], type: active.type, modes: one.modes }
}

/** Waits until the server has the terminals again that the agent kept. */
export async function restored(restarts: Restarts): Promise<void> {
  await restarts.program().logged('session.restored')
}

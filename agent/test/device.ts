// A device for tests: the agent's SSH server on a free port of the loopback, without the tunnel that leads to
// it in life, and the real OpenSSH clients that log in. Disposal ends every connection and waits until all
// that was served has ended.
import { chmodSync, mkdirSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import {
  connect,
  generatePrivateKey,
  parsePrivateKey,
  parsePublicKeyLine,
  type Connection,
  type ConnectOptions,
  type PrivateKey,
} from '@hawser/ssh'
import { folder, keygen, quietArgs, run, type Folder, type Outcome } from '../../ssh/test/programs.ts'
import { passwords } from '../src/passwords.ts'
import { shaCrypt } from '../src/sha-crypt.ts'
import { serveSsh, type SshdOptions } from '../src/sshd.ts'
import { ownAccount, singleUser, systemUsers, type Admission, type Users } from '../src/users.ts'

export type Event = Record<string, unknown>

export interface Device extends AsyncDisposable {
  readonly port: number
  readonly where: Folder
  readonly events: Event[]
  /** Keys that the server was asked about. */
  readonly asked: { readonly user: string; readonly blob: Buffer }[]
  /** Arguments for a client with an approved key. */
  args(...settings: string[]): string[]
  /** Runs the real client to its end. */
  ssh(command: string | undefined, how?: ClientOptions): Promise<Outcome>
  /** Our own client, logged in the same way. */
  connect(options?: Partial<ConnectOptions>): Promise<Connection>
  serving(): number
}

export interface ClientOptions {
  readonly user?: string
  readonly settings?: readonly string[]
  readonly options?: readonly string[]
  readonly input?: string | Buffer
  readonly env?: Record<string, string>
}

export interface DeviceOptions extends Partial<SshdOptions> {
  /** The default user. */
  readonly user?: string
}

const hostKey: PrivateKey = generatePrivateKey('ed25519')

export const isRoot = process.getuid?.() === 0

/** The password in single-user mode. */
export const secret = 'correct horse'

/** Single-user mode, with an invented home and shell. */
export async function oneUser(home: string): Promise<Users> {
  const checks = passwords({ log: () => undefined })
  const users = singleUser({ passwords: checks, hash: await shaCrypt(secret, '$6$rounds=1000$devicetests') })
  const atHome = (admission: Admission): Admission =>
    'account' in admission ? { account: { ...admission.account, home, shell: '/bin/bash' } } : admission
  return {
    admit: async (name) => atHome(await users.admit(name)),
    admitWithPassword: async (name, password) => atHome(await users.admitWithPassword(name, password)),
  }
}

export function usersOfSystem(): Users {
  return systemUsers({ passwords: passwords({ log: () => undefined }) })
}

export async function startDevice(options: DeviceOptions = {}): Promise<Device> {
  const { user: usual = ownAccount().name, ...rest } = options
  const where = folder()
  await keygen(where, 'vouched', '-t', 'rsa', '-b', '2048')
  const vouched = parsePublicKeyLine(where.read('vouched.pub')).blob
  mkdirSync(where.file('home'))
  const users = options.users ?? (await oneUser(where.file('home')))
  const events: Event[] = []
  const asked: Device['asked'] = []
  const ending = new AbortController()
  const serving = new Set<Promise<void>>()

  const listener = net.createServer((socket) => {
    socket.on('error', () => undefined)
    const served: Promise<void> = serveSsh(socket, {
      hostKeys: [hostKey],
      users,
      deviceName: 'testing',
      async approveKey(login) {
        asked.push(login)
        return login.blob.equals(vouched)
      },
      keepalive_ms: 30_000,
      signal: ending.signal,
      log: (event) => void events.push(event),
      // Those of the machine are not for tests.
      records: { utmp: where.file('utmp'), wtmp: where.file('wtmp') },
      ...rest,
    }).finally(() => serving.delete(served))
    serving.add(served)
  })
  listener.listen(0, '127.0.0.1')
  await new Promise((resolve) => void listener.once('listening', resolve))
  const { port } = listener.address() as AddressInfo
  const args = (...settings: string[]): string[] =>
    quietArgs(
      port,
      ...settings,
      `IdentityFile=${where.file('vouched')}`,
      'PasswordAuthentication=no',
      'ServerAliveInterval=0',
    )

  return {
    port,
    where,
    events,
    asked,
    args,
    ssh: async (command, { user = usual, settings = [], options: flags = [], input = '', env = {} } = {}) =>
      run(
        'ssh',
        [...args(...settings), ...flags, `${user}@127.0.0.1`, ...(command === undefined ? [] : [command])],
        input,
        env,
      ),
    connect: async (how = {}) =>
      connect(net.connect(port, '127.0.0.1'), {
        user: usual,
        proofs: [{ method: 'publickey', key: parsePrivateKey(where.read('vouched')) }],
        checkHostKey: () => true,
        ...how,
      }),
    serving: () => serving.size,
    async [Symbol.asyncDispose]() {
      listener.close()
      ending.abort()
      await Promise.all(serving)
      where[Symbol.dispose]()
    },
  }
}

/** Makes the client answer with this password. */
export function saying(where: Folder, password: string): Record<string, string> {
  const file = where.write('say', '#!/bin/sh\nprintf "%s\\n" "$SECRET"\n')
  chmodSync(file, 0o700)
  return { SSH_ASKPASS: file, SSH_ASKPASS_REQUIRE: 'force', SECRET: password }
}

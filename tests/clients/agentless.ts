// Machines without an agent, for tests: each has an SSH server of its own (OpenSSH's or Dropbear's) with its
// own host key and one user, olga, whose home is a folder of the test; and whatever connects out to the
// gateway from it is a real client. Users are told to the servers by nss_wrapper, so nothing of this system
// changes.
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import type { Device } from '@hawser/contract/devices'
import { startDaemon } from '../../ssh/test/peers.ts'
import {
  folder,
  freePort,
  keygen,
  quietArgs,
  run,
  type Folder,
  type Outcome,
} from '../../ssh/test/programs.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'
import { eventually, watch, type Running } from './way.ts'

export const password = 'sesame'
/** crypt(3) of the password, by SHA-512. */
const hashed =
  '$6$hawsertests$WJ1ktEKU5Rfrj6Kl5XkkcwE7RIpWF/Mxf8JyY/g11S8Dm3NReZzK4VIgSRwpD3PzapS7YqjELT9PDLaAMFLrd0'

/** What is needed of a machine to bring it in and to find it again. */
export interface Joinable {
  readonly port: number
  /** Of its host key, as OpenSSH shows it. */
  readonly fingerprint: string
}

export interface Machine extends Joinable, AsyncDisposable {
  readonly where: Folder
  /** Ends its SSH server and starts it again on the same port; with another host key if that is wanted. */
  restart(how?: { readonly newHostKey: boolean }): Promise<void>
  /** Lets the holder of this key log in. */
  authorize(line: string): void
  /** What its SSH server has logged since it was started. */
  log(): string
}

/** Olga, and the account under which sshd hides while nobody has logged in. */
function accounts(where: Folder): Record<string, string> {
  const [uid, gid] = [process.getuid!(), process.getgid!()]
  const hidden = 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n'
  return {
    NSS_WRAPPER_PASSWD: where.write('passwd', `olga:x:${uid}:${gid}::${where.path}:/bin/sh\n${hidden}`),
    NSS_WRAPPER_SHADOW: where.write('shadow', `olga:${hashed}:19000:0:99999:7:::\n`),
    NSS_WRAPPER_GROUP: where.write('group', `olga:x:${gid}:\n`),
    LD_PRELOAD: 'libnss_wrapper.so',
  }
}

async function machine(
  makeHostKey: (where: Folder) => Promise<void>,
  serve: (where: Folder, port: number) => { program: string; args: string[] },
): Promise<Machine> {
  const where = folder()
  mkdirSync(where.file('.ssh'), { mode: 0o700 })
  const port = await freePort()
  const users = accounts(where)
  const fingerprint = async (): Promise<string> => {
    const { stdout } = await run('ssh-keygen', ['-lf', where.file('host.pub')])
    return stdout.toString().split(' ')[1]!
  }
  await makeHostKey(where)
  let shown = await fingerprint()
  const start = async () => {
    const { program, args } = serve(where, port)
    return startDaemon(program, args, port, users)
  }
  let daemon = await start()
  return {
    where,
    port,
    get fingerprint() {
      return shown
    },
    async restart({ newHostKey } = { newHostKey: false }) {
      await daemon[Symbol.asyncDispose]()
      if (newHostKey) {
        for (const file of ['host', 'host.pub']) rmSync(where.file(file))
        await makeHostKey(where)
        shown = await fingerprint()
      }
      daemon = await start()
    },
    log: () => daemon.log(),
    authorize: (line) => void where.write('.ssh/authorized_keys', `${line}\n`),
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]()
      where[Symbol.dispose]()
    },
  }
}

/** `hostKey`: as ssh-keygen is told to make it. */
export async function opensshMachine(hostKey: readonly string[] = ['-t', 'ed25519']): Promise<Machine> {
  // Debian's sshd, started by root, wants the empty folder that its service would have made at boot.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  return machine(
    async (where) => void (await keygen(where, 'host', ...hostKey)),
    (where, port) => {
      const config = [
        `ListenAddress 127.0.0.1:${port}`,
        `HostKey ${where.file('host')}`,
        `AuthorizedKeysFile ${where.file('.ssh/authorized_keys')}`,
        'StrictModes no',
        'UsePAM no',
        'PidFile none',
        'PermitRootLogin yes',
        'Subsystem sftp internal-sftp',
      ]
      return {
        program: '/usr/sbin/sshd',
        args: ['-D', '-e', '-f', where.write('sshd_config', `${config.join('\n')}\n`)],
      }
    },
  )
}

export async function dropbearMachine(): Promise<Machine> {
  return machine(
    async (where) => {
      const { stdout } = await run('dropbearkey', ['-t', 'ed25519', '-f', where.file('host')])
      where.write('host.pub', `${/^\S+ AAAA\S+/m.exec(stdout.toString())![0]}\n`)
    },
    (where, port) => ({
      program: '/usr/sbin/dropbear',
      args: ['-F', '-E', '-m', '-P', '', '-p', `127.0.0.1:${port}`, '-r', where.file('host')],
    }),
  )
}

export interface Harbour extends AsyncDisposable {
  readonly service: Service
  readonly world: World
  readonly owner: Client
  /** Of the other namespace. */
  readonly stranger: Client
  /**
   * On the side of people: `olga` is registered for every user of every device. `gate` is an enrolment key.
   */
  readonly where: Folder
  /** Registers a key as an enrolment key. */
  enrol(key: string, client?: Client): Promise<string>
  /** The device's own `ssh -N -R`. */
  join(to: Joinable, how?: Joining): Running
  /** Waits for the device of this machine, which is online then. */
  arrived(of: Joinable, client?: Client): Promise<Device>
  find(of: Joinable, client?: Client): Promise<Device | undefined>
  /** Brings it in and accepts it. */
  accepted(of: Joinable, how?: Joining): Promise<{ readonly line: Running; readonly device: Device }>
  args(how?: Reaching): string[]
  /** Somebody's ssh to the device. */
  ssh(device: string, command: string, how?: Reaching): Promise<Outcome>
}

export interface Joining {
  readonly key?: string
  /** The key, if it is not among the harbour's. */
  readonly file?: string
  /** Of another gateway. */
  readonly port?: number
  /** Before the @. */
  readonly as?: string
  readonly settings?: readonly string[]
  /** Runs nothing at the other end, unless other flags are given. */
  readonly flags?: readonly string[]
}

export interface Reaching {
  /** Null: none; a password is said then. */
  readonly key?: string | null
  readonly password?: string
  readonly flags?: readonly string[]
  readonly input?: string | Buffer
}

export async function openHarbour(env: Record<string, string> = {}, data?: string): Promise<Harbour> {
  await using opened = new AsyncDisposableStack()
  const service = opened.use(
    await startService({
      env: { HAWSER_SSH_FAILURE_LIMIT: '0/60', ...env },
      ...(data === undefined ? {} : { folder: data }),
    }),
  )
  const world = await buildWorld(service)
  const owner = service.api({ token: await world.token('owner') })
  const stranger = service.api({ token: await world.token('stranger') })
  const where = opened.use(folder())
  for (const name of ['olga', 'gate']) await keygen(where, name, '-t', 'ed25519')
  const teller = where.write('teller', '#!/bin/sh\nprintf "%s\\n" "$SECRET"\n')
  chmodSync(teller, 0o700)

  const find = async (of: Joinable, client = owner): Promise<Device | undefined> => {
    const { body } = await client.devices.list({ query: { per_page: 100 } })
    return body.find(({ info }) => info.pretty_name.endsWith(of.fingerprint))
  }
  const args = ({ key = 'olga', flags = [] }: Reaching = {}): string[] => {
    const keyed =
      key === null
        ? ['IdentityFile=none', 'NumberOfPasswordPrompts=1']
        : [`IdentityFile=${where.file(key)}`, 'BatchMode=yes']
    // What the gateway says before somebody is in is not shown below this level.
    return [...quietArgs(service.sshPort, 'LogLevel=INFO', ...keyed), ...flags]
  }
  const harbour: Harbour = {
    service,
    world,
    owner,
    stranger,
    where,
    args,
    async enrol(key, client = owner) {
      const { body } = await client.enrolmentKeys.create({
        body: { name: key, public_key: where.read(`${key}.pub`) },
      })
      return body.fingerprint
    },
    join(to, how = {}) {
      const { key = 'gate', as = sample.tenant, settings = [], flags = ['-N'] } = how
      const { file = where.file(key), port = service.sshPort } = how
      const options = [
        ...settings,
        `IdentityFile=${file}`,
        'BatchMode=yes',
        'LogLevel=INFO',
        'ExitOnForwardFailure=yes',
      ]
      return watch('ssh', [
        ...quietArgs(port, ...options),
        ...flags,
        '-R',
        `0:127.0.0.1:${to.port}`,
        `${as}@127.0.0.1`,
      ])
    },
    find,
    async arrived(of, client = owner) {
      return eventually(async () => {
        const device = await find(of, client)
        expect(device?.online).toBe(true)
        return device!
      })
    },
    async accepted(of, how) {
      const line = harbour.join(of, how)
      const device = await harbour.arrived(of)
      await owner.devices.accept({ params: { uid: device.uid } })
      return { line, device }
    },
    async ssh(device, command, how = {}) {
      const env =
        how.password === undefined
          ? {}
          : { SSH_ASKPASS: teller, SSH_ASKPASS_REQUIRE: 'force', SECRET: how.password }
      const words = [
        ...args(how.password === undefined ? how : { ...how, key: null }),
        `olga@${sample.namespace}.${device}@127.0.0.1`,
      ]
      return run('ssh', [...words, command], how.input, env)
    },
    [Symbol.asyncDispose]: async () => whole.disposeAsync(),
  }
  await harbour.enrol('gate')
  const data64 = Buffer.from(where.read('olga.pub')).toString('base64')
  await owner.publicKeys.create({
    body: { data: data64, name: 'olga', username: '.*', filter: { hostname: '.*' } },
  })
  const whole = opened.move()
  return harbour
}

/** One for all tests of a file. */
export function sharedHarbour(): Harbour {
  vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })
  let opened: Harbour | undefined
  beforeAll(async () => {
    opened = await openHarbour()
  })
  afterAll(async () => opened?.[Symbol.asyncDispose]())
  return new Proxy({} as Harbour, {
    get(_, name) {
      if (!opened) throw new Error('it is not there yet: it is for use inside of tests')
      return Reflect.get(opened, name, opened) as unknown
    },
  })
}

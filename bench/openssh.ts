// OpenSSH as the yardstick: its server, and its client as the load for every server. Keys and settings are of
// a folder of the bench, and so is the login: where the system lets us, sshd and agents see a private copy of
// /etc in which our user has /bin/sh and an empty home, because what somebody's profile does at each login is
// not what is measured.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { generatePrivateKey, privateKeyFile, publicKeyLine, type PrivateKey } from '../ssh/src/index.ts'
import { childrenOf, freePort, startProcess, type Running } from './programs.ts'

export const kex = 'curve25519-sha256'
export const user = os.userInfo().username

export interface Keys {
  readonly file: string
  readonly key: PrivateKey
  readonly line: string
}

export function makeKey(folder: string, name: string): Keys {
  const key = generatePrivateKey('ed25519')
  const file = path.join(folder, name)
  writeFileSync(file, privateKeyFile(key), { mode: 0o600 })
  return { file, key, line: publicKeyLine(key.type, key.blob) }
}

/**
 * A prefix that runs a command with a private copy of /etc, where our user has a plain shell, an empty home
 * folder, and the given password. The whole folder is copied, since a mount over one file is gone as soon as
 * somebody replaces that file, as `useradd` does. Empty where that is impossible.
 */
export function plainLogin(folder: string, password?: string): string[] {
  const home = path.join(folder, 'home')
  const etc = path.join(folder, 'etc')
  mkdirSync(home, { recursive: true })
  if (spawnSync('cp', ['-a', '/etc', etc]).status !== 0) return []
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  const plain = lines.map((line) => {
    const fields = line.split(':')
    return fields[0] === user ? [...fields.slice(0, 5), home, '/bin/sh'].join(':') : line
  })
  writeFileSync(path.join(etc, 'passwd'), plain.join('\n'))
  if (password !== undefined) writeShadow(path.join(etc, 'shadow'), password)
  const prefix = ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /etc && exec "$@"', etc]
  return spawnSync(prefix[0]!, [...prefix.slice(1), 'true']).status === 0 ? prefix : []
}

function writeShadow(file: string, password: string): void {
  const hash = execFileSync('openssl', ['passwd', '-6', '-stdin'], { input: password, encoding: 'utf8' })
  writeFileSync(file, `${user}:${hash.trim()}:20000:0:99999:7:::\n`, { mode: 0o600 })
}

export interface Sshd extends Running {
  readonly port: number
}

/** For the holder of the key, as the user of the bench. */
export async function startSshd(folder: string, before: readonly string[], keys: Keys): Promise<Sshd> {
  const port = await freePort()
  // Debian's sshd, started by root, wants the empty folder that its service makes at boot.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  const authorized = path.join(folder, 'authorized_keys')
  writeFileSync(authorized, `${keys.line}\n`, { mode: 0o600 })
  const settings = [
    `ListenAddress 127.0.0.1:${port}`,
    `HostKey ${makeKey(folder, 'sshd_host_key').file}`,
    `AuthorizedKeysFile ${authorized}`,
    'StrictModes no',
    'UsePAM no',
    'PidFile none',
    'PermitRootLogin yes',
    'MaxSessions 1000',
    'MaxStartups 1000',
    'Subsystem sftp internal-sftp',
  ]
  const file = path.join(folder, 'sshd_config')
  writeFileSync(file, `${settings.join('\n')}\n`)
  const sshd = ['/usr/sbin/sshd', '/usr/local/sbin/sshd'].find((candidate) => existsSync(candidate))
  if (!sshd) throw new Error('there is no sshd here (Debian package openssh-server)')
  const running = startProcess([...before, sshd, '-D', '-e', '-f', file])
  await running.printed(/(Server listening)/)
  return { ...running, port }
}

export function familyMemory_mb(pid: number): number {
  try {
    const own = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1024
    return childrenOf(pid).reduce((sum, child) => sum + familyMemory_mb(child), own)
  } catch {
    // The process ended in between.
    return 0
  }
}

/** Waits, for a while, until finished processes of connections are reaped. */
export async function childless(pid: number): Promise<void> {
  for (let tries = 0; tries < 1000 && childrenOf(pid).length > 0; tries++) await wait(5)
}

export interface Destination {
  readonly port: number
  readonly user: string
  readonly keys: Keys
}

/** The client uses only the settings of the bench. */
export function clientArgs({ port, user, keys }: Destination, ...options: string[]): string[] {
  const settings = [
    ...options,
    `KexAlgorithms=${kex}`,
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
    'IdentitiesOnly=yes',
    'BatchMode=yes',
  ]
  return [
    '-F',
    'none',
    '-i',
    keys.file,
    '-p',
    String(port),
    ...settings.flatMap((one) => ['-o', one]),
    `${user}@127.0.0.1`,
  ]
}

/** To its end; returns the time in milliseconds. `input` is a file. */
export async function runClient(args: readonly string[], input?: string): Promise<number> {
  const stdin = input === undefined ? ('ignore' as const) : openSync(input, 'r')
  const started = performance.now()
  const child = spawn('ssh', args, { stdio: [stdin, 'ignore', 'pipe'] })
  if (stdin !== 'ignore') closeSync(stdin)
  let complaint = ''
  child.stderr!.setEncoding('utf8').on('data', (chunk: string) => (complaint += chunk))
  const [status] = (await once(child, 'close')) as [number | null]
  const took_ms = performance.now() - started
  if (status !== 0) throw new Error(`ssh ended with ${status}: ${complaint}`)
  return took_ms
}

export interface Master extends AsyncDisposable {
  /** On the open connection, so that the time is without its setup. */
  run(command: string, input?: string): Promise<number>
}

let masters = 0

export async function openMaster(folder: string, to: Destination, cipher: string): Promise<Master> {
  const socket = path.join(folder, `m${masters++}`)
  const args = clientArgs(to, `ControlPath=${socket}`, `Ciphers=${cipher}`, 'RekeyLimit=4G')
  const running = startProcess(['ssh', '-M', '-N', ...args])
  const limit_ms = performance.now() + 30_000
  while (!existsSync(socket)) {
    if (running.child.exitCode !== null || performance.now() > limit_ms)
      throw new Error(`no connection: ${await running.printed(/([^]*)/)}`)
    await wait(10)
  }
  return {
    run: (command, input) => runClient([...args, command], input),
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  }
}

/** A sparse file. */
export function zeros(folder: string, bytes: number): string {
  const file = path.join(folder, `zeros-${bytes}`)
  if (existsSync(file)) return file
  writeFileSync(file, '')
  truncateSync(file, bytes)
  return file
}

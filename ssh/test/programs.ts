// The real OpenSSH programs, for tests: a folder with keys that is gone afterwards, `ssh` and its family as
// children, and an `sshd` of our own configuration on a free port of the loopback, ended by its process id.
import { execFile, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import path from 'node:path'

export interface Outcome {
  readonly status: number | null
  readonly stdout: Buffer
  readonly stderr: string
}

/** Runs a program to its end. `input` is all that it can read; undefined gives it nothing. */
export async function run(
  program: string,
  args: readonly string[],
  input?: string | Buffer,
  env: Record<string, string> = {},
): Promise<Outcome> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env } })
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []]
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  // A program that ends without reading its input is no failure of ours.
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status) =>
      resolve({ status, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() }),
    )
  })
}

export interface Folder extends Disposable {
  readonly path: string
  file(name: string): string
  read(name: string): string
  write(name: string, content: string | Buffer): string
}

export function folder(): Folder {
  const root = mkdtempSync(path.join(tmpdir(), 'hawser-ssh-'))
  const file = (name: string): string => path.join(root, name)
  return {
    path: root,
    file,
    read: (name) => readFileSync(file(name), 'utf8'),
    write(name, content) {
      writeFileSync(file(name), content)
      chmodSync(file(name), 0o600)
      return file(name)
    },
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}

export async function keygen(where: Folder, name: string, ...args: string[]): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    execFile(
      'ssh-keygen',
      ['-q', '-C', name, '-f', where.file(name), ...(args.includes('-N') ? [] : ['-N', '']), ...args],
      (error) => (error ? reject(error) : resolve()),
    )
  })
  return where.file(name)
}

/** Arguments with which an OpenSSH client knows nothing but what the test says. */
export function quietArgs(port: number, ...options: string[]): string[] {
  // The first value of a setting is the one that counts.
  const settings = [
    ...options,
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
    'IdentitiesOnly=yes',
  ]
  return ['-F', 'none', '-p', String(port), ...settings.flatMap((setting) => ['-o', setting])]
}

export interface Sshd extends AsyncDisposable {
  readonly port: number
  readonly user: string
  connect(): net.Socket
  /** The log of the program so far. */
  log(): string
}

/**
 * A port of the loopback on which nobody listens. It is below those that the kernel gives to connections and to
 * listeners on port 0, because one of these could take it before the program that it is meant for.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, firstOfTheKernel)
    if (taken.has(port)) continue
    taken.add(port)
    if (await bindable(port)) return port
  }
}

const taken = new Set<number>()
const range = '/proc/sys/net/ipv4/ip_local_port_range'
const firstOfTheKernel = Math.max(
  20_000,
  existsSync(range) ? parseInt(readFileSync(range, 'utf8'), 10) : 32_768,
)

async function bindable(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = net.createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => void server.close(() => resolve(true)))
  })
}

/** Lets the holder of `authorizedKey` in, as whoever runs the test. */
export async function startSshd(where: Folder, authorizedKey: string, ...settings: string[]): Promise<Sshd> {
  const port = await freePort()
  // Debian's sshd, started by root, wants the empty folder that its service would have made at boot.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  for (const type of ['ed25519', 'ecdsa', 'rsa']) await keygen(where, `host_${type}`, '-t', type)
  where.write('authorized_keys', authorizedKey)
  const config = [
    `ListenAddress 127.0.0.1:${port}`,
    ...['ed25519', 'ecdsa', 'rsa'].map((type) => `HostKey ${where.file(`host_${type}`)}`),
    `AuthorizedKeysFile ${where.file('authorized_keys')}`,
    'StrictModes no',
    'UsePAM no',
    'PidFile none',
    'PermitRootLogin yes',
    'AcceptEnv HAWSER_*',
    'Subsystem sftp internal-sftp',
    'MaxSessions 100',
    ...settings,
  ]
  const child = spawn(
    '/usr/sbin/sshd',
    ['-D', '-e', '-f', where.write('sshd_config', `${config.join('\n')}\n`)],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  let log = ''
  const ended = new Promise<void>((resolve) => void child.once('close', () => resolve()))
  await new Promise<void>((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', () => reject(new Error(`sshd ended at once: ${log}`)))
    child.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString()
      if (log.includes('Server listening')) resolve()
    })
  })
  return {
    port,
    user: userInfo().username,
    connect: () => net.connect(port, '127.0.0.1'),
    log: () => log,
    async [Symbol.asyncDispose]() {
      child.kill()
      await ended
    },
  }
}

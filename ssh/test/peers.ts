// The common parts of the tests with foreign programs: servers of others as children on a port of the
// loopback, ended by their process id; algorithms taken one at a time; and an echo behind a port, for
// forwarding.
import { spawn } from 'node:child_process'
import { createHash, generateKeyPairSync } from 'node:crypto'
import net, { type AddressInfo } from 'node:net'
import { eventually } from '../../tests/harness/eventually.ts'
import { allAlgorithms, type Algorithms } from '../src/algorithms.ts'
import type { Connection } from '../src/connection/connection.ts'
import { generatePrivateKey, privateKeyFrom, type PrivateKey } from '../src/keys/private-key.ts'
import type { Folder } from './programs.ts'

export interface Daemon extends AsyncDisposable {
  readonly port: number
  connect(): net.Socket
  /** All that it has printed. */
  log(): string
}

/** Starts a server and waits until it takes connections on the port, which its arguments must name. */
export async function startDaemon(
  program: string,
  args: readonly string[],
  port: number,
  env: Record<string, string> = {},
): Promise<Daemon> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } })
  let log = ''
  let over = false
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const ended = new Promise<void>((resolve) => {
    child.on('error', (error) => {
      log += error.message
      over = true
      resolve()
    })
    child.on('close', () => {
      over = true
      resolve()
    })
  })
  const stop = async (): Promise<void> => {
    child.kill()
    await ended
  }
  try {
    await eventually(async () => over || whenListening({ port, host: '127.0.0.1' }))
    if (over) throw new Error(`${program} ended at once: ${log}`)
  } catch (error) {
    await stop()
    throw error
  }
  return { port, connect: () => net.connect(port, '127.0.0.1'), log: () => log, [Symbol.asyncDispose]: stop }
}

/**
 * The environment in which a server finds one user, olga, who is whoever runs the test but at home in the
 * folder and with another password (its hash by crypt(3)). It is nss_wrapper that stands between the server
 * and the list of the system.
 */
export function oneUser(where: Folder, hashed = '*'): Record<string, string> {
  const [uid, gid] = [process.getuid!(), process.getgid!()]
  return {
    NSS_WRAPPER_PASSWD: where.write('passwd', `olga:x:${uid}:${gid}::${where.path}:/bin/sh\n`),
    NSS_WRAPPER_SHADOW: where.write('shadow', `olga:${hashed}:19000:0:99999:7:::\n`),
    NSS_WRAPPER_GROUP: where.write('group', `olga:x:${gid}:\n`),
    LD_PRELOAD: 'libnss_wrapper.so',
  }
}

/** Fails unless somebody listens there. */
export async function whenListening(to: net.NetConnectOpts): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(to, () => resolve(void socket.destroy()))
    socket.on('error', reject)
  })
}

/** Sends all and ends; returns what comes back. */
export async function roundTrip(port: number, sent: Buffer): Promise<Buffer> {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const parts: Buffer[] = []
  socket.end(sent)
  for await (const chunk of socket as AsyncIterable<Buffer>) parts.push(chunk)
  return Buffer.concat(parts)
}

/** Whatever comes in goes out again. */
export async function startEcho(): Promise<{ readonly port: number } & Disposable> {
  const server = net.createServer(
    { allowHalfOpen: true },
    (socket) => void socket.on('error', () => undefined).pipe(socket),
  )
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, [Symbol.dispose]: () => void server.close() }
}

export type OneAlgorithm = readonly [name: string, algorithms: Algorithms]

/**
 * Each of these names in turn as the only one of its kind, everything else as in our full lists. A MAC takes
 * part only with a cipher that has no tag of its own. A name that is not ours is a mistake of the test.
 */
export function oneByOne(shared: Partial<Algorithms>): OneAlgorithm[] {
  const kinds = ['kex', 'ciphers', 'macs', 'hostKey'] as const
  return kinds.flatMap((kind) =>
    (shared[kind] ?? []).map((name): OneAlgorithm => {
      if (!allAlgorithms[kind].includes(name)) throw new Error(`${name} is not among our algorithms`)
      return [
        name,
        { ...allAlgorithms, ...(kind === 'macs' ? { ciphers: ['aes128-ctr'] } : {}), [kind]: [name] },
      ]
    }),
  )
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/**
 * One of every type that a server can have. With a comment, as theirs have: paramiko cannot read every file
 * without one.
 */
export function everyKey(): PrivateKey[] {
  const curves = ['P-256', 'P-384', 'P-521'].map(
    (namedCurve) => generateKeyPairSync('ec', { namedCurve }).privateKey,
  )
  const comment = 'olga'
  return [
    generatePrivateKey('ed25519', comment),
    generatePrivateKey('rsa', comment),
    ...curves.map((key) => privateKeyFrom(key, comment)),
  ]
}

/** The names that two sides agreed on. */
export function agreed({ transport: { negotiated } }: Connection): string[] {
  const { kex, hostKey, toServer, toClient } = negotiated
  return [
    kex.name,
    hostKey,
    ...[toServer, toClient].flatMap(({ cipher, mac }) => [cipher.name, ...(mac ? [mac.name] : [])]),
  ]
}

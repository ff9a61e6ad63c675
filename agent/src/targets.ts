// Connects streams of the tunnel to the targets of web services. The setting must permit the target
// (permitted-targets.ts), and the server must have signed the request with its pinned key: neither a proxy nor a
// stranger at the server's address can use the device to reach its network. A name is resolved once, and the
// agent connects to the addresses that it has judged. Of a container, only the container itself is reached.
import { lookup as systemLookup } from 'node:dns/promises'
import net, { isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import {
  targetDial_ms,
  targetText,
  type TargetAddress,
  type TargetAnswer,
  type TargetRefusal,
} from '@hawser/contract/tunnel'
import { isReleasing } from '@hawser/mux'
import { copyOf, giveBack, readBuffer } from './read-memory.ts'
import { isLocal, isLoopback, isNever, permits } from './permitted-targets.ts'
import { isSigned } from './server-key.ts'
import { isPort, readHost, type ServicesSetting } from './services-setting.ts'

export interface TargetParts {
  readonly setting: ServicesSetting
  /** The blob of the pinned key. */
  serverKey(): Buffer | undefined
  /** The addresses of a container, which stand for its localhost. Undefined: the device is this machine. */
  readonly ownAddresses?: (() => Promise<readonly string[]>) | undefined
  /** A target is open until this is disposed. */
  session(): Disposable
  readonly lookup?: (host: string) => Promise<readonly string[]>
}

/** Resolves when the connection has ended, or with the reason why there is none. */
export type Targets = (
  stream: Duplex,
  request: unknown,
  tunnel: { readonly uid: string; readonly nonce: string },
) => Promise<TargetRefusal | undefined>

/** The tunnel has room for a few hundred sessions besides. */
const mostOpen = 768
const mostDialling = 64
const mostAddresses = 4
/** The answer leaves before the server stops waiting for it. */
const dial_ms = targetDial_ms - 1_000
/** For the last bytes to a target whose stream has ended. */
const linger_ms = 10_000
const keepAlive_ms = 60_000
/** Pieces of a target that wait for the tunnel: one is written while the next is read. */
const mostWaiting = 2

export function targetsOf(parts: TargetParts): Targets {
  let open = 0
  let dialling = 0

  async function dial(stream: Duplex, target: TargetAddress): Promise<Socket | TargetRefusal> {
    if (open + dialling >= mostOpen || dialling >= mostDialling) return 'busy'
    dialling += 1
    try {
      const until = performance.now() + dial_ms
      const addresses = await addressesOf(parts, target)
      return typeof addresses === 'string' ? addresses : await connect(addresses, target.port, until, stream)
    } catch (error) {
      return refusals[(error as NodeJS.ErrnoException).code ?? ''] ?? 'failed'
    } finally {
      dialling -= 1
    }
  }

  return async (stream, request, { uid, nonce }) => {
    const { host: named, port, signature } = (request ?? {}) as Record<string, unknown>
    const host = readHost(named)
    if (host === undefined || !isPort(port)) return 'forbidden'
    const text = targetText(uid, nonce, { host: String(named), port })
    if (!(await isSigned(text, signature, parts.serverKey()))) return 'unapproved'
    const socket = await dial(stream, { host, port })
    if (typeof socket === 'string') return socket
    using _ = parts.session()
    open += 1
    const line: TargetAnswer = { open: true }
    stream.write(`${JSON.stringify(line)}\n`)
    await join(stream, socket)
    open -= 1
    return undefined
  }
}

/** Judged addresses to connect to, or why there are none. */
async function addressesOf(
  { setting, ownAddresses, lookup = lookUp }: TargetParts,
  target: TargetAddress,
): Promise<readonly string[] | TargetRefusal> {
  const { host } = target
  const onlyLocal = ownAddresses || (setting !== 'network' && !isAnyElse(setting))
  if (onlyLocal && !isLocal(host)) return 'forbidden'
  const named = host === 'localhost' ? ['127.0.0.1', '::1'] : isIP(host) ? [host] : await inTime(lookup(host))
  const found = named.flatMap((address) => readHost(address) ?? [])
  const permitted = found.filter((address) => permits(setting, target, address))
  if (permitted.length === 0) return 'forbidden'
  if (!ownAddresses) return permitted.slice(0, mostAddresses)
  const own = (await ownAddresses()).filter((address) => !isLoopback(address) && !isNever(address))
  return own.length > 0 ? own.slice(0, mostAddresses) : 'unreachable'
}

/** Without it, names of others need not be resolved. */
const isAnyElse = (setting: ServicesSetting): boolean =>
  typeof setting !== 'string' && setting.some(({ host }) => !isLocal(host))

const lookUp = async (host: string): Promise<readonly string[]> =>
  (await systemLookup(host, { all: true })).map(({ address }) => address)

const refusals: Readonly<Record<string, TargetRefusal>> = {
  ECONNREFUSED: 'closed',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  ENOTFOUND: 'unreachable',
  EAI_AGAIN: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  ETIMEDOUT: 'timeout',
}

const tooLate = (): Error => Object.assign(new Error('No answer came in time.'), { code: 'ETIMEDOUT' })

async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(tooLate()), dial_ms)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Tries one address after the other; throws the error of the first. */
async function connect(
  addresses: readonly string[],
  port: number,
  until: number,
  stream: Duplex,
): Promise<Socket> {
  let first: unknown
  for (const [index, address] of addresses.entries()) {
    const share_ms = (until - performance.now()) / (addresses.length - index)
    try {
      return await connectTo(address, port, share_ms, stream)
    } catch (error) {
      first ??= error
    }
  }
  throw first
}

async function connectTo(host: string, port: number, limit_ms: number, stream: Duplex): Promise<Socket> {
  if (stream.destroyed || limit_ms <= 0) throw tooLate()
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = net.connect({
    host,
    port,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAlive_ms,
    onread: { buffer: readBuffer, callback: (count) => take(readBuffer.subarray(0, count)) },
  })
  const take = writerTo(stream, () => socket.resume())
  // Until the answer has left.
  socket.pause()
  const leave = (): void => void socket.destroy()
  stream.once('close', leave)
  socket.setTimeout(limit_ms, () => socket.destroy(tooLate()))
  socket.on('error', reject)
  socket.once('connect', () => resolve(socket.setTimeout(0)))
  socket.once('close', () => reject(new Error('The stream has ended.')))
  try {
    return await promise
  } finally {
    stream.off('close', leave)
  }
}

/** Resolves when both are closed. Each direction ends by itself; what breaks one of them closes both. */
async function join(stream: Duplex, socket: Socket): Promise<void> {
  const streamClosed = closing(stream).then((isRegular) => {
    if (!isRegular) socket.destroy()
    else socket.setTimeout(linger_ms, () => socket.destroy())
  })
  const socketClosed = closing(socket).then((isRegular) => {
    if (!isRegular) stream.destroy()
  })
  stream.on('data', (bytes: Buffer) => {
    if (!socket.write(bytes)) stream.pause()
  })
  socket.on('drain', () => stream.resume())
  stream.on('end', () => socket.end())
  socket.on('end', () => stream.end())
  socket.resume()
  await Promise.all([streamClosed, socketClosed])
}

/** Whether all was read and written before. */
async function closing(each: Duplex): Promise<boolean> {
  if (!each.closed) await new Promise<void>((resolve) => void each.once('close', resolve))
  return each.readableEnded && each.writableFinished
}

/** Writes copies of what is read; false while two of them wait, so that a slow reader slows the target. */
function writerTo(stream: Duplex, resume: () => void): (bytes: Buffer) => boolean {
  const isReleased = isReleasing(stream)
  let waiting = 0
  return (bytes) => {
    const copy = copyOf(bytes)
    waiting += 1
    stream.write(copy, (error) => {
      waiting -= 1
      // A stream that fails may still hold it.
      if (isReleased && !error) giveBack(copy)
      if (waiting < mostWaiting) resume()
    })
    return waiting < mostWaiting
  }
}

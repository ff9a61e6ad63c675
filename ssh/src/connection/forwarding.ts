// Forwarded connections (RFC 4254 section 7 and OpenSSH's PROTOCOL file, section 2.4): what the channels and
// requests carry, and the joining of a channel with a socket. Who may forward where is the caller's to
// decide: nothing here dials or listens by itself.
//   direct-tcpip                     string host, uint32 port, string origin, uint32 origin port
//   forwarded-tcpip                  string bound address, uint32 bound port, string origin, uint32 origin port
//   tcpip-forward and cancel-…       string address, uint32 port      (answer for port 0: uint32 port)
//   direct-streamlocal@openssh.com   string path, string reserved, uint32 reserved
//   forwarded-streamlocal@openssh.com  string path, string reserved
//   streamlocal-forward@openssh.com and cancel-…   string path
//   session, auth-agent@openssh.com  nothing
import type { Duplex } from 'node:stream'
import { ProtocolError } from '../errors.ts'
import { Reader, Writer } from '../wire.ts'
import type { Channel } from './channel.ts'

/** For the last bytes of a socket whose channel is gone. */
const linger_ms = 10_000

/** One forwarded TCP connection (RFC 4254 section 7.2). */
export interface TcpForward {
  /** To dial, or listened on. */
  readonly host: string
  readonly port: number
  readonly origin: string
  readonly originPort: number
}

/** The payload of direct-tcpip and forwarded-tcpip. */
export function readTcpForward(payload: Buffer): TcpForward {
  return readAll(payload, (reader) => ({
    host: reader.text(1_024),
    port: reader.uint32(),
    origin: reader.text(1_024),
    originPort: reader.uint32(),
  }))
}

/** The payload of direct-tcpip and forwarded-tcpip. */
export function writeTcpForward({ host, port, origin, originPort }: TcpForward): Buffer {
  return new Writer().string(host).uint32(port).string(origin).uint32(originPort).bytes()
}

/** The payload of tcpip-forward and cancel-tcpip-forward. */
export function readListen(payload: Buffer): { readonly host: string; readonly port: number } {
  return readAll(payload, (reader) => ({ host: reader.text(1_024), port: reader.uint32() }))
}

/** The payload of tcpip-forward and cancel-tcpip-forward. */
export function writeListen(host: string, port: number): Buffer {
  return new Writer().string(host).uint32(port).bytes()
}

/** For a tcpip-forward for port 0: the bound port. */
export function writePort(port: number): Buffer {
  return new Writer(4).uint32(port).bytes()
}

/** From the answer to a tcpip-forward for port 0: the bound port. */
export function readPort(payload: Buffer): number {
  return new Reader(payload).uint32()
}

/** For all streamlocal messages, whose reserved fields mean nothing. */
export function readPath(payload: Buffer): string {
  return new Reader(payload).text(4_096)
}

const withReserved = (reader: Reader): void => void [reader.text(4_096), reader.string()]
const nothing = (): void => undefined

/** Readers of the bodies of openings and of global requests. */
const bodies: ReadonlyMap<string, (payload: Buffer) => unknown> = new Map<
  string,
  (payload: Buffer) => unknown
>([
  ['session', (payload) => readAll(payload, nothing)],
  ['auth-agent@openssh.com', (payload) => readAll(payload, nothing)],
  ['direct-tcpip', readTcpForward],
  ['forwarded-tcpip', readTcpForward],
  ['tcpip-forward', readListen],
  ['cancel-tcpip-forward', readListen],
  [
    'direct-streamlocal@openssh.com',
    (payload) => readAll(payload, (reader) => [withReserved(reader), reader.uint32()]),
  ],
  ['forwarded-streamlocal@openssh.com', (payload) => readAll(payload, withReserved)],
  ['streamlocal-forward@openssh.com', (payload) => readAll(payload, (reader) => reader.text(4_096))],
  ['cancel-streamlocal-forward@openssh.com', (payload) => readAll(payload, (reader) => reader.text(4_096))],
])

/** Whether the payload is well-formed; true for unknown names. */
export function isReadable(name: string, payload: Buffer): boolean {
  try {
    bodies.get(name)?.(payload)
    return true
  } catch (error) {
    if (error instanceof ProtocolError) return false
    throw error
  }
}

/** Throws when bytes are left. */
function readAll<T>(payload: Buffer, read: (reader: Reader) => T): T {
  const reader = new Reader(payload)
  const body = read(reader)
  reader.end()
  return body
}

/** The payload of direct-streamlocal@openssh.com. */
export function writeDirectPath(path: string): Buffer {
  return new Writer().string(path).string('').uint32(0).bytes()
}

/** The payload of forwarded-streamlocal@openssh.com. */
export function writeForwardedPath(path: string): Buffer {
  return new Writer().string(path).string('').bytes()
}

/** The payload of streamlocal-forward@openssh.com and its cancel. */
export function writePath(path: string): Buffer {
  return new Writer().string(path).bytes()
}

/**
 * Resolves when both directions have ended; each end is passed on as it comes, and each side's pace is the
 * other's.
 */
export async function joinSocket(channel: Channel, socket: Duplex): Promise<void> {
  const inward = async (): Promise<void> => {
    for await (const { bytes, stream } of channel) {
      if (stream === 0 && !socket.write(bytes)) await drained(socket)
    }
    socket.end()
  }
  const outward = async (): Promise<void> => {
    // Plain iteration would destroy the socket at its end of input, with output that is still to be written.
    const input: AsyncIterable<Buffer> = socket.iterator({ destroyOnReturn: false })
    for await (const bytes of input) await channel.write(bytes)
    await channel.end()
  }
  const reading = inward()
  // The last bytes of a closed channel leave, then the socket is closed, too.
  const gone = channel.closed.then(async () => {
    await reading.catch(() => undefined)
    await finished(socket)
    socket.destroy()
  })
  try {
    await Promise.all([reading, outward()])
    await channel.close()
  } catch {
    socket.destroy()
    await channel.close('now')
  }
  await gone
}

/** Waits until the output has left, or for a limited time when nobody reads from the socket. */
async function finished(socket: Duplex): Promise<void> {
  if (socket.writableFinished || socket.destroyed) return
  await new Promise<void>((resolve) => {
    const limit = setTimeout(resolve, linger_ms)
    socket.once('finish', resolve)
    socket.once('close', resolve)
    socket.once('close', () => clearTimeout(limit))
  })
}

async function drained(socket: Duplex): Promise<void> {
  if (socket.destroyed) throw new Error('The socket is closed.')
  await new Promise<void>((resolve) => {
    const done = (): void => {
      socket.off('drain', done)
      socket.off('close', done)
      resolve()
    }
    socket.on('drain', done)
    socket.on('close', done)
  })
  if (socket.destroyed) throw new Error('The socket was closed.')
}

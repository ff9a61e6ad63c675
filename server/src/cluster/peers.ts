// Streams between nodes: the node that has a device's tunnel opens a stream for the node on which a user
// wants to reach the device. Two nodes share one connection. Its streams have windows of their own, so that a
// slow reader slows its device and nobody else. Over TCP the connection is TLS with a pre-shared key that
// both derive from the installation's secret: a peer without it fails in the handshake, and there are no
// certificates to renew. Nodes of one machine may use Unix sockets instead, which only the user of the nodes
// can open. These carry no TLS, which costs more than everything else that a byte meets between two nodes.
//   a stream begins with: uint16 length, JSON of the request
//   the answer: uint16 length and a sentence; length 0: the stream is open
import { hkdfSync } from 'node:crypto'
import { once } from 'node:events'
import { lstatSync, rmSync } from 'node:fs'
import net, { type AddressInfo, type Server, type Socket } from 'node:net'
import { pipeline, type Duplex } from 'node:stream'
import tls from 'node:tls'
import { openMux, type Mux } from '@hawser/mux'
import { Unreachable } from '../tunnel/tunnel.ts'

export interface PeerRequest {
  readonly kind: string
  readonly [detail: string]: string | number
}

/** A TCP port, or a Unix socket of this machine. */
export type PeerAddress = { readonly host: string; readonly port: number } | { readonly path: string }

export interface Peers extends AsyncDisposable {
  /** Where other nodes reach this one. */
  readonly address: PeerAddress
  /** Throws Unreachable with the other node's reason, or this one's. */
  open(address: PeerAddress, request: PeerRequest, signal: AbortSignal): Promise<Duplex>
}

export interface PeerOptions {
  /** Where other nodes connect. */
  readonly listen: PeerAddress
  readonly masterKey: Buffer
  /** The peer gets the message of a thrown error. */
  serve(request: PeerRequest, signal: AbortSignal): Promise<Duplex>
  onError(error: Error): void
}

const identity = 'hawser-node'
/**
 * Both have forward secrecy. AES comes first: servers' processors have instructions for it, and it took a
 * fifth less processor time. ChaCha20 is for processors without them.
 */
const ciphers = 'DHE-PSK-AES128-GCM-SHA256:ECDHE-PSK-CHACHA20-POLY1305'
const connect_ms = 5_000
const opening_ms = 30_000
const mostRequest_bytes = 4_096
const ping = { every_ms: 5_000, timeout_ms: 10_000 }
/** For the streams of all users: a slow browser may leave a whole window of each unread. */
const streams = { mostStreams: 20_000, window_bytes: 1024 * 1024, mostUnread_bytes: 512 * 1024 * 1024 }

export async function startPeers(options: PeerOptions): Promise<Peers> {
  const psk = Buffer.from(hkdfSync('sha256', options.masterKey, Buffer.alloc(0), 'hawser nodes 1', 32))
  const secrets = { ciphers, minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const
  const sessions = new Set<Mux>()
  const dialled = new Map<string, Promise<Mux>>()
  const closing = new AbortController()

  const accept = (socket: Socket): void => {
    socket.on('error', () => undefined)
    if (closing.signal.aborted) return void socket.destroy()
    socket.setNoDelay(true)
    const mux = openMux(socket, { role: 'server', ping, ...streams })
    sessions.add(mux)
    void mux.ended.then(() => sessions.delete(mux))
    void (async () => {
      for await (const stream of mux.incoming) void answer(stream)
    })()
  }

  const answer = async (stream: Duplex): Promise<void> => {
    const leaving = new AbortController()
    stream.once('close', () => leaving.abort(new Unreachable('The other node left.')))
    try {
      const signal = AbortSignal.any([leaving.signal, AbortSignal.timeout(opening_ms)])
      const request = JSON.parse(await readSized(stream, signal)) as PeerRequest
      const found = await options.serve(request, signal)
      stream.write(sized(''))
      join(stream, found)
    } catch (error) {
      stream.end(sized((error as Error).message || 'It cannot be reached.'))
    }
  }

  const server =
    'path' in options.listen
      ? net.createServer(accept)
      : tls
          .createServer(
            {
              ...secrets,
              dhparam: 'auto',
              pskCallback: (_, name) => (name === identity ? psk : null),
              // The end of this node waits for connections that have not proved themselves, too.
              handshakeTimeout: connect_ms,
            },
            accept,
          )
          .on('tlsClientError', (error, socket) => {
            options.onError(error)
            socket.destroy()
          })
  await listenAt(server, options.listen)

  const connect = (address: PeerAddress): { socket: Socket; ready: string } => {
    if ('path' in address) return { socket: net.connect(address.path), ready: 'connect' }
    const socket = tls.connect({
      ...address,
      ...secrets,
      pskCallback: () => ({ psk, identity }),
      // The shared key is the proof; there is no certificate whose name could be checked.
      checkServerIdentity: () => undefined,
    })
    return { socket, ready: 'secureConnect' }
  }

  const dial = async (address: PeerAddress): Promise<Mux> => {
    if (closing.signal.aborted) throw new Unreachable('This node is stopping.')
    const { socket, ready } = connect(address)
    socket.setNoDelay(true)
    try {
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(connect_ms)])
      await once(socket, ready, { signal })
      closing.signal.throwIfAborted()
    } catch (cause) {
      socket.destroy()
      throw new Unreachable('The node that has the device does not answer.', { cause })
    }
    const mux = openMux(socket, { role: 'client', mostIncoming: 0, ping, ...streams })
    sessions.add(mux)
    return mux
  }

  const sessionWith = (address: PeerAddress): Promise<Mux> => {
    const key = JSON.stringify(address)
    const there = dialled.get(key)
    if (there) return there
    const dialling = dial(address)
    dialled.set(key, dialling)
    const forget = (): void => {
      if (dialled.get(key) === dialling) dialled.delete(key)
    }
    dialling.then((mux) => void mux.ended.then(() => (sessions.delete(mux), forget())), forget)
    return dialling
  }

  return {
    address:
      'path' in options.listen
        ? options.listen
        : { host: options.listen.host, port: (server.address() as AddressInfo).port },
    async open(address, request, signal) {
      const mux = await sessionWith(address)
      const stream = mux.open(sized(JSON.stringify(request)))
      const problem = await readSized(stream, signal).catch((cause: unknown) => {
        stream.destroy()
        throw new Unreachable('The node that has the device was lost.', { cause })
      })
      if (problem === '') return stream
      stream.destroy()
      throw new Unreachable(problem)
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      for (const mux of sessions) mux.close()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Only the user of this process can open a Unix socket that is made here. */
async function listenAt(server: Server, where: PeerAddress): Promise<void> {
  const listening = once(server, 'listening')
  if ('path' in where) {
    await removeStale(where.path)
    const before = process.umask(0o177)
    server.listen(where.path)
    process.umask(before)
  } else server.listen(where)
  await listening
}

/** Removes the socket of a killed node. Throws when another node listens at it. */
async function removeStale(path: string): Promise<void> {
  const socket = net.connect(path)
  const refused = await once(socket, 'connect').then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error,
  )
  socket.destroy()
  if (refused?.code === 'ENOENT') return
  // A node that is busy answers EAGAIN, one of another user EACCES.
  if (refused?.code !== 'ECONNREFUSED')
    throw new Error(`Another node listens at ${path}.`, { cause: refused })
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket()) rmSync(path)
}

export function join(peer: Duplex, here: Duplex): void {
  // Each direction ends by itself; an error in either ends both.
  const settle = (error?: Error | null): void => {
    if (!error) return
    peer.destroy()
    here.destroy()
  }
  corkPerTurn(peer, here)
  pipeline(peer, here, settle)
  pipeline(here, peer, settle)
}

/**
 * Writes what arrives in one turn of the event loop together: TLS delivers pieces of at most 16 KiB, and each
 * would otherwise become a frame of its own.
 */
function corkPerTurn(from: Duplex, to: Duplex): void {
  let corked = false
  from.on('data', () => {
    if (corked) return
    corked = true
    to.cork()
    setImmediate(() => {
      corked = false
      to.uncork()
    })
  })
}

function sized(text: string): Buffer {
  const bytes = Buffer.from(text).subarray(0, mostRequest_bytes)
  const out = Buffer.allocUnsafe(2 + bytes.length)
  out.writeUInt16BE(bytes.length, 0)
  out.set(bytes, 2)
  return out
}

/** Reads one text with its length in front; what follows stays in the stream. */
async function readSized(stream: Duplex, signal: AbortSignal): Promise<string> {
  const length = (await take(stream, 2, signal)).readUInt16BE(0)
  if (length > mostRequest_bytes) throw new Error('A request is too long.')
  return length === 0 ? '' : (await take(stream, length, signal)).toString('utf8')
}

async function take(stream: Duplex, count: number, signal: AbortSignal): Promise<Buffer> {
  for (;;) {
    const bytes = stream.read(count) as Buffer | null
    if (bytes?.length === count) return bytes
    if (bytes) throw new Error('The stream ended too early.')
    if (stream.destroyed || stream.readableEnded) throw stream.errored ?? new Error('The stream is over.')
    await readable(stream, signal)
  }
}

/** Resolves when there may be something to read, or when there never will be. */
async function readable(stream: Duplex, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const events = ['readable', 'end', 'close'] as const
  const onAbort = (): void => reject(signal.reason as Error)
  for (const event of events) stream.on(event, resolve)
  signal.addEventListener('abort', onAbort)
  try {
    if (signal.aborted) onAbort()
    await promise
  } finally {
    for (const event of events) stream.off(event, resolve)
    signal.removeEventListener('abort', onAbort)
  }
}

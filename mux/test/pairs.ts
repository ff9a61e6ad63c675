// Lines for tests to put a session on: two ends in memory, or a real pair of WebSockets over loopback. And a
// peer that keeps to no rule: it says bytes and shows those that came.
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { duplexPair, type Duplex } from 'node:stream'
import { once } from 'node:events'
import type { WebSocket } from 'ws'
import {
  acceptBytes,
  acceptWebSocket,
  dialBytes,
  dialWebSocket,
  openMux,
  type BytesOptions,
  type Mux,
  type MuxOptions,
} from '../src/index.ts'

export interface SocketPair extends AsyncDisposable {
  /** The side that dialled. */
  readonly client: WebSocket
  readonly server: WebSocket
  /** The server's TCP connection under it. */
  readonly tcp: Socket
}

export async function socketPair(): Promise<SocketPair> {
  const http = createServer()
  const accepted = Promise.withResolvers<{ server: WebSocket; tcp: Socket }>()
  http.on('upgrade', (request, socket, head) => {
    acceptWebSocket(request, socket, head).then(
      (server) => accepted.resolve({ server, tcp: socket as Socket }),
      accepted.reject,
    )
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const client = await dialWebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}/`)
  const { server, tcp } = await accepted.promise
  return {
    client,
    server,
    tcp,
    async [Symbol.asyncDispose]() {
      client.terminate()
      server.terminate()
      http.close()
      await once(http, 'close')
    },
  }
}

export interface BytePair extends AsyncDisposable {
  /** The side that dialled. */
  readonly client: Duplex
  readonly server: Duplex
  /** The server's TCP connection under it. */
  readonly tcp: Socket
}

/** The same with WebSockets that carry bytes. */
export async function bytePair(options?: BytesOptions): Promise<BytePair> {
  const http = createServer()
  const accepted = Promise.withResolvers<{ server: Duplex; tcp: Socket }>()
  http.on('upgrade', (request, socket, head) => {
    accepted.resolve({ server: acceptBytes(request, socket, head, options), tcp: socket as Socket })
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const client = await dialBytes(`ws://127.0.0.1:${(http.address() as AddressInfo).port}/`)
  const { server, tcp } = await accepted.promise
  return {
    client,
    server,
    tcp,
    async [Symbol.asyncDispose]() {
      client.destroy()
      server.destroy()
      http.close()
      await once(http, 'close')
    },
  }
}

/** Two sessions on one line in memory. */
export function muxPair(
  client: Partial<MuxOptions> = {},
  server: Partial<MuxOptions> = {},
): { client: Mux; server: Mux; line: Duplex } {
  const [near, far] = duplexPair()
  return {
    client: openMux(near, { role: 'client', ...client }),
    server: openMux(far, { role: 'server', ...server }),
    line: near,
  }
}

export interface RudePeer {
  readonly mux: Mux
  readonly line: Duplex
  say(hex: string): void
  /** The next so many bytes that came from the session, in hex. */
  hear(bytes: number): Promise<string>
}

/** A session of ours and the bare line to it. */
export function rudePeer(options: MuxOptions): RudePeer {
  const [line, ours] = duplexPair()
  const mux = openMux(ours, options)
  return {
    mux,
    line,
    say: (hex) => void line.write(Buffer.from(hex.replaceAll(' ', ''), 'hex')),
    hear: async (bytes) => (await takeBytes(line, bytes)).toString('hex'),
  }
}

/** Exactly so many bytes of a stream that nobody else reads. */
export async function takeBytes(stream: Duplex, bytes: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let left = bytes
  for (;;) {
    const piece = stream.read(Math.min(left, stream.readableLength)) as Buffer | null
    if (piece) pieces.push(piece)
    left -= piece?.length ?? 0
    if (left === 0) return Buffer.concat(pieces)
    if (stream.readableEnded || stream.destroyed)
      throw stream.errored ?? new Error(`The stream ended with ${left} bytes missing.`)
    if (stream.readableLength === 0) await anyOf(stream, ['readable', 'end', 'close'])
  }
}

function anyOf(stream: Duplex, events: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    const happened = (): void => {
      for (const event of events) stream.off(event, happened)
      resolve()
    }
    for (const event of events) stream.on(event, happened)
  })
}

/** All that is left of a stream. */
export async function takeAll(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

export async function accept(mux: Mux): Promise<Duplex> {
  for await (const stream of mux.incoming) return stream
  throw new Error('The session ended.')
}

/** Turns of the event loop, for what is to happen, or is not to happen, without anything to wait for. */
export async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** How a stream ended: its error, or undefined when it just ended. */
export async function closed(stream: Duplex): Promise<Error | undefined> {
  if (!stream.closed) await new Promise((resolve) => stream.once('close', resolve))
  return stream.errored ?? undefined
}

export function written(stream: Duplex, bytes: Uint8Array | string): Promise<void> {
  return new Promise(
    (resolve, reject) => void stream.write(bytes, (error) => (error ? reject(error) : resolve())),
  )
}

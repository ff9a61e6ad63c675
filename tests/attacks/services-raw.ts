// For attacks on services of devices: bytes as they are to the server's port, and programs on the device that
// record each request they see, or that answer with any bytes.
import { once } from 'node:events'
import net from 'node:net'
import { expect } from 'vitest'
import { eventually } from '../harness/eventually.ts'
import { startProgram } from '../harness/services.ts'

export interface Line {
  readonly socket: net.Socket
  /** All that has come so far. */
  text(): string
  /** The status of each answer so far. */
  statuses(): number[]
  /** All that came until the server closed the connection. */
  readonly closed: Promise<string>
}

export function dial(url: string): Line {
  const socket = net.connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
  const chunks: Buffer[] = []
  const text = (): string => Buffer.concat(chunks).toString('latin1')
  const done = Promise.withResolvers<string>()
  socket.on('error', () => undefined)
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.once('end', () => socket.end())
  socket.once('close', () => done.resolve(text()))
  return {
    socket,
    text,
    statuses: () => [...text().matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)),
    closed: done.promise,
  }
}

/** Sends the bytes, and returns all that came until the server closed the connection. */
export async function answerTo(url: string, bytes: string): Promise<string> {
  const line = dial(url)
  line.socket.write(bytes, 'latin1')
  return line.closed
}

export const statusOf = (answer: string): number => Number(answer.split(' ', 2)[1])

/** A head as it is; each line ends as HTTP wants it. */
export const head = (...lines: readonly string[]): string => [...lines, '', ''].join('\r\n')

export const handshake = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
] as const

/** A program on the device that records the path of each request that it sees, and answers at once. */
export async function recording() {
  const paths: string[] = []
  const program = await startProgram((request, response) => {
    paths.push(request.url ?? '')
    request.on('error', () => undefined).resume()
    response.end('seen')
  })
  return Object.assign(program, { paths })
}

/** A program that answers the head of each request with these bytes, and records the bytes of connections. */
export async function bareProgram(answer: (socket: net.Socket, path: string) => void) {
  const seen: string[] = []
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    const at = seen.push('') - 1
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
    socket.on('data', (chunk: Buffer) => {
      const before = seen[at]!.split('\r\n\r\n').length
      seen[at] += chunk.toString('latin1')
      const heads = seen[at]!.split('\r\n\r\n')
      for (const one of heads.slice(before - 1, -1)) answer(socket, one.split(' ', 2)[1] ?? '')
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    port: (server.address() as net.AddressInfo).port,
    seen,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Waits until the line has this many answers. */
export const answers = async (line: Line, count: number): Promise<number[]> =>
  eventually(() => {
    expect(line.statuses()).toHaveLength(count)
    return line.statuses()
  })

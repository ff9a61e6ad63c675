// A bare TCP connection to the HTTP port, for what no client library would send, or would not send that
// slowly.
import { once } from 'node:events'
import net from 'node:net'

export interface Raw extends Disposable {
  send(bytes: string): void
  /** What came back so far. */
  received(): string
  /** Waits until the pattern matches what came back; rejects when the connection ends before. */
  until(pattern: RegExp): Promise<string>
  /** All that came back, once the server has closed the connection. */
  readonly closed: Promise<string>
}

export async function openRaw(port: number): Promise<Raw> {
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  let received = ''
  const waiting = new Set<() => void>()
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk
    for (const look of waiting) look()
  })
  // A reset is one way of closing.
  socket.on('error', () => undefined)
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(received)))
  return {
    send: (bytes) => void socket.write(bytes, 'latin1'),
    received: () => received,
    until(pattern) {
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      const look = (): void => {
        if (!pattern.test(received)) return
        waiting.delete(look)
        resolve(received)
      }
      waiting.add(look)
      look()
      void closed.then(() => reject(new Error(`closed without ${String(pattern)}, after: ${received}`)))
      return promise
    },
    closed,
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

// A relay between an agent and its server that counts what passes: bytes, and the pieces in which they came,
// from which follows about what a line would have carried. It changes nothing and joins nothing.
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'

/** IPv4 and TCP with time stamps. */
const headers_bytes = 52
/** TCP waits this long for bytes that can carry an acknowledgement; then it goes alone. */
const acknowledged_ms = 40

export interface Passed {
  /** The bytes of both sides. */
  readonly bytes: number
  /** With the headers of the pieces and of the acknowledgements that had to go alone. */
  readonly line_bytes: number
}

export interface Relay extends Disposable {
  readonly port: number
  passed(): Passed
}

export async function startRelay(to: number): Promise<Relay> {
  let bytes = 0
  let segments = 0
  let last: { readonly from: 'near' | 'far'; readonly at_ms: number } = { from: 'near', at_ms: -Infinity }
  const sockets = new Set<net.Socket>()
  const count = (from: 'near' | 'far', piece: Buffer): void => {
    const at_ms = performance.now()
    const answers = last.from !== from && at_ms - last.at_ms < acknowledged_ms
    bytes += piece.length
    // A piece costs its segment and an acknowledgement, unless it carries that of the piece before.
    segments += answers ? 1 : 2
    last = { from, at_ms }
  }
  const join = (side: 'near' | 'far', from: net.Socket, into: net.Socket): void => {
    sockets.add(from)
    from.on('data', (piece: Buffer) => count(side, piece))
    from.on('error', () => into.destroy())
    from.on('close', () => {
      sockets.delete(from)
      into.destroy()
    })
    from.pipe(into)
  }
  const listener = net.createServer({ noDelay: true }, (near) => {
    const far = net.connect({ port: to, host: '127.0.0.1', noDelay: true })
    join('near', near, far)
    join('far', far, near)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return {
    port: (listener.address() as AddressInfo).port,
    passed: () => ({ bytes, line_bytes: bytes + segments * headers_bytes }),
    [Symbol.dispose]() {
      listener.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

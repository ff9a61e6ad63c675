// Sealed packets on their way to the socket. What is sent within one turn of the event loop leaves in one write, because
// a write costs more than encrypting what is in it; packets that are small are joined, large ones are handed over as they
// are. `congested` tells those who can wait to wait; those who cannot (answers to the peer's own messages) are bounded, so
// that a peer who asks without end and never reads is let go.
import type { Duplex } from 'node:stream'
import { ProtocolError } from '../errors.ts'

/** Above this, data waits. */
const congested_bytes = 256 * 1024
/** Above this, the peer is not reading while it makes us answer. */
const mostUnsent_bytes = 4 * 1024 * 1024
const joined_bytes = 16 * 1024

export interface Outbox {
  push(parts: readonly Buffer[]): void
  /** At once instead of at the end of the turn. */
  flush(): void
  readonly congested: boolean
}

export function outbox(socket: Duplex, onRoom: () => void): Outbox {
  let parts: Buffer[] = []
  let bytes = 0
  let scheduled = false

  const flush = (): void => {
    scheduled = false
    if (parts.length === 0 || socket.destroyed || socket.writableEnded) return
    const [leaving, leaving_bytes] = [parts, bytes]
    parts = []
    bytes = 0
    if (leaving_bytes <= joined_bytes) {
      socket.write(leaving.length === 1 ? leaving[0] : Buffer.concat(leaving, leaving_bytes))
    } else {
      socket.cork()
      for (const part of leaving) socket.write(part)
      socket.uncork()
    }
    if (!isCongested()) onRoom()
  }
  const isCongested = (): boolean => bytes + socket.writableLength > congested_bytes

  socket.on('drain', () => {
    if (!isCongested()) onRoom()
  })

  return {
    push(more) {
      for (const part of more) {
        parts.push(part)
        bytes += part.length
      }
      if (bytes + socket.writableLength > mostUnsent_bytes) throw new ProtocolError('The peer does not read what it asks for.')
      if (!scheduled) {
        scheduled = true
        setImmediate(flush)
      }
    },
    flush,
    get congested() {
      return isCongested()
    },
  }
}

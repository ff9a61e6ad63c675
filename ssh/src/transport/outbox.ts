// Sealed packets on their way to the socket. What is sent within one turn of the event loop leaves in one
// write, because a write costs more than encrypting what is in it. Large packets are sealed one behind the
// other in memory that is used again as soon as the socket has let go of it: taking new memory for each, and
// collecting it, costs more than the encryption. `congested` tells those who can wait to wait; those who
// cannot (answers to the peer's own messages) are bounded, so that a peer who asks without end and never
// reads is let go.
import type { Duplex } from 'node:stream'
import { ProtocolError } from '../errors.ts'
import { object_bytes } from '../memory.ts'
import { isReleasing } from '../releases-buffers.ts'

/** Above this, data waits. */
const congested_bytes = 256 * 1024
/** Above this, the peer does not read while it makes us answer. */
export const mostUnsent_bytes = 4 * 1024 * 1024
const joined_bytes = 16 * 1024
/** Smaller packets are not worth a slab, which would wait with them for a peer that does not read. */
const small_bytes = 4 * 1024
const slab_bytes = congested_bytes + 64 * 1024
const mostSpare = 8

interface Slab {
  readonly bytes: Buffer
  /** How much of it is used, and how much of that the socket has. */
  taken: number
  sent: number
  /** Unfinished writes of the socket. */
  writes: number
}

/** Slabs for all connections of the process: idle ones hold none. */
const spare: Slab[] = []

const newSlab = (): Slab => ({ bytes: Buffer.allocUnsafeSlow(slab_bytes), taken: 0, sent: 0, writes: 0 })

export interface Outbox {
  /** Memory for the next push. */
  room(bytes: number): Buffer
  push(parts: readonly Buffer[]): void
  /** A push follows at the end of the turn. */
  schedule(): void
  /** Now instead of at the end of the turn. */
  flush(): void
  /** Sets how much may wait. */
  allow(unsent_bytes: number): void
  readonly congested: boolean
  readonly unsent_bytes: number
}

/** `onFlush`: called before everything leaves, and may push more. */
export function outbox(socket: Duplex, onRoom: () => void, onFlush: () => void = () => undefined): Outbox {
  const reuse = isReleasing(socket)
  let parts: Buffer[] = []
  let bytes = 0
  let most_bytes = mostUnsent_bytes
  let scheduled = false
  let slab: Slab | undefined
  /** Full slabs with bytes that the socket does not have yet. */
  let full: Slab[] = []

  const giveBack = (one: Slab): void => {
    if (one.writes > 0 || one.sent < one.taken) return
    if (slab === one) slab = undefined
    one.taken = one.sent = 0
    if (spare.length < mostSpare) spare.push(one)
  }

  const room = (wanted: number): Buffer => {
    if (!reuse || wanted > slab_bytes || (wanted < small_bytes && !slab)) return Buffer.allocUnsafe(wanted)
    if (slab && slab.taken + wanted > slab_bytes) {
      if (slab.sent < slab.taken) full.push(slab)
      slab = undefined
    }
    slab ??= spare.pop() ?? newSlab()
    return slab.bytes.subarray(slab.taken, (slab.taken += wanted))
  }

  const flush = (): void => {
    onFlush()
    scheduled = false
    if (parts.length === 0 || socket.destroyed || socket.writableEnded) return
    const leaving = inRuns(parts)
    const slabs = slab ? [...full, slab] : full
    parts = []
    bytes = 0
    full = []
    let done: ((error?: Error | null) => void) | undefined
    if (slabs.length > 0) {
      for (const one of slabs) {
        one.writes += 1
        one.sent = one.taken
      }
      done = (error) => {
        // After a failure it is unknown who still holds them.
        if (error) return
        for (const one of slabs) {
          one.writes -= 1
          giveBack(one)
        }
      }
    }
    if (leaving.length === 1) socket.write(leaving[0], done)
    else {
      socket.cork()
      for (const [index, part] of leaving.entries())
        socket.write(part, index + 1 < leaving.length ? undefined : done)
      socket.uncork()
    }
    if (!isCongested()) onRoom()
  }
  const unsent = (): number => bytes + socket.writableLength
  const isCongested = (): boolean => unsent() > congested_bytes

  const schedule = (): void => {
    if (scheduled) return
    scheduled = true
    setImmediate(flush)
  }

  socket.on('drain', () => {
    if (!isCongested()) onRoom()
  })

  return {
    room,
    push(more) {
      for (const part of more) {
        parts.push(part)
        bytes += part.length
      }
      // Until the end of the turn each part is an object of its own; the socket's parts are joined.
      const held_bytes = bytes + parts.length * object_bytes + socket.writableLength
      if (held_bytes > most_bytes) throw new ProtocolError('The peer does not read what it asks for.')
      schedule()
    },
    schedule,
    flush,
    allow(unsent_bytes) {
      most_bytes = unsent_bytes
    },
    get congested() {
      return isCongested()
    },
    get unsent_bytes() {
      return unsent()
    },
  }
}

/**
 * As few pieces as possible: neighbours in memory as they are, small ones joined, because each waits as an
 * object of its own.
 */
function inRuns(parts: readonly Buffer[]): Buffer[] {
  const runs: Buffer[] = []
  for (const part of parts) {
    const last = runs.at(-1)
    if (last && last.buffer === part.buffer && last.byteOffset + last.length === part.byteOffset)
      runs[runs.length - 1] = Buffer.from(last.buffer, last.byteOffset, last.length + part.length)
    else runs.push(part)
  }
  const joined: Buffer[] = []
  let from = 0
  let bytes = 0
  for (const [at, run] of runs.entries()) {
    if (bytes + run.length > joined_bytes) {
      if (at > from) joined.push(at - from === 1 ? runs[from]! : Buffer.concat(runs.slice(from, at), bytes))
      from = at
      bytes = 0
    }
    bytes += run.length
  }
  joined.push(runs.length - from === 1 ? runs[from]! : Buffer.concat(runs.slice(from), bytes))
  return joined
}

// The memory that resumable streams share: bytes that are kept to be sent again, and bytes that wait for their
// readers. All streams together have a bound, and so have those of one owner. What happens at the bound is
// here for readers (a stream ends) and with the stream for writers (it takes less).
import type { Duplex } from 'node:stream'
import { StreamEvicted } from './errors.ts'

/**
 * The common bound of many streams. Streams that name their owner also share its part, so that an owner with
 * many unread streams does not take the memory of others.
 */
export class ResumableMemory {
  /** The bound for bytes to be sent again, and for bytes that wait for their readers, each. */
  readonly most_bytes: number
  replay_bytes = 0
  unread_bytes = 0
  readonly #shares = new Map<string | undefined, MemoryShare>()

  constructor(most_bytes: number) {
    this.most_bytes = most_bytes
  }

  /** The share of this owner, for one more stream; undefined: of streams without an owner. */
  join(owner: string | undefined): MemoryShare {
    const share = this.#shares.get(owner) ?? {
      owner,
      streams: 0,
      replay_bytes: 0,
      unread_bytes: 0,
      unread: new Map(),
    }
    share.streams += 1
    this.#shares.set(owner, share)
    return share
  }

  leave(share: MemoryShare): void {
    share.streams -= 1
    if (share.streams === 0) this.#shares.delete(share.owner)
  }

  /** Notes how many more bytes a stream holds to send again. */
  replay(share: MemoryShare, more_bytes: number): void {
    share.replay_bytes += more_bytes
    this.replay_bytes += more_bytes
  }

  /**
   * Whether the streams of the share are limited to their reserve. An owner has at most as much as it leaves
   * to others: half of everything where there is no other, and the next one half of the rest.
   */
  isTight({ owner, replay_bytes }: MemoryShare): boolean {
    const left_bytes = this.most_bytes - this.replay_bytes
    return left_bytes <= 0 || (owner !== undefined && replay_bytes >= left_bytes)
  }

  /**
   * Notes how much of a stream is unread. Above the bound, or when one owner has more than half of it, the
   * largest stream of the largest owner ends.
   */
  unread(share: MemoryShare, stream: Duplex, held_bytes: number): void {
    this.#count(share, stream, held_bytes)
    const most_bytes = share.owner === undefined ? this.most_bytes : this.most_bytes / 2
    while (this.unread_bytes > this.most_bytes || share.unread_bytes > most_bytes) {
      const fullest = share.unread_bytes > most_bytes ? share : this.#fullest(share)
      if (fullest.unread.size === 0) return
      const [largest] = [...fullest.unread].reduce((one, other) => (other[1] > one[1] ? other : one))
      this.#count(fullest, largest, 0)
      largest.destroy(new StreamEvicted('The peer sends more than is read.'))
    }
  }

  #fullest(first: MemoryShare): MemoryShare {
    const more = (one: MemoryShare, other: MemoryShare): MemoryShare =>
      other.unread_bytes > one.unread_bytes ? other : one
    return [...this.#shares.values()].reduce(more, first)
  }

  #count(share: MemoryShare, stream: Duplex, held_bytes: number): void {
    const more_bytes = held_bytes - (share.unread.get(stream) ?? 0)
    share.unread_bytes += more_bytes
    this.unread_bytes += more_bytes
    if (held_bytes > 0) share.unread.set(stream, held_bytes)
    else share.unread.delete(stream)
  }
}

interface MemoryShare {
  readonly owner: string | undefined
  streams: number
  replay_bytes: number
  unread_bytes: number
  /** Unread bytes, by stream. */
  readonly unread: Map<Duplex, number>
}

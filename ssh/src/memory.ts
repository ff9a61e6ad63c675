// The memory that peers make this process hold: the whole buffer behind a view, and the
// objects around it, not the bytes that came over the wire. Every connection has an account with a limit, and
// all accounts of a pool have one together. An account over its own limit waits, which means that its
// connection reads nothing more, until enough was released. While the pool is over its limit, every account
// that holds more than its share of it is crowded: its peer gets no more credit. It is still read from,
// because what lets it drain may be a message of the same peer. At twice the limit of the pool the account
// that holds most is evicted. A connection that holds little is not affected by others.
import { totalmem } from 'node:os'

/** V8's memory for an object with a view in it. */
export const object_bytes = 256
/** For a request: its closures, its promises, and its place among the answers. */
export const request_bytes = 1_024

/** Bytes that hold no more than twice their length: themselves, or a copy. */
export function compact(bytes: Buffer): Buffer {
  if (bytes.length * 2 >= bytes.buffer.byteLength) return bytes
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}

/** The memory of such bytes. */
export function heldBy(bytes: Buffer): number {
  return object_bytes + bytes.buffer.byteLength
}

export interface Account {
  hold(bytes: number): void
  release(bytes: number): void
  readonly held_bytes: number
  /** All together hold too much, and this account more than its share. */
  readonly crowded: boolean
  /** All hold more than half of the limit: promise nobody more than before. */
  readonly tight: boolean
  /** Calls back once, when `crowded` ends. */
  whenRoom(callback: () => void): void
  /** Releases everything, and ends the account. */
  close(): void
}

export interface Holder {
  readonly limit_bytes: number
  /** The account must not take more, until `resume`. */
  pause(): void
  resume(): void
  /** The account must release everything; it is closed. */
  evict(): void
}

export interface MemoryPool {
  open(holder: Holder): Account
  readonly held_bytes: number
}

/** For any number of accounts: the usual memory of a connection. */
const leastShare_bytes = 256 * 1024

export function memoryPool(limit_bytes: number): MemoryPool {
  let total_bytes = 0
  const accounts = new Set<PoolAccount>()
  const waiting = new Set<PoolAccount>()
  /** Crowded accounts with a waiting callback. */
  const crowdedOut = new Set<PoolAccount>()

  class PoolAccount implements Account {
    held_bytes = 0
    readonly #holder: Holder
    #callbacks: (() => void)[] = []

    constructor(holder: Holder) {
      this.#holder = holder
      accounts.add(this)
    }

    hold(bytes: number): void {
      if (!accounts.has(this)) return
      this.held_bytes += bytes
      total_bytes += bytes
      const offender = total_bytes > limit_bytes * 2 ? largest() : undefined
      if (offender) offender.#evict()
      if (waiting.has(this) || !accounts.has(this) || this.held_bytes <= this.#holder.limit_bytes) return
      waiting.add(this)
      this.#holder.pause()
    }

    release(bytes: number): void {
      if (!accounts.has(this)) return
      const wasOver = total_bytes > limit_bytes
      this.held_bytes -= bytes
      total_bytes -= bytes
      if (waiting.has(this) && this.held_bytes <= this.#holder.limit_bytes) {
        waiting.delete(this)
        this.#holder.resume()
      }
      if (wasOver && total_bytes <= limit_bytes) for (const one of crowdedOut) one.#callBack()
      else if (crowdedOut.size > 0) this.#callBack()
    }

    get crowded(): boolean {
      return (
        total_bytes > limit_bytes && this.held_bytes > Math.max(leastShare_bytes, limit_bytes / accounts.size)
      )
    }

    get tight(): boolean {
      return total_bytes > limit_bytes / 2
    }

    whenRoom(callback: () => void): void {
      this.#callbacks.push(callback)
      crowdedOut.add(this)
    }

    close(): void {
      this.#callbacks = []
      crowdedOut.delete(this)
      this.release(this.held_bytes)
      accounts.delete(this)
      waiting.delete(this)
    }

    #callBack(): void {
      if (this.crowded || !crowdedOut.delete(this)) return
      for (const callback of this.#callbacks.splice(0)) callback()
    }

    #evict(): void {
      this.close()
      this.#holder.evict()
    }
  }

  const largest = (): PoolAccount | undefined => {
    let found: PoolAccount | undefined
    for (const one of accounts) if (one.held_bytes > (found?.held_bytes ?? 0)) found = one
    return found
  }

  return {
    open: (holder) => new PoolAccount(holder),
    get held_bytes() {
      return total_bytes
    },
  }
}

const [least_bytes, most_bytes] = [32 * 1024 * 1024, 512 * 1024 * 1024]

/** A sixteenth of the memory of this machine, or of the process's limit. */
function limitHere(): number {
  const memory_bytes = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  return Math.min(most_bytes, Math.max(least_bytes, memory_bytes / 16))
}

/** For all connections of this process without a pool of their own. */
export const processMemory = memoryPool(limitHere())

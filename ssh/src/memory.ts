// What peers make this process hold, counted as the memory it is: the whole buffer behind a view, and the objects around it,
// not the bytes that came over the wire. Every connection has an account with a limit, and all accounts of a pool have one
// together. An account over its limit waits, which means that its connection reads nothing more, until enough was released;
// so does, while the pool is over its limit, every account that holds more than its share of it. At twice the limit of the pool
// the account that holds most goes. Whoever holds little is not touched by what others hold.
import { totalmem } from 'node:os'

/** About what V8 takes for an object with a view in it. */
export const object_bytes = 256
/** The same for a request: its closures, its promises, and its place among the answers. */
export const request_bytes = 1_024

/** Bytes that keep alive no more than twice their length: themselves, or a copy. */
export function compact(bytes: Buffer): Buffer {
  if (bytes.length * 2 >= bytes.buffer.byteLength) return bytes
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}

/** What such bytes hold. */
export function heldBy(bytes: Buffer): number {
  return object_bytes + bytes.buffer.byteLength
}

export interface Account {
  hold(bytes: number): void
  release(bytes: number): void
  readonly held_bytes: number
  /** Nothing is held any more, nor counted. */
  close(): void
}

export interface Holder {
  readonly limit_bytes: number
  /** It must not take more, until `goOn`. */
  wait(): void
  goOn(): void
  /** It must let go of everything, now; its account is closed. */
  go(): void
}

export interface MemoryPool {
  open(holder: Holder): Account
  /** By all accounts. */
  readonly held_bytes: number
}

/** However many accounts there are: what a connection holds for a moment while all is well. */
const leastShare_bytes = 256 * 1024

export function memoryPool(limit_bytes: number): MemoryPool {
  let total_bytes = 0
  const accounts = new Set<Inside>()
  const waiting = new Set<Inside>()

  class Inside implements Account {
    held_bytes = 0
    readonly #holder: Holder

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
      if (waiting.has(this) || !accounts.has(this) || !this.#isOver()) return
      waiting.add(this)
      this.#holder.wait()
    }

    release(bytes: number): void {
      if (!accounts.has(this)) return
      const wasOver = total_bytes > limit_bytes
      this.held_bytes -= bytes
      total_bytes -= bytes
      if (wasOver && total_bytes <= limit_bytes) for (const one of waiting) one.#look()
      else if (waiting.size > 0) this.#look()
    }

    close(): void {
      this.release(this.held_bytes)
      accounts.delete(this)
      waiting.delete(this)
    }

    #isOver(): boolean {
      if (this.held_bytes > this.#holder.limit_bytes) return true
      return total_bytes > limit_bytes && this.held_bytes > Math.max(leastShare_bytes, limit_bytes / accounts.size)
    }

    /** Whether it still has to wait. */
    #look(): void {
      if (!waiting.has(this) || this.#isOver()) return
      waiting.delete(this)
      this.#holder.goOn()
    }

    #evict(): void {
      this.close()
      this.#holder.go()
    }
  }

  const largest = (): Inside | undefined => {
    let found: Inside | undefined
    for (const one of accounts) if (one.held_bytes > (found?.held_bytes ?? 0)) found = one
    return found
  }

  return {
    open: (holder) => new Inside(holder),
    get held_bytes() {
      return total_bytes
    },
  }
}

const [least_bytes, most_bytes] = [32 * 1024 * 1024, 512 * 1024 * 1024]

/** A sixteenth of what this machine, or what limits us on it, has. */
function limitHere(): number {
  const memory_bytes = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  return Math.min(most_bytes, Math.max(least_bytes, memory_bytes / 16))
}

/** Of all connections of this process, unless they are given another. */
export const processMemory = memoryPool(limitHere())

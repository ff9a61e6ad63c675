// Limits for TLS handshakes: each costs the server a signature, and strangers start them for nothing.
//   - A handshake has a limited time, and one source (an address, or the /64 of an IPv6 address) has a small
//     share of those that are going on.
//   - With half of all places taken, new connections are dropped at random, the more the fewer places are
//     left, so that nobody can lock everybody else out.
//   - One source may start no more than its rate.
// A trusted proxy stands for many people, so only the bound on all handshakes holds for it.
import { neighbourhood } from '../kit/address.ts'
import type { Limiter } from '../kit/limiter.ts'

/** Handshakes at a time, and those of one source. */
const places = 1_000
const placesPerSource = 100
/** From this many on, new ones are dropped with a rising chance. */
const crowd = places / 2

export interface Handshakes {
  /** A place, to be disposed when the handshake is over; undefined if there is none. */
  enter(address: string, trusted: boolean): Disposable | undefined
  readonly size: number
}

export function handshakes(rate: Limiter, random: () => number = Math.random): Handshakes {
  const sources = new Map<string, number>()
  let size = 0
  return {
    get size() {
      return size
    },
    enter(address, trusted) {
      const key = neighbourhood(address)
      const own = sources.get(key) ?? 0
      if (size >= places || random() < (size - crowd) / crowd) return undefined
      if (!trusted && (own >= placesPerSource || rate.take(key) > 0)) return undefined
      size += 1
      sources.set(key, own + 1)
      let over = false
      return {
        [Symbol.dispose]() {
          if (over) return
          over = true
          size -= 1
          const left = (sources.get(key) ?? 1) - 1
          if (left > 0) sources.set(key, left)
          else sources.delete(key)
        },
      }
    },
  }
}

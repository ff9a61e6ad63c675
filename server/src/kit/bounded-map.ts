// A map with a maximum number of entries, for what strangers can add to. A new entry of a full map replaces
// the oldest one. `spared` marks entries that are worth more than others: of the few oldest entries the first
// that is not spared goes, and if all of them are spared, the last one that was looked at.
import { invariant } from '@hawser/contract/failures'

/** How many entries are looked at to find one that may go. */
const chances = 8

export class BoundedMap<K, V> {
  /** Oldest first. */
  readonly #entries = new Map<K, V>()
  readonly #most: number
  readonly #spared: (value: V) => boolean
  /**
   * An iterator that stands at the oldest entry. The map keeps it, because a new iterator would walk over
   * every place that a deleted entry left behind.
   */
  #hand: MapIterator<[K, V]>

  constructor(most: number, spared: (value: V) => boolean = () => false) {
    this.#most = most
    this.#spared = spared
    this.#hand = this.#entries.entries()
  }

  get size(): number {
    return this.#entries.size
  }

  has(key: K): boolean {
    return this.#entries.has(key)
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)
  }

  /** Makes the entry the newest one. Returns the value that had to go, if the map was full. */
  set(key: K, value: V): V | undefined {
    const evicted = !this.#entries.delete(key) && this.#entries.size >= this.#most ? this.evict() : undefined
    this.#entries.set(key, value)
    return evicted
  }

  delete(key: K): boolean {
    return this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }

  keys(): MapIterator<K> {
    return this.#entries.keys()
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#entries[Symbol.iterator]()
  }

  /** Removes one entry as a new one would, and returns its value. The map must not be empty. */
  evict(): V {
    for (let left = chances; ; left -= 1) {
      const [key, value] = this.#oldest()
      this.#entries.delete(key)
      if (left === 1 || !this.#spared(value)) return value
      this.#entries.set(key, value)
    }
  }

  #oldest(): [K, V] {
    let next = this.#hand.next()
    if (next.done) next = (this.#hand = this.#entries.entries()).next()
    invariant(!next.done, 'a map that evicts has an oldest entry')
    return next.value
  }
}

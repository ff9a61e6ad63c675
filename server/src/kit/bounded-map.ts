// A map that holds at most so many entries, for what strangers can add to. One that is new takes the place of
// the oldest, and never of all at once. Entries that are worth more than others get second chances: of the
// few oldest the first that is not spared goes, and if all of them are, the last of these.
import { invariant } from '@hawser/contract/failures'

/** How many entries are looked at to find one that may go. */
const chances = 8

export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>()
  readonly #most: number
  readonly #spared: (value: V) => boolean
  /**
   * Stands at the oldest entry. It stays there, because a new one would walk over every place that was left
   * since.
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

  get(key: K): V | undefined {
    return this.#entries.get(key)
  }

  /** The entry is the newest from here on. */
  set(key: K, value: V): void {
    if (!this.#entries.delete(key) && this.#entries.size >= this.#most) this.#evict()
    this.#entries.set(key, value)
  }

  delete(key: K): boolean {
    return this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }

  #evict(): void {
    for (let left = chances; left > 0; left -= 1) {
      const [key, value] = this.#oldest()
      this.#entries.delete(key)
      if (left === 1 || !this.#spared(value)) return
      this.#entries.set(key, value)
    }
  }

  #oldest(): [K, V] {
    let next = this.#hand.next()
    if (next.done) next = (this.#hand = this.#entries.entries()).next()
    invariant(!next.done, 'a full map has an oldest entry')
    return next.value
  }
}

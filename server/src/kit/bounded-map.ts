// A bounded map, for what strangers can add to. A new entry of a full map replaces the oldest one. `spared`
// marks entries that are worth more: of the few oldest entries the first that is not spared goes, else the
// last one examined.
// A list links the entries by age. Relying on the order of a `Map` means deleting and inserting an entry
// whenever it is set again, which copies the table every time that the places left behind fill it; and an
// iterator that remembers the oldest entry holds all those copies in memory.
import { invariant } from '@hawser/contract/failures'

/** How many entries are examined to find one that may go. */
const chances = 8

interface Entry<K, V> {
  readonly key: K
  value: V
  older: Entry<K, V> | undefined
  newer: Entry<K, V> | undefined
}

export class BoundedMap<K, V> {
  readonly #entries = new Map<K, Entry<K, V>>()
  readonly #most: number
  readonly #spared: (value: V) => boolean
  #oldest: Entry<K, V> | undefined
  #newest: Entry<K, V> | undefined

  constructor(most: number, spared: (value: V) => boolean = () => false) {
    this.#most = most
    this.#spared = spared
  }

  get size(): number {
    return this.#entries.size
  }

  has(key: K): boolean {
    return this.#entries.has(key)
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value
  }

  /** Makes the entry the newest one. Returns the value that had to go, if the map was full. */
  set(key: K, value: V): V | undefined {
    const known = this.#entries.get(key)
    if (known) {
      known.value = value
      this.#renew(known)
      return undefined
    }
    const evicted = this.#entries.size >= this.#most ? this.evict() : undefined
    const entry: Entry<K, V> = { key, value, older: undefined, newer: undefined }
    this.#entries.set(key, entry)
    this.#append(entry)
    return evicted
  }

  delete(key: K): boolean {
    const entry = this.#entries.get(key)
    if (!entry) return false
    this.#remove(entry)
    return true
  }

  clear(): void {
    this.#entries.clear()
    this.#oldest = this.#newest = undefined
  }

  *keys(): Generator<K, void> {
    for (const [key] of this) yield key
  }

  /** Oldest first. The entry that the loop is at may be deleted. */
  *[Symbol.iterator](): Generator<[K, V], void> {
    for (let entry = this.#oldest; entry; entry = entry.newer) yield [entry.key, entry.value]
  }

  /** Removes one entry as a new one would, and returns its value. The map must not be empty. */
  evict(): V {
    for (let left = chances; ; left -= 1) {
      const entry = this.#oldest
      invariant(entry, 'a map that evicts has an oldest entry')
      if (left === 1 || !this.#spared(entry.value)) {
        this.#remove(entry)
        return entry.value
      }
      this.#renew(entry)
    }
  }

  #remove(entry: Entry<K, V>): void {
    this.#entries.delete(entry.key)
    this.#unlink(entry)
  }

  #renew(entry: Entry<K, V>): void {
    if (entry === this.#newest) return
    this.#unlink(entry)
    this.#append(entry)
  }

  /** The entry retains its neighbours, for loops that are at it. */
  #unlink({ older, newer }: Entry<K, V>): void {
    if (older) older.newer = newer
    else this.#oldest = newer
    if (newer) newer.older = older
    else this.#newest = older
  }

  #append(entry: Entry<K, V>): void {
    entry.older = this.#newest
    entry.newer = undefined
    if (this.#newest) this.#newest.newer = entry
    else this.#oldest = entry
    this.#newest = entry
  }
}

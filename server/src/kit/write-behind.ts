// Changes that are collected in memory and written to the database a little later, many in one write. A
// failed batch is put back under newer changes, and tried again after a growing pause; the first failure and
// its end are reported. Memory is bounded, and lost changes are counted. A closing queue writes what is left,
// but does not wait for it long.
import { BoundedMap } from './bounded-map.ts'
import { second_ms } from './clock.ts'
import type { Log } from './log.ts'

export interface WriteReport {
  /** Called once until writing succeeds again. */
  onError(error: unknown): void
  onRecovered?(): void
  /** Changes were lost, because too many waited or could not be written at the end. */
  onDropped?(changes: number): void
}

/** Reports in the log, under the name of a queue. */
export const writeReport = (log: Log, queue: string, changes = 'changes'): Required<WriteReport> => ({
  onError: (err) => log.error({ event: `${queue}.unwritten`, err }),
  onRecovered: () => log.info({ event: `${queue}.written` }),
  onDropped: (count) => log.warn({ event: `${queue}.dropped`, [changes]: count }),
})

export interface TurnOptions extends Pick<WriteReport, 'onError' | 'onRecovered'> {
  /** How long changes are collected before a turn. */
  readonly delay_ms: number
  readonly longestPause_ms?: number
  /** True: some is left for another turn. */
  write(): Promise<boolean>
}

const shortestPause_ms = 250
const longestPause_ms = 30 * second_ms
const longestClosing_ms = 10 * second_ms

/** When to write: one turn after the other, and a later one after a failure. */
export class WriteTurns {
  readonly #options: TurnOptions
  #timer: NodeJS.Timeout | undefined
  #next: Promise<void> | undefined
  #last: Promise<unknown> = Promise.resolve()
  #isFailing = false
  #isClosed = false
  #isMoreLeft = false
  #pause_ms = 0

  constructor(options: TurnOptions) {
    this.#options = options
  }

  /** A turn within the delay or, while writing fails, after the pause. */
  soon(): void {
    if (!this.#isClosed) this.#timer ??= setTimeout(() => void this.run(), this.#options.delay_ms).unref()
  }

  /** A turn at once, unless writing fails: strangers must not make the database work. */
  now(): void {
    if (!this.#isFailing) void this.run()
  }

  /** A turn at once; callers share one that has not begun. Resolves after it, whether or not it succeeded. */
  run(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#next ??= this.inTurn(() => this.#turn())
    return this.#next
  }

  /** Runs another write after those before it, and before those that come later. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => undefined)
    return done
  }

  /** Makes turns until nothing is left, one has failed or too much time has passed. */
  async close(): Promise<void> {
    this.#isClosed = true
    const { promise: late, resolve } = Promise.withResolvers<false>()
    const timer = setTimeout(() => resolve(false), longestClosing_ms)
    for (let isInTime = true, isMoreLeft = true; isInTime && isMoreLeft;) {
      isInTime = await Promise.race([this.run().then(() => true), late])
      isMoreLeft = this.#isMoreLeft && !this.#isFailing
    }
    clearTimeout(timer)
  }

  async #turn(): Promise<void> {
    this.#next = undefined
    try {
      this.#isMoreLeft = await this.#options.write()
      if (this.#isFailing) this.#options.onRecovered?.()
      this.#isFailing = false
      this.#pause_ms = 0
      if (this.#isMoreLeft) this.soon()
    } catch (error) {
      if (!this.#isFailing) this.#options.onError(error)
      this.#isFailing = true
      this.#retry()
    }
  }

  /** Only pauses that are over make the next one longer; turns in between do not. */
  #retry(): void {
    clearTimeout(this.#timer)
    if (this.#isClosed) return
    const { delay_ms, longestPause_ms: longest = longestPause_ms } = this.#options
    this.#pause_ms ||= Math.max(delay_ms, shortestPause_ms)
    this.#timer = setTimeout(() => {
      this.#pause_ms = Math.min(2 * this.#pause_ms, Math.max(longest, delay_ms))
      void this.run()
    }, this.#pause_ms).unref()
  }
}

type Key = string | number

export interface WriteBehindOptions<V> extends WriteReport, Pick<TurnOptions, 'delay_ms'> {
  /** All or nothing: if it throws, the whole batch is tried again. */
  write(batch: readonly V[]): Promise<void>
  /** Merges two changes for the same key; without it, the newer counts. */
  merge?(older: V, newer: V): V
  /** The oldest makes room. */
  readonly most?: number
  /** The weight of a batch, and of a change (by default 1). */
  readonly batch: number
  weight?(change: V): number
  /** Batches in one turn; the rest waits for the next one. */
  readonly batches?: number
  /** How many a change counts for when it is lost. */
  count?(change: V): number
}

/** Oldest first. */
export class WriteBehind<V extends object> implements AsyncDisposable {
  readonly #options: WriteBehindOptions<V>
  readonly #turns: WriteTurns
  readonly #waiting: BoundedMap<Key, V>
  #writing = new Map<Key, V>()
  #added = 0
  #dropped = 0

  constructor(options: WriteBehindOptions<V>) {
    this.#options = options
    this.#waiting = new BoundedMap(options.most ?? Infinity)
    this.#turns = new WriteTurns({ ...options, write: () => this.#write() })
  }

  /** Including those that are being written. */
  get size(): number {
    return this.#waiting.size + this.#writing.size
  }

  /** The change that waits under the key, unless it is being written. */
  get(key: Key): V | undefined {
    return this.#waiting.get(key)
  }

  /** Whether a change under the key waits or is being written. */
  has(key: Key): boolean {
    return this.#waiting.has(key) || this.#writing.has(key)
  }

  /** Including those that are being written, which come first. */
  values = (): V[] => [...this.#writing, ...this.#waiting].map(([, change]) => change)

  put(key: Key, change: V): void {
    this.#put(key, change)
    this.#turns.soon()
  }

  add(change: V): void {
    this.put((this.#added += 1), change)
  }

  /** Counts changes that the caller had no room for. */
  drop(changes: number): void {
    this.#dropped += changes
    this.#turns.soon()
  }

  /** Writes without a delay, unless writing fails. */
  hurry(): void {
    this.#turns.now()
  }

  /** Resolves after one attempt to write what waits. */
  flush(): Promise<void> {
    return this.#turns.run()
  }

  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.inTurn(work)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#turns.close()
    for (const change of this.values()) this.#lose(change)
    this.#reportDropped()
  }

  #put(key: Key, change: V): void {
    const { merge = (_, newer) => newer } = this.#options
    const before = this.#waiting.get(key)
    const evicted = this.#waiting.set(key, before ? merge(before, change) : change)
    if (evicted) this.#lose(evicted)
  }

  #lose(change: V): void {
    this.#dropped += this.#options.count?.(change) ?? 1
  }

  #take(): void {
    const { batch, weight = () => 1 } = this.#options
    let sum = 0
    for (const [key, change] of this.#waiting) {
      sum += weight(change)
      if (this.#writing.size > 0 && sum > batch) break
      this.#waiting.delete(key)
      this.#writing.set(key, change)
    }
  }

  #putBack(): void {
    const all = [...this.#writing, ...this.#waiting]
    this.#writing = new Map()
    this.#waiting.clear()
    for (const [key, change] of all) this.#put(key, change)
  }

  async #write(): Promise<boolean> {
    const { batches = Infinity } = this.#options
    try {
      for (let done = 0; done < batches && this.#waiting.size > 0; done += 1) {
        this.#take()
        await this.#options.write([...this.#writing.values()])
        this.#writing = new Map()
      }
    } catch (error) {
      this.#putBack()
      throw error
    } finally {
      this.#reportDropped()
    }
    return this.#waiting.size > 0
  }

  #reportDropped(): void {
    const dropped = this.#dropped
    this.#dropped = 0
    if (dropped > 0) this.#options.onDropped?.(dropped)
  }
}

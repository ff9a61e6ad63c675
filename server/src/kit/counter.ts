// Counters for the metrics: counting costs an addition, and a scrape reads the numbers. Labels come from a
// closed list that the room names, so that no stranger can invent one.

export class Counter<Label extends string> {
  readonly #counts: Map<Label, number>

  constructor(labels: readonly Label[]) {
    this.#counts = new Map(labels.map((label) => [label, 0]))
  }

  add(label: Label, count = 1): void {
    this.#counts.set(label, this.of(label) + count)
  }

  of(label: Label): number {
    return this.#counts.get(label) ?? 0
  }

  [Symbol.iterator](): MapIterator<[Label, number]> {
    return this.#counts[Symbol.iterator]()
  }
}

/** Buckets with upper bounds, as in a histogram of Prometheus. */
export class DurationHistogram {
  readonly bounds_s: readonly number[]
  /** One more than there are bounds, for events beyond the last. */
  readonly counts: number[]
  sum_s = 0

  constructor(bounds_s: readonly number[]) {
    this.bounds_s = bounds_s
    this.counts = Array.from({ length: bounds_s.length + 1 }, () => 0)
  }

  add(took_ms: number): void {
    const took_s = took_ms / 1000
    this.sum_s += took_s
    let bucket = 0
    while (bucket < this.bounds_s.length && took_s > (this.bounds_s[bucket] ?? 0)) bucket += 1
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1
  }
}

// What rooms count for the metrics. Counting costs an addition; the metrics read the numbers when somebody
// scrapes them. Labels come from a closed list that the room names, so that no stranger can invent one.

/** Counts events by label, from 0 and upwards. */
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

/** How long something took, in buckets with upper bounds as in a histogram of Prometheus. */
export class DurationHistogram {
  readonly bounds_s: readonly number[]
  /** Events per bucket; one more than there are bounds, for those that took longer than the last bound. */
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

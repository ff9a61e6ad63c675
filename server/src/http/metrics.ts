// Metrics in the Prometheus format: requests by operation and status, the rooms' counts, and the process's
// figures. Rooms have plain numbers (kit/counter.ts), read at each scrape. Metrics are private: they have a
// port of their own, or a token.
import { collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import type { DurationHistogram } from '../kit/counter.ts'

export interface Sample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
}

/** As prom-client takes them. */
interface Line {
  readonly metricName?: string
  readonly labels?: Readonly<Record<string, string | number>>
  readonly value: number
}

type Read = () => number | readonly Sample[] | Promise<number | readonly Sample[]>

export interface Metrics {
  answered(operation: string, status: number, ms: number): void
  /** Goes up and down; read at each scrape. */
  gauge(name: string, help: string, read: Read): void
  /** Counts since the start. The name ends in `_total`. */
  counter(name: string, help: string, read: Read): void
  /** Durations by the value of one label. */
  histogram(
    name: string,
    help: string,
    label: string,
    read: Readonly<Record<string, DurationHistogram>>,
  ): void
  text(): Promise<string>
  readonly contentType: string
}

let ofProcess: Registry | undefined

/**
 * The figures of the process, for all servers in it: prom-client never stops watching collections and, a hundred times
 * a second, the event loop.
 */
function processFigures(): Registry {
  if (!ofProcess) collectDefaultMetrics({ register: (ofProcess = new Registry()) })
  return ofProcess
}

/** `served`: somebody may read them; without, the process is not watched. */
export function metrics(served: boolean): Metrics {
  const registry = new Registry()
  const watched = served ? processFigures() : undefined
  const durations = new Histogram({
    name: 'hawser_request_seconds',
    help: 'Time to answer, by operation and status.',
    labelNames: ['operation', 'status'] as const,
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    registers: [registry],
  })
  /** Values come from the rooms: prom-client only writes them down. */
  const register = (
    name: string,
    help: string,
    type: 'gauge' | 'counter' | 'histogram',
    values: () => Promise<readonly Line[]>,
  ): void =>
    registry.registerMetric({
      name,
      get: async () => ({ name, help, type, aggregator: 'sum', values: await values() }),
      reset: () => undefined,
    } as unknown as Histogram)
  const linesOf = (read: Read) => async (): Promise<readonly Line[]> => {
    const found = await read()
    return typeof found === 'number' ? [{ value: found }] : found
  }
  return {
    answered: (operation, status, ms) => durations.observe({ operation, status }, ms / 1000),
    gauge: (name, help, read) => register(name, help, 'gauge', linesOf(read)),
    counter: (name, help, read) => register(name, help, 'counter', linesOf(read)),
    histogram: (name, help, label, read) =>
      register(name, help, 'histogram', async () =>
        Object.entries(read).flatMap(([value, one]) => bucketsOf(name, { [label]: value }, one)),
      ),
    text: async () => `${(await watched?.metrics()) ?? ''}${await registry.metrics()}`,
    contentType: registry.contentType,
  }
}

/** Counts by longest duration, their sum and their number. */
function bucketsOf(
  name: string,
  labels: Readonly<Record<string, string>>,
  { bounds_s, counts, sum_s }: DurationHistogram,
): Line[] {
  let count = 0
  const buckets = counts.map((n, index) => {
    count += n
    return {
      metricName: `${name}_bucket`,
      labels: { ...labels, le: bounds_s[index] ?? '+Inf' },
      value: count,
    }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum_s },
    { metricName: `${name}_count`, labels, value: count },
  ]
}

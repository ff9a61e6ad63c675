// Metrics in the Prometheus format: requests by operation and status, and the process's own figures. They are
// not for the world: a port of their own, or a bearer token.
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export interface Metrics {
  answered(operation: string, status: number, ms: number): void
  /** A figure that is read when somebody asks. */
  gauge(name: string, help: string, read: () => number): void
  text(): Promise<string>
  readonly contentType: string
}

export function metrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const durations = new Histogram({
    name: 'hawser_request_seconds',
    help: 'Time to answer, by operation and status.',
    labelNames: ['operation', 'status'] as const,
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    registers: [registry],
  })
  return {
    answered: (operation, status, ms) => durations.observe({ operation, status }, ms / 1000),
    gauge(name, help, read) {
      const registered: Gauge = new Gauge({
        name,
        help,
        registers: [registry],
        collect: () => registered.set(read()),
      })
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  }
}

// Composition of the health check: what must work so that people can sign in.
import { probeThreads } from '../domain/people/credentials.ts'
import type { HealthCheck } from '../domain/system/health.ts'
import { iso, minute_ms, second_ms, type Clock } from '../kit/clock.ts'
import type { Stores } from '../storage/stores.ts'

/** What signing in needs. Sign-ins are written, so a database that can only be read is not enough. */
export function healthChecks(stores: Stores, clock: Clock, node: string): HealthCheck[] {
  const nobody = 'nobody can sign in'
  return [
    {
      part: 'database',
      sentence: `The database does not answer: ${nobody}.`,
      counts_ms: second_ms,
      run: stores.ping,
    },
    {
      part: 'database writes',
      sentence: `The database cannot be written: ${nobody}.`,
      counts_ms: 5 * second_ms,
      run: () => stores.attempts.count(`health ${node}`, iso(clock.now()), iso(clock.now() + minute_ms)),
    },
    {
      part: 'passwords',
      sentence: `Passwords cannot be checked: ${nobody}.`,
      counts_ms: second_ms,
      run: probeThreads,
    },
  ]
}

// Whether people can sign in: the database answers and can be written, and passwords can be checked.
// Balancers ask all the time, and strangers may: concurrent callers share an answer, which counts for a
// while, and nobody waits for a part that does not answer. The log reports once when a part fails, and once
// when it is back.
import { Failure } from '@hawser/contract/failures'
import type { Bus } from '../../bus/bus.ts'
import { iso, minute_ms, second_ms, type Clock } from '../../kit/clock.ts'
import type { Stores } from '../../storage/stores.ts'
import { probeThreads } from '../people/credentials.ts'

export interface HealthCheck {
  /** The name in the log. */
  readonly part: string
  /** The sentence for callers. */
  readonly sentence: string
  /** How long an answer counts. */
  readonly counts_ms: number
  /** Rejects when the part is broken. */
  run(): Promise<unknown>
}

export interface HealthParts {
  checks: readonly HealthCheck[]
  onChange(part: string, error: unknown): void
}

/** A part that takes longer counts as broken. */
const late_ms = 3 * second_ms
const retry_s = 5

/** Throws a Failure that says what is broken. */
export function health({ checks, onChange }: HealthParts): () => Promise<void> {
  const asked = checks.map((check) => ({ ...check, ask: shared(check), broken: false }))
  return async () => {
    const errors = await Promise.all(asked.map((check) => check.ask()))
    let first: Failure | undefined
    for (const [index, error] of errors.entries()) {
      const check = asked[index]
      if (!check) continue
      const broken = error !== undefined
      if (broken !== check.broken) onChange(check.part, error)
      check.broken = broken
      if (broken)
        first ??= new Failure('unavailable', { message: check.sentence, retryAfter: retry_s, cause: error })
    }
    if (first) throw first
  }
}

/** Signing in writes: a database that can only be read is not enough. */
export function signInChecks(stores: Stores, clock: Clock, node: string): HealthCheck[] {
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

export interface ServerHealth {
  /** Throws a Failure that says why people cannot sign in. */
  ready(): Promise<void>
  drain(): void
}

/** Balancers send nobody to a server that is not ready. */
export function readiness(parts: {
  readonly bus: Pick<Bus, 'connected'>
  isWritable(): boolean
  healthy(): Promise<void>
}): ServerHealth {
  let draining = false
  return {
    drain: () => void (draining = true),
    async ready() {
      if (!parts.isWritable())
        throw new Failure('unavailable', {
          message: 'The disk of the server is full: nobody can sign in.',
          retryAfter: 60,
        })
      if (draining) throw new Failure('unavailable', { message: 'The server is stopping.', retryAfter: 5 })
      if (!parts.bus.connected)
        throw new Failure('unavailable', {
          message: 'This node is cut off from the others (NATS).',
          retryAfter: 5,
        })
      await parts.healthy()
    },
  }
}

/** Resolves to the newest run's error, or undefined. One run at a time. */
function shared({ part, counts_ms, run }: HealthCheck): () => Promise<unknown> {
  let asked_at = -Infinity
  let running = false
  let answer: Promise<unknown> = Promise.resolve(undefined)
  return () => {
    if (running || performance.now() - asked_at < counts_ms) return answer
    asked_at = performance.now()
    running = true
    const work = run()
      .then(
        () => undefined,
        (error: unknown) => error ?? new Error(`the ${part} failed`),
      )
      .finally(() => (running = false))
    const late = Promise.withResolvers<Error>()
    const timer = setTimeout(() => late.resolve(new Error(`the ${part} did not answer in time`)), late_ms)
    answer = Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
    return answer
  }
}

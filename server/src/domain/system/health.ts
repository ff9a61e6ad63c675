// Whether people can sign in. Each part that signing in needs has a check: the database answers and can be
// written, and passwords can be checked. Balancers ask all the time, and so may strangers: an answer is
// shared by all who ask and counts for a while, and nobody waits for a part that does not answer. The log
// tells when a part fails and when it is back, once each.
import { Failure } from '@hawser/contract/failures'
import { second_ms } from '../../kit/clock.ts'

export interface HealthCheck {
  /** The name in the log. */
  readonly part: string
  /** What whoever asks is told. */
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

/** A part that takes longer is as good as gone. */
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

/** Gives the error of the newest run, or undefined. One run at a time. */
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

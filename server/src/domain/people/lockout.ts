// Lock-out. At sign-in the third wrong attempt of a subject starts a lock of 1, then 4, 16 and 60 minutes,
// and is itself answered as locked. Other operations allow five tries and then lock for fifteen minutes.
// During a lock nothing is tried or counted, not even a right password. A subject's attempts run one after
// the other, so a hundred guesses at once count as a hundred. A signed-in user who proves who they are again
// has five tries per sign-in, so that a stolen token locks no other.
import { Failure } from '@hawser/contract/failures'
import { peopleLimits as limits } from '@hawser/contract/limits'
import { iso, minute_ms } from '../../kit/clock.ts'
import { concurrencyByKey } from '../../kit/concurrency.ts'
import type { With } from '../audit/parts.ts'
import { signInOf, type UserCaller } from '../callers/callers.ts'

export interface Policy {
  /** After the nth wrong attempt, in minutes. */
  readonly after: (wrong: number) => { lock: number; remember: number }
  /** Whether the attempt that leads to a lock is itself refused as locked, or still as a wrong one. */
  readonly reportsLockAtOnce: boolean
}

export const signInPolicy: Policy = {
  after(wrong) {
    const minutes = Math.min(4 ** (wrong - limits.signIn.max), 60)
    return {
      lock: wrong < limits.signIn.max ? 0 : Math.trunc(minutes),
      remember: Math.trunc(Math.max(Math.min(2.5 * minutes, 60), 2)),
    }
  },
  reportsLockAtOnce: true,
}

export const fiveTries: Policy = {
  after(wrong) {
    const remember = limits.tries.window_ms / minute_ms
    return { lock: wrong < limits.tries.max ? 0 : remember, remember }
  },
  reportsLockAtOnce: false,
}

export interface Lockout {
  /**
   * Runs one attempt; undefined means wrong. A wrong attempt is counted and refused with `wrong`, or with
   * `locked` once it is one too many. A success clears the count unless `keepsCount` says otherwise: a first
   * factor alone must not refill the tries for the second.
   */
  judge<T>(
    subject: string,
    policy: Policy,
    wrong: (headers: Record<string, string>) => Failure,
    attempt: () => Promise<T | undefined>,
    keepsCount?: (value: T) => boolean,
  ): Promise<T>
  /** A signed-in user proves `what`: five tries of the sign-in, and a bound for all together. */
  judgeSignedIn<T>(
    what: 'password' | 'proof' | 'mfa enable' | 'mfa disable',
    by: Pick<UserCaller, 'id' | 'token_id'>,
    wrong: () => Failure,
    attempt: () => Promise<T | undefined>,
  ): Promise<T>
}

const header = (until_ms: number): Record<string, string> => ({
  'x-account-lockout': String(until_ms === 0 ? 0 : Math.ceil(until_ms / 1000)),
})

export function lockout({ stores, clock }: With<'stores' | 'clock'>): Lockout {
  const perSubject = concurrencyByKey(limits.attempts.max)

  function refuse(until_ms: number): never {
    throw new Failure('locked', { headers: header(until_ms), retryAfter: (until_ms - clock.now()) / 1000 })
  }

  const locks: Lockout = {
    async judge(subject, policy, wrong, attempt, keepsCount) {
      const turn = perSubject.run(subject, async () => {
        const now = clock.now()
        const known = await stores.attempts.find(subject, iso(now))
        if (known?.locked_until && Date.parse(known.locked_until) > now)
          refuse(Date.parse(known.locked_until))
        const value = await attempt()
        if (value !== undefined) {
          if (known && !keepsCount?.(value)) await stores.attempts.clear(subject)
          return value
        }
        const after = clock.now()
        const count = await stores.attempts.count(
          subject,
          iso(after),
          iso(after + policy.after(1).remember * minute_ms),
        )
        const { lock, remember } = policy.after(count)
        const until = lock === 0 ? 0 : after + lock * minute_ms
        await stores.attempts.lock(
          subject,
          until === 0 ? null : iso(until),
          iso(after + Math.max(remember, lock) * minute_ms),
        )
        if (until !== 0 && policy.reportsLockAtOnce) refuse(until)
        throw wrong(header(until))
      })
      if (!turn) throw new Failure('tooMany', { headers: header(0), retryAfter: 5 })
      return turn
    },

    judgeSignedIn(what, { id, token_id }, wrong, attempt) {
      const everywhere = `${what} in all sign-ins of ${id}`
      return locks.judge(`${what} ${id} ${signInOf(token_id)}`, fiveTries, wrong, async () => {
        const now = clock.now()
        // More than one or two stolen tokens can make. An owner who is locked out ends the other sign-ins, or
        // sets a password by the e-mailed link.
        const missed = await stores.attempts.find(everywhere, iso(now))
        if (missed && missed.count >= limits.triesOfAll.max) refuse(Date.parse(missed.expires_at))
        const value = await attempt()
        if (value === undefined)
          await stores.attempts.count(everywhere, iso(now), iso(now + limits.triesOfAll.window_ms))
        return value
      })
    },
  }
  return locks
}

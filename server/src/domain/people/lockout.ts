// Lock-out. At sign-in the third wrong attempt of one subject starts a lock of 1, then 4, 16 and 60 minutes,
// and is itself answered as locked. Other counted operations allow five tries and then lock for fifteen
// minutes. While a lock lasts nothing is tried and nothing is counted, not even a right password. Attempts of
// one subject run one after the other, so a hundred guesses sent at once count as a hundred attempts.
//
// A signed-in user who proves once more who they are has the five tries in each sign-in, so that a stolen token locks
// no other sign-in.
import { Failure } from '@hawser/contract/failures'
import { hour_ms, iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { concurrencyByKey } from '../../kit/concurrency.ts'
import type { Stores } from '../../storage/stores.ts'
import { signInOf, type UserCaller } from '../callers/callers.ts'

export interface Policy {
  /** After the nth wrong attempt: how long it is locked and how long the count is remembered, in minutes. */
  readonly after: (wrong: number) => { lock: number; remember: number }
  /** Whether the attempt that leads to a lock is itself refused as locked, or still as a wrong one. */
  readonly reportsLockAtOnce: boolean
}

export const signInPolicy: Policy = {
  after(wrong) {
    const minutes = Math.min(4 ** (wrong - 3), 60)
    return {
      lock: wrong < 3 ? 0 : Math.trunc(minutes),
      remember: Math.trunc(Math.max(Math.min(2.5 * minutes, 60), 2)),
    }
  },
  reportsLockAtOnce: true,
}

export const fiveTries: Policy = {
  after: (wrong) => ({ lock: wrong < 5 ? 0 : 15, remember: 15 }),
  reportsLockAtOnce: false,
}

export interface Lockout {
  /**
   * Runs one attempt. `attempt` gives a value when it succeeded and undefined when it was wrong. A wrong
   * attempt is counted and refused with `wrong`, or with `locked` once it is one too many. A success clears
   * the count unless `keepsCount` says otherwise: a first factor alone must not refill the tries for the
   * second.
   */
  judge<T>(
    subject: string,
    policy: Policy,
    wrong: (headers: Record<string, string>) => Failure,
    attempt: () => Promise<T | undefined>,
    keepsCount?: (value: T) => boolean,
  ): Promise<T>
  /** Runs one attempt of a signed-in user to prove `what`: five tries of the sign-in, and a bound for all together. */
  judgeSignedIn<T>(
    what: 'password' | 'proof' | 'mfa enable' | 'mfa disable',
    by: Pick<UserCaller, 'id' | 'token_id'>,
    wrong: () => Failure,
    attempt: () => Promise<T | undefined>,
  ): Promise<T>
}

/**
 * Wrong attempts of all sign-ins of a user in an hour: more than one or two stolen tokens can make. The owner whom
 * several lock ends the other sign-ins, or sets a password by the link that comes by e-mail.
 */
const wrongOfAll = 50

const header = (until_ms: number): Record<string, string> => ({
  'x-account-lockout': String(until_ms === 0 ? 0 : Math.ceil(until_ms / 1000)),
})

export function lockout({ stores, clock }: { stores: Stores; clock: Clock }): Lockout {
  const perSubject = concurrencyByKey(20)

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
        const missed = await stores.attempts.find(everywhere, iso(now))
        if (missed && missed.count >= wrongOfAll) refuse(Date.parse(missed.expires_at))
        const value = await attempt()
        if (value === undefined) await stores.attempts.count(everywhere, iso(now), iso(now + hour_ms))
        return value
      })
    },
  }
  return locks
}

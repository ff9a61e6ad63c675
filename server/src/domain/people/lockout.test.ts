// The lock-out as a rule: the tables of both policies, how long counts live, that attempts of one subject are
// judged one after the other, and what clears a count. With a real database and a clock that stands still
// until it is moved.
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { Failure } from '@hawser/contract/failures'
import { minute_ms, second_ms } from '../../kit/clock.ts'
import { openDatabase } from '../../storage/database.ts'
import { stores as openStores } from '../../storage/stores.ts'
import { fiveTries, lockout, signInPolicy, type Policy } from './lockout.ts'

describe('the policies', () => {
  test.each([
    // attempt, minutes of lock, minutes the count lives
    [1, 0, 2],
    [2, 0, 2],
    [3, 1, 2],
    [4, 4, 10],
    [5, 16, 40],
    [6, 60, 60],
    [7, 60, 60],
    [100, 60, 60],
  ])(
    'sign-in: after attempt %i a lock of %i minutes, and the count lives for %i',
    (wrong, lock, remember) => {
      expect(signInPolicy.after(wrong)).toEqual({ lock, remember })
    },
  )

  test.each([
    [1, 0],
    [4, 0],
    [5, 15],
    [6, 15],
  ])('elsewhere: after try %i a rest of %i minutes', (wrong, lock) => {
    expect(fiveTries.after(wrong)).toEqual({ lock, remember: 15 })
  })
})

async function judge() {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-lockout-'))
  let now = Date.UTC(2024, 5, 1, 12)
  const clock = { now: () => now, forward: (ms: number) => void (now += ms) }
  const opened = await openDatabase({
    url: '',
    folder,
    now: () => new Date(now).toISOString(),
    onError: (error) => {
      throw error
    },
  })
  const stores = openStores(opened)
  const rule = lockout({ stores, clock })
  const wrongFailure = (headers: Record<string, string>) => new Failure('wrongCredentials', { headers })
  /** One attempt: what came of it, and the minutes of lock that it tells. */
  async function attempt(
    right: boolean,
    subject = 'vera',
    policy: Policy = signInPolicy,
    keep = false,
  ): Promise<string> {
    try {
      await rule.judge(
        subject,
        policy,
        wrongFailure,
        async () => right || undefined,
        () => keep,
      )
      return 'in'
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      const until = Number(error.headers['x-account-lockout'])
      return `${error.kind} ${until === 0 ? 0 : Math.round((until * 1000 - now) / minute_ms)}`
    }
  }
  return {
    clock,
    rule,
    stores,
    attempt,
    /** This many wrong attempts that count, each as soon as the lock of the one before is over. */
    async miss(count: number): Promise<void> {
      for (let i = 1; i <= count; i++) {
        await attempt(false)
        if (i < count) clock.forward(signInPolicy.after(i).lock * minute_ms)
      }
    },
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

describe('judging', () => {
  test('locks for 1, 4, 16 and 60 minutes from the third wrong attempt on, and tells it at once', async () => {
    await using court = await judge()
    expect([await court.attempt(false), await court.attempt(false)]).toEqual([
      'wrongCredentials 0',
      'wrongCredentials 0',
    ])
    for (const minutes of [1, 4, 16, 60]) {
      expect(await court.attempt(false)).toBe(`locked ${minutes}`)
      court.clock.forward(minutes * minute_ms - 1)
      expect(await court.attempt(true)).toMatch(/^locked/)
      court.clock.forward(1)
    }
    expect(await court.attempt(true)).toBe('in')
  })

  test.each([1, 2, 3, 4, 5])(
    'the count after attempt %i lives as long as the table says, and not longer',
    async (count) => {
      const { remember } = signInPolicy.after(count)
      const next = signInPolicy.after(count + 1)
      {
        await using court = await judge()
        await court.miss(count)
        court.clock.forward(remember * minute_ms - second_ms)
        expect(await court.attempt(false)).toBe(
          next.lock === 0 ? 'wrongCredentials 0' : `locked ${next.lock}`,
        )
      }
      await using court = await judge()
      await court.miss(count)
      court.clock.forward(remember * minute_ms)
      expect([await court.attempt(false), await court.attempt(false), await court.attempt(false)]).toEqual([
        'wrongCredentials 0',
        'wrongCredentials 0',
        'locked 1',
      ])
    },
  )

  test('the longest lock and its count end together', async () => {
    await using court = await judge()
    await court.miss(6)
    court.clock.forward(60 * minute_ms - 1)
    expect(await court.attempt(true)).toBe('locked 0')
    court.clock.forward(1)
    expect(await court.attempt(false)).toBe('wrongCredentials 0')
  })

  test('the second wrong attempt renews the life of the first', async () => {
    await using court = await judge()
    await court.attempt(false)
    court.clock.forward(90 * second_ms)
    await court.attempt(false)
    court.clock.forward(90 * second_ms)
    expect(await court.attempt(false)).toBe('locked 1')
  })

  test('nothing is tried, counted or prolonged while a lock lasts', async () => {
    await using court = await judge()
    await court.miss(3)
    let tried = 0
    const peek = async () => void tried++
    for (let i = 0; i < 10; i++) {
      const outcome: unknown = await court.rule
        .judge('vera', signInPolicy, () => new Failure('wrongCode'), peek)
        .catch((e: unknown) => e)
      expect(outcome).toMatchObject({ kind: 'locked' })
    }
    expect(tried).toBe(0)
    court.clock.forward(minute_ms)
    expect(await court.attempt(false)).toBe('locked 4')
  })

  test('a success clears the count', async () => {
    await using court = await judge()
    for (let i = 0; i < 3; i++) {
      await court.miss(2)
      expect(await court.attempt(true)).toBe('in')
    }
    expect(await court.stores.attempts.find('vera', '2024')).toBeUndefined()
  })

  test('a success that is only half of one keeps it', async () => {
    await using court = await judge()
    await court.miss(2)
    expect(await court.attempt(true, 'vera', signInPolicy, true)).toBe('in')
    expect(await court.attempt(false)).toBe('locked 1')
  })

  test('subjects are counted apart', async () => {
    await using court = await judge()
    await court.miss(3)
    expect(await court.attempt(false, 'olga')).toBe('wrongCredentials 0')
    expect(await court.attempt(true, 'olga')).toBe('in')
    expect(await court.attempt(true)).toBe('locked 1')
  })

  test('five tries are answered elsewhere, the sixth is not, and fifteen minutes later there are five again', async () => {
    await using court = await judge()
    const wrong = () => court.attempt(false, 'reset', fiveTries)
    for (let round = 0; round < 2; round++) {
      for (let i = 1; i <= 5; i++) expect(await wrong(), `try ${i}`).toMatch(/^wrongCredentials/)
      expect(await wrong()).toBe('locked 15')
      expect(await court.attempt(true, 'reset', fiveTries)).toBe('locked 15')
      court.clock.forward(15 * minute_ms)
    }
    expect(await court.attempt(true, 'reset', fiveTries)).toBe('in')
  })

  test('an attempt that breaks is not counted, and does not hold up the next', async () => {
    await using court = await judge()
    for (let i = 0; i < 5; i++) {
      const broken = court.rule.judge(
        'vera',
        signInPolicy,
        () => new Failure('wrongCode'),
        () => Promise.reject(new Error('no database')),
      )
      await expect(broken).rejects.toThrow('no database')
    }
    expect(await court.attempt(false)).toBe('wrongCredentials 0')
  })
})

describe('guesses at once', () => {
  test('are judged one after the other: two are answered, and no more than three are tried', async () => {
    await using court = await judge()
    let inside = 0
    let tried = 0
    const guess = async () => {
      tried++
      expect(++inside).toBe(1)
      await new Promise((resolve) => setImmediate(resolve))
      inside--
      return undefined
    }
    const outcomes = await Promise.allSettled(
      Array.from({ length: 100 }, () =>
        court.rule.judge('vera', signInPolicy, () => new Failure('wrongCredentials'), guess),
      ),
    )
    const kinds = outcomes.map((outcome) =>
      outcome.status === 'rejected' ? (outcome.reason as Failure).kind : 'in',
    )
    expect(tried).toBe(3)
    expect(kinds.filter((kind) => kind === 'wrongCredentials')).toHaveLength(2)
    // Those that found the line full were told to come back; the others met the lock.
    expect(kinds.filter((kind) => kind === 'locked' || kind === 'tooMany')).toHaveLength(98)
  })

  test('at one subject do not wait for those at another', async () => {
    await using court = await judge()
    const held = Promise.withResolvers<true>()
    const first = court.rule.judge(
      'vera',
      signInPolicy,
      () => new Failure('wrongCode'),
      () => held.promise,
    )
    expect(await court.attempt(true, 'olga')).toBe('in')
    held.resolve(true)
    expect(await first).toBe(true)
  })
})

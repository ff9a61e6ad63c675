// Who may stand at the SSH door without having logged in, as sshd's MaxStartups, PerSourceMaxStartups and
// PerSourcePenalties have it:
//   - one source (an address, or the /64 of an IPv6 address) has a small share of the places, and of those
//     that are left; an unknown one comes no faster than its rate
//   - the more places are taken, and the faster all sources together come, the more newcomers are dropped at
//     random, so that nobody can keep everybody else out
//   - a source whose connections end without a login is in debt for some seconds each; when it owes too much
//     it is refused
//   - a source that logged in lately is known: it has a larger share, the places that are kept free for such
//     sources, a rate with all known ones together, and no debts; so an address that many people share is not
//     closed by one of them
// Sessions do not count here, and people in a browser, whom the HTTP side has let in, do not compete for
// places.
import { neighbourhood } from '../kit/address.ts'
import { BoundedMap } from '../kit/bounded-map.ts'
import { hour_ms, second_ms, type Clock } from '../kit/clock.ts'
import { limiter } from '../kit/limiter.ts'

export interface StartupsOptions {
  /** Connections of one source at a time, sessions and all. */
  readonly perSource: number
  /** New connections of one source; all sources together may make ten times as many. */
  readonly rate: { readonly max: number; readonly window_ms: number }
}

export type WhyRefused =
  | 'too many of this source'
  | 'too many strangers'
  | 'too fast'
  | 'too many without a login'

/** A connection that has not logged in. Disposing it gives its place back. */
export interface Startup extends Disposable {
  /** Somebody tries to prove something. */
  tried(): void
  /** It is a session from here on; its source is known. */
  loggedIn(): void
}

export interface Startups {
  /**
   * A place for a new connection, or why there is none. `trusted`: the source is a proxy of the operator's.
   */
  enter(address: string, trusted: boolean): Startup | WhyRefused
  /** A place for a session of somebody in a browser; undefined if the source has too many. */
  session(address: string): Disposable | undefined
  /** Connections that have not logged in. */
  readonly size: number
}

/** Places altogether, and those of them that anybody may have. */
const places = 1_000
const publicPlaces = 800
/** From here on newcomers are dropped: at first so many of them, in the end all. */
const crowd = 200
const firstDropped = 0.3
/** Parts of what one source may have at a time. */
const share = { unknown: 1 / 8, known: 1 / 4 }
/** And never more than this part of the places that are left, so that a few sources cannot take them all. */
const shareOfLeft = 1 / 4
/**
 * What a connection without a login costs its source: it said nothing of use, its proofs were refused, it
 * used up its time.
 */
const debt_ms = { left: second_ms, failed: 5 * second_ms, late: 10 * second_ms }
const late_ms = 60 * second_ms
const bearable_ms = 15 * second_ms
const mostDebt_ms = 600 * second_ms
const remembered_ms = 24 * hour_ms
const mostSources = 100_000

interface Source {
  strangers: number
  sessions: number
}

export function startups(
  clock: Clock,
  options: StartupsOptions,
  random: () => number = Math.random,
): Startups {
  const sources = new Map<string, Source>()
  /** Until when a source has to behave. */
  const debts = new BoundedMap<string, number>(mostSources)
  /** When somebody last logged in from there. */
  const known = new BoundedMap<string, number>(mostSources)
  const arrivals = limiter(clock, options.rate)
  const pace = { unknown: leakyBucket(clock, options.rate), known: leakyBucket(clock, options.rate) }
  let strangers = 0

  const isKnown = (key: string): boolean => clock.now() - (known.get(key) ?? -Infinity) < remembered_ms
  const sourceOf = (key: string): Source => {
    const source = sources.get(key) ?? { strangers: 0, sessions: 0 }
    sources.set(key, source)
    return source
  }
  const tidy = (key: string, source: Source): void => {
    if (source.strangers + source.sessions === 0) sources.delete(key)
  }
  const owe = (key: string, ms: number): void => {
    const now = clock.now()
    debts.set(key, Math.min(Math.max(debts.get(key) ?? 0, now) + ms, now + mostDebt_ms))
  }

  function refusal(key: string, trusted: boolean): WhyRefused | undefined {
    const how = trusted || isKnown(key) ? 'known' : 'unknown'
    const { strangers: own, sessions } = sources.get(key) ?? { strangers: 0, sessions: 0 }
    if (own + sessions >= options.perSource || own >= Math.ceil(options.perSource * share[how]))
      return 'too many of this source'
    if (how === 'unknown' && (debts.get(key) ?? 0) - clock.now() > bearable_ms)
      return 'too many without a login'
    if (how === 'unknown' && arrivals.take(key) > 0) return 'too fast'
    const full = how === 'known' ? places : publicPlaces
    if (!trusted && own > (full - strangers) * shareOfLeft) return 'too many of this source'
    if (strangers >= full || (how === 'unknown' && random() < chanceToDrop(strangers, crowd, full)))
      return 'too many strangers'
    if (random() < pace[how].chanceToDrop()) return 'too fast'
    pace[how].add()
    return undefined
  }

  return {
    get size() {
      return strangers
    },
    enter(address, trusted) {
      const key = neighbourhood(address)
      const why = refusal(key, trusted)
      if (why) return why
      const source = sourceOf(key)
      const came_at = clock.now()
      let state: 'stranger' | 'tried' | 'session' | 'gone' = 'stranger'
      source.strangers += 1
      strangers += 1
      const leave = (): void => {
        source.strangers -= 1
        strangers -= 1
      }
      return {
        tried() {
          if (state === 'stranger') state = 'tried'
        },
        loggedIn() {
          if (state === 'session' || state === 'gone') return
          state = 'session'
          leave()
          source.sessions += 1
          known.set(key, clock.now())
          debts.delete(key)
        },
        [Symbol.dispose]() {
          if (state === 'session') source.sessions -= 1
          else if (state !== 'gone') {
            leave()
            const why_ms =
              clock.now() - came_at >= late_ms
                ? debt_ms.late
                : state === 'tried'
                  ? debt_ms.failed
                  : debt_ms.left
            if (!trusted && !isKnown(key)) owe(key, why_ms)
          }
          state = 'gone'
          tidy(key, source)
        },
      }
    },
    session(address) {
      const key = neighbourhood(address)
      const source = sourceOf(key)
      if (source.sessions >= options.perSource) return undefined
      source.sessions += 1
      return {
        [Symbol.dispose]() {
          source.sessions -= 1
          tidy(key, source)
        },
      }
    },
  }
}

/** 0 up to `begin`, then from the first share to 1 at `full`. */
function chanceToDrop(count: number, begin: number, full: number): number {
  if (count < begin) return 0
  return Math.min(1, firstDropped + ((1 - firstDropped) * (count - begin)) / (full - begin))
}

/** What all sources of a kind may do together: ten times what one may. From the half on, some are dropped. */
function leakyBucket(clock: Clock, { max, window_ms }: StartupsOptions['rate']) {
  const full = max * 10
  let level = 0
  let seen_at = clock.now()
  const leak = (): void => {
    const now = clock.now()
    level = Math.max(0, level - (Math.max(0, now - seen_at) / window_ms) * full)
    seen_at = now
  }
  return {
    chanceToDrop(): number {
      if (max === Infinity) return 0
      leak()
      return chanceToDrop(level, full / 2, full)
    },
    add(): void {
      if (max !== Infinity) level += 1
    },
  }
}

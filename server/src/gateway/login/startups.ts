// Limits for SSH connections that have not logged in, after sshd's MaxStartups, PerSourceMaxStartups and
// PerSourcePenalties:
//   - One source (an address, or the /64 of an IPv6 address) may have a small share of all slots, and of the
//     free ones. An unknown source may connect no faster than its rate.
//   - The more slots are taken, and the faster all sources together connect, the more new connections are
//     dropped at random, so that nobody can lock everybody else out.
//   - A source gets a penalty of some seconds for each connection that ends without a login. With too much of
//     it the source is refused.
//   - A source that logged in lately is known. It has a larger share, the slots that are reserved for such
//     sources, a rate together with all known ones, and no penalties. So one person cannot lock out an
//     address that many people share. Known sources are stored, so that a restart does not make them strangers.
// Sessions do not count here. Browsers, which the HTTP server has authenticated, do not compete for slots.
import { sessionLimits } from '@hawser/contract/limits'
import { neighbourhood } from '../../kit/address.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { hour_ms, second_ms, type Clock } from '../../kit/clock.ts'
import { limiter } from '../../kit/limiter.ts'

export interface StartupsOptions {
  /** Concurrent connections of one source, sessions included. */
  readonly perSource: number
  /** New connections of one source; all sources together may make ten times as many. */
  readonly rate: { readonly max: number; readonly window_ms: number }
  readonly memory?: SourceMemory
}

/** A source is stored at its first login and then once an hour. */
export interface SourceMemory {
  /** Sources of earlier logins, newest first. */
  readonly known: readonly { readonly source: string; readonly logged_in_at: string }[]
  note(source: string, logged_in_ms: number): void
}

export const whyRefused = [
  'too many of this source',
  'too many strangers',
  'too fast',
  'too many without a login',
] as const
export type WhyRefused = (typeof whyRefused)[number]

/** A connection that has not logged in. Disposing it frees its slot. */
export interface Startup extends Disposable {
  tried(): void
  /** The connection is a session from here on; its source becomes a known one. */
  loggedIn(): void
}

export interface Startups {
  /** A slot for a new connection, or why there is none. `trusted`: the source is a proxy of the operator. */
  enter(address: string, trusted: boolean): Startup | WhyRefused
  /** Counts a session of a browser; undefined: its source has too many. */
  session(address: string): Disposable | undefined
  readonly size: number
}

const slots = sessionLimits.startups.max
const publicSlots = sessionLimits.startupsOfStrangers.max
/**
 * Above this number of taken slots, connections of unknown sources are dropped, at first with this chance.
 */
const crowd = 200
const firstDropped = 0.3
/** The part of `perSource` that may be unauthenticated at the same time. */
const share = { unknown: 1 / 8, known: 1 / 4 }
/**
 * One source never gets more than this part of the free slots, so that a few sources cannot take them all.
 */
const shareOfFree = 1 / 4
/** Penalties for a connection that left without a try, whose tries failed, and that used up its time. */
const penalty_ms = { left: second_ms, failed: 5 * second_ms, late: 10 * second_ms }
const late_ms = 60 * second_ms
/** A source with more penalty than this is refused. */
const bearable_ms = sessionLimits.withoutLogin.max * second_ms
const mostPenalty_ms = 600 * second_ms
export const remembered_ms = 24 * hour_ms
export const mostSources = 100_000

interface Source {
  unauthenticated: number
  sessions: number
}

/** Sources that somebody logged in from lately. */
function knownSources(clock: Clock, memory: SourceMemory | undefined) {
  /** When somebody last logged in from each source, and when that was last stored. */
  const known = new BoundedMap<string, { at: number; stored_at: number }>(mostSources)
  for (const { source, logged_in_at } of memory?.known.toReversed() ?? []) {
    const at = Date.parse(logged_in_at)
    known.set(source, { at, stored_at: at })
  }
  return {
    isKnown: (key: string): boolean => clock.now() - (known.get(key)?.at ?? -Infinity) < remembered_ms,
    learn(key: string): void {
      const at = clock.now()
      const before = known.get(key)?.stored_at ?? -Infinity
      const isDue = at - before >= hour_ms
      known.set(key, { at, stored_at: isDue ? at : before })
      if (isDue) memory?.note(key, at)
    },
  }
}

export function startups(
  clock: Clock,
  options: StartupsOptions,
  random: () => number = Math.random,
): Startups {
  const sources = new Map<string, Source>()
  const { isKnown, learn } = knownSources(clock, options.memory)
  const penalties = new BoundedMap<string, number>(mostSources)
  const arrivals = limiter(clock, options.rate)
  const pace = { unknown: leakyBucket(clock, options.rate), known: leakyBucket(clock, options.rate) }
  let unauthenticated = 0

  const sourceOf = (key: string): Source => {
    const source = sources.get(key) ?? { unauthenticated: 0, sessions: 0 }
    sources.set(key, source)
    return source
  }
  const tidy = (key: string, source: Source): void => {
    if (source.unauthenticated + source.sessions === 0) sources.delete(key)
  }
  const penalise = (key: string, ms: number): void => {
    const now = clock.now()
    penalties.set(key, Math.min(Math.max(penalties.get(key) ?? 0, now) + ms, now + mostPenalty_ms))
  }

  function refusal(key: string, trusted: boolean): WhyRefused | undefined {
    const how = trusted || isKnown(key) ? 'known' : 'unknown'
    const { unauthenticated: own, sessions } = sources.get(key) ?? { unauthenticated: 0, sessions: 0 }
    if (own + sessions >= options.perSource || own >= Math.ceil(options.perSource * share[how]))
      return 'too many of this source'
    if (how === 'unknown' && (penalties.get(key) ?? 0) - clock.now() > bearable_ms)
      return 'too many without a login'
    if (how === 'unknown' && arrivals.take(key) > 0) return 'too fast'
    const full = how === 'known' ? slots : publicSlots
    if (!trusted && own > (full - unauthenticated) * shareOfFree) return 'too many of this source'
    if (
      unauthenticated >= full ||
      (how === 'unknown' && random() < chanceToDrop(unauthenticated, crowd, full))
    )
      return 'too many strangers'
    if (random() < pace[how].chanceToDrop()) return 'too fast'
    pace[how].add()
    return undefined
  }

  return {
    get size() {
      return unauthenticated
    },
    enter(address, trusted) {
      const key = neighbourhood(address)
      const why = refusal(key, trusted)
      if (why) return why
      const source = sourceOf(key)
      const came_at = clock.now()
      let state: 'connected' | 'tried' | 'session' | 'gone' = 'connected'
      source.unauthenticated += 1
      unauthenticated += 1
      const leave = (): void => {
        source.unauthenticated -= 1
        unauthenticated -= 1
      }
      return {
        tried() {
          if (state === 'connected') state = 'tried'
        },
        loggedIn() {
          if (state === 'session' || state === 'gone') return
          state = 'session'
          leave()
          source.sessions += 1
          learn(key)
          penalties.delete(key)
        },
        [Symbol.dispose]() {
          if (state === 'session') source.sessions -= 1
          else if (state !== 'gone') {
            leave()
            const why = clock.now() - came_at >= late_ms ? 'late' : state === 'tried' ? 'failed' : 'left'
            if (!trusted && !isKnown(key)) penalise(key, penalty_ms[why])
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

/** 0 up to `begin`, then rising from `firstDropped` to 1 at `full`. */
function chanceToDrop(count: number, begin: number, full: number): number {
  if (count < begin) return 0
  return Math.min(1, firstDropped + ((1 - firstDropped) * (count - begin)) / (full - begin))
}

/** The rate of all sources of a kind together: ten times that of one. Drops some connections from half on. */
function leakyBucket(clock: Clock, { max, window_ms }: StartupsOptions['rate']) {
  const full = max * sessionLimits.arrivalsOfAll.times
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

// The interval between pings, against NATs that forget after a known time: a day of pings in
// a time of its own.
import { expect, test } from 'vitest'
import { firstPing_s, longestPing_s, shortestPing_s } from '@hawser/contract/tunnel'
import { pingInterval, type PingInterval } from './ping-interval.ts'

interface Day {
  readonly interval: PingInterval
  pings: number
  losses: number
  /** How long the tunnel was dead and nobody knew. */
  dead_s: number
  /** Passes time behind a NAT that forgets idle connections. */
  live(seconds: number, forgets_s: number): void
}

function day(): Day {
  let now_s = 0
  const interval = pingInterval(undefined, () => now_s * 1_000)
  return {
    interval,
    pings: 0,
    losses: 0,
    dead_s: 0,
    live(seconds, forgets_s) {
      const end_s = now_s + seconds
      while (now_s < end_s) {
        const idle_s = interval.now_s
        now_s += idle_s
        this.pings++
        if (idle_s < forgets_s) {
          interval.survived(idle_s * 1_000)
          continue
        }
        this.losses++
        this.dead_s += idle_s - forgets_s + 15
        now_s += 15
        interval.lost(idle_s * 1_000)
      }
    },
  }
}

const hour_s = 3_600

test('a network that forgets nothing is soon asked every ten minutes', () => {
  const today = day()
  expect(today.interval.now_s).toBe(firstPing_s)
  today.live(hour_s, Infinity)
  expect(today.interval.now_s).toBe(longestPing_s)
  expect(today).toMatchObject({ losses: 0 })
  expect(today.pings).toBeLessThan(13)
})

test.each([
  [45, 25],
  [60, 35],
  [120, 65],
  [300, 180],
] as const)('a NAT that forgets after %i s is found within a few losses', (forgets_s, least_s) => {
  const today = day()
  today.live(hour_s, forgets_s)
  expect(today.interval.now_s).toBeGreaterThanOrEqual(least_s)
  expect(today.interval.now_s).toBeLessThan(forgets_s)
  expect(today.losses).toBeLessThanOrEqual(2)
  today.live(23 * hour_s, forgets_s)
  // Longer intervals are tried again, less and less often.
  expect(today.losses).toBeLessThanOrEqual(14)
})

test('a device that moves behind a worse NAT goes back, and one that moves to a better network grows', () => {
  const today = day()
  today.live(hour_s, Infinity)
  today.live(hour_s, 60)
  expect(today.interval.now_s).toBeLessThan(60)
  expect(today.losses).toBeLessThanOrEqual(6)
  today.live(4 * hour_s, Infinity)
  expect(today.interval.now_s).toBe(longestPing_s)
})

test('what was learnt earlier is taken over once, within the limits', () => {
  const fresh = pingInterval()
  fresh.adopt(300)
  expect(fresh.now_s).toBe(300)
  fresh.adopt(60)
  expect(fresh.now_s).toBe(300)
  for (const absurd of [0, -1, Number.NaN, 24]) {
    const other = pingInterval()
    other.adopt(absurd)
    expect(other.now_s).toBe(firstPing_s)
  }
  const huge = pingInterval()
  huge.adopt(1e9)
  expect(huge.now_s).toBe(longestPing_s)
})

test('the shorter limit of device and server counts, and no interval is shorter than the shortest', () => {
  const interval = pingInterval(300)
  interval.limit(120)
  interval.adopt(600)
  expect(interval.now_s).toBe(120)
  // The server's setting was raised: the next connection of a running agent learns it.
  interval.limit(240)
  expect(interval.now_s).toBe(240)
  interval.limit(600)
  expect(interval.now_s).toBe(300)
  for (let count = 0; count < 20; count++) interval.lost(30_000)
  expect(interval.now_s).toBe(shortestPing_s)
  interval.limit(1)
  expect(interval.now_s).toBe(shortestPing_s)
})

test('a tunnel that was lost right after something had passed says nothing about NATs', () => {
  const interval = pingInterval()
  interval.survived(60_000)
  const before = interval.now_s
  interval.lost(10_000)
  expect(interval.now_s).toBe(before)
})

test('one loss after an idle time that was survived before changes nothing; a second one in a row does', () => {
  const interval = pingInterval()
  interval.survived(600_000)
  for (let count = 0; count < 5; count++) {
    interval.lost(600_000)
    expect(interval.now_s).toBe(600)
    interval.survived(600_000)
  }
  interval.lost(100_000)
  interval.lost(100_000)
  expect(interval.now_s).toBe(50)
  // It has not worked yet: the next loss counts at once.
  interval.lost(50_000)
  expect(interval.now_s).toBe(25)
})

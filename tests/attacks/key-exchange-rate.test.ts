// A key exchange costs the server far more than the client, and new connections were not limited in rate. One
// source makes only so many in a while, and so do all of them together; those who logged in lately have a
// rate of their own.
import { expect, test } from 'vitest'
import { startups, type WhyRefused } from '../../server/src/gateway/login/startups.ts'
import { startDoor } from './door.ts'

test(
  'one source gets so many key exchanges and no more, another one gets its own',
  { timeout: 60_000 },
  async () => {
    await using door = await startDoor({ HAWSER_SSH_RATE_LIMIT: '5/10' })
    const exchanged = async (from: string): Promise<boolean> =>
      door.knock({ from }).then(
        () => true,
        () => false,
      )
    const outcomes: boolean[] = []
    for (let attempt = 0; attempt < 12; attempt += 1) outcomes.push(await exchanged('198.51.100.1'))
    expect(outcomes.filter(Boolean)).toHaveLength(5)
    expect(await exchanged('192.0.2.9')).toBe(true)
    door.service.clock.forward(10_000)
    expect(await exchanged('198.51.100.1')).toBe(true)
  },
)

test('all sources together have a rate as well, and the known ones have their own', () => {
  let now = 1_000_000
  const all = startups({ now: () => now }, { perSource: 500, rate: { max: 10, window_ms: 10_000 } })
  const come = (address: string): WhyRefused | undefined => {
    const place = all.enter(address, false)
    if (typeof place === 'string') return place
    place[Symbol.dispose]()
    return undefined
  }
  const known = all.enter('192.0.2.9', false)
  if (typeof known === 'string') throw new Error(known)
  known.loggedIn()
  const crowd = () => Array.from({ length: 2_000 }, (_, index) => come(`198.18.${index >> 8}.${index & 255}`))
  const first = crowd().filter((why) => why === undefined).length
  expect(first).toBeGreaterThanOrEqual(50)
  expect(first).toBeLessThanOrEqual(100)
  expect(come('203.0.113.4')).toBe('too fast')
  expect(come('192.0.2.9')).toBeUndefined()
  now += 10_000
  expect(crowd().filter((why) => why === undefined).length).toBeGreaterThanOrEqual(50)
})

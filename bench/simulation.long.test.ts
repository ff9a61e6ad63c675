import { expect, test } from 'vitest'
import { simulate } from './simulation.ts'

test('after a full restart all agents are back, never faster than the rate, and few are sent away more than once or twice', async () => {
  const rate = 100
  const outcome = await simulate({ agents: 5_000, nodes: 3, rate, lost: 3, down_s: 5 })
  expect(outcome.peakAdmitted).toBeLessThanOrEqual(rate)
  // The time that the rate alone takes, the time that the nodes were away, and the last of the agents' waits by
  // then.
  expect(outcome.back_s.get(100)).toBeLessThan(2 * (5_000 / (3 * rate)) + 5 + 8)
  expect(outcome.refusals.mean).toBeLessThan(2)
  expect(outcome.refusals.most).toBeLessThan(10)
  expect(outcome.doubles).toBe(0)
  // A name that is held and the news of it, for each.
  expect(outcome.directory.total).toBe(2 * 5_000)
})

test('agents of a lost node are back on the others within fifteen seconds', async () => {
  const outcome = await simulate({ agents: 5_000, nodes: 3, rate: 200, lost: 1, down_s: 600 })
  expect(outcome.back_s.get(100)).toBeLessThan(15)
  expect(outcome.peakAdmitted).toBeLessThanOrEqual(200)
  expect(outcome.doubles).toBe(0)
})

test('more agents than turns can be promised to come back all the same, in waves that are spread', async () => {
  const outcome = await simulate({ agents: 5_000, nodes: 1, rate: 20, lost: 1, down_s: 1 })
  expect(outcome.back_s.get(100)).toBeLessThan(2 * (5_000 / 20))
  expect(outcome.peakAdmitted).toBeLessThanOrEqual(20)
  expect(outcome.refusals.most).toBeLessThan(20)
})

test.each([5, 60])(
  '10,000 agents are back within a minute after three nodes were away for %i seconds',
  async (down_s) => {
    const outcome = await simulate({ agents: 10_000, nodes: 3, rate: 200, lost: 3, down_s })
    expect(outcome.back_s.get(100)! - down_s).toBeLessThan(60)
    expect(outcome.peakAdmitted).toBeLessThanOrEqual(200)
  },
)

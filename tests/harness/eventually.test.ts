// Waits take longer than vitest's own second, and still fail for what does not come true.
import { expect, test } from 'vitest'
import { eventually, until } from './eventually.ts'

/** Becomes true after more than the second in which vitest would give up. */
function late(): () => boolean {
  let isTrue = false
  setTimeout(() => (isTrue = true), 1_300)
  return () => isTrue
}

test('waits are longer than a second', async () => {
  const [one, two] = [late(), late()]
  await Promise.all([eventually(() => expect(one()).toBe(true)), until(two)])
  expect([one(), two()]).toEqual([true, true])
})

test('expect.poll is as patient', async () => {
  await expect.poll(late()).toBe(true)
})

test('what does not come true fails, with its own error', async () => {
  await expect(eventually(() => expect('ebb').toBe('flood'), 50)).rejects.toThrow(
    "expected 'ebb' to be 'flood'",
  )
  await expect(until(() => false, 50)).rejects.toThrow('Timed out in waitUntil!')
})

test('a result is handed on', async () => {
  let asked = 0
  const third = await eventually(() => {
    expect(++asked).toBeGreaterThan(2)
    return asked
  })
  expect(third).toBe(3)
  expect(await until(() => (++asked > 5 ? 'six' : undefined))).toBe('six')
})

// When a permission is asked for, and when it ends, by a clock that the test moves.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { permission } from './permission.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** One whose answers the test gives. */
function start(ends_at?: number) {
  const questions: { answer(holds: boolean): void; fail(): void }[] = []
  const onLost = vi.fn<() => void>()
  const asked = permission({
    holds: () =>
      new Promise((resolve, reject) =>
        questions.push({ answer: resolve, fail: () => reject(new Error('The database is away.')) }),
      ),
    onLost,
    ends_at,
  })
  const last = () => questions.at(-1)!
  return { asked, questions, onLost, last }
}

test('it is asked for at once, and again whenever something changed', async () => {
  const { asked, questions, onLost, last } = start()
  expect(questions).toHaveLength(1)
  last().answer(true)
  await vi.advanceTimersByTimeAsync(3_600_000)
  expect(questions).toHaveLength(1)
  void asked.recheck()
  expect(questions).toHaveLength(2)
  last().answer(false)
  await vi.advanceTimersByTimeAsync(0)
  expect(onLost).toHaveBeenCalledOnce()
})

test('a change while the answer is on its way is not overlooked', async () => {
  const { asked, questions, last } = start()
  void asked.recheck()
  void asked.recheck()
  expect(questions).toHaveLength(1)
  last().answer(true)
  await vi.advanceTimersByTimeAsync(0)
  expect(questions).toHaveLength(2)
  last().answer(true)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(questions).toHaveLength(2)
})

test('nobody is shown out while there is no answer; the question is repeated until there is one', async () => {
  const { questions, onLost, last } = start()
  last().fail()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(questions).toHaveLength(2)
  last().fail()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(questions).toHaveLength(3)
  expect(onLost).not.toHaveBeenCalled()
  last().answer(false)
  await vi.advanceTimersByTimeAsync(0)
  expect(onLost).toHaveBeenCalledOnce()
})

test('it is asked for when what it rests on ends, and never after it was disposed', async () => {
  const ending = start(Date.now() + 60_000)
  ending.last().answer(true)
  await vi.advanceTimersByTimeAsync(59_000)
  expect(ending.questions).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(3_000)
  expect(ending.questions).toHaveLength(2)

  const left = start(Date.now() + 60_000)
  left.asked[Symbol.dispose]()
  left.last().answer(false)
  void left.asked.recheck()
  await vi.advanceTimersByTimeAsync(120_000)
  expect(left.questions).toHaveLength(1)
  expect(left.onLost).not.toHaveBeenCalled()
})

test('it is asked for at an end that is further away than a timer reaches', async () => {
  const day_ms = 24 * 3_600_000
  const { questions, last } = start(Date.now() + 60 * day_ms)
  last().answer(true)
  await vi.advanceTimersByTimeAsync(60 * day_ms)
  expect(questions).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(2_000)
  expect(questions).toHaveLength(2)
})

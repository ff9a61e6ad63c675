// An event of the timeline is read once at every moment: while it waits, while it is written, and after that.
import { expect, test } from 'vitest'
import { systemClock } from '../../kit/clock.ts'
import type { DeviceEvent } from '../../storage/device-events.ts'
import type { Stores } from '../../storage/stores.ts'
import { timeline } from './timeline.ts'

const uid = 'a'.repeat(64)

/** A database whose writes and reads take until they are let on. */
function slowDatabase() {
  const rows: DeviceEvent[] = []
  const committing = Promise.withResolvers<void>()
  let answering: PromiseWithResolvers<void> | undefined
  const stores = {
    isDuplicate: () => false,
    deviceEvents: {
      async add(events: readonly DeviceEvent[]) {
        await committing.promise
        rows.unshift(...events.toReversed())
      },
    },
    of: () => ({
      timeline: {
        async newest() {
          const found = [...rows]
          await answering?.promise
          return found
        },
      },
    }),
  } as unknown as Stores
  return {
    stores,
    commit: () => committing.resolve(),
    holdReads: () => (answering = Promise.withResolvers()),
  }
}

const fail = (error: unknown): never => {
  throw error
}

test('an event is read once, whether it waits, is being written or was written during the read', async () => {
  const { stores, commit, holdReads } = slowDatabase()
  await using events = timeline({ stores, clock: systemClock, onError: fail })
  const kinds = async () => (await events.of('tenant', uid, 10)).map(({ kind }) => kind)
  events.note(uid, { kind: 'leaving', why: 'stopped' })
  expect(await kinds()).toEqual(['leaving'])
  const writing = events.flush()
  await new Promise(setImmediate)
  expect(await kinds()).toEqual(['leaving'])
  const answer = holdReads()
  const read = kinds()
  commit()
  await writing
  answer.resolve()
  expect(await read).toEqual(['leaving'])
  expect(await kinds()).toEqual(['leaving'])
})

// Certificates of many names: the number of orders, the shares of owners, and the bound of a week.
import { expect, test } from 'vitest'
import { eventually } from '../../../tests/harness/eventually.ts'
import { day_ms } from '../kit/clock.ts'
import { manyNames, type OwnedName } from './many-names.ts'

function world(most: number, stored: readonly string[] = []) {
  let now = 0
  let names: OwnedName[] = []
  const ordered: string[] = []
  const renewed = new Set<string>()
  const room = manyNames({
    most,
    names: async () => names,
    stored: async () => new Set(stored),
    renew: (name) => {
      ordered.push(name)
      renewed.add(name)
      return {
        answer: async () => undefined,
        [Symbol.asyncDispose]: async () => void renewed.delete(name),
      }
    },
    look_ms: 1_000_000,
    clock: { now: () => now },
    onError: (error) => expect.unreachable(String(error)),
  })
  return {
    room,
    ordered,
    forward: (ms: number) => void (now += ms),
    async become(...next: string[]) {
      names = next.map((name) => ({ name, owner: name.slice(0, 1) }))
      room.changed()
      await eventually(() => expect([...renewed].every((name) => next.includes(name))).toBe(true))
      await new Promise(setImmediate)
      return { renewed: [...renewed].toSorted() }
    },
  }
}

test('the oldest have one, and a later one gets the place of one that is gone', async () => {
  const { room, become, forward } = world(2)
  await using _ = room
  expect(await become('a1', 'a2', 'a3')).toMatchObject({ renewed: ['a1', 'a2'] })
  forward(8 * day_ms)
  expect(await become('a2', 'a3')).toMatchObject({ renewed: ['a2', 'a3'] })
})

test('where there are several owners, one gets half', async () => {
  const { room, become } = world(4)
  await using _ = room
  expect(await become('a1', 'a2', 'a3', 'b1')).toMatchObject({ renewed: ['a1', 'a2', 'b1'] })
})

test('orders of names that come and go are limited in a week, and stored ones do not count', async () => {
  const { room, become, ordered, forward } = world(3, ['stored'])
  await using _ = room
  for (let count = 0; count < 20; count += 1) await become(`a${count}`)
  expect(ordered).toEqual(['a0', 'a1', 'a2'])
  expect(await become('stored')).toMatchObject({ renewed: ['stored'] })
  forward(8 * day_ms)
  expect(await become('a21')).toMatchObject({ renewed: ['a21'] })
})

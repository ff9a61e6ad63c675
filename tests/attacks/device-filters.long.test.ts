// A member sends many filtered lists of devices at once. All namespaces share what reads lists, so those of one caller
// wait for each other, the rest is refused, and another namespace is answered in between.
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { ApiError } from '@hawser/contract/client'
import { encodeFilter } from '@hawser/contract/filters'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()

test('filtered lists of one caller are read one after the other, and those of others are not behind them all', async () => {
  const filter = encodeFilter([
    { type: 'property', params: { name: 'public_key', operator: 'contains', value: 'none' } },
  ])
  await place.stranger.devices.list()
  // A list of somebody that takes long: what comes meanwhile waits behind it.
  const long =
    sql`with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 10000000)
    select max(n) from numbers`.execute(place.rooms.database.reader)
  let answered = 0
  const many = Array.from({ length: 120 }, async () => {
    await place.observer.devices.list({ query: { filter } })
    answered += 1
  })
  const all = Promise.allSettled([...many, long])
  await place.stranger.devices.list({ query: { filter } })
  expect(answered).toBeLessThan(20)
  const outcomes = await all
  const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  expect(refused.every((error) => error instanceof ApiError && error.status === 429)).toBe(true)
  expect(answered).toBeGreaterThan(50)
})

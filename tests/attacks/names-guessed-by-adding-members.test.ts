// An account that owns a namespace adds one guessed name after the other as a member, hundreds a second, and learns
// from the answers who has an account. A person makes thirty wrong guesses in ten minutes; then right names are
// refused, too, or they would still tell.
import { expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { startPlace } from '../harness/place.ts'
import { statusOf } from '../contract/people.ts'

const add = (client: Client, identifier: string, tenant: string) =>
  statusOf(client.namespaces.addMember({ params: { tenant }, body: { identifier, role: 'observer' } }))

test('thirty wrong names in ten minutes, in all namespaces of a person together', async () => {
  await using place = await startPlace()
  const { tenant_id } = await place.rooms.namespaces.create(sample.stranger.id, 'another')
  const statuses = []
  for (let n = 0; n < 40; n += 1)
    statuses.push(
      await add(place.stranger, `guess-${n}@example.com`, n % 2 === 0 ? sample.otherTenant : tenant_id),
    )
  expect(statuses).toEqual([
    ...Array.from({ length: 30 }, () => 404),
    ...Array.from({ length: 10 }, () => 429),
  ])
  expect(await add(place.stranger, sample.observer.username, tenant_id)).toBe(429)
  // Others are not counted with them.
  expect(await add(place.owner, sample.stranger.username, sample.tenant)).toBe(200)
  place.clock.forward(10 * 60_000)
  expect(await add(place.stranger, sample.observer.username, tenant_id)).toBe(200)
})

test('the API keys of a person have thirty together, and do not keep the person from adding members', async () => {
  await using place = await startPlace()
  const body = { name: 'another', expires_at: 30, role: 'administrator' } as const
  const other = place.api({ apiKey: (await place.administrator.apiKeys.create({ body })).body.id })
  for (let n = 0; n < 30; n += 1)
    expect(await add(n % 2 === 0 ? place.key : other, `guess-${n}`, sample.tenant)).toBe(404)
  expect([await add(place.key, 'guess', sample.tenant), await add(other, 'guess', sample.tenant)]).toEqual([
    429, 429,
  ])
  expect(await add(place.administrator, sample.stranger.username, sample.tenant)).toBe(200)
})

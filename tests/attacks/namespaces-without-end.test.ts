// Somebody registers and founds namespaces without end. Held sessions, screens and the audit log are shared fairly
// between namespaces, so that each of them takes from what others get. An account that its user made may own only
// some; neither handing them to others nor founding at the same moment gets around it.
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { refused, statusesOf, statusOf } from '../contract/people.ts'
import { bothDatabases, startPlace, type Place } from '../harness/place.ts'

const limit = 3
const { password } = sample.owner
let names = 0
const found = (client: Client) => client.namespaces.create({ body: { name: `quay-${(names += 1)}` } })
const owned = (place: Place, { id }: { id: string }) => place.rooms.stores.namespaces.countOwnedBy(id)
/** As if the user of the account had registered. */
const registered = (place: Place, { id }: { id: string }) =>
  place.rooms.stores.users.save(id, { registered: 1 })
/** Signs in anew: a token ends with the namespace that it was made for. */
async function signedIn(place: Place, tenant?: string): Promise<Client> {
  const client = place.api((await place.nobody.users.login({ body: sample.stranger })).body)
  if (tenant === undefined) return client
  return place.api((await client.users.namespaceToken({ params: { tenant } })).body)
}
/** The stranger owns the other namespace of the sample at the beginning. */
const fill = async (place: Place): Promise<void> => {
  await registered(place, sample.stranger)
  for (let at = 1; at < limit; at += 1) await found(place.stranger)
}

describe.each(bothDatabases)('on %s, somebody who registered', (_, options) => {
  const start = async (most = limit): Promise<Place> => {
    const { env, ...more } = await options()
    return startPlace({ ...more, env: { ...env, HAWSER_NAMESPACE_LIMIT: String(most) } })
  }

  test('owns at most the number of the setting, however many are asked for at once', async () => {
    await using place = await start()
    await registered(place, sample.stranger)
    const statuses = await statusesOf(Array.from({ length: 8 }, () => found(place.stranger)))
    expect(statuses).toEqual([200, 200, 403, 403, 403, 403, 403, 403])
    expect(await owned(place, sample.stranger)).toBe(limit)
    const refusal = await refused(found(place.stranger))
    expect([refusal.kind, refusal.message]).toEqual([
      'namespaceLimit',
      expect.stringContaining('You already own the maximum number of namespaces.'),
    ])
    // Deleting one makes room; the administrator of the server is not bound by it.
    await place.stranger.namespaces.remove({ params: { tenant: sample.otherTenant } })
    await found(await signedIn(place))
    await place.rooms.namespaces.create(sample.stranger.id, 'given-by-admin')
    expect(await owned(place, sample.stranger)).toBe(limit + 1)
  })

  test('is given no more by others, and cannot pass theirs on to an account without a limit', async () => {
    await using place = await start()
    await fill(place)
    const give = (by: Client, tenant: string, uid: string) =>
      by.namespaces.handOver({ params: { tenant, uid }, body: { password } })
    await place.rooms.namespaces.join(sample.tenant, sample.stranger.id, 'observer')
    const refusal = await refused(give(place.owner, sample.tenant, sample.stranger.id))
    expect([refusal.status, refusal.message]).toEqual([403, 'stan may not own more namespaces.'])

    // The owner has one, and gets two from the stranger without being asked, but not a third.
    const given: number[] = []
    for (const { tenant_id } of await place.rooms.stores.namespaces.ownedBy(sample.stranger.id, 1_000)) {
      await place.rooms.namespaces.join(tenant_id, sample.owner.id, 'observer')
      const giver = await signedIn(place, tenant_id)
      given.push(await statusOf(give(giver, tenant_id, sample.owner.id)))
    }
    expect(given).toEqual([200, 200, 403])
    // What the owner does is not bound.
    await found(place.owner)
    expect(await owned(place, sample.owner)).toBe(limit + 1)
  })

  test('may own what their own account allows, or any number with 0', async () => {
    await using place = await start()
    await fill(place)
    await place.rooms.stores.users.save(sample.stranger.id, { max_namespaces: limit + 1 })
    await found(place.stranger)
    expect((await refused(found(place.stranger))).kind).toBe('namespaceLimit')
    await using unlimited = await start(0)
    await fill(unlimited)
    expect((await found(unlimited.stranger)).status).toBe(200)
  })
})

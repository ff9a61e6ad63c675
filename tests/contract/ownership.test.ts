// Leaving a namespace and handing it over: what ends with it, who is refused, and that there is exactly one owner
// whatever happens at once, which is tried on both databases because they lock rows in different ways.
import { describe, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { iso } from '../../server/src/kit/clock.ts'
import { newUserId } from '../../server/src/kit/ids.ts'
import { bothDatabases, startPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'
import { refused, statusesOf, statusOf } from './people.ts'

const params = { tenant: sample.tenant }
const { password } = sample.owner
const to = (uid: string) => ({ params: { ...params, uid } })

const membersOf = async (place: Place) =>
  (await place.rooms.stores.namespaces.members(sample.tenant)).map(
    ({ username, role }) => `${username} ${role}`,
  )
const ownersOf = async (place: Place) => {
  const [members, namespace] = await Promise.all([
    place.rooms.stores.namespaces.members(sample.tenant),
    place.rooms.stores.namespaces.find(sample.tenant),
  ])
  expect(members.filter(({ role }) => role === 'owner').map(({ id }) => id)).toEqual([namespace?.owner])
  return namespace?.owner
}
const entriesOf = async (place: Place, action: string) =>
  (await place.owner.audit.list()).body.entries.filter((entry) => entry.action === action)

describe.each(oneDatabase)('on %s', (_, options) => {
  test('a member leaves: the token, the API keys and the public keys go, and the log says so', async () => {
    await using place = await startPlace(await options())
    const here = place.rooms.stores.of(sample.tenant)
    await place.administrator.publicKeys.create({
      body: {
        data: sample.publicKeyLine,
        name: 'own',
        username: '.*',
        filter: { hostname: '.*' },
        owner: 'adam',
      },
    })
    expect((await place.key.namespaces.get({ params })).status).toBe(200)
    await place.administrator.namespaces.leave({ params })
    expect(await membersOf(place)).not.toContain('adam administrator')
    expect(await statusOf(place.administrator.devices.list())).toBe(401)
    expect(await statusOf(place.key.namespaces.get({ params }))).toBe(401)
    expect((await here.apiKeys.list({ page: 1, per_page: 10 }, 'name', 'asc')).total).toBe(0)
    const keys = (await place.owner.publicKeys.list({ query: { per_page: 100 } })).body
    expect(keys.map(({ name }) => name)).not.toContain('own')
    const [entry] = await entriesOf(place, 'member.left')
    expect(entry).toMatchObject({ actor: { name: 'adam' }, target: { name: 'adam' } })
    expect(await entriesOf(place, 'member.removed')).toEqual([])
    expect(await statusOf(place.administrator.namespaces.leave({ params }))).toBe(401)
  })

  test('somebody who signed in elsewhere leaves by the id; a stranger and a second time find nothing', async () => {
    await using place = await startPlace(await options())
    const { namespaces } = place.rooms
    await namespaces.join(sample.tenant, sample.stranger.id, 'operator')
    expect(await statusOf(place.stranger.namespaces.leave({ params }))).toBe(200)
    expect(await statusOf(place.stranger.namespaces.leave({ params }))).toBe(404)
    expect((await refused(place.key.namespaces.leave({ params }))).kind).toBe('apiKeyRefused')
  })

  test('the owner cannot leave, and reads what to do instead', async () => {
    await using place = await startPlace(await options())
    const refusal = await refused(place.owner.namespaces.leave({ params }))
    expect([refusal.status, refusal.message]).toEqual([
      403,
      expect.stringContaining('Hand the namespace over'),
    ])
    expect(await ownersOf(place)).toBe(sample.owner.id)
  })

  test('the owner hands over with the password; both go on with what they are now', async () => {
    await using place = await startPlace(await options())
    const hand = (uid: string, body: object) => place.owner.namespaces.handOver({ ...to(uid), body })
    expect((await refused(hand(sample.operator.id, {}))).message).toContain('password')
    expect((await refused(hand(sample.operator.id, { password: 'wrong-rope' }))).kind).toBe(
      'wrongCredentials',
    )
    expect((await refused(hand(sample.operator.id, { code: '123456' }))).message).toContain('password')
    expect(await statusOf(hand(sample.stranger.id, { password }))).toBe(404)
    expect(await statusOf(hand(newUserId(), { password }))).toBe(404)
    expect(await statusOf(hand(sample.owner.id, { password }))).toBe(409)
    expect(await ownersOf(place)).toBe(sample.owner.id)
    for (const [name, client] of [
      ['administrator', place.administrator],
      ['a key', place.key],
    ] as const)
      expect(
        await statusOf(client.namespaces.handOver({ ...to(sample.operator.id), body: { password } })),
        name,
      ).toBe(403)

    await hand(sample.operator.id, { password })
    expect(await ownersOf(place)).toBe(sample.operator.id)
    expect(await membersOf(place)).toContain('olga administrator')
    // Both have tokens of a role that is over: a new one is asked for with the old.
    const old = (await place.owner.users.refresh()).body
    expect(old.role).toBe('administrator')
    expect((await place.operator.users.refresh()).body.role).toBe('owner')
    const former = place.api({ token: old.token })
    expect(await statusOf(former.namespaces.remove({ params }))).toBe(403)
    expect(await statusOf(former.namespaces.removeMember(to(sample.operator.id)))).toBe(403)
    const [entry] = (await former.audit.list()).body.entries.filter(
      ({ action }) => action === 'namespace.handed-over',
    )
    expect(entry).toMatchObject({
      actor: { name: 'olga' },
      detail: { before: { owner: 'olga' }, after: { owner: 'oskar' } },
    })
    await former.namespaces.leave({ params })
    expect(await ownersOf(place)).toBe(sample.operator.id)
  })

  test('with a second factor a code is needed, the password is not enough, and a code works once', async () => {
    await using place = await startPlace(await options())
    const { stores, namespaces } = place.rooms
    const careful = (await stores.users.find(sample.careful.id))!
    await stores.users.save(sample.owner.id, { mfa_secret: careful.mfa_secret })
    await namespaces.create(sample.owner.id, 'second', '00000000-0000-4000-8000-00000000000a')
    await namespaces.join('00000000-0000-4000-8000-00000000000a', sample.operator.id, 'observer')
    const hand = (tenant: string, body: object) =>
      place.owner.namespaces.handOver({ params: { tenant, uid: sample.operator.id }, body })
    expect((await refused(hand(sample.tenant, { password }))).message).toContain('second factor')
    expect((await refused(hand(sample.tenant, { code: '000000', password }))).kind).toBe('wrongCode')
    const code = place.world.totp(sample.mfaSecret)
    expect(await statusOf(hand('00000000-0000-4000-8000-00000000000a', { code }))).toBe(200)
    expect((await refused(hand(sample.tenant, { code }))).kind).toBe('wrongCode')
    expect(await ownersOf(place)).toBe(sample.owner.id)
  })

  test('five wrong passwords lock it, also for the right one', async () => {
    await using place = await startPlace(await options())
    const hand = (given: string) =>
      place.owner.namespaces.handOver({ ...to(sample.operator.id), body: { password: given } })
    for (let i = 0; i < 5; i += 1) expect((await refused(hand(`guess-${i}`))).kind).toBe('wrongCredentials')
    expect((await refused(hand(password))).kind).toBe('locked')
    expect(await ownersOf(place)).toBe(sample.owner.id)
  })

  test('whoever may own no more namespaces does not get one', async () => {
    await using place = await startPlace(await options())
    const { stores, namespaces } = place.rooms
    await stores.users.save(sample.stranger.id, { max_namespaces: 1 })
    await namespaces.join(sample.tenant, sample.stranger.id, 'observer')
    const refusal = await refused(
      place.owner.namespaces.handOver({ ...to(sample.stranger.id), body: { password } }),
    )
    expect([refusal.kind, refusal.message]).toEqual(['namespaceLimit', 'stan may not own more namespaces.'])
  })
})

describe.each(bothDatabases)('at the same time, on %s', (_, options) => {
  test('of two who change a role at once the second is told 409, and the log has each change from what was there', async () => {
    await using place = await startPlace(await options())
    const { namespaces } = place.rooms.stores
    const change = (by: Place['owner'], role: 'administrator' | 'observer') =>
      by.namespaces.updateMember({ ...to(sample.operator.id), body: { role } })
    // The owner is quicker, between the look of the administrator at the role and the change of it.
    const member = namespaces.member.bind(namespaces)
    const looked = vi.spyOn(namespaces, 'member').mockImplementation(async (tenant, uid) => {
      const seen = await member(tenant, uid)
      if (uid !== sample.operator.id) return seen
      looked.mockRestore()
      await change(place.owner, 'administrator')
      return seen
    })
    const refusal = await refused(change(place.administrator, 'observer'))
    expect([refusal.status, refusal.message]).toEqual([409, expect.stringContaining('a moment ago')])
    expect(await membersOf(place)).toContain('oskar administrator')
    await change(place.administrator, 'observer')
    const changes = (await entriesOf(place, 'member.updated')).map(({ detail }) => detail)
    expect(changes.toReversed()).toMatchObject([
      { before: { role: 'operator' }, after: { role: 'administrator' } },
      { before: { role: 'administrator' }, after: { role: 'observer' } },
    ])
  })

  test('handing over to several at once, with members leaving and being removed, leaves one owner', async () => {
    await using place = await startPlace(await options())
    const { stores, namespaces } = place.rooms
    const row = (await stores.users.find(sample.owner.id))!
    for (let round = 0; round < 5; round += 1) {
      const made = await Promise.all(
        [0, 1, 2, 3].map(async (number) => {
          const user = {
            ...row,
            id: newUserId(),
            username: `mate-${round}-${number}`,
            email: `mate-${round}-${number}@example.com`,
            created_at: iso(place.clock.now()),
            preferred_tenant: null,
          }
          await stores.users.insert(user)
          await namespaces.join(sample.tenant, user.id, 'administrator')
          const { body } = await place.api().users.login({ body: { username: user.username, password } })
          return { ...user, client: place.api({ token: body.token }) }
        }),
      )
      const owner = await ownersOf(place)
      const by = made.find(({ id }) => id === owner)?.client ?? place.owner
      const statuses = await statusesOf([
        ...made.map(({ id }) => by.namespaces.handOver({ ...to(id), body: { password } })),
        ...made.map(({ client }) => client.namespaces.leave({ params })),
        ...made.map(({ id }) => place.administrator.namespaces.removeMember(to(id))),
        ...made.map(({ id }) =>
          place.administrator.namespaces.updateMember({ ...to(id), body: { role: 'observer' } }),
        ),
      ])
      expect(statuses.filter((status) => status >= 500)).toEqual([])
      const now = (await ownersOf(place))!
      // Back to whom the next round can sign in as.
      if (now !== sample.owner.id) {
        await stores.transaction((inside) =>
          inside.namespaces.handOver(
            sample.tenant,
            { id: now, epoch: `round-${round}` },
            { id: sample.owner.id, epoch: `round-${round}` },
          ),
        )
        const { body } = await place
          .api()
          .users.login({ body: { username: sample.owner.username, password } })
        Object.assign(place, { owner: place.api({ token: body.token }) })
      }
    }
  })
})

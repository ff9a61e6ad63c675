// Members of a namespace: who may be added, changed and removed by whom, and that what ends, ends at once.
// The table of who manages whom is spelt out, because it is what an attacker tries first.
import { describe, expect, test } from 'vitest'
import { mayManage, roles, type Role } from '@hawser/contract/access'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { newUserId } from '../../server/src/kit/ids.ts'
import { iso } from '../../server/src/kit/clock.ts'
import { sharedPlace, startPlace, type Place } from '../harness/place.ts'

const refused = (status: number) => ({ status })
const params = { tenant: sample.tenant }

let people = 0
/** A new user with the password of everyone else. */
async function person(place: Place) {
  const number = ++people
  const row = (await place.rooms.stores.users.find(sample.owner.id))!
  const user = {
    ...row,
    id: newUserId(),
    username: `sailor-${number}`,
    email: `sailor-${number}@example.com`,
    created_at: iso(place.clock.now()),
    preferred_tenant: null,
  }
  await place.rooms.stores.users.insert(user)
  return user
}

/** A new member, and a client with a token for this namespace. */
async function member(place: Place, role: Exclude<Role, 'owner'>) {
  const { id, username } = await person(place)
  await place.rooms.namespaces.join(sample.tenant, id, role)
  const { body } = await place.api().users.login({ body: { username, password: sample.owner.password } })
  return { id, username, client: place.api({ token: body.token }) }
}

const roleOf = async (place: Place, id: string): Promise<Role | undefined> =>
  (await place.owner.namespaces.get({ params })).body.members.find((each) => each.id === id)?.role

describe('adding', () => {
  const place = sharedPlace()
  const add = (body: object, client: Client = place.administrator) =>
    client.namespaces.addMember({ params, body: body as { role: Role } })

  test.each(['identifier', 'username', 'email'])(
    'a user is named by %s, whatever its letters',
    async (field) => {
      for (const spelt of ['username', 'email'] as const) {
        const user = await person(place)
        const { body } = await add({ [field]: user[spelt].toUpperCase(), role: 'operator' })
        expect(body.tenant_id).toBe(sample.tenant)
        expect(body.members).toContainEqual({ id: user.id, username: user.username, role: 'operator' })
        expect(await roleOf(place, user.id)).toBe('operator')
      }
    },
  )

  test('someone who is a member already is 409, also with another role, and nobody is 404', async () => {
    await expect(add({ identifier: sample.observer.username, role: 'observer' })).rejects.toMatchObject(
      refused(409),
    )
    await expect(add({ identifier: sample.owner.email, role: 'observer' })).rejects.toMatchObject(
      refused(409),
    )
    expect(await roleOf(place, sample.observer.id)).toBe('observer')
    await expect(add({ identifier: 'nobody-at-all', role: 'observer' })).rejects.toMatchObject(refused(404))
    const user = await person(place)
    const parallel = await Promise.allSettled(
      Array.from({ length: 4 }, () => add({ identifier: user.username, role: 'observer' })),
    )
    expect(parallel.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  test.each([
    { role: 'observer' },
    { identifier: 'ab', role: 'observer' },
    { identifier: 'sailor' },
    { identifier: 'sailor', role: 'captain' },
    { identifier: 7, role: 'observer' },
  ])('%j is refused with 400', async (body) => {
    await expect(add(body)).rejects.toMatchObject(refused(400))
  })

  test('a new member gets a token for the namespace, and it works', async () => {
    const user = await person(place)
    const { body: before } = await place
      .api()
      .users.login({ body: { username: user.username, password: sample.owner.password } })
    await expect(place.api({ token: before.token }).users.namespaceToken({ params })).rejects.toMatchObject(
      refused(404),
    )
    await add({ identifier: user.username, role: 'observer' })
    const { body: after } = await place.api({ token: before.token }).users.namespaceToken({ params })
    expect([after.tenant, after.role]).toEqual([sample.tenant, 'observer'])
    expect((await place.api({ token: after.token }).devices.list()).status).toBe(200)
  })
})

describe('who manages whom', () => {
  const place = sharedPlace()
  const others = ['observer', 'operator', 'administrator'] as const

  test('is the same as the rule says: equals manage equals, nobody manages an owner', () => {
    const managed = Object.fromEntries(
      roles.map((actor) => [actor, roles.filter((role) => mayManage(actor, role))]),
    )
    expect(managed).toEqual({
      observer: ['observer'],
      operator: ['observer', 'operator'],
      administrator: ['observer', 'operator', 'administrator'],
      owner: ['observer', 'operator', 'administrator'],
    })
  })

  test.each(['administrator', 'owner'] as const)(
    '%s: every role but owner can be granted, and taken away',
    async (actor) => {
      const actingAs = actor === 'owner' ? place.owner : place.administrator
      for (const from of others)
        for (const to of others) {
          const user = await person(place)
          await actingAs.namespaces.addMember({ params, body: { identifier: user.username, role: from } })
          const of = { ...params, uid: user.id }
          expect(
            (await actingAs.namespaces.updateMember({ params: of, body: { role: to } })).body,
          ).toBeUndefined()
          expect(await roleOf(place, user.id)).toBe(to)
          const { body } = await actingAs.namespaces.removeMember({ params: of })
          expect(body.members.map(({ id }) => id)).not.toContain(user.id)
        }
    },
  )

  test.each(['administrator', 'owner'] as const)('%s: nobody is made an owner, by any way', async (actor) => {
    const user = await person(place)
    const call = { params: { ...params, uid: sample.observer.id }, body: { role: 'owner' as const } }
    await expect(
      place[actor].namespaces.addMember({ params, body: { identifier: user.username, role: 'owner' } }),
    ).rejects.toMatchObject(refused(403))
    await expect(place[actor].namespaces.updateMember(call)).rejects.toMatchObject(refused(403))
    expect(await roleOf(place, sample.observer.id)).toBe('observer')
    expect(await roleOf(place, user.id)).toBeUndefined()
  })

  test.each(['administrator', 'owner'] as const)(
    '%s: the owner is neither demoted nor removed',
    async (actor) => {
      const of = { ...params, uid: sample.owner.id }
      for (const role of roles) {
        const call = place[actor].namespaces.updateMember({ params: of, body: { role } })
        await expect(call).rejects.toMatchObject(refused(403))
      }
      await expect(place[actor].namespaces.removeMember({ params: of })).rejects.toMatchObject(refused(403))
      expect(await roleOf(place, sample.owner.id)).toBe('owner')
    },
  )

  test.each(['operator', 'observer'] as const)('%s: manages nobody', async (actor) => {
    const user = await person(place)
    await expect(
      place[actor].namespaces.addMember({ params, body: { identifier: user.username, role: 'observer' } }),
    ).rejects.toMatchObject(refused(403))
    const of = { ...params, uid: sample.observer.id }
    await expect(
      place[actor].namespaces.updateMember({ params: of, body: { role: 'observer' } }),
    ).rejects.toMatchObject(refused(403))
    await expect(place[actor].namespaces.removeMember({ params: of })).rejects.toMatchObject(refused(403))
  })

  test('a key manages as its role does', async () => {
    const user = await person(place)
    await place.key.namespaces.addMember({ params, body: { identifier: user.username, role: 'operator' } })
    await place.key.namespaces.updateMember({
      params: { ...params, uid: user.id },
      body: { role: 'observer' },
    })
    await expect(
      place.key.namespaces.updateMember({
        params: { ...params, uid: sample.owner.id },
        body: { role: 'observer' },
      }),
    ).rejects.toMatchObject(refused(403))
    await place.key.namespaces.removeMember({ params: { ...params, uid: user.id } })
    expect(await roleOf(place, user.id)).toBeUndefined()
  })

  test('the role of the token’s namespace does not count in another one', async () => {
    await place.rooms.namespaces.join(sample.tenant, sample.stranger.id, 'observer')
    const of = { ...params, uid: sample.operator.id }
    const calls = (client: Client, tenant: string) => [
      client.namespaces.addMember({
        params: { tenant },
        body: { identifier: sample.careful.username, role: 'observer' },
      }),
      client.namespaces.updateMember({ params: { ...of, tenant }, body: { role: 'observer' } }),
      client.namespaces.removeMember({ params: { ...of, tenant } }),
    ]
    await Promise.all(
      calls(place.stranger, sample.tenant).map((call) => expect(call).rejects.toMatchObject(refused(403))),
    )
    await Promise.all(
      calls(place.owner, sample.otherTenant).map((call) => expect(call).rejects.toMatchObject(refused(404))),
    )
    await Promise.all(
      calls(place.key, sample.otherTenant).map((call) => expect(call).rejects.toMatchObject(refused(404))),
    )
    expect(await roleOf(place, sample.operator.id)).toBe('operator')
  })

  test('whoever is no member, does not exist or is malformed is 404; an unknown role is 400; no role changes nothing', async () => {
    const user = await person(place)
    for (const uid of [user.id, newUserId(), 'nobody', sample.operator.username]) {
      await expect(
        place.owner.namespaces.updateMember({ params: { ...params, uid }, body: { role: 'observer' } }),
      ).rejects.toMatchObject(refused(404))
      await expect(place.owner.namespaces.removeMember({ params: { ...params, uid } })).rejects.toMatchObject(
        refused(404),
      )
    }
    const of = { ...params, uid: sample.operator.id }
    await expect(
      place.owner.namespaces.updateMember({ params: of, body: { role: 'captain' as Role } }),
    ).rejects.toMatchObject(refused(400))
    await place.owner.namespaces.updateMember({ params: of, body: {} })
    // A user id in the body does not stand in for the one in the path.
    await place.owner.namespaces.updateMember({
      params: of,
      body: { uid: sample.observer.id, tenant: sample.otherTenant, role: 'operator' } as { role: Role },
    })
    expect([await roleOf(place, sample.operator.id), await roleOf(place, sample.observer.id)]).toEqual([
      'operator',
      'observer',
    ])
  })
})

describe('at once', () => {
  const place = sharedPlace()

  test('a removed member’s tokens and keys stop working, there and only there', async () => {
    const { id, username, client } = await member(place, 'administrator')
    const { id: key } = (await client.apiKeys.create({ body: { name: 'of-sailor', expires_at: -1 } })).body
    const own = (await client.namespaces.create({ body: { name: 'sailors-own' } })).body
    const elsewhere = place.api({
      token: (await client.users.namespaceToken({ params: { tenant: own.tenant_id } })).body.token,
    })
    expect((await place.api({ apiKey: key }).devices.list()).status).toBe(200)
    await place.owner.namespaces.removeMember({ params: { ...params, uid: id } })
    await expect(client.devices.list()).rejects.toMatchObject(refused(401))
    await expect(place.api({ apiKey: key }).devices.list()).rejects.toMatchObject(refused(401))
    await expect(elsewhere.namespaces.get({ params })).rejects.toMatchObject(refused(404))
    expect((await elsewhere.devices.list()).status).toBe(200)
    expect(
      (await place.owner.apiKeys.list({ query: { per_page: 100 } })).body.map(({ name }) => name),
    ).not.toContain('of-sailor')
    // Coming back does not wake the old token or the old key.
    await place.owner.namespaces.addMember({ params, body: { identifier: username, role: 'observer' } })
    await expect(client.devices.list()).rejects.toMatchObject(refused(401))
    await expect(place.api({ apiKey: key }).devices.list()).rejects.toMatchObject(refused(401))
  })

  test('a member with a new role needs a new token, and their keys shrink with them', async () => {
    const { id, client } = await member(place, 'administrator')
    const { id: key } = (await client.apiKeys.create({ body: { name: 'shrinking', expires_at: -1 } })).body
    const rename = (caller: Client) =>
      caller.devices.update({ params: { uid: sample.device }, body: { name: 'crane-1' } })
    await rename(place.api({ apiKey: key }))
    await place.owner.namespaces.updateMember({ params: { ...params, uid: id }, body: { role: 'observer' } })
    await expect(client.devices.list()).rejects.toMatchObject(refused(401))
    const { body } = await client.users.refresh()
    expect(body.role).toBe('observer')
    await expect(rename(place.api({ token: body.token }))).rejects.toMatchObject(refused(403))
    await expect(rename(place.api({ apiKey: key }))).rejects.toMatchObject(refused(403))
    expect((await place.api({ apiKey: key }).devices.list()).status).toBe(200)
  })

  test('a role set to itself leaves the token alone', async () => {
    const { id, client } = await member(place, 'operator')
    await place.owner.namespaces.updateMember({ params: { ...params, uid: id }, body: { role: 'operator' } })
    expect((await client.devices.list()).status).toBe(200)
  })

  test('an administrator may leave, and is then out', async () => {
    await using own = await startPlace()
    const { body } = await own.administrator.namespaces.removeMember({
      params: { ...params, uid: sample.administrator.id },
    })
    expect(body.members.map(({ id }) => id)).not.toContain(sample.administrator.id)
    await expect(own.administrator.devices.list()).rejects.toMatchObject(refused(401))
    await expect(own.key.devices.list()).rejects.toMatchObject(refused(401))
  })
})

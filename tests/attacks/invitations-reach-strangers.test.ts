// Somebody registers with another person's address and never confirms it, changes the e-mail of an account to
// it, or takes it as a user name, and waits until an administrator adds that person by e-mail. Add member
// finds confirmed addresses only, and an address never matches a user name; nor does such a name stand in the
// way of the person's own sign-in.
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { runCommand } from '../../server/src/commands/admin.ts'
import { linkIn, refused, statusOf } from '../contract/people.ts'
import { startPlace, type Place } from '../harness/place.ts'

const { tenant, namespace, stranger, observer } = sample
const victim = 'victoria@corp.example'

const add = (place: Place, named: { identifier?: string; username?: string; email?: string }) =>
  statusOf(
    place.owner.namespaces.addMember({ params: { tenant }, body: { ...named, role: 'administrator' } }),
  )

const members = async (place: Place) =>
  (await place.owner.namespaces.get({ params: { tenant } })).body.members.map(({ username }) => username)

/**
 * By each of the three spellings of the interface, and by the administrator's command: none of them finds
 * anybody.
 */
async function reachesNobody(place: Place): Promise<void> {
  const before = await members(place)
  for (const named of [{ identifier: victim }, { username: victim }, { email: victim.toUpperCase() }])
    expect(await add(place, named), JSON.stringify(named)).toBe(404)
  for (const command of [
    { words: 'namespace member add', given: [victim, namespace, 'administrator'] },
    { words: 'namespace create', given: ['cove', victim] },
  ])
    await expect(runCommand(place.rooms, command), command.words).rejects.toMatchObject({ kind: 'notFound' })
  expect(await members(place)).toEqual(before)
}

/** A user name that is another's address is refused; accounts from before may have one. */
async function nameStranger(place: Place, username: string): Promise<void> {
  await expect(place.stranger.users.update({ body: { username } })).rejects.toMatchObject({ status: 400 })
  await place.rooms.stores.users.save(stranger.id, { username })
}

describe('an invitation to an address does not reach', () => {
  test('an account that was registered with it and is not confirmed', async () => {
    await using place = await startPlace()
    await place.nobody.users.register({
      body: { name: 'Eve', username: 'eve', email: victim, password: 'lighthouse' },
    })
    await reachesNobody(place)
    // Whoever reads that mailbox confirms it, and then it counts.
    const { searchParams } = linkIn(await place.newestEmail(victim))
    await place.nobody.users.activate({ query: { email: victim, token: searchParams.get('token') ?? '' } })
    expect(await add(place, { identifier: victim })).toBe(200)
  })

  test('an account that was changed to it and has not confirmed it; the confirmed one still does', async () => {
    await using place = await startPlace()
    await place.stranger.users.update({ body: { email: victim } })
    await reachesNobody(place)
    expect(await add(place, { identifier: stranger.email })).toBe(200)
    expect(await members(place)).toContain(stranger.username)
  })

  test('an account that has it for a user name', async () => {
    await using place = await startPlace()
    await nameStranger(place, victim)
    await reachesNobody(place)
    // People are still found by names that are no addresses, and by their e-mail.
    expect(await add(place, { email: stranger.email })).toBe(200)
  })
})

describe('a user name that looks like an address', () => {
  test('signs in where nobody has that address', async () => {
    await using place = await startPlace()
    await nameStranger(place, victim)
    const { body } = await place.nobody.users.login({
      body: { username: victim, password: stranger.password },
    })
    expect(body.id).toBe(stranger.id)
  })

  test('does not stand before the one whose address it is, however both came about', async () => {
    await using place = await startPlace()
    // Neither way is open by the interface; two requests at the same moment, or an import, might leave this
    // behind.
    expect((await refused(place.stranger.users.update({ body: { username: observer.email } }))).body).toEqual(
      ['username'],
    )
    await place.rooms.stores.users.save(stranger.id, { username: observer.email, password: 'not a hash' })
    const { body } = await place.nobody.users.login({
      body: { username: observer.email, password: observer.password },
    })
    expect(body.id).toBe(observer.id)
    await place.nobody.users.recover({ body: { email: observer.email } })
    expect(linkIn(await place.newestEmail(observer.email)).searchParams.get('id')).toBe(observer.id)
  })
})

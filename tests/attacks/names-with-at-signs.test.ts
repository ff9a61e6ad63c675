// Somebody takes another's e-mail address for a user name, or an address that is another's user name: then one of the
// two could not sign in, or signed in by a name that means the other. A new user name has an @ only if it is the
// account's own address, and an address beats a user name: whoever has confirmed it is meant.
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { runCommand } from '../../server/src/commands/admin.ts'
import { linkIn, refused, statusOf } from '../contract/people.ts'
import { startPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

const address = 'pier@corp.example'
const nora = { name: 'Nora', username: 'nora', email: 'nora@corp.example', password: 'lighthouse' }
const { observer, operator } = sample

const signIn = (place: Place, username: string, password: string) =>
  place.nobody.users.login({ body: { username, password } })
async function activated(place: Place, body: typeof nora): Promise<void> {
  await place.nobody.users.register({ body })
  const link = linkIn(await place.newestEmail(body.email)).searchParams
  await place.nobody.users.activate({
    query: { email: link.get('email') ?? '', token: link.get('token') ?? '' },
  })
}

describe.each(oneDatabase)('on %s', (_, options) => {
  const start = async () => startPlace(await options())

  test('a user name with an @ that is not the account’s own address is refused', async () => {
    await using place = await start()
    for (const username of [address, 'a@b', '@nora', 'NORA@corp.example.org'])
      expect(
        (await refused(place.nobody.users.register({ body: { ...nora, username } }))).body,
        username,
      ).toEqual(['username'])
    for (const body of [{ username: address }, { username: address, email: address }]) {
      const failure = await refused(place.observer.users.update({ body }))
      expect([failure.status, failure.body]).toEqual([400, ['username']])
    }
    // An address that waits to be confirmed is nobody's own.
    await place.observer.users.update({ body: { email: address } })
    expect((await refused(place.observer.users.update({ body: { username: address } }))).body).toEqual([
      'username',
    ])
    await expect(
      runCommand(place.rooms, { words: 'user create', given: [address, nora.password, nora.email] }),
    ).rejects.toThrow()
    expect((await place.observer.users.refresh({})).body.user).toBe(observer.username)
  })

  test('the account’s own address may be its user name', async () => {
    await using place = await start()
    await activated(place, { ...nora, username: 'Nora@corp.example' })
    expect((await signIn(place, nora.email, nora.password)).body.user).toBe(nora.email)
    await place.observer.users.update({ body: { username: observer.email } })
    expect((await signIn(place, observer.email, observer.password)).body.id).toBe(observer.id)
    // A name that is there already stays as it is, also when it is sent again.
    await place.rooms.stores.users.save(operator.id, { username: 'a@b' })
    await place.operator.users.update({ body: { username: 'A@b', name: 'Oskar' } })
    expect((await signIn(place, 'a@b', operator.password)).body.name).toBe('Oskar')
  })

  test('an address that another has as a user name, from before, is its owner’s, and the other has their own', async () => {
    await using place = await start()
    await place.rooms.stores.users.save(operator.id, { username: address })
    expect((await signIn(place, address, operator.password)).body.id).toBe(operator.id)
    await activated(place, { ...nora, email: address })
    expect((await signIn(place, address, nora.password)).body.user).toBe(nora.username)
    expect(await statusOf(signIn(place, address, operator.password))).toBe(401)
    expect((await signIn(place, operator.email, operator.password)).body.id).toBe(operator.id)
    // Commands that would hit one or the other hit neither.
    await expect(runCommand(place.rooms, { words: 'user delete', given: [address] })).rejects.toThrow(
      'two users',
    )
    await runCommand(place.rooms, { words: 'user password', given: [operator.email, 'another-rope'] })
    expect((await signIn(place, address, nora.password)).body.user).toBe(nora.username)
  })

  test('an address that several claim means none of them; their other names go on to work', async () => {
    await using place = await start()
    await place.observer.users.update({ body: { email: address } })
    expect((await signIn(place, address, observer.password)).body.id).toBe(observer.id)
    await place.operator.users.update({ body: { email: address } })
    for (const { password } of [observer, operator])
      expect(await statusOf(signIn(place, address, password))).toBe(401)
    for (const { id, email, username, password } of [observer, operator])
      for (const name of [email, username]) expect((await signIn(place, name, password)).body.id).toBe(id)
  })
})

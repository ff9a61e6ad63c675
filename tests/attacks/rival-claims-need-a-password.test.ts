// A squatter registers with the address of somebody else. Its owner registers as well, has the e-mail sent again,
// and follows the link of the squatter: his account was confirmed, hers was removed, and he was who others meant by
// her address. While several accounts claim an address, a link confirms it only together with the password of the
// account that it is for, and each e-mail names that account.
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { from, linkIn, refused, statusOf } from '../contract/people.ts'
import { startPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

const address = 'victoria@corp.example'
const squatter = { name: 'Victoria', username: 'vic.berg', email: address, password: 'not-your-rope' }
const owner = { name: 'Victoria', username: 'victoria', email: address, password: 'lighthouse' }

/** E-mails to the address, the newest last, with the tokens of their links. */
const mailsTo = async (place: Place, to: string) =>
  (await place.emails())
    .filter((mail) => mail.to?.some((found) => found.address === to))
    .map((mail) => ({ text: mail.text ?? '', token: linkIn(mail).searchParams.get('token') ?? '' }))
const newestFor = async (place: Place, shown: string) => {
  const found = (await mailsTo(place, address)).findLast(({ text }) => text.includes(` user name ${shown} `))
  if (!found) throw new Error(`no e-mail names ${shown}`)
  return found.token
}
const activate = (place: Place, token: string) =>
  place.nobody.users.activate({ query: { email: address, token } })
const signIn = (place: Place, { username, password }: typeof owner) =>
  statusOf(place.nobody.users.login({ body: { username, password } }))

describe.each(oneDatabase)('on %s', (_, options) => {
  test('the link of a squatter confirms nothing for the owner of the address', async () => {
    await using place = await startPlace(await options())
    await place.api(from('203.0.113.9')).users.register({ body: squatter })
    await place.api(from('198.51.100.1')).users.register({ body: owner })
    // The first e-mails are written before the others are asked for, so that the newest have the links that count.
    await place.rooms.background.settled()
    await place.api(from('198.51.100.1')).users.resend({ body: { username: address } })
    const squatted = await newestFor(place, 'vic[.]berg')
    expect((await refused(activate(place, squatted))).kind).toBe('passwordRequired')
    const tried = place.nobody.users.confirmEmail({ body: { token: squatted, password: owner.password } })
    expect((await refused(tried)).kind).toBe('wrongCredentials')
    expect(await signIn(place, squatter)).toBe(403)

    // Her own link and her own password make the address hers, and the claim of the squatter ends.
    const hers = await newestFor(place, owner.username)
    expect((await refused(activate(place, hers))).kind).toBe('passwordRequired')
    expect(
      await statusOf(place.nobody.users.confirmEmail({ body: { token: hers, password: owner.password } })),
    ).toBe(200)
    expect(await signIn(place, { ...owner, username: address })).toBe(200)
    expect(await signIn(place, squatter)).toBe(401)
  })

  test('nor does the link of an account that was changed to the address', async () => {
    await using place = await startPlace(await options())
    await place.stranger.users.update({ body: { email: address } })
    await place.api(from('198.51.100.1')).users.register({ body: owner })
    const theirs = await newestFor(place, sample.stranger.username)
    expect((await refused(place.nobody.users.confirmEmail({ body: { token: theirs } }))).kind).toBe(
      'passwordRequired',
    )
    const hers = await newestFor(place, owner.username)
    const { password } = owner
    expect(await statusOf(place.nobody.users.confirmEmail({ body: { token: hers, password } }))).toBe(200)
    expect((await place.stranger.users.refresh({})).body.email).toBe(sample.stranger.email)
  })
})

test('the only account that claims an address needs the link alone', async () => {
  await using place = await startPlace()
  await place.nobody.users.register({ body: owner })
  expect(await statusOf(activate(place, await newestFor(place, owner.username)))).toBe(200)
})

test('a link does not let anybody guess the password of its account', async () => {
  await using place = await startPlace()
  for (const body of [squatter, owner]) await place.nobody.users.register({ body })
  const token = await newestFor(place, owner.username)
  const guess = async (password: string) =>
    (await refused(place.nobody.users.confirmEmail({ body: { token, password } }))).kind
  for (let i = 0; i < 5; i += 1) expect(await guess(`wrong-${i}`)).toBe('wrongCredentials')
  expect(await guess(owner.password)).toBe('locked')
})

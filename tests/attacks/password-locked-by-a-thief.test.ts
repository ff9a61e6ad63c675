// Somebody has a token of a person, and guesses the password with it for ever, so that the person can neither change
// the password nor hand a namespace over. Wrong codes kept a second factor on in the same way. Each sign-in has tries of its own; all together have few enough that many
// stolen tokens do not guess the password.
import { expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { startPlace, type Place } from '../harness/place.ts'
import { refused, statusOf } from '../contract/people.ts'

const { id, username, password } = sample.owner
const minute_ms = 60_000
const signIn = async ({ api, nobody }: Place): Promise<Client> =>
  api((await nobody.users.login({ body: { username, password } })).body)
const change = (client: Client, current_password: string) =>
  client.users.updatePassword({ params: { id }, body: { current_password, new_password: 'another-rope' } })
const hand = (client: Client, given: string) =>
  client.namespaces.handOver({
    params: { tenant: sample.tenant, uid: sample.operator.id },
    body: { password: given },
  })

test.each([
  ['change the password', change],
  ['hand a namespace over', hand],
])('wrong passwords of a stolen token do not keep its person from what it takes to %s', async (_, prove) => {
  await using place = await startPlace()
  const own = await signIn(place)
  // An hour long, as often as it is not locked.
  for (let round = 0; round < 4; round += 1) {
    for (let n = 0; n < 5; n += 1)
      expect((await refused(prove(place.owner, 'wrong'))).kind).not.toBe('locked')
    expect((await refused(prove(place.owner, password))).kind).toBe('locked')
    if (round < 3) place.clock.forward(15 * minute_ms)
  }
  expect(await statusOf(prove(own, password))).toBe(200)
})

test('wrong codes of a stolen token do not keep its person from switching the second factor off', async () => {
  await using place = await startPlace()
  const { careful, recoveryCode: recovery_code, mfaSecret } = sample
  const thief = place.api({ token: await place.world.token('careful') })
  const identifier = careful.username
  const own = place.api((await place.nobody.mfa.recover({ body: { identifier, recovery_code } })).body)
  const off = (client: Client, code: string) => statusOf(client.mfa.disable({ body: { code } }))
  for (let n = 0; n < 5; n += 1) expect(await off(thief, 'wrong!')).toBe(401)
  expect(await off(thief, place.world.totp(mfaSecret))).toBe(429)
  expect(await off(own, place.world.totp(mfaSecret))).toBe(200)
})

test('many stolen tokens guess no more than fifty passwords in an hour', async () => {
  await using place = await startPlace()
  const thieves = []
  for (let n = 0; n < 12; n += 1) thieves.push(await signIn(place))
  const kinds = []
  for (const thief of thieves)
    for (let n = 0; n < 5; n += 1) kinds.push((await refused(change(thief, 'wrong'))).kind)
  expect(kinds.filter((kind) => kind !== 'locked')).toHaveLength(50)
  // The link by e-mail is not locked, and an hour later nothing is.
  expect((await refused(change(place.owner, password))).kind).toBe('locked')
  await place.nobody.users.recover({ body: { username } })
  await place.newestEmail(sample.owner.email)
  place.clock.forward(60 * minute_ms)
  expect(await statusOf(change(place.owner, password))).toBe(200)
})

// Without a mail server, whoever invites gets the token of the invitation. Opening it told whether anybody has an
// account with the address, for any address that was invited. Only a link that came by e-mail, whose holder reads the
// mailbox, tells that.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { linkIn } from '../contract/people.ts'
import { startPlace, type Place } from '../harness/place.ts'

const unknown = 'nobody.knows@corp.example'
const invite = async (place: Place, email: string) =>
  (await place.administrator.invitations.create({ body: { email, role: 'observer' } })).body.token
const opened = async (place: Place, token: string) =>
  (await place.nobody.invitations.open({ body: { token } })).body

test('an invitation that was not sent by e-mail looks the same whether or not there is an account', async () => {
  await using place = await startPlace()
  const of = async (email: string) => {
    const { email: _, expires_at: __, ...rest } = await opened(place, (await invite(place, email)) ?? '')
    return rest
  }
  const known = await of(sample.stranger.email)
  expect(known).toEqual(await of(unknown))
  expect(known).not.toHaveProperty('account')
})

test('a link that came by e-mail tells its holder', async () => {
  await using place = await startPlace({ mailServer: true })
  for (const [email, account] of [
    [sample.stranger.email, true],
    [unknown, false],
  ] as const) {
    await invite(place, email)
    const link = linkIn(await place.newestEmail(email))
    expect((await opened(place, link.hash.slice(1))).account).toBe(account)
  }
})

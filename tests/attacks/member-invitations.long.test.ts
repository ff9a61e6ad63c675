// Somebody tries to get into a namespace by an invitation that is not for them: with a stolen link and another account,
// with an account that has the address but never confirmed it, with a role above the inviter's, with a link of an
// inviter who may invite nobody any more, again after it was used, and by guessing. And somebody uses invitations to
// flood a mailbox, to make a confirmed account for an address that is not theirs, or to learn a token from the server.
import { describe, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { ApiError, type Client } from '@hawser/contract/client'
import { runCommand } from '../../server/src/commands/admin.ts'
import { day_ms, hour_ms } from '../../server/src/kit/clock.ts'
import { linkIn, refused, statusOf } from '../contract/people.ts'
import { bothDatabases, startPlace, type Place } from '../harness/place.ts'
import type { ServiceOptions } from '../harness/service.ts'

const { tenant, stranger, observer } = sample
const victim = 'victoria@corp.example'
const account = { name: 'Vic', username: 'vic', password: 'lighthouse' }

async function linkTo(
  place: Place,
  email: string,
  by: Client = place.administrator,
  after = 0,
): Promise<string> {
  await by.invitations.create({ body: { email, role: 'administrator' } })
  return linkIn(await place.newestEmail(email, after)).hash.slice(1)
}
const members = async (place: Place) =>
  (await place.rooms.stores.namespaces.members(tenant)).map(({ username, role }) => `${username} ${role}`)
const setPassword = (place: Place, password: string) =>
  runCommand(place.rooms, { words: 'user password', given: ['adam', password] })
const accept = (client: Client, token: string) => client.invitations.accept({ body: { token } })

const startOn = async (options: () => Promise<ServiceOptions>) =>
  startPlace({ ...(await options()), mailServer: true })

describe.each(bothDatabases)('on %s', (_, options) => {
  test('a stolen link is worth nothing in another account, and is not used up by the attempt', async () => {
    await using place = await startOn(options)
    const token = await linkTo(place, victim)
    const before = await members(place)
    const refusal = await refused(accept(place.stranger, token))
    expect([refusal.kind, refusal.message]).toEqual([
      'forbidden',
      'This invitation is for another e-mail address than that of your account.',
    ])
    expect(await statusOf(place.key.invitations.accept({ body: { token } }))).toBe(403)
    expect(await statusOf(place.nobody.invitations.accept({ body: { token } }))).toBe(401)
    // Whoever changes the address of an account to it has not confirmed it.
    await place.stranger.users.update({ body: { email: victim } })
    expect((await refused(accept(place.stranger, token))).kind).toBe('forbidden')
    expect(await members(place)).toEqual(before)
    expect((await place.nobody.invitations.open({ body: { token } })).status).toBe(200)
  })

  test('an account that was registered with the address and never confirmed cannot accept', async () => {
    await using place = await startOn(options)
    const token = await linkTo(place, sample.unconfirmed.email)
    const { rooms } = place
    const user = (await rooms.stores.users.find(sample.unconfirmed.id))!
    // Not even with a sign-in, which it could not have.
    await rooms.stores.users.save(user.id, { confirmed: 1 })
    const signed = await place.nobody.users.login({ body: { ...account, ...sample.unconfirmed } })
    await rooms.stores.users.save(user.id, { confirmed: 0 })
    expect((await refused(accept(place.api({ token: signed.body.token }), token))).kind).toBe('forbidden')
  })

  test('nobody grants what they may not: no owner, nothing above oneself, nothing without the right', async () => {
    await using place = await startOn(options)
    const invite = (client: Client, role: string) =>
      statusOf(client.invitations.create({ body: { email: victim, role: role as 'observer' } }))
    for (const client of [place.owner, place.administrator]) expect(await invite(client, 'owner')).toBe(400)
    for (const client of [place.operator, place.observer, place.key])
      expect(await invite(client, 'observer')).toBe(403)
    const { id } = (
      await place.administrator.invitations.create({ body: { email: victim, role: 'observer' } })
    ).body
    for (const client of [place.operator, place.observer, place.key]) {
      expect(await statusOf(client.invitations.list())).toBe(403)
      expect(await statusOf(client.invitations.resend({ params: { id } }))).toBe(403)
      expect(await statusOf(client.invitations.remove({ params: { id } }))).toBe(403)
    }
    // The owner of another namespace finds nothing of it.
    expect((await place.stranger.invitations.list()).body.map(({ email }) => email)).not.toContain(victim)
    expect(await statusOf(place.stranger.invitations.resend({ params: { id } }))).toBe(404)
    expect(await statusOf(place.stranger.invitations.remove({ params: { id } }))).toBe(404)
  })

  test.each(['is made an operator', 'is removed', 'leaves', 'is deleted'])(
    'an invitation ends when whoever made it %s',
    async (what) => {
      await using place = await startOn(options)
      const { rooms } = place
      const token = await linkTo(place, stranger.email)
      const params = { tenant, uid: sample.administrator.id }
      if (what === 'is made an operator')
        await place.owner.namespaces.updateMember({ params, body: { role: 'operator' } })
      if (what === 'is removed') await place.owner.namespaces.removeMember({ params })
      if (what === 'leaves') await place.administrator.namespaces.leave({ params: { tenant } })
      if (what === 'is deleted') await rooms.stores.users.remove(sample.administrator.id)
      expect((await refused(place.nobody.invitations.open({ body: { token } }))).kind).toBe('wrongToken')
      expect((await refused(accept(place.stranger, token))).kind).toBe('wrongToken')
      expect((await place.owner.invitations.list()).body.map(({ email }) => email)).not.toContain(
        stranger.email,
      )
    },
  )

  test('a thief who was thrown out does not come back with an invitation that they made', async () => {
    await using place = await startOn(options)
    // With the token of the administrator.
    const token = await linkTo(place, stranger.email)
    await place.administrator.users.update({ body: { email: 'thief@evil.example' } })
    const letter = await place.newestEmail(sample.administrator.email)
    const undo = linkIn(letter).searchParams.get('token') ?? ''
    expect(await statusOf(place.nobody.users.undoChange({ body: { token: undo } }))).toBe(200)
    const before = await members(place)
    expect((await refused(accept(place.stranger, token))).kind).toBe('wrongToken')
    expect(await members(place)).toEqual(before)
  })

  test.each(['changed', 'recovered', 'set by the administrator of the server'])(
    'the same, when the password is %s: the invitations wait to be sent again, and the log says so',
    async (how) => {
      await using place = await startOn(options)
      const token = await linkTo(place, stranger.email)
      const other = await linkTo(place, victim, place.owner)
      const password = 'rope-and-chain'
      if (how === 'changed')
        await place.administrator.users.update({
          body: { password, current_password: sample.administrator.password },
        })
      if (how === 'recovered') {
        await place.nobody.users.recover({ body: { username: sample.administrator.username } })
        const link = linkIn(await place.newestEmail(sample.administrator.email))
        await place.nobody.users.resetPassword({
          params: { uid: sample.administrator.id },
          body: { password, token: link.searchParams.get('token')! },
        })
      }
      if (how.startsWith('set')) await setPassword(place, password)
      expect((await refused(place.nobody.invitations.open({ body: { token } }))).kind).toBe('wrongToken')
      expect((await refused(accept(place.stranger, token))).kind).toBe('wrongToken')
      // Those of others stay as they are.
      expect((await place.nobody.invitations.open({ body: { token: other } })).status).toBe(200)
      const listed = (await place.owner.invitations.list()).body.find(
        ({ email }) => email === stranger.email,
      )!
      expect(Date.parse(listed.expires_at)).toBeLessThanOrEqual(place.clock.now())
      const ended = (await place.owner.audit.list()).body.entries.filter(
        ({ action, target }) => action === 'invitation.ended' && target.name === stranger.email,
      )
      expect(ended).toMatchObject([{ detail: { role: 'administrator', invited_by: 'adam' } }])
      // Another invitation does not clear it away, and it can be sent again.
      await linkTo(place, 'somebody@corp.example', place.owner)
      await place.owner.invitations.resend({ params: { id: listed.id } })
      const fresh = linkIn(await place.newestEmail(stranger.email, 1)).hash.slice(1)
      expect(await statusOf(accept(place.stranger, fresh))).toBe(200)
    },
  )

  test('a used link does not work again, also for whoever was removed since', async () => {
    await using place = await startOn(options)
    const token = await linkTo(place, stranger.email)
    await accept(place.stranger, token)
    await place.owner.namespaces.removeMember({ params: { tenant, uid: stranger.id } })
    expect((await refused(accept(place.stranger, token))).kind).toBe('wrongToken')
    expect((await refused(place.nobody.invitations.signUp({ body: { ...account, token } }))).kind).toBe(
      'wrongToken',
    )
    expect(await members(place)).not.toContain('stan administrator')
  })
})

describe.each(bothDatabases)('at the same time, on %s', (_, options) => {
  test('an invitation that is made while the password changes does not outlive it', async () => {
    await using place = await startOn(options)
    const { attempts, of } = place.rooms.stores
    // Past the gate, with the token of the administrator.
    const count = attempts.count.bind(attempts)
    const counted = vi.spyOn(attempts, 'count').mockImplementation(async (...what) => {
      counted.mockRestore()
      await setPassword(place, 'rope-and-chain')
      return count(...what)
    })
    const body = { email: stranger.email, role: 'administrator' } as const
    expect((await refused(place.administrator.invitations.create({ body }))).kind).toBe('unauthenticated')
    const { items } = await of(tenant).memberInvitations.list({ page: 1, per_page: 100 })
    expect(items.map(({ email }) => email)).not.toContain(stranger.email)
  })
})

/** Invites the address, again and again, until it is refused; gives how often it worked, and the refusal. */
async function insist(by: Client, email: string): Promise<{ sent: number; message: string }> {
  let sent = 0
  try {
    const { id } = (await by.invitations.create({ body: { email, role: 'observer' } })).body
    for (sent = 1; sent < 20; sent += 1) await by.invitations.resend({ params: { id } })
  } catch (error) {
    if (error instanceof ApiError) return { sent, message: error.message }
    throw error
  }
  throw new Error('nobody was refused')
}

test('a namespace, a person and all together send one mailbox so many in a day, and none of them for the others', async () => {
  await using place = await startPlace({ mailServer: true })
  const { rooms } = place
  // Three of one namespace, whoever of it sends them; withdrawing does not help.
  expect(await insist(place.administrator, victim)).toEqual({
    sent: 3,
    message: expect.stringContaining('Your namespace has invited this address several times today') as string,
  })
  const { id } = (await place.owner.invitations.list()).body.find(({ email }) => email === victim)!
  expect((await refused(place.owner.invitations.resend({ params: { id } }))).kind).toBe('tooMany')
  await place.owner.invitations.remove({ params: { id } })
  expect(await insist(place.owner, victim)).toMatchObject({ sent: 0 })

  // Others invite the same address, in their own namespaces: five of one person in two of them.
  const inviter = async (name: string, namespaces: number) => {
    const email = `${name}@evil.example`
    const user = await rooms.users.create({ ...account, username: name, email }, true)
    const clients: Client[] = []
    for (let n = 0; n < namespaces; n += 1) {
      const { tenant_id } = await rooms.namespaces.create(user.id, `${name}-${n}`)
      const { token } = (await place.nobody.users.login({ body: { ...account, username: name } })).body
      const there = await place.api({ token }).users.namespaceToken({ params: { tenant: tenant_id } })
      clients.push(place.api({ token: there.body.token }))
    }
    return clients
  }
  const [first, second] = await inviter('mallory', 2)
  expect(await insist(first!, victim.toUpperCase())).toMatchObject({ sent: 3 })
  expect(await insist(second!, victim)).toEqual({
    sent: 2,
    message: expect.stringContaining('You have invited this address several times today') as string,
  })
  // Twelve of everybody; then even those who never invited it wait.
  const [third] = await inviter('trudy', 1)
  expect(await insist(third!, victim)).toMatchObject({ sent: 3 })
  expect(await insist(place.stranger, victim)).toEqual({
    sent: 1,
    message: expect.stringContaining('This address got many invitations today') as string,
  })
  await rooms.background.settled()
  const sent = (await place.emails()).filter(({ to }) => to?.[0]?.address?.toLowerCase() === victim)
  expect(sent).toHaveLength(12)
  const mine = (await place.stranger.invitations.list()).body.find(({ email }) => email === victim)!
  place.clock.forward(day_ms)
  expect(await statusOf(place.stranger.invitations.resend({ params: { id: mine.id } }))).toBe(200)
})

test('an address with a plus is the same mailbox', async () => {
  await using place = await startPlace({ mailServer: true })
  const statuses: number[] = []
  for (let n = 0; n < 5; n += 1) {
    const email = victim.replace('@', `+${n}@`)
    statuses.push(await statusOf(place.owner.invitations.create({ body: { email, role: 'observer' } })))
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429])
  expect(await statusOf(place.owner.invitations.create({ body: { email: victim, role: 'observer' } }))).toBe(
    429,
  )
})

test('without a mail server no mailbox is counted', async () => {
  await using place = await startPlace()
  const { id } = (await place.owner.invitations.create({ body: { email: victim, role: 'observer' } })).body
  for (let n = 0; n < 6; n += 1)
    expect(await statusOf(place.owner.invitations.resend({ params: { id } }))).toBe(200)
})

test('one inviter sends thirty in an hour', async () => {
  await using place = await startPlace({ mailServer: true })
  let last = 200
  for (let n = 0; last === 200 && n < 40; n += 1)
    last = await statusOf(
      place.owner.invitations.create({ body: { email: `n${n}@corp.example`, role: 'observer' } }),
    )
  expect(last).toBe(429)
  place.clock.forward(hour_ms)
  const again = { body: { email: 'later@corp.example', role: 'observer' as const } }
  expect((await place.owner.invitations.create(again)).status).toBe(200)
})

test('whoever invites and sees the token makes no confirmed account of somebody else’s address', async () => {
  await using place = await startPlace()
  const { token } = (
    await place.stranger.invitations.create({ body: { email: victim, role: 'administrator' } })
  ).body
  const signed = await place.nobody.invitations.signUp({ body: { ...account, token } })
  expect(signed.body.token).toBe('')
  expect((await refused(place.nobody.users.login({ body: account }))).kind).toBe('unconfirmed')
  // So nobody who adds this address to a namespace adds them.
  const identifier = victim
  expect(
    await statusOf(
      place.owner.namespaces.addMember({ params: { tenant }, body: { identifier, role: 'observer' } }),
    ),
  ).toBe(404)
})

test('no token is in the database, in a list, in the audit log or in the log; a guess finds nothing', async () => {
  await using place = await startPlace({ mailServer: true })
  const token = await linkTo(place, observer.email.replace('vera', 'vera2'))
  const { database } = place.rooms
  const rows = await database.db.selectFrom('member_invitations').selectAll().execute()
  const entries = await database.db.selectFrom('audit_entries').selectAll().execute()
  const list = (await place.owner.invitations.list()).body
  for (const text of [JSON.stringify(rows), JSON.stringify(entries), JSON.stringify(list), place.log()])
    expect(text).not.toContain(token.slice(4))
  for (const guess of [`${token.slice(0, -1)}${token.endsWith('a') ? 'b' : 'a'}`, `hwn_${'a'.repeat(32)}`])
    expect((await refused(place.nobody.invitations.open({ body: { token: guess } }))).kind).toBe('wrongToken')
  for (const bad of ['', 'hwn_', token.toUpperCase(), `${token} `, '%00'])
    expect(await statusOf(place.nobody.invitations.open({ body: { token: bad } })), bad).toBe(400)
})

// Invitations into a namespace: by e-mail to an address with or without an account, with the token
// shown where there is no mail server, listed, sent again, withdrawn and expired, and once for one of
// many.
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { mostMemberInvitations } from '@hawser/contract/invitations'
import { day_ms, iso, minute_ms } from '../../server/src/kit/clock.ts'
import { hashOf } from '../../server/src/kit/secrets.ts'
import { bothDatabases, startPlace, type Place } from '../harness/place.ts'
import type { ServiceOptions } from '../harness/service.ts'
import { oneDatabase } from '../harness/tier.ts'
import { linkIn, refused, statusesOf, statusOf } from './people.ts'

const { stranger } = sample
const tenant = sample.tenant

const tokenIn = (link: URL): string => link.hash.slice(1)
async function invited(
  place: Place,
  email: string,
  role: 'observer' | 'operator' | 'administrator' = 'operator',
) {
  const before = (await place.emails()).filter(({ to }) => to?.[0]?.address === email).length
  const { body } = await place.administrator.invitations.create({ body: { email, role } })
  expect(body.token).toBe('')
  const mail = await place.newestEmail(email, before)
  return { invitation: body, mail, token: tokenIn(linkIn(mail)) }
}
const roleOf = async (place: Place, username: string) =>
  (await place.rooms.stores.namespaces.members(tenant)).find((one) => one.username === username)?.role
const left = async (place: Place) =>
  (await place.owner.invitations.list({ query: { per_page: 100 } })).body.map(({ email }) => email)

const startOn = async (options: () => Promise<ServiceOptions>, change: ServiceOptions = {}) =>
  startPlace({ ...(await options()), mailServer: true, ...change })

describe.each(oneDatabase)('on %s', (_, options) => {
  test('somebody with an account gets a link, looks at it, and accepts', async () => {
    await using place = await startOn(options)
    const { mail, token, invitation } = await invited(place, stranger.email)
    expect(mail.subject).toBe('You are invited to harbour')
    expect(mail.text).toContain('adam invites you to the namespace harbour on this server, as operator.')
    expect(linkIn(mail).href).toMatch(/^http:\/\/hawser\.test\/invitation#hwn_[a-z2-7]{32}$/)
    expect(
      JSON.stringify(await place.rooms.stores.of(tenant).memberInvitations.find(invitation.id)),
    ).not.toContain(token)
    expect((await place.nobody.invitations.open({ body: { token } })).body).toEqual({
      namespace: 'harbour',
      role: 'operator',
      invited_by: 'adam',
      email: stranger.email,
      expires_at: invitation.expires_at,
      account: true,
      sign_up: true,
    })
    expect((await place.stranger.invitations.accept({ body: { token } })).body).toEqual({
      tenant_id: tenant,
      namespace: 'harbour',
      role: 'operator',
    })
    expect(await roleOf(place, 'stan')).toBe('operator')
    expect(await statusOf(place.stranger.invitations.accept({ body: { token } }))).toBe(401)
    expect(await left(place)).not.toContain(stranger.email)
    const { entries } = (await place.owner.audit.list()).body
    expect(entries.find(({ action }) => action === 'member.added')).toMatchObject({
      actor: { name: 'stan' },
      target: { name: 'stan' },
      detail: { after: { role: 'operator' }, invited_by: 'adam' },
    })
    expect(entries.find(({ action }) => action === 'invitation.created')).toMatchObject({
      actor: { name: 'adam' },
      target: { name: stranger.email },
    })
  })

  test('somebody without one signs up through the link, confirmed and a member at once', async () => {
    await using place = await startOn(options, { env: { HAWSER_REGISTRATION: 'invited' } })
    const email = 'nadia@corp.example'
    const { token } = await invited(place, 'Nadia@Corp.example'.toLowerCase())
    const account = { name: 'Nadia', username: 'nadia', password: 'lighthouse' }
    expect((await place.nobody.invitations.open({ body: { token } })).body).toMatchObject({ account: false })
    expect((await refused(place.nobody.users.register({ body: { ...account, email } }))).kind).toBe(
      'registrationClosed',
    )
    const taken = await refused(
      place.nobody.invitations.signUp({ body: { ...account, username: 'olga', token } }),
    )
    expect([taken.kind, taken.fields]).toEqual(['takenFields', ['username']])
    const { body } = await place.nobody.invitations.signUp({ body: { ...account, token } })
    const session = (await place.api({ token: body.token }).users.refresh()).body
    expect(session).toMatchObject({ user: 'nadia', email, tenant, role: 'operator' })
    expect(
      await statusOf(place.nobody.invitations.signUp({ body: { ...account, username: 'nadia2', token } })),
    ).toBe(401)
    // It counts as one who registered: the set-up of a server is not done by it.
    expect((await place.rooms.stores.users.find(session.id))?.registered).toBe(1)
  })

  test('where registration is closed, only accounts that are there can accept', async () => {
    await using place = await startOn(options, { env: { HAWSER_REGISTRATION: 'closed' } })
    const { token } = await invited(place, 'nadia@corp.example')
    expect((await place.nobody.invitations.open({ body: { token } })).body.sign_up).toBe(false)
    const account = { name: 'Nadia', username: 'nadia', password: 'lighthouse' }
    expect((await refused(place.nobody.invitations.signUp({ body: { ...account, token } }))).kind).toBe(
      'registrationClosed',
    )
    const own = await invited(place, stranger.email)
    expect((await place.stranger.invitations.accept({ body: { token: own.token } })).status).toBe(200)
  })

  test('without a mail server the token is shown once, and proves no mailbox', async () => {
    await using place = await startOn(options, { mailServer: false })
    const email = 'nadia@corp.example'
    const { body } = await place.administrator.invitations.create({ body: { email, role: 'observer' } })
    expect(body.token).toMatch(/^hwn_/)
    expect(JSON.stringify((await place.administrator.invitations.list()).body)).not.toContain(body.token)
    const account = { name: 'Nadia', username: 'nadia', password: 'lighthouse' }
    expect(
      (await place.nobody.invitations.signUp({ body: { ...account, token: body.token } })).body.token,
    ).toBe('')
    expect((await refused(place.nobody.users.login({ body: account }))).kind).toBe('unconfirmed')
    expect(await left(place)).toContain(email)
    const link = linkIn(await place.newestEmail(email))
    await place.nobody.users.activate({ query: { email, token: link.searchParams.get('token')! } })
    const session = (await place.nobody.users.login({ body: account })).body
    await place.api({ token: session.token }).invitations.accept({ body: { token: body.token } })
    expect(await roleOf(place, 'nadia')).toBe('observer')
  })

  test('they expire, can be sent again with a new link, and withdrawn', async () => {
    await using place = await startOn(options)
    const { token, invitation } = await invited(place, stranger.email)
    place.clock.forward(7 * day_ms - minute_ms)
    expect((await place.nobody.invitations.open({ body: { token } })).status).toBe(200)
    place.clock.forward(2 * minute_ms)
    const again = await place.api().users.login({ body: stranger })
    const person = place.api({ token: again.body.token })
    const owner = place.api({ token: (await place.api().users.login({ body: sample.owner })).body.token })
    expect((await refused(place.nobody.invitations.open({ body: { token } }))).kind).toBe('wrongToken')
    expect((await refused(person.invitations.accept({ body: { token } }))).kind).toBe('wrongToken')
    const params = { id: invitation.id }
    const { body } = await owner.invitations.resend({ params })
    expect(body).toMatchObject({ invited_by: 'olga', token: '', email: stranger.email })
    expect(Date.parse(body.expires_at)).toBeGreaterThan(place.clock.now() + 6 * day_ms)
    const fresh = tokenIn(linkIn(await place.newestEmail(stranger.email, 1)))
    expect(await statusOf(person.invitations.accept({ body: { token } }))).toBe(401)
    await owner.invitations.remove({ params })
    expect(await statusOf(owner.invitations.remove({ params }))).toBe(404)
    expect(await statusOf(owner.invitations.resend({ params }))).toBe(404)
    expect((await refused(person.invitations.accept({ body: { token: fresh } }))).kind).toBe('wrongToken')
    const actions = (await owner.audit.list()).body.entries.map(({ action }) => action)
    expect(actions).toEqual(expect.arrayContaining(['invitation.sent-again', 'invitation.withdrawn']))
  })

  test('a namespace has a hundred at most, counted together, and an address one', async () => {
    await using place = await startOn(options, { mailServer: false })
    const { stores } = place.rooms
    const now = iso(place.clock.now())
    const { items } = await stores.of(tenant).memberInvitations.list({ page: 1, per_page: 1 })
    const { tenant_id: __, ...row } = items[0]!
    for (let n = 1; n < mostMemberInvitations - 1; n += 1)
      await stores.of(tenant).memberInvitations.insert({
        ...row,
        id: crypto.randomUUID(),
        email: `n${n}@corp.example`,
        hash: hashOf(String(n)),
        created_at: now,
      })
    const create = (email: string) =>
      place.administrator.invitations.create({ body: { email, role: 'observer' } })
    const statuses = await statusesOf(['a', 'b', 'c', 'd'].map((name) => create(`${name}@corp.example`)))
    expect(statuses).toEqual([200, 403, 403, 403])
    expect((await refused(create('e@corp.example'))).kind).toBe('invitationLimit')
    // One that has expired gives its place away.
    const { id, ...old } = (await stores.of(tenant).memberInvitations.list({ page: 2, per_page: 1 }))
      .items[0]!
    const { hash, by_mail, invited_by, sent_at } = old
    await stores
      .of(tenant)
      .memberInvitations.renew(id, { hash, by_mail, invited_by, sent_at, expires_at: now })
    await create('e@corp.example')
    expect(await stores.of(tenant).memberInvitations.find(id)).toBeUndefined()
    expect((await refused(create('g@corp.example'))).kind).toBe('invitationLimit')
    await stores.of(tenant).memberInvitations.remove(sample.memberInvitation.id)
    await create('f@corp.example')
    await stores
      .of(tenant)
      .memberInvitations.remove(
        (await stores.of(tenant).memberInvitations.list({ page: 1, per_page: 1 })).items[0]!.id,
      )
    expect((await refused(create('f@corp.example'))).kind).toBe('conflict')
  })
})

describe.each(bothDatabases)('at the same time, on %s', (_, options) => {
  test('ten accepts and ten sign-ups at once make one member each', async () => {
    await using place = await startOn(options)
    const own = await invited(place, stranger.email)
    const accepts = await statusesOf(
      Array.from({ length: 10 }, () => place.stranger.invitations.accept({ body: { token: own.token } })),
    )
    expect(accepts.filter((status) => status === 200)).toHaveLength(1)
    expect(accepts.filter((status) => status >= 500)).toEqual([])
    const { token } = await invited(place, 'nadia@corp.example')
    const statuses = await statusesOf(
      Array.from({ length: 10 }, (_, n) =>
        place.nobody.invitations.signUp({
          body: { token, name: 'Nadia', username: `nadia-${n}`, password: 'lighthouse' },
        }),
      ),
    )
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(statuses.filter((status) => status >= 500)).toEqual([])
    const members = await place.rooms.stores.namespaces.members(tenant)
    expect(members.filter(({ username }) => username.startsWith('nadia-'))).toHaveLength(1)
    expect(
      (await place.rooms.stores.users.list()).filter(({ email }) => email === 'nadia@corp.example'),
    ).toHaveLength(1)
  })
})

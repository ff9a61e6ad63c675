// Somebody claims an e-mail address that is not theirs: registers with it, or changes an account to it, and never
// confirms it. The owner of the address was refused at registration and at an invitation for ever, and a link to
// recover the password went to the other. An address counts for whoever confirms it; the others lose their claim, and
// a claim that nobody confirms expires. Many claims of one address do not flood its mailbox either.
import { describe, expect, test } from 'vitest'
import type { Email } from 'postal-mime'
import { sample } from '@hawser/contract/examples'
import { runCommand } from '../../server/src/commands/admin.ts'
import { day_ms, hour_ms } from '../../server/src/kit/clock.ts'
import { from, linkIn, ownFolder, refused, statusesOf, statusOf } from '../contract/people.ts'
import { bothDatabases, startPlace, type Place } from '../harness/place.ts'
import { startService, type Service, type ServiceOptions } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

const address = 'victoria@corp.example'
const squatter = { name: 'Squatter', username: 'squatter', email: address, password: 'not-your-rope' }
const owner = { name: 'Victoria', username: 'victoria', email: address, password: 'lighthouse' }

const register = (service: Service, body: typeof owner, source = '192.0.2.1') =>
  statusOf(service.api(from(source)).users.register({ body }))
const signIn = (service: Service, username: string, password: string) =>
  service.api().users.login({ body: { username, password } })
const linksTo = async (service: Service, to: string, page: string) =>
  (await service.emails())
    .filter((email: Email) => email.to?.some((found) => found.address === to))
    .filter(({ text }) => text?.includes(`/${page}`))
    .map((email) => linkIn(email).searchParams)
const activationsTo = (service: Service, to: string) => linksTo(service, to, 'validation-account')
const activate = (service: Service, link: URLSearchParams | undefined) =>
  statusOf(
    service
      .api()
      .users.activate({ query: { email: link?.get('email') ?? '', token: link?.get('token') ?? '' } }),
  )
/** While several accounts claim an address, a link needs the password of its account. */
const confirm = (service: Service, link: URLSearchParams | undefined, password?: string) =>
  statusOf(
    service.api().users.confirmEmail({
      body: { token: link?.get('token') ?? '', ...(password === undefined ? {} : { password }) },
    }),
  )

const startOn = async (options: () => Promise<ServiceOptions>, change: ServiceOptions = {}) =>
  startPlace({ ...(await options()), ...change })

describe.each(bothDatabases)('on %s', (_, options) => {
  test('an address that somebody registered with is its owner’s to register, and to have', async () => {
    await using place = await startOn(options)
    expect(await register(place, squatter)).toBe(200)
    const [theirs] = await activationsTo(place, address)
    expect(await register(place, owner)).toBe(200)
    expect(await confirm(place, (await activationsTo(place, address))[1], owner.password)).toBe(200)
    expect((await signIn(place, address, owner.password)).body.user).toBe(owner.username)

    // The claim is gone, with the link that would have confirmed it and the user name that came with it.
    expect(await activate(place, theirs)).toBe(401)
    expect(await statusOf(signIn(place, squatter.username, squatter.password))).toBe(401)
    expect(await register(place, { ...squatter, email: 'other@corp.example' })).toBe(200)
    // What is confirmed is taken.
    expect(
      (await refused(place.nobody.users.register({ body: { ...owner, username: 'vic' } }))).body,
    ).toEqual(['email'])
  })

  test('an address that somebody changed an account to is its owner’s, and so is the way to a new password', async () => {
    await using place = await startOn(options)
    await place.stranger.users.update({ body: { email: address } })
    const [theirs] = await linksTo(place, address, 'confirm-email')
    expect(await register(place, owner)).toBe(200)
    expect(await confirm(place, (await activationsTo(place, address))[0], owner.password)).toBe(200)

    expect(await confirm(place, theirs)).toBe(401)
    expect((await place.stranger.users.refresh({})).body.email).toBe(sample.stranger.email)
    await place.nobody.users.recover({ body: { email: address } })
    expect(await linksTo(place, address, 'update-password')).toHaveLength(1)
    expect(await linksTo(place, sample.stranger.email, 'update-password')).toEqual([])
    expect((await signIn(place, address, owner.password)).body.user).toBe(owner.username)
  })

  test('a change to a claimed address is confirmed by its owner alone', async () => {
    await using place = await startOn(options)
    expect(await register(place, squatter)).toBe(200)
    await place.stranger.users.update({ body: { email: address } })
    const [strangers] = await linksTo(place, address, 'confirm-email')
    await place.observer.users.update({ body: { email: address } })
    const [, observers] = await linksTo(place, address, 'confirm-email')
    expect(await confirm(place, observers, sample.observer.password)).toBe(200)
    expect(await confirm(place, strangers)).toBe(401)
    expect(await activate(place, (await activationsTo(place, address))[0])).toBe(401)
    expect((await signIn(place, address, sample.observer.password)).body.id).toBe(sample.observer.id)
    expect((await refused(place.stranger.users.update({ body: { email: address } }))).body).toEqual(['email'])
  })

  test.each([
    ['registered with', squatter.username],
    ['registered with, also as a user name', address],
    ['changed an account to', undefined],
  ])('somebody who is invited signs up though another has %s the address', async (_way, username) => {
    await using place = await startOn(options, { mailServer: true })
    if (username === undefined) await place.stranger.users.update({ body: { email: address } })
    else expect(await register(place, { ...squatter, username })).toBe(200)
    await place.administrator.invitations.create({ body: { email: address, role: 'observer' } })
    const link = (await place.emails())
      .filter(({ to }) => to?.[0]?.address === address)
      .map(linkIn)
      .find(({ hash }) => hash !== '')
    const token = link?.hash.slice(1) ?? ''
    const { name, password } = owner
    const signed = await place.nobody.invitations.signUp({
      body: { name, password, username: address, token },
    })
    expect(signed.body.token).not.toBe('')
    expect((await signIn(place, address, password)).body).toMatchObject({ user: address, email: address })
  })

  test('the administrator of the server vouches for an address, whoever claims it', async () => {
    await using place = await startOn(options)
    expect(await register(place, squatter)).toBe(200)
    await place.stranger.users.update({ body: { email: address } })
    await runCommand(place.rooms, { words: 'user create', given: ['victoria', owner.password, address] })
    expect((await signIn(place, address, owner.password)).body.user).toBe('victoria')
    expect((await place.stranger.users.refresh({})).body.email).toBe(sample.stranger.email)
  })
})

describe.each(bothDatabases)('at the same time, on %s', (_, options) => {
  test('of many who confirm one address at once, one has it', async () => {
    await using place = await startOn(options)
    const rivals = Array.from({ length: 4 }, (__, i) => ({ ...owner, username: `rival-${i}` }))
    for (const [i, rival] of rivals.entries())
      expect(await register(place, rival, `198.51.100.${i}`)).toBe(200)
    await place.stranger.users.update({ body: { email: address } })
    await place.observer.users.update({ body: { email: address } })
    const links = [
      ...(await activationsTo(place, address)).map((link) => [link, owner.password] as const),
      ...(await linksTo(place, address, 'confirm-email')).map(
        (link, i) => [link, [sample.stranger, sample.observer][i]?.password ?? ''] as const,
      ),
    ]
    const outcomes = await statusesOf(
      links.map(([link, password]) =>
        place.nobody.users.confirmEmail({ body: { token: link.get('token') ?? '', password } }),
      ),
    )
    expect(outcomes).toEqual([200, 401, 401, 401, 401, 401])
    const rows = await place.rooms.stores.users.list()
    expect(rows.filter(({ email }) => email === address)).toHaveLength(1)
  })
})

test('an address that was confirmed stays its owner’s for as long as a change of it can be undone', async () => {
  await using place = await startPlace()
  await place.observer.users.update({ body: { email: address } })
  expect(await confirm(place, (await linksTo(place, address, 'confirm-email'))[0])).toBe(200)
  expect(await register(place, { ...squatter, email: sample.observer.email })).toBe(409)
})

test('a claim that nobody confirms expires, with its user name; whoever is a member already stays', async () => {
  using folder = ownFolder()
  const nora = { ...owner, username: 'nora', email: 'nora@corp.example' }
  let member: string
  {
    await using service = await startService({ folder: folder.path })
    const world = await buildWorld(service)
    for (const body of [squatter, nora]) expect(await register(service, body)).toBe(200)
    const { stores } = service.rooms
    for (const { username } of [squatter, nora]) {
      const { id } = (await stores.users.findByUsername(username))!
      await stores.users.save(id, { created_at: new Date(service.clock.now() - 8 * day_ms).toISOString() })
    }
    const api = service.api({ token: await world.token('owner') })
    await api.namespaces.addMember({
      params: { tenant: sample.tenant },
      body: { identifier: nora.username, role: 'observer' },
    })
    member = (await stores.users.findByUsername(nora.username))!.id
    await service
      .api({ token: await world.token('observer') })
      .users.update({ body: { email: 'vera@typo.example' } })
    await stores.identityChanges.sweep(new Date(service.clock.now() + 73 * hour_ms).toISOString())
  }
  await using service = await startService({ folder: folder.path })
  expect(await register(service, { ...squatter, email: 'somebody@corp.example' })).toBe(200)
  expect((await service.rooms.stores.users.find(member))?.username).toBe(nora.username)
  expect((await signIn(service, sample.observer.username, sample.observer.password)).body.email).toBe(
    sample.observer.email,
  )
  expect(await statusOf(signIn(service, 'vera@typo.example', sample.observer.password))).toBe(401)
})

test('many claims of one address do not flood its mailbox, nor keep its owner from the link', async () => {
  await using place = await startPlace()
  const claims = (source: string, count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, i) =>
        register(place, { ...squatter, username: `claim-${source}-${i}`.slice(-30) }, source),
      ),
    )
  expect(new Set(await claims('198.51.100.1', 12))).toEqual(new Set([200]))
  expect(await activationsTo(place, address)).toHaveLength(5)
  // The owner comes from elsewhere.
  expect(await register(place, owner, '203.0.113.9')).toBe(200)
  expect(await activationsTo(place, address)).toHaveLength(6)
  for (let network = 2; network < 5; network += 1) await claims(`198.51.100.${network}`, 5)
  expect(await activationsTo(place, address)).toHaveLength(20)
  // Strangers of a few networks have used up all of it; somebody else still gets the first link, and one alone.
  for (const again of [0, 1])
    expect(await register(place, { ...owner, username: `victoria-${again}` }, '203.0.113.77')).toBe(200)
  expect(await activationsTo(place, address)).toHaveLength(21)
  for (let network = 5; network < 25; network += 1) await claims(`198.51.100.${network}`, 2)
  expect(await activationsTo(place, address)).toHaveLength(30)
})

test('the confirmation is sent again for each who waits for the address, by the address or the user name', async () => {
  await using place = await startPlace()
  const waiting: Place = place
  for (const [body, source] of [
    [squatter, '198.51.100.1'],
    [owner, '203.0.113.9'],
  ] as const)
    expect(await register(waiting, body, source)).toBe(200)
  const resend = (username: string) => place.api(from('203.0.113.9')).users.resend({ body: { username } })
  await resend(address)
  const links = await activationsTo(place, address)
  expect(links).toHaveLength(4)
  await resend(owner.username)
  const last = (await activationsTo(place, address)).at(-1)
  expect(await confirm(place, last, owner.password)).toBe(200)
  expect((await signIn(place, address, owner.password)).body.user).toBe(owner.username)
})

// Somebody has a person's token, and nothing else: no password, no mailbox, no second factor. With it the
// addresses of the account are changed, or a second factor is switched on. That must not be enough to take
// the account over: e-mails that let one in go to the addresses that were confirmed before, these are told at
// once, and for 72 hours what they get undoes it all, also when the thief has confirmed addresses of their
// own, reset the second factor and recovered the password.
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { runCommand } from '../../server/src/commands/admin.ts'
import { hour_ms, minute_ms } from '../../server/src/kit/clock.ts'
import { codeIn, linkIn, refused, statusOf, totpAt } from '../contract/people.ts'
import { freshDatabase } from '../harness/postgres.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

const { careful, observer, operator, tenant } = sample
const elsewhere = `${careful.username}@example.org`
const thief = { email: 'thief@evil.example', recovery_email: 'thief@other.example', password: 'mine-now' }

const linksTo = async (service: Service, to: string, page: string): Promise<URL[]> =>
  (await service.emails())
    .filter(
      (letter) => letter.to?.some(({ address }) => address === to) && letter.text?.includes(`/${page}?`),
    )
    .map(linkIn)

async function tokenTo(service: Service, to: string, page: string): Promise<string> {
  const link = (await linksTo(service, to, page)).at(-1)
  if (!link) throw new Error(`no link to ${page} went to ${to}`)
  return link.searchParams.get('token') ?? ''
}

const confirm = (service: Service, token: string) =>
  statusOf(service.api().users.confirmEmail({ body: { token } }))
const undo = (service: Service, token: string) =>
  statusOf(service.api().users.undoChange({ body: { token } }))
const works = (api: Client) => statusOf(api.users.refresh({}))
const signIn = (service: Service, username: string, password: string) =>
  service.api().users.login({ body: { username, password } })

/** The next call of a store waits until this has happened, as one that was slow on its way would. */
function held<K extends string>(
  store: Record<K, (...given: never[]) => unknown>,
  call: K,
  meanwhile: () => Promise<unknown>,
): void {
  const real = store[call]
  store[call] = async (...given: never[]) => {
    store[call] = real
    await meanwhile()
    return real(...given)
  }
}

/** A service in which the thief has the token of a person. */
async function stolen(person: 'careful' | 'observer', database = '') {
  const service = await startService({ database })
  const world = await buildWorld(service)
  return {
    service,
    world,
    api: service.api({ token: await world.token(person) }),
    [Symbol.asyncDispose]: service[Symbol.asyncDispose],
  }
}

describe('addresses that a token alone has changed', () => {
  test('are shown, but get none of the e-mails that let one in: those go to the confirmed ones', async () => {
    await using scene = await stolen('careful')
    const { service, api } = scene
    expect((await api.users.update({ body: { email: thief.email } })).status).toBe(200)
    expect(
      (
        await api.users.updateData({
          params: { id: careful.id },
          body: { recovery_email: thief.recovery_email },
        })
      ).status,
    ).toBe(200)
    expect((await api.users.refresh({})).body).toMatchObject({
      email: thief.email,
      recovery_email: thief.recovery_email,
    })

    for (const identifier of [thief.email, careful.email, careful.username]) {
      await service.api().users.recover({ body: { username: identifier } })
      await service.api().mfa.requestReset({ body: { identifier } })
    }
    expect(await linksTo(service, careful.email, 'update-password')).toHaveLength(3)
    expect(await linksTo(service, careful.email, 'reset-mfa')).toHaveLength(3)
    expect(await linksTo(service, elsewhere, 'reset-mfa')).toHaveLength(3)
    for (const mailbox of [thief.email, thief.recovery_email]) {
      expect(await linksTo(service, mailbox, 'update-password')).toEqual([])
      expect(await linksTo(service, mailbox, 'reset-mfa')).toEqual([])
      expect(await linksTo(service, mailbox, 'undo-change')).toEqual([])
    }
    // And they still work for the person. All before are written: e-mails of one moment come in any order.
    await service.api().mfa.requestReset({ body: { identifier: careful.username } })
    const [main, recovery] = [
      await service.newestEmail(careful.email),
      await service.newestEmail(elsewhere),
    ].map(codeIn)
    const body = { main_email_code: main ?? '', recovery_email_code: recovery ?? '' }
    expect(await statusOf(service.api().mfa.reset({ params: { user_id: careful.id }, body }))).toBe(200)
  })

  test('do not take away an e-mail that is on its way to the confirmed one', async () => {
    await using scene = await stolen('observer')
    const { service, api } = scene
    await service.api().users.recover({ body: { username: observer.username } })
    const token = await tokenTo(service, observer.email, 'update-password')
    await api.users.update({ body: { email: thief.email } })
    expect(
      await statusOf(
        service
          .api()
          .users.resetPassword({ params: { uid: observer.id }, body: { password: 'a-new-rope', token } }),
      ),
    ).toBe(200)
  })

  test('are told at once to the old ones, from where everything is undone by one link, which works once', async () => {
    await using scene = await stolen('careful')
    const { service, api } = scene
    await api.users.update({ body: { email: thief.email } })
    await api.users.update({ body: { recovery_email: thief.recovery_email } })
    expect(await linksTo(service, careful.email, 'undo-change')).toHaveLength(2)
    expect(await linksTo(service, elsewhere, 'undo-change')).toHaveLength(1)
    const [first] = await linksTo(service, careful.email, 'undo-change')
    const pending = [
      await tokenTo(service, thief.email, 'confirm-email'),
      await tokenTo(service, thief.recovery_email, 'confirm-email'),
    ]

    expect(await undo(service, first?.searchParams.get('token') ?? '')).toBe(200)
    expect(await works(api)).toBe(401)
    const row = await service.rooms.stores.users.find(careful.id)
    expect(row).toMatchObject({
      email: careful.email,
      recovery_email: elsewhere,
      former_email: null,
      former_recovery_email: null,
    })
    for (const token of pending) expect(await confirm(service, token)).toBe(401)
    expect(await undo(service, first?.searchParams.get('token') ?? '')).toBe(401)
    // The password, which nobody has changed, is still the person's.
    expect((await refused(signIn(service, careful.email, careful.password))).headers.has('x-mfa-token')).toBe(
      true,
    )
    expect(await statusOf(signIn(service, thief.email, careful.password))).toBe(401)
  })

  test('can be undone for 72 hours though the thief has confirmed them and taken everything', async () => {
    await using scene = await stolen('careful')
    const { service, api } = scene
    await api.users.update({ body: { email: thief.email } })
    const undoing = await tokenTo(service, careful.email, 'undo-change')
    expect(await confirm(service, await tokenTo(service, thief.email, 'confirm-email'))).toBe(200)
    await api.users.update({ body: { recovery_email: thief.recovery_email } })
    expect(await confirm(service, await tokenTo(service, thief.recovery_email, 'confirm-email'))).toBe(200)
    await service.api().mfa.requestReset({ body: { identifier: careful.username } })
    const codes = [
      await service.newestEmail(thief.email),
      await service.newestEmail(thief.recovery_email),
    ].map(codeIn)
    const body = { main_email_code: codes[0] ?? '', recovery_email_code: codes[1] ?? '' }
    await service.api().mfa.reset({ params: { user_id: careful.id }, body })
    await service.api().users.recover({ body: { email: thief.email } })
    const recovered = await tokenTo(service, thief.email, 'update-password')
    await service.api().users.resetPassword({
      params: { uid: careful.id },
      body: { password: thief.password, token: recovered },
    })
    const inside = service.api({ token: (await signIn(service, thief.email, thief.password)).body.token })
    expect(await works(inside)).toBe(200)

    service.clock.forward(72 * hour_ms - minute_ms)
    expect(await undo(service, undoing)).toBe(200)
    expect(await works(inside)).toBe(401)
    for (const who of [careful.username, careful.email, thief.email])
      expect(await statusOf(signIn(service, who, thief.password)), who).toBe(401)
    // A link to choose a new password is on its way already; the second factor is on again, with the person's
    // own secret.
    const fresh = await tokenTo(service, careful.email, 'update-password')
    await service
      .api()
      .users.resetPassword({ params: { uid: careful.id }, body: { password: 'a-new-rope', token: fresh } })
    service.clock.forward(20 * minute_ms)
    const half = await refused(signIn(service, careful.email, 'a-new-rope'))
    const code = totpAt(service, sample.mfaSecret)
    const { body: whole } = await service
      .api()
      .mfa.authenticate({ body: { token: half.headers.get('x-mfa-token') ?? '', code } })
    expect(whole).toMatchObject({ email: careful.email, recovery_email: elsewhere, mfa: true })
  })

  test('cannot be undone later, or with a wrong token', async () => {
    await using scene = await stolen('observer')
    const { service, api } = scene
    await api.users.update({ body: { email: thief.email } })
    const token = await tokenTo(service, observer.email, 'undo-change')
    expect(await undo(service, '88888888-8888-4888-8888-888888888888')).toBe(401)
    service.clock.forward(72 * hour_ms)
    expect(await undo(service, token)).toBe(401)
    expect((await service.rooms.stores.users.find(observer.id))?.email).toBe(thief.email)
  })

  test('changed again and again still leave one link that undoes them all', async () => {
    await using scene = await stolen('observer')
    const { service, api } = scene
    for (const number of [1, 2, 3]) {
      await api.users.update({ body: { email: `thief-${number}@evil.example` } })
      expect(
        await confirm(service, await tokenTo(service, `thief-${number}@evil.example`, 'confirm-email')),
      ).toBe(200)
    }
    // The second and third went to the thief, who can only go back to addresses of their own.
    expect(await undo(service, await tokenTo(service, 'thief-2@evil.example', 'undo-change'))).toBe(200)
    expect((await service.rooms.stores.users.find(observer.id))?.email).toBe('thief-2@evil.example')
    expect(await undo(service, await tokenTo(service, observer.email, 'undo-change'))).toBe(200)
    expect((await service.rooms.stores.users.find(observer.id))?.email).toBe(observer.email)
    expect(await undo(service, await tokenTo(service, 'thief-1@evil.example', 'undo-change'))).toBe(401)
  })

  test('are no way to fill mailboxes: after ten changes an hour there is a rest', async () => {
    await using scene = await stolen('observer')
    const { service, api } = scene
    const change = (number: number) =>
      statusOf(api.users.update({ body: { email: `thief-${number}@evil.example` } }))
    for (let number = 1; number <= 10; number++) expect(await change(number)).toBe(200)
    expect(await change(11)).toBe(429)
    expect(await statusOf(api.users.update({ body: { name: 'Vera' } }))).toBe(200)
    expect(await linksTo(service, observer.email, 'undo-change')).toHaveLength(10)
    service.clock.forward(hour_ms)
    expect(await change(11)).toBe(200)
  })

  test('are kept free for whom they belonged to, and nobody else’s address is matched', async () => {
    await using scene = await stolen('observer')
    const { service, api, world } = scene
    const other = service.api({ token: await world.token('operator') })
    await api.users.update({ body: { email: thief.email } })
    const taken = async (change: object) => (await refused(other.users.update({ body: change }))).body
    expect(await taken({ email: observer.email })).toEqual(['email'])
    for (const email of [observer.email, thief.email])
      expect(await taken({ username: email })).toEqual(['username'])
    // One signs in by the address that is shown, as the interface says.
    expect((await signIn(service, thief.email, observer.password)).body.id).toBe(observer.id)
    await confirm(service, await tokenTo(service, thief.email, 'confirm-email'))
    for (const email of [observer.email, thief.email]) expect(await taken({ email })).toEqual(['email'])
    expect(await statusOf(signIn(service, observer.email, observer.password))).toBe(401)
    expect((await signIn(service, operator.email, operator.password)).body.id).toBe(operator.id)
  })
})

describe('a second factor that a token alone has switched on', () => {
  test('is told to the person, who undoes it with a link', async () => {
    await using scene = await stolen('observer')
    const { service, api } = scene
    await api.users.update({ body: { recovery_email: thief.recovery_email } })
    const { secret, recovery_codes } = (await api.mfa.generate({})).body
    await api.mfa.enable({ body: { code: totpAt(service, secret), secret, recovery_codes } })
    // The person is locked out, and the thief comes in without a password.
    expect(
      (await refused(signIn(service, observer.username, observer.password))).headers.has('x-mfa-token'),
    ).toBe(true)
    const recover = (code = '') =>
      service.api().mfa.recover({ body: { identifier: observer.username, recovery_code: code } })
    const inside = service.api({ token: (await recover(recovery_codes[0])).body.token })

    expect(await linksTo(service, observer.email, 'undo-change')).toHaveLength(2)
    expect(await undo(service, await tokenTo(service, observer.email, 'undo-change'))).toBe(200)
    expect([await works(api), await works(inside)]).toEqual([401, 401])
    expect(await statusOf(recover(recovery_codes[1]))).toBe(401)
    expect((await signIn(service, observer.username, observer.password)).body).toMatchObject({ mfa: false })
  })
})

describe('a second factor and an undo', () => {
  const switchOn = async (service: Service, api: Client) => {
    const { secret, recovery_codes } = (await api.mfa.generate({})).body
    const status = await statusOf(
      api.mfa.enable({ body: { code: totpAt(service, secret), secret, recovery_codes } }),
    )
    return { status, recovery_codes }
  }

  test('switched on and off is no way to fill mailboxes either', async () => {
    await using scene = await stolen('observer')
    const { service, api } = scene
    await api.users.update({ body: { recovery_email: thief.recovery_email } })
    for (let number = 2; number <= 10; number++) {
      const { status, recovery_codes } = await switchOn(service, api)
      expect(status).toBe(200)
      await api.mfa.disable({ body: { recovery_code: recovery_codes[0] ?? '' } })
    }
    expect((await switchOn(service, api)).status).toBe(429)
    expect(await linksTo(service, observer.email, 'undo-change')).toHaveLength(10)
    service.clock.forward(hour_ms)
    expect((await switchOn(service, api)).status).toBe(200)
  })

  test('do not bring back recovery codes that were used', async () => {
    await using scene = await stolen('observer')
    const { service, api } = scene
    await api.users.update({ body: { recovery_email: elsewhere } })
    const { recovery_codes } = await switchOn(service, api)
    // The e-mails of these changes are there before the one that matters.
    await service.emails()
    await api.users.update({ body: { email: 'vera@new.example' } })
    const undoing = await tokenTo(service, observer.email, 'undo-change')
    const recover = (code = '') =>
      statusOf(service.api().mfa.recover({ body: { identifier: observer.username, recovery_code: code } }))
    expect(await recover(recovery_codes[0])).toBe(200)
    await api.mfa.disable({ body: { recovery_code: recovery_codes[1] ?? '' } })
    expect(await undo(service, undoing)).toBe(200)
    expect([await recover(recovery_codes[0]), await recover(recovery_codes[1])]).toEqual([401, 401])
    expect(await recover(recovery_codes[2])).toBe(200)
  })
})

describe('a sign-in that waits for its second factor', () => {
  const ways = {
    'by a link': async (service: Service) => {
      await service.api().users.recover({ body: { username: careful.username } })
      const token = await tokenTo(service, careful.email, 'update-password')
      await service
        .api()
        .users.resetPassword({ params: { uid: careful.id }, body: { password: 'a-new-rope', token } })
    },
    'by the administrator': (service: Service) =>
      runCommand(service.rooms, { words: 'user password', given: [careful.username, 'a-new-rope'] }),
  }
  test.each(Object.entries(ways))(
    'ends with the password it was begun with, when that is changed %s',
    async (_, change) => {
      await using scene = await stolen('careful')
      const { service } = scene
      const half = await refused(signIn(service, careful.username, careful.password))
      await change(service)
      const body = { token: half.headers.get('x-mfa-token') ?? '', code: totpAt(service, sample.mfaSecret) }
      expect(await statusOf(service.api().mfa.authenticate({ body }))).toBe(401)
    },
  )
})

describe('a person who changes an address', () => {
  test('signs in with the confirmed one and with the one that is shown, and nobody stands before them there', async () => {
    await using scene = await stolen('observer')
    const { service, api } = scene
    const { stores } = service.rooms
    await api.users.update({ body: { email: 'vera@new.example' } })
    for (const who of [observer.email, 'vera@new.example', observer.username])
      expect((await signIn(service, who, observer.password)).body.id, who).toBe(observer.id)
    // Two requests at the same moment might leave this behind.
    await stores.users.save(operator.id, { email: observer.email, former_email: operator.email })
    await stores.users.save(operator.id, { password: 'not a hash' })
    expect((await signIn(service, observer.email, observer.password)).body.id).toBe(observer.id)
    expect((await stores.users.findByIdentifier(operator.email))?.id).toBe(operator.id)
  })

  test('is told at every address that an undo takes away', async () => {
    await using scene = await stolen('careful')
    const { service, api } = scene
    await api.users.update({ body: { email: 'cara@new.example', recovery_email: 'cara@other.example' } })
    await confirm(service, await tokenTo(service, 'cara@new.example', 'confirm-email'))
    await undo(service, await tokenTo(service, careful.email, 'undo-change'))
    const told = (await service.emails()).filter(
      ({ subject }) => subject === 'This address was removed from an account',
    )
    expect(told.map(({ to }) => to?.[0]?.address)).toEqual(['cara@new.example', 'cara@other.example'])
    for (const { text } of told) expect(text).not.toContain('token=')
  })

  test('confirms it by the link in an e-mail, and gets everything there from then on', async () => {
    await using scene = await stolen('careful')
    const { service, api } = scene
    await service.api().users.recover({ body: { username: careful.username } })
    const old = await tokenTo(service, careful.email, 'update-password')
    await api.users.update({ body: { email: 'Cara@New.Example' } })
    const token = await tokenTo(service, 'cara@new.example', 'confirm-email')
    expect(await confirm(service, token)).toBe(200)
    expect(await confirm(service, token)).toBe(401)
    expect(await works(api)).toBe(200)
    // What was sent to the old one is worth nothing now.
    const reset = { params: { uid: careful.id }, body: { password: 'a-new-rope', token: old } }
    expect(await statusOf(service.api().users.resetPassword(reset))).toBe(401)
    await service.api().users.recover({ body: { username: careful.username } })
    expect(await linksTo(service, 'cara@new.example', 'update-password')).toHaveLength(1)
    expect(await linksTo(service, careful.email, 'update-password')).toHaveLength(1)
  })

  test('has the link sent again, and one of an address that was replaced is worth nothing', async () => {
    await using scene = await stolen('observer')
    const { service, api } = scene
    await api.users.update({ body: { email: 'vera@typo.example' } })
    const wrong = await tokenTo(service, 'vera@typo.example', 'confirm-email')
    await api.users.update({ body: { email: 'vera@new.example' } })
    const first = await tokenTo(service, 'vera@new.example', 'confirm-email')
    await service.api().users.resend({ body: { username: observer.username } })
    const second = await tokenTo(service, 'vera@new.example', 'confirm-email')
    expect(second).not.toBe(first)
    expect(await confirm(service, wrong)).toBe(401)
    expect(await confirm(service, first)).toBe(401)
    expect(await confirm(service, second)).toBe(200)
  })

  test('and goes back to the confirmed one needs no link', async () => {
    await using scene = await stolen('observer')
    const { service, api } = scene
    await api.users.update({ body: { email: 'vera@typo.example' } })
    const wrong = await tokenTo(service, 'vera@typo.example', 'confirm-email')
    await api.users.update({ body: { email: observer.email } })
    expect(await confirm(service, wrong)).toBe(401)
    expect(await linksTo(service, observer.email, 'confirm-email')).toEqual([])
    await service.api().users.recover({ body: { username: observer.username } })
    expect(await linksTo(service, observer.email, 'update-password')).toHaveLength(1)
  })
})

describe.each([
  ['SQLite', () => Promise.resolve('')],
  ['PostgreSQL', freshDatabase],
])('a request of the thief that was on its way when the person undid everything, on %s,', (_, database) => {
  test('sets no password and no address, however many they are', async () => {
    await using scene = await stolen('observer', await database())
    const { service, api } = scene
    await api.users.update({ body: { email: thief.email } })
    const token = await tokenTo(service, observer.email, 'undo-change')
    // The thief knows the password, too: undoing would end that only with the token.
    const body = { email: thief.email, current_password: observer.password, password: thief.password }
    const { stores } = service.rooms
    const many: Promise<number>[] = []
    held(stores, 'transaction', async () => {
      for (let number = 0; number < 8; number++) many.push(statusOf(api.users.update({ body })))
      expect(await undo(service, token)).toBe(200)
    })
    const first = await statusOf(api.users.update({ body }))
    // Those that were quicker than the undo were undone by it.
    for (const status of [first, ...(await Promise.all(many))]) expect([200, 401]).toContain(status)
    expect(first).toBe(401)
    expect(await stores.users.find(observer.id)).toMatchObject({
      email: observer.email,
      former_email: null,
      kept_token: null,
    })
    for (const who of [observer.username, thief.email])
      expect(await statusOf(signIn(service, who, thief.password)), who).toBe(401)
    expect(await works(api)).toBe(401)
  })

  test('switches no second factor on, and none off', async () => {
    await using scene = await stolen('observer', await database())
    const { service, api } = scene
    const { stores } = service.rooms
    await api.users.update({ body: { recovery_email: thief.recovery_email } })
    const first = await tokenTo(service, observer.email, 'undo-change')
    const { secret, recovery_codes } = (await api.mfa.generate({})).body
    held(stores, 'transaction', async () => expect(await undo(service, first)).toBe(200))
    expect(
      await statusOf(api.mfa.enable({ body: { code: totpAt(service, secret), secret, recovery_codes } })),
    ).toBe(401)
    expect(await stores.users.find(observer.id)).toMatchObject({ mfa_secret: null, recovery_email: null })

    const own = service.api({ token: await scene.world.token('careful') })
    await own.users.update({ body: { email: thief.email } })
    const second = await tokenTo(service, careful.email, 'undo-change')
    held(stores, 'transaction', async () => expect(await undo(service, second)).toBe(200))
    expect(await statusOf(own.mfa.disable({ body: { code: totpAt(service, sample.mfaSecret) } }))).toBe(401)
    expect((await stores.users.find(careful.id))?.mfa_secret).not.toBeNull()
  })
})

describe('what was on its way when the person undid everything', () => {
  const ways = {
    refresh: (api: Client) => api.users.refresh({}),
    namespaceToken: (api: Client) => api.users.namespaceToken({ params: { tenant } }),
    token: (api: Client) => api.users.token({ params: { tenant } }),
    update: (api: Client) => api.users.update({ body: { email: 'thief-2@evil.example' } }),
    generate: (api: Client) => api.mfa.generate({}),
  }
  test.each(Object.entries(ways))('gets nothing by %s, though the gate had let it in', async (_, way) => {
    await using scene = await stolen('observer')
    const { service, api } = scene
    await api.users.update({ body: { email: thief.email } })
    const token = await tokenTo(service, observer.email, 'undo-change')
    held(service.rooms.stores.users, 'find', async () => expect(await undo(service, token)).toBe(200))
    expect(await statusOf(way(api))).toBe(401)
    expect((await service.rooms.stores.users.find(observer.id))?.email).toBe(observer.email)
  })

  /** The thief has confirmed addresses of their own, and the person has a link that undoes it. */
  async function takenOver() {
    const scene = await stolen('careful')
    const { service, api } = scene
    await api.users.update({ body: { email: thief.email, recovery_email: thief.recovery_email } })
    for (const mailbox of [thief.email, thief.recovery_email])
      expect(await confirm(service, await tokenTo(service, mailbox, 'confirm-email'))).toBe(200)
    return { ...scene, undoing: await tokenTo(service, careful.email, 'undo-change') }
  }

  test.each([
    [
      'links',
      'update-password',
      (api: Client) => api.users.recover({ body: { email: thief.email } }),
      [careful.email],
    ],
    [
      'codes',
      'reset-mfa',
      (api: Client) => api.mfa.requestReset({ body: { identifier: thief.email } }),
      [careful.email, elsewhere],
    ],
  ] as const)(
    'sends %s that let one in to the addresses of the person, not to those of the thief',
    async (_, page, ask, addresses) => {
      await using scene = await takenOver()
      const { service, undoing } = scene
      held(service.rooms.stores.attempts, 'count', async () => expect(await undo(service, undoing)).toBe(200))
      await ask(service.api())
      for (const mailbox of addresses) expect(await linksTo(service, mailbox, page)).toHaveLength(1)
      for (const mailbox of [thief.email, thief.recovery_email])
        expect(await linksTo(service, mailbox, page)).toEqual([])
    },
  )

  test('makes no token of a reset of the second factor', async () => {
    await using scene = await takenOver()
    const { service, undoing } = scene
    await service.api().mfa.requestReset({ body: { identifier: careful.username } })
    const codes = [
      await service.newestEmail(thief.email),
      await service.newestEmail(thief.recovery_email),
    ].map(codeIn)
    const body = { main_email_code: codes[0] ?? '', recovery_email_code: codes[1] ?? '' }
    let undone = 0
    const { users, namespaces } = service.rooms.stores
    const undoNow = async () => void (undone ||= await undo(service, undoing))
    // The last look before the token is made.
    held(namespaces, 'member', undoNow)
    // The first look only finds the name for the log, before the codes are checked.
    held(users, 'find', async () => held(users, 'find', undoNow))
    expect(await statusOf(service.api().mfa.reset({ params: { user_id: careful.id }, body }))).toBe(401)
    expect(undone).toBe(200)
    expect(await service.rooms.stores.signIns.of(careful.id, '')).toEqual([])
    expect((await users.find(careful.id))?.mfa_secret).not.toBeNull()
  })
})

describe('a copy of the token that changed the password', () => {
  test('ends with it after 72 hours, and so does everything that is issued for it', async () => {
    await using scene = await stolen('observer')
    const { service, api } = scene
    service.clock.forward(hour_ms)
    await api.users.update({ body: { current_password: observer.password, password: 'a-new-rope' } })
    const issued = [
      (await api.users.refresh({})).body.token,
      (await api.users.namespaceToken({ params: { tenant } })).body.token,
      (await api.users.token({ params: { tenant } })).body.token,
    ].map((token) => service.api({ token }))
    // A copy of a copy.
    const sessions = [...issued]
    for (const one of issued) sessions.push(service.api({ token: (await one.users.refresh({})).body.token }))
    const own = service.api({ token: (await signIn(service, observer.username, 'a-new-rope')).body.token })
    service.clock.forward(70 * hour_ms)
    for (const one of [api, ...sessions]) expect(await works(one)).toBe(200)
    for (const one of [api, ...sessions])
      sessions.push(service.api({ token: (await one.users.refresh({})).body.token }))
    const later = service.api({ token: (await own.users.refresh({})).body.token })
    service.clock.forward(hour_ms)
    for (const one of [api, ...sessions]) expect(await works(one)).toBe(401)
    expect(await works(later)).toBe(200)
    service.clock.forward(60 * hour_ms)
    expect(await works(later)).toBe(200)
  })
})

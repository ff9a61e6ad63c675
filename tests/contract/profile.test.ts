// The caller's own profile and password: what may be changed, what each refusal names, that a refused change
// changes nothing, and that nobody can take a name by which somebody else signs in.
import { describe, expect, test } from 'vitest'
import { call, type ApiError } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { users } from '@hawser/contract/users'
import { minute_ms } from '../../server/src/kit/clock.ts'
import { startService, type Service } from '../harness/service.ts'
import { sharedPlace } from '../harness/place.ts'
import { buildWorld, type World } from '../harness/world.ts'
import { refused, statusOf } from './people.ts'

const { observer, operator, administrator } = sample

/** A service with its people, and the observer's own client. */
async function asObserver(service: Service) {
  return observerOf(Object.assign(service, { world: await buildWorld(service) }))
}

async function observerOf(service: Service & { world: World }) {
  const token = await service.world.token('observer')
  const api = service.api({ token })
  return {
    api,
    token,
    profile: async () => {
      const { token: _, tenant: __, role: ___, ...rest } = (await api.users.refresh({})).body
      return rest
    },
    /** Sends what the types would not let through. */
    send: (body: unknown) => call(users.update, { body }, { url: service.url, token }),
  }
}

const signsIn = (service: Service, username: string, password: string) =>
  statusOf(service.api().users.login({ body: { username, password } }))

const before = {
  id: observer.id,
  user: observer.username,
  name: observer.username,
  email: observer.email,
  recovery_email: '',
  mfa: false,
}

describe('Update user', () => {
  // For what is refused, and so changes nothing.
  const place = sharedPlace()

  test.each([
    ['name', { name: 'Vera of the Harbour' }, { name: 'Vera of the Harbour' }],
    ['username', { username: 'Vera-2' }, { user: 'vera-2' }],
    ['email', { email: 'Vera.Two@Example.COM' }, { email: 'vera.two@example.com' }],
    ['recovery_email', { recovery_email: 'Vera@Example.ORG' }, { recovery_email: 'vera@example.org' }],
    ['nothing', {}, {}],
  ])(
    '%s alone is changed, in lower case where it is a name to sign in with, and the rest stays',
    async (_, change, after) => {
      await using service = await startService()
      const { api, profile } = await asObserver(service)
      const answer = await api.users.update({ body: change })
      expect([answer.status, answer.body]).toEqual([200, undefined])
      expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
      expect(await profile()).toEqual({ ...before, ...after })
    },
  )

  test('all of them together, and one signs in by the new names from then on', async () => {
    await using service = await startService()
    const { api, profile } = await asObserver(service)
    await api.users.update({
      body: { name: 'V', username: 'veronica', email: 'v@example.com', recovery_email: 'v@example.org' },
    })
    expect(await profile()).toEqual({
      ...before,
      name: 'V',
      user: 'veronica',
      email: 'v@example.com',
      recovery_email: 'v@example.org',
    })
    for (const username of ['veronica', 'V@EXAMPLE.com'])
      expect(await signsIn(service, username, observer.password)).toBe(200)
    expect(await signsIn(service, observer.username, observer.password)).toBe(401)
    // The old address counts until the new one is confirmed.
    expect(await signsIn(service, observer.email, observer.password)).toBe(200)
  })

  test('what it is already may be set again, in other letters too', async () => {
    await using service = await startService()
    const { api, profile } = await asObserver(service)
    await api.users.update({ body: { username: 'VERA', email: 'VERA@example.com', name: observer.username } })
    expect(await profile()).toEqual(before)
  })

  test('fields that are not the profile’s are not written', async () => {
    await using service = await startService()
    const { send, profile } = await asObserver(service)
    const answer = await send({
      id: administrator.id,
      role: 'owner',
      mfa: true,
      confirmed: false,
      epoch: 99,
      max_namespaces: 0,
      tenant: sample.otherTenant,
    })
    expect(answer.status).toBe(200)
    expect(await profile()).toEqual(before)
    const row = await service.rooms.stores.users.find(observer.id)
    expect(row).toMatchObject({ confirmed: 1, epoch: 1, max_namespaces: -1 })
  })

  test('changes that are sent at once do not undo each other', async () => {
    await using service = await startService()
    const { api, profile } = await asObserver(service)
    await Promise.all([
      api.users.update({ body: { name: 'Veronica' } }),
      api.users.update({ body: { username: 'veronica' } }),
      api.users.update({ body: { email: 'veronica@example.com' } }),
      api.users.update({ body: { recovery_email: 'veronica@example.org' } }),
    ])
    expect(await profile()).toEqual({
      ...before,
      name: 'Veronica',
      user: 'veronica',
      email: 'veronica@example.com',
      recovery_email: 'veronica@example.org',
    })
  })

  test.each<[string, unknown, string[]]>([
    ['an empty name', { name: '' }, ['name']],
    ['a name of 65 letters', { name: 'x'.repeat(65) }, ['name']],
    ['a username of two letters', { username: 'ab' }, ['username']],
    ['a username of 31 letters', { username: 'x'.repeat(31) }, ['username']],
    ['a username with a blank', { username: 've ra' }, ['username']],
    ['a username with a slash', { username: 've/ra' }, ['username']],
    ['a username with an @ that is not the address', { username: 'A-z_0.9@b' }, ['username']],
    ['an e-mail without an @', { email: 'vera.example.com' }, ['email']],
    ['an e-mail with two', { email: 'vera@a@example.com' }, ['email']],
    ['an e-mail with a line break', { email: 'vera@example.com\nbcc: x@example.com' }, ['email']],
    ['an empty e-mail', { email: '' }, ['email']],
    ['a recovery e-mail that is none', { recovery_email: 'vera' }, ['recovery_email']],
    ['a password of four letters', { password: 'abcd', current_password: observer.password }, ['password']],
    [
      'a password of 31 letters',
      { password: 'x'.repeat(31), current_password: observer.password },
      ['password'],
    ],
    ['a number for a name', { name: 7 }, ['name']],
    ['null for a username', { username: null }, ['username']],
    [
      'several at once',
      { name: '', username: 'x', email: 'x', recovery_email: 'x' },
      ['name', 'username', 'email', 'recovery_email'],
    ],
  ])('%s is refused with the names of the fields', async (_, body, fields) => {
    const { send, profile } = await observerOf(place)
    const answer = await send(body)
    expect(answer.status).toBe(400)
    expect((answer.body as string[]).toSorted()).toEqual(fields.toSorted())
    expect(await profile()).toEqual(before)
  })

  test.each([
    ['the longest', { name: 'x'.repeat(64), username: 'x'.repeat(30) }],
    ['the shortest', { name: 'x', username: 'a-_' }],
    ['every sign that a username may have', { username: 'A-z_0.9' }],
  ])('%s are taken', async (_, body) => {
    await using service = await startService()
    const { api } = await asObserver(service)
    expect((await api.users.update({ body })).status).toBe(200)
  })
})

describe('the recovery e-mail', () => {
  const place = sharedPlace()
  const both = ['email', 'recovery_email']
  test.each<[string, { email?: string; recovery_email?: string }]>([
    ['equal to the present e-mail', { recovery_email: observer.email }],
    ['equal to the present e-mail in other letters', { recovery_email: 'Vera@EXAMPLE.com' }],
    ['equal to the new e-mail', { email: 'new@example.com', recovery_email: 'New@example.com' }],
    ['equal to the e-mail that is being left', { email: 'new@example.com', recovery_email: observer.email }],
  ])('%s is refused', async (_, body) => {
    const { api, profile } = await observerOf(place)
    const failure = await refused(api.users.update({ body }))
    expect([failure.status, failure.body]).toEqual([400, both])
    expect(await profile()).toEqual(before)
  })

  test('cannot become the e-mail from the other side either', async () => {
    await using service = await startService()
    const { api } = await asObserver(service)
    await api.users.update({ body: { recovery_email: 'vera@example.org' } })
    const failure = await refused(api.users.update({ body: { email: 'VERA@example.org' } }))
    expect([failure.status, failure.body]).toEqual([400, both])
  })

  test('cannot be emptied once it was set; before that, empty means nothing', async () => {
    await using service = await startService()
    const { api, profile } = await asObserver(service)
    expect((await api.users.update({ body: { recovery_email: '' } })).status).toBe(200)
    await api.users.update({ body: { recovery_email: 'vera@example.org' } })
    const failure = await refused(api.users.update({ body: { name: 'V', recovery_email: '' } }))
    expect([failure.status, failure.body]).toEqual([400, ['recovery_email']])
    expect(await profile()).toEqual({ ...before, recovery_email: 'vera@example.org' })
    await api.users.update({ body: { recovery_email: 'vera@example.net' } })
    expect((await profile()).recovery_email).toBe('vera@example.net')
  })

  test('may be the same for two people', async () => {
    await using service = await startService()
    const { api } = await asObserver(service)
    const shared = { recovery_email: `${administrator.username}@example.org` }
    expect((await api.users.update({ body: shared })).status).toBe(200)
  })
})

describe('what somebody else has', () => {
  const place = sharedPlace()

  test.each<[string, { username?: string; email?: string }, string[]]>([
    ['a username', { username: operator.username }, ['username']],
    ['a username in other letters', { username: operator.username.toUpperCase() }, ['username']],
    ['an e-mail', { email: operator.email }, ['email']],
    ['an e-mail in other letters', { email: 'OSKAR@Example.com' }, ['email']],
    [
      'both, of two people',
      { username: operator.username, email: administrator.email },
      ['username', 'email'],
    ],
    ['an e-mail as a username', { username: operator.email }, ['username']],
    ['an e-mail as a username in other letters', { username: 'Oskar@Example.com' }, ['username']],
  ])('%s is refused with 409 and the names of the fields', async (_, body, fields) => {
    const { api, profile } = await observerOf(place)
    const failure = await refused(api.users.update({ body: { name: 'Changed', ...body } }))
    expect([failure.status, failure.body]).toEqual([409, fields])
    expect(await profile()).toEqual(before)
  })

  test('a username that looks like an e-mail cannot be another’s e-mail', async () => {
    await using service = await startService()
    const { api } = await asObserver(service)
    const other = service.api({
      token: (
        await service
          .api()
          .users.login({ body: { username: operator.username, password: operator.password } })
      ).body.token,
    })
    await other.users.update({ body: { username: operator.email } })
    const failure = await refused(api.users.update({ body: { email: 'OSKAR@example.com' } }))
    expect([failure.status, failure.body]).toEqual([409, ['email']])
    const registering = { name: 'Pierre', username: 'pierre', email: operator.email, password: 'lighthouse' }
    expect((await refused(service.api().users.register({ body: registering }))).body).toEqual(['email'])
    const crossed = { ...registering, email: 'pierre@example.com', username: observer.email }
    expect((await refused(service.api().users.register({ body: crossed }))).body).toEqual(['username'])
  })

  test('one’s own e-mail may be one’s username', async () => {
    await using service = await startService()
    const { api, profile } = await asObserver(service)
    await api.users.update({ body: { username: observer.email } })
    expect(await profile()).toMatchObject({ user: observer.email, email: observer.email })
    await api.users.update({ body: { name: 'Vera', email: observer.email } })
    expect(await signsIn(service, observer.email, observer.password)).toBe(200)
  })

  test('of two who ask for the same name at once, one gets it and the other a 409', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const tokens = [await world.token('observer'), await world.token('operator')]
    const outcomes = await Promise.allSettled(
      tokens.map((token) => service.api({ token }).users.update({ body: { username: 'admiral' } })),
    )
    const failures = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason as ApiError] : [],
    )
    expect(failures.map(({ status, body }) => [status, body])).toEqual([[409, ['username']]])
  })
})

describe('a new password', () => {
  const place = sharedPlace()

  test('needs the present one, and signs in from then on', async () => {
    await using service = await startService()
    const { api } = await asObserver(service)
    const answer = await api.users.update({
      body: { password: 'a-new-rope', current_password: observer.password },
    })
    expect([answer.status, answer.body]).toEqual([200, undefined])
    expect(await signsIn(service, observer.username, observer.password)).toBe(401)
    expect(await signsIn(service, observer.username, 'a-new-rope')).toBe(200)
  })

  test.each<[string, { current_password?: string }]>([
    ['without the present one', {}],
    ['with an empty one', { current_password: '' }],
    ['with a wrong one', { current_password: 'not-the-password' }],
    ['with the new one for the present one', { current_password: 'a-new-rope' }],
  ])('is refused %s', async (_, given) => {
    const { api } = await observerOf(place)
    const failure = await refused(api.users.update({ body: { password: 'a-new-rope', ...given } }))
    expect([failure.status, failure.body]).toEqual([400, ['current_password']])
    expect(await signsIn(place, observer.username, observer.password)).toBe(200)
  })

  test('the present one alone asks for nothing, right or wrong', async () => {
    await using service = await startService()
    const { api } = await asObserver(service)
    expect((await api.users.update({ body: { current_password: 'not-the-password' } })).status).toBe(200)
  })

  test.each(['abcde', 'x'.repeat(30), 'пароль', ' blanks too '])(
    '%j is long enough and not too long',
    async (password) => {
      await using service = await startService()
      const { api } = await asObserver(service)
      await api.users.update({ body: { password, current_password: observer.password } })
      expect(await signsIn(service, observer.username, password)).toBe(200)
    },
  )

  test.each<[number, { email?: string; recovery_email?: string; username?: string }]>([
    [409, { email: operator.email }],
    [409, { username: operator.username }],
    [400, { recovery_email: observer.email }],
  ])('is not set when the rest of the change is refused with %d', async (status, rest) => {
    const { api, profile } = await observerOf(place)
    const failure = await refused(
      api.users.update({ body: { ...rest, password: 'a-new-rope', current_password: observer.password } }),
    )
    expect(failure.status).toBe(status)
    expect(await profile()).toEqual(before)
    expect(await signsIn(place, observer.username, observer.password)).toBe(200)
  })

  test('and nothing else is changed when the present one is wrong', async () => {
    await using service = await startService()
    const { api, profile } = await asObserver(service)
    const body = {
      name: 'Changed',
      email: 'changed@example.com',
      password: 'a-new-rope',
      current_password: 'not-the-password',
    }
    expect((await refused(api.users.update({ body }))).body).toEqual(['current_password'])
    expect(await profile()).toEqual(before)
  })

  test('cannot be had by guessing the present one: after five tries there is a rest of fifteen minutes', async () => {
    await using service = await startService()
    const { api } = await asObserver(service)
    const change = (current_password: string) =>
      statusOf(api.users.update({ body: { password: 'a-new-rope', current_password } }))
    for (const i of [1, 2, 3, 4, 5]) expect(await change(`guess-${i}`)).toBe(400)
    expect(await change('guess-6')).toBe(429)
    expect(await change(observer.password)).toBe(429)
    service.clock.forward(15 * minute_ms)
    expect(await change(observer.password)).toBe(200)
  })
})

describe('the older forms', () => {
  test('Update user data changes the caller’s own profile by the same rules', async () => {
    await using service = await startService()
    const { api, profile } = await asObserver(service)
    const params = { id: observer.id }
    await api.users.updateData({ params, body: { name: 'Veronica', recovery_email: 'V@example.org' } })
    expect(await profile()).toEqual({ ...before, name: 'Veronica', recovery_email: 'v@example.org' })
    const invalid = await refused(api.users.updateData({ params, body: { username: 'x', name: '' } }))
    expect([invalid.status, invalid.fields?.toSorted()]).toEqual([400, ['name', 'username']])
    const taken = await refused(api.users.updateData({ params, body: { username: operator.username } }))
    expect([taken.status, taken.body]).toEqual([409, ['username']])
    const emptied = await refused(api.users.updateData({ params, body: { recovery_email: '' } }))
    expect([emptied.status, emptied.body]).toEqual([400, ['recovery_email']])
  })

  test('it does not take a password', async () => {
    await using service = await startService()
    const { token } = await asObserver(service)
    const body = { password: 'a-new-rope', current_password: observer.password }
    const answer = await call(
      users.updateData,
      { params: { id: observer.id }, body },
      { url: service.url, token },
    )
    expect(answer.status).toBe(200)
    expect(await signsIn(service, observer.username, observer.password)).toBe(200)
  })

  test('Update user password needs the present password', async () => {
    await using service = await startService()
    const { api } = await asObserver(service)
    const change = (current_password: string, new_password: string) =>
      api.users.updatePassword({ params: { id: observer.id }, body: { current_password, new_password } })
    const wrong = await refused(change('not-the-password', 'a-new-rope'))
    expect([wrong.status, wrong.body]).toEqual([400, ['current_password']])
    const short = await refused(change(observer.password, 'abcd'))
    expect([short.status, short.body]).toEqual([400, ['new_password']])
    expect((await change(observer.password, 'a-new-rope')).status).toBe(200)
    expect(await signsIn(service, observer.username, 'a-new-rope')).toBe(200)
  })

  test('both act on the caller’s own id only, whoever the caller is', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    for (const person of ['observer', 'owner'] as const) {
      const api = service.api({ token: await world.token(person) })
      for (const id of [operator.id, '65f0000000000000000000ff', 'oskar']) {
        const params = { id }
        const { password } = operator
        expect(await statusOf(api.users.updateData({ params, body: { name: 'Mine' } }))).toBe(403)
        expect(
          await statusOf(
            api.users.updatePassword({
              params,
              body: { current_password: password, new_password: 'a-new-rope' },
            }),
          ),
        ).toBe(403)
      }
    }
    expect((await service.rooms.stores.users.find(operator.id))?.name).toBe(operator.username)
    expect(await signsIn(service, operator.username, operator.password)).toBe(200)
  })

  test('an id in the body does not stand for the one in the path', async () => {
    await using service = await startService()
    const { token, profile } = await asObserver(service)
    const answer = await call(
      users.updateData,
      { params: { id: operator.id }, body: { id: observer.id, name: 'Mine' } },
      { url: service.url, token },
    )
    expect(answer.status).toBe(403)
    expect(await profile()).toEqual(before)
  })
})

// Signing in with a password, and the lock-out: who gets in, what the answers tell and what they do not, and
// that guessing is limited for one source and one user, however the guesses are sent.
import { describe, expect, test } from 'vitest'
import { call } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { users } from '@hawser/contract/users'
import { minute_ms } from '../../server/src/kit/clock.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { appearance, from, lockOf, ownFolder, refused } from './people.ts'

const { observer, stranger, unconfirmed } = sample
const right = { username: observer.username, password: observer.password }
const wrong = { username: observer.username, password: 'not-the-password' }

/** Both addresses of signing in, told by the name of their operation. */
const doors = ['login', 'auth'] as const

function door(service: Service, verb: (typeof doors)[number], body: unknown, source = '192.0.2.1') {
  return call(users[verb], { body }, { url: service.url, ...from(source) })
}

/** One wrong password from a source: the answer. */
const guess = (service: Service, source?: string, body: unknown = wrong) =>
  door(service, 'login', body, source)

/** How long the lock lasts that an answer tells, to the nearest minute; 0: there is none. */
function minutesLeft(service: Service, answer: { headers: Headers }): number {
  const until = lockOf(answer)
  return until === 0 ? 0 : Math.round((until - service.clock.now() / 1000) / 60)
}

async function guessUntilLocked(service: Service, source?: string, body: unknown = wrong): Promise<number> {
  for (const status of [401, 401]) expect((await guess(service, source, body)).status).toBe(status)
  const third = await guess(service, source, body)
  expect(third.status).toBe(429)
  return lockOf(third)
}

describe('signing in', () => {
  test.each([
    ['the username', observer.username],
    ['the username in capitals', observer.username.toUpperCase()],
    ['the e-mail address', observer.email],
    ['the e-mail address in mixed case', 'Vera@Example.COM'],
  ])('%s will do', async (_, username) => {
    await using service = await startService()
    await buildWorld(service)
    const { body } = await service.api().users.login({ body: { username, password: observer.password } })
    expect(body.id).toBe(observer.id)
  })

  test.each(doors)('%s answers with the profile, a token that works, and no lock', async (verb) => {
    await using service = await startService()
    await buildWorld(service)
    const { body, headers } = await service.api().users[verb]({ body: right })
    expect(body).toEqual({
      token: expect.any(String) as string,
      id: observer.id,
      user: observer.username,
      name: observer.username,
      email: observer.email,
      recovery_email: '',
      tenant: sample.tenant,
      role: 'observer',
      mfa: false,
    })
    expect(headers.get('x-account-lockout')).toBe('0')
    expect(headers.has('x-mfa-token')).toBe(false)
    expect((await service.api({ token: body.token }).devices.list({})).status).toBe(200)
  })

  test('passwords, unlike names, are told apart by letter case', async () => {
    await using service = await startService()
    await buildWorld(service)
    const shouted = { ...right, password: right.password.toUpperCase() }
    expect((await refused(service.api().users.login({ body: shouted }))).status).toBe(401)
  })

  test('a user without a namespace gets a token with an empty tenant and role', async () => {
    await using service = await startService()
    await service.rooms.users.create(
      { name: 'Nora', username: 'nora', email: 'nora@example.com', password: 'lighthouse' },
      true,
    )
    const { body } = await service.api().users.login({ body: { username: 'nora', password: 'lighthouse' } })
    expect(body).toMatchObject({ tenant: '', role: '' })
  })

  test('the namespace used last is chosen again, and the oldest membership when that one is over', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const signIn = async () =>
      (
        await service
          .api()
          .users.login({ body: { username: stranger.username, password: stranger.password } })
      ).body
    await service.rooms.namespaces.join(sample.tenant, stranger.id, 'operator')
    const first = await signIn()
    expect(first).toMatchObject({ tenant: sample.otherTenant, role: 'owner' })
    await service.api({ token: first.token }).users.namespaceToken({ params: { tenant: sample.tenant } })
    expect(await signIn()).toMatchObject({ tenant: sample.tenant, role: 'operator' })
    const owner = service.api({ token: await world.token('owner') })
    await owner.namespaces.removeMember({ params: { tenant: sample.tenant, uid: stranger.id } })
    expect(await signIn()).toMatchObject({ tenant: sample.otherTenant, role: 'owner' })
  })

  test('the moment of the sign-in is remembered', async () => {
    await using service = await startService()
    await buildWorld(service)
    const before = service.clock.now()
    await service.api().users.login({ body: right })
    const row = await service.rooms.stores.users.find(observer.id)
    expect(Date.parse(row?.last_login_at ?? '')).toBeGreaterThanOrEqual(before)
  })

  test('an unconfirmed user is refused with 403, but only with the right password', async () => {
    await using service = await startService()
    await buildWorld(service)
    const login = (password: string) =>
      refused(service.api().users.login({ body: { username: unconfirmed.username, password } }))
    expect((await login('not-the-password')).status).toBe(401)
    const failure = await login(unconfirmed.password)
    expect(failure.status).toBe(403)
    expect(failure.body).toEqual({ message: expect.any(String) as string })
    expect(lockOf(failure)).toBe(0)
  })

  test('credentials that come along are not looked at', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { body } = await service
      .api({ token: 'not.a.token', apiKey: 'not-a-key' })
      .users.login({ body: right })
    expect(body.id).toBe(observer.id)
  })
})

describe('X-Account-Lockout is on every answer', () => {
  const bodies: [number, unknown][] = [
    [200, right],
    [401, wrong],
    [400, {}],
    [400, { username: observer.username }],
    [400, { password: observer.password }],
    [400, { username: '', password: '' }],
    [400, { username: 7, password: true }],
    [400, ['vera', 'rope-and-anchor']],
    [400, null],
    [403, { username: unconfirmed.username, password: unconfirmed.password }],
  ]
  test.each(doors)('of %s, whatever is sent', async (verb) => {
    await using service = await startService()
    await buildWorld(service)
    for (const [status, body] of bodies) {
      const answer = await door(service, verb, body)
      expect([answer.status, lockOf(answer)], JSON.stringify(body)).toEqual([status, 0])
      expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    }
    const send = (body: string, type: string) =>
      fetch(service.url + users[verb].path, { method: 'POST', body, headers: { 'content-type': type } })
    for (const [status, body, type] of [
      [400, '{"username":', 'application/json'],
      [415, 'username=vera&password=x', 'application/x-www-form-urlencoded'],
      [413, JSON.stringify({ username: 'x'.repeat(1024 * 1024) }), 'application/json'],
    ] as const) {
      const answer = await send(body, type)
      expect([answer.status, lockOf(answer)], type).toEqual([status, 0])
    }
  })

  test('also when the source makes too many calls', async () => {
    await using service = await startService({ env: { HAWSER_RATE_LIMIT: '1/10' } })
    await buildWorld(service)
    await guess(service)
    const answer = await guess(service)
    expect([answer.status, lockOf(answer)]).toEqual([429, 0])
  })
})

describe('answers do not tell whether a user exists', () => {
  test('a wrong password and an unknown user look the same, three times over', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const verb of doors) {
      for (const attempt of [1, 2, 3]) {
        const source = verb === 'login' ? '192.0.2.1' : '192.0.2.2'
        const known = await door(service, verb, wrong, source)
        const unknown = await door(service, verb, { ...wrong, username: 'nobody' }, source)
        expect(appearance(unknown)).toEqual(appearance(known))
        expect(minutesLeft(service, unknown)).toBe(attempt < 3 ? 0 : 1)
        expect(minutesLeft(service, known)).toBe(attempt < 3 ? 0 : 1)
      }
    }
  })

  test('an unconfirmed user with a wrong password looks like any other', async () => {
    await using service = await startService()
    await buildWorld(service)
    const one = await guess(service, '192.0.2.1', { ...wrong, username: unconfirmed.username })
    const other = await guess(service, '192.0.2.2', { ...wrong, username: 'nobody' })
    expect(appearance(one)).toEqual(appearance(other))
  })
})

describe('lock-out', () => {
  test('two wrong passwords answer 401, the third 429 with the end of the lock', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const _ of [1, 2]) {
      const answer = await guess(service)
      expect([answer.status, lockOf(answer)]).toEqual([401, 0])
    }
    const before = service.clock.now()
    const third = await guess(service)
    expect(third.status).toBe(429)
    expect(lockOf(third)).toBeGreaterThanOrEqual(before / 1000 + 60)
    expect(lockOf(third)).toBeLessThanOrEqual(service.clock.now() / 1000 + 61)
    expect(Number(third.headers.get('retry-after'))).toBeGreaterThan(58)
    expect(Number(third.headers.get('retry-after'))).toBeLessThanOrEqual(60)
    expect(third.body).toEqual({ message: expect.any(String) as string })
  })

  test('while it lasts, even the right password is refused, at both addresses, for the name that was typed', async () => {
    await using service = await startService()
    await buildWorld(service)
    const until = await guessUntilLocked(service)
    for (const verb of doors) {
      const answer = await door(service, verb, { ...right, username: observer.username.toUpperCase() })
      expect([answer.status, lockOf(answer)]).toEqual([429, until])
    }
    expect((await door(service, 'login', { ...right, username: observer.email })).status).toBe(200)
    service.clock.forward(minute_ms)
    expect((await guess(service, undefined, right)).status).toBe(200)
  })

  test('wrong passwords at both addresses count together, and for another name of the user apart', async () => {
    await using service = await startService()
    await buildWorld(service)
    expect((await door(service, 'login', wrong)).status).toBe(401)
    expect((await door(service, 'auth', wrong)).status).toBe(401)
    expect((await door(service, 'auth', { ...wrong, username: observer.email })).status).toBe(401)
    expect(
      (await door(service, 'login', { ...wrong, username: observer.username.toUpperCase() })).status,
    ).toBe(429)
  })

  test('attempts during a lock neither count nor lengthen it', async () => {
    await using service = await startService()
    await buildWorld(service)
    const until = await guessUntilLocked(service)
    service.clock.forward(minute_ms / 2)
    for (const _ of [1, 2, 3, 4, 5]) expect(lockOf(await guess(service))).toBe(until)
    service.clock.forward(minute_ms / 2)
    // The fourth that counts: four minutes, not sixty.
    expect(minutesLeft(service, await guess(service))).toBe(4)
  })

  test('it lasts 1, 4, 16 and 60 minutes, and after the longest everything is forgotten', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const _ of [1, 2]) expect((await guess(service)).status).toBe(401)
    for (const minutes of [1, 4, 16, 60]) {
      const answer = await guess(service)
      expect([answer.status, minutesLeft(service, answer)]).toEqual([429, minutes])
      service.clock.forward(minutes * minute_ms - 2000)
      expect((await guess(service, undefined, right)).status, `just before ${minutes} minutes`).toBe(429)
      service.clock.forward(2000)
    }
    for (const _ of [1, 2]) expect((await guess(service)).status).toBe(401)
    expect(minutesLeft(service, await guess(service))).toBe(1)
  })

  test('one or two wrong passwords are forgotten after two minutes', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const _ of [1, 2]) expect((await guess(service)).status).toBe(401)
    service.clock.forward(2 * minute_ms)
    for (const _ of [1, 2]) expect((await guess(service)).status).toBe(401)
    expect((await guess(service)).status).toBe(429)
  })

  test('the right password clears the count', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const _ of [1, 2, 3]) {
      for (const _ of [1, 2]) expect((await guess(service)).status).toBe(401)
      expect((await guess(service, undefined, right)).status).toBe(200)
    }
  })

  test('an unknown user is locked in the same way', async () => {
    await using service = await startService()
    await buildWorld(service)
    const nobody = { username: 'Nobody@example.com', password: 'whatever' }
    const until = await guessUntilLocked(service, undefined, nobody)
    // The same name in other letters is the same name.
    expect(lockOf(await guess(service, undefined, { ...nobody, username: 'nobody@EXAMPLE.com' }))).toBe(until)
    service.clock.forward(minute_ms)
    expect(minutesLeft(service, await guess(service, undefined, nobody))).toBe(4)
  })

  test('another source is not locked, nor is another user from the same source', async () => {
    await using service = await startService()
    await buildWorld(service)
    await guessUntilLocked(service, '192.0.2.1')
    expect((await guess(service, '192.0.2.1', right)).status).toBe(429)
    expect((await guess(service, '192.0.2.2', right)).status).toBe(200)
    expect((await guess(service, '2001:db8::2', right)).status).toBe(200)
    const other = { username: sample.operator.username, password: sample.operator.password }
    expect((await guess(service, '192.0.2.1', other)).status).toBe(200)
    // A success from elsewhere does not open the lock.
    expect((await guess(service, '192.0.2.1', right)).status).toBe(429)
  })

  test('it outlives a restart of the server', async () => {
    using folder = ownFolder()
    let until: number
    {
      await using service = await startService({ folder: folder.path })
      await buildWorld(service)
      until = await guessUntilLocked(service)
    }
    await using service = await startService({ folder: folder.path })
    const answer = await guess(service, undefined, right)
    expect([answer.status, lockOf(answer)]).toEqual([429, until])
  })

  test('a hundred wrong passwords sent at once are a hundred attempts: two answers, then the lock', async () => {
    await using service = await startService()
    await buildWorld(service)
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) => guess(service, undefined, { ...wrong, password: `guess-${i}` })),
    )
    const count = (status: number) => answers.filter((answer) => answer.status === status).length
    expect([count(401), count(429)]).toEqual([2, 98])
    for (const answer of answers) lockOf(answer)
    expect((await guess(service, undefined, right)).status).toBe(429)
    // What was refused was not counted: the next wrong one after the lock is the fourth.
    service.clock.forward(minute_ms)
    expect(minutesLeft(service, await guess(service))).toBe(4)
  })

  test('guesses sent at once at both addresses are judged one after the other as well', async () => {
    await using service = await startService()
    await buildWorld(service)
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => door(service, doors[i % 2]!, wrong)),
    )
    expect(answers.filter((answer) => answer.status === 401)).toHaveLength(2)
    const late = await Promise.all(doors.map((verb) => door(service, verb, right)))
    expect(late.map((answer) => answer.status)).toEqual([429, 429])
  })
})

// Registration, confirmation by e-mail and the way back in after a forgotten password. The tests read the
// e-mails as people do: they take the link from the text part and use what it carries. At the end, nothing
// secret stands in the log or in any file but the outbox.
import type { AddressInfo } from 'node:net'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer } from 'smtp-server'
import { describe, expect, test } from 'vitest'
import { call, type ApiError } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { users } from '@hawser/contract/users'
import { day_ms, hour_ms, minute_ms } from '../../server/src/kit/clock.ts'
import { sharedPlace } from '../harness/place.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { appearance, foundIn, linkIn, refused, statusesOf, statusOf } from './people.ts'

const { observer, unconfirmed } = sample
const nora = { name: 'Nora', email: 'nora@example.com', username: 'nora', password: 'lighthouse' }

/** What the link of an e-mail carries. */
function carriedBy(letter: Email): { email: string; id: string; token: string } {
  const { searchParams } = linkIn(letter)
  return {
    email: searchParams.get('email') ?? '',
    id: searchParams.get('id') ?? '',
    token: searchParams.get('token') ?? '',
  }
}

const emailsTo = async (service: Service, to: string) =>
  (await service.emails()).filter((letter) => letter.to?.some(({ address }) => address === to))

const login = (service: Service, { username, password }: { username: string; password: string }) =>
  statusOf(service.api().users.login({ body: { username, password } }))

const activate = (service: Service, { email, token }: { email: string; token: string }) =>
  statusOf(service.api().users.activate({ query: { email, token } }))

describe('registering', () => {
  // For what is refused, and for what does not get in each other's way.
  const place = sharedPlace()

  test('makes a user who waits for an e-mail, and the link in it lets the user in', async () => {
    await using service = await startService()
    const api = service.api()
    const answer = await api.users.register({ body: { ...nora, email_marketing: true } })
    expect([answer.status, answer.body]).toEqual([200, undefined])
    expect(await login(service, nora)).toBe(403)
    const letter = await service.newestEmail(nora.email)
    const link = linkIn(letter)
    expect(link.origin + link.pathname).toBe('http://hawser.test/validation-account')
    expect(letter.html).toContain(link.href.replaceAll('&', '&amp;'))
    const { email, token } = carriedBy(letter)
    expect(email).toBe(nora.email)
    const confirmed = await api.users.activate({ query: { email, token } })
    expect([confirmed.status, confirmed.body]).toEqual([200, undefined])
    const { body } = await api.users.login({ body: nora })
    expect(body).toMatchObject({
      user: 'nora',
      name: 'Nora',
      email: nora.email,
      recovery_email: '',
      tenant: '',
      role: '',
      mfa: false,
    })
    expect(body.id).toMatch(/^[0-9a-f]{24}$/)
  })

  test('names and addresses are kept in lower case', async () => {
    await using service = await startService()
    await service
      .api()
      .users.register({ body: { ...nora, username: 'NORA', email: 'Nora+Post@Example.COM' } })
    const { email, token } = carriedBy(await service.newestEmail('nora+post@example.com'))
    expect(email).toBe('nora+post@example.com')
    expect(await activate(service, { email: 'NORA+post@example.com', token })).toBe(200)
    expect(await login(service, { ...nora, username: 'nora+post@example.com' })).toBe(200)
    expect(await login(service, nora)).toBe(200)
  })

  test.each<[string, unknown, string[]]>([
    ['nothing at all', {}, ['email', 'name', 'password', 'username']],
    ['an empty name', { ...nora, name: '' }, ['name']],
    ['a name of 65 letters', { ...nora, name: 'x'.repeat(65) }, ['name']],
    ['a username of two letters', { ...nora, username: 'no' }, ['username']],
    ['a username of 31 letters', { ...nora, username: 'x'.repeat(31) }, ['username']],
    ['a username with a sign that is not allowed', { ...nora, username: 'nora!' }, ['username']],
    ['a username with an @ that is not the address', { ...nora, username: 'nora@9' }, ['username']],
    ['an address that is none', { ...nora, email: 'nora' }, ['email']],
    ['an address with a blank', { ...nora, email: 'no ra@example.com' }, ['email']],
    ['a password of four letters', { ...nora, password: 'abcd' }, ['password']],
    ['a password of 31 letters', { ...nora, password: 'x'.repeat(31) }, ['password']],
    ['a wish that is not yes or no', { ...nora, email_marketing: 'yes' }, ['email_marketing']],
    [
      'everything wrong',
      { name: '', email: '', username: '', password: '' },
      ['email', 'name', 'password', 'username'],
    ],
    [
      'one absent and one wrong',
      { name: nora.name, email: nora.email, username: 'x' },
      ['password', 'username'],
    ],
    [
      'values of the wrong kind',
      { name: 1, email: true, username: [], password: {} },
      ['email', 'name', 'password', 'username'],
    ],
  ])('%s is refused with all offending fields', async (_, body, fields) => {
    const answer = await call(users.register, { body }, { url: place.url })
    expect([answer.status, (answer.body as string[]).toSorted()]).toEqual([400, fields])
    expect(await emailsTo(place, nora.email)).toEqual([])
  })

  test.each([
    ['the shortest', { name: 'N', username: 'nor', password: 'abcde' }],
    ['the longest', { name: 'x'.repeat(64), username: 'x'.repeat(30), password: 'x'.repeat(30) }],
    ['every sign that a username may have', { ...nora, username: 'N-o_r.a9' }],
    ['the address itself', { ...nora, username: 'N-o_r.a@example.com' }],
  ])('%s are taken', async (_, fields) => {
    const body = { ...fields, email: `${fields.username}@example.com`.replace(/(@.*)@.*/, '$1') }
    expect((await place.nobody.users.register({ body })).status).toBe(200)
  })

  test.each<[string, { username?: string; email?: string }, string[]]>([
    ['the username', { username: observer.username }, ['username']],
    ['the username in other letters', { username: 'VERA' }, ['username']],
    ['the e-mail', { email: 'Vera@Example.com' }, ['email']],
    ['both', { username: observer.username, email: observer.email }, ['username', 'email']],
    ['someone’s e-mail as a username', { username: observer.email }, ['username']],
  ])('what is in use already, %s, is refused with 409 and its names', async (_, clash, fields) => {
    const failure = await refused(place.nobody.users.register({ body: { ...nora, ...clash } }))
    expect([failure.status, failure.body]).toEqual([409, fields])
    expect(await emailsTo(place, nora.email)).toEqual([])
    expect(await emailsTo(place, observer.email)).toEqual([])
  })

  test('of two who ask for the same name at once, one gets it', async () => {
    await using service = await startService()
    const ask = (email: string) => service.api().users.register({ body: { ...nora, email } })
    const outcomes = await Promise.allSettled([ask('one@example.com'), ask('two@example.com')])
    const failures = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason as ApiError] : [],
    )
    expect(failures.map(({ status, body }) => [status, body])).toEqual([[409, ['username']]])
  })

  test('is refused with 403 where it is closed', async () => {
    await using service = await startService({ env: { HAWSER_REGISTRATION: 'closed' } })
    const failure = await refused(service.api().users.register({ body: nora }))
    expect([failure.status, failure.body]).toEqual([403, { message: expect.any(String) as string }])
    expect(await service.rooms.stores.users.list()).toEqual([])
    expect(await service.emails()).toEqual([])
  })

  test('does not let the caller set what is not asked for', async () => {
    await using service = await startService()
    const body = {
      ...nora,
      confirmed: true,
      id: observer.id,
      max_namespaces: 99,
      mfa: true,
      recovery_email: 'x@example.com',
    }
    expect((await call(users.register, { body }, { url: service.url })).status).toBe(200)
    const row = await service.rooms.stores.users.findByIdentifier('nora')
    expect(row).toMatchObject({ confirmed: 0, recovery_email: null, mfa_secret: null })
    expect(row?.id).not.toBe(observer.id)
  })
})

describe('the activation link', () => {
  test('works once', async () => {
    await using service = await startService()
    await service.api().users.register({ body: nora })
    const carried = carriedBy(await service.newestEmail(nora.email))
    const follow = () =>
      service.api().users.activate({ query: { email: carried.email, token: carried.token } })
    expect(await statusesOf([follow(), follow()])).toEqual([200, 401])
    expect(await activate(service, carried)).toBe(401)
    expect(await login(service, nora)).toBe(200)
  })

  test('works for 24 hours and not longer', async () => {
    await using service = await startService()
    await service.api().users.register({ body: nora })
    await service.api().users.register({ body: { ...nora, username: 'late', email: 'late@example.com' } })
    const [inTime, late] = [
      carriedBy(await service.newestEmail(nora.email)),
      carriedBy(await service.newestEmail('late@example.com')),
    ]
    service.clock.forward(day_ms - minute_ms)
    expect(await activate(service, inTime)).toBe(200)
    service.clock.forward(minute_ms)
    expect(await activate(service, late)).toBe(401)
    expect(await login(service, { ...nora, username: 'late' })).toBe(403)
  })

  test('is bound to its e-mail address: with another it is refused and not used up', async () => {
    await using service = await startService()
    await buildWorld(service)
    await service.api().users.register({ body: nora })
    const { email, token } = carriedBy(await service.newestEmail(nora.email))
    for (const other of [unconfirmed.email, 'nobody@example.com', 'nora']) {
      const failure = await refused(service.api().users.activate({ query: { email: other, token } }))
      expect([failure.status, failure.body]).toEqual([401, { message: expect.any(String) as string }])
    }
    expect(await activate(service, { email, token: 'not-the-token' })).toBe(401)
    expect(await activate(service, { email, token: sample.activationToken })).toBe(401)
    expect(await activate(service, { email, token })).toBe(200)
  })

  test('needs both of its parts', async () => {
    await using service = await startService()
    for (const query of [{}, { email: nora.email }, { token: 'x' }, { email: '', token: '' }])
      expect((await call(users.activate, { query }, { url: service.url })).status).toBe(400)
  })

  test('is no recovery token, nor the reverse', async () => {
    await using service = await startService()
    await buildWorld(service)
    expect(await activate(service, { email: observer.email, token: sample.recoveryToken })).toBe(401)
    const body = { password: 'a-new-rope', token: sample.activationToken }
    expect(await statusOf(service.api().users.resetPassword({ params: { uid: unconfirmed.id }, body }))).toBe(
      401,
    )
  })
})

describe('Resend confirmation', () => {
  test('sends a new link and ends the old one', async () => {
    await using service = await startService()
    await service.api().users.register({ body: nora })
    const old = carriedBy(await service.newestEmail(nora.email))
    const answer = await service.api().users.resend({ body: { username: 'NORA' } })
    expect([answer.status, answer.body]).toEqual([200, undefined])
    const fresh = carriedBy(await service.newestEmail(nora.email, 1))
    expect(fresh.token).not.toBe(old.token)
    expect(await activate(service, old)).toBe(401)
    expect(await activate(service, fresh)).toBe(200)
  })

  test('answers the same whoever is asked for, and writes only to those who wait', async () => {
    await using service = await startService()
    await buildWorld(service)
    const answers = []
    for (const username of [unconfirmed.username, observer.username, 'nobody', 'nobody@example.com'])
      answers.push(appearance(await service.api().users.resend({ body: { username } })))
    expect(answers[0]).toMatchObject({ status: 200, body: undefined })
    for (const answer of answers) expect(answer).toEqual(answers[0])
    const letters = await service.emails()
    expect(letters.map((letter) => letter.to?.[0]?.address)).toEqual([unconfirmed.email])
  })

  test('sends at most five e-mails an hour, the first one included, and goes on an hour later', async () => {
    await using service = await startService()
    await service.api().users.register({ body: nora })
    const ask = async () => {
      expect(await statusOf(service.api().users.resend({ body: { username: nora.username } }))).toBe(200)
      return (await emailsTo(service, nora.email)).length
    }
    const counts = []
    for (const _ of [1, 2, 3, 4, 5, 6]) counts.push(await ask())
    expect(counts).toEqual([2, 3, 4, 5, 5, 5])
    // The last link that was sent still works.
    const last = carriedBy((await emailsTo(service, nora.email)).at(-1)!)
    service.clock.forward(hour_ms)
    expect(await ask()).toBe(6)
    expect(await activate(service, last)).toBe(401)
    expect(await activate(service, carriedBy(await service.newestEmail(nora.email, 5)))).toBe(200)
  })

  test('asking all the time does not keep the next e-mail away for good', async () => {
    await using service = await startService()
    await service.api().users.register({ body: nora })
    for (let minutes = 0; minutes <= 60; minutes += 5) {
      await service.api().users.resend({ body: { username: nora.username } })
      await service.emails()
      service.clock.forward(5 * minute_ms)
    }
    expect((await emailsTo(service, nora.email)).length).toBeGreaterThan(5)
  })
})

describe('a forgotten password', () => {
  const reset = (service: Service, uid: string, token: string, password = 'a-new-rope') =>
    statusOf(service.api().users.resetPassword({ params: { uid }, body: { password, token } }))

  test.each([
    ['the username', { username: 'Vera' }],
    ['the e-mail as the username', { username: observer.email }],
    ['the e-mail', { email: 'VERA@example.com' }],
  ])('is asked for by %s; the link sets a new one, once, and ends all tokens', async (_, body) => {
    await using service = await startService()
    const world = await buildWorld(service)
    const token = await world.token('observer')
    const answer = await service.api().users.recover({ body })
    expect([answer.status, answer.body]).toEqual([200, undefined])
    const letter = await service.newestEmail(observer.email)
    const link = linkIn(letter)
    expect(link.origin + link.pathname).toBe('http://hawser.test/update-password')
    const carried = carriedBy(letter)
    expect(carried.id).toBe(observer.id)
    // Until the new password is set, nothing has changed.
    expect(await statusOf(service.api({ token }).devices.list({}))).toBe(200)
    expect(await reset(service, carried.id, carried.token)).toBe(200)
    expect(await statusOf(service.api({ token }).devices.list({}))).toBe(401)
    expect(await login(service, observer)).toBe(401)
    expect(await login(service, { ...observer, password: 'a-new-rope' })).toBe(200)
    expect(await reset(service, carried.id, carried.token, 'another-rope')).toBe(401)
    expect(await login(service, { ...observer, password: 'a-new-rope' })).toBe(200)
  })

  test('the link works once even when it is followed twice at once', async () => {
    await using service = await startService()
    await buildWorld(service)
    const both = ['first-rope', 'second-rope'].map((password) =>
      service.api().users.resetPassword({
        params: { uid: observer.id },
        body: { password, token: sample.recoveryToken },
      }),
    )
    expect(await statusesOf(both)).toEqual([200, 401])
  })

  test('the answer is the same whoever is asked for, and nobody gets an e-mail for nothing', async () => {
    await using service = await startService()
    await buildWorld(service)
    const answers = []
    for (const body of [
      { username: observer.username },
      { username: 'nobody' },
      { email: 'nobody@example.com' },
      { username: 'a b\nc' },
    ])
      answers.push(appearance(await service.api().users.recover({ body })))
    expect(answers[0]).toMatchObject({ status: 200, body: undefined })
    for (const answer of answers) expect(answer).toEqual(answers[0])
    expect((await service.emails()).map((letter) => letter.to?.[0]?.address)).toEqual([observer.email])
  })

  test('asking for nobody in particular is 400', async () => {
    await using service = await startService()
    const failure = await refused(service.api().users.recover({ body: {} }))
    expect([failure.status, failure.body]).toEqual([
      400,
      { message: expect.stringContaining('username') as string },
    ])
  })

  test('a new password that fails its rule does not use up the token', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const password of ['abcd', 'x'.repeat(31)])
      expect(await reset(service, observer.id, sample.recoveryToken, password)).toBe(400)
    expect(await reset(service, observer.id, sample.recoveryToken)).toBe(200)
  })

  test('a token is good for its own user only, and is not used up by trying it on another', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const uid of [sample.owner.id, '65f0000000000000000000ff'])
      expect(await reset(service, uid, sample.recoveryToken)).toBe(401)
    expect(await reset(service, observer.id, 'not-the-token')).toBe(401)
    expect(await login(service, sample.owner)).toBe(200)
    expect(await reset(service, observer.id, sample.recoveryToken)).toBe(200)
  })

  test('a token is good for 24 hours', async () => {
    await using service = await startService()
    await buildWorld(service)
    await service.api().users.recover({ body: { username: sample.operator.username } })
    const { id, token } = carriedBy(await service.newestEmail(sample.operator.email))
    service.clock.forward(day_ms)
    expect(await reset(service, id, token)).toBe(401)
    await service.api().users.recover({ body: { username: sample.operator.username } })
    const fresh = carriedBy(await service.newestEmail(sample.operator.email, 1))
    service.clock.forward(day_ms - minute_ms)
    expect(await reset(service, id, fresh.token)).toBe(200)
  })

  test('a newer e-mail ends the token of the older one', async () => {
    await using service = await startService()
    await buildWorld(service)
    const ask = () => service.api().users.recover({ body: { email: observer.email } })
    await ask()
    const old = carriedBy(await service.newestEmail(observer.email))
    await ask()
    const fresh = carriedBy(await service.newestEmail(observer.email, 1))
    expect(await reset(service, observer.id, old.token)).toBe(401)
    expect(await reset(service, observer.id, fresh.token)).toBe(200)
  })

  test('one that was used ends the others of the same user', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { stores, vault, clock } = service.rooms
    const expires_at = new Date(clock.now() + day_ms).toISOString()
    // Two e-mails that were asked for at the same moment leave two tokens.
    await stores.tokens.insert({
      kind: 'recovery',
      hash: vault.mark('recovery', 'the-other-one'),
      user_id: observer.id,
      expires_at,
    })
    expect(await reset(service, observer.id, sample.recoveryToken)).toBe(200)
    expect(await reset(service, observer.id, 'the-other-one')).toBe(401)
  })

  test('there are at most five e-mails an hour', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const _ of [1, 2, 3, 4, 5, 6, 7])
      expect((await service.api().users.recover({ body: { email: observer.email } })).status).toBe(200)
    expect(await emailsTo(service, observer.email)).toHaveLength(5)
    service.clock.forward(hour_ms)
    await service.api().users.recover({ body: { email: observer.email } })
    expect(await emailsTo(service, observer.email)).toHaveLength(6)
  })

  test('the e-mail does not confirm an account, and the second factor stays on', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const person of [unconfirmed, sample.careful]) {
      await service.api().users.recover({ body: { username: person.username } })
      const { id, token } = carriedBy(await service.newestEmail(person.email))
      expect(await reset(service, id, token)).toBe(200)
    }
    expect(await login(service, { ...unconfirmed, password: 'a-new-rope' })).toBe(403)
    const failure = await refused(
      service.api().users.login({ body: { username: sample.careful.username, password: 'a-new-rope' } }),
    )
    expect(failure.headers.has('x-mfa-token')).toBe(true)
  })
})

describe('secrets', () => {
  test('stand in no line of the log and in no file but the outbox', async () => {
    await using service = await startService()
    const api = service.api()
    const passwords = ['gale-and-current', 'a-wrong-password-3', 'harbour-light-42']
    await api.users.register({ body: { ...nora, password: passwords[0]! } })
    const activation = carriedBy(await service.newestEmail(nora.email))
    await statusOf(api.users.activate({ query: { email: 'nobody@example.com', token: activation.token } }))
    await api.users.activate({ query: activation })
    await statusOf(api.users.login({ body: { username: 'nora', password: passwords[1]! } }))
    const { token } = (await api.users.login({ body: { username: 'nora', password: passwords[0]! } })).body
    const namespace = (await service.api({ token }).namespaces.create({ body: { name: 'lagoon' } })).body
    const inside = (
      await service.api({ token }).users.namespaceToken({ params: { tenant: namespace.tenant_id } })
    ).body.token
    const key = (
      await service.api({ token: inside }).apiKeys.create({ body: { name: 'nightly', expires_at: 30 } })
    ).body.id
    await service.api({ apiKey: key }).devices.list({})
    await statusOf(service.api({ apiKey: `${key}0` }).devices.list({}))
    await api.users.recover({ body: { username: 'nora' } })
    const recovery = carriedBy(await service.newestEmail(nora.email, 1))
    await api.users.resetPassword({
      params: { uid: recovery.id },
      body: { password: passwords[2]!, token: recovery.token },
    })
    // What does not fit is described by the answer and the log without being quoted.
    await call(
      users.register,
      { body: { ...nora, password: `${passwords[2]}${'x'.repeat(30)}` } },
      { url: service.url },
    )

    const setup = 'a-code-that-is-not-there'
    const body = { ...nora, code: setup, password: passwords[0]!, namespace: 'cove' }
    await statusOf(api.system.setup({ body }))
    const secrets = [...passwords, activation.token, recovery.token, token, inside, key, setup]
    expect(foundIn(service.folder, secrets)).toEqual([])
    for (const secret of secrets) expect(service.log()).not.toContain(secret)
    // The search does find what is there: the username is no secret.
    expect(foundIn(service.folder, [nora.email]).join()).toContain('hawser.db')
    expect(service.log()).toContain('users.login')
  })
})

describe('by SMTP', () => {
  test('the e-mail arrives with a text and an HTML part, and nothing is left in the outbox', async () => {
    const arrivals: { recipients: string[]; raw: Buffer }[] = []
    const server = new SMTPServer({
      authOptional: true,
      hideSTARTTLS: true,
      logger: false,
      onData(stream, session, done) {
        const chunks: Buffer[] = []
        stream.on('data', (chunk: Buffer) => chunks.push(chunk))
        stream.on('end', () => {
          arrivals.push({
            recipients: session.envelope.rcptTo.map(({ address }) => address),
            raw: Buffer.concat(chunks),
          })
          done()
        })
      },
    })
    const listening = Promise.withResolvers<void>()
    server.listen(0, '127.0.0.1', listening.resolve)
    await listening.promise
    try {
      const { port } = server.server.address() as AddressInfo
      const env = {
        HAWSER_SMTP: `smtp://127.0.0.1:${port}`,
        HAWSER_MAIL_FROM: 'Harbour <harbour@example.com>',
      }
      await using service = await startService({ env })
      await service.api().users.register({ body: nora })
      // Waits for the e-mails that are on their way; there are none in the outbox.
      expect(await service.emails()).toEqual([])
      expect(arrivals.map(({ recipients }) => recipients)).toEqual([[nora.email]])
      const letter = await PostalMime.parse(arrivals[0]!.raw)
      expect(letter.from).toEqual({ name: 'Harbour', address: 'harbour@example.com' })
      expect(letter.html).toContain('<a href="http://hawser.test/validation-account?')
      expect(await activate(service, carriedBy(letter))).toBe(200)
      expect(await login(service, nora)).toBe(200)
    } finally {
      const closed = Promise.withResolvers<void>()
      server.close(closed.resolve)
      await closed.promise
    }
  })
})

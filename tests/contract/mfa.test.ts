// The second factor from switching it on to losing it: sign-in with a code, codes and tokens that work once,
// limits on wrong ones, recovery codes, and the reset by two e-mails.
import { describe, expect, test } from 'vitest'
import { call } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { mfa } from '@hawser/contract/mfa'
import { minute_ms } from '../../server/src/kit/clock.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import {
  codeIn,
  foundIn,
  from,
  lockOf,
  ownFolder,
  refused,
  statusesOf,
  statusOf,
  toStepStart,
  totpAt,
  wrongTotp,
} from './people.ts'

const { careful, observer, administrator, mfaSecret } = sample
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const source = '192.0.2.1'

/** The first half of a sign-in: the token for the second. */
async function firstHalf(
  service: Service,
  { username, password }: { username: string; password: string } = careful,
  where = source,
) {
  const failure = await refused(service.api(from(where)).users.login({ body: { username, password } }))
  expect(failure.status).toBe(401)
  const token = failure.headers.get('x-mfa-token') ?? ''
  expect(token).toMatch(uuid)
  return token
}

const secondHalf = (service: Service, token: string, code: string, where = source) =>
  statusOf(service.api(from(where)).mfa.authenticate({ body: { token, code } }))

/** A user who has just switched the second factor on, with what Generate gave. */
async function enabled(service: Service) {
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('observer') })
  await api.users.update({ body: { recovery_email: 'vera@example.org' } })
  const given = (await api.mfa.generate({})).body
  const code = totpAt(service, given.secret)
  await api.mfa.enable({ body: { code, secret: given.secret, recovery_codes: given.recovery_codes } })
  return { api, code, ...given }
}

describe('the whole way', () => {
  test('generate, enable, sign in with a code, disable', async () => {
    await using service = await startService()
    toStepStart(service)
    const world = await buildWorld(service)
    const api = service.api({ token: await world.token('observer') })
    await api.users.update({ body: { recovery_email: 'vera@example.org' } })

    const { secret, recovery_codes, link } = (await api.mfa.generate({})).body
    expect(secret).toMatch(/^[A-Z2-7]{32}$/)
    expect(recovery_codes).toHaveLength(6)
    expect(new Set(recovery_codes).size).toBe(6)
    for (const code of recovery_codes) expect(code).toMatch(/^[A-Z2-7]{16}$/)
    const uri = new URL(link)
    expect([uri.protocol, uri.host, uri.searchParams.get('secret')]).toEqual(['otpauth:', 'totp', secret])
    expect([
      uri.searchParams.get('algorithm'),
      uri.searchParams.get('digits'),
      uri.searchParams.get('period'),
    ]).toEqual(['SHA1', '6', '30'])
    // Nothing is on until Enable has a right code.
    expect((await api.users.refresh({})).body.mfa).toBe(false)
    expect(await statusOf(service.api().users.login({ body: observer }))).toBe(200)

    const done = await api.mfa.enable({ body: { code: totpAt(service, secret), secret, recovery_codes } })
    expect([done.status, done.body]).toEqual([200, undefined])
    expect((await api.users.refresh({})).body.mfa).toBe(true)

    const half = await refused(
      service.api().users.login({ body: { username: observer.email, password: observer.password } }),
    )
    expect([half.status, lockOf(half)]).toEqual([401, 0])
    expect(half.body).toEqual({ message: expect.any(String) as string })
    const { body } = await service.api().mfa.authenticate({
      body: { token: half.headers.get('x-mfa-token')!, code: totpAt(service, secret, 1) },
    })
    expect(body).toMatchObject({
      id: observer.id,
      user: observer.username,
      tenant: sample.tenant,
      role: 'observer',
      mfa: true,
    })
    const signedIn = service.api({ token: body.token })
    expect(await statusOf(signedIn.devices.list({}))).toBe(200)

    service.clock.forward(minute_ms)
    const off = await signedIn.mfa.disable({ body: { code: totpAt(service, secret) } })
    expect([off.status, off.body]).toEqual([200, undefined])
    expect((await service.api().users.login({ body: observer })).body.mfa).toBe(false)
  })

  test('both addresses of signing in ask for the second factor', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const verb of ['login', 'auth'] as const) {
      const failure = await refused(service.api().users[verb]({ body: careful }))
      expect(failure.headers.get('x-mfa-token'), verb).toMatch(uuid)
      expect(lockOf(failure)).toBe(0)
    }
  })

  test('X-MFA-Token is absent where there is no second factor and where the password is wrong', async () => {
    await using service = await startService()
    await buildWorld(service)
    const api = service.api(from(source))
    expect((await api.users.login({ body: observer })).headers.has('x-mfa-token')).toBe(false)
    for (const { username } of [careful, observer, { username: 'nobody' }]) {
      const failure = await refused(api.users.login({ body: { username, password: 'not-the-password' } }))
      expect(failure.headers.has('x-mfa-token'), username).toBe(false)
    }
  })

  test('it outlives a restart of the server', async () => {
    using folder = ownFolder()
    {
      await using service = await startService({ folder: folder.path })
      await buildWorld(service)
    }
    await using service = await startService({ folder: folder.path })
    expect(await secondHalf(service, await firstHalf(service), totpAt(service, mfaSecret))).toBe(200)
  })

  test('secrets and codes stand in no line of the log and in no file but the outbox', async () => {
    await using service = await startService()
    toStepStart(service)
    const { secret, recovery_codes, code } = await enabled(service)
    const token = await firstHalf(service, observer)
    const { body } = await service
      .api()
      .mfa.authenticate({ body: { token, code: totpAt(service, secret, 1) } })
    await service
      .api()
      .mfa.recover({ body: { identifier: observer.username, recovery_code: recovery_codes[0]! } })
    await service.api().mfa.requestReset({ body: { identifier: observer.username } })
    const resetCodes = (await service.emails())
      .filter(({ text }) => text?.includes('/reset-mfa?'))
      .map(codeIn)
    expect(resetCodes).toHaveLength(2)
    const secrets = [secret, ...recovery_codes, token, body.token, ...resetCodes]
    expect(foundIn(service.folder, secrets)).toEqual([])
    for (const text of [...secrets, `"${code}"`]) expect(service.log()).not.toContain(text)
  })
})

describe('a code', () => {
  test('of this step and of those beside it works; two steps off it does not', async () => {
    await using service = await startService()
    toStepStart(service)
    await buildWorld(service)
    // In this order, because none works after a later one.
    for (const [steps, status] of [
      [-2, 401],
      [2, 401],
      [-1, 200],
      [0, 200],
      [1, 200],
    ] as const)
      expect(
        await secondHalf(service, await firstHalf(service), totpAt(service, mfaSecret, steps)),
        `${steps} steps`,
      ).toBe(status)
  })

  test('works once, also with a fresh token', async () => {
    await using service = await startService()
    await buildWorld(service)
    const code = totpAt(service, mfaSecret)
    expect(await secondHalf(service, await firstHalf(service), code)).toBe(200)
    expect(await secondHalf(service, await firstHalf(service), code)).toBe(401)
  })

  test('of an earlier step does not work once a later one was used', async () => {
    await using service = await startService()
    toStepStart(service)
    await buildWorld(service)
    expect(await secondHalf(service, await firstHalf(service), totpAt(service, mfaSecret, 1))).toBe(200)
    for (const steps of [0, -1]) {
      const where = `192.0.2.${10 + steps}`
      expect(
        await secondHalf(
          service,
          await firstHalf(service, careful, where),
          totpAt(service, mfaSecret, steps),
          where,
        ),
      ).toBe(401)
    }
    service.clock.forward(minute_ms)
    expect(await secondHalf(service, await firstHalf(service), totpAt(service, mfaSecret))).toBe(200)
  })

  test('that switched the second factor on does not sign in', async () => {
    await using service = await startService()
    const { code } = await enabled(service)
    expect(await secondHalf(service, await firstHalf(service, observer), code)).toBe(401)
  })

  test('that signed in does not switch the second factor off', async () => {
    await using service = await startService()
    toStepStart(service)
    const { api, secret } = await enabled(service)
    const code = totpAt(service, secret, 1)
    expect(await secondHalf(service, await firstHalf(service, observer), code)).toBe(200)
    expect(await statusOf(api.mfa.disable({ body: { code } }))).toBe(401)
  })

  test('is six digits and nothing else', async () => {
    await using service = await startService()
    await buildWorld(service)
    const right = totpAt(service, mfaSecret)
    const wide = right.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))
    const token = await firstHalf(service)
    expect(await secondHalf(service, token, '')).toBe(400)
    for (const [i, code] of [right.slice(1), `${right}0`, ` ${right}`, wide].entries())
      expect(await secondHalf(service, token, code, `192.0.2.${10 + i}`), JSON.stringify(code)).toBe(401)
    expect(await secondHalf(service, token, right)).toBe(200)
  })

  test('is the user’s own: another user’s does not work', async () => {
    await using service = await startService()
    await enabled(service)
    expect(await secondHalf(service, await firstHalf(service, observer), totpAt(service, mfaSecret))).toBe(
      401,
    )
  })
})

describe('the token between the two halves', () => {
  test('is spent when it is used', async () => {
    await using service = await startService()
    toStepStart(service)
    await buildWorld(service)
    const token = await firstHalf(service)
    expect(await secondHalf(service, token, totpAt(service, mfaSecret))).toBe(200)
    expect(await secondHalf(service, token, totpAt(service, mfaSecret, 1))).toBe(401)
  })

  test('is spent by one of two who use it at once', async () => {
    await using service = await startService()
    toStepStart(service)
    await buildWorld(service)
    const token = await firstHalf(service)
    const both = [0, 1].map((steps) =>
      service
        .api(from(`192.0.2.${steps + 1}`))
        .mfa.authenticate({ body: { token, code: totpAt(service, mfaSecret, steps) } }),
    )
    expect(await statusesOf(both)).toEqual([200, 401])
  })

  test('lives for 30 minutes', async () => {
    await using service = await startService()
    await buildWorld(service)
    const [inTime, late] = [await firstHalf(service), await firstHalf(service)]
    service.clock.forward(29 * minute_ms)
    expect(await secondHalf(service, inTime, totpAt(service, mfaSecret))).toBe(200)
    service.clock.forward(minute_ms)
    expect(await secondHalf(service, late, totpAt(service, mfaSecret))).toBe(401)
  })

  test('dies after five wrong codes, wherever they come from', async () => {
    await using service = await startService()
    await buildWorld(service)
    const wrong = wrongTotp(service, mfaSecret)
    const token = await firstHalf(service)
    for (const i of [1, 2, 3, 4, 5])
      expect(await secondHalf(service, token, wrong, `192.0.2.${10 + i}`)).toBe(401)
    expect(await secondHalf(service, token, totpAt(service, mfaSecret), '192.0.2.20')).toBe(401)
    // The code was not looked at, so it still works with another token.
    expect(
      await secondHalf(service, await firstHalf(service), totpAt(service, mfaSecret), '192.0.2.20'),
    ).toBe(200)
  })

  test('is still good after four', async () => {
    await using service = await startService()
    await buildWorld(service)
    const wrong = wrongTotp(service, mfaSecret)
    const token = await firstHalf(service)
    for (const i of [1, 2, 3, 4])
      expect(await secondHalf(service, token, wrong, `192.0.2.${10 + i}`)).toBe(401)
    expect(await secondHalf(service, token, totpAt(service, mfaSecret), '192.0.2.20')).toBe(200)
  })

  test('that nobody gave is refused like a wrong code', async () => {
    await using service = await startService()
    await buildWorld(service)
    const ask = (token: string, code: string, where: string) =>
      refused(service.api(from(where)).mfa.authenticate({ body: { token, code } }))
    const unknown = await ask('99999999-9999-4999-8999-999999999999', totpAt(service, mfaSecret), '192.0.2.5')
    const wrong = await ask(await firstHalf(service), wrongTotp(service, mfaSecret), '192.0.2.6')
    expect([unknown.status, unknown.body]).toEqual([wrong.status, wrong.body])
    for (const token of [sample.recoveryToken, 'x', careful.id])
      expect((await ask(token, '123456', '192.0.2.5')).status).toBe(401)
  })

  test('is for both of its fields: without one it is 400', async () => {
    await using service = await startService()
    for (const body of [{}, { token: sample.mfaToken }, { code: '123456' }, { token: 1, code: 2 }])
      expect((await call(mfa.authenticate, { body }, { url: service.url })).status).toBe(400)
  })
})

describe('wrong codes at sign-in', () => {
  test('count towards the lock of the sign-in: the third answers 429, and then nothing gets in', async () => {
    await using service = await startService()
    await buildWorld(service)
    const wrong = wrongTotp(service, mfaSecret)
    const token = await firstHalf(service)
    for (const _ of [1, 2]) expect(await secondHalf(service, token, wrong)).toBe(401)
    const third = await refused(service.api(from(source)).mfa.authenticate({ body: { token, code: wrong } }))
    expect(third.status).toBe(429)
    expect(Math.round((lockOf(third) - service.clock.now() / 1000) / 60)).toBe(1)
    expect(await secondHalf(service, token, totpAt(service, mfaSecret))).toBe(429)
    const password = await refused(service.api(from(source)).users.login({ body: careful }))
    expect([password.status, lockOf(password)]).toEqual([429, lockOf(third)])
    expect(password.headers.has('x-mfa-token')).toBe(false)
    // Elsewhere nothing is locked, and here not for ever.
    expect(await secondHalf(service, token, totpAt(service, mfaSecret), '192.0.2.9')).toBe(200)
    service.clock.forward(minute_ms)
    expect(await secondHalf(service, await firstHalf(service), totpAt(service, mfaSecret))).toBe(200)
  })

  test('add up with wrong passwords, and a right password does not make room for more codes', async () => {
    await using service = await startService()
    await buildWorld(service)
    const wrong = wrongTotp(service, mfaSecret)
    const login = () =>
      statusOf(
        service
          .api(from(source))
          .users.login({ body: { username: careful.username, password: 'wrong-one' } }),
      )
    expect(await login()).toBe(401)
    expect(await secondHalf(service, await firstHalf(service), wrong)).toBe(401)
    expect(await secondHalf(service, await firstHalf(service), wrong)).toBe(429)
  })

  test('are forgotten when both halves were right', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const _ of [1, 2]) {
      const token = await firstHalf(service)
      for (const _ of [1, 2])
        expect(await secondHalf(service, token, wrongTotp(service, mfaSecret))).toBe(401)
      expect(await secondHalf(service, token, totpAt(service, mfaSecret))).toBe(200)
      service.clock.forward(minute_ms)
    }
  })

  test('are counted together at both addresses', async () => {
    await using service = await startService()
    await buildWorld(service)
    const token = await firstHalf(service)
    const body = { token, code: wrongTotp(service, mfaSecret) }
    const statuses = []
    for (const path of ['/api/mfa/auth', '/api/user/mfa/auth', '/api/mfa/auth']) {
      const answer = await call(
        { ...mfa.authenticate, path },
        { body },
        { url: service.url, ...from(source) },
      )
      statuses.push(answer.status)
    }
    expect(statuses).toEqual([401, 401, 429])
    const right = { ...body, code: totpAt(service, mfaSecret) }
    for (const path of ['/api/mfa/auth', '/api/user/mfa/auth']) {
      const answer = await call(
        { ...mfa.authenticate, path },
        { body: right },
        { url: service.url, ...from(source) },
      )
      expect(answer.status).toBe(429)
    }
    const other = await call(
      { ...mfa.authenticate, path: '/api/user/mfa/auth' },
      { body: right },
      { url: service.url, ...from('192.0.2.2') },
    )
    expect([other.status, (other.body as { id: string }).id]).toEqual([200, careful.id])
  })

  test('sent all at once are judged one after the other', async () => {
    await using service = await startService()
    await buildWorld(service)
    const token = await firstHalf(service)
    const wrong = wrongTotp(service, mfaSecret)
    const statuses = await Promise.all(Array.from({ length: 20 }, () => secondHalf(service, token, wrong)))
    expect(statuses.filter((status) => status === 401)).toHaveLength(2)
    expect(statuses.filter((status) => status === 429)).toHaveLength(18)
  })
})

describe('Enable', () => {
  test('takes only what Generate gave last, and refuses the rest with 400', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const api = service.api({ token: await world.token('observer') })
    await api.users.update({ body: { recovery_email: 'vera@example.org' } })
    const other = { secret: mfaSecret, recovery_codes: [sample.recoveryCode] }
    // Nothing was generated for this user yet.
    expect(await statusOf(api.mfa.enable({ body: { code: totpAt(service, mfaSecret), ...other } }))).toBe(400)
    const old = (await api.mfa.generate({})).body
    const given = (await api.mfa.generate({})).body
    const code = totpAt(service, given.secret)
    const { secret, recovery_codes } = given
    for (const [what, body] of Object.entries({
      'a secret of one’s own': { code: totpAt(service, mfaSecret), secret: mfaSecret, recovery_codes },
      'the secret of the time before': {
        code: totpAt(service, old.secret),
        secret: old.secret,
        recovery_codes: old.recovery_codes,
      },
      'codes of the time before': { code, secret, recovery_codes: old.recovery_codes },
      'no codes': { code, secret, recovery_codes: [] },
      'fewer codes': { code, secret, recovery_codes: recovery_codes.slice(1) },
      'one code of one’s own': {
        code,
        secret,
        recovery_codes: [...recovery_codes.slice(1), 'AAAAAAAAAAAAAAAA'],
      },
      'one code more': { code, secret, recovery_codes: [...recovery_codes, 'AAAAAAAAAAAAAAAA'] },
      'one code twice': { code, secret, recovery_codes: recovery_codes.map(() => recovery_codes[0]!) },
      'no secret': { code, secret: '', recovery_codes },
    }))
      expect(await statusOf(api.mfa.enable({ body })), what).toBe(400)
    expect((await api.users.refresh({})).body.mfa).toBe(false)
    expect(await statusOf(api.mfa.enable({ body: { code, secret, recovery_codes } }))).toBe(200)
  })

  test('does not take what Generate gave somebody else', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const body = {
      code: totpAt(service, sample.draftSecret),
      secret: sample.draftSecret,
      recovery_codes: [sample.recoveryCode],
    }
    const thief = service.api({ token: await world.token('operator') })
    await thief.users.update({ body: { recovery_email: 'oskar@example.org' } })
    expect(await statusOf(thief.mfa.enable({ body }))).toBe(400)
    const own = service.api({ token: await world.token('administrator') })
    expect(await statusOf(own.mfa.enable({ body }))).toBe(200)
  })

  test('needs a recovery e-mail: 400 without', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const api = service.api({ token: await world.token('observer') })
    const { secret, recovery_codes } = (await api.mfa.generate({})).body
    const enable = () =>
      statusOf(api.mfa.enable({ body: { code: totpAt(service, secret), secret, recovery_codes } }))
    expect(await enable()).toBe(400)
    await api.users.update({ body: { recovery_email: 'vera@example.org' } })
    expect(await enable()).toBe(200)
  })

  test('and Generate are 409 when it is on already', async () => {
    await using service = await startService()
    const { api, secret, recovery_codes } = await enabled(service)
    expect((await refused(api.mfa.generate({}))).status).toBe(409)
    expect(
      await statusOf(api.mfa.enable({ body: { code: totpAt(service, secret), secret, recovery_codes } })),
    ).toBe(409)
  })

  test('answers a wrong code with 401, five times, and then rests for fifteen minutes', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const api = service.api({ token: await world.token('administrator') })
    const enable = (code: string) =>
      statusOf(
        api.mfa.enable({ body: { code, secret: sample.draftSecret, recovery_codes: [sample.recoveryCode] } }),
      )
    const wrong = wrongTotp(service, sample.draftSecret)
    for (const _ of [1, 2, 3, 4, 5]) expect(await enable(wrong)).toBe(401)
    expect(await enable(wrong)).toBe(429)
    expect(await enable(totpAt(service, sample.draftSecret))).toBe(429)
    // Signing in is another operation, and is not locked by it.
    expect(await statusOf(service.api().users.login({ body: administrator }))).toBe(200)
    service.clock.forward(15 * minute_ms)
    expect(await enable(totpAt(service, sample.draftSecret))).toBe(200)
  })
})

describe('Disable', () => {
  test('takes a code or an unused recovery code, and everything of the second factor is gone', async () => {
    for (const by of ['code', 'recovery_code'] as const) {
      await using service = await startService()
      toStepStart(service)
      const { api, secret, recovery_codes } = await enabled(service)
      const value = by === 'code' ? totpAt(service, secret, 1) : recovery_codes[2]!.toLowerCase()
      expect(await statusOf(api.mfa.disable({ body: { [by]: value } }))).toBe(200)
      expect((await service.api().users.login({ body: observer })).body.mfa).toBe(false)
      const recover = service
        .api()
        .mfa.recover({ body: { identifier: observer.username, recovery_code: recovery_codes[3]! } })
      expect(await statusOf(recover)).toBe(401)
    }
  })

  test('ends sign-ins that wait for their second half', async () => {
    await using service = await startService()
    toStepStart(service)
    const { api, secret, recovery_codes } = await enabled(service)
    const token = await firstHalf(service, observer)
    await api.mfa.disable({ body: { recovery_code: recovery_codes[0]! } })
    expect(await secondHalf(service, token, totpAt(service, secret, 1))).toBe(401)
  })

  test('is 409 when it is off, and 400 with neither kind of code', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const off = service.api({ token: await world.token('observer') })
    expect(await statusOf(off.mfa.disable({ body: { code: '123456' } }))).toBe(409)
    const on = service.api({ token: await world.token('careful') })
    for (const body of [{}, { code: '' }, { code: '', recovery_code: '' }])
      expect(await statusOf(on.mfa.disable({ body }))).toBe(400)
    expect((await on.users.refresh({})).body.mfa).toBe(true)
  })

  test('answers wrong codes of either kind with 401, five times, and then rests for fifteen minutes', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const api = service.api({ token: await world.token('careful') })
    const disable = (body: { code?: string; recovery_code?: string }) => statusOf(api.mfa.disable({ body }))
    const code = wrongTotp(service, mfaSecret)
    for (const body of [
      { code },
      { recovery_code: 'AAAAAAAAAAAAAAAA' },
      { code },
      { recovery_code: 'x' },
      { code },
    ])
      expect(await disable(body)).toBe(401)
    expect(await disable({ code })).toBe(429)
    expect(await disable({ recovery_code: sample.recoveryCode })).toBe(429)
    expect(await disable({ code: totpAt(service, mfaSecret) })).toBe(429)
    // Another operation has its own count.
    const other = service
      .api()
      .mfa.recover({ body: { identifier: careful.username, recovery_code: 'AAAAAAAAAAAAAAAA' } })
    expect(await statusOf(other)).toBe(401)
    service.clock.forward(15 * minute_ms)
    expect(await disable({ recovery_code: sample.recoveryCode })).toBe(200)
  })
})

// The ways back in when the second factor is lost: recovery codes, which are single use and for ten minutes
// let the same code switch it off, and the reset by two e-mails, of which both codes are needed. Neither
// tells whether a user exists, and neither can be guessed at without end.
import { describe, expect, test } from 'vitest'
import { call } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { mfa } from '@hawser/contract/mfa'
import { day_ms, hour_ms, minute_ms } from '../../server/src/kit/clock.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { appearance, codeIn, linkIn, refused, statusesOf, statusOf } from './people.ts'

const { careful, observer, recoveryCode } = sample
const carefulElsewhere = `${careful.username}@example.org`
const wrong = 'AAAAAAAAAAAAAAAA'

const recover = (service: Service, recovery_code: string, identifier: string = careful.username) =>
  service.api().mfa.recover({ body: { identifier, recovery_code } })

describe('a recovery code', () => {
  test('signs in by username or e-mail, leaves the second factor on, and tells how long Disable takes it', async () => {
    for (const [identifier, code] of [
      [careful.username.toUpperCase(), recoveryCode],
      ['Cara@Example.com', ` ${recoveryCode.toLowerCase()} `],
    ] as const) {
      await using service = await startService()
      await buildWorld(service)
      const before = service.clock.now()
      const { body, headers } = await recover(service, code, identifier)
      expect(body).toMatchObject({ id: careful.id, tenant: sample.tenant, role: 'observer', mfa: true })
      expect(await statusOf(service.api({ token: body.token }).devices.list({}))).toBe(200)
      const expires = Number(headers.get('x-expires-at'))
      expect(expires).toBeGreaterThanOrEqual(Math.floor(before / 1000) + 600)
      expect(expires).toBeLessThanOrEqual(service.clock.now() / 1000 + 600)
      const again = await refused(service.api().users.login({ body: careful }))
      expect(again.headers.has('x-mfa-token')).toBe(true)
    }
  })

  test('works once, even when it is sent twice at once', async () => {
    await using service = await startService()
    await buildWorld(service)
    const both = await statusesOf([recover(service, recoveryCode), recover(service, recoveryCode)])
    expect(both).toEqual([200, 401])
    expect(await statusOf(recover(service, recoveryCode))).toBe(401)
  })

  test('that was just used switches the second factor off for ten minutes', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { token } = (await recover(service, recoveryCode)).body
    service.clock.forward(9 * minute_ms)
    expect(
      await statusOf(service.api({ token }).mfa.disable({ body: { recovery_code: recoveryCode } })),
    ).toBe(200)
    expect((await service.api().users.login({ body: careful })).body.mfa).toBe(false)
  })

  test('and not longer', async () => {
    await using service = await startService()
    await buildWorld(service)
    const { body, headers } = await recover(service, recoveryCode)
    service.clock.forward(Number(headers.get('x-expires-at')) * 1000 - service.clock.now() + 1000)
    const api = service.api({ token: body.token })
    expect(await statusOf(api.mfa.disable({ body: { recovery_code: recoveryCode } }))).toBe(401)
    expect((await api.users.refresh({})).body.mfa).toBe(true)
  })

  test('of six, each works by itself', async () => {
    await using service = await startService()
    const world = await buildWorld(service)
    const api = service.api({ token: await world.token('observer') })
    await api.users.update({ body: { recovery_email: 'vera@example.org' } })
    const { secret, recovery_codes } = (await api.mfa.generate({})).body
    await api.mfa.enable({ body: { code: world.totp(secret), secret, recovery_codes } })
    for (const code of recovery_codes.toReversed())
      expect(await statusOf(recover(service, code, observer.username))).toBe(200)
    for (const code of recovery_codes.slice(0, 2))
      expect(await statusOf(recover(service, code, observer.username))).toBe(401)
    // Of those that were used, Disable takes the last one only.
    const disable = (recovery_code: string) => statusOf(api.mfa.disable({ body: { recovery_code } }))
    expect(await disable(recovery_codes[5]!)).toBe(401)
    expect(await disable(recovery_codes[0]!)).toBe(200)
  })

  test('is the user’s own', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const identifier of [observer.username, sample.administrator.username])
      expect(await statusOf(recover(service, recoveryCode, identifier))).toBe(401)
  })

  test('a wrong one, a user without a second factor and an unknown user look the same, until and in the lock', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const attempt of [1, 2, 3, 4, 5, 6]) {
      const looks = []
      for (const identifier of [careful.username, observer.username, 'nobody'])
        looks.push(appearance(await refused(recover(service, wrong, identifier))))
      expect(looks[0]).toMatchObject({ status: attempt <= 5 ? 401 : 429 })
      for (const look of looks) expect(look).toEqual(looks[0])
    }
  })

  test('may be tried five times from one source; then there is a rest of fifteen minutes for it', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const i of [1, 2, 3, 4, 5]) expect(await statusOf(recover(service, `${wrong}${i}`))).toBe(401)
    const refusal = await refused(recover(service, recoveryCode))
    expect(refusal.status).toBe(429)
    expect(Number(refusal.headers.get('retry-after'))).toBeGreaterThan(14 * 60)
    expect(await statusOf(recover(service, recoveryCode, careful.username.toUpperCase()))).toBe(429)
    // The sign-in itself is not locked by it.
    expect((await refused(service.api().users.login({ body: careful }))).headers.has('x-mfa-token')).toBe(
      true,
    )
    service.clock.forward(15 * minute_ms)
    expect(await statusOf(recover(service, recoveryCode))).toBe(200)
  })

  test('sent a hundred at once are a hundred tries', async () => {
    await using service = await startService()
    await buildWorld(service)
    const statuses = await Promise.all(Array.from({ length: 100 }, () => statusOf(recover(service, wrong))))
    expect(statuses.filter((status) => status === 401)).toHaveLength(5)
    expect(statuses.filter((status) => status === 429)).toHaveLength(95)
  })

  test('needs both fields', async () => {
    await using service = await startService()
    for (const body of [
      {},
      { identifier: 'cara' },
      { recovery_code: recoveryCode },
      { identifier: '', recovery_code: '' },
    ])
      expect((await call(mfa.recover, { body }, { url: service.url })).status).toBe(400)
  })
})

describe('the reset by two e-mails', () => {
  const ask = (service: Service, identifier: string = careful.username) =>
    service.api().mfa.requestReset({ body: { identifier } })
  const reset = (service: Service, main: string, recovery: string, user_id: string = careful.id) =>
    service
      .api()
      .mfa.reset({ params: { user_id }, body: { main_email_code: main, recovery_email_code: recovery } })

  /** The two codes of the newest e-mails. */
  async function codes(service: Service, after = 0) {
    const [main, recovery] = [
      await service.newestEmail(careful.email, after),
      await service.newestEmail(carefulElsewhere, after),
    ]
    return { main: codeIn(main), recovery: codeIn(recovery), letters: [main, recovery] }
  }

  test('sends one code to each address, and both together switch the second factor off and sign in', async () => {
    await using service = await startService()
    await buildWorld(service)
    const answer = await ask(service, 'CARA@example.com')
    expect([answer.status, answer.body]).toEqual([200, undefined])
    const { main, recovery, letters } = await codes(service)
    expect(await service.emails()).toHaveLength(2)
    expect(main).not.toBe(recovery)
    expect(letters[0]!.text).not.toContain(recovery)
    expect(letters[1]!.text).not.toContain(main)
    for (const letter of letters) {
      const link = linkIn(letter)
      expect(link.origin + link.pathname).toBe('http://hawser.test/reset-mfa')
      expect(link.searchParams.get('id')).toBe(careful.id)
    }
    // Asking alone changes nothing.
    expect((await refused(service.api().users.login({ body: careful }))).headers.has('x-mfa-token')).toBe(
      true,
    )
    const { body } = await reset(service, main, recovery)
    expect(body).toMatchObject({ id: careful.id, role: 'observer', mfa: false })
    expect(await statusOf(service.api({ token: body.token }).devices.list({}))).toBe(200)
    expect((await service.api().users.login({ body: careful })).body.mfa).toBe(false)
    // What belonged to the old second factor is worth nothing.
    expect(await statusOf(recover(service, recoveryCode))).toBe(401)
    expect(
      await statusOf(service.api().mfa.authenticate({ body: { token: sample.mfaToken, code: '123456' } })),
    ).toBe(401)
    expect(await statusOf(reset(service, main, recovery))).toBe(401)
  })

  test('needs both codes, each in its own place; a right one alone is not used up', async () => {
    await using service = await startService()
    await buildWorld(service)
    await ask(service)
    const { main, recovery } = await codes(service)
    for (const [one, other] of [
      [main, wrong],
      [wrong, recovery],
      [recovery, main],
      [main, main],
    ] as const)
      expect(await statusOf(reset(service, one, other))).toBe(401)
    expect(await statusOf(reset(service, main.toLowerCase(), recovery))).toBe(200)
  })

  test('works once, even when it is sent twice at once', async () => {
    await using service = await startService()
    await buildWorld(service)
    await ask(service)
    const { main, recovery } = await codes(service)
    const both = await statusesOf([reset(service, main, recovery), reset(service, main, recovery)])
    expect(both).toEqual([200, 401])
  })

  test('is for the user it was asked for, whose id must be given', async () => {
    await using service = await startService()
    await buildWorld(service)
    await ask(service)
    const { main, recovery } = await codes(service)
    for (const id of [observer.id, '65f0000000000000000000ff'])
      expect(await statusOf(reset(service, main, recovery, id))).toBe(401)
    expect(await statusOf(reset(service, main, recovery))).toBe(200)
  })

  test('codes live for a day', async () => {
    await using service = await startService()
    await buildWorld(service)
    await ask(service)
    const old = await codes(service)
    service.clock.forward(day_ms)
    expect(await statusOf(reset(service, old.main, old.recovery))).toBe(401)
    await ask(service)
    const fresh = await codes(service, 1)
    service.clock.forward(day_ms - minute_ms)
    expect(await statusOf(reset(service, fresh.main, fresh.recovery))).toBe(200)
  })

  test('newer e-mails end the codes of the older ones, also mixed', async () => {
    await using service = await startService()
    await buildWorld(service)
    await ask(service)
    const old = await codes(service)
    await ask(service)
    const fresh = await codes(service, 1)
    expect(await statusOf(reset(service, old.main, old.recovery))).toBe(401)
    expect(await statusOf(reset(service, fresh.main, old.recovery))).toBe(401)
    expect(await statusOf(reset(service, fresh.main, fresh.recovery))).toBe(200)
  })

  test('may be tried five times; then there is a rest of fifteen minutes', async () => {
    await using service = await startService()
    await buildWorld(service)
    await ask(service)
    const { main, recovery } = await codes(service)
    for (const _ of [1, 2, 3, 4, 5]) expect(await statusOf(reset(service, main, wrong))).toBe(401)
    expect(await statusOf(reset(service, main, wrong))).toBe(429)
    expect(await statusOf(reset(service, main, recovery))).toBe(429)
    service.clock.forward(15 * minute_ms)
    expect(await statusOf(reset(service, main, recovery))).toBe(200)
  })

  test('an unknown user looks like one whose codes are wrong, until and in the lock', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const attempt of [1, 2, 3, 4, 5, 6]) {
      const looks = []
      for (const id of [careful.id, observer.id, '65f0000000000000000000ff'])
        looks.push(appearance(await refused(reset(service, wrong, wrong, id))))
      expect(looks[0]).toMatchObject({ status: attempt <= 5 ? 401 : 429 })
      for (const look of looks) expect(look).toEqual(looks[0])
    }
  })

  test('the answer to the request is the same whoever is asked for; only who has a second factor gets e-mails', async () => {
    await using service = await startService()
    await buildWorld(service)
    const looks = []
    for (const identifier of [
      careful.email,
      observer.username,
      sample.administrator.username,
      'nobody',
      'nobody@example.com',
    ])
      looks.push(appearance(await ask(service, identifier)))
    expect(looks[0]).toMatchObject({ status: 200, body: undefined })
    for (const look of looks) expect(look).toEqual(looks[0])
    const to = (await service.emails()).map((letter) => letter.to?.[0]?.address)
    expect(new Set(to)).toEqual(new Set([careful.email, carefulElsewhere]))
    expect(to).toHaveLength(2)
  })

  test('there are at most five pairs of e-mails an hour', async () => {
    await using service = await startService()
    await buildWorld(service)
    for (const _ of [1, 2, 3, 4, 5, 6, 7]) {
      expect((await ask(service)).status).toBe(200)
      await service.emails()
    }
    expect(await service.emails()).toHaveLength(10)
    const { main, recovery } = await codes(service, 4)
    service.clock.forward(hour_ms)
    await ask(service)
    expect(await service.emails()).toHaveLength(12)
    expect(await statusOf(reset(service, main, recovery))).toBe(401)
  })

  test('needs both fields', async () => {
    await using service = await startService()
    const params = { user_id: careful.id }
    for (const body of [
      {},
      { main_email_code: 'K7QX2' },
      { recovery_email_code: 'W3ZT9' },
      { main_email_code: '', recovery_email_code: '' },
    ])
      expect((await call(mfa.reset, { params, body }, { url: service.url })).status).toBe(400)
    expect((await call(mfa.requestReset, { body: {} }, { url: service.url })).status).toBe(400)
  })
})

// What works once works once for one of many, also on PostgreSQL, where requests run side by side on several
// connections: guesses, tokens, codes and names. One service and one world for all of them.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiError } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { begunDatabase, startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'
import { from, statusesOf, toStepStart, totpAt } from './people.ts'

const { careful, observer, operator, unconfirmed } = sample
const times = <T>(count: number, work: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => work(i))
const oneOf = (count: number, right: number, wrong: number) =>
  [right, ...times(count - 1, () => wrong)].toSorted((a, b) => a - b)

describe.each(['SQLite', 'PostgreSQL'])('on %s', (database) => {
  let service: Service
  let world: World
  beforeAll(async () => {
    service = await startService(database === 'PostgreSQL' ? { database: await begunDatabase() } : {})
    world = await buildWorld(service)
  })
  afterAll(() => service[Symbol.asyncDispose]())

  test('of a hundred guesses two are answered, and a third is the lock', async () => {
    const guess = (i: number) =>
      service
        .api(from('192.0.2.1'))
        .users.login({ body: { username: observer.username, password: `guess-${i}` } })
    const statuses = await statusesOf(times(100, guess))
    expect(statuses).toEqual([...times(2, () => 401), ...times(98, () => 429)])
  })

  test('an activation link is followed once', async () => {
    const query = { email: unconfirmed.email, token: sample.activationToken }
    expect(await statusesOf(times(10, () => service.api().users.activate({ query })))).toEqual(
      oneOf(10, 200, 401),
    )
  })

  test('a recovery link is followed once', async () => {
    const set = (i: number) =>
      service.api().users.resetPassword({
        params: { uid: observer.id },
        body: { password: `rope-${i}`, token: sample.recoveryToken },
      })
    expect(await statusesOf(times(5, set))).toEqual(oneOf(5, 200, 401))
  })

  test('a code of the second factor signs in once, though each has a token and a source of its own', async () => {
    toStepStart(service)
    const code = totpAt(service, sample.mfaSecret)
    const { username, password } = careful
    const tokens = await Promise.all(
      times(5, async (i) => {
        const refusal: unknown = await service
          .api(from(`192.0.2.1${i}`))
          .users.login({ body: { username, password } })
          .catch((error: unknown) => error)
        return refusal instanceof ApiError ? (refusal.headers.get('x-mfa-token') ?? '') : ''
      }),
    )
    expect(new Set(tokens).size).toBe(5)
    const use = (i: number) =>
      service.api(from(`192.0.2.1${i}`)).mfa.authenticate({ body: { token: tokens[i]!, code } })
    expect(await statusesOf(times(5, use))).toEqual(oneOf(5, 200, 401))
  })

  test('a recovery code signs in once', async () => {
    const use = () =>
      service
        .api()
        .mfa.recover({ body: { identifier: careful.username, recovery_code: sample.recoveryCode } })
    expect(await statusesOf(times(4, use))).toEqual(oneOf(4, 200, 401))
  })

  test('the codes of both e-mails are used once', async () => {
    const { main, recovery } = sample.resetCodes
    const use = () =>
      service.api().mfa.reset({
        params: { user_id: careful.id },
        body: { main_email_code: main, recovery_email_code: recovery },
      })
    expect(await statusesOf(times(4, use))).toEqual(oneOf(4, 200, 401))
  })

  test('a name is given once, to those who come and to those who are there', async () => {
    const register = (i: number) =>
      service.api().users.register({
        body: {
          name: 'Admiral',
          username: 'admiral',
          email: `admiral-${i}@example.com`,
          password: 'lighthouse',
        },
      })
    expect(await statusesOf(times(4, register))).toEqual(oneOf(4, 200, 409))
    const tokens = [
      await world.token('owner'),
      await world.token('administrator'),
      await world.token('operator'),
    ]
    const rename = (i: number) =>
      service.api({ token: tokens[i]! }).users.update({ body: { username: 'commodore' } })
    expect(await statusesOf(times(3, rename))).toEqual(oneOf(3, 200, 409))
  })

  test('five e-mails are sent, however many ask', async () => {
    await Promise.all(times(20, () => service.api().users.recover({ body: { email: operator.email } })))
    const letters = (await service.emails()).filter((letter) => letter.to?.[0]?.address === operator.email)
    expect(letters).toHaveLength(5)
  })
})

// A stranger guesses passwords for a user name and for an e-mail address in turn. If both belong to one account, the
// tries added up, and the number of them until 429 told so. Tries are counted by what was typed.
import { describe, expect, test } from 'vitest'
import { ApiError } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { from, statusOf, totpAt, wrongTotp } from '../contract/people.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

const { observer, operator, careful, mfaSecret } = sample
const source = '192.0.2.44'

async function begun(): Promise<Service> {
  const service = await startService()
  await buildWorld(service)
  return service
}

const login = (service: Service, username: string, password: string) =>
  service.api(from(source)).users.login({ body: { username, password } })

describe('the tries for a user name and an address', () => {
  test('do not tell whether they belong to one account, at Login', async () => {
    const tries = async (pair: readonly string[]): Promise<number[]> => {
      await using service = await begun()
      const statuses: number[] = []
      for (let i = 0; i < 3; i += 1)
        for (const name of pair) statuses.push(await statusOf(login(service, name, `guess-${i}`)))
      return statuses
    }
    const ofOne = await tries([observer.username, observer.email])
    expect(ofOne).toEqual(await tries([observer.username, operator.email]))
    expect(ofOne).toEqual(await tries(['nobody', 'nobody@example.com']))
    expect(ofOne).toEqual([401, 401, 401, 401, 429, 429])
  })

  test('nor with recovery codes', async () => {
    await using service = await begun()
    const tries = async (name: string) => {
      const statuses: number[] = []
      for (let i = 0; i < 6; i += 1)
        statuses.push(
          await statusOf(
            service
              .api(from(source))
              .mfa.recover({ body: { identifier: name, recovery_code: `WRONG${i}AAAAAAAAAA` } }),
          ),
        )
      return statuses
    }
    const first = await tries(careful.username)
    for (const name of [careful.email, 'nobody', 'nobody@example.com'])
      expect(await tries(name), name).toEqual(first)
  })
})

test('wrong codes of a second factor lock the name with which the sign-in was begun, and codes for every name', async () => {
  await using service = await begun()
  const begin = async (name: string): Promise<string> => {
    const refusal: unknown = await login(service, name, careful.password).catch((error: unknown) => error)
    return refusal instanceof ApiError ? (refusal.headers.get('x-mfa-token') ?? '') : ''
  }
  const send = (token: string, code: string) =>
    statusOf(service.api(from(source)).mfa.authenticate({ body: { token, code } }))
  const token = await begin(careful.email)
  const wrong = wrongTotp(service, mfaSecret)
  expect([await send(token, wrong), await send(token, wrong), await send(token, wrong)]).toEqual([
    401, 401, 429,
  ])
  expect(await statusOf(login(service, careful.email, careful.password))).toBe(429)
  expect(await send(token, totpAt(service, mfaSecret))).toBe(429)
  // The other name begins anew; all codes together are bounded in an hour.
  const other = await begin(careful.username)
  expect(await send(other, totpAt(service, mfaSecret))).toBe(200)
})

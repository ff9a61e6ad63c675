// Limits that hold together: many addresses of one network, many networks at one account, and what a new
// password or a new address leaves behind of what was on its way.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { ApiError } from '@hawser/contract/client'
import { hour_ms } from '../../server/src/kit/clock.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { from, statusOf } from './people.ts'

const at = (service: Service, source: string) => service.api(from(source))

test('the addresses of one IPv6 network are one source to the lock-out', async () => {
  await using service = await startService()
  await buildWorld(service)
  const wrong = { body: { username: sample.observer.username, password: 'not this one' } }
  const answers: number[] = []
  for (const host of ['::1', '::2', '::3', '::4'])
    answers.push(await statusOf(at(service, `2001:db8:0:7${host}`).users.login(wrong)))
  expect(answers).toEqual([401, 401, 429, 429])
  expect(await statusOf(at(service, '2001:db8:0:8::1').users.login(wrong))).toBe(401)
})

test('wrong codes of one person are limited from all sources together', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const { username, password } = sample.careful
  /** The first factor, from a source of its own, then one code. */
  async function attempt(n: number, code: string): Promise<number> {
    const api = at(service, `192.0.2.${n}`)
    const token = await api.users.login({ body: { username, password } }).then(
      () => expect.unreachable('a second factor is on'),
      (error: unknown) => (error as ApiError).headers.get('x-mfa-token')!,
    )
    return statusOf(api.mfa.authenticate({ body: { token, code } }))
  }
  for (let n = 1; n <= 20; n++) expect(await attempt(n, '000000')).toBe(401)
  expect(await attempt(21, world.totp(sample.mfaSecret)), 'even the right one').toBe(429)
  service.clock.forward(hour_ms)
  expect(await attempt(22, world.totp(sample.mfaSecret))).toBe(200)
})

test('a new password ends the links and half sign-ins that were on their way', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('observer') })
  await api.users.update({ body: { password: 'a-new-rope', current_password: sample.observer.password } })
  const old = {
    params: { uid: sample.observer.id },
    body: { password: 'another-rope', token: sample.recoveryToken },
  }
  expect(await statusOf(service.api().users.resetPassword(old))).toBe(401)
  const careful = service.api({ token: await world.token('careful') })
  await careful.users.update({
    body: { password: 'a-new-anchor', current_password: sample.careful.password },
  })
  const half = { body: { token: sample.mfaToken, code: world.totp(sample.mfaSecret) } }
  expect(await statusOf(service.api().mfa.authenticate(half))).toBe(401)
})

test('a set-up that fails leaves its code good for another try', async () => {
  await using service = await startService()
  const code = (await service.rooms.setupCode())!
  const owner = {
    code,
    name: 'Sam',
    email: 'sam@example.com',
    username: 'sam',
    password: 'lighthouse',
    namespace: 'lagoon',
  }
  const { users } = service.rooms
  const { create } = users
  // The password cannot be hashed at that moment: too many others are.
  users.create = () => Promise.reject(new Error('busy'))
  expect(await statusOf(service.api().system.setup({ body: owner }))).toBe(500)
  users.create = create
  expect(await statusOf(service.api().system.setup({ body: owner }))).toBe(200)
})

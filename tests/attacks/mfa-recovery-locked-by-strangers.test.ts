// A stranger who knows a person's user name sends wrong recovery codes, or wrong codes of a reset, so that
// the person's own right ones are refused as locked. Wrong ones are counted for the source that sends them.
// Guessing stays hopeless: a recovery code has 80 random bits, a pair of reset codes as many, and a pair ends
// after a thousand wrong ones.
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { codeIn, from, statusOf } from '../contract/people.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

const { careful, recoveryCode } = sample
const strangers = Array.from({ length: 20 }, (_, i) => `198.51.${i}.9`)
const home = '192.0.2.77'

const recover = (service: Service, source: string, recovery_code: string) =>
  statusOf(service.api(from(source)).mfa.recover({ body: { identifier: careful.username, recovery_code } }))
const reset = (service: Service, source: string, main_email_code: string, recovery_email_code: string) =>
  statusOf(
    service
      .api(from(source))
      .mfa.reset({ params: { user_id: careful.id }, body: { main_email_code, recovery_email_code } }),
  )

async function begun(): Promise<Service> {
  const service = await startService()
  await buildWorld(service)
  return service
}

async function resetCodes(service: Service): Promise<[string, string]> {
  await service.api().mfa.requestReset({ body: { identifier: careful.username } })
  return [
    codeIn(await service.newestEmail(careful.email)),
    codeIn(await service.newestEmail(`${careful.username}@example.org`)),
  ]
}

describe('strangers who try', () => {
  test('recovery codes lock themselves out, each after five, and not the person', async () => {
    await using service = await begun()
    for (const source of strangers) {
      for (let i = 0; i < 5; i++) expect(await recover(service, source, `WRONG${i}AAAAAAAAAA`)).toBe(401)
      expect(await recover(service, source, recoveryCode)).toBe(429)
    }
    expect(await recover(service, home, recoveryCode)).toBe(200)
  })

  test('codes of a reset lock themselves out, each after five, and not the person', async () => {
    await using service = await begun()
    const [main, recovery] = await resetCodes(service)
    for (const source of strangers) {
      for (let i = 0; i < 5; i++) expect(await reset(service, source, `WRONG${i}`, recovery)).toBe(401)
      expect(await reset(service, source, main, recovery)).toBe(429)
    }
    expect(await reset(service, home, main, recovery)).toBe(200)
  })

  test('a thousand codes of a reset, from wherever, end that pair; a new one can be asked for', async () => {
    await using service = await begun()
    const [main, recovery] = await resetCodes(service)
    // As if that many had come from many sources.
    const { stores, clock } = service.rooms
    const later = new Date(clock.now() + 3_600_000).toISOString()
    for (let i = 0; i < 999; i++)
      await stores.attempts.count(`mfa reset ${careful.id}`, new Date(clock.now()).toISOString(), later)
    expect(await reset(service, strangers[0] ?? '', 'WRONG', 'WRONG')).toBe(401)
    expect(await reset(service, home, main, recovery)).toBe(401)
    const fresh = await resetCodes(service)
    expect(await reset(service, home, ...fresh)).toBe(200)
  })
})

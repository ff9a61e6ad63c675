// A server was started and its owner has not opened the set-up link yet. A stranger registers first, which
// used to count as the first user, or sends wrong codes until nobody may try any more. Neither takes the link
// away: who has registered does not count as the first user, wrong codes are counted for those who send them,
// and the right code is always taken.
import { describe, expect, test } from 'vitest'
import { minute_ms } from '../../server/src/kit/clock.ts'
import { runCommand } from '../../server/src/commands/admin.ts'
import { from, linkIn, ownFolder, statusOf } from '../contract/people.ts'
import { startService, type Service } from '../harness/service.ts'

const sam = {
  name: 'Sam',
  email: 'sam@example.com',
  username: 'sam',
  password: 'lighthouse',
  namespace: 'lagoon',
}
const eve = { name: 'Eve', email: 'eve@evil.example', username: 'eve', password: 'lighthouse' }

const setup = (service: Service, code: string, source = '192.0.2.1') =>
  statusOf(service.api(from(source)).system.setup({ body: { code, ...sam } }))

async function codeOf(service: Service): Promise<string> {
  const code = await service.rooms.setupCode()
  if (code === undefined) throw new Error('the server gave no code')
  return code
}

describe('before the set-up', () => {
  test('a stranger’s registration, confirmed or not, is an account like any other and leaves the link', async () => {
    using folder = ownFolder()
    let old: string
    {
      await using service = await startService({ folder: folder.path })
      old = await codeOf(service)
      expect(await statusOf(service.api().users.register({ body: eve }))).toBe(200)
      const token = linkIn(await service.newestEmail(eve.email)).searchParams.get('token') ?? ''
      expect(await statusOf(service.api().users.activate({ query: { email: eve.email, token } }))).toBe(200)
      expect((await service.api().users.login({ body: eve })).body).toMatchObject({
        user: 'eve',
        tenant: '',
        role: '',
      })
      expect((await service.api().system.info({})).body.setup).toBe(false)
    }
    // The next start prints a link as well.
    await using service = await startService({ folder: folder.path })
    const code = await codeOf(service)
    expect(await setup(service, old)).toBe(401)
    expect(await setup(service, code)).toBe(200)
    expect((await service.api().system.info({})).body.setup).toBe(true)
    expect(await setup(service, code)).toBe(401)
    expect(await service.rooms.setupCode()).toBeUndefined()
  })

  test('nor do many who register at the moment of the set-up itself', async () => {
    await using service = await startService()
    const code = await codeOf(service)
    const strangers = Array.from({ length: 10 }, (_, i) =>
      statusOf(
        service
          .api()
          .users.register({ body: { ...eve, username: `eve-${i}`, email: `eve-${i}@evil.example` } }),
      ),
    )
    const [status] = await Promise.all([setup(service, code), ...strangers])
    expect(status).toBe(200)
  })

  test('wrong codes lock out whoever sends them, and never the right code', async () => {
    await using service = await startService()
    const code = await codeOf(service)
    const eves = '198.51.100.66'
    for (const i of [1, 2, 3, 4, 5]) expect(await setup(service, `guess-${i}`, eves)).toBe(401)
    expect(await setup(service, 'guess-6', eves)).toBe(429)
    // Somebody else may err as often as that, too.
    expect(await setup(service, 'guess-7', '203.0.113.7')).toBe(401)
    service.clock.forward(15 * minute_ms)
    expect(await setup(service, 'guess-8', eves)).toBe(401)
    for (const i of [1, 2, 3, 4, 5]) await setup(service, `guess-${i}`, eves)
    // Behind one proxy all may have one address: the code has 122 random bits, so it needs no lock.
    expect(await setup(service, code, eves)).toBe(200)
  })

  test('a user whom the administrator makes ends it', async () => {
    await using service = await startService()
    const code = await codeOf(service)
    await runCommand(service.rooms, { words: 'user create', given: ['sam', 'lighthouse', 'sam@example.com'] })
    expect(await setup(service, code)).toBe(401)
    expect(await service.rooms.setupCode()).toBeUndefined()
  })
})

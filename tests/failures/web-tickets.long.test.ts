// The door of terminals in a browser: who gets a ticket, what it is good for, and what is turned away. Every
// refusal is an answer or a sentence, and none of them leaves a session behind.
import { beforeAll, describe, expect, test } from 'vitest'
import { ApiError } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { apiOf, dial, refusal, sharedQuarters, terminal, ticket, type Quarters } from '../clients/web.ts'

const quarters = sharedQuarters()
let before = 0
const sessions = async (): Promise<number> =>
  (await (await apiOf(quarters())).sessions.list({ query: {} })).total
beforeAll(async () => void (before = await sessions()))

const statusOf = async (call: Promise<unknown>): Promise<number> => {
  try {
    await call
    return 200
  } catch (error) {
    if (error instanceof ApiError) return error.status
    throw error
  }
}

const wish = ({ agent, user }: Quarters) => ({
  device: agent.uid,
  username: user.name,
  password: user.password,
})

describe('a ticket', () => {
  test('is for somebody who is signed in: at both addresses 401 without a token, and 403 with an API key', async () => {
    const { service } = quarters()
    const body = wish(quarters())
    for (const given of [{}, { apiKey: sample.apiKey }]) {
      const api = service.api(given)
      const expected = 'apiKey' in given ? 403 : 401
      expect(await statusOf(api.terminals.open({ body }))).toBe(expected)
      expect(await statusOf(api.terminals.openOld({ body }))).toBe(expected)
      expect(await statusOf(api.terminals.files({ body: { session: sample.session } }))).toBe(expected)
    }
  })

  test('is for members of the device’s namespace, observers too; to others there is no such device', async () => {
    const stranger = await apiOf(quarters(), 'stranger')
    expect(await statusOf(stranger.terminals.open({ body: wish(quarters()) }))).toBe(404)
    expect(await statusOf(stranger.terminals.openOld({ body: wish(quarters()) }))).toBe(404)
    for (const who of ['observer', 'operator', 'administrator', 'owner'] as const)
      expect(await ticket(quarters(), {}, who)).toMatch(/^[0-9a-f]{64}$/)
  })

  test('is for a device that is accepted', async () => {
    const api = await apiOf(quarters())
    for (const device of [sample.pendingDevice, 'f'.repeat(64)])
      expect(await statusOf(api.terminals.open({ body: { ...wish(quarters()), device } }))).toBe(404)
  })

  test('names one proof, and the replayable one of old clients is none', async () => {
    const api = await apiOf(quarters())
    const { device, username, password } = wish(quarters())
    const bodies = [
      { device, username },
      { device, username, password, fingerprint: sample.fingerprint },
      { device, username, public_key: 'x' },
    ]
    for (const body of bodies) expect(await statusOf(api.terminals.open({ body }))).toBe(400)
    const old = api.terminals.openOld({
      body: { device, username, fingerprint: sample.fingerprint, signature: 'c2lnbmVk' },
    })
    await expect(old).rejects.toThrow('could be used again by others')
    expect(await statusOf(api.terminals.openOld({ body: { device, username } }))).toBe(400)
  })

  test('is good once', async () => {
    const token = await ticket(quarters())
    using opened = await dial(quarters().service, token)
    await opened.hear('session')
    expect(await refusal(quarters().service, token)).toBe(401)
    before += 1
  })

  test('is good for half a minute', async () => {
    const { service } = quarters()
    const token = await ticket(quarters())
    service.clock.forward(30_001)
    expect(await refusal(service, token)).toBe(401)
  })

  test('that was never given is refused, whatever it is', async () => {
    for (const token of ['', 'x', 'f'.repeat(64), '%00', '../..', 'x'.repeat(5000)])
      expect(await refusal(quarters().service, token)).toBe(401)
  })

  test('is worth nothing when the person has left the namespace, or changed the password, meanwhile', async () => {
    const { service } = quarters()
    const token = await ticket(quarters(), {}, 'operator')
    const owner = await apiOf(quarters(), 'owner')
    await owner.namespaces.removeMember({ params: { tenant: sample.tenant, uid: sample.operator.id } })
    expect(await refusal(service, token)).toBe(401)

    const second = await ticket(quarters(), {}, 'administrator')
    const { body } = await service.api().users.login({
      body: { username: sample.administrator.username, password: sample.administrator.password },
    })
    await service
      .api({ token: body.token })
      .users.update({ body: { password: 'another-rope', current_password: sample.administrator.password } })
    expect(await refusal(service, second)).toBe(401)
  })

  test('of one person there are 20 at a time', async () => {
    const api = await apiOf(quarters(), 'careful')
    for (let count = 0; count < 20; count += 1) await api.terminals.open({ body: wish(quarters()) })
    expect(await statusOf(api.terminals.open({ body: wish(quarters()) }))).toBe(429)
    // Others have theirs.
    await ticket(quarters())
  })
})

describe('the page', () => {
  test.each([
    ['of somebody else', 'http://evil.example'],
    ['of another port', 'http://127.0.0.1:1'],
    ['of another scheme', 'https://127.0.0.1'],
    ['without an origin of its own', 'null'],
    ['that is nonsense', '://'],
  ])('%s is refused, and the ticket is still good for ours', async (_, origin) => {
    const { service } = quarters()
    const token = await ticket(quarters())
    expect(await refusal(service, token, { headers: { origin } })).toBe(403)
    using opened = await dial(service, token)
    await opened.hear('session')
    before += 1
  })

  test('is ours by the address in the settings, too', async () => {
    using opened = await dial(quarters().service, await ticket(quarters()), {
      headers: { origin: 'http://hawser.test' },
    })
    await opened.hear('session')
    before += 1
  })
})

describe('what cannot be', () => {
  test.each([
    ['0', '24'],
    ['80', '0'],
    ['1001', '24'],
    ['80', '99999'],
    ['-1', '24'],
    ['80.5', '24'],
    ['', ''],
    ['abc', '24'],
  ])('a terminal of %s by %s', async (cols, rows) => {
    expect(await refusal(quarters().service, await ticket(quarters()), { cols, rows })).toBe(400)
  })

  test.each<[string, string | Uint8Array]>([
    ['no JSON', 'hello'],
    ['no object', '[1]'],
    ['JSON without its parts', '{"kind":"shown"}'],
    ['an unknown kind', '{"kind":"dance","data":""}'],
    ['a message of old clients', '{"kind":1,"data":"x"}'],
    ['a signature that is no text', '{"kind":"signature","signature":{"a":1}}'],
    ['too much input', Buffer.alloc(4097, 'x')],
    ['a message that is too long', JSON.stringify({ kind: 'signature', signature: 'x'.repeat(20_000) })],
    ['a size of nothing', '{"kind":"resize","width":0,"height":24}'],
    ['a size that is too large', '{"kind":"resize","width":80,"height":1001}'],
    ['a size beyond everything', '{"kind":"resize","width":80,"height":1e9}'],
    ['a size in words', '{"kind":"resize","width":"80","height":"24"}'],
    ['more shown than there was', '{"kind":"shown","bytes":1e12}'],
  ])('%s ends the session with a sentence', async (_, message) => {
    const [opened] = await terminal(quarters())
    using closing = opened
    opened.send(message)
    expect(await opened.hear('end')).toMatch(/browser|columns and rows/)
    expect(await closing.closed).toBe(1000)
    before += 1
  })

  test('a message without end is cut off, and the session with it', async () => {
    const [opened, uid] = await terminal(quarters())
    using closing = opened
    opened.send(Buffer.alloc(2 * 1024 * 1024))
    expect(await closing.closed).toBe(1009)
    const api = await apiOf(quarters())
    await expect
      .poll(async () => (await api.sessions.get({ params: { uid } })).body.active, { timeout: 20_000 })
      .toBe(false)
    before += 1
  })
})

describe('a login that is refused says why', () => {
  const refused = async (change: object): Promise<unknown> => {
    using opened = await dial(quarters().service, await ticket(quarters(), change))
    const sentence = await opened.hear('end')
    expect(await opened.closed).toBe(1008)
    return sentence
  }

  test('a wrong password', async () =>
    expect(await refused({ password: 'wrong' })).toBe('The user name or the password is wrong.'))
  test('no such user', async () =>
    expect(await refused({ username: 'nobody-here' })).toBe('The user name or the password is wrong.'))
  test('a device that is away', async () =>
    expect(await refused({ device: sample.device })).toBe('The device is offline or cannot be reached.'))
  test('a key that nobody knows', async () =>
    expect(await refused({ password: undefined, fingerprint: '00:'.repeat(15) + '00' })).toBe(
      'This key is not registered here for this user on this device.',
    ))

  test('a rule of the firewall, by the browser’s address', async () => {
    const api = await apiOf(quarters(), 'owner')
    // Those of the world would be asked before.
    for (const { id } of (await api.firewall.list({ query: {} })).body)
      await api.firewall.remove({ params: { id } })
    const rule = {
      action: 'deny',
      active: true,
      priority: 1,
      source_ip: '^127\\.',
      username: '.*',
      filter: { hostname: '.*' },
    } as const
    const { body } = await api.firewall.create({ body: rule })
    expect(await refused({})).toBe('A firewall rule of the namespace does not allow this.')
    await api.firewall.remove({ params: { id: body.id } })
  })
})

test('only those who were let in have left a session', async () => expect(await sessions()).toBe(before))

// Where calls come from, and how many are taken. The address of the caller is the TCP peer unless a trusted
// proxy says otherwise: nobody forges the address that is recorded, that the lock-out counts, or that the
// rate limit counts. And no alias of an operation slips past the limit of its twin.
import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { addresses, operations } from '@hawser/contract'
import { call } from '@hawser/contract/client'
import { devices } from '@hawser/contract/devices'
import { sample } from '@hawser/contract/examples'
import { mfa } from '@hawser/contract/mfa'
import { system } from '@hawser/contract/system'
import { sharedPlace } from '../harness/place.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { from, refused, statusOf } from './people.ts'

const { observer, tenant } = sample
const wrong = { username: observer.username, password: 'not-the-password' }

const enrolling = (mac: string = sample.mac) => ({ ...devices.auth.example.body, identity: { mac } })

/** Enrols a device with these headers, and tells the address that was recorded for it. */
async function recorded(
  service: Service,
  headers: Record<string, string>,
  mac = sample.mac,
): Promise<string | undefined> {
  const { body } = await service.api({ headers }).devices.auth({ body: enrolling(mac) })
  return (await service.rooms.stores.of(tenant).devices.find(body.uid))?.remote_addr
}

/** A call from a certain local address, which `fetch` cannot choose. */
function callFrom(
  service: Service,
  localAddress: string,
  path: string,
  headers: Record<string, string>,
  body: unknown,
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const { hostname, port } = new URL(service.url)
  request(
    {
      host: hostname,
      port,
      path,
      method: 'POST',
      localAddress,
      agent: false,
      headers: { ...headers, 'content-type': 'application/json' },
    },
    (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode ?? 0))
    },
  )
    .on('error', reject)
    .end(JSON.stringify(body))
  return promise
}

describe('the address of a device', () => {
  const place = sharedPlace()

  test.each<[string, Record<string, string>, string]>([
    ['what X-Real-IP says', { 'x-real-ip': '198.51.100.7' }, '198.51.100.7'],
    ['also of version 6', { 'x-real-ip': '2001:db8::7' }, '2001:db8::7'],
    ['the last one of X-Forwarded-For', { 'x-forwarded-for': '203.0.113.9, 198.51.100.8' }, '198.51.100.8'],
    ['the peer, when nothing is said', {}, '127.0.0.1'],
    ['the peer, when nonsense is said', { 'x-real-ip': "1'; drop table devices; --" }, '127.0.0.1'],
    ['the peer, when half of the chain is nonsense', { 'x-forwarded-for': '198.51.100.8, ' }, '127.0.0.1'],
  ])('is %s, by a trusted proxy', async (_, headers, address) => {
    expect(await recorded(place, headers)).toBe(address)
  })

  test.each(['none', '192.0.2.0/24', '127.0.0.2'])(
    'is the peer, whatever is said, when only %s is trusted',
    async (proxies) => {
      await using service = await startService({ env: { HAWSER_TRUSTED_PROXIES: proxies } })
      await buildWorld(service)
      const headers = {
        'x-real-ip': '198.51.100.7',
        'x-forwarded-for': '198.51.100.8',
        forwarded: 'for=198.51.100.9',
      }
      expect(await recorded(service, headers)).toBe('127.0.0.1')
    },
  )

  test('follows the device when it moves, and is shown to members', async () => {
    for (const address of ['198.51.100.7', '198.51.100.8', '198.51.100.7']) {
      const { uid } = (await place.api(from(address)).devices.auth({ body: enrolling() })).body
      expect((await place.observer.devices.get({ params: { uid } })).body.remote_addr).toBe(address)
    }
  })
})

describe('malformed headers', () => {
  const place = sharedPlace()

  test.each([
    { 'x-real-ip': '' },
    { 'x-real-ip': '999.999.999.999' },
    { 'x-real-ip': '1.2.3.4:80' },
    { 'x-real-ip': ':::' },
    { 'x-real-ip': '9'.repeat(6000) },
    { 'x-forwarded-for': ',,,,' },
    { 'x-forwarded-for': Array.from({ length: 500 }, () => 'x').join(',') },
    { 'x-forwarded-for': '[2001:db8::1]:443' },
    { 'x-forwarded-host': '../../etc', 'x-forwarded-proto': 'gopher' },
    { 'x-forwarded-port': 'many', forwarded: ';;;=' },
  ])('harm nobody: %#', async (headers: Record<string, string>) => {
    await recorded(place, { 'x-real-ip': '198.51.100.7' })
    expect(await recorded(place, headers)).toBe('127.0.0.1')
    expect(await statusOf(place.api({ headers }).users.login({ body: observer }))).toBe(200)
  })
})

describe('the lock-out', () => {
  test('is not evaded by forged addresses when there is no proxy', async () => {
    await using service = await startService({ env: { HAWSER_TRUSTED_PROXIES: 'none' } })
    await buildWorld(service)
    const guess = (i: number) =>
      statusOf(
        service
          .api({ headers: { 'x-real-ip': `198.51.100.${i}`, 'x-forwarded-for': `203.0.113.${i}` } })
          .users.login({ body: wrong }),
      )
    expect([await guess(1), await guess(2), await guess(3), await guess(4)]).toEqual([401, 401, 429, 429])
  })

  test('is not evaded by what a caller writes in front of the chain of a proxy', async () => {
    await using service = await startService()
    await buildWorld(service)
    const guess = (i: number) =>
      statusOf(
        service
          .api({ headers: { 'x-forwarded-for': `203.0.113.${i}, 198.51.100.8` } })
          .users.login({ body: wrong }),
      )
    expect([await guess(1), await guess(2), await guess(3)]).toEqual([401, 401, 429])
  })

  test('tells apart who is behind the proxy and who comes past it', async () => {
    await using service = await startService({ env: { HAWSER_TRUSTED_PROXIES: '127.0.0.2' } })
    await buildWorld(service)
    const headers = { 'x-real-ip': '198.51.100.7' }
    const past = () => callFrom(service, '127.0.0.3', '/api/login', headers, wrong)
    expect([await past(), await past(), await past()]).toEqual([401, 401, 429])
    // The one whose address was forged is not locked; the forger is, under any name.
    expect(await callFrom(service, '127.0.0.2', '/api/login', headers, observer)).toBe(200)
    expect(
      await callFrom(service, '127.0.0.3', '/api/login', { 'x-real-ip': '198.51.100.99' }, observer),
    ).toBe(429)
  })
})

describe('the address of the server', () => {
  const asked = async (service: Service, headers: Record<string, string>) =>
    (await service.api({ headers }).system.install({ query: { tenant_id: tenant } })).body

  test('is what a trusted proxy says, and only then', async () => {
    const headers = { 'x-forwarded-host': 'outside.example.com', 'x-forwarded-proto': 'https' }
    {
      await using service = await startService({ env: { HAWSER_URL: '' } })
      expect(await asked(service, headers)).toContain("SERVER_ADDRESS='https://outside.example.com'")
      expect((await service.api({ headers }).system.info({})).body.endpoints.api).toBe('outside.example.com')
    }
    await using service = await startService({ env: { HAWSER_URL: '', HAWSER_TRUSTED_PROXIES: 'none' } })
    expect(await asked(service, headers)).toContain(`SERVER_ADDRESS='${service.url}'`)
  })

  test('never carries anything but a host and a port into the script', async () => {
    await using service = await startService({ env: { HAWSER_URL: '' } })
    for (const host of ["evil'; rm -rf / #", '$(reboot)', 'a b', 'host:99999999', '']) {
      const script = await asked(service, { 'x-forwarded-host': host })
      expect(script, host).toMatch(/SERVER_ADDRESS='http:\/\/[A-Za-z0-9.:-]+'/)
      if (host !== '') expect(script).not.toContain(host)
    }
  })
})

describe('the rate limit', () => {
  const env = { HAWSER_RATE_LIMIT: '5/10' }
  const info = (service: Service, source = '198.51.100.1', path: string = system.info.path) =>
    call({ ...system.info, path }, {}, { url: service.url, ...from(source) })

  test('takes five calls in ten seconds, and tells the sixth when to come back', async () => {
    await using service = await startService({ env })
    for (const _ of [1, 2, 3, 4, 5]) expect((await info(service)).status).toBe(200)
    const sixth = await info(service)
    expect([sixth.status, sixth.body]).toEqual([429, { message: expect.any(String) as string }])
    const wait = Number(sixth.headers.get('retry-after'))
    expect(wait).toBeGreaterThanOrEqual(1)
    expect(wait).toBeLessThanOrEqual(10)
    service.clock.forward(wait * 1000)
    expect((await info(service)).status).toBe(200)
  })

  test('is shared by every address of an operation', async () => {
    for (const { id, op } of operations.filter(
      ({ op }) => op.access.who === 'anyone' && (op.aliases?.length ?? 0) > 0,
    )) {
      if (id === 'devices.auth' || id === 'system.healthcheck') continue
      await using service = await startService({ env })
      const statuses = []
      for (let i = 0; i < 6; i++) {
        const { method, path } = addresses(op)[i % 2]!
        statuses.push(
          (await call({ ...op, method, path }, op.example, { url: service.url, ...from('198.51.100.1') }))
            .status,
        )
      }
      expect(statuses.slice(0, 5), id).not.toContain(429)
      expect(statuses[5], id).toBe(429)
    }
  })

  test('is shared by all operations that need no credential', async () => {
    await using service = await startService({ env })
    await buildWorld(service)
    const api = service.api(from('198.51.100.1'))
    await api.system.info({})
    await api.announcements.list({})
    await api.users.recover({ body: { username: 'nobody' } })
    await statusOf(api.users.login({ body: wrong }))
    await statusOf(api.mfa.authenticate({ body: { token: 'x', code: '1' } }))
    for (const path of [mfa.authenticate.path, '/api/user/mfa/auth']) {
      const answer = await call(
        { ...mfa.authenticate, path },
        { body: { token: 'x', code: '1' } },
        { url: service.url, ...from('198.51.100.1') },
      )
      expect(answer.status).toBe(429)
    }
  })

  test('counts what was refused as well: bad input is no way around it', async () => {
    await using service = await startService({ env })
    const statuses = []
    for (const _ of [1, 2, 3, 4, 5, 6]) {
      const answer = await fetch(`${service.url}/api/login`, {
        method: 'POST',
        body: '{',
        headers: { 'content-type': 'application/json' },
      })
      statuses.push(answer.status)
    }
    expect(statuses).toEqual([400, 400, 400, 400, 400, 429])
  })

  test('leaves another source free, and takes the /64 of an address of version 6 for one', async () => {
    await using service = await startService({ env })
    for (const _ of [1, 2, 3, 4, 5, 6]) await info(service)
    expect((await info(service)).status).toBe(429)
    expect((await info(service, '198.51.100.2')).status).toBe(200)
    for (const i of [1, 2, 3, 4, 5]) expect((await info(service, `2001:db8:1:2::${i}`)).status).toBe(200)
    expect((await info(service, '2001:db8:1:2:ffff::1')).status).toBe(429)
    expect((await info(service, '2001:db8:1:3::1')).status).toBe(200)
  })

  test('cannot be evaded with forged addresses when there is no proxy', async () => {
    await using service = await startService({ env: { ...env, HAWSER_TRUSTED_PROXIES: 'none' } })
    for (const i of [1, 2, 3, 4, 5]) expect((await info(service, `198.51.100.${i}`)).status).toBe(200)
    expect((await info(service, '198.51.100.6')).status).toBe(429)
  })

  test('is not for those who have a credential, nor for health checks', async () => {
    await using service = await startService({ env })
    const world = await buildWorld(service)
    for (const _ of [1, 2, 3, 4, 5, 6]) await info(service, '127.0.0.1')
    const api = service.api({ token: await world.token('observer') })
    for (let i = 0; i < 20; i++) expect(await statusOf(api.devices.list({}))).toBe(200)
    for (let i = 0; i < 20; i++) expect(await statusOf(service.api().system.healthcheck({}))).toBe(200)
    expect((await info(service, '127.0.0.1')).status).toBe(429)
  })

  test('is off with 0', async () => {
    await using service = await startService({ env: { HAWSER_RATE_LIMIT: '0/10' } })
    const answers = await Promise.all(Array.from({ length: 300 }, () => info(service)))
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]))
  })
})

describe('agents', () => {
  const env = { HAWSER_DEVICE_RATE_LIMIT: '5/10', HAWSER_RATE_LIMIT: '3/10' }
  const report = (service: Service, source: string, mac: string, path: string = devices.auth.path) =>
    call({ ...devices.auth, path }, { body: enrolling(mac) }, { url: service.url, ...from(source) })

  test('are limited by device: many behind one address do not hinder each other', async () => {
    await using service = await startService({ env: { HAWSER_DEVICE_RATE_LIMIT: '5/10' } })
    await buildWorld(service)
    const macs = ['00:00:5e:00:53:11', '00:00:5e:00:53:12', '00:00:5e:00:53:13']
    for (const mac of macs)
      for (const _ of [1, 2, 3, 4, 5]) expect((await report(service, '198.51.100.1', mac)).status).toBe(200)
    for (const mac of macs) {
      const answer = await report(service, '198.51.100.1', mac)
      expect(answer.status).toBe(429)
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
      // The other path is the same device; somebody at another address may be a stranger.
      expect((await report(service, '198.51.100.1', mac, '/api/auth/device')).status).toBe(429)
      expect((await report(service, '198.51.100.2', mac)).status).toBe(200)
    }
    service.clock.forward(10_000)
    for (const mac of macs) expect((await report(service, '198.51.100.1', mac)).status).toBe(200)
  })

  test('at one address make a hundred times the calls of one device, whichever devices they name', async () => {
    await using service = await startService({ env: { HAWSER_DEVICE_RATE_LIMIT: '1/10' } })
    await buildWorld(service)
    using _ = service.clock.stop()
    const mac = (i: number) => `00:00:5e:00:54:${i.toString(16).padStart(2, '0')}`
    for (let i = 0; i < 100; i++) expect((await report(service, '198.51.100.1', mac(i))).status).toBe(200)
    expect((await report(service, '198.51.100.1', mac(100))).status).toBe(429)
    expect((await report(service, '198.51.100.2', mac(100))).status).toBe(200)
  })

  test('do not use up what people at the same address may do, nor the reverse', async () => {
    await using service = await startService({ env: { ...env, HAWSER_DEVICE_RATE_LIMIT: '50/10' } })
    await buildWorld(service)
    for (let i = 0; i < 20; i++) expect((await report(service, '198.51.100.1', sample.mac)).status).toBe(200)
    const api = service.api(from('198.51.100.1'))
    for (const _ of [1, 2, 3]) expect(await statusOf(api.system.info({}))).toBe(200)
    expect(await statusOf(api.system.info({}))).toBe(429)
    expect((await report(service, '198.51.100.1', sample.mac)).status).toBe(200)
  })

  test('that are new are limited by source; known ones go on', async () => {
    await using service = await startService({ env })
    const world = await buildWorld(service)
    const mac = (i: number) => `00:00:5e:00:53:2${i}`
    for (const i of [1, 2, 3]) expect((await report(service, '198.51.100.1', mac(i))).status).toBe(200)
    const fourth = await report(service, '198.51.100.1', mac(4))
    expect(fourth.status).toBe(429)
    expect(Number(fourth.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect((await report(service, '198.51.100.1', mac(1))).status).toBe(200)
    expect((await report(service, '198.51.100.2', mac(5))).status).toBe(200)
    const { total } = await service
      .api({ token: await world.token('observer') })
      .devices.list({ query: { status: 'pending' } })
    // Four of these, and one that was there before.
    expect(total).toBe(5)
    service.clock.forward(10_000)
    expect((await report(service, '198.51.100.1', mac(4))).status).toBe(200)
  })

  test('of an unknown namespace are refused without being counted as devices', async () => {
    await using service = await startService({ env })
    await buildWorld(service)
    for (let i = 0; i < 5; i++) {
      const body = { ...enrolling(`00:00:5e:00:53:3${i}`), tenant_id: '00000000-0000-4000-8000-00000000dead' }
      expect((await refused(service.api(from('198.51.100.1')).devices.auth({ body }))).status).toBe(404)
    }
    expect((await report(service, '198.51.100.1', sample.mac)).status).toBe(200)
  })
})

// What people meet at services besides a page that works: a device that is pending, offline or replaced, a program
// that starts late, limits with their sentences, and what is left in the audit log and counted in budgets.
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { serviceLimits } from '@hawser/contract/limits'
import { startAgent } from '../harness/agent.ts'
import { eventually } from '../harness/eventually.ts'
import { hostOf, navigating, sharedServices, startProgram } from '../harness/services.ts'

const place = sharedServices()
const hello = () => startProgram((_, response) => response.end('hello'))

/** A service of a device without an agent. */
async function serviceOf(device_uid: string) {
  const body = { device_uid, name: 'page', port: 3000, audience: 'public' } as const
  return (await place.administrator.services.create({ body })).body
}

describe('a device', () => {
  test('that is pending looks like one that does not exist', async () => {
    const { uid } = await place.enrol()
    const { address } = await serviceOf(uid)
    const [pending, nowhere] = [hostOf(address), hostOf('0'.repeat(32))]
    for (const headers of [{}, navigating]) {
      const seen = await Promise.all(
        [pending, nowhere].map(async (host) => place.browser().ask(host, { headers })),
      )
      const [there, none] = seen.map(({ status, text }) => [status, text])
      expect(there).toEqual(none)
    }
    await place.owner.devices.accept({ params: { uid } })
    expect((await place.browser().ask(pending)).status).toBe(503)
    await place.owner.devices.setStatus({ params: { uid, status: 'pending' } })
    expect((await place.browser().ask(pending)).status).toBe(401)
  })

  test('that is offline says so, in a page that loads again or as JSON', async () => {
    const { uid } = await place.accepted('asleep')
    const host = hostOf((await serviceOf(uid)).address)
    const page = await place.browser().ask(host, { headers: navigating })
    expect([page.status, page.headers['retry-after']]).toEqual([503, '5'])
    expect(page.text).toContain('The device is offline.')
    expect(page.text).toContain('http-equiv="refresh"')
    const json = await place.browser().ask(host, { headers: { accept: 'application/json' } })
    expect([json.status, JSON.parse(json.text)]).toEqual([503, { message: 'The device is offline.' }])
  })

  test('that is replaced takes its services along', async () => {
    const mac = '02:00:00:00:aa:01'
    const before = await place.enrol({ hostname: 'old', mac })
    await place.owner.devices.accept({ params: { uid: before.uid } })
    await place.owner.devices.update({ params: { uid: before.uid }, body: { public_url: true } })
    const own = await serviceOf(before.uid)
    const public_url = (await place.owner.devices.get({ params: { uid: before.uid } })).body
      .public_url_address
    const after = await place.enrol({ hostname: 'new', mac })
    await place.owner.devices.accept({ params: { uid: after.uid } })
    const { body } = await place.owner.services.list({ query: { device_uid: after.uid } })
    expect(body.map(({ address }) => address).toSorted()).toEqual([own.address, public_url].toSorted())
    expect((await place.owner.devices.get({ params: { uid: after.uid } })).body).toMatchObject({
      public_url: true,
      public_url_address: public_url,
    })
  })
})

test('a program that starts later is reached then', async () => {
  const port = await (async () => {
    await using gone = await hello()
    return gone.port
  })()
  const { host } = await place.serve(port, { audience: 'public' })
  expect((await place.browser().ask(host)).status).toBe(502)
  await using _ = await startProgram(
    (__, response) => response.end('late'),
    (server) => {
      const listen = server.listen.bind(server)
      server.listen = ((_: number, ...rest: [string, () => void]) =>
        listen(port, ...rest)) as typeof server.listen
    },
  )
  expect((await place.browser().ask(host)).text).toBe('late')
})

describe('limits', () => {
  test('a head that is too large is refused', async () => {
    let complaints = 0
    await using program = await startProgram(
      (_, response) => response.end('hello'),
      (server) => server.on('clientError', () => (complaints += 1)),
    )
    const { host } = await place.serve(program.port, { audience: 'public' })
    const ask = async (bytes: number) =>
      (await place.browser().ask(host, { headers: { 'x-large': 'x'.repeat(bytes) } })).status
    expect([await ask(12_000), await ask(33_000), complaints]).toEqual([200, 431, 0])
  })

  test('a person opens a limited number of services in a minute', async () => {
    await using program = await hello()
    const { address } = await place.serve(program.port)
    const open = () =>
      place.administrator.services.open({ body: { address, state: 'x'.repeat(32) } }).then(
        () => 200,
        ({ status, message }: { status: number; message: string }) => `${status} ${message}`,
      )
    using _ = place.clock.stop()
    let last: string | number = 0
    for (let count = 0; count <= serviceLimits.openings.max && last !== 429; count += 1) last = await open()
    expect(last).toBe('429 You have opened many services; wait a moment.')
    place.clock.forward(61_000)
    expect(await open()).toBe(200)
  })

  test('a namespace has a limited number of services', async () => {
    const body = { device_uid: sample.device, name: 'one of many', port: 3000 }
    const { total } = await place.owner.services.list({ query: {} }).then(({ headers }) => ({
      total: Number(headers.get('x-total-count')),
    }))
    for (let count = total; count < serviceLimits.ofNamespace.max; count += 1)
      await place.owner.services.create({ body })
    const refusal = {
      status: 403,
      message: 'The namespace has reached its limit of services; delete one first.',
    }
    await expect(place.owner.services.create({ body })).rejects.toMatchObject(refusal)
    await expect(
      place.owner.webEndpoints.create({ body: { uid: sample.device, host: '127.0.0.1', port: 80, ttl: -1 } }),
    ).rejects.toMatchObject(refusal)
    await expect(
      place.owner.devices.update({ params: { uid: place.agent.uid }, body: { public_url: true } }),
    ).rejects.toMatchObject(refusal)
    for (const { id, name } of (await place.owner.services.list({ query: { per_page: 100 } })).body)
      if (name === body.name) await place.owner.services.remove({ params: { id } })
    await place.owner.services.create({ body })
  })
})

describe('the audit log', () => {
  const entries = async (action: 'service.opened' | 'service.refused', id: string) =>
    (await place.owner.audit.list({ query: { action, limit: 100 } })).body.entries.filter(
      ({ target, detail }) => target.id === id || (detail as { service?: string })?.service === id,
    )

  test('has who opened a service, from where, once for each session', async () => {
    await using program = await hello()
    const { address, host, id } = await place.serve(program.port)
    const browser = place.browser()
    await browser.open(address, place.operator)
    await browser.ask(host)
    await eventually(async () =>
      expect(await entries('service.opened', id)).toMatchObject([
        {
          actor: { kind: 'user', name: sample.operator.username },
          source: '127.0.0.1',
          detail: { device: place.agent.uid, target: `127.0.0.1:${program.port}` },
        },
      ]),
    )
  })

  test('has who was not let in, and why; they do not learn it', async () => {
    await using program = await hello()
    const { address, host, id } = await place.serve(program.port, { audience: 'link', role: 'administrator' })
    const body = { address, state: 'x'.repeat(32) }
    for (const client of [place.operator, place.operator, place.stranger])
      await expect(client.services.open({ body })).rejects.toMatchObject({
        status: 404,
        message: 'There is no such service, or you may not open it.',
      })
    await place.administrator.services.newLink({ params: { id } })
    await place.browser().ask(host, { path: '/.well-known/hawser/link?key=guessed', headers: navigating })
    await eventually(async () =>
      expect(
        (await entries('service.refused', id))
          .map(({ actor, detail }) => `${actor.name} ${String((detail as { reason: unknown }).reason)}`)
          .toSorted(),
      ).toEqual([' link', `${sample.operator.username} role`, `${sample.stranger.username} not-a-member`]),
    )
  })
})

test('what passes counts in the data budget of the device', async () => {
  await using program = await startProgram((_, response) => response.end(Buffer.alloc(2_000_000)))
  await using _ = await startAgent({ url: place.url, rooms: place.rooms }, { hostname: 'metered' })
  const { uid } = _
  const create = { device_uid: uid, name: 'large', port: program.port, audience: 'public' } as const
  const { address } = (await place.owner.services.create({ body: create })).body
  const { body: budget } = await place.owner.budgets.create({ body: { device: uid, bytes: 1_000_000 } })
  expect((await place.browser().ask(hostOf(address))).body).toHaveLength(2_000_000)
  await place.rooms.traffic.flush(true)
  const [seen] = (await place.owner.budgets.list({ query: {} })).body.filter(({ id }) => id === budget.id)
  expect(seen).toMatchObject({ state: 'over' })
  expect(seen!.used).toBeGreaterThan(2_000_000)
})

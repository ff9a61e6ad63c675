// Somebody has a page of a device open, with a WebSocket that asks for nothing more, when the right to it ends:
// it is cut off at once, by whatever change, and the next request is refused.
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { eventually } from '../harness/eventually.ts'
import {
  navigating,
  sharedServices,
  startProgram,
  startServices,
  type Browser,
  type ServicesPlace,
} from '../harness/services.ts'
import { head } from './services-raw.ts'

const place = sharedServices()
const here = { tenant: sample.tenant }
const observer = { ...here, uid: sample.observer.id }

/** Takes WebSockets and keeps them open. */
const keeping = () =>
  startProgram(
    (_, response) => void response.end('open'),
    (server) =>
      server.on('upgrade', (_: IncomingMessage, socket: Duplex) => {
        socket.on('error', () => undefined).resume()
        socket.once('end', () => socket.end())
        socket.write(
          head(
            'HTTP/1.1 101 Go',
            'Upgrade: websocket',
            'Connection: Upgrade',
            'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=',
          ),
        )
      }),
  )

async function webSocket({ url }: ServicesPlace, browser: Browser, host: string): Promise<Duplex> {
  const cookie = [...(browser.cookies.get(host) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ')
  const request = http.request({
    port: new URL(url).port,
    agent: false,
    headers: {
      host,
      ...(cookie === '' ? {} : { cookie }),
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    },
  })
  const opened = once(request, 'upgrade')
  request.once('response', ({ statusCode }) => request.destroy(new Error(`refused with ${statusCode}`)))
  request.end()
  const [, socket] = (await opened) as [IncomingMessage, Duplex]
  return socket.on('error', () => undefined)
}

async function signIn(): Promise<Client> {
  const { username, password } = sample.observer
  return place.api({ token: (await place.nobody.users.login({ body: { username, password } })).body.token })
}

/** Opens, makes the change, and waits for the end of what is open. */
async function expectEnd(
  at: ServicesPlace,
  { address, host }: { readonly address: string; readonly host: string },
  as: Client | undefined,
  change: () => unknown,
  browser = at.browser(),
): Promise<void> {
  if (as) expect((await browser.open(address, as)).status).toBe(200)
  const sockets = [await webSocket(at, browser, host), await webSocket(at, browser, host)]
  const closed = sockets.map((socket) => once(socket, 'close'))
  await change()
  await Promise.all(closed)
}

const refused = async (browser: Browser, host: string): Promise<void> =>
  expect((await browser.ask(host)).status).toBe(401)

describe('of a member, when', () => {
  const nothing = (): void => undefined
  const lost: readonly (readonly [
    what: string,
    lose: (own: Client, id: string) => unknown,
    restore: () => unknown,
  ])[] = [
    [
      'the membership ends',
      () => place.owner.namespaces.removeMember({ params: observer }),
      () =>
        place.owner.namespaces.addMember({
          params: here,
          body: { identifier: sample.observer.username, role: 'operator' },
        }),
    ],
    [
      'the role is lowered',
      () => place.owner.namespaces.updateMember({ params: observer, body: { role: 'observer' } }),
      () => place.owner.namespaces.updateMember({ params: observer, body: { role: 'operator' } }),
    ],
    ['the sign-in ends', (own) => own.signIns.end({ params: { id: 'current' } }), nothing],
    ['the service is deleted', (_, id) => place.owner.services.remove({ params: { id } }), nothing],
    [
      'the service wants another role',
      (_, id) => place.owner.services.update({ params: { id }, body: { role: 'administrator' } }),
      nothing,
    ],
    [
      'the service is for others',
      (_, id) =>
        place.owner.services.update({
          params: { id },
          body: { audience: 'people', people: [sample.operator.username] },
        }),
      nothing,
    ],
    [
      'the policy forbids services',
      () => place.owner.policies.update({ body: { services: 'forbid' } }),
      () => place.owner.policies.update({ body: { services: 'allow' } }),
    ],
  ]
  test.each(lost)('%s', async (_, lose, restore) => {
    await using program = await keeping()
    await place.owner.namespaces.updateMember({ params: observer, body: { role: 'operator' } })
    const service = await place.serve(program.port)
    const own = await signIn()
    const browser = place.browser()
    await expectEnd(place, service, own, () => lose(own, service.id), browser)
    await refused(browser, service.host)
    await restore()
  })

  test('an administrator closes the session', async () => {
    await using program = await keeping()
    const service = await place.serve(program.port)
    await expectEnd(place, service, place.operator, async () => {
      const { body } = await place.owner.sessions.list({ query: {} })
      const { uid } = body.find(({ web, active }) => active && web?.service === service.id)!
      await place.owner.sessions.close({ params: { uid }, body: { device: place.agent.uid } })
    })
  })
})

test('of the holder of a link, when it is renewed, or opens no longer', async () => {
  await using program = await keeping()
  const service = await place.serve(program.port, { audience: 'link' })
  const params = { id: service.id }
  for (const change of [
    () => place.owner.services.newLink({ params }),
    () => place.owner.services.update({ params, body: { audience: 'members' } }),
  ]) {
    const { pathname, search } = new URL((await place.owner.services.newLink({ params })).body.link)
    const browser = place.browser()
    await browser.ask(service.host, { path: `${pathname}${search}`, headers: navigating })
    await expectEnd(place, service, undefined, change, browser)
    await refused(browser, service.host)
  }
})

test('of strangers, when a service is public no longer, and when its end has come', async () => {
  await using program = await keeping()
  const service = await place.serve(program.port, { audience: 'public' })
  const { id } = service
  await expectEnd(place, service, undefined, () =>
    place.owner.services.update({ params: { id }, body: { audience: 'members' } }),
  )
  await refused(place.browser(), service.host)
  const expires_at = new Date(place.clock.now() + 60_000).toISOString()
  await place.owner.services.update({ params: { id }, body: { audience: 'public', expires_at } })
  await expectEnd(place, service, undefined, () => place.clock.forward(60_000))
  await refused(place.browser(), service.host)
})

test('of the public URL of a device, when it is switched off', async () => {
  const params = { uid: place.agent.uid }
  await place.owner.devices.update({ params, body: { public_url: true } })
  const [service] = (
    await place.owner.services.list({ query: { device_uid: params.uid, per_page: 100 } })
  ).body.filter(({ public_url }) => public_url)
  const host = new URL(service!.url).host
  // Whether or not something listens at port 80.
  expect([200, 404, 502]).toContain((await place.browser().ask(host)).status)
  const isActive = async (): Promise<boolean | undefined> =>
    (await place.owner.sessions.list({ query: {} })).body.find(({ web }) => web?.service === service!.id)
      ?.active
  expect(await isActive()).toBe(true)
  await place.owner.devices.update({ params, body: { public_url: false } })
  await eventually(async () => expect(await isActive()).toBe(false))
  await refused(place.browser(), host)
})

test('of everybody, when the device is rejected', async () => {
  await using own = await startServices()
  await using program = await keeping()
  const service = await own.serve(program.port, { audience: 'public' })
  await expectEnd(own, service, undefined, () =>
    own.owner.devices.setStatus({ params: { uid: own.agent.uid, status: 'reject' } }),
  )
  await refused(own.browser(), service.host)
})

// The last one: the device is gone afterwards.
test('of everybody, when the device is deleted', async () => {
  await using program = await keeping()
  const service = await place.serve(program.port, { audience: 'public' })
  await expectEnd(place, service, undefined, () =>
    place.owner.devices.remove({ params: { uid: place.agent.uid } }),
  )
  await refused(place.browser(), service.host)
})

// Strangers at public services: they open as many requests as they can and leave them open, or ask again and
// again. One of them must not keep out others, and none of them members. They did: all requests at a public
// service shared 32 connections to the device, half of what one address may have open, and the handshake of a
// WebSocket that was refused kept its place for as long as the stranger stayed.
import http, { type IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { serviceLimits } from '@hawser/contract/limits'
import { eventually } from '../harness/eventually.ts'
import { hostOf, sharedServices, startProgram } from '../harness/services.ts'
import { answers, dial, handshake, head, recording, type Line } from './services-raw.ts'

const place = sharedServices()

const perSource = serviceLimits.requestsOfSource.max
const perDevice = serviceLimits.requestsOfDevice.max

/** Hangs at `/hang`, and answers elsewhere. */
const hanging = () =>
  startProgram((request, response) => {
    request.resume()
    if (request.url !== '/hang') response.end('answered')
  })

/** Sends requests that stay open until it is disposed. */
function flood(host: string, source: string, count: number, path = '/hang') {
  const requests = Array.from({ length: count }, () => {
    const request = http.request({
      port: new URL(place.url).port,
      agent: false,
      path,
      headers: { host, 'x-forwarded-for': source },
    })
    request.on('error', () => undefined).end()
    return request
  })
  return {
    /** Statuses of those that were answered. */
    refused: () =>
      requests.flatMap((request) => (request as { res?: IncomingMessage }).res?.statusCode ?? []),
    [Symbol.dispose]: () => requests.forEach((request) => request.destroy()),
  }
}

const from = async (host: string, source: string, headers: Record<string, string> = {}): Promise<number> =>
  (await place.browser().ask(host, { headers: { 'x-forwarded-for': source, ...headers } })).status

describe('one address', () => {
  test('has so many requests open and no more, and members of it get in', async () => {
    await using program = await hanging()
    const { host } = await place.serve(program.port, { audience: 'public' })
    const members = await place.serve(program.port)
    const browser = place.browser()
    await browser.open(members.address, place.operator)
    const one = '198.51.100.7'
    {
      using stranger = flood(host, one, perSource + 10)
      await eventually(() => expect(stranger.refused()).toEqual(Array<number>(10).fill(429)))
      expect(await from(host, one)).toBe(429)
      const member = await browser.ask(members.host, { headers: { 'x-forwarded-for': one } })
      expect([member.status, member.text]).toEqual([200, 'answered'])
    }
    await eventually(async () => expect(await from(host, one)).toBe(200))
  })

  test('keeps nobody else out of the service', async () => {
    await using program = await hanging()
    const { host } = await place.serve(program.port, { audience: 'public' })
    using stranger = flood(host, '198.51.100.8', perSource + 1)
    await eventually(() => expect(stranger.refused()).toEqual([429]))
    expect(await from(host, '198.51.100.9')).toBe(200)
  }, 20_000)

  test('of IPv6 is the whole network of a host', async () => {
    await using program = await hanging()
    const { host } = await place.serve(program.port, { audience: 'public' })
    using stranger = flood(host, '2001:db8::1', perSource)
    using _ = flood(host, '2001:db8::2', 1)
    await eventually(() => expect([...stranger.refused(), ..._.refused()]).toEqual([429]))
    expect(await from(host, '2001:db8:0:0:ffff::3')).toBe(429)
  })

  test('asks so often and no more; others, and members of it, go on', async () => {
    await using program = await hanging()
    const members = await place.serve(program.port)
    const browser = place.browser()
    await browser.open(members.address, place.operator)
    using _ = place.clock.stop()
    const [one, nowhere] = ['198.51.100.10', hostOf('0'.repeat(32))]
    let refused = 0
    for (let sent = 0; sent < serviceLimits.rateOfSource.max + 50; sent += 50) {
      const statuses = await Promise.all(Array.from({ length: 50 }, async () => from(nowhere, one)))
      refused += statuses.filter((status) => status === 429).length
    }
    expect(refused).toBe(50)
    expect(await from(nowhere, '198.51.100.11')).toBe(401)
    const member = await browser.ask(members.host, { headers: { 'x-forwarded-for': one } })
    expect(member.status).toBe(200)
    place.clock.forward(serviceLimits.rateOfSource.window_ms)
    expect(await from(nowhere, one)).toBe(401)
  })

  test('asks no more often with the cookie of a sign-in that has ended', async () => {
    await using program = await hanging()
    const { address, host } = await place.serve(program.port, { role: 'observer' })
    const { username, password } = sample.observer
    const { token } = (await place.nobody.users.login({ body: { username, password } })).body
    const own: Client = place.api({ token })
    const browser = place.browser()
    await browser.open(address, own)
    await own.signIns.end({ params: { id: 'current' } })
    const cookie = `hawser-service=${browser.cookies.get(host)?.get('hawser-service')}`
    using _ = place.clock.stop()
    let refused = 0
    for (let sent = 0; sent < serviceLimits.rateOfSource.max + 50; sent += 50) {
      const statuses = await Promise.all(
        Array.from({ length: 50 }, async () => from(host, '198.51.100.12', { cookie })),
      )
      refused += statuses.filter((status) => status === 429).length
    }
    expect(refused).toBeGreaterThan(0)
  })
})

test('many addresses fill one device, and leave it to its members', async () => {
  await using program = await hanging()
  const { host } = await place.serve(program.port, { audience: 'public' })
  const own = await place.serve(program.port)
  const member = place.browser()
  using floods = new DisposableStack()
  const all = Array.from({ length: perDevice / perSource }, (_, index) =>
    floods.use(flood(host, `203.0.113.${index}`, perSource)),
  )
  using extra = flood(host, '203.0.113.99', 1)
  await eventually(() => expect([...all, extra].flatMap((one) => one.refused())).toEqual([429]))
  expect((await member.open(own.address, place.operator, '/at-once')).status).toBe(200)
})

/** Keeps its half of each connection open. */
function staying(count: number, bytes: string): Line[] {
  return Array.from({ length: count }, () => {
    const line = dial(place.url)
    line.socket.removeAllListeners('end')
    line.socket.write(bytes)
    return line
  })
}

describe('a place comes back from', () => {
  test('connections that wait for a next request', async () => {
    await using program = await recording()
    const { host } = await place.serve(program.port, { audience: 'public' })
    const lines = staying(perSource, head('GET / HTTP/1.1', `Host: ${host}`))
    for (const line of lines) expect(await answers(line, 1)).toEqual([200])
    expect((await place.browser().ask(host)).status).toBe(200)
    for (const line of lines) line.socket.destroy()
  })

  test('WebSockets that the device has refused, though the stranger stays', async () => {
    await using program = await recording()
    const { host } = await place.serve(program.port, { audience: 'public' })
    const lines = staying(perSource, head('GET / HTTP/1.1', `Host: ${host}`, ...handshake))
    for (const line of lines) expect(await answers(line, 1)).toEqual([200])
    try {
      await eventually(async () => expect((await place.browser().ask(host)).status).toBe(200), 10_000)
    } finally {
      for (const line of lines) line.socket.destroy()
    }
  })
})

test.each([
  ['the server', 'members'],
  ['the device', 'public'],
] as const)('whoever is refused a WebSocket by %s is let go, though they stay', async (_, audience) => {
  await using program = await recording()
  const { host } = await place.serve(program.port, { audience })
  // What comes after the handshake is never read, so the server does not see its end either.
  const [line] = staying(1, `${head('GET / HTTP/1.1', `Host: ${host}`, ...handshake)}more`)
  await answers(line!, 1)
  const { socket } = line!
  // The server has let go when it answers with a reset.
  const talking = setInterval(() => socket.write('still here'), 100)
  const late = setTimeout(() => socket.destroy(new Error('The server holds the connection.')), 10_000)
  try {
    const reset = new Promise<NodeJS.ErrnoException>((resolve) => void socket.once('error', resolve))
    expect((await reset).code).toMatch(/ECONNRESET|EPIPE/)
  } finally {
    clearInterval(talking)
    clearTimeout(late)
    socket.destroy()
  }
})

test('strangers leave one session for each service, whoever and however many they are', async () => {
  await using program = await hanging()
  const services = [
    await place.serve(program.port, { audience: 'public' }),
    await place.serve(program.port, { audience: 'public' }),
  ]
  await Promise.all(
    services.flatMap(({ host }) =>
      Array.from({ length: 40 }, async (_, index) =>
        from(host, `192.0.2.${index}`, {
          'user-agent': `browser ${index}`,
          cookie: `hawser-service=${index}`,
        }),
      ),
    ),
  )
  const { body } = await place.owner.sessions.list({ query: { per_page: 100 } })
  for (const { id } of services) expect(body.filter(({ web }) => web?.service === id)).toHaveLength(1)
})

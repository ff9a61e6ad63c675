// Pages of others use the browser of somebody who has a service open: a site of the internet, or the page of
// another device, whose requests are of the same site and so bring the cookie along. They may link to a
// service of members, and nothing else; a public one decides by itself.
import { beforeAll, describe, expect, test } from 'vitest'
import type { OutgoingHttpHeaders } from 'node:http'
import { navigating, sharedServices, startProgram, type Browser } from '../harness/services.ts'
import { answerTo, handshake, head, statusOf } from './services-raw.ts'

const place = sharedServices()

const requests: string[] = []
const program = () =>
  startProgram((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    request.resume()
    response.end('of the device')
  })

type Foreign = readonly [what: string, method: string, headers: (host: string) => OutgoingHttpHeaders]
const sibling = `http://${'a'.repeat(32)}.services.test`
const refused: readonly Foreign[] = [
  [
    'a form of another site',
    'POST',
    () => ({ ...navigating, origin: 'http://evil.test', 'sec-fetch-site': 'cross-site' }),
  ],
  [
    'a form of a neighbour',
    'POST',
    () => ({ ...navigating, origin: sibling, 'sec-fetch-site': 'same-site' }),
  ],
  ['a form of a sandbox', 'POST', () => ({ ...navigating, origin: 'null' })],
  ['a form without Origin', 'POST', () => ({ ...navigating, 'sec-fetch-site': 'same-site' })],
  [
    'fetch of another site',
    'GET',
    () => ({ origin: 'http://evil.test', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }),
  ],
  [
    'fetch of a neighbour',
    'GET',
    () => ({ origin: sibling, 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' }),
  ],
  ['fetch without CORS', 'GET', () => ({ 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' })],
  [
    'an image',
    'GET',
    () => ({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }),
  ],
  [
    'a script',
    'GET',
    () => ({ 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' }),
  ],
  [
    'a preflight',
    'OPTIONS',
    () => ({ origin: sibling, 'sec-fetch-site': 'same-site', 'access-control-request-method': 'PUT' }),
  ],
  ['an old browser', 'POST', () => ({ origin: 'http://evil.test' })],
  ['an old browser at a neighbour', 'GET', () => ({ origin: sibling })],
  ['the console', 'POST', () => ({ origin: 'http://hawser.test', 'sec-fetch-site': 'cross-site' })],
  ['the same name by TLS', 'POST', (host) => ({ origin: `https://${host}` })],
  ['the same name at another port', 'POST', (host) => ({ origin: `http://${host}:8080` })],
  ['a longer name', 'POST', (host) => ({ origin: `http://${host}.evil.test` })],
  ['a shorter name', 'POST', () => ({ origin: 'http://services.test' })],
  ['the name behind a user', 'POST', (host) => ({ origin: `http://${host}@evil.test` })],
  ['no page', 'POST', () => ({ origin: '' })],
  ...(['iframe', 'frame', 'embed', 'object'] as const).map((dest): Foreign => [
    `an ${dest} of a neighbour`,
    'GET',
    () => ({ 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': dest }),
  ]),
  ['a value that no browser knows', 'GET', () => ({ 'sec-fetch-site': 'anything' })],
]

const allowed: readonly Foreign[] = [
  ['the address bar', 'GET', () => ({ ...navigating, 'sec-fetch-site': 'none' })],
  ['a link of another site', 'GET', () => ({ ...navigating, 'sec-fetch-site': 'cross-site' })],
  ['a link of a neighbour', 'GET', () => ({ ...navigating, 'sec-fetch-site': 'same-site' })],
  ['its own page', 'POST', (host) => ({ origin: `http://${host}`, 'sec-fetch-site': 'same-origin' })],
  [
    'its own frame',
    'GET',
    () => ({ 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }),
  ],
  ['its own image', 'GET', () => ({ 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'no-cors' })],
  ['a program', 'POST', () => ({})],
]

describe.each(['members', 'link', 'public'] as const)('at a service of the audience %s', (audience) => {
  let device: Awaited<ReturnType<typeof program>>
  let browser: Browser
  let host: string

  beforeAll(async () => {
    device = await program()
    const service = await place.serve(device.port, { audience })
    host = service.host
    browser = place.browser()
    if (audience === 'members') await browser.open(service.address, place.operator)
    if (audience === 'link') {
      const { link } = (await place.operator.services.newLink({ params: { id: service.id } })).body
      const { pathname, search } = new URL(link)
      await browser.ask(host, { path: `${pathname}${search}`, headers: navigating })
    }
    return async () => device[Symbol.asyncDispose]()
  })

  const ask = async (method: string, headers: OutgoingHttpHeaders): Promise<number> => {
    requests.length = 0
    const more = method === 'POST' ? { 'content-length': 0 } : {}
    const { status } = await browser.ask(host, { method, headers: { ...headers, ...more } })
    expect(requests).toHaveLength(status === 200 ? 1 : 0)
    return status
  }

  test.each(refused)('%s is refused, unless it is public', async (_, method, headers) => {
    expect(await ask(method, headers(host))).toBe(audience === 'public' ? 200 : 403)
  })

  test.each(allowed)('%s passes', async (_, method, headers) => {
    expect(await ask(method, headers(host))).toBe(200)
  })

  test('a WebSocket of another page is refused, unless it is public', async () => {
    const cookie = [...(browser.cookies.get(host) ?? [])].map(([name, value]) => `Cookie: ${name}=${value}`)
    for (const [origin, own] of [
      ['http://evil.test', false],
      [sibling, false],
      ['null', false],
      [`https://${host}`, false],
      [`http://${host}`, true],
    ] as const) {
      requests.length = 0
      const lines = [`Host: ${host}`, ...cookie, ...handshake, `Origin: ${origin}`]
      const status = statusOf(await answerTo(place.url, head('GET /socket HTTP/1.1', ...lines)))
      const passes = own || audience === 'public'
      expect([status, requests.length], origin).toEqual(passes ? [200, 1] : [403, 0])
    }
  })
})

test('a frame of a stranger gets no way to the console, and the pages of the server are in no frame', async () => {
  await using device = await program()
  const { host } = await place.serve(device.port)
  for (const dest of ['iframe', 'frame', 'embed', 'object']) {
    const headers = { ...navigating, 'sec-fetch-dest': dest, 'sec-fetch-site': 'cross-site' }
    const answer = await place.browser().ask(host, { headers })
    expect([answer.status, answer.headers.location, answer.headers['set-cookie']]).toEqual([
      401,
      undefined,
      undefined,
    ])
    expect(answer.headers['content-security-policy']).toContain("frame-ancestors 'none'")
  }
})

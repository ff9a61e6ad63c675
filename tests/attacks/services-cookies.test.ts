// The cookie of a service: sent to another service, kept after the right to it has ended, read by a device,
// or set by one. A device set it by a cookie without a name, which browsers send as its bare value.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { navigating, sharedServices, startProgram, type Browser } from '../harness/services.ts'
import { answers, answerTo, bareProgram, dial, handshake, head, statusOf } from './services-raw.ts'

const place = sharedServices()
const name = 'hawser-service'
const here = { tenant: sample.tenant }

const echo = () => startProgram((request, response) => response.end(JSON.stringify(request.headers)))

async function signIn(): Promise<Client> {
  const { username, password } = sample.observer
  return place.api({ token: (await place.nobody.users.login({ body: { username, password } })).body.token })
}

const nothing = async (): Promise<void> => undefined
const cookieOf = (browser: Browser, host: string): string => browser.cookies.get(host)?.get(name) ?? ''

test('a cookie is good at its own service only', async () => {
  await using program = await echo()
  const [mine, other] = [await place.serve(program.port), await place.serve(program.port)]
  const linked = await place.serve(program.port, { audience: 'link' })
  const browser = place.browser()
  await browser.open(mine.address, place.operator)
  const cookie = cookieOf(browser, mine.host)
  for (const host of [other.host, linked.host]) {
    browser.cookies.set(host, new Map([[name, cookie]]))
    expect((await browser.ask(host)).status).toBe(401)
    expect((await browser.ask(host, { headers: navigating })).status).toBe(302)
  }
  expect((await browser.ask(mine.host)).status).toBe(200)
})

test('a cookie that was changed, or made by somebody else, is nothing', async () => {
  await using program = await echo()
  const { address, host } = await place.serve(program.port)
  const browser = place.browser()
  await browser.open(address, place.operator)
  const cookie = cookieOf(browser, host)
  const at = Math.floor(cookie.length / 2)
  const changed = cookie.slice(0, at) + (cookie[at] === 'A' ? 'B' : 'A') + cookie.slice(at + 1)
  const claimed = Buffer.from(JSON.stringify({ kind: 'user', user_id: sample.owner.id })).toString(
    'base64url',
  )
  for (const value of [changed, cookie.slice(0, -4), `${cookie}AAAA`, claimed, '']) {
    browser.cookies.set(host, new Map([[name, value]]))
    expect((await browser.ask(host)).status, value).toBe(401)
  }
})

test('a cookie ends after twelve hours, however often it is used', async () => {
  await using program = await echo()
  const { address, host } = await place.serve(program.port)
  const browser = place.browser()
  await browser.open(address, place.operator)
  place.clock.forward(12 * 60 * 60_000 - 60_000)
  expect((await browser.ask(host)).status).toBe(200)
  place.clock.forward(61_000)
  expect((await browser.ask(host)).status).toBe(401)
})

/** Opens a WebSocket, which the program keeps open. */
async function keptOpen(browser: Browser, host: string): Promise<Duplex> {
  const request = http.request({
    port: new URL(place.url).port,
    agent: false,
    headers: {
      host,
      cookie: `${name}=${cookieOf(browser, host)}`,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    },
  })
  request.once('response', (answer) =>
    request.emit('error', new Error(`${answer.statusCode} to the handshake`)),
  )
  request.end()
  const [, socket] = (await once(request, 'upgrade')) as [IncomingMessage, Duplex]
  return socket.on('error', () => undefined)
}

describe('the next request is refused, and what is open ends, when', () => {
  const lost: readonly (readonly [
    what: string,
    lose: (own: Client) => Promise<unknown>,
    restore: () => Promise<unknown>,
  ])[] = [
    ['the person signs out', (own) => own.signIns.end({ params: { id: 'current' } }), nothing],
    ['the person ends other sign-ins', async () => (await signIn()).signIns.endOthers(), nothing],
    [
      'the membership ends',
      () => place.owner.namespaces.removeMember({ params: { ...here, uid: sample.observer.id } }),
      () =>
        place.owner.namespaces.addMember({
          params: here,
          body: { identifier: sample.observer.username, role: 'observer' },
        }),
    ],
    [
      'the password is changed in another sign-in',
      async () =>
        (await signIn()).users.updatePassword({
          params: { id: sample.observer.id },
          body: { current_password: sample.observer.password, new_password: 'a-new-rope' },
        }),
      nothing,
    ],
  ]
  test.each(lost)('%s', async (_, lose, restore) => {
    await using program = await startProgram(
      (request, response) =>
        void (request.url === '/endless' ? response.write('and on') : response.end('still there')),
      (server) =>
        server.on('upgrade', (_request: IncomingMessage, socket: Duplex) => {
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
    const { address, host } = await place.serve(program.port, { role: 'observer' })
    const own = await signIn()
    const browser = place.browser()
    const sent = await browser.ask(host, { headers: navigating })
    const state = new URL(sent.headers.location ?? '').searchParams.get('state') ?? ''
    const back = new URL((await own.services.open({ body: { address, state } })).body.url)
    await browser.ask(host, { path: `${back.pathname}${back.search}`, headers: navigating })
    const socket = await keptOpen(browser, host)
    const endless = dial(place.url)
    const cookie = `Cookie: ${name}=${cookieOf(browser, host)}`
    endless.socket.write(head('GET /endless HTTP/1.1', `Host: ${host}`, cookie))
    expect(await answers(endless, 1)).toEqual([200])
    const closed = [once(socket, 'close'), endless.closed]
    await lose(own)
    try {
      expect((await browser.ask(host)).status).toBe(401)
      await Promise.all(closed)
    } finally {
      await restore()
    }
  })
})

describe('cookies of the server', () => {
  const secret = randomBytes(8).toString('hex')

  test.each([
    [`a=1; ${name}=${secret}; b=2`],
    [`${name}=${secret}`],
    [`a=1;${name}=${secret};b=2`],
    [`a=1;\t${name}\t=\t${secret}; b=2`],
    [`  ${name} = ${secret}  ;;;a=1`],
    [`${name}="${secret}"; a="1"`],
    [`a="1; ${name}=${secret}; b="2`],
    [`__Host-${name}=${secret}; hawser-state=${secret}; __Host-hawser-state=${secret}; a=1`],
    [`${name}=${secret}; ${name}=${secret}; a=1`],
    [`=${name}=${secret}; a=1`],
    [`a=1, ${name}=2; ${name}=${secret}`],
  ])('never reach a device: %s', async (cookie) => {
    await using program = await echo()
    const { host } = await place.serve(program.port, { audience: 'public' })
    const { text } = await place.browser().ask(host, { headers: { cookie } })
    expect(text).not.toContain(secret)
    if (/\ba="?1/.test(cookie)) expect(text).toMatch(/"cookie":".*a=/)
  })

  test('never reach a device in several headers, or in a WebSocket', async () => {
    const program = await bareProgram((socket) => socket.end(head('HTTP/1.1 204 None', 'Connection: close')))
    await using _ = program
    const { host } = await place.serve(program.port, { audience: 'public' })
    const cookies = [
      `Cookie: a=1; ${name}=${secret}`,
      `COOKIE: ${name}=${secret}; b=2`,
      `cookie:${name}=${secret}`,
    ]
    const lines = ['GET / HTTP/1.1', `Host: ${host}`, ...cookies]
    expect(statusOf(await answerTo(place.url, head(...lines, 'Connection: close, Cookie')))).toBe(204)
    expect(statusOf(await answerTo(place.url, head(...lines, ...handshake)))).toBe(204)
    expect(program.seen).toHaveLength(2)
    for (const seen of program.seen) {
      expect(seen).not.toContain(secret)
      expect(seen.match(/^cookie:.*$/gim)).toEqual(['Cookie: a=1; b=2'])
    }
  })
})

/** As browsers read it (RFC 6265, and a name that is missing): the cookie that they send, and its Domain. */
function asBrowser(header: string): { sent: string; domain: boolean } {
  const [pair = '', ...attributes] = header.split(';')
  const at = pair.indexOf('=')
  const key = at < 0 ? '' : pair.slice(0, at).trim()
  const value = pair.slice(at + 1).trim()
  return {
    sent: key === '' ? value : `${key}=${value}`,
    domain: attributes.some((each) => /^[ \t]*domain[ \t]*(?:=|$)/i.test(each)),
  }
}

test('a device sets neither a cookie of the server nor one for its neighbours', async () => {
  const ours = [name, `__Host-${name}`, 'hawser-state', '__Host-hawser-state'].flatMap((each) => [
    `${each}=x`,
    ` \t${each} = x`,
    `${each}\t=x; Path=/; Secure`,
    `=${each}=x`,
    `= ${each}=x`,
    ` =\t${each}=x; Path=/`,
    `==${each}=x`,
    each,
  ])
  const wide = [
    'a=1; Domain=services.test',
    'a=1; DOMAIN =services.test',
    'a=1;domain=.services.test;Path=/',
    'a=1;\tDomain\t=\tservices.test',
    'a=1; domain',
    'a=1; Domain=; Domain=services.test',
    'a="1; Domain=services.test"',
    'a=1; Path=/; dOmAiN=services.test; Secure',
  ]
  const given = [...ours, ...wide, 'own=1; Path=/; HttpOnly; SameSite=Lax']
  await using program = await startProgram((_, response) => response.setHeader('set-cookie', given).end())
  const { host } = await place.serve(program.port, { audience: 'public' })
  const { headers } = await place.browser().ask(host)
  const cookies = (headers['set-cookie'] ?? []).map(asBrowser)
  expect(cookies.filter(({ domain }) => domain)).toEqual([])
  expect(cookies.filter(({ sent }) => /^=*(?:__Host-)?hawser-/.test(sent))).toEqual([])
  expect(cookies.map(({ sent }) => sent)).toContain('own=1')
  expect(headers['set-cookie']).toContain('own=1; Path=/; HttpOnly; SameSite=Lax')
  expect(cookies.filter(({ sent }) => sent.startsWith('a='))).toHaveLength(wide.length)
})

test('behind TLS the cookies are for this host alone, and those without are nobody’s', async () => {
  await using program = await echo()
  const { address, host } = await place.serve(program.port)
  const secure = { ...navigating, 'x-forwarded-proto': 'https' }
  const browser = place.browser()
  const sent = await browser.ask(host, { headers: secure })
  expect(sent.headers['set-cookie']?.[0]).toMatch(
    /^__Host-hawser-state=.*; Path=\/; HttpOnly; SameSite=Lax; Secure;/,
  )
  const state = new URL(sent.headers.location ?? '').searchParams.get('state') ?? ''
  const back = new URL((await place.operator.services.open({ body: { address, state } })).body.url)
  const path = `${back.pathname}${back.search}`
  const cookie = `hawser-state=${state}`
  expect((await browser.ask(host, { path, headers: { ...secure, cookie } })).status).toBe(400)
  const returned = await browser.ask(host, { path, headers: secure })
  expect(returned.headers['set-cookie']?.[0]).toMatch(
    /^__Host-hawser-service=[^;]+; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  )
  const value = browser.cookies.get(host)?.get(`__Host-${name}`) ?? ''
  expect((await browser.ask(host, { headers: { 'x-forwarded-proto': 'https' } })).status).toBe(200)
  const tossed = { 'x-forwarded-proto': 'https', cookie: `${name}=${value}` }
  expect((await browser.ask(host, { headers: tossed })).status).toBe(401)
})

// Headers by which somebody claims to be who they are not, or to want another host. A program on the device
// believes X-Hawser-User and X-Forwarded-*, and many programs read `X_Hawser_User` as the same name; only the
// server may say them. The Host header alone chooses between services and the console, and neither shows
// anything of the other.
import { decodeProtectedHeader, decodeJwt } from 'jose'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { linkPath, returnPath } from '@hawser/contract/services'
import { hostOf, navigating, sharedServices, startProgram } from '../harness/services.ts'
import { answerTo, handshake, head, statusOf } from './services-raw.ts'

const place = sharedServices({ env: { HAWSER_TRUSTED_PROXIES: '127.0.0.1' } })

/** Answers with the names and values that came, one after the other. */
const mirror = () => startProgram((request, response) => response.end(JSON.stringify(request.rawHeaders)))

type Pairs = readonly (readonly [name: string, value: string])[]
const pairsOf = (answer: string): Pairs => {
  const flat = JSON.parse(answer.slice(answer.indexOf('["'), answer.lastIndexOf(']') + 1)) as string[]
  return Array.from({ length: flat.length / 2 }, (_, index) => [flat[2 * index]!, flat[2 * index + 1]!])
}
/** All values that a program finds which reads names as CGI does. */
const valuesOf = (pairs: Pairs, wanted: string): string[] =>
  pairs.filter(([name]) => name.toLowerCase().replaceAll('_', '-') === wanted).map(([, value]) => value)

const claims = [
  'X-Hawser-User: root',
  'x-hawser-user: root',
  'X-Hawser-User: ',
  'X-HAWSER-ASSERTION: e30.e30.e30',
  'X_Hawser_User: root',
  'X-Hawser_User: root',
  'X_HAWSER_ASSERTION: e30.e30.e30',
  'X-Hawser-Anything: root',
  'X-Forwarded-User: root',
  'X_Forwarded_User: root',
  'X_Forwarded-Proto: gopher',
  'X-Forwarded-Host: evil.test',
  'X-Forwarded-Port: 1',
  'X_Forwarded_For: 203.0.113.66',
  'X-Real-IP: 203.0.113.66',
  'X_Real_IP: 203.0.113.66',
  'Forwarded: for=203.0.113.66;host=evil.test;proto=gopher',
] as const

describe('what a request claims', () => {
  test('reaches no device, in whatever spelling', async () => {
    await using program = await mirror()
    const { host } = await place.serve(program.port, { audience: 'public' })
    const answer = await answerTo(
      place.url,
      head('GET / HTTP/1.1', `Host: ${host}`, 'Connection: close', ...claims, 'Own_Header: kept'),
    )
    const pairs = pairsOf(answer)
    expect(valuesOf(pairs, 'own-header')).toEqual(['kept'])
    for (const name of [
      'x-hawser-user',
      'x-hawser-assertion',
      'x-hawser-anything',
      'x-forwarded-user',
      'forwarded',
    ])
      expect(valuesOf(pairs, name), name).toEqual([])
    for (const name of ['x-real-ip', 'x-forwarded-port']) expect(valuesOf(pairs, name), name).toEqual([])
    expect(valuesOf(pairs, 'x-forwarded-host')).toEqual([host])
    expect(valuesOf(pairs, 'x-forwarded-proto')).toEqual(['http'])
    expect(valuesOf(pairs, 'x-forwarded-for')).toHaveLength(1)
    expect(valuesOf(pairs, 'host')).toEqual([host])
  })

  test('does not remove what the server says, also when Connection names it', async () => {
    await using program = await mirror()
    const { address, host } = await place.serve(program.port, { identify: true })
    const browser = place.browser()
    await browser.open(address, place.operator)
    const cookie = `Cookie: own=1; hawser-service=${browser.cookies.get(host)?.get('hawser-service')}`
    const named =
      'close, X-Hawser-User, x-hawser-assertion, X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto, Host, Via, Cookie'
    for (const lines of [
      [`Connection: ${named}`],
      [`Connection: ${named}`, 'Connection: x-hawser-user', ...claims],
    ]) {
      const pairs = pairsOf(
        await answerTo(place.url, head('GET / HTTP/1.1', `Host: ${host}`, cookie, ...lines)),
      )
      expect(valuesOf(pairs, 'x-hawser-user')).toEqual([sample.operator.username])
      const [assertion = '', ...more] = valuesOf(pairs, 'x-hawser-assertion')
      expect(more).toEqual([])
      expect(decodeProtectedHeader(assertion).alg).toBe('EdDSA')
      expect(decodeJwt(assertion)).toMatchObject({ sub: sample.operator.id, aud: `http://${host}` })
      expect(valuesOf(pairs, 'x-forwarded-host')).toEqual([host])
      expect(valuesOf(pairs, 'x-forwarded-for')).toHaveLength(1)
      expect(valuesOf(pairs, 'x-forwarded-proto')).toEqual(['http'])
      expect(valuesOf(pairs, 'via')).toEqual(['1.1 hawser'])
      expect(valuesOf(pairs, 'cookie')).toEqual(['own=1'])
      expect(valuesOf(pairs, 'host')).toEqual([host])
    }
  })

  test('is not in the handshake of a WebSocket either', async () => {
    await using program = await mirror()
    const { host } = await place.serve(program.port, { audience: 'public' })
    const answer = await answerTo(place.url, head('GET / HTTP/1.1', `Host: ${host}`, ...handshake, ...claims))
    expect(valuesOf(pairsOf(answer), 'x-hawser-user')).toEqual([])
    expect(valuesOf(pairsOf(answer), 'x-forwarded-host')).toEqual([host])
  })

  test('of its address counts only from a trusted proxy, which says it last', async () => {
    await using program = await mirror()
    const { host } = await place.serve(program.port, { audience: 'public' })
    const lines = [
      'X-Forwarded-For: 203.0.113.66, 198.51.100.7',
      'X-Forwarded-Proto: gopher',
      'Connection: close',
    ]
    const pairs = pairsOf(await answerTo(place.url, head('GET / HTTP/1.1', `Host: ${host}`, ...lines)))
    expect(valuesOf(pairs, 'x-forwarded-for')).toEqual(['198.51.100.7'])
    expect(valuesOf(pairs, 'x-forwarded-proto')).toEqual(['http'])
  })
})

describe('the host', () => {
  test('is the Host header, whatever a trusted proxy says beside it', async () => {
    await using program = await startProgram((_, response) => void response.end('of the device'))
    const { host } = await place.serve(program.port, { audience: 'public' })
    const own = await place
      .browser()
      .ask('hawser.test', { path: '/info', headers: { 'x-forwarded-host': host } })
    expect(JSON.parse(own.text)).toHaveProperty('version')
    for (const name of [
      'x-forwarded-host',
      'x-host',
      'x-forwarded-server',
      'x-original-host',
      'x-http-host-override',
    ]) {
      const { text } = await place.browser().ask('hawser.test', { path: '/', headers: { [name]: host } })
      expect(text).not.toContain('of the device')
      const other = await place.browser().ask(host, { headers: { [name]: 'hawser.test' } })
      expect(other.text).toBe('of the device')
    }
  })

  test('in other spellings is the same service', async () => {
    await using program = await startProgram((_, response) => void response.end('of the device'))
    const { host } = await place.serve(program.port, { audience: 'public' })
    for (const spelled of [`${host}:80`, `${host}:`, `${host}.`, `${host}.:8080`, host.toUpperCase()])
      expect((await place.browser().ask(spelled)).text, spelled).toBe('of the device')
  })

  test('below the domain that is no address belongs to nobody, and not to the console', async () => {
    const label = 'a'.repeat(32)
    for (const host of [
      'www.services.test',
      hostOf(label.slice(1)),
      hostOf(`${label}a`),
      hostOf('g'.repeat(32)),
      hostOf(`x.${label}`),
      hostOf(`${label}.x`),
      hostOf(`${label}%00`),
      `.services.test`,
      `a@${hostOf(label)}`,
      `hawser.test/.services.test`,
      `hawser.test:80@x.services.test`,
      '127.0.0.1.services.test',
    ]) {
      expect((await place.browser().ask(host, { path: '/info' })).status, host).toBe(401)
      const { status, headers } = await place.browser().ask(host, { headers: navigating })
      expect([status, new URL(headers.location ?? '').origin], host).toEqual([302, 'http://hawser.test'])
    }
  })

  test('twice is refused, in either order', async () => {
    await using program = await startProgram((_, response) => void response.end('of the device'))
    const { host } = await place.serve(program.port, { audience: 'public' })
    for (const hosts of [
      [host, 'hawser.test'],
      ['hawser.test', host],
      [host, host],
    ]) {
      const lines = hosts.map((one) => `Host: ${one}`)
      expect(statusOf(await answerTo(place.url, head('GET /info HTTP/1.1', ...lines)))).toBe(400)
      const upgrade = head('GET /ws/ssh HTTP/1.1', ...lines, ...handshake)
      expect(statusOf(await answerTo(place.url, upgrade))).toBe(400)
    }
  })
})

const ofConsole = [
  '/',
  '/login',
  '/info',
  '/healthcheck',
  '/metrics',
  '/openapi.json',
  '/docs',
  '/install.sh',
  '/api/devices',
  '/api/services',
  '/api/services/keys',
  `/open/${'e'.repeat(32)}`,
  '/assets/',
  '/favicon.ico',
]
const doors = ['/agent/connection', '/ssh/connection', '/ws/ssh', `/api/sessions/${sample.session}/live`]

describe('at the host of a service nothing of the console is served', () => {
  test.each(['a public service', 'a service that nobody has'])('%s', async (what) => {
    const paths: string[] = []
    await using program = await startProgram((request, response) => {
      paths.push(`${request.method} ${request.url}`)
      response.writeHead(404).end('of the device')
    })
    const isPublic = what === 'a public service'
    const host = isPublic
      ? (await place.serve(program.port, { audience: 'public' })).host
      : hostOf('0'.repeat(32))
    const authorization = `Bearer ${await place.world.token('owner')}`
    for (const path of [...ofConsole, ...doors]) {
      const { status, text, headers } = await place.browser().ask(host, { path, headers: { authorization } })
      expect([status, text], path).toEqual(
        isPublic ? [404, 'of the device'] : [401, '{"message":"Sign in to open this service."}'],
      )
      expect(headers).not.toHaveProperty('x-request-id')
    }
    for (const path of doors) {
      const lines = [`Host: ${host}`, `Authorization: ${authorization}`, ...handshake]
      const answer = await answerTo(place.url, head(`GET ${path} HTTP/1.1`, ...lines))
      expect(statusOf(answer), path).toBe(isPublic ? 404 : 401)
    }
    for (const [method, path] of [
      ['POST', '/api/login'],
      ['POST', '/api/devices/auth'],
      ['DELETE', `/api/devices/${place.agent.uid}`],
    ] as const) {
      const asking = { path, method, headers: { authorization, 'content-length': 0 } }
      expect((await place.browser().ask(host, asking)).status).toBe(isPublic ? 404 : 401)
    }
    if (isPublic) expect(paths).toHaveLength(ofConsole.length + 2 * doors.length + 3)
    expect((await place.owner.devices.get({ params: { uid: place.agent.uid } })).status).toBe(200)
  })
})

test('at the host of the console nothing of services is served', async () => {
  const paths: string[] = []
  await using program = await startProgram((request, response) => {
    paths.push(request.url ?? '')
    response.end('of the device')
  })
  const { address, host } = await place.serve(program.port, { audience: 'public' })
  const browser = place.browser()
  for (const name of [
    'hawser.test',
    'services.test',
    `${host}.evil.test`,
    `x${host.slice(33)}.test`,
    '127.0.0.1',
  ]) {
    for (const path of [`/${address}`, returnPath, `${linkPath}?key=x`, `//${host}/`]) {
      const { text, headers } = await browser.ask(name, { path })
      expect(text).not.toContain('of the device')
      expect(headers['set-cookie'] ?? []).toEqual([])
    }
    await answerTo(place.url, head(`GET http://${host}/ HTTP/1.1`, `Host: ${name}`, 'Connection: close'))
  }
  expect(paths).toEqual([])
})

// The way into a service ends with a redirect, whose path a stranger may have chosen: in the link that
// somebody follows, in the call to the console, or at the address that takes the code. It must stay with the
// service. A device that names itself in Location is renamed; where it sends people elsewhere, that is its own.
import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import { returnPath } from '@hawser/contract/services'
import { towardsBrowser } from '../../server/src/gateway/services/headers.ts'
import { navigating, sharedServices, startProgram, type Answer } from '../harness/services.ts'

const place = sharedServices()

const elsewhere = [
  '//evil.test',
  '//evil.test/%2f..',
  '///evil.test',
  '/\\evil.test',
  '\\/evil.test',
  '\\\\evil.test',
  '/a\\..\\\\evil.test',
  'https://evil.test/',
  'https:evil.test',
  'javascript:alert(1)',
  'data:text/html,x',
  'evil.test',
  '@evil.test',
  '.evil.test',
  ':80@evil.test',
  '?//evil.test',
  '#//evil.test',
  '',
  ' //evil.test',
  '/\t/evil.test',
  '/\n/evil.test',
  '/a\r\nSet-Cookie: a=b',
  '/\x01/evil.test',
  '\t//evil.test',
  '/\u00a0/evil.test',
  '/ä',
  '/\u2044/evil.test',
]
/** They look like it, but no browser leaves the host by them. */
const own = [
  '/%2f/evil.test',
  '/%5cevil.test',
  '/.//evil.test',
  '/a//evil.test',
  '/@evil.test',
  '/?to=//evil.test',
]

async function expectWithin(host: string, answer: Answer, path: string): Promise<void> {
  expect(answer.status).toBe(302)
  const { location = '' } = answer.headers
  expect(location).toBe(path)
  expect(new URL(location, `http://${host}/some/page`).host).toBe(host)
}

describe('the path behind the code', () => {
  test('never leads elsewhere, whoever has chosen it', async () => {
    await using program = await startProgram((_, response) => void response.end())
    const { address, host } = await place.serve(program.port)
    const browser = place.browser()
    const sent = await browser.ask(host, { headers: navigating })
    const state = new URL(sent.headers.location ?? '').searchParams.get('state') ?? ''
    for (const path of [...elsewhere, ...own]) {
      const expected = own.includes(path) ? path : '/'
      // The console is given it, and answers with an address of the service.
      const { url } = (await place.operator.services.open({ body: { address, state, path } })).body
      const back = new URL(url)
      expect([back.host, back.pathname, back.searchParams.get('path')]).toEqual([host, returnPath, expected])
      // The service is given it beside a good code, or beside a bad one when the person is known already.
      back.searchParams.set('path', path)
      const opening = { path: `${back.pathname}${back.search}`, headers: navigating }
      browser.cookies.set(host, new Map([['hawser-state', state]]))
      await expectWithin(host, await browser.ask(host, opening), expected)
      await expectWithin(host, await browser.ask(host, opening), expected)
    }
  })

  test('is the one that was asked for, or the first page', async () => {
    await using program = await startProgram((_, response) => void response.end())
    const { host, address } = await place.serve(program.port)
    for (const path of ['//evil.test/a', '/a\\b', '///']) {
      const sent = await place.browser().ask(host, { path, headers: navigating })
      const to = new URL(sent.headers.location ?? '')
      expect([to.origin, to.pathname]).toEqual(['http://hawser.test', `/open/${address}`])
      expect(to.searchParams.get('path')).toBe('/')
    }
  })
})

test.each([
  ['target', (port: number) => `http://127.0.0.1:${port}`],
  ['name.test:8080', () => 'http://name.test:8080'],
])(
  'a device with the Host %s that redirects to itself redirects to the service',
  async (host_header, target) => {
    const port = Promise.withResolvers<number>()
    const locations: readonly (readonly [string, (own: string, origin: string) => string])[] = [
      ['ORIGIN/a?b#c', (mine) => `${mine}/a?b#c`],
      ['ORIGIN', (mine) => `${mine}/`],
      ['ORIGIN//evil.test', (mine) => `${mine}//evil.test`],
      ['http://evil.test/', () => 'http://evil.test/'],
      ['//evil.test/', () => '//evil.test/'],
      ['/relative', () => '/relative'],
      // Other hosts that begin or end as the target does, and other ports of it.
      ['ORIGIN.evil.test/', (_, origin) => `${origin}.evil.test/`],
      ['ORIGIN@evil.test/', (_, origin) => `${origin}@evil.test/`],
      ['http://x.name.test:8080/', () => 'http://x.name.test:8080/'],
      ['http://127.0.0.1:1/', () => 'http://127.0.0.1:1/'],
      ['javascript:alert(1)', () => 'javascript:alert(1)'],
    ]
    await using program = await startProgram((request, response) => {
      void port.promise.then((number) => {
        const [location] = locations[Number(request.url?.slice(1))]!
        response.writeHead(302, { location: location.replace('ORIGIN', target(number)) }).end()
      })
    })
    port.resolve(program.port)
    const { host } = await place.serve(program.port, { audience: 'public', host_header })
    for (const [index, [given, expected]] of locations.entries()) {
      const { headers } = await place.browser().ask(host, { path: `/${index}` })
      expect(headers.location, given).toBe(expected(`http://${host}`, target(program.port)))
    }
  },
)

test.each(['x:99999', '1.2.3.999', '999.0.0.1:80'])('%s is no Host header', async (host_header) => {
  await using program = await startProgram((_, response) => void response.end())
  const { id } = await place.serve(program.port)
  const refusal = { status: 400, message: expect.stringContaining('host_header') as string }
  await expect(place.serve(program.port, { host_header })).rejects.toMatchObject(refusal)
  const params = { id }
  await expect(place.owner.services.update({ params, body: { host_header } })).rejects.toMatchObject(refusal)
  await expect(place.serve(program.port, { host: '::::' })).rejects.toMatchObject({ status: 400 })
})

// Such a redirect ended the server: the answer is read in an event, where nothing catches what is thrown.
test.each([{ host_header: 'x:99999' }, { host_header: 'target', host: '::::' }])(
  'a redirect is passed on although the Host header is none (%o)',
  (service) => {
    const location = 'http://x/a'
    const answer = { headers: { location }, rawHeaders: ['Location', location] } as IncomingMessage
    const known = { scheme: 'http', port: 80, host: '127.0.0.1', audience: 'public', ...service } as never
    expect(towardsBrowser(answer, known, { host: 'a.test', secure: false })).toEqual(['Location', location])
  },
)

test('a device that knows its address redirects as it likes', async () => {
  await using program = await startProgram((request, response) =>
    response.writeHead(302, { location: `http://127.0.0.1:${request.socket.localPort}/` }).end(),
  )
  const { host } = await place.serve(program.port, { audience: 'public' })
  expect((await place.browser().ask(host)).headers.location).toBe(`http://127.0.0.1:${program.port}/`)
})

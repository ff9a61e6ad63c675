// Services of a server that speaks TLS itself, with a certificate of their own for all names of the domain.
import https from 'node:https'
import type { IncomingMessage } from 'node:http'
import { once } from 'node:events'
import tls from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { folder } from '../../ssh/test/programs.ts'
import { makeAuthority, type Authority } from '../harness/authority.ts'
import {
  navigating,
  servicesDomain,
  startProgram,
  startServices,
  type ServicesPlace,
} from '../harness/services.ts'

const opened = new AsyncDisposableStack()
let place: ServicesPlace
let authority: Authority

beforeAll(async () => {
  const where = opened.use(folder())
  authority = await makeAuthority(where)
  await authority.issue('console', 'DNS:hawser.test', 'DNS:localhost', 'IP:127.0.0.1')
  await authority.issue('wild', `DNS:*.${servicesDomain}`)
  place = opened.use(
    await startServices({
      env: {
        HAWSER_URL: 'https://hawser.test',
        HAWSER_PLAIN_HTTP: 'serve',
        HAWSER_TLS_CERT: where.file('console.pem'),
        HAWSER_TLS_KEY: where.file('console.key'),
        HAWSER_SERVICES_TLS_CERT: where.file('wild.pem'),
        HAWSER_SERVICES_TLS_KEY: where.file('wild.key'),
      },
    }),
  )
})
afterAll(() => opened.disposeAsync())

async function namesAt(servername: string): Promise<string> {
  const socket = tls.connect({
    port: place.tlsPort!,
    host: '127.0.0.1',
    servername,
    rejectUnauthorized: false,
  })
  await once(socket, 'secureConnect')
  const { subjectaltname = '' } = socket.getPeerCertificate()
  socket.destroy()
  return subjectaltname
}

async function ask(
  host: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<IncomingMessage> {
  const request = https.request({
    port: place.tlsPort,
    path,
    servername: host,
    rejectUnauthorized: false,
    agent: false,
    headers: { host, ...headers },
  })
  request.end()
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  answer.resume()
  return answer
}

test('each name has its certificate', async () => {
  expect(await namesAt('hawser.test')).toContain('DNS:hawser.test')
  expect(await namesAt(`${'0'.repeat(32)}.${servicesDomain}`)).toBe(`DNS:*.${servicesDomain}`)
})

test('requests without TLS are sent to it, and cookies are for this host over TLS alone', async () => {
  await using program = await startProgram((_, response) => response.end('hello'))
  const { host, address } = await place.serve(program.port)
  const plain = await place.browser().ask(host, { path: '/page?a=1', headers: navigating })
  expect([plain.status, plain.headers.location]).toEqual([308, `https://${host}/page?a=1`])

  const sent = await ask(host, '/page?a=1', navigating)
  const [state = ''] = sent.headers['set-cookie'] ?? []
  expect(state).toMatch(/^__Host-hawser-state=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=600$/)
  const way = new URL(sent.headers.location ?? '')
  expect(`${way.origin}${way.pathname}`).toBe(`https://hawser.test/open/${address}`)
  const { body } = await place.operator.services.open({
    body: { address, state: way.searchParams.get('state') ?? '', path: way.searchParams.get('path') ?? '' },
  })
  const { origin, pathname, search } = new URL(body.url)
  expect(origin).toBe(`https://${host}`)
  const cookie = state.split(';', 1)[0]!
  const back = await ask(host, `${pathname}${search}`, { ...navigating, cookie })
  expect([back.statusCode, back.headers.location]).toEqual([302, '/page?a=1'])
  const [session = ''] = back.headers['set-cookie'] ?? []
  expect(session).toMatch(/^__Host-hawser-service=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Secure$/)
  const there = await ask(host, '/page?a=1', { cookie: session.split(';', 1)[0]! })
  expect(there.statusCode).toBe(200)
})

// A server that speaks TLS itself, with certificate and key in two files, as those see it who come: curl,
// OpenSSL, a real agent and a real ssh behind it. The files are replaced while it runs, as certbot and
// Kubernetes do it, and broken ones change nothing.
import { copyFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import tls from 'node:tls'
import { once } from 'node:events'
import { beforeAll, afterAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { folder, keygen, quietArgs, run } from '../../ssh/test/programs.ts'
import { startAgent } from '../harness/agent.ts'
import { makeAuthority, openssl, type Authority } from '../harness/authority.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'
import { eventually } from './way.ts'

vi.setConfig({ testTimeout: 60_000 })

const where = folder()
let authority: Authority
let service: Service
let world: World
const names = ['DNS:hawser.test', 'DNS:localhost', 'IP:127.0.0.1']

beforeAll(async () => {
  authority = await makeAuthority(where)
  await authority.issue('first', ...names)
  await authority.issue('second', ...names)
  // As certbot and Kubernetes have it: the names in the settings are links that are swapped.
  symlinkSync('first.pem', where.file('live.pem'))
  symlinkSync('first.key', where.file('live.key'))
  service = await startService({ env: settings() })
  world = await buildWorld(service)
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  where[Symbol.dispose]()
})

function settings(env: Record<string, string> = {}): Record<string, string> {
  return {
    HAWSER_TLS_CERT: where.file('live.pem'),
    HAWSER_TLS_KEY: where.file('live.key'),
    HAWSER_URL: '',
    ...env,
  }
}

function swap(name: string, to: string): void {
  symlinkSync(to, where.file(`${name}.new`))
  renameSync(where.file(`${name}.new`), where.file(name))
}

interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** curl, with the name `hawser.test` leading to the service. */
async function curl(at: Service, url: string, ...words: string[]): Promise<Answered> {
  const plain = new URL(at.url).port
  const outcome = await run('curl', [
    '-s',
    '-i',
    '--http1.1',
    '--cacert',
    authority.file,
    '--connect-to',
    `hawser.test:443:127.0.0.1:${at.tlsPort}`,
    '--connect-to',
    `hawser.test:80:127.0.0.1:${plain}`,
    ...words,
    url,
  ])
  if (outcome.status !== 0) throw new Error(`curl ended with ${outcome.status}: ${outcome.stderr}`)
  const [head = '', ...rest] = outcome.stdout.toString().split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  return {
    status: Number(first.split(' ')[1]),
    headers: Object.fromEntries(
      lines.map((line) => [line.split(': ')[0]?.toLowerCase() ?? '', line.split(': ').slice(1).join(': ')]),
    ),
    body: rest.join('\r\n\r\n'),
  }
}

/** The serial number of the certificate that new connections get. */
async function served(port: number): Promise<string> {
  const socket = tls.connect({
    port,
    host: '127.0.0.1',
    servername: 'hawser.test',
    rejectUnauthorized: false,
  })
  await once(socket, 'secureConnect')
  const { serialNumber } = socket.getPeerCertificate()
  socket.destroy()
  return serialNumber
}

const serialOf = async (name: string): Promise<string> =>
  /serial=(\w+)/.exec(await openssl('x509', '-noout', '-serial', '-in', where.file(name)))?.[1] ?? ''

test('it is served by https, strictly for names, and a request without TLS is sent there', async () => {
  const secure = await curl(service, 'https://hawser.test/healthcheck')
  expect([secure.status, secure.headers['strict-transport-security']]).toEqual([200, 'max-age=31536000'])
  const local = await curl(service, `https://localhost:${service.tlsPort}/healthcheck`)
  expect([local.status, local.headers['strict-transport-security']]).toEqual([200, undefined])
  const address = await curl(service, `https://127.0.0.1:${service.tlsPort}/healthcheck`)
  expect([address.status, address.headers['strict-transport-security']]).toEqual([200, undefined])

  const here = `https://hawser.test:${service.tlsPort}`
  for (const [path, ...words] of [
    ['/'],
    ['/login?next=%2F'],
    ['/api/login', '-d', '{"username":"olga","password":"secret"}', '-H', 'content-type: application/json'],
    ['/api/devices', '-X', 'DELETE'],
    ['/no/such/page'],
  ] as [string, ...string[]][]) {
    const { status, headers, body } = await curl(service, `http://hawser.test${path}`, ...words)
    expect([path, status, headers['location'], body]).toEqual([path, 308, `${here}${path}`, ''])
    expect(headers['strict-transport-security']).toBeUndefined()
  }
  expect((await curl(service, 'http://hawser.test/healthcheck')).status).toBe(200)
  // The whole address in the request line, and a Host that is none, lead nowhere else.
  const proxied = await curl(service, 'http://hawser.test/', '--request-target', 'http://evil.test/page')
  expect([proxied.status, proxied.headers['location']]).toEqual([308, `${here}/`])
  const odd = await curl(service, 'http://hawser.test/', '-H', 'host: evil.test/@x')
  expect([odd.status, odd.headers['location']]).toEqual([400, undefined])
  // A proxy in front that speaks TLS has nothing redirected.
  const forwarded = await curl(service, 'http://hawser.test/info', '-H', 'x-forwarded-proto: https')
  expect(forwarded.status).toBe(200)
})

test('TLS 1.2 and 1.3 are spoken, older versions are not', async () => {
  const connect = async (...words: string[]): Promise<string> =>
    (
      await run('openssl', ['s_client', '-connect', `127.0.0.1:${service.tlsPort}`, ...words], '')
    ).stdout.toString()
  const verified = ['-CAfile', authority.file, '-verify_return_error', '-verify_hostname', 'hawser.test']
  for (const version of ['tls1_2', 'tls1_3'])
    expect(await connect(`-${version}`, ...verified)).toMatch(/New, TLSv1\.[23], Cipher is (?!\(NONE\))/)
  expect(await connect('-tls1_1', '-cipher', 'ALL:@SECLEVEL=0')).toContain('Cipher is (NONE)')
})

test('replaced files count for new connections, open ones stay, and a broken pair changes nothing', async () => {
  const port = service.tlsPort ?? 0
  const open = tls.connect({ port, host: '127.0.0.1', servername: 'hawser.test', rejectUnauthorized: false })
  await once(open, 'secureConnect')
  const ask = async (): Promise<string> => {
    open.write('GET /healthcheck HTTP/1.1\r\nhost: hawser.test\r\n\r\n')
    const [chunk] = (await once(open, 'data')) as [Buffer]
    return chunk.toString().split('\r\n', 1)[0] ?? ''
  }
  expect(await ask()).toBe('HTTP/1.1 200 OK')
  expect(await served(port)).toBe(await serialOf('first.pem'))

  swap('live.pem', 'second.pem')
  swap('live.key', 'second.key')
  const second = await serialOf('second.pem')
  await eventually(async () => expect(await served(port)).toBe(second))

  // The key of another one, then no PEM at all: told once each.
  swap('live.key', 'first.key')
  await eventually(() => expect(service.log()).toContain('the key does not belong to the certificate'))
  writeFileSync(where.file('half.pem'), '-----BEGIN CERTIFICATE-----\nMIIB')
  swap('live.pem', 'half.pem')
  await eventually(() => expect(service.log()).toContain('the certificate is not a PEM file'))
  expect(service.log().match(/"certificate\.refused"/g)).toHaveLength(2)
  expect(await served(port)).toBe(second)

  // Written over in place, as a person does it.
  copyFileSync(where.file('second.pem'), where.file('half.pem'))
  swap('live.key', 'second.key')
  copyFileSync(where.file('first.pem'), where.file('half.pem'))
  copyFileSync(where.file('first.key'), where.file('second.key'))
  await eventually(async () => expect(await served(port)).toBe(await serialOf('first.pem')))
  expect(await ask()).toBe('HTTP/1.1 200 OK')
  open.destroy()
})

test('an agent and a session go through it; without TLS a tunnel is refused with the address to use', async () => {
  const url = `https://127.0.0.1:${service.tlsPort}`
  await using agent = await startAgent(
    { url, rooms: service.rooms },
    { env: { HAWSER_CA_FILE: authority.file } },
  )
  expect(service.reach.tunnels.size).toBe(1)
  await keygen(where, 'olga', '-t', 'ed25519')
  const token = await world.token('owner')
  const data = Buffer.from(where.read('olga.pub')).toString('base64')
  const created = await curl(
    service,
    'https://hawser.test/api/sshkeys/public-keys',
    '-H',
    `authorization: Bearer ${token}`,
    '--json',
    JSON.stringify({ data, name: 'olga', username: '.*', filter: { hostname: '.*' } }),
  )
  expect(created.status).toBe(200)
  const user = process.getuid?.() === 0 ? 'root' : (process.env['USER'] ?? '')
  const { stdout, stderr } = await run('ssh', [
    ...quietArgs(service.sshPort, `IdentityFile=${where.file('olga')}`, 'BatchMode=yes'),
    `${user}@${sample.namespace}.${agent.name}@127.0.0.1`,
    'echo through',
  ])
  expect(stdout.toString(), stderr).toBe('through\n')

  const refused = await curl(
    service,
    'http://hawser.test/agent/connection',
    ...[
      'connection: upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      `sec-websocket-key: ${Buffer.alloc(16).toString('base64')}`,
    ].flatMap((header) => ['-H', header]),
  )
  expect(refused.status).toBe(403)
  expect(refused.body).toContain(`use https://hawser.test:${service.tlsPort} as its address`)
})

test('with HAWSER_PLAIN_HTTP=serve only browsers are redirected, to the public address', async () => {
  await using both = await startService({
    env: settings({ HAWSER_PLAIN_HTTP: 'serve', HAWSER_URL: 'https://hawser.test' }),
  })
  await buildWorld(both)
  expect((await curl(both, 'http://hawser.test/info')).status).toBe(200)
  const page = await curl(both, 'http://hawser.test/devices', '-H', 'accept: text/html,*/*')
  expect([page.status, page.headers['location']]).toEqual([308, 'https://hawser.test/devices'])
  await using agent = await startAgent(both)
  expect(agent.lines.some(({ event }) => event === 'tunnel.up')).toBe(true)
})

test('a certificate that cannot be used stops the start with one sentence', async () => {
  const refusal = async (env: Record<string, string>): Promise<string> =>
    startService({ env: settings(env) }).then(
      () => 'it started',
      (error: Error) => error.message,
    )
  expect(await refusal({ HAWSER_TLS_KEY: '' })).toBe(
    'HAWSER_TLS_CERT and HAWSER_TLS_KEY: both files are needed, or none.',
  )
  expect(
    await refusal({
      HAWSER_TLS_CERT: '',
      HAWSER_TLS_KEY: '',
      HAWSER_SERVICES_TLS_CERT: where.file('none.pem'),
      HAWSER_SERVICES_TLS_KEY: where.file('none.key'),
    }),
  ).toBe('HAWSER_SERVICES_TLS_CERT: the server speaks no TLS without HAWSER_TLS_CERT or HAWSER_ACME_EMAIL.')
  expect(await refusal({ HAWSER_TLS_CERT: where.file('none.pem') })).toMatch(/ENOENT.*none\.pem/)
  expect(await refusal({ HAWSER_TLS_KEY: authority.file })).toMatch(/the key is not a PEM file/)
})

test('a stop ends handshakes and idle connections', async () => {
  const stopping = await startService({ env: settings() })
  const silent = net.connect(stopping.tlsPort ?? 0, '127.0.0.1')
  await once(silent, 'connect')
  const idle = tls.connect({ port: stopping.tlsPort ?? 0, host: '127.0.0.1', rejectUnauthorized: false })
  await once(idle, 'secureConnect')
  const gone = [silent, idle].map((socket) =>
    once(
      socket.resume().on('error', () => undefined),
      'close',
    ),
  )
  await stopping[Symbol.asyncDispose]()
  await Promise.all(gone)
})

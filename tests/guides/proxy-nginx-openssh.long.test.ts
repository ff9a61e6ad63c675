// The proxy of the self-hosting guide in a real nginx with TLS, as it stands there but for names, ports and
// files: what goes through it are agents, terminals, the console and the interface, and nobody can make it
// say that they are somebody else.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { devices } from '@hawser/contract/devices'
import { dialWebSocket } from '@hawser/mux'
import { folder, freePort, run } from '../../ssh/test/programs.ts'
import { eventually, openWay, watch, type Running, type Way } from '../clients/way.ts'
import { certificates } from '../harness/docker.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { blocksOf } from './blocks.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const where = folder()
let way: Way
let nginx: Running
let agent: Agent
let url: string

beforeAll(async () => {
  const port = await freePort()
  url = `https://127.0.0.1:${port}`
  way = await openWay({ HAWSER_URL: '' })
  await certificates(where.path)
  const [block] = blocksOf('docs/guides/self-hosting.md').filter(({ language }) => language === 'nginx')
  const names: readonly (readonly [string, string])[] = [
    ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
    ['server_name hawser.example.com', 'server_name 127.0.0.1'],
    ['/etc/ssl/hawser.example.com.pem', where.file('engine.pem')],
    ['/etc/ssl/hawser.example.com.key', where.file('engine.key')],
    ['http://127.0.0.1:8080', way.service.url],
  ]
  const server = names.reduce((text, [name, here]) => {
    if (!text.includes(name)) throw new Error(`the guide does not say ${name} any more`)
    return text.replaceAll(name, here)
  }, block!.text)
  // Its workers are nobody's, and have to write there what is too long for their memory.
  chmodSync(where.path, 0o711)
  const kept = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => {
    mkdirSync(where.file(name))
    chmodSync(where.file(name), 0o777)
    return `${name}_temp_path ${where.file(name)};`
  })
  writeFileSync(
    where.file('nginx.conf'),
    `events {}\nhttp {\naccess_log off;\n${kept.join('\n')}\n${server}}\n`,
  )
  const settings = `daemon off; pid ${where.file('pid')}; error_log stderr;`
  nginx = watch('nginx', ['-p', where.path, '-e', 'stderr', '-c', where.file('nginx.conf'), '-g', settings])
  await run('curl', [
    '-sSf',
    '--retry',
    '50',
    '--retry-delay',
    '1',
    '--retry-all-errors',
    '--cacert',
    where.file('ca.pem'),
    `${url}/healthcheck`,
  ])
  agent = await startAgent(
    { url, tenant_id: sample.tenant, accept: (uid) => way.owner.devices.accept({ params: { uid } }) },
    { hostname: 'lighter', env: { NODE_EXTRA_CA_CERTS: where.file('ca.pem') } },
  )
})
afterAll(async () => {
  await agent?.[Symbol.asyncDispose]()
  // Killed, it would leave its workers behind.
  nginx?.child.kill('SIGTERM')
  await nginx?.status
  await way?.[Symbol.asyncDispose]()
  where[Symbol.dispose]()
})

const curl = async (address: string, ...words: string[]) =>
  run('curl', ['-sSf', '--cacert', where.file('ca.pem'), ...words, `${url}${address}`])

test('an agent comes through it, and what people do on its device is whole', async () => {
  expect((await way.owner.devices.get({ params: { uid: agent.uid } })).body).toMatchObject({
    name: 'lighter',
    online: true,
  })
  const { status, stdout } = await way.ssh('head -c 20000000 /dev/zero', { device: 'lighter' })
  expect([status, stdout.length]).toEqual([0, 20_000_000])
})

test('a terminal of a browser works through it', async () => {
  const { user } = way
  const { token } = (
    await way.owner.terminals.open({
      body: { device: agent.uid, username: user.name, password: user.password },
    })
  ).body
  // The browser names the address that its page has; the port of this test is not the usual one, and nginx
  // leaves it out.
  const headers = { origin: 'https://127.0.0.1' }
  const ca = readFileSync(where.file('ca.pem'), 'utf8')
  const socket = await dialWebSocket(`${url.replace('https', 'wss')}/ws/ssh?token=${token}&cols=80&rows=24`, {
    headers,
    ca,
  })
  let shown = ''
  socket.on('message', (bytes) => void (shown += (bytes as Buffer).toString()))
  socket.resume()
  socket.send(Buffer.from('echo th""rough\n'))
  await eventually(() => expect(shown).toContain('through'))
  socket.terminate()
})

test('the console and the script for devices come from the address that people use', async () => {
  expect((await curl('/')).stdout.toString()).toMatch(/^<!doctype html>/i)
  expect((await curl(`/install.sh?tenant_id=${sample.tenant}`)).stdout.toString()).toContain(
    'https://127.0.0.1',
  )
})

test('the server learns who calls, whatever the caller says', async () => {
  const body = { ...devices.auth.example.body, identity: { mac: '00:00:5e:00:53:77' }, hostname: 'forger' }
  const forged = [
    'X-Real-IP: 192.0.2.1',
    'X-Forwarded-For: 192.0.2.1',
    'Forwarded: for=192.0.2.1',
    'Content-Type: application/json',
  ]
  const { status, stdout } = await curl(
    '/api/devices/auth',
    '--interface',
    '127.0.0.9',
    '-d',
    JSON.stringify(body),
    ...forged.flatMap((header) => ['-H', header]),
  )
  expect(status).toBe(0)
  const { uid } = JSON.parse(stdout.toString()) as { uid: string }
  expect((await way.owner.devices.get({ params: { uid } })).body.remote_addr).toBe('127.0.0.9')
})

test('what is refused is refused through it, with the answer of the server; what is far too long by itself', async () => {
  const answer = async (to: string, ...words: string[]): Promise<string> =>
    (
      await run('curl', ['-sS', '-w', ' %{http_code}', '--cacert', where.file('ca.pem'), ...words, to])
    ).stdout.toString()
  const refused = await answer(`${url}/api/devices`)
  expect(refused).toMatch(/ 401$/)
  expect(refused).toBe(await answer(`${way.service.url}/api/devices`))
  writeFileSync(where.file('large'), JSON.stringify({ username: 'x'.repeat(3 * 1024 * 1024) }))
  const sending = ['-H', 'Content-Type: application/json', '--data-binary', `@${where.file('large')}`]
  expect(await answer(`${url}/api/login`, ...sending)).toMatch(/nginx[^]* 413$/)
})

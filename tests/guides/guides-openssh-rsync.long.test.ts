// Every guide as somebody follows it who has the problem now: all blocks of a page from the top to the end,
// against one server and one real device for all pages. Each page finds the namespace as it is to begin with:
// olga signed in, `gantry` accepted and online, `buoy` waiting, no rules, and no key but hers. The quick
// start and the README have a file of their own.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import path from 'node:path'
import { afterAll, beforeAll, describe, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { accounts } from '../../cli/src/accounts.ts'
import { freePort, startSshd, type Sshd } from '../../ssh/test/programs.ts'
import { openWay, type Way } from '../clients/way.ts'
import { blocksOf, isCommand, root, type Block } from './blocks.ts'
import { followedElsewhere } from './not-run.ts'
import { openReader, type Reader } from './reader.ts'

const others = ['README.md', 'quick-start.md', ...Object.keys(followedElsewhere)]
const pages = readdirSync(path.join(root, 'docs/guides')).filter((name) => !others.includes(name))
/** These begin before there is a key. */
const keyless = ['connecting.md', 'public-keys.md']
/** These sign in themselves. */
const strangers = ['command-line.md', 'mfa.md']
const metricsToken = 'a-token-for-metrics'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })
const [sshPort, webPort, forwarded, back, socks, receiver, httpPort] = await Promise.all(
  Array.from({ length: 7 }, freePort),
)
let way: Way
let web: readonly Server[]
let behind: Sshd

beforeAll(async () => {
  way = await openWay({
    HAWSER_URL: '',
    // Addresses of services name it.
    HAWSER_HTTP: `127.0.0.1:${httpPort}`,
    HAWSER_SSH: `127.0.0.1:${sshPort}`,
    HAWSER_SSH_PUBLIC_PORT: String(sshPort),
    HAWSER_METRICS_TOKEN: metricsToken,
    HAWSER_STREAM_ALLOW: `127.0.0.1:${receiver}`,
  })
  behind = await startSshd(way.where, way.where.read('olga.pub'))
  web = await Promise.all([webPort!, way.there('app.sock')].map(serve))
  // The user of the device may not be us.
  chmodSync(way.there('app.sock'), 0o666)
})
afterAll(async () => {
  for (const server of web) server.close()
  await behind[Symbol.asyncDispose]()
  await way[Symbol.asyncDispose]()
})

/** What listens on the device. */
async function serve(where: number | string): Promise<Server> {
  const server = createServer((_, response) => response.end('hello from the pier\n'))
  await once(server.listen(where), 'listening')
  return server
}

/** What changes with every block. */
let now = { rule: '', fingerprint: '' }
async function look(): Promise<void> {
  const [rules, keys] = [
    (await way.owner.firewall.list({ query: {} })).body,
    (await way.owner.publicKeys.list({ query: {} })).body,
  ]
  now = { rule: rules.at(-1)?.id ?? '', fingerprint: keys.at(-1)?.fingerprint ?? '' }
}

function here(text: string): string {
  const names: readonly (readonly [string, string])[] = [
    // Numbers first: they might be in what takes the place of a name.
    ['2222', String(sshPort)],
    ['3000', String(webPort)],
    ['18080', String(forwarded)],
    ['18081', String(back)],
    ['11080', String(socks)],
    ['9000', String(receiver)],
    [sample.totp, way.world.totp(sample.mfaSecret)],
    ['https://hawser.example.com', way.service.url],
    ['hawser.example.com', '127.0.0.1'],
    ['root@', `${way.user.name}@`],
    ['pi@10.0.0.7', `-p ${behind.port} ${behind.user}@127.0.0.1`],
    ['--user root', `--user ${way.user.name}`],
    ['--username root', `--username ${way.user.name}`],
    ['-n root', `-n ${way.user.name}`],
    ['/srv', way.there('.')],
    ['/var/', '$HOME/var/'],
    ['<key>', sample.apiKey],
    ['<metrics token>', metricsToken],
    ['<rule>', now.rule],
    ['<fingerprint>', now.fingerprint],
  ]
  return names.reduce((so_far, [name, value]) => so_far.replaceAll(name, value), text)
}

function answer(question: string, page: string): string | undefined {
  if (question.endsWith(') Password:')) return way.user.password
  // Dropbear's question has no name in it.
  if (question === 'Password:' && page === 'connecting.md') return way.user.password
  return {
    'Username or e-mail:': sample.owner.username,
    'Password:': sample.owner.password,
    'Second factor code:': '',
  }[question]
}

/** The namespace as every page finds it. */
async function tidy(page: string): Promise<void> {
  const { owner, service, agent } = way
  for (const { id } of (await owner.firewall.list({ query: {} })).body)
    await owner.firewall.remove({ params: { id } })
  for (const { fingerprint } of (await owner.publicKeys.list({ query: {} })).body)
    await owner.publicKeys.remove({ params: { fingerprint } })
  for (const { id } of (await owner.services.list({ query: { per_page: 100 } })).body)
    await owner.services.remove({ params: { id } })
  for (const { uid } of (await owner.devices.list({ query: { per_page: 100 } })).body)
    if (uid !== agent.uid) await owner.devices.remove({ params: { uid } })
  for (const { tenant_id } of (await owner.namespaces.list({ query: {} })).body)
    if (tenant_id !== sample.tenant) await owner.namespaces.remove({ params: { tenant: tenant_id } })
  const facts = { id: 'debian', pretty_name: 'Debian', version: 'v0.16.4', arch: 'amd64', platform: 'native' }
  await service.api().devices.auth({
    body: {
      hostname: 'buoy',
      identity: { mac: randomUUID() },
      info: facts,
      public_key: sample.publicKeyPem,
      tenant_id: sample.tenant,
    },
  })
  const wanted = page === 'command-line.md' ? ['lifting', 'pier'] : ['lifting']
  await owner.devices.setTags({ params: { uid: agent.uid }, body: { tags: wanted } })
  if (!keyless.includes(page)) await way.register('olga')
}

async function begin(page: string): Promise<Reader> {
  await tidy(page)
  const reader = openReader({ here, answer: (question) => answer(question, page) })
  const home = reader.desk.folder
  if (!keyless.includes(page))
    for (const end of ['', '.pub'])
      copyFileSync(way.where.file(`olga${end}`), path.join(home, `.ssh/id_ed25519${end}`))
  // The server's own machine and the person's are one here.
  symlinkSync(way.service.folder, path.join(home, 'data'))
  mkdirSync(path.join(home, 'var'))
  if (!strangers.includes(page)) {
    const env = { HOME: home, XDG_CONFIG_HOME: path.join(home, 'config') }
    const account = {
      token: await way.world.token('owner'),
      username: sample.owner.username,
      tenant: sample.tenant,
    }
    accounts(env).save(way.service.url, account)
  }
  return reader
}

const commandsOf = (page: string): Block[] =>
  blocksOf(`docs/guides/${page}`).filter((block) => isCommand(block) && block.how !== 'not-run')

describe.each(pages.filter((page) => commandsOf(page).length > 0))('%s', (page) => {
  let reader: Reader
  beforeAll(async () => {
    reader = await begin(page)
  })
  afterAll(async () => {
    await reader[Symbol.asyncDispose]()
  })

  test.each(commandsOf(page))('$line: $text', async (block) => {
    await look()
    await reader.follow(block)
  })
})

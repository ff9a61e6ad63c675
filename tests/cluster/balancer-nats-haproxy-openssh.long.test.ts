// The balancer of deploy/ in a real HAProxy, as its file stands but for names and ports, in front of three
// nodes: agents and people come through it to whichever node, their addresses are their own, and a node that
// leaves takes nobody along.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { devices } from '@hawser/contract/devices'
import { sample } from '@hawser/contract/examples'
import { makePerson } from '../../agent/test/person.ts'
import { folder, freePort, keygen, quietArgs, run, type Folder } from '../../ssh/test/programs.ts'
import { eventually, isRoot, watch } from '../clients/way.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { startCluster, type Cluster } from './cluster.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

/** Whoever calls from there is no proxy. */
const caller = '127.0.0.9'
const opened = new AsyncDisposableStack()
let cluster: Cluster
let where: Folder
let agent: Agent
let owner: Client
let user = ''
let url = ''
let sshPort = 0

beforeAll(async () => {
  cluster = opened.use(await startCluster(3, { env: { HAWSER_TRUSTED_PROXIES: '127.0.0.1' } }))
  where = opened.use(folder())
  const [httpPort, atSsh] = [await freePort(), await freePort()]
  sshPort = atSsh
  url = `http://127.0.0.1:${httpPort}`
  const file = readFileSync(path.join(import.meta.dirname, '../../deploy/haproxy.cfg'), 'utf8')
  const here = cluster.nodes.reduce(
    (text, { url: at, sshPort: ssh }, index) => {
      const { port } = new URL(at)
      return text
        .replaceAll(`node${index + 1}:8080`, `127.0.0.1:${port}`)
        .replaceAll(`node${index + 1}:2222 port 8080`, `127.0.0.1:${ssh} port ${port}`)
    },
    file
      .replace('bind :8080', `bind 127.0.0.1:${httpPort}`)
      .replace('bind :2222', `bind 127.0.0.1:${sshPort}`),
  )
  if (/:8080|:2222|port 8080/.test(here)) throw new Error('the file of the balancer has another form now')
  const haproxy = opened.use(watch('haproxy', ['-db', '-f', where.write('haproxy.cfg', here)]))
  const person = isRoot ? opened.use(await makePerson()) : undefined
  user = person?.name ?? process.env['USER'] ?? ''
  owner = cluster.nodes[0]!.api({ token: await cluster.world.token('owner') })
  await keygen(where, 'olga', '-t', 'ed25519')
  const data = Buffer.from(where.read('olga.pub')).toString('base64')
  await owner.publicKeys.create({ body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' } } })
  agent = await Promise.race([
    startAgent({ url, tenant_id: sample.tenant, accept: (uid) => owner.devices.accept({ params: { uid } }) }),
    haproxy.status.then(() => Promise.reject(new Error(haproxy.stderr()))),
  ])
  opened.use(agent)
})
afterAll(() => opened.disposeAsync())

const ssh = async (command: string) => {
  const settings = [`IdentityFile=${where.file('olga')}`, 'BatchMode=yes', `BindAddress=${caller}`]
  return run('ssh', [
    ...quietArgs(sshPort, ...settings),
    `${user}@${sample.namespace}.${agent.name}@127.0.0.1`,
    command,
  ])
}

test('the device is reached through it, whichever node takes the call, and the record has the address of the caller', async () => {
  for (let turn = 0; turn < 6; turn += 1) {
    const { status, stdout, stderr } = await ssh('echo here; exit 3')
    expect([stdout.toString(), status, stderr]).toEqual(['here\n', 3, ''])
  }
  const { body } = await owner.sessions.list({ query: { per_page: 100 } })
  const mine = body.filter((session) => session.device_uid === agent.uid)
  expect(mine).toHaveLength(6)
  expect(new Set(mine.map(({ ip_address }) => ip_address))).toEqual(new Set([caller]))
})

test('nobody forges where a call comes from, or to which address', async () => {
  const body = { ...devices.auth.example.body, identity: { mac: '00:00:5e:00:53:78' }, hostname: 'forger' }
  const forged = {
    'X-Real-IP': '192.0.2.1',
    'X-Forwarded-For': '192.0.2.1',
    'X-Forwarded-Host': 'evil.example',
    'X-Forwarded-Proto': 'https',
  }
  const headers = Object.entries(forged).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const words = ['-sSf', '--interface', caller, ...headers, '-H', 'Content-Type: application/json']
  const { status, stdout } = await run('curl', [
    ...words,
    '-d',
    JSON.stringify(body),
    `${url}/api/devices/auth`,
  ])
  expect(status).toBe(0)
  const { uid } = JSON.parse(stdout.toString()) as { uid: string }
  expect((await owner.devices.get({ params: { uid } })).body.remote_addr).toBe(caller)
})

test('a node that stops is left out, and its agent is back through the others', async () => {
  const at = cluster.nodes.findIndex(({ reach }) => reach.tunnels.size === 1)
  const others = cluster.nodes.filter((_, index) => index !== at)
  await cluster.nodes[at]![Symbol.asyncDispose]()
  await eventually(() => expect(others.reduce((sum, { reach }) => sum + reach.tunnels.size, 0)).toBe(1))
  // From the first moment on: a node that is gone and not yet missed costs nobody anything.
  for (let turn = 0; turn < 6; turn += 1) {
    const { status, stdout, stderr } = await ssh('echo again')
    expect([stdout.toString(), status, stderr]).toEqual(['again\n', 0, ''])
    expect((await run('curl', ['-sSf', `${url}/info`])).status).toBe(0)
  }
})

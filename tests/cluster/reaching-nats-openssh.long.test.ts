// Three nodes: whichever of them somebody comes to, every device is there, and what is done on one holds on
// all.
import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { makePerson } from '../../agent/test/person.ts'
import { folder, keygen, quietArgs, run, type Folder } from '../../ssh/test/programs.ts'
import { openGuest } from '../clients/shared.ts'
import { eventually, isRoot, watch } from '../clients/way.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { startOldAgent } from '../harness/old-agent.ts'
import type { Service } from '../harness/service.ts'
import { startCluster, type Balancer, type Cluster } from './cluster.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let cluster: Cluster
let where: Folder
let gate: Balancer
let agent: Agent
let user = ''
let owners: Client[]
const opened = new AsyncDisposableStack()

const node = (at: number): Service => cluster.nodes[at]!
const args = (at: number): string[] => [
  ...quietArgs(node(at).sshPort, `IdentityFile=${where.file('olga')}`, 'BatchMode=yes'),
]
const target = (device = agent.name): string => `${user}@${sample.namespace}.${device}@127.0.0.1`
const ssh = async (at: number, command: string, input?: Buffer) =>
  run('ssh', [...args(at), target(), command], input)
const online = async (at: number): Promise<boolean> =>
  (await owners[at]!.devices.get({ params: { uid: agent.uid } })).body.online

beforeAll(async () => {
  cluster = opened.use(await startCluster(3))
  where = opened.use(folder())
  gate = opened.use(await cluster.balancer())
  const person = isRoot ? opened.use(await makePerson()) : undefined
  user = person?.name ?? process.env['USER'] ?? ''
  const token = await cluster.world.token('owner')
  owners = cluster.nodes.map((service) => service.api({ token }))
  await keygen(where, 'olga', '-t', 'ed25519')
  const data = Buffer.from(where.read('olga.pub')).toString('base64')
  await owners[1]!.publicKeys.create({
    body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' } },
  })
  gate.to(node(0).url)
  agent = opened.use(
    await startAgent({
      url: gate.url,
      tenant_id: sample.tenant,
      accept: (uid) => owners[2]!.devices.accept({ params: { uid } }),
    }),
  )
})
afterAll(() => opened.disposeAsync())

test('a device with its tunnel on one node is reached on every node', async () => {
  await eventually(() => expect(cluster.nodes.map(({ reach }) => reach.tunnels.size)).toEqual([1, 0, 0]))
  for (const at of [0, 1, 2]) {
    const { status, stdout } = await ssh(at, 'echo here; exit 3')
    expect([at, stdout.toString(), status]).toEqual([at, 'here\n', 3])
  }
})

test('megabytes pass between the nodes unchanged, both ways', async () => {
  const bytes = randomBytes(30_000_000)
  const { stdout, status } = await ssh(1, 'cat', bytes)
  expect(status).toBe(0)
  expect(createHash('sha256').update(stdout).digest('hex')).toBe(
    createHash('sha256').update(bytes).digest('hex'),
  )
})

test('an agent may ask another node about a login than the one that makes it', async () => {
  gate.to(node(2).url)
  const { status, stderr } = await ssh(1, 'true')
  expect([stderr, status]).toEqual(['', 0])
  gate.to(node(0).url)
})

test('all nodes say the same about who is online, also after a change', async () => {
  await eventually(async () =>
    expect(await Promise.all([online(0), online(1), online(2)])).toEqual([true, true, true]),
  )
  const figures = await Promise.all(
    owners.map(async (owner) => (await owner.system.stats()).body.online_devices),
  )
  expect(new Set(figures).size).toBe(1)
})

describe('what is done on one node', () => {
  test('a session that continues elsewhere is closed', async () => {
    await using running = watch('ssh', [...args(1), target(), 'echo ready; sleep 1000'])
    await running.until(/(ready)/)
    const [session] = (await owners[2]!.sessions.list()).body.filter(({ active }) => active)
    await owners[2]!.sessions.close({ params: { uid: session!.uid }, body: { device: agent.uid } })
    expect(await running.status).toBe(255)
    expect(running.stderr()).toContain('closed by an administrator')
    await eventually(async () =>
      expect((await owners[0]!.sessions.get({ params: { uid: session!.uid } })).body.active).toBe(false),
    )
  })

  test('a key that is removed opens nothing any more', async () => {
    await keygen(where, 'short', '-t', 'ed25519')
    const data = Buffer.from(where.read('short.pub')).toString('base64')
    const { fingerprint } = (
      await owners[0]!.publicKeys.create({
        body: { data, name: 'short', username: '.*', filter: { hostname: '.*' } },
      })
    ).body
    const login = async () =>
      run('ssh', [
        ...quietArgs(node(1).sshPort, `IdentityFile=${where.file('short')}`, 'BatchMode=yes'),
        target(),
        'true',
      ])
    expect((await login()).status).toBe(0)
    await owners[2]!.publicKeys.remove({ params: { fingerprint } })
    expect((await login()).status).toBe(255)
  })

  test('a device that is no longer accepted loses its sessions everywhere', async () => {
    await using running = watch('ssh', [...args(1), target(), 'echo ready; sleep 1000'])
    await running.until(/(ready)/)
    await owners[2]!.devices.setStatus({ params: { uid: agent.uid, status: 'pending' } })
    expect(await running.status).toBe(255)
    expect((await ssh(2, 'true')).status).toBe(255)
    await owners[0]!.devices.accept({ params: { uid: agent.uid } })
    expect((await ssh(2, 'true')).status).toBe(0)
  })
})

describe('what only one node can serve is handed to it', () => {
  test('an agent of version 1 brings its streams to whichever node the load balancer chooses', async () => {
    gate.to(node(0).url)
    const name = 'old-winch'
    await using old = await startOldAgent(
      { ...node(0), url: gate.url },
      { version: 1, tenant_id: sample.tenant, hostname: name },
    )
    await owners[0]!.devices.accept({ params: { uid: old.uid } }).catch(() => undefined)
    await eventually(() => expect(node(0).reach.tunnels.find(old.uid)).toBeDefined())
    gate.to(node(2).url)
    const { stdout, stderr, status } = await run('ssh', [
      ...args(1),
      `${user}@${sample.namespace}.${name}@127.0.0.1`,
      'echo over',
    ])
    expect([stderr, stdout.toString(), status]).toEqual(['', 'over\n', 0])
  })

  test('a session is watched through any node', async () => {
    gate.to(node(0).url)
    await owners[0]!.namespaces.setSessionRecord({
      params: { tenant: sample.tenant },
      body: { session_record: true },
    })
    await using running = watch('ssh', [...args(1), '-tt', target()])
    running.child.stdin.write('echo se$((1+1))n\n')
    await running.until(/(se2n)/)
    const [session] = (await owners[2]!.sessions.list()).body.filter(
      ({ active, device_uid }) => active && device_uid === agent.uid,
    )
    // Given by one node, used at another, for a session on a third.
    const { token } = (await owners[0]!.sessions.ticket({ params: { uid: session!.uid } })).body
    const viewer = new WebSocket(
      `${node(2).url.replace('http', 'ws')}/api/sessions/${session!.uid}/live?ticket=${token}`,
    )
    let seen = ''
    viewer.binaryType = 'arraybuffer'
    viewer.addEventListener(
      'message',
      ({ data }) =>
        void (seen += typeof data === 'string' ? data : Buffer.from(data as ArrayBuffer).toString()),
    )
    await eventually(() => expect(seen).toContain('se2n'))
    running.child.stdin.write('echo la$((1+2))er\n')
    await eventually(() => expect(seen).toContain('la3er'))
    viewer.close()
  })

  test('a session is joined through any node, and every node knows who is there', async () => {
    gate.to(node(0).url)
    await using running = watch('ssh', [...args(1), '-tt', target()])
    running.child.stdin.write('echo be$((1+1))gun\n')
    await running.until(/(be2gun)/)
    const [session] = (await owners[2]!.sessions.list()).body.filter(
      ({ active, device_uid }) => active && device_uid === agent.uid,
    )
    const { uid } = session!
    const { token } = (await owners[0]!.sessions.join({ params: { uid } })).body
    using guest = await openGuest(node(2).url, uid, { query: `?ticket=${token}` })
    await guest.present({ you: 1 })
    guest.say({ kind: 'ask' })
    await running.until(/(asks to type here)/)
    running.child.stdin.write('\u001dy')
    await running.until(/(can now type here)/)
    guest.type('echo fr$((1+1))m afar\r')
    await running.until(/(fr2m afar)/)
    for (const owner of owners)
      await eventually(async () =>
        expect((await owner.sessions.get({ params: { uid } })).body.participants).toMatchObject([
          { state: 'typing' },
        ]),
      )
  })
})

test('a newer tunnel on another node takes over, sessions go on there, and the device stays online', async () => {
  const before = agent.lines.filter(({ event }) => event === 'tunnel.up').length
  // One at the node that had the tunnel, one at the node that gets it, one at a third.
  const sessions = [0, 1, 2].map((at) =>
    watch('ssh', [...args(at), target(), 'while read line; do echo "got $line"; done']),
  )
  for (const session of sessions) session.child.stdin.write('one\n')
  for (const session of sessions) await session.until(/(got one)/)
  gate.to(node(2).url)
  // The older one is lost without a word: half open, as far as the first node can tell.
  for (const tunnel of node(0).reach.tunnels.all()) tunnel.close('for the test')
  await eventually(() =>
    expect(agent.lines.filter(({ event }) => event === 'tunnel.up').length).toBe(before + 1),
  )
  await eventually(() => expect(cluster.nodes.map(({ reach }) => reach.tunnels.size)).toEqual([0, 0, 1]))
  for (const session of sessions) {
    session.child.stdin.end('two\n')
    expect(await session.status).toBe(0)
    expect([session.stdout(), session.stderr()]).toEqual(['got one\ngot two\n', ''])
  }
  for (const at of [0, 1, 2]) expect((await ssh(at, 'true')).status).toBe(0)
  await eventually(async () =>
    expect(await Promise.all([online(0), online(1), online(2)])).toEqual([true, true, true]),
  )
})

test('who guesses is limited on all nodes together', async () => {
  const limited = await startCluster(2, { env: { HAWSER_RATE_LIMIT: '20/600' } })
  await using _ = limited
  const guess = async (at: number): Promise<number> =>
    (
      await fetch(`${limited.nodes[at]!.url}/api/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ username: 'nobody', password: 'wrong-password' }),
      })
    ).status
  for (let n = 0; n < 21; n += 1) await guess(0)
  await eventually(async () => expect(await guess(1)).toBe(429))
})

test('a node whose clock is five minutes ahead works with the others', async () => {
  node(1).clock.forward(300_000)
  const { body } = await node(1)
    .api()
    .users.login({ body: { username: sample.owner.username, password: sample.owner.password } })
  expect((await node(0).api({ token: body.token }).devices.list()).status).toBe(200)
  expect((await ssh(1, 'true')).status).toBe(0)
  expect((await ssh(0, 'true')).status).toBe(0)
  expect(await Promise.all([online(0), online(1), online(2)])).toEqual([true, true, true])
})

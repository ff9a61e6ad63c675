// A node that is told to stop ends: its process is gone, with status 0, whatever its clients do on a device
// whose tunnel another node has.
import { once } from 'node:events'
import { createServer, connect, type AddressInfo } from 'node:net'
import os from 'node:os'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { client, type Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { makePerson } from '../../agent/test/person.ts'
import { folder, freePort, keygen, quietArgs, type Folder } from '../../ssh/test/programs.ts'
import { openTerminal } from '../clients/terminal.ts'
import { dial } from '../clients/web.ts'
import { isRoot, watch } from '../clients/way.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { eventually, longestWait_ms, until } from '../harness/eventually.ts'
import type { Service } from '../harness/service.ts'
import { startCluster, type Cluster } from './cluster.ts'
import { startNode, type Node } from './node.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const opened = new AsyncDisposableStack()
let cluster: Cluster
let home: Service
let owner: Client
let agent: Agent
let where: Folder
let user: { name: string; password: string }

beforeAll(async () => {
  cluster = opened.use(await startCluster(1))
  home = cluster.nodes[0]!
  where = opened.use(folder())
  const person = isRoot ? opened.use(await makePerson()) : undefined
  user = person ?? { name: os.userInfo().username, password: 'pilot' }
  owner = home.api({ token: await cluster.world.token('owner') })
  await keygen(where, 'olga', '-t', 'ed25519')
  const data = Buffer.from(where.read('olga.pub')).toString('base64')
  await owner.publicKeys.create({
    body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' }, owner: sample.owner.username },
  })
  const accept = (uid: string) => owner.devices.accept({ params: { uid } })
  agent = opened.use(await startAgent({ url: home.url, tenant_id: sample.tenant, accept }))
})
afterAll(() => opened.disposeAsync())

const args = (node: { sshPort: number }): string[] =>
  quietArgs(node.sshPort, `IdentityFile=${where.file('olga')}`, 'BatchMode=yes')
const target = (): string => `${user.name}@${sample.namespace}.${agent.name}@127.0.0.1`
const sessions = async () =>
  (await owner.sessions.list({ query: { active: true, device_uid: agent.uid } })).body

/** Something of a client's that goes on at the node when this resolves. */
type Kinds = Readonly<Record<string, (node: Node, stack: AsyncDisposableStack) => Promise<unknown>>>

async function shell(at: { sshPort: number }, stack: AsyncDisposableStack, ...command: string[]) {
  const terminal = openTerminal('ssh', [...args(at), '-t', target(), ...command])
  stack.defer(() => terminal[Symbol.dispose]())
  terminal.type('unset HISTFILE; echo rea""dy\n')
  await terminal.until(/ready\r\n/)
  return terminal
}

async function running(node: Node, stack: AsyncDisposableStack, pattern: RegExp, ...words: string[]) {
  const child = stack.use(watch('ssh', [...args(node), ...words]))
  await child.until(pattern)
  return child
}

const kinds: Kinds = {
  'a shell in a terminal': shell,
  'a command': (node, stack) => running(node, stack, /(ready)/, target(), 'echo ready; sleep 1000'),
  'a command whose output nobody reads': (node, stack) =>
    running(node, stack, /(y)/, target(), 'yes').then(({ child }) => child.stdout.pause()),
  async 'files by SFTP'(node, stack) {
    const sftp = stack.use(
      watch('sftp', [...args(node).map((word) => (word === '-p' ? '-P' : word)), target()]),
    )
    sftp.child.stdin.write('pwd\n')
    await sftp.until(/(Remote working directory)/)
  },
  async 'a forwarded connection'(node, stack) {
    const device = createServer((socket) => void socket.write('ready')).listen(0, '127.0.0.1')
    stack.defer(() => void device.close())
    await once(device, 'listening')
    const port = await freePort()
    const to = `127.0.0.1:${port}:127.0.0.1:${(device.address() as AddressInfo).port}`
    stack.use(watch('ssh', [...args(node), '-N', '-L', to, target()]))
    await eventually(async () => {
      const socket = connect(port, '127.0.0.1')
      stack.defer(() => void socket.destroy())
      await once(socket, 'data')
    })
  },
  async 'a terminal in a browser'(node, stack) {
    const api = client({ url: node.url, token: await cluster.world.token('owner') })
    const { token } = (
      await api.terminals.open({
        body: { device: agent.uid, username: user.name, password: user.password },
      })
    ).body
    const page = await dial(node, token)
    stack.defer(() => page[Symbol.dispose]())
    await page.hear('session')
    page.type('echo rea""dy\r')
    await page.until('ready\r\n')
  },
  async 'a held session'(node, stack) {
    const terminal = await shell(node, stack)
    terminal.kill('SIGKILL')
    await until(async () => (await sessions()).some(({ held }) => held))
  },
  async 'a session that is continued at another node'(node, stack) {
    const terminal = await shell(node, stack)
    terminal.kill('SIGKILL')
    const held = await until(async () => (await sessions()).find((session) => session.held))
    const back = openTerminal('ssh', [...args(home), '-t', target(), 'hawser-attach', held.uid])
    stack.defer(() => back[Symbol.dispose]())
    await back.until(/ready\r\n/)
  },
  async 'a session of another node that is continued here'(node, stack) {
    const terminal = await shell(home, stack)
    terminal.kill('SIGKILL')
    const held = await until(async () => (await sessions()).find((session) => session.held))
    const back = openTerminal('ssh', [...args(node), '-t', target(), 'hawser-attach', held.uid])
    stack.defer(() => back[Symbol.dispose]())
    await back.until(/ready\r\n/)
  },
}

async function ends({ child }: Node): Promise<void> {
  child.kill('SIGTERM')
  const gone = once(child, 'exit', { signal: AbortSignal.timeout(longestWait_ms) })
  expect(await gone).toEqual([0, null])
}

test.each(Object.entries(kinds))('a node with %s stops', async (_, begin) => {
  await using stack = new AsyncDisposableStack()
  const node = stack.use(await startNode({ ...cluster, env: { ...cluster.env, HAWSER_DRAIN: '1' } }))
  await begin(node, stack)
  await ends(node)
  for (const { uid, device_uid } of await sessions())
    await owner.sessions.close({ params: { uid }, body: { device: device_uid } })
  await until(async () => (await sessions()).length === 0)
})

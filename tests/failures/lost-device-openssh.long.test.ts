// What happens to a session, and to what is said about a device, when one of those who take part is lost or
// told to go. The real agent in a process of its own, the real client.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { makePerson } from '../../agent/test/person.ts'
import { folder, keygen, quietArgs, run } from '../../ssh/test/programs.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { eventually } from '../harness/eventually.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const where = folder()
let service: Service
let world: World
let person: Awaited<ReturnType<typeof makePerson>> | undefined
let user = 'pilot'

beforeAll(async () => {
  // Somebody with an empty home: what is killed here may be the beginning of a shell.
  if (process.getuid?.() === 0) person = await makePerson()
  user = person?.name ?? user
  service = await startService()
  world = await buildWorld(service)
  await keygen(where, 'olga', '-t', 'ed25519')
  await service.api({ token: await world.token('owner') }).publicKeys.create({
    body: {
      data: Buffer.from(where.read('olga.pub')).toString('base64'),
      name: 'olga',
      username: '.*',
      filter: { hostname: '.*' },
    },
  })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await person?.[Symbol.asyncDispose]()
  where[Symbol.dispose]()
})

const args = (agent: Agent, ...more: string[]): string[] => [
  ...quietArgs(service.sshPort, 'LogLevel=INFO'),
  '-i',
  where.file('olga'),
  ...more,
  `${user}@${sample.namespace}.${agent.name}@127.0.0.1`,
]

interface Live extends Disposable {
  readonly child: ChildProcess
  said(): string
  readonly status: Promise<number | null>
}

/** A session that has begun: its program has printed a word and now waits. */
async function live(agent: Agent, ...more: string[]): Promise<Live> {
  const child = spawn('ssh', [...args(agent, ...more), 'echo begun; exec cat'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => void (stderr += chunk.toString()))
  const status = once(child, 'close').then(([code]) => code as number | null)
  const first = await Promise.race([once(child.stdout, 'data'), status])
  if (!Array.isArray(first)) throw new Error(`ssh ended with ${first}: ${stderr}`)
  return { child, said: () => stderr, status, [Symbol.dispose]: () => void child.kill('SIGKILL') }
}

const deviceOf = async (agent: Agent) =>
  (await service.api({ token: await world.token('observer') }).devices.get({ params: { uid: agent.uid } }))
    .body
const newest = async () =>
  (await service.api({ token: await world.token('observer') }).sessions.list({ query: {} })).body[0]!
const within = async (seconds: number, work: Promise<unknown>): Promise<void> => {
  const limit = new Promise(
    (_, reject) =>
      void setTimeout(() => reject(new Error(`not within ${seconds} s`)), seconds * 1000).unref(),
  )
  await Promise.race([work, limit])
}

test('an agent that is killed takes its sessions along: the device is offline, and when the agent is back the client reads a sentence and gets 255', async () => {
  const key = mkdtempSync(path.join(os.tmpdir(), 'hawser-device-'))
  {
    await using agent = await startAgent(service, { hostname: 'killed', folder: key })
    using session = await live(agent)
    expect((await deviceOf(agent)).online).toBe(true)
    const running = { active: true, type: 'exec', username: user, device_uid: agent.uid }
    await eventually(async () => expect(await newest()).toMatchObject(running))
    agent.kill('SIGKILL')
    await eventually(async () => expect((await deviceOf(agent)).online).toBe(false))
    await using again = await startAgent(service, { hostname: 'killed', folder: key, pending: true })
    expect(again.uid).toBe(agent.uid)
    await within(5, session.status)
    expect(await session.status).toBe(255)
    expect(session.said()).toContain(`The connection to ${sample.namespace}.killed was lost.`)
    await eventually(async () => expect((await newest()).active).toBe(false))
  }
  rmSync(key, { recursive: true })
})

test('an agent that is told to stop ends its sessions at once', async () => {
  await using agent = await startAgent(service, { hostname: 'stopped' })
  using session = await live(agent)
  agent.kill('SIGTERM')
  await within(5, session.status)
  expect(await session.status).toBe(255)
  expect(session.said()).toContain(`The connection to ${sample.namespace}.stopped was lost.`)
})

test('an agent whose tunnel is cut comes back by itself, its sessions go on, and it is reached again', async () => {
  await using agent = await startAgent(service, { hostname: 'cut' })
  using session = await live(agent)
  const back = agent.logged('tunnel.up')
  // From the server's side, without a word: what a router that restarts does.
  for (const tunnel of service.reach.tunnels.all()) if (tunnel.device.uid === agent.uid) tunnel.close('cut')
  await back
  await eventually(async () => expect((await deviceOf(agent)).online).toBe(true))
  session.child.stdin?.end()
  expect(await session.status).toBe(0)
  expect((await run('ssh', [...args(agent), 'exit 3'])).status).toBe(3)
})

test('Close session ends it with a sentence, and only that one', async () => {
  await using agent = await startAgent(service, { hostname: 'closed' })
  using one = await live(agent)
  const { uid } = await newest()
  using other = await live(agent)
  const api = service.api({ token: await world.token('administrator') })
  await api.sessions.close({ params: { uid }, body: { device: agent.uid } })
  expect(await one.status).toBe(255)
  expect(one.said()).toContain('The session was closed by an administrator.')
  other.child.stdin!.end()
  expect(await other.status).toBe(0)
})

test.each(['pending', 'reject', 'unused'] as const)(
  'a device that leaves accepted (%s) has no session any more',
  async (status) => {
    await using agent = await startAgent(service, { hostname: `left-${status}` })
    using session = await live(agent)
    await service
      .api({ token: await world.token('operator') })
      .devices.setStatus({ params: { uid: agent.uid, status } })
    expect(await session.status).toBe(255)
    expect(session.said()).toContain('The device is no longer available.')
    const refused = await run('ssh', [...args(agent), 'true'])
    expect(refused.status).toBe(255)
    expect(refused.stderr).toContain('is offline or cannot be reached')
  },
)

test('a device that is deleted has neither session nor tunnel, and enrols again as pending', async () => {
  await using agent = await startAgent(service, { hostname: 'deleted' })
  using session = await live(agent)
  const back = agent.logged('tunnel.up')
  await service
    .api({ token: await world.token('administrator') })
    .devices.remove({ params: { uid: agent.uid } })
  expect(await session.status).toBe(255)
  await back
  expect((await deviceOf(agent)).status).toBe('pending')
})

test('an idle session ends where the server says so, a busy one goes on', async () => {
  await using strict = await startService({ env: { HAWSER_SSH_IDLE: '1' } })
  await buildWorld(strict)
  await using agent = await startAgent(strict, { hostname: 'idle' })
  const { stores } = strict.rooms
  const [row] = await service.rooms.stores
    .of(sample.tenant)
    .publicKeys.all()
    .then((rows) => rows.filter((key) => key.name === 'olga'))
  await stores.of(sample.tenant).publicKeys.insert(row!)
  const at = [
    ...quietArgs(strict.sshPort),
    '-i',
    where.file('olga'),
    `${user}@${sample.namespace}.${agent.name}@127.0.0.1`,
  ]
  const busy = run('ssh', [...at, 'for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.4; done'])
  const idle = await run('ssh', [...at, 'sleep 30'])
  expect(idle.status).toBe(255)
  expect(idle.stderr).toContain('The session was idle for too long.')
  expect((await busy).status).toBe(0)
})

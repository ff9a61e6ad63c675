// The real OpenSSH client through the gateway to devices whose agents are those of the field, over both
// versions of the tunnel: what gets in and what does not, and that what runs there looks as it does on a
// machine one is connected to.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { folder, keygen, quietArgs, run } from '../../ssh/test/programs.ts'
import { startOldAgent, type OldAgent, type OldAgentOptions } from '../harness/old-agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const where = folder()
let service: Service
let world: World

beforeAll(async () => {
  service = await startService()
  world = await buildWorld(service)
  await keygen(where, 'olga', '-t', 'ed25519')
  await keygen(where, 'stranger', '-t', 'ed25519')
  const api = service.api({ token: await world.token('owner') })
  await api.publicKeys.create({
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
  where[Symbol.dispose]()
})

describe.each([1, 2] as const)('an agent of version %i', (version) => {
  let agent: OldAgent
  const hostname = `field-${version}`
  beforeAll(async () => {
    agent = await startOldAgent(service, { version, tenant_id: sample.tenant, hostname })
    await service.api({ token: await world.token('operator') }).devices.accept({ params: { uid: agent.uid } })
  })
  afterAll(async () => {
    await agent[Symbol.asyncDispose]()
  })

  const sshid = (user = 'pilot') => `${user}@${sample.namespace}.${hostname}`
  const ssh = (key: string, command: string[], input?: string | Buffer, ...options: string[]) =>
    run(
      'ssh',
      [...quietArgs(service.sshPort, ...options), '-i', where.file(key), `${sshid()}@127.0.0.1`, ...command],
      input,
    )

  test('a registered key runs a command, with its output, its errors apart and its exit status', async () => {
    const { status, stdout, stderr } = await ssh('olga', ['echo out; echo err >&2; exit 3'])
    expect({ status, stdout: stdout.toString(), stderr }).toEqual({
      status: 3,
      stdout: 'out\n',
      stderr: 'err\n',
    })
  })

  test('a key that the namespace does not know gets in nowhere, and the device never hears of it', async () => {
    const before = agent.seen.streams
    const { status, stderr } = await ssh('stranger', ['true'], undefined, 'BatchMode=yes')
    expect(status).toBe(255)
    expect(stderr).toContain('Permission denied')
    expect(agent.seen.streams).toBe(before)
  })

  test('megabytes pass both ways unharmed', async () => {
    const sent = randomBytes(8 * 1024 * 1024)
    const { status, stdout } = await ssh('olga', ['cat'], sent)
    expect(status).toBe(0)
    expect(stdout.equals(sent)).toBe(true)
  })
})

describe.each([1, 2] as const)(
  'an agent 0.16.4 of version %i, which dies of users that its device does not have',
  (version) => {
    const hostname = `frail-${version}`
    const log = (agent: OldAgent, user: string, command: string) =>
      run('ssh', [
        ...quietArgs(service.sshPort, 'BatchMode=yes'),
        '-i',
        where.file('olga'),
        `${user}@${sample.namespace}.${agent.name}@127.0.0.1`,
        command,
      ])
    async function frail(more: Partial<OldAgentOptions> = {}): Promise<OldAgent> {
      const agent = await startOldAgent(service, {
        version,
        tenant_id: sample.tenant,
        hostname,
        accounts: ['pilot'],
        ...more,
      })
      await service
        .api({ token: await world.token('operator') })
        .devices.accept({ params: { uid: agent.uid } })
      return agent
    }

    test('lives on when somebody comes with a key for one of them, who is refused', async () => {
      await using agent = await frail()
      const { status, stderr } = await log(agent, 'nobody-here', 'echo in')
      expect([status, agent.seen.panicked]).toEqual([255, false])
      expect(stderr).toContain('Permission denied')
      const { stdout } = await log(agent, 'pilot', 'echo in; exit 0')
      expect(stdout.toString()).toBe('in\n')
      expect(agent.seen.panicked).toBe(false)
    })

    test('of later versions, which refuse such keys themselves, nothing is asked before', async () => {
      await using agent = await frail({ hostname: `firm-${version}`, agentVersion: 'v0.24.1' })
      await log(agent, 'pilot', 'echo in')
      expect(agent.seen.sessions.map(({ program }) => program.type)).toEqual(['exec'])
    })
  },
)

// Agents of ShellHub before 0.19.2 take a registered key for an account that the device does not have, and crash
// with the first program for it: one `ssh` with a mistyped user ended the agent, and everybody's sessions with it.
// The server starts SFTP first, which those agents survive. An account without a home folder gets no SFTP from
// them either, so the refusal names both.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { folder, keygen, quietArgs, run } from '../../ssh/test/programs.ts'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent, type OldAgent } from '../harness/old-agent.ts'
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
  where[Symbol.dispose]()
})

async function device(agentVersion: string): Promise<OldAgent> {
  const agent = await startOldAgent(service, {
    version: 2,
    tenant_id: sample.tenant,
    hostname: agentVersion.replaceAll('.', '-'),
    agentVersion,
    accounts: ['pilot', 'homeless'],
    // The SFTP server of the agent ends when it cannot go to the home of its user.
    ...(agentVersion === homelessVersion ? { sftp: async (channel) => channel.close() } : {}),
  })
  await service.api({ token: await world.token('operator') }).devices.accept({ params: { uid: agent.uid } })
  return agent
}
const homelessVersion = 'v0.18.4'

const ssh = (agent: OldAgent, user: string) =>
  run('ssh', [
    ...quietArgs(service.sshPort, 'BatchMode=yes', 'LogLevel=INFO'),
    '-i',
    where.file('olga'),
    `${user}@${sample.namespace}.${agent.name}@127.0.0.1`,
    'echo in',
  ])

test.each(['v0.15.0', '0.17.2', 'v0.18.3', 'v0.19.1', 'v0.19.2-rc.1'])(
  'an agent %s outlives a login as somebody whom its device does not have',
  async (version) => {
    await using agent = await device(version)
    const { status, stderr } = await ssh(agent, 'nobody-here')
    expect([status, agent.seen.panicked]).toEqual([255, false])
    expect(stderr).toMatch(/has no account nobody-here, or it has no home folder there \(reference /)
    expect((await ssh(agent, 'pilot')).stdout.toString()).toBe('in\n')
    expect(agent.seen.panicked).toBe(false)
  },
)

test.each(['v0.19.2', 'v0.20.0', 'v1.0.0'])('an agent %s is asked for nothing before', async (version) => {
  await using agent = await device(version)
  expect((await ssh(agent, 'pilot')).stdout.toString()).toBe('in\n')
  expect(agent.seen.sessions.map(({ program }) => program.type)).toEqual(['exec'])
})

test('an account without a home folder is told so, and the administrators are', async () => {
  await using agent = await device(homelessVersion)
  const { status, stderr } = await ssh(agent, 'homeless')
  expect(status).toBe(255)
  expect(stderr).toContain('has no account homeless, or it has no home folder there')
  const [, reference = ''] = /\(reference ([2-9A-Z-]+)\)/.exec(stderr) ?? []
  const administrator = service.api({ token: await world.token('administrator') })
  await eventually(async () =>
    expect((await administrator.logins.refusal({ params: { reference } })).body).toMatchObject({
      reason: 'device-refused',
      detail: expect.stringMatching(/no home folder.*0\.19\.2/) as string,
    }),
  )
})

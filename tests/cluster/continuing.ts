// For tests of sessions that are continued by way of another node than the one that has them: two nodes, a
// device, keys, and OpenSSH and `hawser` in front of somebody. One of each for the tests of a file.
import os from 'node:os'
import { afterAll, afterEach, beforeAll, expect, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import type { Session } from '@hawser/contract/sessions'
import { makePerson } from '../../agent/test/person.ts'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { folder, freePort, keygen, quietArgs, type Folder } from '../../ssh/test/programs.ts'
import { openTerminal, type Terminal, type TerminalOptions } from '../clients/terminal.ts'
import { eventually, isRoot } from '../clients/way.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { startCluster, type Cluster } from './cluster.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const opened = new AsyncDisposableStack()
export let cluster: Cluster
/** The node that has the sessions, and another one; `hawser` is sent to the other one, too. */
export let home: Service
export let other: Service
export let owner: Client
export let agent: Agent
export let desk: Desk
let where: Folder
export let user = ''

beforeAll(async () => {
  cluster = opened.use(await startCluster(1, { env: { HAWSER_URL: '', HAWSER_SSH_KEEPALIVE: '1' } }))
  home = cluster.nodes[0]!
  const port = String(await freePort())
  const named = { HAWSER_SSH: `127.0.0.1:${port}`, HAWSER_SSH_PUBLIC_PORT: port }
  other = opened.use(await startService({ env: { ...cluster.env, ...named }, database: cluster.database }))
  where = opened.use(folder())
  const person = isRoot ? opened.use(await makePerson()) : undefined
  user = person?.name ?? os.userInfo().username
  owner = home.api({ token: await cluster.world.token('owner') })
  for (const [key, change] of [
    ['olga', { owner: sample.owner.username }],
    ['nobody', {}],
    ['stranger', {}],
  ] as const) {
    await keygen(where, key, '-t', 'ed25519')
    const data = Buffer.from(where.read(`${key}.pub`)).toString('base64')
    await owner.publicKeys.create({
      body: { data, name: key, username: '.*', filter: { hostname: '.*' }, ...change },
    })
  }
  const accept = (uid: string) => owner.devices.accept({ params: { uid } })
  agent = opened.use(await startAgent({ url: home.url, tenant_id: sample.tenant, accept }))
  desk = opened.use(openDesk({ HAWSER_SERVER: other.url }))
  const { username, password } = sample.owner
  await desk.hawser(['login', '-u', username, '--password-stdin'], { input: password })
})
afterAll(() => opened.disposeAsync())

export const target = (): string => `${user}@${sample.namespace}.${agent.name}@127.0.0.1`
export const args = (at: { sshPort: number }, key = 'olga'): string[] =>
  quietArgs(at.sshPort, `IdentityFile=${where.file(key)}`, 'BatchMode=yes')
/** The client in front of somebody. */
export const sit = (
  at: { sshPort: number },
  { command = [], key, ...options }: TerminalOptions & { command?: string[]; key?: string } = {},
): Terminal => openTerminal('ssh', [...args(at, key), '-t', target(), ...command], options)
export const attach = (at: { sshPort: number }, ...words: string[]): Terminal =>
  sit(at, { command: ['hawser-attach', ...words] })

export const list = async (): Promise<Session[]> =>
  (await owner.sessions.list({ query: { active: true, device_uid: agent.uid } })).body
export const isHeld = async (uid?: string): Promise<Session> =>
  eventually(async () => {
    const one = (await list()).find((session) => session.held && session.uid === (uid ?? session.uid))
    expect(one).toBeDefined()
    return one!
  })
export const ready = async (terminal: Terminal, value: string): Promise<void> => {
  terminal.type(`unset HISTFILE; stty -echo; PS1="> "; VALUE=${value}; echo rea""dy\n`)
  await terminal.until(/ready\r\n/)
}
/** A shell with a variable, whose client is then killed. */
export async function leaveBehind(at: { sshPort: number }, value: string, key?: string): Promise<Session> {
  using terminal = sit(at, key === undefined ? {} : { key })
  await ready(terminal, value)
  terminal.kill('SIGKILL')
  await terminal.ended
  return await isHeld()
}
export const question = /Your session of \d\d:\d\d UTC is still there: Enter continues it/
export const told = /The session continues elsewhere: ssh from 127\.0\.0\.1\./

afterEach(async () => {
  for (const { uid, device_uid } of await list())
    await owner.sessions.close({ params: { uid }, body: { device: device_uid } })
  // oxlint-disable-next-line vitest/no-standalone-expect -- nothing of one test may be there in the next
  await eventually(async () => expect(await list()).toEqual([]))
})

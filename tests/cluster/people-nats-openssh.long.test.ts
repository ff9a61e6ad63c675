// Two nodes on one database: the certificate that says who is signed in is made by one node and shown to the
// other, and what a session on one node showed is found on both.
import os from 'node:os'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { makePerson } from '../../agent/test/person.ts'
import { openDesk, type Desk } from '../../cli/test/program.ts'
import { folder, keygen, type Folder } from '../../ssh/test/programs.ts'
import { eventually, isRoot } from '../clients/way.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { startCluster } from './cluster.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

/** Has the API that people are signed in to. */
let issuer: Service
/** Has the SSH port that the issuer names. */
let gateway: Service
let agent: Agent
let desk: Desk
let where: Folder
let user = ''
/** At the issuer and at the gateway. */
let owners: readonly [Client, Client]
const opened = new AsyncDisposableStack()

beforeAll(async () => {
  const cluster = opened.use(await startCluster(1, { env: { HAWSER_URL: '' } }))
  gateway = cluster.nodes[0]!
  const env = { ...cluster.env, HAWSER_SSH_PUBLIC_PORT: String(gateway.sshPort) }
  issuer = opened.use(await startService({ env, database: cluster.database }))
  where = opened.use(folder())
  const person = isRoot ? opened.use(await makePerson()) : undefined
  user = person?.name ?? os.userInfo().username
  const token = await cluster.world.token('owner')
  owners = [issuer.api({ token }), gateway.api({ token })]
  await keygen(where, 'shared', '-t', 'ed25519')
  const data = Buffer.from(where.read('shared.pub')).toString('base64')
  await owners[0].publicKeys.create({
    body: { data, name: 'shared', username: '.*', filter: { hostname: '.*' } },
  })
  await owners[0].namespaces.setSessionRecord({
    params: { tenant: sample.tenant },
    body: { session_record: true },
  })
  const accept = (uid: string) => owners[0].devices.accept({ params: { uid } })
  agent = opened.use(await startAgent({ url: issuer.url, tenant_id: sample.tenant, accept }))
  desk = opened.use(openDesk({ HAWSER_SERVER: issuer.url }))
  const { username, password } = sample.owner
  await desk.hawser(['login', '-u', username, '--password-stdin'], { input: password })
})
afterAll(() => opened.disposeAsync())

async function ssh(...words: readonly string[]) {
  const options = [
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
    'BatchMode=yes',
    `IdentityFile=${where.file('shared')}`,
  ].flatMap((one) => ['-o', one])
  const [flags, command] = [words.slice(0, -1), words.at(-1) ?? '']
  return desk.hawser(['ssh', '-F', 'none', ...options, ...flags, `${user}@${agent.name}`, command])
}

const newest = async (owner: Client) => (await owner.sessions.list({ query: {} })).body[0]

test('the certificate of one node names the person at the other', async () => {
  expect(gateway.sshPort).not.toBe(issuer.sshPort)
  expect(await ssh('echo in')).toEqual({ code: 0, stdout: 'in\n', stderr: '' })
  for (const owner of owners)
    expect(await newest(owner)).toMatchObject({
      person: { kind: 'user', id: sample.owner.id, name: sample.owner.username },
      via: 'cli',
      method: 'publickey',
      key: { name: 'shared' },
    })
})

test('it gets in where known people are demanded, and nobody else with the same key does', async () => {
  await owners[1].namespaces.edit({
    params: { tenant: sample.tenant },
    body: { settings: { require_person: true } },
  })
  try {
    expect(await ssh('true')).toMatchObject({ code: 0, stderr: '' })
    const before = (await newest(owners[0]))?.uid
    const env = { XDG_CONFIG_HOME: where.file('nobody') }
    const target = `${user}@${sample.namespace}.${agent.name}`
    const words = ['-F', 'none', '-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null']
    const key = ['-o', 'BatchMode=yes', '-i', where.file('shared')]
    expect(await desk.hawser(['ssh', ...words, ...key, target, 'true'], { env })).toMatchObject({ code: 255 })
    expect((await newest(owners[0]))?.uid).toBe(before)
  } finally {
    await owners[1].namespaces.edit({
      params: { tenant: sample.tenant },
      body: { settings: { require_person: false } },
    })
  }
})

test('what a session on one node showed is found on both', async () => {
  expect(await ssh('-tt', 'echo gui"llemot"')).toMatchObject({ code: 0 })
  const uid = (await newest(owners[1]))?.uid
  for (const owner of owners) {
    const [hit] = await eventually(async () => {
      const { hits } = (await owner.recordings.find({ query: { text: 'guillemot' } })).body
      expect(hits).toHaveLength(1)
      return hits
    })
    expect(hit).toMatchObject({ session_uid: uid, device_name: agent.name, username: user })
    expect(hit?.text.trim()).toBe('guillemot')
  }
  const { stdout } = await desk.hawser(['search', 'guillemot'])
  expect(stdout).toContain(`${user} on ${agent.name}\n`)
})

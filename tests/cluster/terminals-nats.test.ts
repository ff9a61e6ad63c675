// Terminals of a browser and the files beside them on three nodes: the ticket is made on one, used on
// another, and the device's tunnel is on a third. Nothing of it is sticky.
import { readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { FileNews } from '@hawser/contract/terminals'
import { dialWebSocket } from '@hawser/mux'
import { makePerson } from '../../agent/test/person.ts'
import { dial, refusal, type Dialled } from '../clients/web.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { eventually } from '../harness/eventually.ts'
import type { Service } from '../harness/service.ts'
import { startCluster, type Cluster } from './cluster.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const opened = new AsyncDisposableStack()
let cluster: Cluster
let agent: Agent
let user: { name: string; password: string; home: string }
const node = (at: number): Service => cluster.nodes[at]!
const api = async (at: number, who: Parameters<Cluster['world']['token']>[0] = 'observer') =>
  node(at).api({ token: await cluster.world.token(who) })
beforeAll(async () => {
  cluster = opened.use(await startCluster(3))
  const person = process.getuid?.() === 0 ? opened.use(await makePerson()) : undefined
  user = person ?? { name: os.userInfo().username, password: 'pilot', home: os.homedir() }
  const owner = await api(0, 'owner')
  const accept = (uid: string) => owner.devices.accept({ params: { uid } })
  agent = opened.use(await startAgent({ url: node(2).url, tenant_id: sample.tenant, accept }))
})
afterAll(() => opened.disposeAsync())

const ticketOn = async (at: number): Promise<string> =>
  (
    await (
      await api(at)
    ).terminals.open({ body: { device: agent.uid, username: user.name, password: user.password } })
  ).body.token

async function terminal(made: number, used: number): Promise<[Dialled, string]> {
  const token = await ticketOn(made)
  const shell = await dial(node(used), token, { cols: 91, rows: 31 })
  return [shell, await shell.hear('session')]
}

test('a terminal whose ticket was made on another node works, and is closed and noted as any other', async () => {
  await eventually(() => expect(cluster.nodes.map(({ reach }) => reach.tunnels.size)).toEqual([0, 0, 1]))
  const [one, uid] = await terminal(0, 1)
  using shell = one
  shell.type('stty size; echo "over $((40+2))"\r')
  await shell.until(/31 91[^]*over 42/)
  expect((await (await api(2)).sessions.get({ params: { uid } })).body).toMatchObject({
    active: true,
    ip_address: '127.0.0.1',
  })
  await (await api(1, 'owner')).sessions.close({ params: { uid }, body: { device: agent.uid } })
  expect(await shell.hear('end')).toBe('The session was closed by an administrator.')
  await eventually(async () =>
    expect((await (await api(1)).sessions.get({ params: { uid } })).body.active).toBe(false),
  )
})

test('a ticket is good once, on whichever node', async () => {
  const token = await ticketOn(0)
  using shell = await dial(node(1), token)
  await shell.hear('session')
  expect(await refusal(node(0), token)).toBe(401)
  expect(await refusal(node(2), token)).toBe(401)
})

test('files beside a terminal go through any node', async () => {
  const [one, session] = await terminal(0, 1)
  using shell = one
  void shell
  // The terminal lives on the node that gave its ticket; the panel asks one node for a ticket and comes to
  // another.
  const { token } = (await (await api(1)).terminals.files({ body: { session } })).body
  const line = await dialWebSocket(`${node(2).url.replace('http', 'ws')}/ws/ssh?token=${token}`, {
    headers: { origin: node(2).url },
  })
  const news: FileNews[] = []
  const got: Buffer[] = []
  line.on(
    'message',
    (data, binary) =>
      void (binary
        ? got.push(data as Buffer)
        : news.push(JSON.parse((data as Buffer).toString()) as FileNews)),
  )
  line.resume()
  const heard = (kind: FileNews['kind']) =>
    eventually(() => expect(news.map((one_) => one_.kind)).toContain(kind))
  const target = path.join(user.home, 'manifest.txt')
  line.send(JSON.stringify({ kind: 'put', path: target, size: 5, replace: true }))
  await heard('ready')
  line.send(Buffer.from('cargo'))
  await heard('done')
  expect(readFileSync(target, 'utf8')).toBe('cargo')
  line.send(JSON.stringify({ kind: 'get', path: target }))
  await heard('end')
  expect(Buffer.concat(got).toString()).toBe('cargo')
  line.terminate()
  rmSync(target)
  // Somebody else gets no ticket for them, whichever node is asked.
  for (const at of [0, 2])
    await expect((await api(at, 'owner')).terminals.files({ body: { session } })).rejects.toThrow(
      'You have no such terminal open.',
    )
})

test('a terminal that is lost on one node is continued by way of the others', async () => {
  const [lost, uid] = await terminal(0, 1)
  lost.type('PS1="> "; stty -echo; VALUE=kept; echo rea""dy\r')
  await lost.until('ready\r\n')
  lost[Symbol.dispose]()
  await eventually(async () =>
    expect((await (await api(0)).sessions.get({ params: { uid } })).body.held).toBe(true),
  )
  const { body } = await (await api(1)).terminals.attach({ body: { session: uid } })
  using back = await dial(node(2), body.token)
  await back.until(/ready\r\n>/)
  back.type('echo "value $VALUE"; exit\r')
  await back.until('value kept\r\n')
  expect(await back.closed).toBe(1000)
})

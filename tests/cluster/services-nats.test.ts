// Services on three nodes: the code comes from one, is used on another, and the device's tunnel is on a
// third. What is changed on one node ends what is open on all.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { startAgent, type Agent } from '../harness/agent.ts'
import { eventually } from '../harness/eventually.ts'
import { hostOf, navigating, newBrowser, servicesDomain, startProgram } from '../harness/services.ts'
import type { Service } from '../harness/service.ts'
import { startCluster, type Cluster } from './cluster.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const opened = new AsyncDisposableStack()
let cluster: Cluster
let agent: Agent
const node = (at: number): Service => cluster.nodes[at]!
const api = async (at: number, who: Parameters<Cluster['world']['token']>[0] = 'owner'): Promise<Client> =>
  node(at).api({ token: await cluster.world.token(who) })

beforeAll(async () => {
  cluster = opened.use(await startCluster(3, { env: { HAWSER_SERVICES_DOMAIN: servicesDomain } }))
  const owner = await api(0)
  const accept = (uid: string) => owner.devices.accept({ params: { uid } })
  agent = opened.use(await startAgent({ url: node(2).url, tenant_id: sample.tenant, accept }))
})
afterAll(() => opened.disposeAsync())

async function serve(port: number, audience: 'members' | 'public') {
  const { body } = await (
    await api(0)
  ).services.create({ body: { device_uid: agent.uid, name: 'page', port, audience } })
  return { ...body, host: hostOf(body.address) }
}

test('a service is opened through any node', async () => {
  await using program = await startProgram((_, response) => response.end('hello'))
  const service = await serve(program.port, 'members')
  const first = newBrowser(node(0).url)
  const sent = await first.ask(service.host, { headers: navigating })
  const state = new URL(sent.headers.location ?? '').searchParams.get('state') ?? ''
  const { url } = (
    await (await api(1, 'operator')).services.open({ body: { address: service.address, state } })
  ).body
  const { pathname, search } = new URL(url)
  const back = { path: `${pathname}${search}`, headers: navigating }
  const second = newBrowser(node(1).url)
  second.cookies.set(service.host, first.cookies.get(service.host)!)
  expect((await second.ask(service.host, back)).status).toBe(302)
  // The same code is spent on every node.
  const third = newBrowser(node(2).url)
  third.cookies.set(service.host, new Map([['hawser-state', state]]))
  expect((await third.ask(service.host, back)).status).toBe(400)
  for (const at of [0, 1, 2]) {
    const browser = newBrowser(node(at).url)
    browser.cookies.set(service.host, second.cookies.get(service.host)!)
    expect(await browser.ask(service.host)).toMatchObject({ status: 200, text: 'hello' })
  }
})

test('why a device cannot be reached is the same on every node', async () => {
  const program = await startProgram((_, response) => response.end())
  const { port } = program
  await program[Symbol.asyncDispose]()
  const { host } = await serve(port, 'public')
  for (const at of [0, 2]) {
    const { status, text } = await newBrowser(node(at).url).ask(host)
    expect([status, text]).toEqual([502, expect.stringContaining('Nothing on the device listens')])
  }
  const { ports } = (await (await api(0)).services.scan({ params: { uid: agent.uid } })).body
  expect(ports.length).toBeGreaterThan(0)
})

test('a change on one node ends what another has open', async () => {
  const closed = Promise.withResolvers<void>()
  await using program = await startProgram((request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: first\n\n')
    request.socket.once('close', () => closed.resolve())
  })
  const service = await serve(program.port, 'public')
  const asked = newBrowser(node(1).url)
    .ask(service.host)
    .catch(() => undefined)
  const owner = await api(2)
  await eventually(async () => {
    const live = (await owner.sessions.list({ query: { active: 'true' } as never })).body
    expect(live.some(({ web }) => web?.service === service.id)).toBe(true)
  })
  await owner.services.update({ params: { id: service.id }, body: { audience: 'members' } })
  await closed.promise
  await asked
})

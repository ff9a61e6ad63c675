// The recovery of a cluster after a loss: a node, the database, NATS, or
// all nodes at once. A part of bench/cluster.ts. The agents are real ones in one process that wait as ours do
// (bench/tunnel-load.ts).
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from '@hawser/contract/client'
import type { Nats } from '../tests/harness/nats.ts'
import type { Postgres } from '../tests/harness/postgres.ts'
import { below, median, single, type Row } from './kit.ts'
import { clientArgs, runClient, type Destination } from './openssh.ts'
import { ask, startProcess, type Program } from './programs.ts'
import type { Count, Outages, TunnelOrder } from './tunnel-load.ts'

export interface BenchNode {
  readonly port: number
  readonly ssh: number
  program: Program
  /** On the same folder and ports. */
  start(): Promise<void>
}

export interface LossParts {
  readonly folder: string
  readonly nodes: readonly BenchNode[]
  readonly api: Client
  readonly postgres: Postgres
  readonly nats: Nats
  /** The device of an agent of its own, through the node with this port. */
  to(port: number): Destination
  say(text: string): void
}

const patience_ms = 240_000

async function until(isSo: () => Promise<boolean>, pause_ms = 50): Promise<void> {
  for (const began = performance.now(); !(await isSo().catch(() => false)); await wait(pause_ms))
    if (performance.now() - began > patience_ms) throw new Error('it did not come back in time')
}

const statusOf = (port: number): Promise<number> =>
  fetch(`http://127.0.0.1:${port}/healthcheck`).then(
    async (answer) => (await answer.arrayBuffer(), answer.status),
    () => 0,
  )

async function kill(node: BenchNode): Promise<void> {
  const { child } = node.program
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await gone
}

/** Agents that have enrolled, without a tunnel yet. */
async function agentsOf(folder: string, port: number, count: number) {
  const keyFile = path.join(folder, `agents-${count}.key`)
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 })
  const load = startProcess(
    [process.execPath, '--max-old-space-size=8192', 'bench/tunnel-load.ts'],
    {},
    { ipc: true },
  )
  const tell = <T>(order: TunnelOrder): Promise<T> => ask<T>(load, order)
  await tell({ do: 'enrol', port, keyFile, count })
  return { tell, cpu_s: load.cpu_s, [Symbol.asyncDispose]: () => load[Symbol.asyncDispose]() }
}

export async function lostNode({ folder, nodes, api, to, say }: LossParts, count: number): Promise<Row[]> {
  say(`killing one of ${nodes.length} nodes that have ${count} agents`)
  await using agents = await agentsOf(folder, nodes[0]!.port, count)
  await agents.tell({ do: 'hold', port: nodes.map(({ port }) => port), count, asOurs: true })
  const doomed = nodes.at(-1)!
  const session = startProcess(['ssh', ...clientArgs(to(doomed.ssh)), 'echo here; sleep 1000'])
  await session.printed(/(here)/)
  const [record] = (await api.sessions.list()).body.filter(({ active }) => active)
  await agents.tell<Outages>({ do: 'outages' })
  const began = performance.now()
  await kill(doomed)
  await until(async () => !(await api.sessions.get({ params: { uid: record!.uid } })).body.active)
  const closed_s = (performance.now() - began) / 1000
  await until(async () => (await agents.tell<Count>({ do: 'count' })).up >= count)
  const { outages } = await agents.tell<Outages>({ do: 'outages' })
  await session[Symbol.asyncDispose]()
  await doomed.start()
  const most_s = Math.max(...outages) / 1000
  return [
    single(
      `a node killed: its ${outages.length} agents are back on others, median`,
      's',
      median(outages) / 1000,
    ),
    single('a node killed: the last of them', 's', most_s, below(15, most_s, 's')),
    single('a node killed: its session is closed in the records', 's', closed_s),
  ]
}

export async function lostDatabase({ nodes, postgres, say }: LossParts): Promise<Row[]> {
  say('restarting the database')
  const down = performance.now()
  await postgres.down()
  await until(async () => (await statusOf(nodes[0]!.port)) === 503)
  const refused_s = (performance.now() - down) / 1000
  await postgres.up()
  const up = performance.now()
  await until(async () =>
    (await Promise.all(nodes.map(({ port }) => statusOf(port)))).every((status) => status === 200),
  )
  return [
    single('the database stopped: calls get 503 with Retry-After', 's', refused_s),
    single('the database is back: all nodes serve', 's', (performance.now() - up) / 1000),
  ]
}

export async function lostNats({ nodes, nats, to, say }: LossParts): Promise<Row[]> {
  say('restarting NATS')
  await nats.stop()
  await until(async () => (await statusOf(nodes[0]!.port)) === 503)
  await nats.start()
  const up = performance.now()
  await until(async () =>
    (await Promise.all(nodes.map(({ port }) => statusOf(port)))).every((status) => status === 200),
  )
  const heard_s = (performance.now() - up) / 1000
  await until(async () => (await runClient([...clientArgs(to(nodes[1]!.ssh)), 'true'])) > 0)
  return [
    single('NATS is back: all nodes hear each other', 's', heard_s),
    single(
      'NATS is back: a device is reached through another node, that login included',
      's',
      (performance.now() - up) / 1000,
    ),
  ]
}

/** All nodes are killed at once and started again, and all agents come back. */
export async function fullRestart(
  { folder, nodes, say }: LossParts,
  count: number,
  rate: number,
): Promise<Row[]> {
  say(`enrolling ${count} agents`)
  await using agents = await agentsOf(folder, nodes[0]!.port, count)
  say(`opening ${count} tunnels`)
  await agents.tell({ do: 'hold', port: nodes.map(({ port }) => port), count, asOurs: true })
  const before = await agents.tell<Count>({ do: 'count' })
  say(`killing all ${nodes.length} nodes and starting them again`)
  const began = performance.now()
  const seconds = (): number => (performance.now() - began) / 1000
  await Promise.all(nodes.map(kill))
  await Promise.all(nodes.map((node) => node.start()))
  const healthy_s = seconds()
  const used_s = (): [number, number] => [
    nodes.reduce((sum, { program }) => sum + program.cpu_s(), 0),
    agents.cpu_s(),
  ]
  const [nodesBefore_s, agentsBefore_s] = used_s()
  const reached = new Map<number, number>()
  let now = await agents.tell<Count>({ do: 'count' })
  await until(async () => {
    now = await agents.tell<Count>({ do: 'count' })
    for (const percent of [50, 90, 99, 100])
      if (now.up >= (count * percent) / 100 && !reached.has(percent)) reached.set(percent, seconds())
    return now.up >= count
  }, 250)
  const [nodesAfter_s, agentsAfter_s] = used_s()
  const what = `all of ${nodes.length} nodes killed, ${rate} a second each`
  return [
    single(`${what}: all nodes serve again after`, 's', healthy_s),
    ...[...reached].map(([percent, after_s]) =>
      single(
        `${what}: ${percent} % of ${count.toLocaleString('en')} agents back after`,
        's',
        after_s,
        percent === 100 && count >= 10_000 ? below(60, after_s, 's') : undefined,
      ),
    ),
    single(`${what}: refusals an agent`, '', (now.refusals - before.refusals) / count),
    single(`${what}: processor of the nodes an agent`, 'ms', ((nodesAfter_s - nodesBefore_s) * 1000) / count),
    single(
      `${what}: processor of the agents themselves`,
      'ms',
      ((agentsAfter_s - agentsBefore_s) * 1000) / count,
    ),
  ]
}

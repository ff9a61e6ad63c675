// A cluster for bench/cluster.ts: nodes on a real PostgreSQL and a real NATS server, and agents of their own,
// all of them processes on this machine.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { client } from '@hawser/contract/client'
import type { Architecture } from '../packages/registry.ts'
import { writeAgent } from '../packages/tarball.ts'
import { startNats } from '../tests/harness/nats.ts'
import { startPostgres } from '../tests/harness/postgres.ts'
import { owner, tenant_id } from './fleet.ts'
import type { BenchNode, LossParts } from './cluster-losses.ts'
import { makeKey, plainLogin, user, type Destination } from './openssh.ts'
import { freePort, root, startHawser, startProcess, type Program, type Running } from './programs.ts'

/** The link that carries streams from node to node. */
export type Link = 'tls' | 'unix'

export interface WorldOptions {
  /** Agents a second that each node admits. */
  readonly rate: number
  readonly count: number
  readonly link: Link
  /** Whether all nodes listen on the same two ports. */
  readonly onePort?: boolean
}

export interface World extends LossParts, AsyncDisposable {
  readonly nodes: readonly MeasuredNode[]
  plant(name: string): Promise<Running>
  /** The device of this name, through the node with this port. */
  device(name: string, port: number): Destination
}

export interface MeasuredNode extends BenchNode {
  /** The address of its metrics, also when it shares its other ports. */
  readonly metrics: string
}

const nodeNames = ['first', 'second', 'third']
const longest_start_ms = 120_000
const say = (text: string): void => void process.stderr.write(`${text}\n`)

export async function openWorld({ rate, count, link, onePort = false }: WorldOptions): Promise<World> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  await using opened = new AsyncDisposableStack()
  const postgres = opened.use(await startPostgres())
  const nats = opened.use(await startNats())
  const shared = {
    HAWSER_DATABASE: await postgres.url('bench'),
    HAWSER_NATS: nats.url,
    HAWSER_SECRET: randomBytes(32).toString('hex'),
    HAWSER_TRUSTED_PROXIES: 'none',
    HAWSER_SSH_PER_SOURCE: '100000',
    HAWSER_SSH_RATE_LIMIT: '0/10',
    HAWSER_TUNNEL_RATE_LIMIT: `${rate}/1`,
    HAWSER_DRAIN: '1',
    HAWSER_REUSE_PORT: onePort ? 'on' : 'off',
  }
  const common = { ssh: await freePort(), port: await freePort() }
  const node = async (name: string): Promise<MeasuredNode> => {
    const { ssh, port } = onePort ? common : { ssh: await freePort(), port: await freePort() }
    const metrics = `127.0.0.1:${await freePort()}`
    const env = {
      ...shared,
      HAWSER_NODE_ADDRESS:
        link === 'unix' ? `unix:${path.join(folder, `${name}.sock`)}` : `127.0.0.1:${await freePort()}`,
      HAWSER_SSH: `127.0.0.1:${ssh}`,
      HAWSER_METRICS: metrics,
    }
    const start = (): Promise<Program> => startHawser(path.join(folder, name), { port, env })
    const one: MeasuredNode = {
      ssh,
      port,
      metrics: `http://${metrics}/metrics`,
      program: await start(),
      start: async () => void (one.program = await start()),
    }
    opened.defer(() => one.program[Symbol.asyncDispose]())
    // On a shared port another node may have answered. This one serves its metrics when it listens
    // everywhere.
    await until(async () => (await fetch(one.metrics)).ok)
    return one
  }
  const nodes: MeasuredNode[] = []
  for (const name of nodeNames.slice(0, count)) nodes.push(await node(name))
  const admin = (...args: string[]) =>
    promisify(execFile)(process.execPath, ['hawser.ts', 'admin', ...args], {
      cwd: root,
      env: {
        PATH: process.env['PATH'],
        ...shared,
        HAWSER_NODE_ADDRESS: '127.0.0.1:0',
        HAWSER_DATA: path.join(folder, 'first'),
      },
    })
  await admin('user', 'create', owner.username, owner.password, 'olga@example.com')
  await admin('namespace', 'create', 'harbour', owner.username, tenant_id)
  const url = `http://127.0.0.1:${nodes[0]!.port}`
  const { body } = await client({ url }).users.login({
    body: { username: owner.username, password: owner.password },
  })
  const api = client({ url, token: body.token })
  const keys = makeKey(folder, 'client_key')
  await api.publicKeys.create({
    body: {
      data: Buffer.from(keys.line).toString('base64'),
      name: 'bench',
      username: '.*',
      filter: { hostname: '.*' },
    },
  })
  const main = await writeAgent(path.join(folder, 'agent'), process.arch as Architecture)
  const before = plainLogin(folder)
  const agents = opened.use(new AsyncDisposableStack())
  async function plant(name: string): Promise<Running> {
    const agent = agents.use(
      startProcess([...before, process.execPath, main], {
        HAWSER_SERVER_ADDRESS: url,
        HAWSER_TENANT_ID: tenant_id,
        HAWSER_PRIVATE_KEY: path.join(folder, `${name}.key`),
        HAWSER_PREFERRED_HOSTNAME: name,
        HAWSER_PREFERRED_IDENTITY: name,
        ...(process.getuid?.() === 0
          ? {}
          : { HAWSER_SINGLE_USER_PASSWORD: '$6$bench$no-password-fits-this' }),
      }),
    )
    await api.devices.accept({ params: { uid: await agent.printed(/"tunnel\.up","uid":"([0-9a-f]+)"/) } })
    return agent
  }
  const device = (name: string, port: number): Destination => ({
    port,
    user: `${user}@harbour.${name}`,
    keys,
  })
  if (!onePort) await plant('gantry')
  const whole = opened.move()
  return {
    folder,
    nodes,
    api,
    postgres,
    nats,
    plant,
    device,
    to: (port) => device('gantry', port),
    say,
    [Symbol.asyncDispose]: () => whole.disposeAsync(),
  }
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const began = performance.now(); !(await isSo().catch(() => false)); await wait(50))
    if (performance.now() - began > longest_start_ms) throw new Error('a node did not start in time')
}

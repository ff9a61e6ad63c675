// What several nodes cost and bear: a session through the node that has the device's tunnel, against one
// through another node. Three nodes on a real PostgreSQL and a real NATS server, all on this machine, which
// has to serve all of them. Also: how many devices a second are looked up on NATS, how many heartbeats a
// second PostgreSQL's node takes, how long it takes until all is back when something was lost
// (bench/cluster-losses.ts), and a simulation of 100,000 agents (bench/simulation.ts).
//   npm run bench -- cluster setup transfer directory heartbeats losses return simulation     parts, all unless stated
//   npm run bench -- cluster size=64 rounds=3 setups=20 agents=10000 rate=200     MiB, turns, logins, agents, tunnels a second and node
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { client } from '@hawser/contract/client'
import type { Architecture } from '../packages/registry.ts'
import { writeAgent } from '../packages/tarball.ts'
import { natsBus } from '../server/src/bus/nats.ts'
import { startNats } from '../tests/harness/nats.ts'
import { startPostgres } from '../tests/harness/postgres.ts'
import { authBody, owner, tenant_id } from './fleet.ts'
import {
  fullRestart,
  lostDatabase,
  lostNats,
  lostNode,
  type BenchNode,
  type LossParts,
} from './cluster-losses.ts'
import { atLeast, compare, inTurns, line, measure, single, table, type Row } from './kit.ts'
import {
  clientArgs,
  makeKey,
  openMaster,
  plainLogin,
  runClient,
  user,
  zeros,
  type Destination,
  type Master,
} from './openssh.ts'
import { freePort, root, startHawser, startProcess, type Program } from './programs.ts'
import { simulate, type Simulated } from './simulation.ts'

const mib = 1024 * 1024
const cipher = 'aes128-gcm@openssh.com'
const say = (text: string): void => void process.stderr.write(`${text}\n`)

const parts = ['setup', 'transfer', 'directory', 'heartbeats', 'losses', 'return', 'simulation'] as const
type Part = (typeof parts)[number]

export default async function cluster(...words: string[]): Promise<void> {
  const number = (name: string, usual: number): number =>
    Math.max(1, Number(words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)) || usual)
  const wanted = parts.filter((part) => words.includes(part))
  const wants = (part: Part): boolean => wanted.length === 0 || wanted.includes(part)
  const rate = number('rate', 200)
  const rows: Row[] = []
  if (parts.some((part) => part !== 'simulation' && wants(part))) {
    await using world = await openWorld(rate)
    const [first, second] = world.nodes
    if (wants('setup'))
      rows.push(...(await setups(world.to(second!.ssh), world.to(first!.ssh), number('setups', 30))))
    if (wants('transfer')) {
      const [size, rounds] = [number('size', 128), number('rounds', 3)]
      rows.push(...(await transfers(world.folder, world.to(second!.ssh), world.to(first!.ssh), size, rounds)))
    }
    if (wants('directory')) rows.push(await lookUps(world.nats.url))
    if (wants('heartbeats')) rows.push(await heartbeats(`http://127.0.0.1:${first!.port}`))
    if (wants('losses')) {
      rows.push(...(await lostNats(world)))
      rows.push(...(await lostDatabase(world)))
      rows.push(...(await lostNode(world, number('some', 600))))
    }
    if (wants('return')) rows.push(...(await fullRestart(world, number('agents', 10_000), rate)))
  }
  if (wants('simulation')) {
    rows.push(...(await simulated({ agents: 10_000, nodes: 3, rate, lost: 3, down_s: 5 })))
    rows.push(...(await simulated({ agents: 100_000, nodes: 3, rate, lost: 3, down_s: 5 })))
    rows.push(...(await simulated({ agents: 100_000, nodes: 6, rate: 500, lost: 6, down_s: 5 })))
    rows.push(...(await simulated({ agents: 100_000, nodes: 6, rate: 500, lost: 1, down_s: 600 })))
  }
  table(rows)
}

interface World extends LossParts, AsyncDisposable {}

async function openWorld(rate: number): Promise<World> {
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
  }
  const node = async (name: string): Promise<BenchNode> => {
    const [ssh, port] = [await freePort(), await freePort()]
    const env = {
      ...shared,
      HAWSER_NODE_ADDRESS: `127.0.0.1:${await freePort()}`,
      HAWSER_SSH: `127.0.0.1:${ssh}`,
    }
    const start = (): Promise<Program> => startHawser(path.join(folder, name), { port, env })
    const one: BenchNode = {
      ssh,
      port,
      program: await start(),
      start: async () => void (one.program = await start()),
    }
    opened.defer(() => one.program[Symbol.asyncDispose]())
    return one
  }
  const nodes = [await node('first'), await node('second'), await node('third')]
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
  const agent = opened.use(
    startProcess([...plainLogin(folder), process.execPath, main], {
      HAWSER_SERVER_ADDRESS: url,
      HAWSER_TENANT_ID: tenant_id,
      HAWSER_PRIVATE_KEY: path.join(folder, 'device.key'),
      HAWSER_PREFERRED_HOSTNAME: 'gantry',
      HAWSER_PREFERRED_IDENTITY: 'gantry',
      ...(process.getuid?.() === 0 ? {} : { HAWSER_SINGLE_USER_PASSWORD: '$6$bench$no-password-fits-this' }),
    }),
  )
  await api.devices.accept({ params: { uid: await agent.printed(/"tunnel\.up","uid":"([0-9a-f]+)"/) } })
  const to = (port: number): Destination => ({ port, user: `${user}@harbour.gantry`, keys })
  const whole = opened.move()
  return { folder, nodes, api, postgres, nats, to, say, [Symbol.asyncDispose]: () => whole.disposeAsync() }
}

async function simulated(options: Simulated): Promise<Row[]> {
  const { agents, nodes, rate, lost } = options
  const what = `simulated: ${agents.toLocaleString('en')} agents, ${lost} of ${nodes} nodes lost, ${rate} a second each`
  say(what)
  const { back_s, refusals, peakAdmitted, peakAsked, directory, heartbeats: beats } = await simulate(options)
  return [
    ...[...back_s].map(([percent, after_s]) => single(`${what}: ${percent} % back after`, 's', after_s)),
    single('  refusals an agent, mean', '', refusals.mean),
    single('  refusals of the unluckiest', '', refusals.most),
    single('  most let in by a node within a second', '/s', peakAdmitted, {
      text: `≤ ${rate}`,
      met: peakAdmitted <= rate,
    }),
    single('  most that came to a node within a second', '/s', peakAsked),
    single('  messages about who has what, the most within a second', '/s', directory.peak),
    single('  heartbeats when all are back', '/s', beats.mean),
  ]
}

async function setups(across: Destination, here: Destination, count: number): Promise<Row[]> {
  say(`logging in ${count} times`)
  const login = (where: Destination) => () => runClient([...clientArgs(where), 'true'])
  const sides = { across: login(across), here: login(here) }
  await inTurns(sides, 5)
  const figures = await inTurns(sides, count)
  return [line('set-up through another node, median', 'ms', compare(figures.across, figures.here))]
}

async function transfers(
  folder: string,
  across: Destination,
  here: Destination,
  size: number,
  rounds: number,
): Promise<Row[]> {
  const rows: Row[] = []
  await using one = await openMaster(folder, across, cipher)
  await using other = await openMaster(folder, here, cipher)
  for (const way of ['download', 'upload'] as const) {
    say(`transferring ${size} MiB: ${way}`)
    const run = async (over: Master, mibs: number): Promise<number> => {
      const took_ms = await (way === 'download'
        ? over.run(`head -c ${mibs * mib} /dev/zero`)
        : over.run('cat > /dev/null', zeros(folder, mibs * mib)))
      return mibs / (took_ms / 1000)
    }
    for (const over of [one, other]) await run(over, Math.ceil(size / 4))
    const figures = await inTurns({ across: () => run(one, size), here: () => run(other, size) }, rounds)
    const compared = compare(figures.across, figures.here)
    rows.push(line(`${way} through another node`, 'MiB/s', compared, atLeast(0.7, compared.ratio)))
  }
  return rows
}

/** Of 10,000 devices, each asked for by the name that its node holds. */
async function lookUps(servers: string): Promise<Row> {
  const devices = 10_000
  say(`looking up ${devices} devices`)
  const bus = (name: string) =>
    natsBus({ servers, prefix: 'bench', name, masterKey: Buffer.alloc(32), onEvent: () => undefined })
  await using holder = await bus('holder')
  await using seeker = await bus('seeker')
  for (let at = 0; at < devices; at += 1) holder.hold(`device.${at}`, () => 'here')
  await holder.seek('nobody')
  let at = 0
  const { perSecond } = await measure(() => seeker.seek(`device.${at++ % devices}`), {
    seconds: 3,
    concurrency: 64,
  })
  return single('look-ups of devices on NATS', '/s', perSecond)
}

async function heartbeats(url: string): Promise<Row> {
  say('sending heartbeats')
  const devices = 200
  const beat = async (at: number): Promise<void> => {
    const answer = await fetch(`${url}/api/devices/auth`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...authBody(at), tenant_id }),
    })
    if (!answer.ok) throw new Error(`a heartbeat was answered with ${answer.status}: ${await answer.text()}`)
    await answer.arrayBuffer()
  }
  for (let at = 0; at < devices; at += 1) await beat(at)
  let at = 0
  const { perSecond } = await measure(() => beat(at++ % devices), { seconds: 3, concurrency: 32 })
  return single('heartbeats of known devices, this client included', '/s', perSecond)
}

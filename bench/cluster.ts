// The costs and limits of several nodes: a session through the node that has the device's tunnel, against one
// through another node. Three nodes on a real PostgreSQL and a real NATS server, all on this machine, which
// has to serve all of them. Also: how many devices a second are looked up on NATS, how many heartbeats a
// second PostgreSQL's node takes, how long it takes until all is back when something was lost
// (bench/cluster-losses.ts), a simulation of 100,000 agents (bench/simulation.ts), and what one and two nodes
// on one port give together (bench/cluster-cores.ts).
//   npm run bench -- cluster setup transfer cores directory heartbeats losses return simulation     parts, all unless stated
//   npm run bench -- cluster size=64 rounds=3 setups=20 agents=10000 rate=200     MiB, turns, logins, agents, tunnels a second and node
import { natsBus } from '../server/src/bus/nats.ts'
import { cores } from './cluster-cores.ts'
import { fullRestart, lostDatabase, lostNats, lostNode } from './cluster-losses.ts'
import { openWorld, type Link, type World } from './cluster-world.ts'
import { authBody, tenant_id } from './fleet.ts'
import { atLeast, compare, inTurns, line, measure, single, table, type Row } from './kit.ts'
import { clientArgs, openMaster, runClient, zeros, type Destination, type Master } from './openssh.ts'
import { simulate, type Simulated } from './simulation.ts'

const mib = 1024 * 1024
const cipher = 'aes128-gcm@openssh.com'
const links: Readonly<Record<Link, string>> = { tls: 'TLS', unix: 'Unix socket' }
const say = (text: string): void => void process.stderr.write(`${text}\n`)

const parts = [
  'setup',
  'transfer',
  'cores',
  'directory',
  'heartbeats',
  'losses',
  'return',
  'simulation',
] as const
type Part = (typeof parts)[number]

export default async function cluster(...words: string[]): Promise<void> {
  const number = (name: string, usual: number): number =>
    Math.max(1, Number(words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)) || usual)
  const wanted = parts.filter((part) => words.includes(part))
  const wants = (part: Part): boolean => wanted.length === 0 || wanted.includes(part)
  const rate = number('rate', 200)
  const rows: Row[] = []
  const [size, rounds] = [number('size', 128), number('rounds', 3)]
  if (wants('transfer')) {
    await using world = await openWorld({ rate, count: 2, link: 'unix' })
    rows.push(...(await transfers(world, 'unix', size, rounds)))
  }
  if (wants('cores')) rows.push(...(await cores({ rate, size, rounds, devices: number('devices', 4) })))
  if (parts.some((part) => part !== 'simulation' && part !== 'cores' && wants(part))) {
    await using world = await openWorld({ rate, count: 3, link: 'tls' })
    const [first, second] = world.nodes
    if (wants('setup'))
      rows.push(...(await setups(world.to(second!.ssh), world.to(first!.ssh), number('setups', 30))))
    if (wants('transfer')) rows.push(...(await transfers(world, 'tls', size, rounds)))
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

/**
 * Throughput through another node and through the one with the tunnel, and the processor time of all nodes
 * for a MiB, which does not depend on other work of the machine.
 */
async function transfers(
  { folder, nodes, to }: World,
  link: Link,
  size: number,
  rounds: number,
): Promise<Row[]> {
  const [first, second] = nodes
  const rows: Row[] = []
  await using one = await openMaster(folder, to(second!.ssh), cipher)
  await using other = await openMaster(folder, to(first!.ssh), cipher)
  const cpu_ms = (): number => nodes.reduce((sum, { program }) => sum + program.cpu_s(), 0) * 1000
  for (const way of ['download', 'upload'] as const) {
    say(`transferring ${size} MiB: ${way}, ${links[link]}`)
    const spent: Record<'across' | 'here', number[]> = { across: [], here: [] }
    const run = async (over: Master, mibs: number): Promise<number> => {
      const took_ms = await (way === 'download'
        ? over.run(`head -c ${mibs * mib} /dev/zero`)
        : over.run('cat > /dev/null', zeros(folder, mibs * mib)))
      return mibs / (took_ms / 1000)
    }
    const measured = (side: 'across' | 'here', over: Master) => async () => {
      const before_ms = cpu_ms()
      const perSecond = await run(over, size)
      spent[side].push((cpu_ms() - before_ms) / size)
      return perSecond
    }
    for (const over of [one, other]) await run(over, Math.ceil(size / 4))
    const figures = await inTurns({ across: measured('across', one), here: measured('here', other) }, rounds)
    const compared = compare(figures.across, figures.here)
    rows.push(
      line(`${way} through another node, ${links[link]}`, 'MiB/s', compared, atLeast(0.8, compared.ratio)),
    )
    rows.push(line('  processor time of all nodes', 'ms/MiB', compare(spent.across, spent.here)))
  }
  return rows
}

/** Looks up 10,000 devices, each by the name that its node holds. */
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

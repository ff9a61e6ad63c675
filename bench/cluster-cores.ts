// One and two nodes on one machine, behind one port: downloads from several devices at
// once, and logins with several clients at once. A part of bench/cluster.ts. With two nodes half of the
// devices have their tunnel on either, and the kernel spreads the clients, so that about half of the bytes
// cross from node to node. On a machine of two cores, which agents and clients need as well, the sums cannot
// grow with the second node. What shows is the price of spreading, as processor time of all nodes for a MiB
// and for a login, and with it how much a node gives on a core of its own.
import { setTimeout as wait } from 'node:timers/promises'
import { openWorld, type MeasuredNode, type World } from './cluster-world.ts'
import { compare, inTurns, line, type Measurement, type Row } from './kit.ts'
import { openMaster, type Master } from './openssh.ts'
import { ask, startProcess, type Running } from './programs.ts'
import type { SessionOrder } from './session-load.ts'

export interface CoresOptions {
  /** Agents a second that each node admits. */
  readonly rate: number
  /** MiB of each download. */
  readonly size: number
  readonly rounds: number
  readonly devices: number
}

const mib = 1024 * 1024
const cipher = 'aes128-gcm@openssh.com'
/** Concurrent logins, for each device. */
const clients = 2
const seconds = 3
/** The kernel chooses the node of an agent, so that an even spread takes some tries. */
const mostTries = 100

type Figure = 'throughput' | 'transferCpu' | 'logins' | 'loginCpu'

export async function cores(options: CoresOptions): Promise<Row[]> {
  // One for each process that ends with the bench.
  process.setMaxListeners(50)
  await using one = await openSide(1, options)
  await using two = await openSide(2, options)
  const figures: Record<'one' | 'two', Record<Figure, number[]>> = { one: empty(), two: empty() }
  const side =
    (name: 'one' | 'two', { measure }: Side) =>
    async () => {
      const measured = await measure(options.size)
      for (const [figure, value] of Object.entries(measured)) figures[name][figure as Figure].push(value)
      return measured.throughput
    }
  process.stderr.write(`one node and two: ${options.devices} devices at once\n`)
  for (const { measure } of [one, two]) await measure(Math.ceil(options.size / 4))
  await inTurns({ two: side('two', two), one: side('one', one) }, options.rounds)
  const row = (what: string, unit: string, figure: Figure): Row =>
    line(what, unit, compare(figures.two[figure], figures.one[figure]))
  return [
    row(`two nodes against one: downloads from ${options.devices} devices, sum`, 'MiB/s', 'throughput'),
    row('  processor time of all nodes', 'ms/MiB', 'transferCpu'),
    row(`two nodes against one: logins of ${options.devices * clients} clients, sum`, '/s', 'logins'),
    row('  processor time of all nodes', 'ms', 'loginCpu'),
  ]
}

const empty = (): Record<Figure, number[]> => ({ throughput: [], transferCpu: [], logins: [], loginCpu: [] })

interface Side extends AsyncDisposable {
  measure(size: number): Promise<Record<Figure, number>>
}

async function openSide(count: number, { rate, devices }: CoresOptions): Promise<Side> {
  await using opened = new AsyncDisposableStack()
  const world = opened.use(await openWorld({ rate, count, link: 'unix', onePort: true }))
  const port = world.nodes[0]!.ssh
  const names = Array.from({ length: devices }, (_, at) => `gantry-${at}`)
  for (const [at, name] of names.entries()) await plantOn(world, world.nodes[at % count]!, name)
  const masters: Master[] = []
  for (const name of names)
    masters.push(opened.use(await openMaster(world.folder, world.device(name, port), cipher)))
  const loads: Running[] = names.map(() =>
    opened.use(startProcess([process.execPath, 'bench/session-load.ts'], {}, { ipc: true })),
  )
  const cpu_ms = (): number => world.nodes.reduce((sum, { program }) => sum + program.cpu_s(), 0) * 1000
  const kept = opened.move()
  return {
    async measure(size) {
      const [began, before_ms] = [performance.now(), cpu_ms()]
      await Promise.all(masters.map((master) => master.run(`head -c ${size * mib} /dev/zero`)))
      const moved = size * devices
      const throughput = moved / ((performance.now() - began) / 1000)
      const transferCpu = (cpu_ms() - before_ms) / moved
      const atLogins_ms = cpu_ms()
      const measured = await Promise.all(
        loads.map((load, at) => {
          const { keys, user } = world.device(names[at]!, port)
          const order = { do: 'measure', port, user, keyFile: keys.file, seconds, clients } as const
          return ask<Measurement>(load, order satisfies SessionOrder)
        }),
      )
      const calls = measured.reduce((sum, { calls }) => sum + calls, 0)
      const logins = measured.reduce((sum, { perSecond }) => sum + perSecond, 0)
      return { throughput, transferCpu, logins, loginCpu: (cpu_ms() - atLogins_ms) / calls }
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** Restarts an agent until its tunnel is on this node. */
async function plantOn({ nodes, plant }: World, node: MeasuredNode, name: string): Promise<void> {
  const all = async (): Promise<number> =>
    (await Promise.all(nodes.map(tunnelsOf))).reduce((sum, count) => sum + count, 0)
  const [there, everywhere] = [await tunnelsOf(node), await all()]
  for (let tries = 0; tries < mostTries; tries++) {
    const agent = await plant(name)
    if ((await tunnelsOf(node)) > there) return
    await agent[Symbol.asyncDispose]()
    while ((await all()) > everywhere) await wait(50)
  }
  throw new Error('the kernel gave the node no agent')
}

async function tunnelsOf({ metrics }: MeasuredNode): Promise<number> {
  const text = await (await fetch(metrics)).text()
  return Number(/^hawser_tunnels (\d+)$/m.exec(text)?.[1] ?? Number.NaN)
}

// Any number of agents and nodes in one process, in a time of their own: what happens when nodes go and all
// of their agents come back. What decides is the real code: the agents' waits (agent/src/backoff.ts), the
// servers' admission and its turns, the registry of tunnels with its numbers, and what it says on the bus.
// Connections, cryptography and the database, which take real time, are left out. So the simulation shows how
// the herd moves, not what the machines can bear.
import { backoff, type Backoff } from '../agent/src/backoff.ts'
import type { Bus } from '../server/src/bus/bus.ts'
import { localBus } from '../server/src/bus/local.ts'
import { admission, type Admission } from '../server/src/tunnel/admission.ts'
import { deviceName, registry, type Registry } from '../server/src/tunnel/registry.ts'
import type { Tunnel } from '../server/src/tunnel/tunnel.ts'

export interface Simulated {
  readonly agents: number
  readonly nodes: number
  /** Tunnels that a node admits within a second. */
  readonly rate: number
  readonly lost: number
  readonly down_s: number
  readonly seed?: number
}

export interface Outcome {
  /** Seconds after the loss until a percentage of the lost agents was back. */
  readonly back_s: ReadonlyMap<number, number>
  readonly refusals: { readonly mean: number; readonly most: number }
  /** Admitted by one node within any second. */
  readonly peakAdmitted: number
  /** At one node within a second of the clock, admitted or not. */
  readonly peakAsked: number
  /**
   * Names claimed or released, questions, and news about them, of all nodes: the most within a second of the
   * clock, and in all.
   */
  readonly directory: { readonly peak: number; readonly total: number; readonly seeks: number }
  /** Heartbeats of all agents within a second of the clock, when all are back. */
  readonly heartbeats: { readonly mean: number; readonly peak: number }
  /** Devices that two nodes believe to have in the end. */
  readonly doubles: number
}

const beat_ms = 30_000
const watched_s = 60
const percents = [50, 90, 99, 100]
const longest_s = 3_600

interface Agent {
  readonly uid: string
  readonly pause: Backoff
  refusals: number
  beats: boolean
}

interface Node {
  readonly admission: Admission
  readonly registry: Registry
  readonly admitted: number[]
  readonly asked: Map<number, number>
  up: boolean
}

/** The names that all nodes hold: the view of the NATS server. */
interface Directory {
  readonly names: Map<string, Set<(question: string) => string | undefined | Promise<string | undefined>>>
  readonly perSecond: Map<number, number>
  seeks: number
}

export async function simulate({
  agents: count,
  nodes: nodeCount,
  rate,
  lost,
  down_s,
  seed = 1,
}: Simulated): Promise<Outcome> {
  const random = randomFrom(seed)
  const time = timeline()
  const directory: Directory = { names: new Map(), perSecond: new Map(), seeks: 0 }
  const numbers = new Map<string, number>()
  const buses = sharedBus(nodeCount, directory, time.now)
  const nodes = buses.map((bus, index): Node => {
    const own = registry({
      probe: () => Promise.resolve(true),
      up: () => undefined,
      down: () => Promise.resolve(),
      recognised: () => Promise.resolve(),
      proved: () => Promise.resolve(),
      claim: ({ uid }) => {
        const number = (numbers.get(uid) ?? 0) + 1
        numbers.set(uid, number)
        return Promise.resolve(number)
      },
      isElsewhere: async (uid) => (await bus.seek(deviceName(uid))) !== undefined,
      held({ uid }, number) {
        bus.tell('tunnel.taken', { uid, number })
        return bus.hold(deviceName(uid), (least) => (Number(least) <= number ? String(index) : undefined))
      },
      moved: () => undefined,
      onError: (_, __, error) => {
        throw error
      },
    })
    bus.hear('tunnel.taken', ({ uid, number }) => own.yield(uid, number))
    return {
      admission: admission(time, { max: rate, window_ms: 1_000 }, random),
      registry: own,
      admitted: [],
      asked: new Map(),
      up: true,
    }
  })

  let back = 0
  const back_at: number[] = []
  let leaving = 0
  const beats = new Map<number, number>()

  async function come(agent: Agent): Promise<void> {
    // The balancer knows the live nodes, and sends each agent to any of them.
    const open = nodes.filter(({ up }) => up)
    const node = open[Math.floor(random() * open.length)]
    if (!node) return time.after(agent.pause.next_ms(), () => come(agent))
    add(node.asked, second(time.now()))
    const pause_s = node.admission.enter()
    if (pause_s > 0) {
      agent.refusals += 1
      return time.after(agent.pause.next_ms(pause_s), () => come(agent))
    }
    node.admitted.push(time.now())
    agent.pause.reset()
    await node.registry.offer(tunnelOf(agent, () => time.after(agent.pause.next_ms(), () => come(agent))))
    back += 1
    back_at.push(time.now())
    if (!agent.beats) beat(agent)
  }

  function beat(agent: Agent): void {
    agent.beats = true
    time.after(beat_ms * (0.9 + random() / 5), () => {
      add(beats, second(time.now()))
      beat(agent)
      return Promise.resolve()
    })
  }

  // In operation: every node has its share.
  const agents = Array.from({ length: count }, (_, at): Agent => ({
    uid: String(at),
    pause: backoff(random),
    refusals: 0,
    beats: false,
  }))
  for (const [at, agent] of agents.entries()) {
    const tunnel = tunnelOf(agent, () => time.after(agent.pause.next_ms(), () => come(agent)))
    await nodes[at % nodeCount]!.registry.offer(tunnel)
    time.after(random() * beat_ms, () => Promise.resolve(beat(agent)))
    agent.beats = true
  }
  directory.seeks = 0

  for (const node of nodes.slice(0, lost)) {
    node.up = false
    leaving += node.registry.size
    for (const tunnel of node.registry.all()) tunnel.close('The node was killed.')
    time.after(down_s * 1000, () => Promise.resolve(void (node.up = true)))
  }
  // Lost nodes hold nothing, without any message: their connections to NATS are gone with them.
  await new Promise((resolve) => setImmediate(resolve))
  directory.perSecond.clear()
  await time.run(() => back >= leaving, longest_s * 1000)
  const done_ms = time.now()
  await time.run(() => false, done_ms + watched_s * 1000)

  const admitted = nodes.map((node) => mostWithin(node.admitted, 1_000))
  const late = [...beats]
    .filter(([at]) => at > second(done_ms) && at < second(done_ms) + watched_s)
    .map(([, n]) => n)
  const owned = nodes.flatMap(({ registry: own }) => [...own.all()].map(({ device }) => device.uid))
  return {
    back_s: new Map(
      percents.map((percent) => [
        percent,
        (back_at[Math.ceil((leaving * percent) / 100) - 1] ?? Number.NaN) / 1000,
      ]),
    ),
    refusals: {
      mean: agents.reduce((sum, { refusals }) => sum + refusals, 0) / Math.max(1, leaving),
      most: agents.reduce((most, { refusals }) => Math.max(most, refusals), 0),
    },
    peakAdmitted: Math.max(...admitted),
    peakAsked: Math.max(...nodes.flatMap(({ asked }) => [...asked.values()])),
    directory: {
      peak: Math.max(0, ...directory.perSecond.values()),
      total: [...directory.perSecond.values()].reduce((sum, n) => sum + n, 0),
      seeks: directory.seeks,
    },
    heartbeats: {
      mean: late.reduce((sum, n) => sum + n, 0) / Math.max(1, late.length),
      peak: Math.max(0, ...late),
    },
    doubles: owned.length - new Set(owned).size,
  }
}

/** A tunnel without bytes, of an agent that holds the device's key. */
function tunnelOf({ uid }: Agent, onLost: () => void): Tunnel {
  const ended = Promise.withResolvers<undefined>()
  let over = false
  return {
    device: { uid, tenant_id: '', public_key: '', mustProve: true },
    openSsh: () => Promise.reject(new Error('nobody opens one')),
    prove: () => Promise.resolve(true),
    close() {
      if (over) return
      over = true
      onLost()
      ended.resolve(undefined)
    },
    ended: ended.promise,
  }
}

/** The buses of several nodes in one process, with the message counts of NATS. */
function sharedBus(count: number, directory: Directory, now: () => number): Bus[] {
  const { names, perSecond } = directory
  const said = (): void => add(perSecond, second(now()))
  const all = Array.from({ length: count }, () => localBus())
  return all.map((own): Bus => ({
    ...own,
    tell(what, news) {
      said()
      for (const other of all) other.tell(what, news)
    },
    hold(name, answer) {
      said()
      const holders = names.get(name) ?? new Set()
      names.set(name, holders.add(answer))
      return {
        known: () => Promise.resolve(),
        [Symbol.dispose]() {
          said()
          holders.delete(answer)
          if (holders.size === 0) names.delete(name)
        },
      }
    },
    seek(name, question = '') {
      said()
      directory.seeks += 1
      const [answer] = names.get(name) ?? []
      return Promise.resolve(answer?.(question))
    },
  }))
}

interface Timeline {
  now(): number
  after(ms: number, what: () => Promise<void> | void): void
  run(isDone: () => boolean, until_ms: number): Promise<void>
}

/** Coming events, in order: a heap by the moment. */
function timeline(): Timeline {
  const heap: { at: number; what: () => Promise<void> | void }[] = []
  let now = 0
  const swap = (a: number, b: number): void => void ([heap[a], heap[b]] = [heap[b]!, heap[a]!])
  function up(at: number): void {
    for (
      let parent = (at - 1) >> 1;
      at > 0 && heap[parent]!.at > heap[at]!.at;
      at = parent, parent = (at - 1) >> 1
    )
      swap(at, parent)
  }
  function down(at: number): void {
    for (;;) {
      const [left, right] = [2 * at + 1, 2 * at + 2]
      let least = at
      if (left < heap.length && heap[left]!.at < heap[least]!.at) least = left
      if (right < heap.length && heap[right]!.at < heap[least]!.at) least = right
      if (least === at) return
      swap(at, least)
      at = least
    }
  }
  return {
    now: () => now,
    after(ms, what) {
      heap.push({ at: now + ms, what })
      up(heap.length - 1)
    },
    async run(isDone, until_ms) {
      while (heap.length > 0 && heap[0]!.at <= until_ms && !isDone()) {
        const [next] = heap
        const last = heap.pop()!
        if (heap.length > 0) {
          heap[0] = last
          down(0)
        }
        now = next!.at
        await next!.what()
      }
    },
  }
}

const second = (ms: number): number => Math.floor(ms / 1000)
const add = (counts: Map<number, number>, at: number): void => void counts.set(at, (counts.get(at) ?? 0) + 1)

function mostWithin(moments: readonly number[], window_ms: number): number {
  let [most, first] = [0, 0]
  for (const [index, at] of moments.entries()) {
    while (at - moments[first]! >= window_ms) first += 1
    most = Math.max(most, index - first + 1)
  }
  return most
}

/** The same numbers for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

// A program for bench/ladder.ts: the relay of one rung, or the two ends of rungs, or both. It counts what it
// uses between two orders.
// - Memory on V8's heap: V8 itself counts what it allocates.
// - Memory of buffers, which is outside of the heap: an approximation. It is what collections have freed, by
//   V8's figures before and after each of them, and what is held at the end beyond what was held at the
//   beginning. This needs --single-threaded-gc: helper threads would free buffers later. A buffer that Node
//   made too large for a read and then shortened counts with its final size.
// - Reads and writes: calls on files and sockets, from /proc.
// - Event-loop delay: how late timers are. Where more processes run than there are cores, it has the time in
//   which the system ran another one.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import v8 from 'node:v8'
import { openEnds, type Ends } from './ladder-ends.ts'
import { startLadderRelay, type LadderRelay, type RelayPorts, type Rung } from './ladder-relay.ts'
import { readsAndWritesOf, takeOrders } from './programs.ts'

export type LadderOrder =
  | { readonly do: 'relay'; readonly rung: Rung; readonly folder: string }
  | { readonly do: 'ends'; readonly rung: Rung; readonly ports: RelayPorts }
  | { readonly do: 'move'; readonly rung: Rung; readonly way: 'down' | 'up'; readonly mibs: number }
  | { readonly do: 'begin' | 'count' }

/** Since the order to begin. */
export interface Costs {
  readonly cpu_ms: number
  readonly heap_bytes: number
  readonly external_bytes: number
  readonly reads: number
  readonly writes: number
  readonly delay_p99_ms: number
}

/** Timers of this interval show the delay. */
const resolution_ms = 4

const ends = new Map<Rung, Ends>()
let relay: LadderRelay | undefined
let count: (() => Promise<Costs>) | undefined

function startCounting(): () => Promise<Costs> {
  const collections = new v8.GCProfiler()
  const delay = monitorEventLoopDelay({ resolution: resolution_ms })
  collections.start()
  delay.enable()
  const memory = v8.getHeapStatistics()
  const before = readsAndWritesOf(process.pid)
  const cpu = process.cpuUsage()
  return async () => {
    const delay_p99_ms = Math.max(0, delay.percentile(99) / 1e6 - resolution_ms)
    delay.disable()
    // A recorder writes its last block a moment later.
    while ((relay?.unwritten_bytes() ?? 0) > 0) await wait(5)
    const { user, system } = process.cpuUsage(cpu)
    const after = readsAndWritesOf(process.pid)
    const now = v8.getHeapStatistics()
    const freed_bytes = (collections.stop()?.statistics ?? []).reduce(
      (sum, { beforeGC, afterGC }) =>
        sum + beforeGC.heapStatistics.externalMemory - afterGC.heapStatistics.externalMemory,
      0,
    )
    return {
      cpu_ms: (user + system) / 1000,
      heap_bytes: now.total_allocated_bytes - memory.total_allocated_bytes,
      external_bytes: freed_bytes + now.external_memory - memory.external_memory,
      reads: after.reads - before.reads,
      writes: after.writes - before.writes,
      delay_p99_ms,
    }
  }
}

async function carryOut(order: LadderOrder): Promise<object> {
  if (order.do === 'relay') {
    relay = await startLadderRelay(order.rung, order.folder)
    return relay.ports
  }
  if (order.do === 'ends') ends.set(order.rung, await openEnds(order.rung, order.ports))
  if (order.do === 'move') await ends.get(order.rung)?.move(order.way, order.mibs)
  if (order.do === 'begin') count = startCounting()
  return order.do === 'count' && count ? count() : {}
}

takeOrders(carryOut)

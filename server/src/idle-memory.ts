// Gives memory back to the system once a load has gone. Two things are left then:
//   - memory that was freed and that the C library keeps for later: malloc_trim returns it, within 10 ms;
//   - garbage on V8's heap, and half-empty pages of it. V8 collects an idle heap by itself, in small steps,
//     but often stops half-way. A full collection does the rest. It stops the event loop for a few
//     milliseconds per MiB in use: small heaps only, and only while nobody has a session.
// Both wait for moments in which the event loop has little to do.
import type * as Ffi from 'node:ffi'
import v8 from 'node:v8'
import vm from 'node:vm'

/** How often it looks. */
const look_ms = 30_000
/** Less of the loop's time than this is quiet. The pings of ten thousand idle tunnels take a tenth. */
const quiet_share = 0.15
/** Quiet looks in a row after which it trims: one minute and three. V8 has done its steps in between. */
const trim_after: readonly number[] = [2, 6]
/** Quiet looks in a row before a full collection: two minutes. */
const collect_after = 4
/** One at a look. The second frees what the first has let go of, and empties more pages. */
const collections = 2
/** A heap with more in use than this is left to V8. Ten thousand tunnels hold twice as much. */
const largestHeap_bytes = 64 * 2 ** 20

interface ProcessMemory {
  /** The share of the time since the last call in which the event loop was busy, from 0 to 1. */
  busy(): number
  /** Memory on V8's heap that is in use, or not yet collected. */
  heap_bytes(): number
  collect(): void
  trim(): void
}

/** Looks every half minute, until it is disposed of. `sessions` says how many people have one. */
export function giveBackWhenIdle(sessions: () => number, memory: ProcessMemory = thisProcess()): Disposable {
  let quiet = 0
  let collected = 0
  const looking = setInterval(() => {
    if (memory.busy() >= quiet_share) {
      quiet = 0
      collected = 0
      return
    }
    quiet += 1
    const mayCollect = sessions() === 0 && memory.heap_bytes() <= largestHeap_bytes
    if (quiet >= collect_after && collected < collections && mayCollect) {
      collected += 1
      memory.collect()
    }
    if (trim_after.includes(quiet)) memory.trim()
  }, look_ms).unref()
  return { [Symbol.dispose]: () => clearInterval(looking) }
}

function thisProcess(): ProcessMemory {
  let before = performance.eventLoopUtilization()
  return {
    busy() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, before)
      before = now
      return utilization
    },
    heap_bytes: () => v8.getHeapStatistics().used_heap_size,
    collect() {
      collectGarbage('regular')
      mallocTrim()
    },
    trim: mallocTrim,
  }
}

/** Collects several times and stops everything for longer: for moments in which nobody waits. */
export function giveBackMemory(): void {
  collectGarbage('last-resort')
  mallocTrim()
}

function collectGarbage(flavor: 'regular' | 'last-resort'): void {
  v8.setFlagsFromString('--expose-gc')
  const collect = vm.runInNewContext('gc') as (options: object) => void
  collect({ type: 'major', execution: 'sync', flavor })
}

const definitions = {
  malloc_trim: { arguments: ['uint64'], return: 'int32' },
} as const satisfies Ffi.FunctionDefinitions

/** Open as long as we run. Null: there is no node:ffi (before Node 26), or no glibc. */
let library: Ffi.DynamicLibraryResult<typeof definitions> | null | undefined

function mallocTrim(): void {
  try {
    library ??= process.getBuiltinModule('node:ffi')?.dlopen(null, definitions) ?? null
  } catch {
    library = null
  }
  library?.functions.malloc_trim(0n)
}

// Gives memory back while the agent waits, which is what most agents do most of the time. The start and each
// session leave garbage that an idle Node would keep for good, because nothing makes it collect.
import v8 from 'node:v8'
import vm from 'node:vm'
import { dropProgramPages, trimHeap } from './native/memory.ts'

export interface IdleMemory {
  /** A session is open until this is disposed; nothing is freed during it. */
  session(): Disposable
  /** A call to the server is over: it has used pages of the program and left little garbage. */
  called(): void
}

/** Nothing must have happened for this long. */
const quiet_ms = 10_000

interface GivingBack {
  /** After a session, and once after the start. It stops everything for some 30 ms. */
  collect(): void
  /** After each call as well. It takes a few milliseconds. */
  drop(): void
}

const ofThisProcess: GivingBack = {
  collect() {
    v8.setFlagsFromString('--expose-gc')
    const gc = vm.runInNewContext('gc') as (options: object) => void
    gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    trimHeap()
  },
  drop: dropProgramPages,
}

export function idleMemory({ collect, drop }: GivingBack = ofThisProcess): IdleMemory {
  let sessions = 0
  let hasGarbage = true
  let timer: NodeJS.Timeout | undefined

  function giveBack(): void {
    timer = undefined
    if (sessions > 0) return
    if (hasGarbage) collect()
    hasGarbage = false
    drop()
  }
  const plan = (): void => void (timer ??= setTimeout(giveBack, quiet_ms).unref())

  return {
    session() {
      sessions += 1
      clearTimeout(timer)
      timer = undefined
      return {
        [Symbol.dispose]() {
          sessions -= 1
          hasGarbage = true
          plan()
        },
      }
    },
    called: plan,
  }
}

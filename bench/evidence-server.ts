// A server for bench/evidence.ts, whole and in a process of its own, whose audit log can be switched off and
// on between calls: only so are both sides the same server, the same connection and the same minute.
import { ensureConsole } from '../packages/console.ts'
import { consoleFolder } from '../packages/served.ts'
import { startServer } from '../server/src/compose/server.ts'
import { readConfig } from '../server/src/config.ts'
import type { Audit } from '../server/src/domain/audit/audit.ts'
import { openLog } from '../server/src/kit/log.ts'
import type { Stores } from '../server/src/storage/stores.ts'
import { takeOrders } from './programs.ts'

/** The same change without its entry. */
export const unaudited = (all: Stores): Audit => ({
  change: (_, work) => all.transaction((inside) => work(inside, () => undefined)),
  event: async () => undefined,
  eventOnce: async () => undefined,
  append: async () => undefined,
})

export type EvidenceOrder =
  | { readonly start: Readonly<Record<string, string>> }
  | { readonly audited: boolean }

if (process.send) {
  let toggle: ((audited: boolean) => void) | undefined
  takeOrders(async (order: EvidenceOrder) => {
    if ('audited' in order) {
      toggle?.(order.audited)
      return {}
    }
    await ensureConsole()
    const config = readConfig(order.start)
    const log = openLog('warn', process.stderr)
    const { rooms, port } = await startServer({ config, log, console: consoleFolder(), agents: undefined })
    const [real, bare] = [{ ...rooms.audit }, unaudited(rooms.stores)]
    toggle = (audited) => void Object.assign(rooms.audit, audited ? real : bare)
    return { port }
  })
}

// Composition of what browsers do with sessions: terminals, and the live view of sessions.
import { terminalPath } from '@hawser/contract/terminals'
import { sessionName } from '../domain/sessions/live-sessions.ts'
import type { Person } from '../domain/sessions/revocation.ts'
import { ticketName } from '../domain/sessions/terminals.ts'
import type { Gateway } from '../gateway/login/listen.ts'
import { terminalEndpoint } from '../http/terminal.ts'
import type { UpgradeHandlers } from '../http/upgrade.ts'
import { watchEndpoint, watchPath } from '../http/watch.ts'
import { elsewhereFirst } from '../cluster/elsewhere.ts'
import type { Rooms } from './rooms.ts'

export interface Browsers extends Disposable {
  readonly doors: UpgradeHandlers
  /** Makes each terminal and live view of these people check whether it may stay open. */
  recheck(whose: (person: Person) => boolean): Promise<void>
}

export function openBrowsers(rooms: Rooms, gateway: Gateway): Browsers {
  const { log, tickets, url, neighbours } = rooms
  const watching = watchEndpoint({
    gate: rooms.gate,
    tickets: rooms.watchTickets,
    sessions: rooms.watching,
    shared: (uid, channel) => gateway.sessions.get(uid)?.shared?.(channel),
    isHere: (uid) => gateway.sessions.has(uid),
    url,
    onError: (err) => log.error({ event: 'viewer.failed', err }),
  })
  const terminals = terminalEndpoint({
    tickets,
    terminal: gateway.terminal,
    attach: gateway.attach,
    desk: (uid, hear) => gateway.sessions.get(uid)?.desk?.(hear),
    url,
    onOpened: (about) => log.info({ event: 'terminal.opened', ...about }),
    onError: (err) => log.error({ event: 'terminal.failed', err }),
  })
  return {
    doors: {
      [watchPath]: elsewhereFirst(neighbours, watching.enter, ({ params: { uid = '' } }) =>
        gateway.sessions.has(uid) || !/^[0-9a-f]{64}$/.test(uid) ? undefined : sessionName(uid),
      ),
      [terminalPath]: elsewhereFirst(neighbours, terminals.enter, ({ query }) =>
        tickets.has(query.get('token') ?? '') ? undefined : ticketName(query.get('token') ?? ''),
      ),
    },
    recheck: async (whose) => void (await Promise.all([terminals.recheck(whose), watching.recheck(whose)])),
    [Symbol.dispose]() {
      watching.close()
      terminals.close()
    },
  }
}

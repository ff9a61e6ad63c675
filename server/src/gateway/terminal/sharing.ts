// The terminals of one session that guests and viewers use too, and how many people may type in sessions of a
// namespace. `shared-terminal.ts` is one terminal.
import { sessionLimits } from '@hawser/contract/limits'
import type { OwnPresence, Presence } from '@hawser/contract/sharing'
import type { LiveSession } from '../../domain/sessions/live-sessions.ts'
import type { SharedTerminal, SharingDesk } from '../../domain/sessions/sharing.ts'
import { placesByKey } from '../../kit/concurrency.ts'
import { TerminalSeats, type SharingParts } from './shared-terminal.ts'
import type { Terminal } from './terminal.ts'

export const typistPlaces = (most: number = sessionLimits.typistsOfNamespace.max) => placesByKey(most)

export function sharedTerminals(
  parts: Pick<SharingParts, 'person' | 'place' | 'mayReach'> & Pick<LiveSession, 'shared'>,
) {
  interface Shareable {
    readonly terminal: Terminal
    open(): TerminalSeats
    opened: TerminalSeats | undefined
    presence: Presence | undefined
  }
  const terminals = new Set<Shareable>()
  const desks = new Set<(presence: OwnPresence) => void>()
  const tell = ({ terminal, presence }: Shareable, hear: (presence: OwnPresence) => void): void => {
    const channel = terminal.recorder?.channel
    if (presence && channel !== undefined) hear({ ...presence, channel })
  }
  return {
    add(terminal: Terminal): void {
      const one: Shareable = {
        terminal,
        open: () =>
          new TerminalSeats({
            ...parts,
            terminal,
            changed(presence, notes) {
              one.presence = presence
              const others = [...terminals].flatMap((each) => each.presence?.people ?? [])
              parts.shared(
                others.filter(({ id }) => id !== 0),
                notes,
              )
              for (const hear of desks) tell(one, hear)
            },
          }),
        opened: undefined,
        presence: undefined,
      }
      terminals.add(one)
      void terminal.closed.then(() => terminals.delete(one))
    },
    find(channel: number): SharedTerminal | undefined {
      const one = [...terminals].find(({ terminal }) => terminal.recorder?.channel === channel)
      return one && (one.opened ??= one.open())
    },
    desk(hear: (presence: OwnPresence) => void): SharingDesk {
      desks.add(hear)
      for (const one of terminals) tell(one, hear)
      return {
        decide(decision) {
          const one = [...terminals].find(({ terminal }) => terminal.recorder?.channel === decision.channel)
          one?.opened?.decide(decision)
        },
        [Symbol.dispose]: () => void desks.delete(hear),
      }
    },
  }
}

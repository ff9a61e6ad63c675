// The terminals of one session that others use beside its person, and how many people may type in sessions of
// a namespace. `shared-terminal.ts` is one terminal.
import type { OwnPresence } from '@hawser/contract/sharing'
import type { Channel } from '@hawser/ssh'
import type { LiveSession } from '../domain/sessions/live-sessions.ts'
import type { SharedTerminal, SharingDesk } from '../domain/sessions/sharing.ts'
import { placesByKey } from '../kit/concurrency.ts'
import type { ChannelRecorder } from '../recording/tap.ts'
import { KeptTerminal } from './kept-terminal.ts'
import { sharedTerminal, type TerminalPresence, type SharingParts } from './shared-terminal.ts'

/** The most who type in sessions of one namespace on one node. */
const mostTypistsOfNamespace = 200

/** Places for those who type, by namespace. */
export const typistPlaces = (most = mostTypistsOfNamespace) => placesByKey(most)

/** The terminals of one session that others may use. */
export function sharedTerminals(
  parts: Pick<SharingParts, 'person' | 'place' | 'mayReach'> & Pick<LiveSession, 'shared'>,
) {
  type Opened = ReturnType<typeof sharedTerminal>
  interface Shareable {
    readonly recorder: ChannelRecorder
    open(): Opened
    opened: Opened | undefined
    presence: TerminalPresence | undefined
  }
  const terminals = new Set<Shareable>()
  const desks = new Set<(presence: OwnPresence) => void>()
  const tell = (
    { recorder: { channel }, presence }: Shareable,
    hear: (presence: OwnPresence) => void,
  ): void => {
    if (presence && channel !== undefined) hear({ ...presence, channel })
  }
  return {
    add(near: Channel, recorder: ChannelRecorder, say: (text: string) => void): void {
      if (!(near instanceof KeptTerminal)) return
      const one: Shareable = {
        recorder,
        open: () =>
          sharedTerminal({
            ...parts,
            terminal: near,
            recorder,
            say,
            changed(presence, notes) {
              one.presence = presence
              const others = [...terminals].flatMap((terminal) => terminal.presence?.people ?? [])
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
      void near.closed.then(() => terminals.delete(one))
    },
    /** The terminal that this channel of the recording shows. */
    find(channel: number): SharedTerminal | undefined {
      const one = [...terminals].find(({ recorder }) => recorder.channel === channel)
      return one && (one.opened ??= one.open())
    },
    desk(hear: (presence: OwnPresence) => void): SharingDesk {
      desks.add(hear)
      for (const one of terminals) tell(one, hear)
      return {
        decide(decision) {
          const one = [...terminals].find(({ recorder }) => recorder.channel === decision.channel)
          one?.opened?.decide(decision)
        },
        [Symbol.dispose]: () => void desks.delete(hear),
      }
    },
  }
}

// The person of a session decides in a browser about others in its terminal: who is there is sent once the browser
// has asked for it, the newest state only while the socket is slow.
import type { OwnerMessage, OwnPresence } from '@hawser/contract/sharing'
import type { SharingDesk } from '../domain/sessions/sharing.ts'
import { limiter } from '../kit/limiter.ts'
import { messagesOfPerson } from './message-socket.ts'

export interface TerminalDesk extends Disposable {
  /** Whether it was taken: a person does not decide so often. */
  take(said: OwnerMessage): boolean
}

export function terminalDesk(
  open: (hear: (presence: OwnPresence) => void) => SharingDesk | undefined,
  send: (presence: OwnPresence) => Promise<void>,
): TerminalDesk {
  let desk: SharingDesk | undefined
  const decisions = limiter(performance, messagesOfPerson)
  const waiting = new Map<number, OwnPresence>()
  let isSending = false

  async function sendAll(): Promise<void> {
    if (isSending) return
    isSending = true
    try {
      for (const [channel, presence] of waiting) {
        waiting.delete(channel)
        await send(presence)
      }
    } catch {
      // The browser is gone, which its terminal notices itself.
    } finally {
      isSending = false
    }
  }

  return {
    take(said) {
      if (decisions.take('') > 0) return false
      if (said.kind !== 'hear') desk?.decide(said)
      else
        desk ??= open((presence) => {
          waiting.set(presence.channel, presence)
          void sendAll()
        })
      return true
    },
    [Symbol.dispose]: () => desk?.[Symbol.dispose](),
  }
}

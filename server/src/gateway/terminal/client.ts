// The client of a terminal's person: a channel of their SSH client, or of a browser's connection inside this process.
// A terminal has one of them at a time and outlives it. Guests and viewers are at a terminal next to it (sharing.ts).
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  Reason,
  writeRequest,
  type Channel,
  type ChannelRequest,
  type ConnectionEnd,
  type ConnectionEnded,
} from '@hawser/ssh'

export interface ClientEnd extends Pick<ConnectionEnd, 'ended'> {
  /** Called when another client has taken the terminal. */
  onMoved?(): void
  /** Identifies a returning client. */
  readonly id?: string
}

export interface TakesRequests {
  takeRequest(client: TerminalClient, request: ChannelRequest): Promise<void> | void
}

export interface TerminalClient {
  readonly channel: Channel
  readonly end: ClientEnd
  terminal: TakesRequests
}

/** The exit status of an ssh whose connection is lost. */
export const lostStatus = 255
/** Time to deliver the last words to a client that no longer reads. */
export const goodbye_ms = 2_000

/** Passes every request of a channel to the terminal that its client has at that moment. */
export function clientOf(channel: Channel, end: ClientEnd, terminal: TakesRequests): TerminalClient {
  const client: TerminalClient = { channel, end, terminal }
  void (async () => {
    for await (const request of channel.requests) await client.terminal.takeRequest(client, request)
  })().catch(() => undefined)
  return client
}

/** How the connection of a client without a channel ended; undefined: it is still open. */
export const endingOf = async ({ end }: TerminalClient): Promise<ConnectionEnded | undefined> =>
  Promise.race([end.ended, nextTurn(undefined)])

/** Whether a connection ended without a goodbye. */
export const isLoss = ({ reason }: ConnectionEnded): boolean => reason === Reason.connectionLost

export async function dismiss({ channel }: TerminalClient, sentence: string, status = 0): Promise<void> {
  const late = setTimeout(() => void channel.close('now').catch(() => undefined), goodbye_ms)
  try {
    await channel.write(Buffer.from(`${leaving}\r\n${sentence}\r\n`))
    const { name, payload } = writeRequest({ type: 'exit-status', status })
    await channel.request(name, payload)
    await channel.close()
  } catch {
    // The client has already left.
  } finally {
    clearTimeout(late)
  }
}

/**
 * Switches off every mode that a program may have left on. On the usual screen, 1049 puts the cursor where it
 * was saved last, which is where it is.
 */
const leaving =
  '\u001b7\u001b[?1049l\u001b[!p\u001b[?9;1000;1002;1003;1004;1005;1006;1015;1016;2004l\u001b[?25h\u001b[m'

// The WebSocket of somebody at a terminal in a browser (its owner, a guest, a viewer, or its files), message by
// message, with back-pressure both ways. While a message waits to be taken the socket is not read, and a send resolves
// when the kernel has taken it. Text messages are JSON of a bounded size.
import { Failure } from '@hawser/contract/failures'
import { sessionLimits } from '@hawser/contract/limits'
import type { LiveMessage } from '@hawser/contract/sharing'
import type { FileNews, TerminalNews } from '@hawser/contract/terminals'
import { acceptWebSocket, keepalive, UpgradeFailed } from '@hawser/mux'
import { limiter } from '../kit/limiter.ts'
import type { Upgrade } from './upgrade.ts'
import type { Check } from './validate.ts'

export interface MessageSocket {
  /** Undefined when the other end has left. The socket is not read while one waits. */
  next(): Promise<Message | undefined>
  /** Resolves when the network has taken it, or when the connection is gone. */
  send(message: string | Uint8Array): Promise<void>
  /** Sends JSON. */
  say(message: LiveMessage | TerminalNews | FileNews): Promise<void>
  /** The memory of all messages that wait to be sent. */
  waiting(): number
  close(code: number): void
  /** Closes without a goodbye. */
  terminate(): void
  /** Resolves with the code of the other end's goodbye; 1006: it left without one, 1002: it broke the rules. */
  readonly closed: Promise<number>
}

export interface Message {
  readonly bytes: Buffer
  readonly binary: boolean
}

/** RFC 6455 section 7.4.1. */
const protocolError = 1002

/** A message that is not understood, or one too many. */
export class BadMessage extends Error {}

/** Memory that a message takes besides its bytes while it waits. */
export const message_bytes = 256
const ping = { every_ms: 30_000, timeout_ms: 30_000 }

/** Answers the request. Throws a Failure, and has not answered, when it is no proper one. */
export async function acceptMessageSocket(
  { request, socket, head }: Pick<Upgrade, 'request' | 'socket' | 'head'>,
  pinged: Parameters<typeof keepalive>[1] = ping,
): Promise<MessageSocket> {
  const ws = await acceptWebSocket(request, socket, head).catch((cause: unknown) => {
    throw cause instanceof UpgradeFailed ? new Failure('invalid', { message: cause.message, cause }) : cause
  })
  let unsent_bytes = 0
  const waiting: Message[] = []
  let taker: ((message: Message | undefined) => void) | undefined
  let over = false
  let isClosing = false
  const closed = Promise.withResolvers<number>()
  const pings = keepalive(ws, pinged)
  // A message that breaks the rules, or is far too long, ends the socket.
  let brokeRules = false
  ws.on(
    'error',
    (error: NodeJS.ErrnoException) => (brokeRules ||= error.code?.startsWith('WS_ERR_') === true),
  )
  ws.on('message', (data, binary) => {
    // After our goodbye only the other end's counts.
    if (isClosing) return
    const message = { bytes: data as Buffer, binary }
    if (taker) {
      taker(message)
      taker = undefined
    } else {
      waiting.push(message)
      ws.pause()
    }
  })
  ws.on('close', (code: number) => {
    over = true
    pings[Symbol.dispose]()
    taker?.(undefined)
    closed.resolve(brokeRules ? protocolError : code)
  })
  ws.resume()
  const send = async (message: string | Uint8Array): Promise<void> =>
    new Promise((resolve) => {
      const held_bytes = message_bytes + message.length
      unsent_bytes += held_bytes
      ws.send(message, () => {
        unsent_bytes -= held_bytes
        resolve()
      })
    })
  return {
    closed: closed.promise,
    async next() {
      const first = waiting.shift()
      if (first) return first
      if (over) return undefined
      if (ws.isPaused) ws.resume()
      return new Promise((resolve) => (taker = resolve))
    },
    send,
    say: async (message) => send(JSON.stringify(message)),
    waiting: () => unsent_bytes,
    close(code) {
      isClosing = true
      ws.close(code)
      // The goodbye of the other end can be heard only if somebody listens.
      waiting.length = 0
      ws.resume()
    },
    terminate: () => ws.terminate(),
  }
}

/** The value of a text message, which fits. Throws a BadMessage. */
export function readMessage({ bytes, binary }: Message, fits: Check, longest_bytes: number): unknown {
  if (bytes.length > longest_bytes) throw new BadMessage('A message of the browser is too long.')
  try {
    const value: unknown = binary ? undefined : JSON.parse(bytes.toString())
    if (fits(value)) return value
  } catch {
    // Not JSON.
  }
  throw new BadMessage('A message of the browser was not understood.')
}

/** Counts the messages of one person; true: it was one too many. */
export function messageCounter(): () => boolean {
  const messages = limiter(performance, sessionLimits.messages)
  return () => messages.take('') > 0
}

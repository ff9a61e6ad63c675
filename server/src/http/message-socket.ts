// A WebSocket as the door for terminals wants it: message by message, with back-pressure both ways. While a
// message waits to be taken the socket is not read, and a send resolves when the kernel has taken it.
import { Failure } from '@hawser/contract/failures'
import { acceptWebSocket, keepalive, UpgradeFailed } from '@hawser/mux'
import { second_ms } from '../kit/clock.ts'
import type { Upgrade } from './upgrade.ts'

/** A WebSocket, message by message. */
export interface MessageSocket {
  /** The next message; undefined when the other end has left. The socket is not read while one waits. */
  next(): Promise<Message | undefined>
  /** Resolves when the network has taken it, or when nobody is there any more. */
  send(message: string | Uint8Array): Promise<void>
  close(code: number): void
  /** Resolves with the code of the other end's goodbye; 1006: it left without one, 1002: it broke the rules. */
  readonly closed: Promise<number>
}

export interface Message {
  readonly bytes: Buffer
  readonly binary: boolean
}

/** Text messages of one person over one socket; a window that is being resized sends some. */
export const messagesOfPerson = { max: 60, window_ms: 10 * second_ms }

/** RFC 6455 section 7.4.1. */
const protocolError = 1002
const ping = { every_ms: 30_000, timeout_ms: 30_000 }

export async function acceptMessageSocket({ request, socket, head }: Upgrade): Promise<MessageSocket> {
  const ws = await acceptWebSocket(request, socket, head).catch((cause: unknown) => {
    throw cause instanceof UpgradeFailed ? new Failure('invalid', { message: cause.message, cause }) : cause
  })
  const waiting: Message[] = []
  let taker: ((message: Message | undefined) => void) | undefined
  let over = false
  const closed = Promise.withResolvers<number>()
  const pings = keepalive(ws, ping)
  // A message that breaks the rules, or is far too long, ends the socket.
  let brokeRules = false
  ws.on(
    'error',
    (error: NodeJS.ErrnoException) => (brokeRules ||= error.code?.startsWith('WS_ERR_') === true),
  )
  ws.on('message', (data, binary) => {
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
  return {
    closed: closed.promise,
    async next() {
      const first = waiting.shift()
      if (first) return first
      if (over) return undefined
      if (ws.isPaused) ws.resume()
      return new Promise((resolve) => (taker = resolve))
    },
    send: async (message) => new Promise((resolve) => ws.send(message, () => resolve())),
    close(code) {
      ws.close(code)
      // The goodbye of the other end can be heard only if somebody listens.
      waiting.length = 0
      ws.resume()
    },
  }
}

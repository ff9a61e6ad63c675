// How a terminal in a browser and its page talk (contract/src/terminals.ts): the protocol of our console, and that of
// old clients. Output is sent no faster than the page draws it.
import { StringDecoder } from 'node:string_decoder'
import { setTimeout } from 'node:timers/promises'
import { sessionLimits } from '@hawser/contract/limits'
import type { OwnPresence } from '@hawser/contract/sharing'
import {
  largestSize,
  mostInput_bytes,
  mostMessage_bytes,
  mostUnshown_bytes,
  TerminalMessage,
} from '@hawser/contract/terminals'
import {
  BadMessage,
  messageCounter,
  readMessage,
  type Message,
  type MessageSocket,
} from './message-socket.ts'
import { checker } from './validate.ts'

const sign_ms = 60_000

/** Input or a message from a page; undefined: nothing to act on. */
type Heard = Buffer | Exclude<TerminalMessage, { kind: 'shown' }> | undefined

/** One of the two protocols. */
export type Talk = ReturnType<typeof newTalk>

const fits = checker(TerminalMessage)

export function newTalk(line: MessageSocket) {
  const isFlood = messageCounter()
  let sent = 0
  /** The bytes that the page has drawn; undefined: it does not report them. */
  let shown: number | undefined
  let waiting: (() => void) | undefined
  let behind = Promise.withResolvers<void>()
  let gone = false
  void line.closed.then(() => {
    gone = true
    waiting?.()
  })

  const isBehind = (): boolean => shown !== undefined && sent - shown > mostUnshown_bytes && !gone

  /** Changes that the socket has no room for yet: the newest of each terminal. */
  const unsaid = new Map<number, OwnPresence>()
  let isSaying = false
  async function sayPeople(): Promise<void> {
    if (isSaying) return
    isSaying = true
    for (const [channel, presence] of unsaid) {
      unsaid.delete(channel)
      await line.say(presence)
    }
    isSaying = false
  }

  function read(message: Message): Heard {
    if (message.binary) {
      if (message.bytes.length > mostInput_bytes)
        throw new BadMessage('A message of the browser is too long.')
      // A copy: while it waits, the message would hold all that was read with it.
      return Buffer.from(message.bytes)
    }
    const heard = readMessage(message, fits, mostMessage_bytes) as TerminalMessage
    if (heard.kind === 'resize') sizeOf(heard.width, heard.height)
    else if (heard.kind === 'shown') {
      if (heard.bytes < (shown ?? 0) || heard.bytes > sent) throw notUnderstood()
      shown = heard.bytes
      waiting?.()
      return undefined
    } else if (heard.kind !== 'signature' && isFlood()) throw new BadMessage(sessionLimits.messages.message)
    return heard
  }

  return {
    read,
    async sign(challenge: Buffer): Promise<Buffer> {
      await line.say({ kind: 'sign', challenge: challenge.toString('base64') })
      const late = setTimeout(sign_ms, undefined, { ref: false })
      for (;;) {
        const message = await Promise.race([line.next(), late])
        if (!message) throw new BadMessage('The browser did not sign in time.')
        const heard = read(message)
        if (heard && 'signature' in heard) return Buffer.from(heard.signature, 'base64')
      }
    },
    begun: async (uid: string): Promise<void> => line.say({ kind: 'session', uid }),
    async output(bytes: Buffer): Promise<void> {
      sent += bytes.length
      await line.send(bytes)
      if (!isBehind()) return
      behind.resolve()
      while (isBehind()) {
        await new Promise<void>((resolve) => (waiting = resolve))
        waiting = undefined
      }
      behind = Promise.withResolvers()
    },
    /** Resolves when output waits until the page has drawn more. */
    behind: async (): Promise<void> => behind.promise,
    /** Who is in the session besides its person. */
    people(presence: OwnPresence): void {
      unsaid.set(presence.channel, presence)
      void sayPeople()
    },
    end: async (message: string): Promise<void> => line.say({ kind: 'end', message }),
  }
}

/** The kinds of messages from old clients. */
const Old = { input: 1, resize: 2 } as const
const isOld = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'kind' in value && 'data' in value

export function oldTalk(line: MessageSocket): Talk {
  const decoder = new StringDecoder('utf8')
  return {
    ...newTalk(line),
    read(message) {
      const { kind, data } = readMessage(message, isOld, mostMessage_bytes) as Record<
        'kind' | 'data',
        unknown
      >
      const numbers =
        Array.isArray(data) && data.every((byte) => Number.isInteger(byte) && byte >= 0 && byte <= 255)
      if (kind === Old.input && numbers) return Buffer.from(data as number[])
      if (kind === Old.input && typeof data === 'string') return Buffer.from(data, 'base64')
      if (kind !== Old.resize) throw notUnderstood()
      const { cols, rows } = (data ?? {}) as { cols?: unknown; rows?: unknown }
      return { kind: 'resize', ...sizeOf(cols, rows) }
    },
    sign: () => Promise.reject(new BadMessage('Old clients cannot log in with a key.')),
    begun: () => Promise.resolve(),
    async output(bytes) {
      // Letters that are cut off at the end wait for their other half.
      const text = decoder.write(bytes)
      if (text !== '') await line.send(text)
    },
    end: async (sentence) => line.send(sentence),
  }
}

const notUnderstood = (): BadMessage => new BadMessage('A message of the browser was not understood.')

function sizeOf(width: unknown, height: unknown): { width: number; height: number } {
  const fit = (value: unknown): value is number =>
    Number.isInteger(value) && (value as number) >= 1 && (value as number) <= largestSize
  if (!fit(width) || !fit(height))
    throw new BadMessage(`A terminal has 1 to ${largestSize} columns and rows.`)
  return { width, height }
}

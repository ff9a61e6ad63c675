// A second person in a live session: a client of the WebSocket that watches and types.
import { expect } from 'vitest'
import type { LiveMessage, ParticipantMessage, Presence } from '@hawser/contract/sharing'
import { dialWebSocket } from '@hawser/mux'
import { eventually } from '../harness/eventually.ts'

export interface Guest extends Disposable {
  /** What the terminal showed so far. */
  shown(): string
  /** All text messages so far. */
  readonly said: LiveMessage[]
  presence(): Presence | undefined
  say(message: ParticipantMessage): void
  /** Sends text as it is. */
  sayRaw(text: string): void
  type(text: string): void
  /** Reads nothing any more, not even that it is to leave. */
  pause(): void
  until(pattern: RegExp): Promise<void>
  /** Waits until the presence fits. */
  present(expected: object): Promise<Presence>
  /** The sentence of the end. */
  readonly ended: Promise<string>
}

export interface GuestWay {
  readonly headers?: Record<string, string>
  readonly query?: string
}

/** Rejects with the status when the door is closed. */
export async function openGuest(url: string, uid: string, way: GuestWay): Promise<Guest> {
  const address = `${url.replace('http', 'ws')}/api/sessions/${uid}/live${way.query ?? ''}`
  const socket = await dialWebSocket(address, { headers: way.headers ?? {} })
  const said: LiveMessage[] = []
  let shown = ''
  socket.on('message', (bytes, isBinary) => {
    const text = (bytes as Buffer).toString()
    if (isBinary) shown += text
    else said.push(JSON.parse(text) as LiveMessage)
  })
  const ended = new Promise<string>((resolve) =>
    socket.once('close', () => {
      const last = said.at(-1)
      resolve(last?.kind === 'end' ? last.message : '')
    }),
  )
  socket.resume()
  const presence = (): Presence | undefined => said.findLast((one) => one.kind === 'present')
  return {
    shown: () => shown,
    said,
    presence,
    say: (message) => socket.send(JSON.stringify(message)),
    sayRaw: (text) => socket.send(text),
    type: (text) => socket.send(Buffer.from(text)),
    pause: () => socket.pause(),
    until: async (pattern) => eventually(() => expect(shown).toMatch(pattern)),
    async present(expected) {
      await eventually(() => expect(presence()).toMatchObject(expected))
      return presence()!
    },
    ended,
    [Symbol.dispose]: () => socket.terminate(),
  }
}

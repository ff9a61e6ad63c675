// The WebSocket of a terminal, for the owner of its session, guests and viewers alike: binary messages are bytes of
// the terminal, text messages are JSON (contract/src/terminals.ts and sharing.ts).
import type { LiveMessage, ParticipantMessage } from '@hawser/contract/sharing'
import { mostInput_bytes, type TerminalMessage, type TerminalNews } from '@hawser/contract/terminals'
import { t } from '../language/language.ts'

interface Ear<News> {
  output(bytes: Uint8Array): void
  news(news: Exclude<News, { kind: 'end' }>): void
  /** With the sentence of the server, if it gave one. */
  closed(code: number, sentence: string | undefined): void
}

export interface TerminalSocket<Message> {
  say(message: Message): void
  type(text: string): void
  close(code?: number): void
}

export const webSocketAt = (path: string, query: Record<string, string>): WebSocket => {
  const socket = new WebSocket(
    `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${path}?${new URLSearchParams(query)}`,
  )
  socket.binaryType = 'arraybuffer'
  return socket
}

export function openTerminalSocket<
  Message extends TerminalMessage | ParticipantMessage,
  News extends TerminalNews | LiveMessage,
>(path: string, query: Record<string, string>, ear: Ear<News>): TerminalSocket<Message> {
  const socket = webSocketAt(path, query)
  let sentence: string | undefined
  socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
    if (typeof data !== 'string') return ear.output(new Uint8Array(data))
    const news = JSON.parse(data) as News
    if (news.kind === 'end') sentence = t(news.message)
    else ear.news(news as Exclude<News, { kind: 'end' }>)
  })
  socket.addEventListener('close', ({ code }) => ear.closed(code, sentence))
  const send = (message: string | Uint8Array<ArrayBuffer>): void => {
    if (socket.readyState === WebSocket.OPEN) socket.send(message)
  }
  return {
    say: (message) => send(JSON.stringify(message)),
    type(text) {
      const bytes = new TextEncoder().encode(text)
      for (let at = 0; at < bytes.length; at += mostInput_bytes)
        send(bytes.subarray(at, at + mostInput_bytes))
    },
    close: (code) => socket.close(code),
  }
}

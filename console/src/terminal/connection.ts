// The connection to a terminal on a device: a ticket, a WebSocket, the login, then input and output
// (contract/src/terminals.ts describes the messages). It acknowledges the output that the page has drawn, so
// that a flood waits on the device and not in this page.
import { Kind, mostUnshown_bytes, terminalPath } from '@hawser/contract/terminals'
import { api } from '../api.ts'
import { UserError } from '../error-text.ts'
import { fromBase64, toBase64 } from './bytes.ts'
import type { PrivateKey } from './keys.ts'

export interface Size {
  readonly cols: number
  readonly rows: number
}

export interface TerminalLogin {
  readonly device: string
  readonly username: string
  readonly proof: { readonly password: string } | PrivateKey
}

/** The screen that shows a terminal. */
export interface Listener {
  /** Draws output; calls `done` when it is drawn. */
  output(bytes: Uint8Array, done: () => void): void
  /** The session has ended; with a sentence, unless its own shell ended it. */
  ended(sentence: string | undefined): void
}

export interface TerminalConnection {
  readonly session: string
  type(text: string): void
  resize(size: Size): void
  /** Sets the listener, which at once gets the output that came before. */
  listen(listener: Listener): void
  close(): void
}

/** Why no terminal was opened. */
export class OpenError extends UserError {
  override readonly name = 'NotOpened'
}

const lost = 'The connection to the server was lost.'
/** The most characters in one message; they fit however JSON escapes them. */
const most_characters = 2048

export const socketAt = (token: string, size?: Size): WebSocket => {
  const query = new URLSearchParams({
    token,
    ...(size ? { cols: String(size.cols), rows: String(size.rows) } : {}),
  })
  return new WebSocket(
    `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${terminalPath}?${query}`,
  )
}

export async function openConnection(
  { device, username, proof }: TerminalLogin,
  size: Size,
): Promise<TerminalConnection> {
  const how = 'password' in proof ? { password: proof.password } : { public_key: proof.line }
  const { token } = (await api.terminals.open({ body: { device, username, ...how } })).body
  const socket = socketAt(token, size)
  socket.binaryType = 'arraybuffer'
  const opened = Promise.withResolvers<TerminalConnection>()
  let listener: Listener | undefined
  let early: Uint8Array[] = []
  let over: { sentence: string | undefined } | undefined
  let sentence: string | undefined
  let shown = 0
  let told = 0
  const say = (kind: number, data: unknown): void => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ kind, data }))
  }
  const work = (bytes: Uint8Array): void => {
    listener?.output(bytes, () => {
      shown += bytes.length
      if (shown - told < mostUnshown_bytes / 8) return
      told = shown
      say(Kind.shown, shown)
    })
  }

  const connection = (session: string): TerminalConnection => ({
    session,
    type(text) {
      for (let at = 0; at < text.length;) {
        // Do not split a surrogate pair.
        const end = at + most_characters
        const cut = /[\uD800-\uDBFF]/.test(text[end - 1] ?? '') ? end - 1 : end
        say(Kind.input, text.slice(at, cut))
        at = cut
      }
    },
    resize: ({ cols, rows }) => say(Kind.resize, { cols, rows }),
    listen(next) {
      listener = next
      for (const bytes of early) work(bytes)
      early = []
      if (over) next.ended(over.sentence)
    },
    close: () => socket.close(),
  })

  socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
    if (typeof data !== 'string') {
      const bytes = new Uint8Array(data)
      if (listener) work(bytes)
      else early.push(bytes)
      return
    }
    const { kind, data: said } = JSON.parse(data) as { kind: number; data: string }
    if (kind === Kind.error) sentence = said
    if (kind === Kind.session) {
      say(Kind.shown, 0)
      opened.resolve(connection(said))
    }
    if (kind === Kind.signature && 'sign' in proof)
      proof.sign(fromBase64(said), `${username}@${device}`).then(
        (signature) => say(Kind.signature, toBase64(signature)),
        (error: unknown) => {
          opened.reject(error)
          socket.close()
        },
      )
  })
  socket.addEventListener('close', ({ code }) => {
    over = { sentence: sentence ?? (code === 1000 || code === 1005 ? undefined : lost) }
    opened.reject(new OpenError(sentence ?? 'The terminal could not be opened. Please try again.'))
    listener?.ended(over.sentence)
  })
  return opened.promise
}

// The connection to a terminal on a device: a ticket, a WebSocket, the login, then input and output
// (contract/src/terminals.ts describes the messages). It acknowledges the output that the page has drawn, so
// that a flood waits on the device and not in this page.
import { defined } from '@hawser/contract/defined'
import type { OwnerMessage, OwnPresence } from '@hawser/contract/sharing'
import {
  Closing,
  mostUnshown_bytes,
  terminalPath,
  type TerminalMessage,
  type TerminalNews,
} from '@hawser/contract/terminals'
import { api } from '../api.ts'
import { UserError } from '../error-text.ts'
import { fromBase64, toBase64 } from './bytes.ts'
import type { PrivateKey } from './keys.ts'
import { openTerminalSocket } from './terminal-socket.ts'
import { msg, t } from '../language/language.ts'

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
  /** Who is in the session besides its person. */
  shared(presence: OwnPresence): void
  /** The terminal is over; with a sentence, unless the shell itself ended. */
  ended(sentence: string | undefined, how: Ending): void
}

/**
 * The session has ended, goes on with another client, or may be waiting for this one, whose connection broke.
 */
export type Ending = 'over' | 'moved' | 'lost'

export interface TerminalConnection {
  readonly session: string
  /** The ticket by which the server knows this page when it comes back by itself. */
  readonly ticket: string
  type(text: string): void
  resize(size: Size): void
  /** Decides about others in the session. */
  decide(decision: OwnerMessage): void
  /** Sets the listener, which at once gets the output that came before. */
  listen(listener: Listener): void
  /** Ends the session. */
  close(): void
  /** Leaves the session to be continued. */
  leave(): void
}

/** Why no terminal was opened. */
export class OpenError extends UserError {
  override readonly name = 'NotOpened'
  /** `lost`: it may be worth another try. The server said the others. */
  readonly how: Ending
  constructor(message: string, how: Ending = 'lost') {
    super(message)
    this.how = how
  }
}

const lost = msg('The connection to the server was lost.')
const moved = msg('The session continues elsewhere.')

export async function openConnection(
  { device, username, proof }: TerminalLogin,
  size: Size,
): Promise<TerminalConnection> {
  const how = 'password' in proof ? { password: proof.password } : { public_key: proof.line }
  const { token } = (await api.terminals.open({ body: { device, username, ...how } })).body
  return connected({ token, ticket: token }, size, async (challenge) => {
    if (!('sign' in proof)) throw new OpenError(t('The server requested a signature.'))
    return proof.sign(challenge, `${username}@${device}`)
  })
}

/**
 * Continues a session of one's own. Throws an ApiError, `notFound`, when it is over. With `after`, the ticket of a
 * page that comes back by itself, a client that came since keeps the session; then it throws an OpenError, `moved`.
 */
export async function attachConnection(
  session: string,
  size: Size,
  after?: string,
): Promise<TerminalConnection> {
  const wish = defined({ session, scrollback: true, after })
  const { token } = (await api.terminals.attach({ body: wish })).body
  return connected({ token, ticket: after ?? token }, size, async () => {
    throw new OpenError(t('The server requested a signature.'))
  })
}

async function connected(
  { token, ticket }: { readonly token: string; readonly ticket: string },
  size: Size,
  sign: (challenge: Uint8Array<ArrayBuffer>) => Promise<Uint8Array>,
): Promise<TerminalConnection> {
  const opened = Promise.withResolvers<TerminalConnection>()
  let listener: Listener | undefined
  let early: Uint8Array[] = []
  const shared = new Map<number, OwnPresence>()
  let over: { sentence: string | undefined; how: Ending } | undefined
  let shown = 0
  let told = 0
  const work = (bytes: Uint8Array): void => {
    listener?.output(bytes, () => {
      shown += bytes.length
      if (shown - told < mostUnshown_bytes / 8) return
      told = shown
      socket.say({ kind: 'shown', bytes: shown })
    })
  }

  const connection = (session: string): TerminalConnection => ({
    session,
    ticket,
    type: socket.type,
    resize: ({ cols, rows }) => socket.say({ kind: 'resize', width: cols, height: rows }),
    decide: socket.say,
    listen(next) {
      listener = next
      for (const bytes of early) work(bytes)
      early = []
      for (const presence of shared.values()) next.shared(presence)
      if (over) next.ended(over.sentence, over.how)
    },
    close: () => socket.close(),
    leave: () => socket.close(Closing.left),
  })

  const query = { token, cols: String(size.cols), rows: String(size.rows) }
  const socket = openTerminalSocket<TerminalMessage, TerminalNews>(terminalPath, query, {
    output(bytes) {
      if (listener) work(bytes)
      else early.push(bytes)
    },
    news(news) {
      if (news.kind === 'present') {
        shared.set(news.channel, news)
        listener?.shared(news)
      } else if (news.kind === 'session') {
        socket.say({ kind: 'shown', bytes: 0 })
        socket.say({ kind: 'hear' })
        opened.resolve(connection(news.uid))
      } else
        sign(fromBase64(news.challenge)).then(
          (signature) => socket.say({ kind: 'signature', signature: toBase64(signature) }),
          (error: unknown) => {
            opened.reject(error)
            socket.close()
          },
        )
    },
    closed(code, sentence) {
      // 1005: closed without a code, as this page itself does it.
      const isClean = code === Closing.done || code === 1005
      const how = code === Closing.moved ? 'moved' : isClean || sentence !== undefined ? 'over' : 'lost'
      over = { sentence: sentence ?? (how === 'over' ? undefined : t(how === 'moved' ? moved : lost)), how }
      const why = how === 'moved' ? t(moved) : (sentence ?? t('The terminal could not be opened. Try again.'))
      opened.reject(new OpenError(why, how === 'over' && sentence === undefined ? 'lost' : how))
      listener?.ended(over.sentence, how)
    },
  })
  return opened.promise
}

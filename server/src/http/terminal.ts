// The door for terminals in a browser, GET /ws/ssh: a WebSocket for a ticket (contract/src/terminals.ts describes the
// messages). Only pages of ours may use a ticket, or any page that somebody visits could try; it is gone with the first
// use. Messages are handled one by one, and the socket is read no faster than that; output is sent no faster than the
// socket, and the terminal behind it, takes it. A message that is not understood ends the session with a sentence.
import { Failure } from '@hawser/contract/failures'
import { Closing, largestSize } from '@hawser/contract/terminals'
import type { OwnerMessage, OwnPresence } from '@hawser/contract/sharing'
import type { SharingDesk } from '../domain/sessions/sharing.ts'
import type { TicketHolder, TerminalTicket, TerminalTickets } from '../domain/sessions/terminals.ts'
import type {
  AttachRequest,
  BrowserTerminal,
  TerminalSize,
  TerminalRequest,
} from '../gateway/login/browser.ts'
import { acceptMessageSocket, BadMessage, message_bytes, type MessageSocket } from './message-socket.ts'
import { permission, recheckAll, type Permission } from './permission.ts'
import { serveFiles } from './terminal-files.ts'
import { newTalk, oldTalk, type Talk } from './terminal-talk.ts'
import { requireOwnPage, type Upgrade } from './upgrade.ts'

export interface TerminalEndpointParts {
  tickets: TerminalTickets
  terminal(request: TerminalRequest, source: string, signal: AbortSignal): Promise<BrowserTerminal>
  attach(request: AttachRequest, source: string, signal: AbortSignal): Promise<BrowserTerminal>
  /** Where the person of a session on this node decides about others in it. */
  desk(session_uid: string, hear: (presence: OwnPresence) => void): SharingDesk | undefined
  /** The address that e-mails name: pages from there are ours, too. */
  url: string
  onOpened(about: { session: string; by: string; source: string }): void
  onError(error: unknown): void
}

/**
 * Codes of a browser that is lost: a reload or a closed tab, a connection that breaks, and a page that leaves the
 * session to be continued. Others end the session.
 */
const losses: ReadonlySet<number> = new Set([1001, 1006, Closing.left])
/** How much input may wait before the socket does, and at the very most. */
const fewWaiting_bytes = 256 * 1024
const mostWaiting_bytes = 16 * 1024 * 1024
/** Lines for the files of one terminal. */
const mostFileLines = 8

type LoginTicket = Exclude<TerminalTicket, { kind: 'files' }>
type OnError = TerminalEndpointParts['onError']

interface OpenTerminal {
  readonly terminal: BrowserTerminal
  readonly holder: TicketHolder
  readonly permission: Permission
  files: number
}

async function beginTerminal(
  parts: Pick<TerminalEndpointParts, 'attach' | 'terminal'>,
  ticket: LoginTicket,
  token: string,
  size: TerminalSize,
  { upgrade, gone, talk }: { upgrade: Upgrade; gone: AbortSignal; talk: Talk },
): Promise<BrowserTerminal> {
  const { source } = upgrade.from
  const person = { kind: 'user', id: ticket.user_id, name: ticket.username } as const
  if (ticket.kind === 'attach') return parts.attach({ ...ticket, token, person, size }, source, gone)
  const request: TerminalRequest = {
    device_uid: ticket.device_uid,
    username: ticket.login,
    person,
    client: upgrade.request.headers['user-agent'] ?? '',
    size,
    proof: 'password' in ticket.proof ? ticket.proof : { ...ticket.proof, sign: talk.sign },
  }
  return parts.terminal(request, source, gone)
}

export function terminalEndpoint(parts: TerminalEndpointParts) {
  const { tickets, onError } = parts
  const lines = new Set<MessageSocket>()
  const open = new Map<string, OpenTerminal>()

  async function enter(upgrade: Upgrade): Promise<void> {
    requireOwnPage(upgrade, parts.url)
    const token = upgrade.query.get('token') ?? ''
    const ticket = tickets.take(token)
    if (!(await tickets.holds(ticket))) throw new Failure('wrongToken')
    const size =
      ticket.kind === 'files'
        ? undefined
        : { columns: sizeIn(upgrade.query, 'cols'), rows: sizeIn(upgrade.query, 'rows') }
    const line = await acceptMessageSocket(upgrade)
    lines.add(line)
    void line.closed.then(() => lines.delete(line))
    const serving =
      ticket.kind === 'files'
        ? serveFilesOf(line, open.get(ticket.session_uid), onError)
        : serve(line, ticket, token, size!, upgrade)
    serving.catch((error: unknown) => {
      onError(error)
      line.close(Closing.refused)
    })
  }

  async function serve(
    line: MessageSocket,
    ticket: LoginTicket,
    token: string,
    size: TerminalSize,
    upgrade: Upgrade,
  ): Promise<void> {
    const { source } = upgrade.from
    const talk = ticket.kind === 'old terminal' ? oldTalk(line) : newTalk(line)
    const gone = new AbortController()
    void line.closed.then((code) => gone.abort(losses.has(code) ? 'lost' : 'left'))
    const terminal = await beginTerminal(parts, ticket, token, size, {
      upgrade,
      gone: gone.signal,
      talk,
    }).catch(async (error: unknown) => refuse(line, talk, ticket, error, onError))
    if (!terminal) return
    const { session_uid } = terminal
    using opened = tickets.opened(ticket, session_uid)
    void opened
    parts.onOpened({ session: session_uid, by: ticket.username, source })
    let sentence: string | undefined
    const stop = (why: string): void => {
      sentence ??= why
      void terminal.end()
    }
    using allowed = permission({
      holds: () => tickets.holds(ticket),
      onLost: () => stop('You may no longer use this terminal.'),
    })
    const entry = { terminal, holder: ticket, permission: allowed, files: 0 }
    open.set(session_uid, entry)
    let desk: SharingDesk | undefined
    const decide = (decision: OwnerMessage): void => {
      if (decision.kind !== 'hear') desk?.decide(decision)
      else if (open.get(session_uid) === entry) desk ??= parts.desk(session_uid, talk.people)
    }
    try {
      await talk.begun(session_uid)
      passInput(line, talk, terminal, decide).catch((error: unknown) =>
        stop(sentenceOf(error, onError) ?? 'The session is over.'),
      )
      for await (const bytes of terminal.output) await talk.output(bytes)
    } catch {
      // Somebody ended the session; `ended` has the reason.
    } finally {
      if (open.get(session_uid) === entry) open.delete(session_uid)
      desk?.[Symbol.dispose]()
      await terminal.end()
    }
    if (terminal.isMoved()) return line.close(Closing.moved)
    sentence ??= await terminal.ended
    // A page that is told nothing else comes back by itself; old ones cannot.
    if (terminal.isLeft() && ticket.kind !== 'old terminal') return line.close(Closing.leaving)
    if (sentence !== undefined) await talk.end(sentence)
    line.close(Closing.done)
  }

  return {
    enter,
    /** Asks again whether these people may keep their terminals. */
    recheck: async (whose: (holder: TicketHolder) => boolean): Promise<void> =>
      recheckAll([...open.values()].filter(({ holder }) => whose(holder)).map(({ permission: its }) => its)),
    /** When the sessions are over and the server stops. */
    close(): void {
      for (const line of lines) line.close(Closing.leaving)
    },
  }
}

function sizeIn(query: URLSearchParams, name: string): number {
  const text = query.get(name) ?? ''
  const value = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (value < 1 || value > largestSize)
    throw new Failure('invalid', { message: `${name}: 1 to ${largestSize} are possible` })
  return value
}

/**
 * Input waits its turn, and the socket with it, but not without end: while the output stands still
 * until the browser says what it has shown, that word is behind the input in the same socket, so that the
 * input has to be read, to a limit.
 */
async function passInput(
  line: MessageSocket,
  talk: Talk,
  terminal: BrowserTerminal,
  decide: (decision: OwnerMessage) => void,
): Promise<void> {
  let waiting_bytes = 0
  let writing = Promise.resolve()
  for (;;) {
    const message = await line.next()
    if (!message) return
    const heard = talk.read(message)
    if (!Buffer.isBuffer(heard)) {
      if (heard?.kind === 'resize')
        await terminal.resize({ columns: heard.width, rows: heard.height }).catch(ignore)
      else if (heard && heard.kind !== 'signature') decide(heard)
      continue
    }
    const held_bytes = message_bytes + heard.length
    waiting_bytes += held_bytes
    // To a shell that is gone nothing can be written; its last words are still on their way.
    writing = writing
      .then(async () => terminal.write(heard))
      .catch(ignore)
      .finally(() => (waiting_bytes -= held_bytes))
    if (waiting_bytes > mostWaiting_bytes) throw new BadMessage('More was typed than the device takes.')
    if (waiting_bytes > fewWaiting_bytes) await Promise.race([writing, talk.behind()])
  }
}

const ignore = (): void => undefined

/** Closes the socket of a terminal that was not opened, with the reason. */
async function refuse(
  line: MessageSocket,
  talk: Talk,
  ticket: LoginTicket,
  error: unknown,
  onError: OnError,
): Promise<void> {
  const kind = ticket.kind === 'attach' && error instanceof Failure ? error.kind : undefined
  // The session may continue in a moment, or when the server is back: a page without a sentence tries again.
  if (kind === 'unavailable') return line.close(Closing.leaving)
  if (kind === 'conflict') return line.close(Closing.moved)
  await talk.end(sentenceOf(error, onError) ?? 'The terminal could not be opened.')
  line.close(Closing.refused)
}

/** The sentence of an error for people; undefined, and logged, where it is a fault of the server. */
function sentenceOf(error: unknown, onError: OnError): string | undefined {
  if (error instanceof Failure || error instanceof BadMessage) return error.message
  onError(error)
  return undefined
}

async function serveFilesOf(
  line: MessageSocket,
  opened: OpenTerminal | undefined,
  onError: OnError,
): Promise<void> {
  if (!opened || opened.files >= mostFileLines) {
    const message = opened ? 'Too many file transfers are open for this terminal.' : 'The terminal is closed.'
    await line.say({ kind: 'error', message })
    return line.close(Closing.refused)
  }
  opened.files += 1
  try {
    await serveFiles(line, opened.terminal)
  } catch (error) {
    const message = sentenceOf(error, onError) ?? 'The connection to the device was lost.'
    await line.say({ kind: 'error', message })
  } finally {
    opened.files -= 1
    line.close(Closing.done)
  }
}

// The door for terminals in a browser, GET /ws/ssh: a WebSocket for whoever has a ticket
// (contract/src/terminals.ts says what is spoken). The page that asks must be one of ours, or any page that
// somebody visits could try; the ticket is gone with the first use. One message is worked off after the other
// and the socket is read no faster than that; output is sent no faster than the socket, and the terminal
// behind it, takes it. Whatever is not understood ends the session with a sentence.
import { StringDecoder } from 'node:string_decoder'
import { Failure } from '@hawser/contract/failures'
import {
  Closing,
  Kind,
  largestSize,
  mostInput_characters,
  mostMessage_bytes,
  mostUnshown_bytes,
} from '@hawser/contract/terminals'
import { OwnerMessage, type OwnPresence } from '@hawser/contract/sharing'
import type { SharingDesk } from '../domain/sessions/sharing.ts'
import type { TicketHolder, TerminalTicket, TerminalTickets } from '../domain/sessions/terminals.ts'
import type { AttachRequest, Terminal, TerminalSize, TerminalRequest } from '../gateway/terminal.ts'
import type { Message, MessageSocket } from './message-socket.ts'
import { permission, recheckAll, type Permission } from './permission.ts'
import { terminalDesk, type TerminalDesk } from './terminal-desk.ts'
import { serveFiles } from './terminal-files.ts'
import { requireOwnPage, type Upgrade } from './upgrade.ts'
import { checker } from './validate.ts'

export interface TerminalEndpointParts {
  tickets: TerminalTickets
  terminal(request: TerminalRequest, source: string, signal: AbortSignal): Promise<Terminal>
  attach(request: AttachRequest, source: string, signal: AbortSignal): Promise<Terminal>
  /** Where the person of a session on this node decides about others in it. */
  desk(session_uid: string, hear: (presence: OwnPresence) => void): SharingDesk | undefined
  /** Answers the request. Throws a Failure, and has not answered, when it is no proper one. */
  accept(upgrade: Upgrade): Promise<MessageSocket>
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
/** For a signature; the browser has it in a moment. */
const sign_ms = 60_000
/** Of input: what may wait before the socket does, and at the very most. */
const fewWaiting_bytes = 256 * 1024
const mostWaiting_bytes = 16 * 1024 * 1024
/** Lines for files beside one terminal. */
const mostFileLines = 8

type LoginTicket = Exclude<TerminalTicket, { kind: 'files' }>

/** What is not understood. */
class BadMessage extends Error {}

export function terminalEndpoint(parts: TerminalEndpointParts) {
  const { tickets } = parts
  const lines = new Set<MessageSocket>()
  const open = new Map<
    string,
    {
      readonly terminal: Terminal
      readonly holder: TicketHolder
      readonly permission: Permission
      files: number
    }
  >()

  async function enter(upgrade: Upgrade): Promise<void> {
    requireOwnPage(upgrade, parts.url)
    const token = upgrade.query.get('token') ?? ''
    const ticket = tickets.take(token)
    if (!(await tickets.holds(ticket))) throw new Failure('wrongToken')
    const size =
      ticket.kind === 'files'
        ? undefined
        : { columns: sizeIn(upgrade.query, 'cols'), rows: sizeIn(upgrade.query, 'rows') }
    const line = await parts.accept(upgrade)
    lines.add(line)
    void line.closed.then(() => lines.delete(line))
    const serving =
      ticket.kind === 'files' ? serveBeside(line, ticket) : serve(line, ticket, token, size!, upgrade)
    serving.catch((error: unknown) => {
      parts.onError(error)
      line.close(Closing.refused)
    })
  }

  async function serve(
    line: MessageSocket,
    ticket: LoginTicket,
    token: string,
    size: TerminalSize,
    { request, from: { source } }: Upgrade,
  ): Promise<void> {
    const talk = ticket.kind === 'old terminal' ? oldTalk(line) : newTalk(line)
    const gone = new AbortController()
    void line.closed.then((code) => gone.abort(losses.has(code) ? 'lost' : 'left'))
    let terminal: Terminal
    try {
      const person = { kind: 'user', id: ticket.user_id, name: ticket.username } as const
      terminal = await (ticket.kind === 'attach'
        ? parts.attach({ ...ticket, token, person, size }, source, gone.signal)
        : parts.terminal(
            {
              device_uid: ticket.device_uid,
              username: ticket.login,
              person,
              client: request.headers['user-agent'] ?? '',
              size,
              proof: 'password' in ticket.proof ? ticket.proof : { ...ticket.proof, sign: talk.sign },
            },
            source,
            gone.signal,
          ))
    } catch (error) {
      const known = error instanceof Failure
      // The session may go on in a moment, or when the server is back: a page that is told nothing tries again.
      if (ticket.kind === 'attach' && known && error.kind === 'unavailable')
        return line.close(Closing.leaving)
      if (ticket.kind === 'attach' && known && error.kind === 'conflict') return line.close(Closing.moved)
      if (!known && !(error instanceof BadMessage)) parts.onError(error)
      await talk.error(
        known || error instanceof BadMessage ? error.message : 'The terminal could not be opened.',
      )
      return line.close(Closing.refused)
    }
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
      onLost: () => stop('You may not use this terminal any more.'),
    })
    const entry = { terminal, holder: ticket, permission: allowed, files: 0 }
    open.set(session_uid, entry)
    using desk = terminalDesk((hear) => parts.desk(session_uid, hear), talk.people)
    try {
      await talk.begun(session_uid)
      void passInput(line, talk, terminal, desk).catch((error: unknown) => {
        if (!(error instanceof BadMessage)) parts.onError(error)
        stop(error instanceof BadMessage ? error.message : 'The session is over.')
      })
      await passOutput(talk, terminal)
    } finally {
      if (open.get(session_uid) === entry) open.delete(session_uid)
      await terminal.end()
    }
    if (terminal.isMoved()) return line.close(Closing.moved)
    sentence ??= await terminal.ended
    // A page that is told nothing else comes back by itself; old ones cannot.
    if (terminal.isLeft() && ticket.kind !== 'old terminal') return line.close(Closing.leaving)
    if (sentence !== undefined) await talk.error(sentence)
    line.close(Closing.done)
  }

  async function serveBeside(line: MessageSocket, ticket: TerminalTicket & { kind: 'files' }): Promise<void> {
    const beside = open.get(ticket.session_uid)
    const say = async (message: string): Promise<void> =>
      line.send(JSON.stringify({ kind: 'error', message }))
    if (!beside || beside.files >= mostFileLines) {
      await say(beside ? 'Too many files are on their way beside this terminal.' : 'The terminal is closed.')
      return line.close(Closing.refused)
    }
    beside.files += 1
    try {
      await serveFiles(line, beside.terminal)
    } catch (error) {
      if (!(error instanceof Failure)) parts.onError(error)
      await say(error instanceof Failure ? error.message : 'The connection to the device was lost.')
    } finally {
      beside.files -= 1
      line.close(Closing.done)
    }
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

async function passOutput(talk: Talk, terminal: Terminal): Promise<void> {
  try {
    for await (const bytes of terminal.output) await talk.output(bytes)
  } catch {
    // The session was ended by somebody; `ended` says by whom.
  }
}

/**
 * What is typed waits its turn, and the socket with it, but not without end: while the output stands still
 * until the browser says what it has shown, that word is behind the input in the same socket, so that the
 * input has to be read, to a limit.
 */
async function passInput(
  line: MessageSocket,
  talk: Talk,
  terminal: Terminal,
  desk: TerminalDesk,
): Promise<void> {
  let waiting_bytes = 0
  let writing = Promise.resolve()
  for (;;) {
    const message = await line.next()
    if (!message) return
    const said = talk.read(message)
    if ('size' in said) await terminal.resize(said.size).catch(ignore)
    if ('decision' in said && !desk.take(said.decision))
      throw new BadMessage('The browser sent too many messages.')
    if (!('input' in said)) continue
    const { input } = said
    waiting_bytes += input.length
    // To a shell that is gone nothing can be written; its last words are still on their way.
    writing = writing
      .then(async () => terminal.write(input))
      .catch(ignore)
      .finally(() => (waiting_bytes -= input.length))
    if (waiting_bytes > mostWaiting_bytes) throw new BadMessage('More was typed than the device takes.')
    if (waiting_bytes > fewWaiting_bytes) await Promise.race([writing, talk.behind()])
  }
}

const ignore = (): void => undefined
const isDecision = checker(OwnerMessage)

type Said =
  | { readonly input: Buffer }
  | { readonly size: TerminalSize }
  | { readonly signature: Buffer }
  | { readonly decision: OwnerMessage }
  | { readonly nothing: true }

/** One of the two ways to talk. */
interface Talk {
  read(message: Message): Said
  sign(challenge: Buffer): Promise<Buffer>
  begun(session_uid: string): Promise<void>
  output(bytes: Buffer): Promise<void>
  /** Resolves when output waits for the browser's word. */
  behind(): Promise<void>
  /** Who is in the session beside its person. */
  people(presence: OwnPresence): Promise<void>
  error(sentence: string): Promise<void>
}

function newTalk(line: MessageSocket): Talk {
  let sent = 0
  /** What the terminal has worked off; undefined from one that does not say. */
  let shown: number | undefined
  let waiting: (() => void) | undefined
  let behind = Promise.withResolvers<void>()
  let gone = false
  void line.closed.then(() => {
    gone = true
    waiting?.()
  })
  const say = async (kind: number, data: unknown): Promise<void> => line.send(JSON.stringify({ kind, data }))

  const isBehind = (): boolean => shown !== undefined && sent - shown > mostUnshown_bytes && !gone

  function read(message: Message): Said {
    const { kind, data } = parsed(message)
    if (kind === Kind.input && typeof data === 'string' && data.length <= mostInput_characters)
      return { input: Buffer.from(data) }
    if (kind === Kind.resize) return { size: sizeOf(data) }
    if (kind === Kind.decide && isDecision(data)) return { decision: data as OwnerMessage }
    if (kind === Kind.signature && typeof data === 'string') return { signature: Buffer.from(data, 'base64') }
    if (
      kind === Kind.shown &&
      Number.isSafeInteger(data) &&
      (data as number) >= (shown ?? 0) &&
      (data as number) <= sent
    ) {
      shown = data as number
      waiting?.()
      return { nothing: true }
    }
    throw new BadMessage('A message of the browser was not understood.')
  }

  return {
    read,
    async sign(challenge) {
      await say(Kind.signature, challenge.toString('base64'))
      const late = Promise.withResolvers<never>()
      const timer = setTimeout(
        () => late.reject(new BadMessage('The browser did not sign in time.')),
        sign_ms,
      )
      try {
        for (;;) {
          const message = await Promise.race([line.next(), late.promise])
          if (!message) throw new BadMessage('The browser has left.')
          const said = read(message)
          if ('signature' in said) return said.signature
        }
      } finally {
        clearTimeout(timer)
      }
    },
    begun: async (session_uid) => say(Kind.session, session_uid),
    async output(bytes) {
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
    behind: async () => behind.promise,
    people: async (presence) => say(Kind.people, presence),
    error: async (sentence) => say(Kind.error, sentence),
  }
}

function oldTalk(line: MessageSocket): Talk {
  const decoder = new StringDecoder('utf8')
  return {
    read(message) {
      const { kind, data } = parsed(message)
      const numbers =
        Array.isArray(data) && data.every((byte) => Number.isInteger(byte) && byte >= 0 && byte <= 255)
      if (kind === Kind.input && numbers) return { input: Buffer.from(data as number[]) }
      if (kind === Kind.input && typeof data === 'string') return { input: Buffer.from(data, 'base64') }
      if (kind === Kind.resize) return { size: sizeOf(data) }
      throw new BadMessage('A message of the browser was not understood.')
    },
    sign: () => Promise.reject(new BadMessage('Old clients cannot log in with a key.')),
    begun: () => Promise.resolve(),
    async output(bytes) {
      // Letters that are cut off at the end wait for their other half.
      const text = decoder.write(bytes)
      if (text !== '') await line.send(text)
    },
    behind: () => new Promise(ignore),
    people: () => Promise.resolve(),
    error: async (sentence) => line.send(sentence),
  }
}

function parsed({ bytes, binary }: Message): { kind: unknown; data: unknown } {
  if (bytes.length > mostMessage_bytes) throw new BadMessage('A message of the browser is too long.')
  try {
    const value: unknown = binary ? undefined : JSON.parse(bytes.toString())
    if (typeof value === 'object' && value !== null && 'kind' in value && 'data' in value) return value
  } catch {
    // Not JSON: told below.
  }
  throw new BadMessage('A message of the browser was not understood.')
}

function sizeOf(data: unknown): TerminalSize {
  const { cols, rows } = (typeof data === 'object' && data !== null ? data : {}) as {
    cols?: unknown
    rows?: unknown
  }
  const fits = (value: unknown): value is number =>
    Number.isInteger(value) && (value as number) >= 1 && (value as number) <= largestSize
  if (!fits(cols) || !fits(rows)) throw new BadMessage(`A terminal has 1 to ${largestSize} columns and rows.`)
  return { columns: cols, rows }
}

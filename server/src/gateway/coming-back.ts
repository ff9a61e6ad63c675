// Coming back to a session with plain ssh. Whoever logs in again to the same account of a device, on a terminal, and
// has a session held there, is asked in a line or two whether to continue it, and answers with one key. `hawser-attach`
// as the command continues one without asking, also one that another client of the same person has, which is then let
// go. The login itself was judged like any other: the firewall, the key or the password, and what the namespace
// demands.
import type { Duplex } from 'node:stream'
import type { SessionOrigin, SessionPerson } from '@hawser/contract/sessions'
import { readRequest, writeRequest, type ChannelRequest } from '@hawser/ssh'
import { iso } from '../kit/clock.ts'
import type { Size } from '../recording/journal.ts'
import { takeTerminal, type RemoteAttachRequest } from './carried-terminal.ts'
import { continuableTerminal, type Claim, type HeldSessions, type KeptSession } from './held-sessions.ts'
import type { KeptTerminal } from './kept-terminal.ts'

export interface ResumeParts {
  held: HeldSessions
  /** Undefined: there are no other nodes. */
  remote: RemoteSessions | undefined
  /** Resolves when the sessions are there again that the device has kept; undefined: it has kept none. */
  restoring(device_uid: string): Promise<void> | undefined
  claim: Claim
  person: SessionPerson
  /** The session of this login, which is not among those to continue. */
  uid: string
  /** How whoever has the session now is told where it goes on. */
  where: string
  source: string
  via: SessionOrigin
  /** The terminal of this login continues the session with this uid. */
  onResumed(uid: string): void
}

/** Finds and opens the sessions of other nodes, which say themselves whose they are. */
export interface RemoteSessions {
  /** Those that whoever logged in so may continue; `heldOnly`: without those that have a client. */
  of(claim: Claim, person: SessionPerson, heldOnly: boolean): Promise<RemoteSessionsFound>
}

export interface RemoteSessionsFound {
  readonly sessions: readonly RemoteSession[]
  /** Names of nodes that have such sessions and did not answer in time. */
  readonly silent: readonly string[]
}

export interface RemoteSession extends Pick<KeptSession, 'uid' | 'started_at' | 'held_until'> {
  /** Throws when the session is over, or its node does not answer. */
  open(request: RemoteAttachRequest): Promise<Duplex>
}

type Candidate = KeptSession | RemoteSession

const command = 'hawser-attach'
const usage = `usage: ssh -t USER@NAMESPACE.DEVICE@SERVER ${command} [-s] [SESSION]`
/** So many can be chosen by a digit. */
const mostAsked = 9

interface Wish {
  /** The beginning of a uid; empty: any. */
  readonly uid: string
  readonly scrollback: boolean
}

/** Undefined: the command is another one. */
function wishOf(asked: string): Wish | 'unclear' | undefined {
  const [first, ...words] = asked.trim().split(/\s+/)
  if (first !== command) return undefined
  const scrollback = words[0] === '-s'
  const [uid = '', ...rest] = scrollback ? words.slice(1) : words
  return rest.length > 0 || !/^[0-9a-f]{0,64}$/.test(uid) ? 'unclear' : { uid, scrollback }
}

/** For `onProgram` of a kept terminal: undefined when there is nothing to come back to. */
export function comingBack(parts: ResumeParts) {
  const { held, claim, where, source, via } = parts
  const isOther = ({ uid }: KeptSession): boolean => uid !== parts.uid

  /** Those of all nodes: held ones first, then the newest. */
  async function everywhere(heldOnly: boolean): Promise<{ found: Candidate[]; silent: readonly string[] }> {
    await parts.restoring(claim.device_uid)
    const others = (await parts.remote?.of(claim, parts.person, heldOnly)) ?? { sessions: [], silent: [] }
    const here = (await held.continuable(claim)).filter(isOther)
    const found = [...here, ...others.sessions].filter(
      ({ held_until }) => !heldOnly || held_until !== undefined,
    )
    return { found: found.toSorted(byTurn), silent: others.silent }
  }

  async function take(terminal: KeptTerminal, session: Candidate, scrollback: boolean): Promise<boolean> {
    const { size } = terminal
    if (!terminal.client || !size) return false
    if ('open' in session) {
      const asked = { ...claim, uid: session.uid, ...size, scrollback, where, source, via }
      const stream = await session.open(asked).catch(() => undefined)
      if (!terminal.client) stream?.destroy()
      if (!stream || !terminal.client) return false
      parts.onResumed(session.uid)
      takeTerminal(terminal, stream)
      return true
    }
    const kept = await continuableTerminal(session)
    const { client } = terminal
    if (!kept || !client) return false
    terminal.release()
    parts.onResumed(session.uid)
    session.resumed(source, via)
    await kept.attach(client, size, { scrollback, where })
    return true
  }

  /** Says why not, and ends the channel as a command that failed. */
  async function refuse(terminal: KeptTerminal, answer: () => void, sentence: string): Promise<false> {
    const channel = terminal.client?.channel
    terminal.release()
    await terminal.answered()
    answer()
    await channel?.write(Buffer.from(`${fitted(sentence, terminal.size)}\r\n`), terminal.size ? 0 : 1)
    const { name, payload } = writeRequest({ type: 'exit-status', status: 1 })
    await channel?.request(name, payload)
    await channel?.close()
    return false
  }

  async function attach(
    terminal: KeptTerminal,
    request: ChannelRequest,
    wish: Wish | 'unclear',
  ): Promise<boolean> {
    const answer = (): void => request.reply(true)
    if (wish === 'unclear') return refuse(terminal, answer, usage)
    if (!terminal.size) return refuse(terminal, answer, `A session is continued on a terminal; ${usage}`)
    const { found, silent } = await everywhere(false)
    const session = found.find(({ uid }) => uid.startsWith(wish.uid))
    if (!session) return refuse(terminal, answer, silentSentence(silent) ?? nothingSentence)
    answer()
    if (await take(terminal, session, wish.scrollback)) return false
    return refuse(terminal, () => undefined, overSentence)
  }

  /** Asks if there is something to continue; undefined: there is nothing. */
  async function offer(terminal: KeptTerminal, request: ChannelRequest): Promise<boolean | undefined> {
    const { found, silent } = await everywhere(true)
    const sentence = silentSentence(silent)
    if (sentence !== undefined)
      await terminal.client?.channel.write(Buffer.from(`${fitted(sentence, terminal.size)}\r\n`))
    return found.length === 0 ? undefined : ask(terminal, request, found.slice(0, mostAsked))
  }

  async function ask(
    terminal: KeptTerminal,
    request: ChannelRequest,
    waiting: readonly Candidate[],
  ): Promise<boolean> {
    const channel = terminal.client?.channel
    if (!channel) return false
    request.reply(true)
    await channel.write(Buffer.from(`${fitted(questionOf(waiting), terminal.size)} `))
    const chunk = await channel.read()
    const typed = chunk?.bytes.toString('latin1') ?? ''
    // A key alone is an answer. A script, what was typed before the question, a report of the terminal, and the end of
    // the input are not: they are for the new shell, as they came.
    const key = typed === '\r\n' ? '\r' : typed
    const session = waiting[/^[1-9]$/.test(key) ? Number(key) - 1 : 0]
    const continues = /^[\r\nyYsS1-9]$/.test(key) && session
    await channel.write(Buffer.from('\r\n'))
    if (continues && (await take(terminal, session, key.toLowerCase() === 's'))) return false
    if (continues) await channel.write(Buffer.from('It has ended meanwhile; this is a new one.\r\n'))
    if (chunk && !/^[\r\nyYnNsS1-9]$/.test(key)) terminal.typed = Buffer.from(chunk.bytes)
    return true
  }

  return (terminal: KeptTerminal, request: ChannelRequest): Promise<boolean | undefined> | undefined => {
    const asked = readRequest(request.type, request.payload)
    if (asked.type === 'exec') {
      const wish = wishOf(asked.command)
      return wish && attach(terminal, request, wish)
    }
    if (asked.type !== 'shell' || !terminal.size) return undefined
    const isHeld = held.of(claim).some((one) => isOther(one) && one.held_until !== undefined)
    const mayBe = isHeld || parts.remote || parts.restoring(claim.device_uid)
    return mayBe ? offer(terminal, request) : undefined
  }
}

const nothingSentence = 'There is no such session of yours to continue here.'
const overSentence = 'The session is over, or cannot be reached.'

/** Undefined: every node has answered. */
const silentSentence = (silent: readonly string[]): string | undefined =>
  silent.length === 0
    ? undefined
    : `You have sessions on a node of the server that does not answer now: ${silent.join(', ')}.`

const byTurn = (one: Candidate, other: Candidate): number =>
  Number(other.held_until !== undefined) - Number(one.held_until !== undefined) ||
  other.started_at - one.started_at

const timeOf = ({ started_at }: Candidate): string => iso(started_at).slice(11, 16)

function questionOf(waiting: readonly Candidate[]): string {
  const [newest] = waiting
  if (waiting.length === 1)
    return `Your session of ${timeOf(newest!)} UTC is still there: Enter continues it (s: with its scrollback), n begins a new one.`
  const times = waiting.map((session, at) => `${at + 1}:\u00a0${timeOf(session)}\u00a0UTC`).join(', ')
  return `Your sessions are still there (${times}): Enter continues the first, a number another, n begins a new one.`
}

const usualWidth = 80
const leastWidth = 20

/** Broken at spaces, so that no line reaches the end of the window; without a window it stays one line. */
function fitted(sentence: string, size: Size | undefined): string {
  if (!size) return sentence
  // The last column, and one for the space behind a question.
  const room = Math.max(leastWidth, Math.min(usualWidth, size.width || usualWidth)) - 2
  const lines = ['']
  for (const word of sentence.split(' ')) {
    const line = lines.at(-1)!
    if (line === '') lines[lines.length - 1] = word
    else if (line.length + 1 + word.length <= room) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(word)
  }
  return lines.join('\r\n').replaceAll('\u00a0', ' ')
}

// Reattaching to a session with plain ssh. A person who logs in again to the same account of a device, on a
// terminal, and has a held session there, is offered it in a line or two, and answers with one key.
// `hawser-attach` as the command continues one without a question, also from another client of the same
// person, which is then let go. The login itself is judged like any other. A session of another node is first
// taken over from there (take-over.ts).
import type { SessionPerson } from '@hawser/contract/sessions'
import { readRequest, writeRequest, type ChannelRequest } from '@hawser/ssh'
import { iso } from '../../kit/clock.ts'
import type { Size } from '../../recording/journal.ts'
import {
  byTurn,
  continuableTerminal,
  isFree,
  isHeld,
  type Claim,
  type HeldSessions,
  type HoldableSession,
} from './held.ts'
import type { Reattached, Terminal } from './terminal.ts'

/** Finds sessions of a person at other nodes, each of which can be taken over. */
export type Elsewhere = (claim: Claim, person: SessionPerson) => Promise<readonly Candidate[]>

interface Candidate {
  readonly uid: string
  readonly started_at: number
  readonly isHeld: boolean
  /** Moves the session to this node; undefined: it is over, or cannot be reached. */
  take(by: Reattached): Promise<HoldableSession | undefined>
}

export interface ReattachParts {
  held: HeldSessions
  /** Undefined: there are no other nodes. */
  elsewhere: Elsewhere | undefined
  /**
   * Resolves when the detached terminals that the device reported are restored; undefined: it reported none.
   */
  restoring(device_uid: string): Promise<void> | undefined
  claim: Claim
  person: SessionPerson
  uid: string
  by: Reattached
  onReattached(uid: string): void
}

const command = 'hawser-attach'
const usage = `usage: ssh -t USER@NAMESPACE.DEVICE@SERVER ${command} [-s] [SESSION]`
/** At most 9, so that one digit selects. */
const mostAsked = 9

interface Wish {
  readonly uid: string
  readonly scrollback: boolean
}

/** Undefined: the command is not ours. */
function wishOf(asked: string): Wish | 'unclear' | undefined {
  const [first, ...words] = asked.trim().split(/\s+/)
  if (first !== command) return undefined
  const scrollback = words[0] === '-s'
  const [uid = '', ...rest] = scrollback ? words.slice(1) : words
  return rest.length > 0 || !/^[0-9a-f]{0,64}$/.test(uid) ? 'unclear' : { uid, scrollback }
}

type Answer = Promise<boolean | undefined> | undefined

/** For `onProgram` of a terminal: undefined when there is nothing to reattach to. */
export function reattaching(parts: ReattachParts): (terminal: Terminal, request: ChannelRequest) => Answer {
  const { claim } = parts
  return (terminal, request) => {
    const asked = readRequest(request.type, request.payload)
    if (asked.type === 'exec') {
      const wish = wishOf(asked.command)
      return wish && new Reattaching(parts, terminal, request).attach(wish)
    }
    if (asked.type !== 'shell' || !terminal.size) return undefined
    const isAnyHeld = parts.held.of(claim).some((one) => one.uid !== parts.uid && isHeld(one))
    const mayBe = isAnyHeld || parts.elsewhere || parts.restoring(claim.device_uid)
    return mayBe ? new Reattaching(parts, terminal, request).offer() : undefined
  }
}

/** One client that may reattach instead of starting a program. */
class Reattaching {
  readonly #parts: ReattachParts
  readonly #terminal: Terminal
  readonly #request: ChannelRequest

  constructor(parts: ReattachParts, terminal: Terminal, request: ChannelRequest) {
    this.#parts = parts
    this.#terminal = terminal
    this.#request = request
  }

  /** Reattaches without a question. */
  async attach(wish: Wish | 'unclear'): Promise<boolean> {
    const answer = (): void => this.#request.reply(true)
    if (wish === 'unclear') return this.#refuse(answer, usage)
    if (!this.#terminal.size) return this.#refuse(answer, 'hawser-attach needs a terminal: use `ssh -t`.')
    const session = (await this.#everywhere()).find(({ uid }) => uid.startsWith(wish.uid))
    if (!session) return this.#refuse(answer, nothingSentence)
    answer()
    if (await this.#take(session, wish.scrollback)) return false
    return this.#refuse(() => undefined, overSentence)
  }

  /** Offers held sessions; undefined: there are none. */
  async offer(): Promise<boolean | undefined> {
    const waiting = (await this.#everywhere()).filter((one) => one.isHeld).slice(0, mostAsked)
    if (waiting.length === 0) return undefined
    const terminal = this.#terminal
    const channel = terminal.client?.channel
    if (!channel) return false
    this.#request.reply(true)
    await channel.write(Buffer.from(`${fitted(questionOf(waiting), terminal.size)} `))
    const chunk = await channel.read()
    const typed = chunk?.bytes.toString('latin1') ?? ''
    // A key alone is an answer. A script, earlier input, a report of the terminal and the end of the input
    // are not: they are for the new shell, as they came.
    const key = typed === '\r\n' ? '\r' : typed
    const session = waiting[/^[1-9]$/.test(key) ? Number(key) - 1 : 0]
    const continues = /^[\r\nyYsS1-9]$/.test(key) && session
    await channel.write(Buffer.from('\r\n'))
    if (continues && (await this.#take(session, key.toLowerCase() === 's'))) return false
    if (continues) await channel.write(Buffer.from('That session has ended; starting a new one.\r\n'))
    if (chunk && !/^[\r\nyYnNsS1-9]$/.test(key)) terminal.typedBefore = Buffer.from(chunk.bytes)
    return true
  }

  /** Sessions of all nodes: held ones first, then the newest. */
  async #everywhere(): Promise<Candidate[]> {
    const { held, elsewhere, claim, person, restoring, uid } = this.#parts
    await restoring(claim.device_uid)
    // Without an answer of other nodes, only the sessions of this node are offered.
    const others = (await elsewhere?.(claim, person).catch(() => [])) ?? []
    const here = (await held.continuable(claim))
      .filter((session) => session.uid !== uid)
      .map((session): Candidate => ({
        uid: session.uid,
        started_at: session.started_at,
        isHeld: isHeld(session),
        take: () => Promise.resolve(session),
      }))
    return [...here, ...others].toSorted(byTurn)
  }

  async #take({ uid, take }: Candidate, scrollback: boolean): Promise<boolean> {
    const session = await take(this.#parts.by).catch(() => undefined)
    const held = session && (await continuableTerminal(session))
    const { client, size } = this.#terminal
    if (!held || !client || !size || !isFree(session, held)) return false
    this.#terminal.release()
    this.#parts.onReattached(uid)
    await held.attach(client, size, { scrollback, ...this.#parts.by })
    return true
  }

  async #refuse(answer: () => void, sentence: string): Promise<false> {
    const terminal = this.#terminal
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
}

const nothingSentence = 'You have no such session to continue here.'
const overSentence = 'The session is over, or cannot be reached.'

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
  // Leaves the last column, and one for the space behind a question.
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

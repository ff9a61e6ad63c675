// A terminal that others use beside the person of its session. They watch through the recording; whoever may
// type has a seat here. What they type takes the way of the client's own input, so that limits, the recorder
// and the idle time treat both alike, and the recording says who types. The person of the session is asked in
// a line of their terminal and answers with Ctrl-] and y or n; browsers have buttons. Lines of ours go to the
// screens of people and into the recording, never to the device.
import type { OwnPresence, Participant, ParticipantState, SizeRule } from '@hawser/contract/sharing'
import type { Decision, Seat, SharedTerminal, SharingNote, Visitor } from '../domain/sessions/sharing.ts'
import { limiter } from '../kit/limiter.ts'
import { safeText } from '../kit/log.ts'
import type { Size } from '../recording/journal.ts'
import type { ChannelRecorder } from '../recording/tap.ts'
import { escapeKeys } from './escape-keys.ts'
import type { KeptTerminal } from './kept-terminal.ts'
import { recentUsers } from './recent-users.ts'
import { boundedSize, commonSize } from './shared-size.ts'

export interface SharingParts {
  terminal: Pick<KeptTerminal, 'client' | 'closed' | 'drawAnew' | 'isOver' | 'refit' | 'shared' | 'typeFor'>
  recorder: Pick<ChannelRecorder, 'channel' | 'typist'>
  /** The person of the session. */
  person: string
  /** Shows a line to everybody, in the recording, too. */
  say(text: string): void
  /** Takes a place of the namespace for somebody who types; undefined: there is none. */
  place(): Disposable | undefined
  /** Whether the firewall lets somebody at this address in to the user of this session. */
  mayReach(source: string): Promise<boolean>
  changed(presence: TerminalPresence, notes: readonly SharingNote[]): void
}

export type TerminalPresence = Omit<OwnPresence, 'channel'>

/** The most who may type, or wait to be allowed to, in one terminal. */
const mostTypists = 8

const answer_ms = 60_000
/** A question that the person has called for themselves is dropped without an answer. */
const recall_ms = 10_000
/** A line can be read for so long before full-screen programs draw over it. */
const shown_ms = 1_500
/** After a refusal the same user is not heard for so long. */
const refused_ms = 60_000
/** The same after a question that was taken back. */
const withdrawn_ms = 10_000
/** A guest who is back so soon has not left: their connection was lost. */
const left_ms = 3_000
/**
 * Guests who come more often have left only after the longer time: lines are for people who come and stay.
 */
const visitsOfGuest = { max: 3, window_ms: 600_000 }
const restless_ms = 600_000
/**
 * Questions of one user, and changes of who types; each is a line in the terminal and an entry of the audit
 * log.
 */
const asksOfUser = { max: 10, window_ms: 600_000 }
const turnsOfUser = { max: 30, window_ms: 600_000 }

interface Seated {
  readonly id: number
  readonly visitor: Visitor
  state: ParticipantState
  size: Size | undefined
  place: Disposable | undefined
  /** Whether they may type while the person of the session is away. */
  alone: boolean
  /**
   * Whether the person of the session may be asked about them: the firewall lets them in, and
   * they need consent.
   */
  isPresented: boolean
}

export function sharedTerminal(parts: SharingParts): SharedTerminal & { decide(decision: Decision): void } {
  const { terminal, recorder } = parts
  const person = safeText(parts.person, 64)
  const seats = new Map<number, Seated>()
  /** Users who may not ask again yet. */
  const refused = recentUsers()
  /** Guests whose coming was told, and not their leaving; with a timer when they may have left. */
  const guests = new Map<string, { readonly isRestless: boolean; timer?: NodeJS.Timeout }>()
  const visits = limiter(performance, visitsOfGuest)
  const asks = limiter(performance, asksOfUser)
  const turns = limiter(performance, turnsOfUser)
  let last = 0
  /** Who alone types; undefined: everybody who may. */
  let driver: number | undefined
  /** The person's turns since the last one that was announced. */
  let untold = 0
  let rule: SizeRule = 'smallest'
  /** The question on the person's screen; without a seat: whether everybody goes back to watching. */
  let asked: { readonly seat: Seated | undefined; readonly timer: NodeJS.Timeout } | undefined

  const all = (): Seated[] => [...seats.values()]
  const nameOf = ({ visitor: { name, invitedBy } }: Seated): string => {
    const by = invitedBy === undefined ? '' : `, invited by ${safeText(invitedBy, 64)},`
    return `${safeText(name, 64)}${by}`
  }
  /** Our lines stand in the middle of whatever a program has drawn; some time later it draws that again. */
  let drawing: NodeJS.Timeout | undefined
  const line = (sentence: string): void => {
    parts.say(`\r\n[${sentence}]\r\n`)
    clearTimeout(drawing)
    drawing = setTimeout(() => {
      // A question stays until it is answered.
      if (!asked) terminal.drawAnew()
    }, shown_ms).unref()
  }
  const nameById = (id: number): string => {
    const seat = seats.get(id)
    return seat ? nameOf(seat) : person
  }

  function changed(...notes: SharingNote[]): void {
    const others = all().map((seat): Participant => ({
      id: seat.id,
      name: seat.visitor.name,
      state: seat.state,
      ...(seat.visitor.invitedBy === undefined ? {} : { invited_by: seat.visitor.invitedBy }),
    }))
    const people: Participant[] = [{ id: 0, name: parts.person, state: 'typing' }, ...others]
    const presence = { people, driver: driver ?? null, size: rule }
    for (const { id, visitor } of seats.values()) visitor.present({ ...presence, kind: 'present', you: id })
    // Who is not presented yet is of no interest to somebody who is asked.
    const presented = people.map((one) => (seats.get(one.id)?.isPresented === false ? asWatching(one) : one))
    parts.changed({ ...presence, people: presented, you: 0 }, notes)
    terminal.refit()
  }
  const note = (
    action: SharingNote['action'],
    by: Seated | undefined,
    detail: SharingNote['detail'] = {},
  ): SharingNote => ({ action, by: by?.visitor.caller, detail })

  // ---- consent

  function askNext(): void {
    if (asked) return
    const seat = all().find(({ state, isPresented }) => state === 'asking' && isPresented)
    if (!seat) return
    const timer = setTimeout(() => refuse(seat, `${person} did not answer.`), answer_ms).unref()
    asked = { seat, timer }
    line(`${nameOf(seat)} asks to type here: Ctrl-] then y allows it, Ctrl-] then n refuses`)
  }

  /** Asks whether everybody goes back to watching, for those who have no buttons. */
  function askBack(): void {
    if (asked || !all().some(({ state }) => state === 'typing')) return
    const timer = setTimeout(() => {
      answered(undefined)
      terminal.drawAnew()
      askNext()
    }, recall_ms).unref()
    asked = { seat: undefined, timer }
    line('Ctrl-] then y sends everybody back to watching, Ctrl-] then n does not')
  }

  function answered(seat: Seated | undefined): void {
    if (!asked || asked.seat !== seat) return
    clearTimeout(asked.timer)
    asked = undefined
  }

  /** Each question is a line in somebody's terminal: nobody is asked about the same user again and again. */
  function hush({ visitor: { caller } }: Seated, for_ms: number): void {
    if (caller.kind === 'user') refused.add(caller.id, for_ms)
  }

  function refuse(seat: Seated, sentence: string): void {
    if (seat.state !== 'asking') return
    answered(seat)
    release(seat)
    hush(seat, refused_ms)
    line(`${nameOf(seat)} may not type here`)
    changed(note('session.consent.refused', undefined, { who: seat.visitor.name, why: sentence }))
    seat.visitor.dismissed(sentence)
    askNext()
  }

  function admit(seat: Seated, by: 'consent' | 'unasked'): void {
    answered(seat)
    seat.state = 'typing'
    seat.alone = by === 'unasked'
    line(`${nameOf(seat)} types here, too; Ctrl-] three times asks whether that ends`)
    const who = { who: seat.visitor.name }
    changed(
      ...(by === 'consent' ? [note('session.consent.given', undefined, who)] : []),
      note('session.joined', seat, { by }),
    )
    seat.visitor.admitted()
    askNext()
  }

  function release(seat: Seated): void {
    seat.place?.[Symbol.dispose]()
    seat.place = undefined
    seat.state = 'watching'
    seat.alone = false
    seat.isPresented = false
    if (driver === seat.id) driver = undefined
  }

  /** Somebody who typed, or asked, does not any more. */
  function stop(seat: Seated, sentence: string): void {
    const before = seat.state
    answered(seat)
    release(seat)
    if (before === 'typing') {
      line(`${nameOf(seat)} ${seats.has(seat.id) ? 'only watches now' : 'has left'}`)
      changed(note('session.left', seat))
    } else {
      if (before === 'asking') hush(seat, withdrawn_ms)
      changed()
    }
    if (seats.has(seat.id) && before !== 'watching') seat.visitor.dismissed(sentence)
    askNext()
  }

  // ---- who types

  const mayDrive = (id: number): boolean => id === 0 || seats.get(id)?.state === 'typing'

  function drive(by: number, to: number | undefined): void {
    if (!mayDrive(by) || (to !== undefined && !mayDrive(to)) || driver === to) return
    const actor = seats.get(by)
    const isOften = turns.take(actor ? idOf(actor) : '') > 0
    if (actor && isOften) return actor.visitor.note('You changed who types too often; wait a few minutes.')
    driver = to
    // Nobody keeps the person from their own keyboard: more turns count, but are no lines and no entries.
    if (isOften) {
      untold += 1
      return changed()
    }
    const more = !actor && untold > 0 ? { untold } : {}
    if (!actor) untold = 0
    if (to === undefined) {
      line('everybody types')
      changed(note('session.control.shared', actor, more))
    } else {
      line(`only ${nameById(to)} types now`)
      changed(
        to === by
          ? note('session.control.taken', actor, more)
          : note('session.control.handed', actor, { to: nameById(to), ...more }),
      )
    }
  }

  function sendBack(): void {
    for (const seat of all())
      if (seat.state !== 'watching') stop(seat, `${person} sent everybody back to watching.`)
  }

  terminal.shared = {
    typed: escapeKeys({
      question: () => asked,
      answer(yes, about) {
        // An answer is for the question that stood when it was begun, and not for one that has
        // just taken its place.
        if (asked !== about) return
        const { seat } = about
        if (seat && yes) admit(seat, 'consent')
        else if (seat) refuse(seat, `${person} refused.`)
        else {
          if (yes) sendBack()
          else terminal.drawAnew()
          answered(undefined)
          askNext()
        }
      },
      called: askBack,
      typed() {
        if (last === 0) return
        if (driver !== undefined && driver !== 0) drive(0, 0)
        recorder.typist(parts.person)
      },
    }),
    fit(own: Size): Size {
      const typing = all().filter(({ state }) => state === 'typing')
      if (typing.length === 0) return own
      if (rule === 'driver') return boundedSize(seats.get(driver ?? 0)?.size ?? own)
      const sizes = typing.flatMap(({ size }) => size ?? [])
      return commonSize(own, sizes)
    },
    isAttended: () => seats.size > 0,
  }
  void terminal.closed.then(() => {
    if (asked) clearTimeout(asked.timer)
    clearTimeout(drawing)
    for (const { timer } of guests.values()) clearTimeout(timer)
  })

  return {
    enter(visitor) {
      const seat: Seated = {
        id: ++last,
        visitor,
        state: 'watching',
        size: undefined,
        place: undefined,
        alone: false,
        isPresented: false,
      }
      seats.set(seat.id, seat)
      announce(seat)
      changed()
      return seatOf(seat)
    },
    decide,
  }

  /**
   * Those who supervise come and go without a word; a guest does not. All windows of a guest are one, and so is
   * whoever is back in a moment, or comes all the time.
   */
  function announce(seat: Seated): void {
    const id = guestOf(seat)
    if (id === undefined) return
    const known = guests.get(id)
    if (known) return clearTimeout(known.timer)
    guests.set(id, { isRestless: visits.take(id) > 0 })
    line(`${nameOf(seat)} watches`)
  }

  /** A seat of a guest is empty; `isTold`: everybody has read that they left. */
  function leave(seat: Seated, isTold: boolean): void {
    const id = guestOf(seat)
    if (id === undefined || all().some((one) => guestOf(one) === id)) return
    const guest = guests.get(id)
    if (!guest) return
    const { isRestless } = guest
    if ((isTold && !isRestless) || terminal.isOver) return void guests.delete(id)
    guest.timer = setTimeout(
      () => {
        guests.delete(id)
        if (!isTold) line(`${nameOf(seat)} has left`)
      },
      isRestless ? restless_ms : left_ms,
    ).unref()
  }

  async function ask(seat: Seated): Promise<void> {
    const { visitor } = seat
    if (seat.state !== 'watching' || !seats.has(seat.id)) return
    if (visitor.mayNotAsk !== undefined) return visitor.dismissed(visitor.mayNotAsk)
    if (visitor.caller.kind !== 'user')
      return visitor.dismissed('Only people may type in a session of others.')
    if (refused.has(visitor.caller.id))
      return visitor.dismissed('You asked, or were refused, a moment ago; wait a minute.')
    const { id } = visitor.caller
    const isOwn = ({ visitor: { caller } }: Seated): boolean => caller.kind === 'user' && caller.id === id
    // One answer is for all windows of a user.
    if (all().some((one) => one.state === 'asking' && isOwn(one)))
      return visitor.dismissed('You ask here already.')
    if (all().filter(({ state }) => state !== 'watching').length >= mostTypists)
      return visitor.dismissed('Too many type in this session already.')
    if (asks.take(id) > 0) return visitor.dismissed('You asked too often; wait a few minutes.')
    seat.place = parts.place()
    if (!seat.place) return visitor.dismissed('Too many type in sessions of this namespace already.')
    seat.state = 'asking'
    const [isLetIn, isFree] = await Promise.all([
      parts.mayReach(visitor.caller.source).catch(() => false),
      visitor.needsNoConsent().catch(() => false),
    ])
    // They may have left, or have thought better of it.
    if (seat.state !== 'asking' || !seats.has(seat.id)) return
    if (!isLetIn) return stop(seat, 'A firewall rule of the namespace does not allow this.')
    if (isFree) return admit(seat, 'unasked')
    if (!terminal.client) return stop(seat, 'Nobody is at the session now who could allow it.')
    seat.isPresented = true
    changed()
    askNext()
  }

  /** The person of the session decides with a button, by name: no question can take the place of another. */
  function decide(decision: Decision): void {
    const seat = 'who' in decision ? seats.get(decision.who) : undefined
    const isAsking = seat?.state === 'asking' && seat.isPresented
    if (decision.kind === 'allow' && isAsking) admit(seat, 'consent')
    else if (decision.kind === 'refuse' && isAsking) refuse(seat, `${person} refused.`)
    else if (decision.kind === 'dismiss' && seat?.state === 'typing')
      stop(seat, `${person} sent you back to watching.`)
    else if (decision.kind === 'take') drive(0, 0)
    else if (decision.kind === 'share') drive(0, undefined)
    else if (decision.kind === 'hand') drive(0, decision.to)
    else if (decision.kind === 'size') follow(decision.follow)
  }

  function follow(wanted: SizeRule): void {
    if (rule === wanted) return
    rule = wanted
    changed()
  }

  function seatOf(seat: Seated): Seat {
    return {
      get mayType() {
        return seat.state === 'typing'
      },
      get hasConsent() {
        return seat.state === 'typing' && !seat.alone
      },
      ask: async () => ask(seat),
      async type(bytes) {
        if (!seats.has(seat.id) || seat.state !== 'typing' || (driver !== undefined && driver !== seat.id))
          return
        if (recorder.channel === undefined) return seat.visitor.note('The session is not recorded now.')
        if (!terminal.client && !seat.alone)
          return seat.visitor.note(`${person} is away; wait until they are back.`)
        const { caller, name } = seat.visitor
        recorder.typist(name, caller.kind === 'user' ? caller.id : undefined)
        await terminal.typeFor(bytes)
      },
      watch: () => stop(seat, 'You watch only.'),
      withdraw: (sentence) => stop(seat, sentence),
      take: () => drive(seat.id, seat.id),
      hand: (to) => drive(seat.id, to),
      share: () => drive(seat.id, undefined),
      resize(size) {
        seat.size = size
        terminal.refit()
      },
      follow(wanted) {
        if (seat.state === 'typing') follow(wanted)
      },
      [Symbol.dispose]() {
        if (!seats.delete(seat.id)) return
        const isTold = seat.state === 'typing'
        stop(seat, '')
        leave(seat, isTold)
      },
    }
  }
}

const idOf = ({ visitor: { caller } }: Seated): string => (caller.kind === 'user' ? caller.id : caller.name)

/** The user who has come by an invitation; undefined: nobody has. */
const guestOf = ({ visitor: { caller, invitedBy } }: Seated): string | undefined =>
  invitedBy !== undefined && caller.kind === 'user' ? caller.id : undefined

const asWatching = (one: Participant): Participant =>
  one.state === 'asking' ? { ...one, state: 'watching' } : one

// A terminal that the person of its session shares with guests. They watch through the recording, and each
// has a seat here. Their input takes the way of the client's own, so that limits, the recorder and the idle
// time treat both alike, and the recording names who types. The person answers questions in their terminal
// with Ctrl-] and y or n; browsers have buttons. Our lines go to the screens of people and into the
// recording, never to the device.
import { defined } from '@hawser/contract/defined'
import { sessionLimits } from '@hawser/contract/limits'
import type { Participant, ParticipantState, Presence, SizeRule } from '@hawser/contract/sharing'
import type { Decision, Seat, SharedTerminal, SharingNote, Visitor } from '../../domain/sessions/sharing.ts'
import { limiter } from '../../kit/limiter.ts'
import { safeText } from '../../kit/log.ts'
import type { Size } from '../../recording/journal.ts'
import { escapeKeys } from './escape-keys.ts'
import type { Terminal } from './terminal.ts'
import { Guests } from './guests.ts'
import { recentUsers } from './recent-users.ts'
import { boundedSize, commonSize } from './size.ts'

export interface SharingParts {
  terminal: Pick<
    Terminal,
    'client' | 'closed' | 'drawAnew' | 'isOver' | 'recorder' | 'refit' | 'say' | 'sharing' | 'typeFor'
  >
  person: string
  /** Takes a place of the namespace for a guest who types; undefined: none is free. */
  place(): Disposable | undefined
  /** Whether the firewall admits this address to the user of this session. */
  mayReach(source: string): Promise<boolean>
  changed(presence: Presence, notes: readonly SharingNote[]): void
}

const answer_ms = 60_000
/** The question whether everybody goes back to watching, which the person asked for, is dropped without an answer. */
const recall_ms = 10_000
/** Time to read a line before full-screen programs draw over it. */
const shown_ms = 1_500
/** How long a user must wait to ask again after a refusal, or after withdrawing a question. */
const refused_ms = 60_000
const withdrawn_ms = 10_000

interface Seated {
  readonly id: number
  readonly visitor: Visitor
  state: ParticipantState
  size: Size | undefined
  place: Disposable | undefined
  /** Whether they may type while the person of the session is away. */
  alone: boolean
  /**
   * Whether the person of the session may be asked about them: the firewall admits them, and they need
   * consent.
   */
  isPresented: boolean
}

interface Question {
  readonly seat: Seated | undefined
  readonly timer: NodeJS.Timeout
}

export class TerminalSeats implements SharedTerminal {
  readonly #parts: SharingParts
  readonly #terminal: SharingParts['terminal']
  readonly #person: string
  readonly #seats = new Map<number, Seated>()
  /** Users who must wait before they ask again. */
  readonly #refused = recentUsers()
  readonly #guests = new Guests((sentence) => this.#line(sentence))
  readonly #asks = limiter(performance, sessionLimits.asking)
  readonly #turns = limiter(performance, sessionLimits.turns)
  #last = 0
  /** The only one who types; undefined: everybody who may. */
  #driver: number | undefined
  /** Turns of the person since the last one that was announced. */
  #untold = 0
  #rule: SizeRule = 'smallest'
  #question: Question | undefined
  #drawing: NodeJS.Timeout | undefined

  constructor(parts: SharingParts) {
    this.#parts = parts
    this.#terminal = parts.terminal
    this.#person = safeText(parts.person, 64)
    this.#terminal.sharing = {
      typed: escapeKeys({
        question: () => this.#question,
        answer: (yes, about) => this.#answer(yes, about),
        called: () => this.#askBack(),
        typed: () => this.#personTyped(),
      }),
      fit: (own) => this.#fit(own),
      isAttended: () => this.#seats.size > 0,
    }
    void this.#terminal.closed.then(() => {
      clearTimeout(this.#question?.timer)
      clearTimeout(this.#drawing)
      this.#guests.forget()
    })
  }

  enter(visitor: Visitor): Seat {
    const seat: Seated = {
      id: ++this.#last,
      visitor,
      state: 'watching',
      size: undefined,
      place: undefined,
      alone: false,
      isPresented: false,
    }
    this.#seats.set(seat.id, seat)
    const guest = guestOf(seat)
    if (guest !== undefined) this.#guests.arrived(guest, nameOf(seat))
    this.#changed()
    return this.#seatOf(seat)
  }

  decide(decision: Decision): void {
    const seat = 'who' in decision ? this.#seats.get(decision.who) : undefined
    const isAsking = seat?.state === 'asking' && seat.isPresented
    if (decision.kind === 'allow' && isAsking) this.#admit(seat, 'consent')
    else if (decision.kind === 'refuse' && isAsking) this.#refuse(seat, `${this.#person} refused.`)
    else if (decision.kind === 'dismiss' && seat?.state === 'typing')
      this.#stop(seat, `${this.#person} sent you back to watching.`)
    else if (decision.kind === 'take') this.#drive(0, 0)
    else if (decision.kind === 'share') this.#drive(0, undefined)
    else if (decision.kind === 'hand') this.#drive(0, decision.to)
    else if (decision.kind === 'size') this.#follow(decision.follow)
  }

  // ---- who is here

  #all(): Seated[] {
    return [...this.#seats.values()]
  }

  /** Shows a line over the program's output, which is drawn again some time later. */
  #line(sentence: string): void {
    this.#terminal.say(`\r\n[${sentence}]\r\n`)
    clearTimeout(this.#drawing)
    this.#drawing = setTimeout(() => {
      // A question stays until it is answered.
      if (!this.#question) this.#terminal.drawAnew()
    }, shown_ms).unref()
  }

  #nameById(id: number): string {
    const seat = this.#seats.get(id)
    return seat ? nameOf(seat) : this.#person
  }

  #changed(...notes: SharingNote[]): void {
    const others = this.#all().map(({ id, state, visitor: { name, invitedBy } }): Participant => ({
      ...defined({ id, name, state, invited_by: invitedBy }),
    }))
    const people: Participant[] = [{ id: 0, name: this.#parts.person, state: 'typing' }, ...others]
    const presence = { kind: 'present', people, driver: this.#driver ?? null, size: this.#rule } as const
    for (const { id, visitor } of this.#seats.values()) visitor.present({ ...presence, you: id })
    // Who is not presented yet is of no interest to the person who decides.
    const presented = people.map((one) =>
      this.#seats.get(one.id)?.isPresented === false ? asWatching(one) : one,
    )
    this.#parts.changed({ ...presence, people: presented, you: 0 }, notes)
    this.#terminal.refit()
  }

  #fit(own: Size): Size {
    const typing = this.#all().filter(({ state }) => state === 'typing')
    if (typing.length === 0) return own
    if (this.#rule === 'driver') return boundedSize(this.#seats.get(this.#driver ?? 0)?.size ?? own)
    return commonSize(
      own,
      typing.flatMap(({ size }) => size ?? []),
    )
  }

  #follow(wanted: SizeRule): void {
    if (this.#rule === wanted) return
    this.#rule = wanted
    this.#changed()
  }

  #release(seat: Seated): void {
    seat.place?.[Symbol.dispose]()
    seat.place = undefined
    seat.state = 'watching'
    seat.alone = false
    seat.isPresented = false
    if (this.#driver === seat.id) this.#driver = undefined
  }

  #stop(seat: Seated, sentence: string): void {
    const before = seat.state
    const isHere = this.#seats.has(seat.id)
    this.#answered(seat)
    this.#release(seat)
    if (before === 'typing') {
      this.#line(`${nameOf(seat)} ${isHere ? 'only watches now' : 'has left'}`)
      this.#changed(note('session.left', seat))
    } else {
      if (before === 'asking') this.#hush(seat, withdrawn_ms)
      this.#changed()
    }
    if (isHere && before !== 'watching') seat.visitor.dismissed(sentence)
    this.#askNext()
  }

  #leave(seat: Seated): void {
    if (!this.#seats.delete(seat.id)) return
    const isTold = seat.state === 'typing'
    this.#stop(seat, '')
    const guest = guestOf(seat)
    if (guest === undefined || this.#all().some((one) => guestOf(one) === guest)) return
    if (!this.#terminal.isOver) this.#guests.left(guest, nameOf(seat), isTold)
  }

  // ---- consent

  async #ask(seat: Seated): Promise<void> {
    const { visitor } = seat
    if (seat.state !== 'watching' || !this.#seats.has(seat.id)) return
    const why = this.#mayNotAsk(seat)
    if (why !== undefined) return visitor.dismissed(why)
    seat.place = this.#parts.place()
    if (!seat.place) return visitor.dismissed(sessionLimits.typistsOfNamespace.message)
    seat.state = 'asking'
    const [isLetIn, isFree] = await Promise.all([
      this.#parts.mayReach(visitor.caller.source).catch(() => false),
      visitor.needsNoConsent().catch(() => false),
    ])
    // The guest may have left, or withdrawn the question.
    if (seat.state !== 'asking' || !this.#seats.has(seat.id)) return
    if (!isLetIn) return this.#stop(seat, 'A firewall rule of the namespace does not allow this.')
    if (isFree) return this.#admit(seat, 'unasked')
    if (!this.#terminal.client) return this.#stop(seat, 'Nobody is at the session now who could allow it.')
    seat.isPresented = true
    this.#changed()
    this.#askNext()
  }

  #mayNotAsk({ visitor }: Seated): string | undefined {
    if (visitor.mayNotAsk !== undefined) return visitor.mayNotAsk
    if (visitor.caller.kind !== 'user') return 'Only people may type in a session of others.'
    const { id } = visitor.caller
    if (this.#refused.has(id)) return 'You asked, or were refused, a moment ago; wait a minute.'
    const seats = this.#all()
    // One answer is for all windows of a user.
    if (seats.some((one) => one.state === 'asking' && idOf(one) === id)) return 'You ask here already.'
    if (seats.filter(({ state }) => state !== 'watching').length >= sessionLimits.typists.max)
      return sessionLimits.typists.message
    return this.#asks.take(id) > 0 ? sessionLimits.asking.message : undefined
  }

  #askNext(): void {
    if (this.#question) return
    const seat = this.#all().find(({ state, isPresented }) => state === 'asking' && isPresented)
    if (!seat) return
    const timer = setTimeout(() => this.#refuse(seat, `${this.#person} did not answer.`), answer_ms).unref()
    this.#question = { seat, timer }
    this.#line(`${nameOf(seat)} asks to type here: Ctrl-] then y allows it, Ctrl-] then n refuses`)
  }

  /** Asks whether everybody goes back to watching, for people without buttons. */
  #askBack(): void {
    if (this.#question || !this.#all().some(({ state }) => state === 'typing')) return
    const timer = setTimeout(() => {
      this.#answered(undefined)
      this.#terminal.drawAnew()
      this.#askNext()
    }, recall_ms).unref()
    this.#question = { seat: undefined, timer }
    this.#line('Ctrl-] then y sends everybody back to watching, Ctrl-] then n does not')
  }

  /** Answers the question that was open when the key was typed, not one that has replaced it. */
  #answer(yes: boolean, about: Question): void {
    if (this.#question !== about) return
    const { seat } = about
    if (seat && yes) return this.#admit(seat, 'consent')
    if (seat) return this.#refuse(seat, `${this.#person} refused.`)
    if (yes) {
      for (const one of this.#all())
        if (one.state !== 'watching') this.#stop(one, `${this.#person} sent everybody back to watching.`)
    } else this.#terminal.drawAnew()
    this.#answered(undefined)
    this.#askNext()
  }

  #answered(seat: Seated | undefined): void {
    if (!this.#question || this.#question.seat !== seat) return
    clearTimeout(this.#question.timer)
    this.#question = undefined
  }

  /**
   * Each question is a line in somebody's terminal, so nobody is asked about the same user again and again.
   */
  #hush({ visitor: { caller } }: Seated, for_ms: number): void {
    if (caller.kind === 'user') this.#refused.add(caller.id, for_ms)
  }

  #refuse(seat: Seated, sentence: string): void {
    if (seat.state !== 'asking') return
    this.#answered(seat)
    this.#release(seat)
    this.#hush(seat, refused_ms)
    this.#line(`${nameOf(seat)} may not type here`)
    this.#changed(note('session.consent.refused', undefined, { who: seat.visitor.name, why: sentence }))
    seat.visitor.dismissed(sentence)
    this.#askNext()
  }

  #admit(seat: Seated, by: 'consent' | 'unasked'): void {
    this.#answered(seat)
    seat.state = 'typing'
    seat.alone = by === 'unasked'
    this.#line(`${nameOf(seat)} can now type here; to end that, press Ctrl-] three times`)
    const who = { who: seat.visitor.name }
    this.#changed(
      ...(by === 'consent' ? [note('session.consent.given', undefined, who)] : []),
      note('session.joined', seat, { by }),
    )
    seat.visitor.admitted()
    this.#askNext()
  }

  // ---- who types

  #personTyped(): void {
    if (this.#last === 0) return
    if (this.#driver !== undefined && this.#driver !== 0) this.#drive(0, 0)
    this.#terminal.recorder?.typist(this.#parts.person)
  }

  #mayDrive(id: number): boolean {
    return id === 0 || this.#seats.get(id)?.state === 'typing'
  }

  #drive(by: number, to: number | undefined): void {
    if (!this.#mayDrive(by) || (to !== undefined && !this.#mayDrive(to)) || this.#driver === to) return
    const actor = this.#seats.get(by)
    const isOften = this.#turns.take(actor ? idOf(actor) : '') > 0
    if (actor && isOften) return actor.visitor.note(sessionLimits.turns.message)
    this.#driver = to
    // The person always has their own keyboard: further turns count, but are not announced or audited.
    if (isOften) {
      this.#untold += 1
      return this.#changed()
    }
    const more = !actor && this.#untold > 0 ? { untold: this.#untold } : {}
    if (!actor) this.#untold = 0
    if (to === undefined) {
      this.#line('everybody types')
      return this.#changed(note('session.control.shared', actor, more))
    }
    const name = this.#nameById(to)
    this.#line(`only ${name} types now`)
    const taken = note('session.control.taken', actor, more)
    this.#changed(to === by ? taken : note('session.control.handed', actor, { to: name, ...more }))
  }

  async #type(seat: Seated, bytes: Uint8Array): Promise<void> {
    if (!this.#seats.has(seat.id) || seat.state !== 'typing') return
    if (this.#driver !== undefined && this.#driver !== seat.id) return
    const { caller, name, note: tell } = seat.visitor
    const { recorder, client } = this.#terminal
    if (recorder?.channel === undefined) return tell('The session is not recorded now.')
    if (!client && !seat.alone) return tell(`${this.#person} is away; wait until they are back.`)
    recorder.typist(name, caller.kind === 'user' ? caller.id : undefined)
    await this.#terminal.typeFor(bytes)
  }

  #seatOf(seat: Seated): Seat {
    return {
      get mayType() {
        return seat.state === 'typing'
      },
      get hasConsent() {
        return seat.state === 'typing' && !seat.alone
      },
      ask: async () => this.#ask(seat),
      type: async (bytes) => this.#type(seat, bytes),
      watch: () => this.#stop(seat, 'You watch only.'),
      withdraw: (sentence) => this.#stop(seat, sentence),
      take: () => this.#drive(seat.id, seat.id),
      hand: (to) => this.#drive(seat.id, to),
      share: () => this.#drive(seat.id, undefined),
      resize: (size) => {
        seat.size = size
        this.#terminal.refit()
      },
      follow: (wanted) => {
        if (seat.state === 'typing') this.#follow(wanted)
      },
      [Symbol.dispose]: () => this.#leave(seat),
    }
  }
}

const nameOf = ({ visitor: { name, invitedBy } }: Seated): string => {
  const by = invitedBy === undefined ? '' : `, invited by ${safeText(invitedBy, 64)},`
  return `${safeText(name, 64)}${by}`
}

const note = (
  action: SharingNote['action'],
  by: Seated | undefined,
  detail: SharingNote['detail'] = {},
): SharingNote => ({ action, by: by?.visitor.caller, detail })

const idOf = ({ visitor: { caller } }: Seated): string => (caller.kind === 'user' ? caller.id : caller.name)

/** The user who has come by an invitation. */
const guestOf = ({ visitor: { caller, invitedBy } }: Seated): string | undefined =>
  invitedBy !== undefined && caller.kind === 'user' ? caller.id : undefined

const asWatching = (one: Participant): Participant =>
  one.state === 'asking' ? { ...one, state: 'watching' } : one

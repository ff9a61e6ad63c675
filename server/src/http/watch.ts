// The door for those who watch a session that is going on, and for those who type in it: GET
// /api/sessions/:uid/live, a WebSocket. Binary messages are bytes of the terminal, text messages are JSON: first
//   {"kind":"screen","width":…,"height":…}   the binary message after it draws the screen as it is now
//   {"kind":"resize","width":…,"height":…}   the terminal has another size from here on
//   {"kind":"end","message":…}               the last one: the session is over, or why there is nothing to see
// and those of contract/src/sharing.ts. Whoever may play the recording watches at once. Operators (`?join`) are shown
// nothing before the person of the session allows them to type. Browsers cannot set headers: they come with a ticket,
// `?ticket=`, which is good once, and only for a page of ours. Who loses the right to be there is shown out
// at once.
import { contract } from '@hawser/contract'
import { rank } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import { livePath } from '@hawser/contract/sessions'
import { longestMessage_bytes, ParticipantMessage, type LiveMessage } from '@hawser/contract/sharing'
import { acceptWebSocket, keepalive, UpgradeFailed } from '@hawser/mux'
import type { Gate, MemberCaller } from '../domain/callers/callers.ts'
import type { SessionWatching } from '../domain/sessions/sessions.ts'
import type { Seat, SharedTerminal } from '../domain/sessions/sharing.ts'
import type { WatchingCaller, WatchTickets } from '../domain/sessions/watch-tickets.ts'
import { limiter } from '../kit/limiter.ts'
import { messagesOfPerson } from './message-socket.ts'
import { permission, recheckAll, type Permission } from './permission.ts'
import { requireOwnPage, type Upgrade } from './upgrade.ts'
import { checker } from './validate.ts'
import type { Viewer } from '../recording/live.ts'

export const watchPath = livePath

const ping = { every_ms: 30_000, timeout_ms: 15_000, mustAnswer_ms: 300_000 }
/** Who asks may not; anything else says nothing about them. */
const refusals = new Set([401, 403])
const goodbye = 1000
const goingAway = 1001

/**
 * Live views of one namespace on this node, and guests beside them, who have come to type: each is a socket, and a
 * screen that is drawn for it. Neither takes the places of the other, and no guest those of all.
 */
export const mostOfNamespace = 64
export const mostOfGuest = 8

/** Memory that a message takes besides its bytes while it waits to be sent. */
const message_bytes = 256
/** The most memory that may wait for one viewer; output has the same bound in recording/live.ts. */
const mostWaiting_bytes = 4 * 1024 * 1024

type Socket = Awaited<ReturnType<typeof acceptWebSocket>>

const fits = checker(ParticipantMessage)

/** Whoever may play the recording, and whoever was invited. */
const mayWatch = (caller: WatchingCaller): boolean =>
  caller.invited !== undefined || rank(caller.role) >= rank('administrator')

export interface WatchParts {
  gate: Gate
  tickets: Pick<WatchTickets, 'take'>
  sessions: SessionWatching
  /** The terminal behind a recorded channel of a session; undefined: nobody else can use it. */
  shared(uid: string, channel: number): SharedTerminal | undefined
  /** Whether this node has the session. */
  isHere(uid: string): boolean
  /** The address that e-mails name: pages from there are ours, too. */
  url: string
  onError(error: unknown): void
}

export function watchEndpoint({ gate, tickets, sessions, shared, isHere, url, onError }: WatchParts) {
  const sockets = new Set<Socket>()
  const viewers = new Set<{
    readonly user_id: string
    readonly tenant_id: string
    readonly permission: Permission
  }>()

  /** Who is there, as often as it is asked: rights may end. */
  function admission(upgrade: Upgrade): { isGuest: boolean; admit(): Promise<WatchingCaller> } {
    const { bearer, apiKey, query, params, from } = upgrade
    const ticket = query.get('ticket')
    if (ticket !== null) {
      const { purpose, authorise } = tickets.take(ticket, params['uid'] ?? '')
      return { isGuest: purpose !== 'watch', admit: async () => authorise(from) }
    }
    const { join, play } = contract.sessions
    const isGuest = query.has('join')
    const admit = async () =>
      (await gate.admit(
        (isGuest ? join : play).access,
        { bearer, apiKey, tenant: undefined },
        from,
        (caller) => void (upgrade.caller = caller),
      )) as MemberCaller
    return { isGuest, admit }
  }

  /** Live views by namespace and by guest, with those that are being opened. */
  const views = new Map<string, number>()

  function count(whose: string, most: number, message: string): Disposable {
    const open = views.get(whose) ?? 0
    if (open >= most) throw new Failure('tooMany', { message })
    views.set(whose, open + 1)
    return {
      [Symbol.dispose]() {
        const left = (views.get(whose) ?? 1) - 1
        if (left === 0) views.delete(whose)
        else views.set(whose, left)
      },
    }
  }

  function countView({ tenant_id, ...caller }: MemberCaller, isGuest: boolean): Disposable {
    const most = mostOfNamespace
    if (!isGuest)
      return count(tenant_id, most, `The namespace has ${most} live views open already; close one of them.`)
    using both = new DisposableStack()
    const user = caller.kind === 'user' ? caller.id : ''
    both.use(
      count(
        `${tenant_id} ${user}`,
        mostOfGuest,
        `You are in ${mostOfGuest} sessions already; leave one of them.`,
      ),
    )
    both.use(count(`${tenant_id} guests`, most, `The namespace has ${most} guests already.`))
    return both.move()
  }

  /** What there is to see of a session. */
  async function find(
    uid: string,
    query: URLSearchParams,
    caller: WatchingCaller,
    visiting: DisposableStack,
  ) {
    const isViewer = mayWatch(caller)
    const recording = isViewer
      ? visiting.use(await sessions.watch(uid, channelOf(query), caller)).recording
      : await sessions.find(uid, channelOf(query), caller)
    const terminal = shared(uid, recording.name.channel)
    if (!isViewer && !terminal)
      throw new Failure('conflict', { message: 'Nobody else can type in this session.' })
    return { recording, terminal }
  }

  async function enter(upgrade: Upgrade): Promise<void> {
    const { params, query } = upgrade
    // Before the ticket is redeemed, which works once. Programs have no page.
    if (upgrade.request.headers.origin !== undefined) requireOwnPage(upgrade, url)
    const { isGuest, admit } = admission(upgrade)
    const caller = await admit()
    const uid = params['uid'] ?? ''
    const isViewer = mayWatch(caller)
    let standing = caller
    const visit: { seat?: Seat } = {}
    using stack = new DisposableStack()
    stack.use(countView(caller, isGuest))
    const found = await find(uid, query, caller, stack).catch((error: unknown) => {
      // A browser cannot read why it was refused, and would try again.
      if (query.has('ticket') && isFinal(error, isHere(uid))) return error
      throw error
    })
    const socket = await accept(upgrade)
    if (found instanceof Failure) {
      const refused = stack.move()
      socket.once('close', () => refused.dispose())
      socket.on('error', ignore)
      socket.resume()
      return viewerAt(socket).end(found.message)
    }
    const { recording, terminal } = found
    sockets.add(socket)
    // From here on nobody may be answered over HTTP any more.
    const allowed = stack.use(
      permission({
        async holds() {
          try {
            standing = await admit()
            const { seat } = visit
            // Whoever needed no consent may need it now.
            const mustAsk =
              seat?.mayType === true && !seat.hasConsent && !(await sessions.needsNoConsent(uid, standing))
            if (!mayWatch(standing)) return seat?.mayType ? !mustAsk : !isViewer
            if (mustAsk) seat.withdraw('You have to ask whether you may type, from now on.')
            return true
          } catch (error) {
            if (error instanceof Failure && refusals.has(error.status)) return false
            throw error
          }
        },
        onLost: () => viewer.end('You may not watch this session any more.'),
        ends_at: query.has('ticket') ? caller.invited?.ends_at : endOf(caller),
      }),
    )
    // An API key may do what its maker may.
    const watcher = {
      user_id: caller.kind === 'key' ? caller.created_by : caller.id,
      tenant_id: caller.tenant_id,
      permission: allowed,
    }
    viewers.add(watcher)
    stack.defer(() => viewers.delete(watcher))
    if (caller.invited) {
      // It ends with the right of whoever has invited them, too.
      const maker = { ...watcher, user_id: caller.invited.maker_id }
      viewers.add(maker)
      stack.defer(() => viewers.delete(maker))
    }
    stack.use(keepalive(socket, ping))
    socket.on('error', () => undefined)
    const shownAt = viewerAt(socket)
    const left = new AbortController()
    socket.once('close', () => left.abort(new Error('the viewer has left')))
    const viewer: TalkingViewer = {
      ...shownAt,
      isGuest,
      gone: left.signal,
      end(message) {
        shownAt.end(message)
        // At once: a client need not heed that its socket is being closed.
        visit.seat?.[Symbol.dispose]()
      },
    }
    const seated = Promise.withResolvers<Seat>()
    if (terminal) hear(socket, seated.promise, viewer)
    socket.resume()
    const show = async (): Promise<void> => {
      try {
        const seat = await recording.watch(viewer)
        void gone.then(() => seat[Symbol.dispose]())
      } catch (error) {
        if (!left.signal.aborted) onError(error)
        viewer.end('The session cannot be shown.')
      }
    }
    const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    const leaving = stack.move()
    void gone.then(() => {
      sockets.delete(socket)
      leaving.dispose()
    })
    if (isViewer) await show()
    if (!terminal || socket.readyState !== socket.OPEN) return
    const seat = seatAt(socket, terminal, caller, {
      uid,
      isViewer,
      show,
      viewer,
      standing: () => standing,
      recheck: allowed.recheck,
    })
    visit.seat = seat
    seated.resolve(seat)
    void gone.then(() => seat[Symbol.dispose]())
    if (!isViewer) await seat.ask()
  }

  /** Seats somebody at a terminal, and hears what they say. */
  function seatAt(
    socket: Socket,
    terminal: SharedTerminal,
    caller: WatchingCaller,
    { uid, isViewer, show, viewer, standing, recheck }: VisitParts,
  ): Seat {
    let isShown = isViewer
    const say = (message: LiveMessage): void => {
      viewer.say(message)
      // Closed without a goodbye, because a goodbye would change who is there while everybody is being told.
      if (viewer.waiting() > mostWaiting_bytes) socket.terminate()
    }
    const seat = terminal.enter({
      caller,
      name: caller.kind === 'key' ? caller.name : caller.username,
      ...(caller.invited ? { invitedBy: caller.invited.maker } : {}),
      ...(caller.invited?.mode === 'watch' ? { mayNotAsk: 'Your invitation is for watching only.' } : {}),
      needsNoConsent: async () => sessions.needsNoConsent(uid, standing()),
      present: say,
      note: (message) => say({ kind: 'note', message }),
      admitted() {
        // What was true when they were let in may have changed by now.
        void recheck()
        if (isShown) return
        isShown = true
        void show()
      },
      dismissed(message) {
        if (mayWatch(standing())) say({ kind: 'note', message })
        else viewer.end(message)
      },
    })
    return seat
  }

  return {
    enter,
    /** Asks again whether these people may go on watching. */
    recheck: async (
      whose: (person: { readonly user_id: string; readonly tenant_id: string }) => boolean,
    ): Promise<void> => recheckAll([...viewers].filter(whose).map(({ permission: its }) => its)),
    close(): void {
      for (const socket of sockets) socket.close(goingAway, 'The server is stopping.')
    },
  }
}

/** Whether somebody who comes again would be refused for the same reason; `isHere`: this node has the session. */
const isFinal = (error: unknown, isHere: boolean): error is Failure =>
  error instanceof Failure && (error.kind === 'conflict' || (error.kind === 'notFound' && isHere))

async function accept({ request, socket, head }: Upgrade): Promise<Socket> {
  return acceptWebSocket(request, socket, head).catch((cause: unknown) => {
    throw cause instanceof UpgradeFailed ? new Failure('invalid', { message: cause.message, cause }) : cause
  })
}

/** When what the caller came with ends, in milliseconds since 1970. A ticket has done its work by now. */
function endOf(caller: MemberCaller): number | undefined {
  return caller.exp === undefined ? undefined : caller.exp * 1000
}

function channelOf(query: URLSearchParams): number | undefined {
  const text = query.get('channel')
  if (text === null) return undefined
  if (!/^\d{1,5}$/.test(text))
    throw new Failure('invalid', { message: 'channel: a whole number is expected' })
  return Number(text)
}

interface VisitParts {
  readonly uid: string
  /** Whether they see the terminal in any case. */
  readonly isViewer: boolean
  readonly viewer: TalkingViewer
  /** Who they are now. */
  standing(): WatchingCaller
  show(): Promise<void>
  recheck(): Promise<void>
}

const ignore = (): void => undefined

interface TalkingViewer extends Viewer {
  say(message: LiveMessage): void
}

/**
 * Takes what a participant says, from when they have a seat on. While the device has no room for what they type, the
 * socket is not read.
 */
function hear(socket: Socket, seated: Promise<Seat>, viewer: TalkingViewer): void {
  const messages = limiter(performance, messagesOfPerson)
  const { say } = viewer
  const take = (seat: Seat, text: Buffer): void => {
    if (messages.take('') > 0) return viewer.end('You sent too many messages.')
    const said = read(text)
    if (!said) return say({ kind: 'note', message: 'The server does not understand this message.' })
    if (said.kind === 'ask') void seat.ask()
    else if (said.kind === 'hand') seat.hand(said.to)
    else if (said.kind === 'resize') seat.resize(said)
    else if (said.kind === 'size') seat.follow(said.follow)
    else seat[said.kind]()
  }
  socket.on('message', (data, isBinary) => {
    const bytes = data as Buffer
    socket.pause()
    void seated
      .then(async (seat) => (isBinary ? seat.type(bytes) : take(seat, bytes)))
      .finally(() => socket.resume())
  })
}

function read(text: Buffer): ParticipantMessage | undefined {
  if (text.length > longestMessage_bytes) return undefined
  try {
    const said: unknown = JSON.parse(text.toString())
    return fits(said) ? (said as ParticipantMessage) : undefined
  } catch {
    return undefined
  }
}

export function viewerAt(socket: Socket): TalkingViewer {
  let waiting_bytes = 0
  const send = (message: string | Buffer): void => {
    const held_bytes = message_bytes + message.length
    waiting_bytes += held_bytes
    socket.send(message, () => void (waiting_bytes -= held_bytes))
  }
  const say = (message: LiveMessage): void => send(JSON.stringify(message))
  return {
    say,
    screen({ width, height }, bytes) {
      say({ kind: 'screen', width, height })
      send(bytes)
    },
    output: send,
    resize: ({ width, height }) => say({ kind: 'resize', width, height }),
    end(message) {
      say({ kind: 'end', message })
      socket.close(goodbye)
    },
    waiting: () => waiting_bytes,
  }
}

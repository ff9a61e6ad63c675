// The door for guests and viewers of a live session: GET /api/sessions/:uid/live, a WebSocket with the messages of
// contract/src/sharing.ts. People who may play the recording watch at once. Operators (`?join`) are shown nothing before
// the person of the session allows them to type. Browsers cannot set headers: they come with a ticket, `?ticket=`, which
// is good once, and only for a page of ours. A visit ends at once with the right to it.
import { contract } from '@hawser/contract'
import { Failure } from '@hawser/contract/failures'
import { beyond, sessionLimits } from '@hawser/contract/limits'
import { livePath } from '@hawser/contract/sessions'
import { Closing } from '@hawser/contract/terminals'
import type { Gate, MemberCaller } from '../domain/callers/callers.ts'
import type { SessionWatching } from '../domain/sessions/sessions.ts'
import type { SharedTerminal } from '../domain/sessions/sharing.ts'
import type { WatchingCaller, WatchTickets } from '../domain/sessions/watch-tickets.ts'
import { placesByKey } from '../kit/concurrency.ts'
import { acceptMessageSocket, type MessageSocket } from './message-socket.ts'
import { recheckAll, type Permission } from './permission.ts'
import { requireOwnPage, type Upgrade } from './upgrade.ts'
import { mayWatch, viewerAt, Visit } from './visit.ts'

export const watchPath = livePath

const ping = { every_ms: 30_000, timeout_ms: 15_000, mustAnswer_ms: 300_000 }

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

/** Who watches, and by whose right. */
interface Watcher {
  readonly user_id: string
  readonly tenant_id: string
  readonly permission: Permission
}

export function watchEndpoint({ gate, tickets, sessions, shared, isHere, url, onError }: WatchParts) {
  const lines = new Set<MessageSocket>()
  const watchers = new Set<Watcher>()
  const takePlace = viewPlaces()

  /** Who is there; asked again, because rights may end. */
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

  /** The recording of a session and its terminal, as far as the caller may see or type. */
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
    using stack = new DisposableStack()
    stack.use(takePlace(caller, isGuest))
    const found = await find(uid, query, caller, stack).catch((error: unknown) => {
      // A browser cannot read why it was refused, and would try again.
      if (query.has('ticket') && isFinal(error, isHere(uid))) return error
      throw error
    })
    // From here on no answer over HTTP is possible.
    const line = await acceptMessageSocket(upgrade, ping)
    if (found instanceof Failure) viewerAt(line).end(found.message)
    lines.add(line)
    stack.defer(() => lines.delete(line))
    const ends_at = query.has('ticket') ? caller.invited?.ends_at : endOf(caller)
    const visit =
      found instanceof Failure
        ? undefined
        : new Visit({ ...found, sessions, uid, line, caller, isGuest, admit, ends_at, onError })
    if (visit) note(caller, stack.use(visit.permission), stack)
    const leaving = stack.move()
    void line.closed.then(() => leaving.dispose())
    await visit?.begin()
  }

  /** Notes by whose right somebody watches, until they leave. */
  function note({ tenant_id, ...caller }: WatchingCaller, its: Permission, stack: DisposableStack): void {
    // An API key may do what its maker may, and a guest is there by the right of the inviter, too.
    const user_id = caller.kind === 'key' ? caller.created_by : caller.id
    const makers = caller.invited ? [caller.invited.maker_id] : []
    for (const id of [user_id, ...makers]) {
      const watcher = { user_id: id, tenant_id, permission: its }
      watchers.add(watcher)
      stack.defer(() => watchers.delete(watcher))
    }
  }

  return {
    enter,
    /** Asks again whether these people may go on watching. */
    recheck: async (whose: (person: Omit<Watcher, 'permission'>) => boolean): Promise<void> =>
      recheckAll([...watchers].filter(whose).map(({ permission: its }) => its)),
    close(): void {
      for (const line of lines) line.close(Closing.leaving)
    },
  }
}

/**
 * Places of live views by namespace and by guest, with those that are being opened. Guests do not take the places of
 * viewers, and no guest takes those of all.
 */
function viewPlaces() {
  const free = {
    views: placesByKey(sessionLimits.views.max),
    guests: placesByKey(sessionLimits.guests.max),
    guestOf: placesByKey(sessionLimits.guestOf.max),
  }
  const take = (which: keyof typeof free, key: string): Disposable => {
    const place = free[which](key)
    if (!place) throw beyond(sessionLimits[which])
    return place
  }
  return ({ tenant_id, ...caller }: MemberCaller, isGuest: boolean): Disposable => {
    if (!isGuest) return take('views', tenant_id)
    using both = new DisposableStack()
    both.use(take('guestOf', `${tenant_id} ${caller.kind === 'user' ? caller.id : ''}`))
    both.use(take('guests', tenant_id))
    return both.move()
  }
}

/** Whether somebody who comes again would be refused for the same reason; `isHere`: this node has the session. */
const isFinal = (error: unknown, isHere: boolean): error is Failure =>
  error instanceof Failure && (error.kind === 'conflict' || (error.kind === 'notFound' && isHere))

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

// The door for those who watch a session that is going on: GET /api/sessions/:uid/live, a WebSocket for
// whoever may play its recording. Binary messages are bytes for a terminal, text messages are JSON:
//   {"kind":"screen","width":…,"height":…}   first; the binary message after it draws the screen as it is now
//   {"kind":"resize","width":…,"height":…}   the terminal has another size from here on
//   {"kind":"end","message":…}               the last one: the session is over, or the viewer was too slow
// What a viewer sends is ignored. Browsers cannot set headers: they come with a ticket, `?ticket=`, which is
// good once. Who loses the right to watch is shown out at once, or, when the news of it did not come, within
// half a minute.
import { contract } from '@hawser/contract'
import { Failure } from '@hawser/contract/failures'
import { livePath } from '@hawser/contract/sessions'
import { acceptWebSocket, keepPinging, UpgradeFailed } from '@hawser/mux'
import type { Gate, MemberCaller } from '../domain/callers/callers.ts'
import type { SessionWatching } from '../domain/sessions/sessions.ts'
import type { WatchTickets } from '../domain/sessions/watch-tickets.ts'
import type { Upgrade } from './upgrade.ts'
import type { Viewer } from '../recording/live.ts'

export const watchPath = livePath

const judge_ms = 30_000
const ping = { every_ms: 30_000, timeout_ms: 15_000 }
/** Who asks may not; anything else says nothing about them. */
const refusals = new Set([401, 403])
const goodbye = 1000
const goingAway = 1001

type Socket = Awaited<ReturnType<typeof acceptWebSocket>>

export interface WatchParts {
  gate: Gate
  tickets: Pick<WatchTickets, 'take'>
  watch: SessionWatching['watch']
  onError(error: unknown): void
}

export function watchDoor({ gate, tickets, watch, onError }: WatchParts) {
  const sockets = new Set<Socket>()
  const judges = new Set<{ readonly user_id: string; readonly tenant_id: string; judge(): void }>()

  /** Who watches, as often as it is asked: rights may end. */
  function admission({ bearer, apiKey, query, params, from }: Upgrade): () => Promise<MemberCaller> {
    const ticket = query.get('ticket')
    if (ticket === null)
      return async () =>
        (await gate.admit(
          contract.sessions.play.access,
          { bearer, apiKey, tenant: undefined },
          from,
        )) as MemberCaller
    const holder = tickets.take(ticket, params['uid'] ?? '')
    return () => holder(from)
  }

  async function enter(upgrade: Upgrade): Promise<void> {
    const { params, query } = upgrade
    const admit = admission(upgrade)
    const caller = await admit()
    const recording = await watch(params['uid'] ?? '', channelOf(query), caller)
    const socket = await acceptWebSocket(upgrade.request, upgrade.socket, upgrade.head).catch(
      (cause: unknown) => {
        throw cause instanceof UpgradeFailed
          ? new Failure('invalid', { message: cause.message, cause })
          : cause
      },
    )
    sockets.add(socket)
    // From here on nobody may be answered over HTTP any more.
    const judge = (): void => {
      admit().catch((error: unknown) => {
        // Nobody is shown out because the database is away.
        if (error instanceof Failure && refusals.has(error.status))
          viewer.end('You may not watch this session any more.')
      })
    }
    const judging = setInterval(judge, judge_ms)
    // A key may do what its maker may.
    const judged = {
      user_id: caller.kind === 'key' ? caller.created_by : caller.id,
      tenant_id: caller.tenant_id,
      judge,
    }
    judges.add(judged)
    using stack = new DisposableStack()
    stack.defer(() => clearInterval(judging))
    stack.defer(() => judges.delete(judged))
    stack.use(keepPinging(socket, ping))
    socket.on('error', () => undefined)
    socket.resume()
    const viewer = viewerAt(socket)
    const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    const leaving = stack.move()
    void gone.then(() => {
      sockets.delete(socket)
      leaving.dispose()
    })
    try {
      const seat = await recording.watch(viewer)
      void gone.then(() => seat[Symbol.dispose]())
    } catch (error) {
      onError(error)
      viewer.end('The session cannot be shown.')
    }
  }

  return {
    enter,
    /** Somebody's role in a namespace has changed. */
    judge(changed: { readonly user_id: string; readonly tenant_id: string }): void {
      for (const { user_id, tenant_id, judge } of judges)
        if (user_id === changed.user_id && tenant_id === changed.tenant_id) judge()
    },
    close(): void {
      for (const socket of sockets) socket.close(goingAway, 'The server is stopping.')
    },
  }
}

function channelOf(query: URLSearchParams): number | undefined {
  const text = query.get('channel')
  if (text === null) return undefined
  if (!/^\d{1,5}$/.test(text))
    throw new Failure('invalid', { message: 'channel: a whole number is expected' })
  return Number(text)
}

function viewerAt(socket: Socket): Viewer {
  const ignore = (): void => undefined
  const say = (message: object): void => socket.send(JSON.stringify(message), ignore)
  return {
    screen({ width, height }, bytes) {
      say({ kind: 'screen', width, height })
      socket.send(bytes, ignore)
    },
    output: (bytes) => socket.send(bytes, ignore),
    resize: ({ width, height }) => say({ kind: 'resize', width, height }),
    end(message) {
      say({ kind: 'end', message })
      socket.close(goodbye)
    },
    waiting: () => socket.bufferedAmount,
  }
}

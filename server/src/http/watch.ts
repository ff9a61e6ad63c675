// The door for those who watch a session that is going on: GET /api/sessions/:uid/live, a WebSocket for
// whoever may play its recording. Binary messages are bytes for a terminal, text messages are JSON:
//   {"kind":"screen","width":…,"height":…}   first; the binary message after it draws the screen as it is now
//   {"kind":"resize","width":…,"height":…}   the terminal has another size from here on
//   {"kind":"end","message":…}               the last one: the session is over, or the viewer was too slow
// What a viewer sends is ignored. Browsers cannot set headers: they come with a ticket, `?ticket=`, which is
// good once. Who loses the right to watch is shown out at once.
import { contract } from '@hawser/contract'
import { Failure } from '@hawser/contract/failures'
import { livePath } from '@hawser/contract/sessions'
import { acceptWebSocket, keepalive, UpgradeFailed } from '@hawser/mux'
import type { Gate, MemberCaller } from '../domain/callers/callers.ts'
import type { SessionWatching } from '../domain/sessions/sessions.ts'
import type { WatchTickets } from '../domain/sessions/watch-tickets.ts'
import { permission, type Permission } from './permission.ts'
import type { Upgrade } from './upgrade.ts'
import type { Viewer } from '../recording/live.ts'

export const watchPath = livePath

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

export function watchEndpoint({ gate, tickets, watch, onError }: WatchParts) {
  const sockets = new Set<Socket>()
  const viewers = new Set<{
    readonly user_id: string
    readonly tenant_id: string
    readonly permission: Permission
  }>()

  /** Who watches, as often as it is asked: rights may end. */
  function admission(upgrade: Upgrade): () => Promise<MemberCaller> {
    const { bearer, apiKey, query, params, from } = upgrade
    const ticket = query.get('ticket')
    if (ticket === null)
      return async () =>
        (await gate.admit(
          contract.sessions.play.access,
          { bearer, apiKey, tenant: undefined },
          from,
          (caller) => void (upgrade.caller = caller),
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
    using stack = new DisposableStack()
    const allowed = stack.use(
      permission({
        async holds() {
          try {
            await admit()
            return true
          } catch (error) {
            if (error instanceof Failure && refusals.has(error.status)) return false
            throw error
          }
        },
        onLost: () => viewer.end('You may not watch this session any more.'),
        ends_at: query.has('ticket') ? undefined : endOf(caller),
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
    stack.use(keepalive(socket, ping))
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
    /** Asks again whether these people may go on watching. */
    recheck(whose: (person: { readonly user_id: string; readonly tenant_id: string }) => boolean): void {
      for (const viewer of viewers) if (whose(viewer)) viewer.permission.recheck()
    },
    close(): void {
      for (const socket of sockets) socket.close(goingAway, 'The server is stopping.')
    },
  }
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

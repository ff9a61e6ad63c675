// Requests for a WebSocket. They do not pass through Fastify: Node hands over the bare socket, so refusals
// are written here, in the same shape as any other. Only addresses with a handler are upgraded; an Upgrade
// header anywhere else is ignored, as HTTP allows. An address may have parameters, as in routes: `:name`.
import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { Failure } from '@hawser/contract/failures'
import type { Caller, RequestOrigin } from '../domain/callers/callers.ts'
import { neighbourhood } from '../kit/address.ts'
import { safeText, type LineLimiter, type Log } from '../kit/log.ts'
import { ambiguityOf } from './ambiguous-requests.ts'
import { headersOf, loggedCaller } from './answer.ts'

export interface Upgrade {
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
  readonly from: RequestOrigin
  readonly bearer: string | undefined
  readonly apiKey: string | undefined
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** Set by a handler that knows it, for the log. */
  caller?: Caller
}

/** By path. A handler may throw, which is answered, until it has taken the socket. */
export type UpgradeHandlers = Readonly<Record<string, (upgrade: Upgrade) => Promise<void>>>

export const pathOf = (request: IncomingMessage): string => (request.url ?? '').split('?', 1)[0]!

export interface UpgradeParts {
  doors: UpgradeHandlers
  from(request: IncomingMessage): RequestOrigin
  /** Where a request without TLS is redirected. */
  redirected(request: IncomingMessage): string | undefined
  bearerOf(header: string | undefined): string | undefined
  /** Limits lines of the log about refused requests, by their source. */
  lines: LineLimiter
  log: Log
}

/** Callers who are too fast or too many are told to come back, which is no event. */
const comesBack = new Set([429, 503])

export function upgrades({ doors, from, redirected, bearerOf, lines, log }: UpgradeParts) {
  const entries = Object.entries(doors).map(([path, enter]) => ({ enter, pattern: patternOf(path) }))
  const doorOf = (request: IncomingMessage) => {
    const path = pathOf(request)
    for (const { enter, pattern } of entries) {
      const match = pattern.exec(path)
      if (match) return { enter, params: { ...match.groups } }
    }
    return undefined
  }
  function logRefusal({ request, from: { source }, caller }: Upgrade, { status, kind }: Failure): void {
    const level = comesBack.has(status) ? 'debug' : 'info'
    if (!log.isLevelEnabled(level) || (level === 'info' && !lines.allows(neighbourhood(source)))) return
    log[level]({
      event: 'upgrade.refused',
      path: safeText(pathOf(request)),
      status,
      reason: kind,
      source,
      ...loggedCaller(caller),
    })
  }

  return {
    isOne: (request: IncomingMessage): boolean =>
      doorOf(request) !== undefined && /^websocket$/i.test(request.headers.upgrade ?? ''),
    async take(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
      // A caller who leaves before anybody took the socket is no fault.
      socket.on('error', () => undefined)
      const { enter, params } = doorOf(request)!
      const { authorization, 'x-api-key': apiKey } = request.headers
      const upgrade: Upgrade = {
        request,
        socket,
        head,
        from: from(request),
        bearer: bearerOf(authorization),
        apiKey: typeof apiKey === 'string' ? apiKey : undefined,
        params,
        query: new URL(request.url ?? '', 'http://door').searchParams,
      }
      try {
        const ambiguity = ambiguityOf(request)
        if (ambiguity) throw ambiguity
        // Clients of WebSockets follow no redirection.
        const location = redirected(request)
        if (location !== undefined)
          throw new Failure('forbidden', {
            message: `This server speaks TLS: use ${new URL(location).origin} as its address.`,
          })
        await enter(upgrade)
      } catch (error) {
        if (error instanceof Failure) logRefusal(upgrade, error)
        else if (lines.allows(`failed ${upgrade.from.source}`))
          log.error({ event: 'upgrade.failed', path: pathOf(request), err: error })
        refuse(socket, error instanceof Failure ? error : new Failure('internal'))
      }
    },
  }
}

/**
 * Browsers name the page that a WebSocket is for, and only our own may have one: at the host that the request
 * names, or at `url`, the address in e-mails. Programs can claim any.
 */
export function requireOwnPage({ request, from }: Upgrade, url: string): void {
  const { origin = '' } = request.headers
  const own = [`${from.secure ? 'https' : 'http'}://${from.host}`, url].map(originOf)
  const asked = originOf(origin)
  if (asked === undefined || !own.includes(asked))
    throw new Failure('forbidden', { message: 'Only pages of this server may connect here.' })
}

function originOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).origin : undefined
}

const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/:([a-z_]+)/g, '(?<$1>[^/]+)')}$`)

/** The time for a refused client to read the answer and to leave. */
const leaving_ms = 2_000

/** Answers, and closes the connection however long the other side keeps its half open. */
function refuse(socket: Duplex, failure: Failure): void {
  const body = JSON.stringify({ message: failure.message })
  const headers = {
    ...headersOf(failure),
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${failure.status} ${STATUS_CODES[failure.status]}\r\n${lines.join('')}\r\n${body}`)
  // Further input is dropped, so that its end can be seen.
  socket.resume()
  const limit = setTimeout(() => socket.destroy(), leaving_ms).unref()
  socket.once('close', () => clearTimeout(limit))
}

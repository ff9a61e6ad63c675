// The door of services: every request whose Host is below the services domain comes here and nowhere else.
// In order: is it one request and for one host; who is it, and is there a service for them; may this page
// send it; is there room. Then it goes to the device (proxy.ts).
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { Failure } from '@hawser/contract/failures'
import { serviceLimits as limits, type Limit } from '@hawser/contract/limits'
import type { ServiceAddresses } from '../../domain/services/addresses.ts'
import { neighbourhood } from '../../kit/address.ts'
import { Counter } from '../../kit/counter.ts'
import { placesByKey } from '../../kit/concurrency.ts'
import { fairShare } from '../../kit/fair-share.ts'
import type { Limiter } from '../../kit/limiter.ts'
import { isLoop, type Caller } from './headers.ts'
import { hasBody, isNavigation, show } from './pages.ts'
import { left, letGo, passRequest, passUpgrade, type Ended, type Passing } from './proxy.ts'
import { isFramed, signIn, type SignInParts } from './sign-in.ts'
import type { Exchange, Pass, Visits } from './visits.ts'

export interface DoorParts extends SignInParts {
  readonly addresses: ServiceAddresses
  readonly visits: Pick<Visits, 'enter'>
  /** Where services have TLS: which requests without it are sent there, all or those of people in a browser. */
  readonly plain: 'redirect' | 'serve' | undefined
  isStopping(): boolean
  /** Requests of people who are not signed in, by their network. */
  readonly rate: Limiter
  from(request: IncomingMessage): { readonly source: string; readonly secure: boolean }
  /** Proves to the device who the person is. */
  assertion(pass: Pass): Promise<string>
  /** `device`: whose answer was being passed on. */
  onError(error: unknown, device?: string): void
}

/** How a request ended: by the status of its answer, or it left before there was one. */
const results = ['1xx', '2xx', '3xx', '4xx', '5xx', 'left'] as const
type Result = (typeof results)[number]

export interface ServiceDoor {
  /** Requests and WebSockets on their way to devices. */
  readonly open: number
  readonly requests: Counter<Result>
  /** Whether the request is for a service, or for a host that only services may have. */
  owns(request: IncomingMessage): boolean
  request(request: IncomingMessage, response: ServerResponse): void
  isUpgrade(request: IncomingMessage): boolean
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
}

const challengePath = '/.well-known/acme-challenge/'

interface Refusal {
  readonly status: number
  readonly message: string
}

const single = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'origin',
  'expect',
  'sec-websocket-key',
])

/** Requests that two readers may understand differently; Node refuses others while it parses. */
function ambiguityOf({ rawHeaders, headers, url = '', httpVersion }: IncomingMessage): Refusal | undefined {
  const refusal = (message: string): Refusal => ({ status: 400, message })
  // Neither an absolute form nor an authority, whose host may differ from the Host header.
  if (!/^\/[\x21-\x7e]*$/.test(url)) return refusal('The path of the request is not valid.')
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    if (!single.has(name)) continue
    if (seen.has(name)) return refusal('The request repeats a header that may occur only once.')
    seen.add(name)
  }
  const coding = headers['transfer-encoding']
  if (hasBody({ headers }) && headers.upgrade !== undefined && /^websocket$/i.test(headers.upgrade))
    return refusal('The handshake of a WebSocket must not have a body.')
  if (
    coding !== undefined &&
    (!/^chunked$/i.test(coding) || httpVersion !== '1.1' || seen.has('content-length'))
  )
    return refusal('The length of the request is ambiguous.')
  return undefined
}

/**
 * Whether a page of another origin has sent this, other than by a link. Cookies come along with requests of
 * other services of the same site. Public services decide by themselves.
 */
function isForeign({ method, headers }: IncomingMessage, own: readonly string[]): boolean {
  const site = headers['sec-fetch-site']
  const { origin } = headers
  if (origin !== undefined && !own.includes(origin)) return true
  if (site === undefined || site === 'same-origin' || site === 'none') return false
  const isLink = headers['sec-fetch-mode'] === 'navigate' && (method === 'GET' || method === 'HEAD')
  return !isLink || isFramed({ headers })
}

function roomFor() {
  const people = placesByKey(limits.requests.max)
  const sources = placesByKey(limits.requestsOfSource.max)
  const networks = placesByKey(limits.requestsOfNetwork.max)
  const devices = placesByKey(limits.requestsOfDevice.max)
  const share = fairShare(limits.requestsOfStrangers.max)
  const strangers = (namespace: string): Disposable | undefined => {
    if (!share.take(namespace, 1)) return undefined
    const place = new DisposableStack()
    place.defer(() => share.count(namespace, -1))
    return place
  }
  /** Takes a place of each; a Limit: that one is full. */
  return ({ visit, source }: Pass): Disposable | Limit => {
    const { person, service } = visit.admitted
    const wanted: readonly (readonly [Limit, Disposable | undefined])[] =
      person.kind === 'user'
        ? [[limits.requests, people(person.id)]]
        : [
            [limits.requestsOfSource, sources(neighbourhood(source))],
            [limits.requestsOfNetwork, networks(neighbourhood(source, 48))],
            [limits.requestsOfDevice, devices(service.device_uid)],
            [limits.requestsOfStrangers, strangers(service.tenant_id)],
          ]
    const release = (): void => wanted.forEach(([, place]) => place?.[Symbol.dispose]())
    const full = wanted.find(([, place]) => place === undefined)
    if (!full) return { [Symbol.dispose]: release }
    release()
    return full[0]
  }
}

export function serviceDoor(parts: DoorParts): ServiceDoor {
  const { addresses, visits, onError } = parts
  const way = signIn(parts)
  const room = roomFor()
  /** Node reads on behind a refused request; where that begins is what is not clear. */
  const ambiguous = new WeakSet<Duplex>()
  const requests = new Counter(results)
  let open = 0

  /** Undefined: the request is answered already. `whole`: closes when the request, or its WebSocket, is over. */
  async function admit(
    request: IncomingMessage,
    response: ServerResponse,
    whole: Duplex | ServerResponse,
  ): Promise<(Passing & { place: Disposable }) | undefined> {
    const refuse = ({ status, message }: Refusal, headers?: Record<string, string>): undefined => {
      show(request, response, { status, message }, headers)
    }
    const ambiguity = ambiguityOf(request)
    if (ambiguity) {
      ambiguous.add(request.socket)
      return refuse(ambiguity, { connection: 'close' })
    }
    if (parts.isStopping())
      return refuse({ status: 503, message: 'The server is stopping.' }, { 'retry-after': '5' })
    if (isLoop(request))
      return refuse({ status: 508, message: 'Loop: this service leads back to this server.' })
    const { source, secure } = parts.from(request)
    const address = addresses.labelOf(request.headers.host ?? '') ?? ''
    const arrival = { request, response, address, secure, source }
    const isSentToTls = parts.plain === 'redirect' || (parts.plain === 'serve' && isNavigation(request))
    if (isSentToTls && address !== '' && !secure) {
      const location = `${addresses.urlOf(address)}${request.url ?? '/'}`
      return refuse({ status: 308, message: 'This service requires HTTPS.' }, { location })
    }
    const visitor = way.visitorOf(arrival)
    const isTooFast = (): boolean => {
      const wait_s = parts.rate.take(neighbourhood(source))
      if (wait_s > 0)
        refuse(
          { status: 429, message: 'Too many requests. Try again in a moment.' },
          { 'retry-after': String(wait_s) },
        )
      return wait_s > 0
    }
    if (visitor.kind !== 'user' && isTooFast()) return undefined
    const exchange: Exchange = { cut: () => response.destroy() }
    const client = request.headers['user-agent'] ?? ''
    const pass = await visits.enter({ address, visitor, source, client, exchange })
    const leave = (): void => void pass?.exchanges.delete(exchange)
    whole.once('close', leave)
    if (response.destroyed) {
      leave()
      return undefined
    }
    const { method } = pass?.visit.admitted ?? {}
    // The cookie of a sign-in that has ended makes nobody known.
    if (!pass && visitor.kind === 'user' && isTooFast()) return undefined
    if (await way.takes(arrival, method === 'public')) return undefined
    if (!pass) {
      way.refuse(arrival)
      return undefined
    }
    const host = request.headers.host ?? ''
    if (
      method !== 'public' &&
      isForeign(request, [`${secure ? 'https' : 'http'}://${host.toLowerCase()}`, addresses.urlOf(address)])
    ) {
      pass.visit.traffic.refused += 1
      return refuse({ status: 403, message: 'Requests from other sites are not allowed here.' })
    }
    const place = room(pass)
    if ('what' in place) {
      pass.visit.traffic.refused += 1
      return refuse({ status: 429, message: place.message ?? 'Too many requests.' }, { 'retry-after': '1' })
    }
    try {
      const user = await userOf(pass)
      return {
        pass,
        request,
        place,
        exchange,
        caller: { source, secure, host, user },
        onError: (error) => onError(error, pass.visit.admitted.service.device_uid),
      }
    } catch (error) {
      place[Symbol.dispose]()
      throw error
    }
  }

  async function userOf(pass: Pass): Promise<Caller['user']> {
    const { service, person } = pass.visit.admitted
    if (service.identify === 0 || person.kind !== 'user') return undefined
    return { name: person.name, assertion: await parts.assertion(pass) }
  }

  function ending({ pass, request, place }: Passing & { place: Disposable }): Ended {
    const { visit } = pass
    visit.traffic.requests += 1
    open += 1
    return (status, { received, sent }) => {
      open -= 1
      requests.add(status === left ? 'left' : (results[Math.floor(status / 100) - 1] ?? '5xx'))
      place[Symbol.dispose]()
      visit.traffic.received += received
      visit.traffic.sent += sent
      if (visit.isLogged())
        visit.record.events.add({
          kind: 'web',
          subject: `${request.method} ${(request.url ?? '').split('?', 1)[0]}`,
          outcome: 'done',
          received,
          sent,
          target: pass.source,
          why: status === left ? 'left' : String(status),
        })
    }
  }

  function enter(
    request: IncomingMessage,
    response: ServerResponse,
    whole: Duplex | ServerResponse,
    pass: (passing: Passing, ended: Ended) => void,
  ): void {
    if (ambiguous.has(request.socket)) return void response.destroy()
    admit(request, response, whole)
      .then((passing) => {
        if (!passing) return
        if (response.destroyed) return passing.place[Symbol.dispose]()
        const ended = ending(passing)
        try {
          pass(passing, ended)
        } catch (error) {
          ended(0, { received: 0, sent: 0 })
          throw error
        }
      })
      .catch((error: unknown) => {
        if (error instanceof Failure) return show(request, response, error)
        onError(error)
        show(request, response, { status: 500, message: 'The server could not pass this request on.' })
      })
  }

  return {
    requests,
    get open() {
      return open
    },
    // The ACME server's questions are for this server alone: no device may prove a name of ours.
    owns: ({ headers, url = '' }) =>
      addresses.labelOf(headers.host ?? '') !== undefined && !url.startsWith(challengePath),
    request: (request, response) =>
      enter(request, response, response, (passing, ended) => passRequest(passing, response, ended)),
    isUpgrade: ({ method, headers }) => method === 'GET' && /^websocket$/i.test(headers.upgrade ?? ''),
    upgrade(request, socket, head) {
      socket.on('error', () => undefined)
      const response = new http.ServerResponse(request)
      response.assignSocket(socket as never)
      response.shouldKeepAlive = false
      response.once('finish', () => letGo(socket))
      enter(request, response, socket, (passing, ended) => {
        response.removeAllListeners('finish')
        response.detachSocket(socket as never)
        passUpgrade(passing, socket, head, ended)
      })
    },
  }
}

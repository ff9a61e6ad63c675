// The HTTP edge. It reads the contract and names no noun: for every operation it makes the routes, lets the
// gate judge the caller before parsing, checks the input, calls the rule and serialises the answer by the
// schema, so that no unpromised field leaks. Order of refusals: 401, 403, 400/422, 404.
import fastify, {
  LogController,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifySchemaCompiler,
  type RouteOptions,
} from 'fastify'
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { addresses, operations, type NamedOperation } from '@hawser/contract'
import { defined } from '@hawser/contract/defined'
import { Failure, failureHeader } from '@hawser/contract/failures'
import { beyond, callLimits } from '@hawser/contract/limits'
import { bodyLimit, type Page } from '@hawser/contract/operation'
import type { Caller, CallTurn, Credentials, Gate } from '../domain/callers/callers.ts'
import type { AllRules, CallEnd } from '../domain/callers/rules.ts'
import { neighbourhood } from '../kit/address.ts'
import type { Limiter } from '../kit/limiter.ts'
import type { LineLimiter, Log } from '../kit/log.ts'
import { ambiguityOf } from './ambiguous-requests.ts'
import {
  boundConnections,
  boundedCalls,
  whenOver,
  type BoundedCalls,
  type OtherHosts,
} from './bounded-requests.ts'
import { answerBroken, answerFailure, loggedCaller } from './answer.ts'
import { whereFrom, type ProxyHeaderOptions } from './client-address.ts'
import { compressed } from './compress.ts'
import type { Metrics } from './metrics.ts'
import { isLostReader, showLostPage } from './pages.ts'
import { whilePermitted } from './permission.ts'
import { tooComplex, withinLimits } from './json-limits.ts'
import { listSerialiser, pieces, serialiser, type Serialise } from './serialise.ts'
import { isStrict, redirection, strictTransport, type HttpsParts } from './plain-requests.ts'
import { upgrades, type UpgradeHandlers } from './upgrade.ts'
import { checker, known, queryReader, type Check } from './validate.ts'

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller
  }
}

export interface HttpParts {
  rules: AllRules
  gate: Gate
  /** Undefined: an open operation. */
  turnOf(caller: Caller): CallTurn | undefined
  log: Log
  believed: ProxyHeaderOptions
  /** Calls of one address to all open operations together. */
  openCalls: Limiter
  metrics: Metrics
  /** The disk is full: what is left of it is for signing in and deleting. */
  isFull(): boolean
  /** Limits lines of the log about refused requests, by their source. */
  lines: LineLimiter
  /** Collects every route. */
  served: string[]
  doors: UpgradeHandlers
  /** Requests for other hosts than the server's own. */
  services: OtherHosts
  /** Undefined where the server has no TLS itself. */
  plain?: HttpsParts | undefined
}

/** Stands for the method of a request for a WebSocket in the list of routes. */
const webSocket = 'WEBSOCKET'
/** The most that is read of a body where no operation is. */
const largest_unread = 8 * 1024
/** For the head of a request, and for the body of an operation. */
const request_ms = 30_000

/** On every answer: nothing may be framed, sniffed, cached by others or leak where one came from. */
const security = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
}

/** Limited by their own rules (per device) or asked by machines all the time. */
const unlimited = new Set(['devices.auth', 'system.healthcheck'])

/** Calls that take turns on threads, and must not delay a person's other calls. */
const onThreads = new Set([
  'recordings.window',
  'recordings.filmstrip',
  'recordings.search',
  'recordings.find',
])

/** Verbs whose results take room for good. */
const adding = new Set(['create', 'register', 'record', 'setup', 'signUp'])

/** Fastify looks for the reasons of a refusal on the function itself. */
type FastifyValidate = ((data: never) => false | { value: unknown }) & { errors?: unknown }

type AnyRule = (
  input: { params: unknown; query: unknown; body: unknown },
  caller: Caller,
  end: CallEnd,
) => unknown

export function httpServer(parts: HttpParts): FastifyInstance {
  const { log, metrics } = parts
  const from = whereFrom(parts.believed)
  const redirected = (request: IncomingMessage): string | undefined =>
    parts.plain && !from(request).secure ? redirection(parts.plain, request) : undefined
  const sockets = upgrades({ doors: parts.doors, from, redirected, bearerOf, lines: parts.lines, log })
  const app = fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: largest_unread,
    http: {
      maxHeaderSize: callLimits.head.max,
      shouldUpgradeCallback: (request) =>
        parts.services.owns(request) ? parts.services.isUpgrade(request) : sockets.isOne(request),
      headersTimeout: request_ms,
      // How late a request that took too long may be noticed.
      connectionsCheckingInterval: 5_000,
    },
    clientErrorHandler: answerBroken,
    // Load balancers probe with HEAD; it passes the same gate as GET and gets its headers, unless the answer
    // is streamed.
    exposeHeadRoutes: true,
    // Uploads to devices take any time; bodies of operations have theirs in `boundConnections`.
    requestTimeout: 0,
    keepAliveTimeout: 72_000,
    forceCloseConnections: 'idle',
    // While the server stops, requests on open connections are still answered, with the sign to close; health
    // says 503.
    return503OnClosing: false,
    genReqId: () => randomUUID(),
    // A path that cannot be decoded is refused before any hook.
    frameworkErrors: (error, request, reply) => void answerFailure(error, request, secured(request, reply)),
    routerOptions: { maxParamLength: 4096, ignoreTrailingSlash: true },
  }) as unknown as FastifyInstance

  boundConnections(app.server, parts.services, request_ms)
  app.server.on('upgrade', (request, socket, head) => {
    if (parts.services.owns(request)) parts.services.upgrade(request, socket, head)
    else void sockets.take(request, socket, head)
  })
  app.decorateRequest('caller', null as never)
  // First of all: a route made before this hook would not be noted.
  app.addHook(
    'onRoute',
    ({ method, url }) => void parts.served.push(...[method].flat().map((one) => `${one} ${url}`)),
  )
  acceptJson(app)
  const sourceOf = (request: FastifyRequest): string =>
    (request.caller as Caller | null)?.source ?? from(request.raw).source
  // Lines about failures do not take the place of those about refusals.
  app.setErrorHandler((error: FastifyError, request, reply) =>
    answerFailure(error, request, reply, () => parts.lines.allows(`failed ${sourceOf(request)}`)),
  )
  const methodsAt = methodsByPath(parts.served)
  const nowhere = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const methods = methodsAt(request.url)
    // A route may itself miss something, such as a file: then the method was right.
    const wrongMethod = methods !== '' && !methods.split(', ').includes(request.method)
    if (methods === '' && isLostReader(request)) return showLostPage(reply)
    const failure = wrongMethod
      ? new Failure('wrongMethod', { headers: { allow: methods } })
      : new Failure('unknownRoute')
    return answerFailure(failure, request, reply)
  }
  app.setNotFoundHandler(nowhere)
  app.addHook('onRequest', (request, reply, done) => {
    secured(request, reply)
    const ambiguity = ambiguityOf(request.raw)
    if (ambiguity) return done(ambiguity)
    // Before looking at method or body.
    const location = redirected(request.raw)
    if (location !== undefined) reply.redirect(location, 308)
    else if (request.is404) nowhere(request, reply)
    else done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const { named } = request.routeOptions.config
    metrics.answered(named?.id ?? 'other', reply.statusCode, reply.elapsedTime)
    const level = levelOf(named, request, reply)
    if (log.isLevelEnabled(level)) {
      const source = sourceOf(request)
      const dropped =
        level === 'info' && reply.statusCode >= 400 && !parts.lines.allows(neighbourhood(source))
      if (!dropped) request.log[level](line(request, reply, source), 'request')
    }
    done()
  })
  for (const path of Object.keys(parts.doors)) parts.served.push(`${webSocket} ${path}`)
  const calls = boundedCalls(parts.turnOf)
  for (const named of operations) for (const route of routesOf(named, parts, from, calls)) app.route(route)
  return app
}

/** The domain reports these with the person's name; see domain/people/sign-in.ts. */
const reported = new Set(['users.login', 'users.auth', 'mfa.authenticate', 'mfa.recover', 'mfa.reset'])
/** Agents repeat these all the time. */
const repeated = new Set(['devices.auth', 'pairings.outcome'])

/**
 * Changes and refusals of known callers are always worth a line. Reading, and the agents' heartbeats, are
 * worth one only when someone looks for a fault.
 */
function levelOf(
  named: NamedOperation | undefined,
  { caller }: { caller: Caller | null },
  { statusCode }: FastifyReply,
): 'info' | 'debug' {
  if (!named || (reported.has(named.id) && caller)) return 'debug'
  if (statusCode === 403) return 'info'
  return named.op.method !== 'GET' && !repeated.has(named.id) ? 'info' : 'debug'
}

function line(request: FastifyRequest, reply: FastifyReply, source: string): object {
  const caller: Caller | null = request.caller
  return {
    event: 'request.answered',
    operation: request.routeOptions.config.named?.id ?? `${request.method} (unknown)`,
    status: reply.statusCode,
    reason: reply.getHeader(failureHeader),
    ms: Math.round(reply.elapsedTime * 10) / 10,
    source,
    ...loggedCaller(caller),
    params: request.params,
  }
}

/** JSON only; an empty body is no body, whatever its type says. */
function acceptJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    const { named } = request.routeOptions.config
    if (body === '' || !named) return done(null, undefined)
    // Before parsing, whose cost grows with depth and number of values.
    if (!withinLimits(body as string))
      return done(new Failure(named.op.badInput ?? 'invalid', { message: tooComplex }))
    // A signature is over the very bytes: what is JSON is handed on as it came.
    const signed = named.op.signed !== undefined
    void parse(request, body as string, (error, parsed) => done(error, signed && !error ? body : parsed))
  })
}

function routesOf(
  named: NamedOperation,
  parts: HttpParts,
  from: ReturnType<typeof whereFrom>,
  calls: BoundedCalls,
): RouteOptions[] {
  const { op, id } = named
  const rule = (parts.rules[named.noun] as unknown as Record<string, AnyRule>)[named.verb]
  if (!rule) throw new Error(`no rule for ${id}`)
  const limited = op.access.who === 'anyone' && !unlimited.has(id)
  const checkParams = op.params && checker(op.params)
  const contentType = op.text ?? 'application/json; charset=utf-8'
  const serialise: Serialise = op.list
    ? listSerialiser(op.list)
    : op.answer
      ? serialiser(op.answer)
      : (text) => (text as string | undefined) ?? ''
  const bodyIsObject = op.body !== undefined && 'properties' in op.body
  const always = Object.entries(op.headers?.properties ?? {}).flatMap(([name, schema]) =>
    'default' in schema ? [[name, String(schema.default)]] : [],
  )
  const headers = Object.fromEntries(always) as Record<string, string>

  async function admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    reply.headers(headers)
    const { 'user-agent': agent } = request.headers
    const origin = { ...from(request.raw), request_id: request.id, agent }
    if (limited) {
      const wait = parts.openCalls.take(neighbourhood(origin.source))
      if (wait > 0) throw beyond(callLimits.open, wait)
    }
    request.caller = await parts.gate.admit(
      op.access,
      credentialsOf(request),
      origin,
      (caller) => void (request.caller = caller),
    )
    const body = calls.body(request.caller, lengthOfBody(request.raw, bodyLimit(op)))
    if (body) whenOver(request.raw, reply.raw, () => body[Symbol.dispose]())
  }

  function credentialsOf({ headers, params }: FastifyRequest): Credentials {
    const { authorization, 'x-api-key': apiKey } = headers
    return {
      bearer: bearerOf(authorization),
      apiKey: typeof apiKey === 'string' ? apiKey : undefined,
      // A malformed one names no namespace, and causes no query.
      tenant: !checkParams || checkParams(params) ? (params as { tenant?: string }).tenant : undefined,
    }
  }

  function streamed(request: FastifyRequest, answer: AsyncIterable<unknown>): Readable {
    const ask = () => parts.gate.admit(op.access, credentialsOf(request), request.caller)
    return Readable.from(whilePermitted(pieces(op.answer, answer), ask), { objectMode: false })
  }

  function bodyOf(request: FastifyRequest): unknown {
    if (op.signed === undefined) return request.body
    const signature = request.headers[op.signed]
    return { payload: request.body ?? '', signature: typeof signature === 'string' ? signature : '' }
  }

  async function handle(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    if (checkParams && !checkParams(request.params)) throw new Failure('notFound')
    if (adding.has(named.verb) && parts.isFull())
      throw new Failure('unavailable', {
        message: 'The disk of the server is full: only signing in, reading and deleting work.',
        retryAfter: 60,
      })
    const input = { params: request.params, query: request.query, body: bodyOf(request) }
    const end = callEnd(request.raw, reply.raw)
    const untilOver = (held: Disposable | undefined): void => {
      if (held) whenOver(request.raw, reply.raw, () => held[Symbol.dispose]())
    }
    const isChange = request.method !== 'GET' && request.method !== 'HEAD'
    if (isChange && op.answer) calls.mayAnswer(request.caller)
    if (op.streamed) untilOver(calls.stream(request.caller))
    const isOnThread = onThreads.has(id)
    if (isOnThread) untilOver(calls.onThread(request.caller))
    const call = async (): Promise<unknown> => rule!(input, request.caller, end)
    const result = await (isOnThread ? call() : calls.run(request.caller, call, end))
    let answer = result
    if (op.headers) {
      const full = result as { answer: unknown; headers: Record<string, string> }
      reply.headers(full.headers)
      answer = full.answer
    }
    if (op.list) {
      const page = answer as Page<unknown>
      reply.header('x-total-count', page.total)
      answer = page.items
    }
    if (op.streamed) return reply.type(contentType).send(streamed(request, answer as AsyncIterable<unknown>))
    const body = await compressed(request, reply, serialise(answer))
    if (body !== undefined) untilOver(calls.answer(request.caller, Buffer.byteLength(body), isChange))
    return reply.type(contentType).send(body)
  }

  return addresses(op).map(({ method, path }) => ({
    method,
    url: path,
    // Fastify would make the whole of a streamed answer to HEAD, and send nothing of it.
    exposeHeadRoute: op.streamed !== true,
    config: { named },
    bodyLimit: bodyLimit(op),
    onRequest: admit,
    preValidation: (request, _reply, done) => {
      if (bodyIsObject && request.body === undefined) request.body = {}
      done()
    },
    schema: defined({ body: op.body, querystring: op.query }),
    validatorCompiler: ({ httpPart }) =>
      inputCheck(named, httpPart) as ReturnType<FastifySchemaCompiler<unknown>>,
    handler: handle,
  }))
}

/** A body without a declared length may be as long as `most`. */
function lengthOfBody({ headers }: IncomingMessage, most: number): number {
  return headers['transfer-encoding'] === undefined
    ? Math.min(Number(headers['content-length'] ?? 0), most)
    : most
}

/** The signal is made when a rule wants it, or has to wait, which few do. */
function callEnd(request: IncomingMessage, response: ServerResponse): CallEnd {
  let left: AbortController | undefined
  return {
    get signal() {
      if (left) return left.signal
      const made = (left = new AbortController())
      whenOver(request, response, () => {
        if (!response.writableFinished) made.abort(new Failure('requestTimeout'))
      })
      return made.signal
    },
  }
}

function inputCheck({ op }: NamedOperation, part: string | undefined): FastifyValidate {
  const inQuery = part === 'querystring'
  const schema = inQuery ? op.query! : op.body!
  const read = inQuery ? queryReader(op.query!) : undefined
  const check = checker(schema, !inQuery && op.badInput === 'invalidFields')
  const copy = known(schema)
  const checkInput = (given: Record<string, unknown>): false | { value: unknown } => {
    read?.(given)
    const fits = check(given)
    checkInput.errors = check.errors
    return fits && { value: copy(given) }
  }
  checkInput.errors = undefined as Check['errors']
  return checkInput
}

function bearerOf(header: string | undefined): string | undefined {
  return header === undefined ? undefined : /^bearer +([^ ]+)$/i.exec(header)?.[1]
}

function secured(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (isStrict(request.raw)) reply.headers(strictTransport)
  return reply.headers(security).header('x-request-id', request.id)
}

/** The methods at an address, as `Allow` lists them; none: a 404, not a 405. */
function methodsByPath(served: readonly string[]): (url: string) => string {
  // Made on first use: by then every route is there.
  let routes: { method: string; pattern: RegExp }[] | undefined
  return (url) => {
    routes ??= served
      .filter((route) => !route.startsWith(webSocket))
      .map((route) => {
        const [method = '', path = ''] = route.split(' ', 2)
        return {
          method,
          pattern: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/:[a-z_]+/g, '[^/]+')}/?$`),
        }
      })
    const [path = ''] = url.split('?', 1)
    return [...new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))].join(
      ', ',
    )
  }
}

// The HTTP client of a container engine, over a Unix socket, TCP or TLS, with one connection per request. The
// caller names the endpoint for each request, because it may have to check the address again (the server
// does). Every answer has a size limit and a time limit, and redirects are not followed. Every error is an
// EngineFailure whose message is safe to show; the engine's own words are a field of it.
import http from 'node:http'
import https from 'node:https'
import type { Duplex, Readable } from 'node:stream'
import type { SecureContext } from 'node:tls'
import { CollectedBytes } from './collected-bytes.ts'

export type EngineEndpoint =
  | { readonly socketPath: string }
  | {
      readonly host: string
      readonly port: number
      /** For the Host header, with the port. */
      readonly name: string
      readonly tls?: { readonly secureContext: SecureContext; readonly servername: string } | undefined
    }

export interface EngineClientOptions {
  /** Throws an EngineFailure when the engine may not be reached. */
  endpoint(): EngineEndpoint | Promise<EngineEndpoint>
  /** From the first step to the last byte of an answer. */
  readonly answer_ms?: number
  /** Ends requests in progress. */
  readonly signal?: AbortSignal | undefined
}

export class EngineFailure extends Error {
  override readonly name = 'EngineFailure'
  /** 0: no answer. */
  readonly status: number
  /** The engine's own message; for a log, not for a stranger. */
  readonly detail: string
  constructor(
    message: string,
    { status = 0, detail = '', cause }: { status?: number; detail?: string; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.status = status
    this.detail = detail
  }
}

export interface EngineClient {
  json(method: 'GET' | 'POST', path: string, body?: object): Promise<unknown>
  /** A whole answer, up to this size. */
  bytes(path: string, most_bytes: number): Promise<Buffer>
  /** An answer without an end; the signal ends it. */
  stream(path: string, signal: AbortSignal): Promise<Readable>
  /** A request that becomes a connection in both directions. */
  hijack(path: string, body: object, signal: AbortSignal): Promise<Duplex>
}

const default_ms = 5_000
/** A thousand containers with long labels are a few megabytes. */
const largest_bytes = 16 * 1024 * 1024
const largestComplaint_bytes = 16 * 1024
/** Commas and brackets in an answer; a container with long labels has some hundred. */
const mostValues = 500_000

interface Asked {
  readonly method: string
  readonly path: string
  readonly body?: object | undefined
  readonly upgrade?: boolean
}

function settingsFor(
  to: EngineEndpoint,
  { method, path, upgrade }: Asked,
  text: string | undefined,
): https.RequestOptions {
  const length = text === undefined ? undefined : Buffer.byteLength(text)
  return {
    ...('socketPath' in to ? { socketPath: to.socketPath } : { host: to.host, port: to.port, ...to.tls }),
    method,
    path,
    headers: {
      host: 'socketPath' in to ? 'engine' : to.name,
      accept: 'application/json',
      ...(length === undefined ? {} : { 'content-type': 'application/json', 'content-length': length }),
      ...(upgrade ? { connection: 'Upgrade', upgrade: 'tcp' } : {}),
    },
  }
}

export function engineClient({
  endpoint,
  answer_ms = default_ms,
  signal: stopped,
}: EngineClientOptions): EngineClient {
  const orStopped = (...signals: AbortSignal[]): AbortSignal =>
    AbortSignal.any(stopped ? [stopped, ...signals] : signals)

  /** Resolves with the head of the answer; the time limit runs until the caller clears it. */
  async function ask(
    options: Asked,
    signal: AbortSignal,
  ): Promise<{ response: http.IncomingMessage; socket?: Duplex | undefined; isPlain: boolean }> {
    const to = await orAborted(Promise.resolve().then(endpoint), signal)
    const secure = 'tls' in to && to.tls !== undefined
    const isPlain = !secure && !('socketPath' in to)
    const text = options.body === undefined ? undefined : JSON.stringify(options.body)
    const settings = { ...settingsFor(to, options, text), signal, agent: false }
    return new Promise((resolve, reject) => {
      const request = (secure ? https : http).request(settings, (response) => resolve({ response, isPlain }))
      request.on('upgrade', (response, socket, head) => {
        if (head.length > 0) socket.unshift(head)
        resolve({ response, socket, isPlain })
      })
      request.on('error', (error: NodeJS.ErrnoException) => reject(unreached(error)))
      request.end(text)
    })
  }

  /** Throws for a head with an error. */
  async function good(options: Asked, signal: AbortSignal): Promise<Awaited<ReturnType<typeof ask>>> {
    const answer = await ask(options, signal)
    const { response, socket, isPlain } = answer
    const status = response.statusCode ?? 0
    if (socket || status === 200 || (options.method === 'POST' && status > 200 && status < 300)) return answer
    const said = await read(response, largestComplaint_bytes, signal).catch(() => Buffer.alloc(0))
    response.destroy()
    // The answer of an engine to plain HTTP where it expects TLS.
    const hint = status === 400 && isPlain ? '; it may expect TLS' : ''
    throw new EngineFailure(`The engine answered with status ${status}${hint}.`, {
      status,
      detail: messageIn(said),
    })
  }

  async function bytes(options: Asked, most_bytes: number): Promise<Buffer> {
    const limit = orStopped(AbortSignal.timeout(answer_ms))
    const { response } = await good(options, limit)
    return read(response, most_bytes, limit)
  }

  /** Limits the time for an answer; a stream behind it ends only with the signal. */
  async function begun<T>(signal: AbortSignal, work: (limited: AbortSignal) => Promise<T>): Promise<T> {
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(new DOMException('too late', 'TimeoutError')), answer_ms)
    try {
      return await work(orStopped(signal, limit.signal))
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async json(method, path, body) {
      const answer = await bytes({ method, path, body }, largest_bytes)
      if (!hasFewValues(answer)) throw new EngineFailure('The engine’s answer is too large.')
      const text = answer.toString('utf8')
      if (text.trim() === '') return undefined
      try {
        return JSON.parse(text) as unknown
      } catch (cause) {
        throw new EngineFailure('What answers there is not a container engine.', { cause })
      }
    },
    bytes: async (path, most_bytes) => bytes({ method: 'GET', path }, most_bytes),
    async stream(path, signal) {
      const { response } = await begun(signal, async (limited) => good({ method: 'GET', path }, limited))
      return response
    },
    async hijack(path, body, signal) {
      const { response, socket } = await begun(signal, async (limited) =>
        good({ method: 'POST', path, body, upgrade: true }, limited),
      )
      if (!socket) {
        response.destroy()
        throw new EngineFailure('The engine refused an interactive connection to the program.')
      }
      // Keys must not wait for one another.
      if ('setNoDelay' in socket && typeof socket.setNoDelay === 'function')
        (socket as { setNoDelay(on: boolean): void }).setNoDelay(true)
      return socket
    },
  }
}

async function read(response: http.IncomingMessage, most_bytes: number, limit: AbortSignal): Promise<Buffer> {
  using collected = new CollectedBytes(most_bytes, (why) =>
    why === 'too large'
      ? new EngineFailure('The engine’s answer is too large.')
      : new EngineFailure('There is no memory for the engine’s answer right now.'),
  )
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) collected.add(chunk)
  } catch (error) {
    if (error instanceof EngineFailure) throw error
    throw limit.aborted
      ? tooLate(error)
      : new EngineFailure('The engine broke off its answer.', { cause: error })
  } finally {
    response.destroy()
  }
  return collected.bytes()
}

/** Parsed values need far more memory than the bytes of their JSON. */
function hasFewValues(text: Buffer): boolean {
  let left = mostValues
  for (const byte of text) if (byte === 0x2c || byte === 0x5b || byte === 0x7b) left -= 1
  return left >= 0
}

const tooLate = (cause: unknown): EngineFailure =>
  new EngineFailure('The engine did not answer in time.', { cause })

function isTimeout(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError')
}

/** Explanations of TLS errors, by code. */
const tlsMistakes: readonly (readonly [codes: RegExp, meaning: string])[] = [
  [
    /SELF_SIGNED_CERT|^UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT)|^CERT_(SIGNATURE_FAILURE|UNTRUSTED)/,
    'Its certificate was not signed by the certificate authority of this connector.',
  ],
  [/^CERT_HAS_EXPIRED/, 'Its certificate has expired.'],
  [/^CERT_NOT_YET_VALID/, 'Its certificate is not valid yet.'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID/, 'Its certificate is for another name or address.'],
  [
    /_ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_\w+|DECRYPT_ERROR|ACCESS_DENIED|HANDSHAKE_FAILURE)/,
    'It does not accept the client certificate of this connector.',
  ],
  [/^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG))/, 'It does not speak TLS on this port.'],
]

function unreached(error: NodeJS.ErrnoException): EngineFailure {
  if (isTimeout(error)) return tooLate(error)
  const code = error.code ?? 'failed'
  const meaning = tlsMistakes.find(([codes]) => codes.test(code))?.[1]
  const sentence = `The engine cannot be reached (${code}).`
  return new EngineFailure(meaning === undefined ? sentence : `${sentence} ${meaning}`, { cause: error })
}

/** Resolving names takes time, too. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const stop = (): void => aborted.reject(tooLate(signal.reason))
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Engines report errors as { "message": … }. */
function messageIn(said: Buffer): string {
  const text = said.toString('utf8')
  try {
    const { message } = JSON.parse(text) as { message?: unknown }
    return typeof message === 'string' ? message : text
  } catch {
    return text
  }
}

// Calls to the server's HTTP interface, with no more than they need: an agent lives on small machines, and
// node:http is there anyway. Every call has a time limit, and an answer a largest size.
import http from 'node:http'
import https from 'node:https'

export interface Answer {
  readonly status: number
  /** Undefined: the answer was not JSON. */
  readonly body: unknown
  readonly retryAfter_s: number | undefined
  readonly location: string | undefined
}

export interface Call {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly token?: string | undefined
  readonly body?: object | undefined
  readonly signal?: AbortSignal | undefined
  /** Connections to reuse; absent: the call opens one. */
  readonly connections?: Connections | undefined
}

/** Connections that stay open for a while, for calls that a person waits for. */
export interface Connections {
  readonly http: http.Agent
  readonly https: https.Agent
}

const idle = { keepAlive: true, timeout: 10_000, maxFreeSockets: 2 }

export function keptConnections(): Connections {
  return { http: new http.Agent(idle), https: new https.Agent(idle) }
}

/**
 * For connections that are used once. Remembering the server's TLS session saves the next connection, or
 * tunnel, the certificates: some kilobytes and a signature each time.
 */
export const resumingTls = new https.Agent({ keepAlive: false, maxCachedSessions: 4 })

const limit_ms = 30_000
const largest_bytes = 256 * 1024

export function call({ method, url, token, body, signal, connections }: Call): Promise<Answer> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const secure = url.startsWith('https:')
  const { request } = secure ? https : http
  const agent = secure ? (connections?.https ?? resumingTls) : (connections?.http ?? false)
  return new Promise((resolve, reject) => {
    const headers = {
      accept: 'application/json',
      'user-agent': 'hawser-agent',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    }
    const limits = AbortSignal.any([AbortSignal.timeout(limit_ms), ...(signal ? [signal] : [])])
    const asked = request(url, { method, headers, signal: limits, agent }, (response) => {
      const parts: Buffer[] = []
      let bytes = 0
      response.on('data', (part: Buffer) => {
        bytes += part.length
        if (bytes > largest_bytes) asked.destroy(new Error('The answer is too large.'))
        else parts.push(part)
      })
      response.on('error', reject)
      response.on('end', () => {
        const after = Number(response.headers['retry-after'])
        resolve({
          status: response.statusCode ?? 0,
          body: parse(Buffer.concat(parts).toString('utf8')),
          retryAfter_s: Number.isFinite(after) ? after : undefined,
          location: response.headers.location,
        })
      })
    })
    asked.on('error', (error) => {
      if (signal?.aborted) return reject(error)
      // The server closed the connection while it was idle, and the call never reached it.
      const { code } = error as NodeJS.ErrnoException
      if (asked.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE'))
        return resolve(call({ method, url, token, body, signal }))
      void import('./connection-errors.ts').then(async ({ explained }) => reject(await explained(error, url)))
    })
    asked.end(text)
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

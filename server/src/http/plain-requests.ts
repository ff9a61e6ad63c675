// What becomes of requests that come unencrypted to a server that has TLS. They are sent to the address with
// https, by a status that keeps method and body; with the policy `serve` only people in a browser are, and
// agents and programs are served as before. Health checks and the challenges of an ACME server are always
// answered. A proxy that speaks TLS itself, and says so, has nothing redirected.
import { isIP } from 'node:net'
import type { IncomingMessage } from 'node:http'
import { Failure } from '@hawser/contract/failures'
import { pathOf } from './upgrade.ts'

export interface HttpsParts {
  /** What is done with requests that came unencrypted. */
  readonly policy: 'redirect' | 'serve'
  /** The public address, if it begins with https; else empty. */
  readonly url: string
  /** The port with TLS, for those who are sent there. */
  readonly port: number
  /** Whether there is a certificate. */
  isReady(): boolean
}

export const challengePath = '/.well-known/acme-challenge/'

const always = new Set(['/healthcheck', '/api/healthcheck'])

/** Where the request has to go instead; undefined if it is to be served. Throws while it can go nowhere. */
export function redirection(parts: HttpsParts, request: IncomingMessage): string | undefined {
  const path = pathOf(request)
  if (always.has(path) || path.startsWith(challengePath)) return undefined
  if (parts.policy === 'serve' && !isNavigation(request)) return undefined
  if (!parts.isReady()) {
    if (parts.policy === 'serve') return undefined
    throw new Failure('unavailable', {
      message: 'This server speaks TLS, and has no certificate yet.',
      retryAfter: 10,
    })
  }
  const host = hostOf(request)
  if (parts.url === '' && host === undefined)
    throw new Failure('invalid', { message: 'This server speaks TLS: its address begins with https://.' })
  const own = `https://${host}${parts.port === 443 ? '' : `:${parts.port}`}`
  // Only what begins with a slash can be appended to a host without changing it.
  const target = request.url?.startsWith('/') ? request.url : '/'
  return `${parts.url || own}${target}`
}

/** A year, as browsers ask of sites that they are to know by heart. */
export const strictTransport = { 'strict-transport-security': 'max-age=31536000' }

/** Whether browsers are to come with https only: names other than localhost, when we speak TLS ourselves. */
export function isStrict(request: IncomingMessage): boolean {
  const host = hostOf(request)
  return (
    'encrypted' in request.socket &&
    request.socket.encrypted === true &&
    host !== undefined &&
    !host.startsWith('[') &&
    isIP(host) === 0 &&
    !/(^|\.)localhost$/i.test(host)
  )
}

/** The name or address in the Host header, without its port; undefined if it is none. */
function hostOf({ headers: { host = '' } }: IncomingMessage): string | undefined {
  return /^([a-zA-Z0-9](?:[a-zA-Z0-9.-]{0,252})|\[[0-9a-fA-F:.]{2,45}\])(?::\d{1,5})?$/.exec(host)?.[1]
}

/** Whether a browser asks for a page, for a person to look at. */
function isNavigation({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  return headers['sec-fetch-mode'] === 'navigate' || /\btext\/html\b/.test(headers.accept ?? '')
}

// Unencrypted requests to a server that has TLS. They are redirected to https by a status that preserves
// method and body; the policy `serve` redirects only people in a browser. Health checks and ACME challenges
// are always answered, and requests of a proxy that speaks TLS itself, and says so, are never redirected.
import { isIP } from 'node:net'
import type { IncomingMessage } from 'node:http'
import { Failure } from '@hawser/contract/failures'
import { pathOf } from './upgrade.ts'

export interface HttpsParts {
  readonly policy: 'redirect' | 'serve'
  /** Empty if it does not begin with https. */
  readonly url: string
  /** The port with TLS. */
  readonly port: number
  /** Whether there is a certificate. */
  isReady(): boolean
}

export const challengePath = '/.well-known/acme-challenge/'

const always = new Set(['/healthcheck', '/api/healthcheck'])

/** Undefined: serve the request. Throws while there is no address to redirect to. */
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

/** A year, as browsers require for preloading. */
export const strictTransport = { 'strict-transport-security': 'max-age=31536000' }

/** Whether browsers must use https: for names other than localhost, when we speak TLS ourselves. */
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

/** Without its port; undefined if the Host header is neither name nor address. */
function hostOf({ headers: { host = '' } }: IncomingMessage): string | undefined {
  return /^([a-zA-Z0-9](?:[a-zA-Z0-9.-]{0,252})|\[[0-9a-fA-F:.]{2,45}\])(?::\d{1,5})?$/.exec(host)?.[1]
}

function isNavigation({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  return headers['sec-fetch-mode'] === 'navigate' || /\btext\/html\b/.test(headers.accept ?? '')
}

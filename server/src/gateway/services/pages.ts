// What a browser gets when a service cannot be reached: a page with one sentence, which loads itself again,
// or JSON for programs that ask for it. Strangers read them too, so they name neither device nor target.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { escapeHtml } from '../../kit/html.ts'
import type { WhyUnreachable } from './target.ts'

interface Page {
  readonly status: number
  readonly message: string
  /** Whether to try again is worth while. */
  readonly again?: true
}

const unreachable: Readonly<Record<WhyUnreachable, Page>> = {
  offline: { status: 503, message: 'The device is offline.', again: true },
  closed: { status: 502, message: 'Nothing on the device listens at the port of this service.', again: true },
  unreachable: { status: 502, message: 'The device cannot reach the host of this service.', again: true },
  off: { status: 502, message: 'Services are switched off on the device (HAWSER_SERVICES).' },
  forbidden: {
    status: 502,
    message: 'The device does not permit connections to the host of this service; see HAWSER_SERVICES there.',
  },
  unapproved: { status: 502, message: 'The agent of the device does not trust the key of this server.' },
  unsupported: {
    status: 502,
    message:
      'The agent of the device cannot connect to services: update it, or name a user of the device in the service.',
  },
  login: { status: 502, message: 'The device refused the login of the user that this service names.' },
  certificate: {
    status: 502,
    message: 'The certificate of the device is not the one that this service expects.',
  },
  broken: { status: 502, message: 'The device did not send a valid HTTP response.' },
  busy: { status: 503, message: 'The device has too many connections open.', again: true },
  failed: { status: 502, message: 'The device could not connect to this service.', again: true },
  timeout: { status: 504, message: 'The device did not connect in time.', again: true },
  slow: { status: 504, message: 'The device did not answer in time.', again: true },
}

const again_s = 5

export const statusOf = (why: WhyUnreachable): number => unreachable[why].status

export function showUnreachable(
  request: IncomingMessage,
  response: ServerResponse,
  why: WhyUnreachable,
): void {
  show(request, response, unreachable[why])
}

/** Any other refusal of ours. */
export function show(
  request: IncomingMessage,
  response: ServerResponse,
  { status, message, again }: Page,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent) return void response.destroy()
  // A form that was sent is a page, too.
  const wantsPage = isNavigation(request) || request.headers['sec-fetch-mode'] === 'navigate'
  const body = wantsPage
    ? page(message, again === true && request.method === 'GET')
    : JSON.stringify({ message })
  response.writeHead(status, {
    'content-type': wantsPage ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    ...(again ? { 'retry-after': String(again_s) } : {}),
    // What is left of a body is not waited for.
    ...(request.complete || !hasBody(request) ? {} : { connection: 'close' }),
    ...headers,
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

export const hasBody = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/** A person who looks at the page itself. */
export function isNavigation({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const mode = headers['sec-fetch-mode']
  return mode === undefined ? /\btext\/html\b/.test(headers.accept ?? '') : mode === 'navigate'
}

const page = (message: string, again: boolean): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
${again ? `<meta http-equiv="refresh" content="${again_s}">` : ''}<title>Hawser</title>
<style>html{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}body{margin:20vh auto;max-width:32rem;padding:0 1rem}</style>
</head><body><p>${escapeHtml(message)}</p>${again ? '<p>This page reloads by itself.</p>' : ''}</body></html>
`

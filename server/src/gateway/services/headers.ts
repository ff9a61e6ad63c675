// Headers on their way through: those of one connection stay behind, what the server says about the caller
// replaces what the caller says, and cookies of the server and of a device never meet.
import type { IncomingMessage } from 'node:http'
import type { Admitted } from '../../domain/access/service-access.ts'
import { cookieNames } from './cookies.ts'

type Service = Admitted['service']

const ofConnection = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'http2-settings',
])

/** Many programs read an underscore in a name as a hyphen. */
const plainName = (name: string): string => name.toLowerCase().replaceAll('_', '-')

/** What only the server may tell a device. */
const saidByUs =
  /^(?:host|forwarded|x-forwarded-.*|x-real-ip|x-hawser-.*|(?:x-|true-|x-cluster-)?client-ip|proxy|via|cookie)$/
const isOrigin = /^(?:origin|referer)$/
/** What a device may not tell a browser: it would reach beyond its own origin. */
const notForBrowsers = new Set(['clear-site-data', 'alt-svc', 'set-cookie'])

const ourName = 'hawser'
/** No request passes more servers of ours than this on purpose. */
const mostHops = 3

export interface Caller {
  readonly source: string
  readonly secure: boolean
  /** The Host header of the service. */
  readonly host: string
  readonly user?: { readonly name: string; readonly assertion: string } | undefined
}

/** Whether the request has come through us again and again: the service leads back to this server. */
export const isLoop = ({ headers }: IncomingMessage): boolean =>
  (headers.via ?? '').split(',').filter((hop) => hop.trim().endsWith(` ${ourName}`)).length >= mostHops

/** Names in the Connection header are of this connection, too. */
function namedIn(connection: string | undefined): ReadonlySet<string> {
  return new Set((connection ?? '').split(',').map((name) => name.trim().toLowerCase()))
}

/** Pairs of names and values, one after the other. */
export function towardsDevice(request: IncomingMessage, service: Service, caller: Caller): string[] {
  const { rawHeaders, headers } = request
  const named = namedIn(headers.connection)
  const sent: string[] = ['Host', hostFor(service, caller.host)]
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    // The length is written anew with the body (proxy.ts): Connection could take it away.
    if (ofConnection.has(name) || name === 'content-length' || named.has(name)) continue
    if (saidByUs.test(plainName(name))) continue
    const value = rawHeaders[at + 1]!
    sent.push(rawHeaders[at]!, isOrigin.test(name) ? translated(value, service, caller) : value)
  }
  const cookies = withoutOurs(headers.cookie)
  if (cookies !== '') sent.push('Cookie', cookies)
  sent.push('X-Forwarded-For', caller.source, 'X-Forwarded-Proto', caller.secure ? 'https' : 'http')
  sent.push('X-Forwarded-Host', caller.host)
  sent.push('Via', [headers.via, `1.1 ${ourName}`].filter(Boolean).join(', '))
  if (caller.user) sent.push('X-Hawser-User', caller.user.name, 'X-Hawser-Assertion', caller.user.assertion)
  return sent
}

/** The page of the service itself, at the host that the device gets; other pages are named as they are. */
function translated(page: string, service: Service, caller: Caller): string {
  const own = `${caller.secure ? 'https' : 'http'}://${caller.host}`
  if (service.host_header === 'own' || (page !== own && !page.startsWith(`${own}/`))) return page
  return `${service.scheme}://${hostFor(service, caller.host)}${page.slice(own.length)}`
}

function hostFor({ host_header, host, port, scheme }: Service, own: string): string {
  if (host_header === 'own') return own
  if (host_header !== 'target') return host_header
  const name = host.includes(':') ? `[${host}]` : host
  return port === (scheme === 'https' ? 443 : 80) ? name : `${name}:${port}`
}

function withoutOurs(cookie: string | undefined): string {
  if (cookie === undefined) return ''
  return cookie
    .split(';')
    .map((one) => one.trim())
    .filter((one) => one !== '' && !isOurs(one))
    .join('; ')
}

const isOurs = (cookie: string): boolean =>
  cookieNames.has((/^[\s=]*([^=;]*)/.exec(cookie)?.[1] ?? '').trim())

/** Pairs of names and values, one after the other. */
export function towardsBrowser(
  answer: IncomingMessage,
  service: Service,
  caller: Pick<Caller, 'host' | 'secure'>,
): string[] {
  const { rawHeaders, headers } = answer
  const named = namedIn(headers.connection)
  const sent: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name, value] = [rawHeaders[at]!.toLowerCase(), rawHeaders[at + 1]!]
    if (ofConnection.has(name) || notForBrowsers.has(name) || named.has(name)) continue
    if (name === 'cache-control' && service.audience !== 'public') continue
    sent.push(rawHeaders[at]!, name === 'location' ? own(value, service, caller) : value)
  }
  if (service.audience !== 'public') sent.push('Cache-Control', forOne(headers['cache-control']))
  for (const cookie of headers['set-cookie'] ?? []) {
    const kept = ownCookie(cookie)
    if (kept !== undefined) sent.push('Set-Cookie', kept)
  }
  return sent
}

/** What only some may see is for no cache that others share. */
function forOne(caching: string | undefined): string {
  const kept = (caching ?? '')
    .split(',')
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '' && !/^(?:public|private|s-maxage)(?:=|$)/i.test(directive))
  return ['private', ...kept].join(', ')
}

/** A cookie without its Domain, so that it stays with this service; undefined: it has a name of ours. */
function ownCookie(cookie: string): string | undefined {
  if (isOurs(cookie)) return undefined
  const [pair = '', ...attributes] = cookie.split(';')
  return [pair, ...attributes.filter((attribute) => !/^\s*domain\s*(?:=|$)/i.test(attribute))].join(';')
}

/** A device that does not know its address redirects to the target: that is the service itself. */
function own(location: string, service: Service, { host, secure }: Pick<Caller, 'host' | 'secure'>): string {
  if (service.host_header === 'own') return location
  const url = URL.parse(location)
  const target = URL.parse(`${service.scheme}://${hostFor(service, host)}`)
  if (!url || url.host !== target?.host) return location
  return `${secure ? 'https' : 'http'}://${host}${url.pathname}${url.search}${url.hash}`
}

// Where a request comes from. The caller's address is the TCP peer; headers count only from a trusted proxy,
// and only when well-formed. Proxies pass on what callers write, so one header is read for the address, not
// the best of several; if the two usual ones contradict each other, that is reported, because a proxy may set
// the one that is not read.
import { isIP, type BlockList } from 'node:net'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { RequestOrigin } from '../domain/callers/callers.ts'
import { plainAddress } from '../kit/address.ts'
import { minute_ms } from '../kit/clock.ts'

const first = (header: string | string[] | undefined): string | undefined =>
  (Array.isArray(header) ? header[0] : header)?.trim()

const contradiction =
  'A request came with an X-Real-IP that is not in its X-Forwarded-For. If the proxy sets X-Real-IP alone, callers choose their ' +
  'own address: name the header that the proxy sets in HAWSER_ADDRESS_HEADER.'

export interface ProxyHeaderOptions {
  readonly trusted: BlockList
  /** The one header in which proxies name the caller, lower case; empty for the usual ones. */
  readonly header: string
  /**
   * X-Real-IP is not among the addresses of X-Forwarded-For, so the caller wrote one of them. Once a minute
   * at most.
   */
  onContradiction?(message: string): void
}

export function whereFrom({
  trusted,
  header,
  onContradiction,
}: ProxyHeaderOptions): (request: IncomingMessage) => RequestOrigin {
  let tellAgain_at = -Infinity
  const trusts = (address: string): boolean => {
    const family = isIP(address)
    return family !== 0 && trusted.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }

  return ({ headers, socket }) => {
    const peer = plainAddress(socket.remoteAddress ?? '')
    const secure = 'encrypted' in socket && socket.encrypted === true
    const host = headers.host ?? ''
    if (!trusts(peer)) return { source: peer, host, secure }
    const way = wayOf(said(headers, header, peer), trusts)
    const contradicted = header === '' && contradicts(headers, way)
    if (contradicted && performance.now() >= tellAgain_at) {
      tellAgain_at = performance.now() + minute_ms
      onContradiction?.(contradiction)
    }
    return {
      source: way.at(-1) ?? peer,
      host: publicHost(first(headers['x-forwarded-host']) ?? host, first(headers['x-forwarded-port'])),
      secure: first(headers['x-forwarded-proto']) === 'https' || secure,
    }
  }
}

/** The port that people use, where the proxy names it apart; usual ones are left out. */
function publicHost(host: string, port: string | undefined): string {
  const named = /:\d+$/.test(host)
  return port === undefined || named || !/^[1-9]\d{0,4}$/.test(port) || port === '80' || port === '443'
    ? host
    : `${host}:${port}`
}

/** The addresses that headers name, nearest last. */
function said(headers: IncomingHttpHeaders, named: string, peer: string): string {
  const chain = headers[named || 'x-forwarded-for']
  if (chain !== undefined) return Array.isArray(chain) ? chain.join(',') : chain
  // For proxies on the same machine that set only this one. It holds one address, never a list.
  const real = named === '' && isLoopback(peer) ? first(headers['x-real-ip']) : undefined
  return real?.includes(',') ? '' : (real ?? '')
}

/**
 * From the nearest on. The right-most address that is not one of our own proxies was seen by one of them, and
 * is the last here; anyone can write those left of it.
 */
function wayOf(chain: string, trusts: (address: string) => boolean): string[] {
  const way: string[] = []
  for (const hop of chain.split(',').toReversed()) {
    const address = plainAddress(hop.trim())
    if (!isIP(address)) return way
    way.push(address)
    if (!trusts(address)) return way
  }
  return way
}

/** A proxy may set X-Real-IP alone and pass on any X-Forwarded-For; which of the two it set cannot be seen. */
function contradicts(headers: IncomingHttpHeaders, way: readonly string[]): boolean {
  const real = headers['x-real-ip']
  if (real === undefined || headers['x-forwarded-for'] === undefined) return false
  return !way.includes(plainAddress(first(real) ?? ''))
}

const isLoopback = (address: string): boolean =>
  address === '::1' || (isIP(address) === 4 && address.startsWith('127.'))

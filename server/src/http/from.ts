// Where a request comes from. The caller's address is the TCP peer; X-Real-IP and X-Forwarded-* count only when the peer
// is a trusted proxy, and only if they hold what they should: anything else is as if it were not there.
import { isIP, type BlockList } from 'node:net'
import type { IncomingMessage } from 'node:http'
import type { From } from '../domain/callers.ts'
import { plainAddress } from '../kit/address.ts'

const first = (header: string | string[] | undefined): string | undefined => (Array.isArray(header) ? header[0] : header)?.trim()

export function whereFrom(trusted: BlockList): (request: IncomingMessage) => From {
  const trusts = (address: string): boolean => {
    const family = isIP(address)
    return family !== 0 && trusted.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }

  return ({ headers, socket }) => {
    const peer = plainAddress(socket.remoteAddress ?? '')
    const secure = 'encrypted' in socket && socket.encrypted === true
    const host = headers.host ?? ''
    if (!trusts(peer)) return { source: peer, host, secure }
    return {
      source: realAddress(headers['x-real-ip'], headers['x-forwarded-for'], peer, trusts),
      host: publicHost(first(headers['x-forwarded-host']) ?? host, first(headers['x-forwarded-port'])),
      secure: first(headers['x-forwarded-proto']) === 'https' || secure,
    }
  }
}

/** The port that people use, where the proxy names it apart; the usual ones go without saying. */
function publicHost(host: string, port: string | undefined): string {
  const named = /:\d+$/.test(host)
  return port === undefined || named || !/^[1-9]\d{0,4}$/.test(port) || port === '80' || port === '443' ? host : `${host}:${port}`
}

function realAddress(
  real: string | string[] | undefined,
  forwarded: string | string[] | undefined,
  peer: string,
  trusts: (address: string) => boolean,
): string {
  const given = plainAddress(first(real) ?? '')
  if (isIP(given)) return given
  // The right-most address that is not one of our own proxies was seen by one of them; all left of it is hearsay.
  const chain = (Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? '')).split(',').map((part) => plainAddress(part.trim()))
  for (const address of chain.toReversed()) {
    if (!isIP(address)) return peer
    if (!trusts(address)) return address
  }
  return peer
}

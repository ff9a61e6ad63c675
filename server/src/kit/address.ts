// Network addresses: one spelling for each, and which are neighbours when attempts are limited.
import { isIP, isIPv6 } from 'node:net'

/**
 * `::ffff:192.0.2.7` and `::ffff:c000:207` are 192.0.2.7 by other names. What is no address, or has a zone,
 * is unchanged.
 */
export function plainAddress(address: string): string {
  if (!address.includes(':') || !isIPv6(address) || address.includes('%')) return address
  const spelled = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled)
  if (!mapped) return spelled
  const [high, low] = mapped.slice(1).map((group) => Number.parseInt(group, 16)) as [number, number]
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}

/**
 * An address, or the /64 that one IPv6 host usually has to itself. `bits` of an IPv6 address count, a
 * multiple of 16.
 */
export function neighbourhood(address: string, bits = 64): string {
  if (isIP(address) !== 6) return address
  const [head = '', tail] = address.split('::')
  const groups = head ? head.split(':') : []
  if (tail !== undefined) {
    // `::` stands for the missing zeros.
    const after = tail ? tail.split(':') : []
    while (groups.length + after.length < 8) groups.push('0')
    groups.push(...after)
  }
  return `${groups.slice(0, bits / 16).join(':')}::/${bits}`
}

/** As in a URL: an IPv6 address in brackets. */
export const hostAndPort = ({ host, port }: { readonly host: string; readonly port: number }): string =>
  `${isIPv6(host) ? `[${host}]` : host}:${port}`

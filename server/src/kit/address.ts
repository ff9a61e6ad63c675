// Network addresses: one spelling for each, and what counts as one neighbour when attempts are limited.
import { isIP } from 'node:net'

/** `::ffff:192.0.2.7` is 192.0.2.7 by another name. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}

/** What is limited together: an address, or the /64 that one IPv6 host usually has to itself. */
export function neighbourhood(address: string): string {
  if (isIP(address) !== 6) return address
  const [head = '', tail] = address.split('::')
  const groups = head ? head.split(':') : []
  if (tail !== undefined) {
    // `::` stands for as many zeros as are missing between what is before and after it.
    const after = tail ? tail.split(':') : []
    while (groups.length + after.length < 8) groups.push('0')
    groups.push(...after)
  }
  return `${groups.slice(0, 4).join(':')}::/64`
}

// Names of many devices at once.
import type { Device } from '@hawser/contract/devices'

/** `{name}`: the present name, `{n}`: a number, `{mac}`: the MAC address. */
export function nameBy(pattern: string, { name, identity }: Device, n: number, count: number): string {
  const width = String(count).length
  return pattern
    .replaceAll('{name}', name)
    .replaceAll('{n}', String(n).padStart(width, '0'))
    .replaceAll('{mac}', identity.mac.replaceAll(':', '-'))
}

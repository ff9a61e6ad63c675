// The setting HAWSER_SERVICES: the targets that people may open as web services of this device.
//   off        none
//   localhost  the device itself (the default)
//   network    also everything that the device reaches, except addresses that never are (permitted-targets.ts)
//   a list     exactly these: name:80 address:80 10.0.0.0/24:80 [fd00::1]:80 [fd00::/64]:80 localhost; the
//              port * stands for every port
import { isIP, SocketAddress } from 'node:net'

export interface PermittedTarget {
  /** As `readHost` returns it; of a network, any address in it. */
  readonly host: string
  /** The length of the prefix of a network. */
  readonly bits: number | undefined
  /** Undefined: every port. */
  readonly port: number | undefined
}

export type ServicesSetting = 'off' | 'network' | readonly PermittedTarget[]

const longestName = 253
/** The resolver would read a last label of digits as a part of an address. */
const name = /^(?:[a-z0-9_][a-z0-9_-]{0,62}\.)*(?!\d+$|0x[\da-f]*$)[a-z0-9_][a-z0-9_-]{0,62}$/
const entry = /^(?:\[([^\]/]+)(?:\/(\d{1,3}))?\]|([^:/[\]]+)(?:\/(\d{1,2}))?):(\*|\d{1,5})$/

/** Undefined: not a setting. */
export function readServices(text: string): ServicesSetting | undefined {
  if (text === 'off' || text === 'network') return text
  const entries = text.split(/[\s,]+/).map(readEntry)
  return entries.every((each) => each !== undefined) ? entries : undefined
}

function readEntry(text: string): PermittedTarget | undefined {
  const parts = entry.exec(text === 'localhost' ? 'localhost:*' : text) ?? []
  const [, inBrackets, longPrefix, plain, shortPrefix, portText] = parts
  const host = readHost(inBrackets ?? plain)
  if (host === undefined) return undefined
  const family = isIP(host)
  const prefix = longPrefix ?? shortPrefix
  const bits = prefix === undefined ? undefined : Number(prefix)
  const longest = family === 6 ? 128 : 32
  const fits = (family === 6) === (inBrackets !== undefined)
  if (!fits || (bits !== undefined && (family === 0 || bits > longest))) return undefined
  const port = portText === '*' ? undefined : Number(portText)
  return port === undefined || isPort(port) ? { host, bits, port } : undefined
}

export const isPort = (port: unknown): port is number =>
  typeof port === 'number' && Number.isInteger(port) && port > 0 && port < 65_536

/** A name in lower case, or an address in its usual spelling; undefined: neither. */
export function readHost(text: unknown): string | undefined {
  if (typeof text !== 'string' || text.length > longestName) return undefined
  if (isIP(text) !== 0) return text.includes('%') ? undefined : plainAddress(text)
  const plain = text.toLowerCase().replace(/\.$/, '')
  return name.test(plain) ? plain : undefined
}

/** `::ffff:192.0.2.7` is 192.0.2.7 by another name. */
export function plainAddress(address: string): string {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  return new SocketAddress({ address, family }).address.replace(/^::ffff:(?=\d+\.)/, '')
}

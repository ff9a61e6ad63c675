// Where audit streams may go. The URL comes from a tenant, so every delivery is a connection that the server
// makes on somebody's behalf, checked at each connection (outbound/addresses.ts):
//   - never: forbidden addresses, and the server's own ports and name;
//   - loopback and the machine's own addresses: only if HAWSER_STREAM_ALLOW names the address or the host;
//   - private networks (RFC 1918 and alike): also if it names a subnet that they are in;
//   - the rest of the Internet: with TLS; without TLS as private networks.
import { Resolver } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { plainAddress } from '../kit/address.ts'
import { AddressRefused, checkedAddress, kindOf, systemLookup, type Lookup } from '../outbound/addresses.ts'

/** A host, an address or a subnet that the administrator vouches for, with a port or any. */
export interface AllowedReceiver {
  readonly host: string
  readonly port: number | undefined
  /** The prefix length of the subnet; undefined: it is a host or an address. */
  readonly bits: number | undefined
}

export interface Destination {
  readonly protocol: 'webhook' | 'syslog'
  readonly secure: boolean
  readonly host: string
  readonly port: number
  readonly path: string
}

/** The message is safe to show. */
export class DeliveryFailed extends Error {}

export const talkative = 'The receiver says more than it is asked for.'

const shapes = {
  'https:': { protocol: 'webhook', secure: true },
  'http:': { protocol: 'webhook', secure: false },
  'syslog+tls:': { protocol: 'syslog', secure: true },
  'syslog+tcp:': { protocol: 'syslog', secure: false },
} as const

const defaultPorts = { 'https:': 443, 'http:': 80, 'syslog+tls:': 6514, 'syslog+tcp:': 601 } as const

/** Throws a DeliveryFailed with a sentence. */
export function destinationOf(url: string): Destination {
  const scheme = /^[a-z+]+:/.exec(url)?.[0] as keyof typeof shapes | undefined
  const shape = scheme && Object.hasOwn(shapes, scheme) ? shapes[scheme] : undefined
  // Read as https, whose hosts are spelled in one way only: 0x7f.1 is 127.0.0.1.
  const read = shape && scheme && URL.parse(`https:${url.slice(scheme.length)}`)
  if (!shape || !scheme || !read) throw new DeliveryFailed('The URL cannot be read.')
  if (read.username || read.password)
    throw new DeliveryFailed('The URL may not have a user name or a password in it.')
  if (read.hash) throw new DeliveryFailed('The URL may not have a fragment (#).')
  if (shape.protocol === 'syslog' && `${read.pathname}${read.search}` !== '/')
    throw new DeliveryFailed('The URL of a syslog server is a host and a port.')
  // Reading as https drops :443 as its default, but for the other schemes it is a port like others.
  const port = read.port ? Number(read.port) : /:443\/?$/.test(url) ? 443 : defaultPorts[scheme]
  return {
    ...shape,
    host: read.hostname.replace(/^\[|\]$/g, ''),
    port,
    path: `${read.pathname}${read.search}`,
  }
}

export interface DestinationParts {
  allow: readonly AllowedReceiver[]
  /** Ports that the server itself listens on. */
  ownPorts(): readonly number[]
  /** The host under which people reach the server; empty: unknown. */
  ownHost: string
  /** Absent: the system's. */
  nameServers?: readonly string[] | undefined
}

export interface Destinations {
  /** Throws a DeliveryFailed. */
  resolve(destination: Destination): Promise<string>
  /** Checks before anything is resolved. Throws a DeliveryFailed. */
  check(destination: Destination): void
}

const dns = { timeout: 2000, tries: 2 }

export function destinations({ allow, ownPorts, ownHost, nameServers }: DestinationParts): Destinations {
  /**
   * Asks name servers, which are read each time, directly: the system's look-up holds a thread for as long as
   * somebody's name server likes, and others wait for these threads.
   */
  const byName: Lookup = async (host) => {
    const resolver = new Resolver(dns)
    if (nameServers) resolver.setServers(nameServers)
    const found = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    return found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
  }

  const fits = (entry: AllowedReceiver, host: string, address: string, port: number): boolean => {
    if (entry.port !== undefined && entry.port !== port) return false
    if (entry.bits === undefined) return [host, plainAddress(address)].includes(entry.host)
    const family = isIP(entry.host) === 6 ? 'ipv6' : 'ipv4'
    const list = new BlockList()
    list.addSubnet(entry.host, entry.bits, family)
    return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }

  function may({ host, port, secure }: Destination, address: string): boolean {
    const kind = kindOf(address)
    if (kind === 'forbidden') return false
    const named = allow.filter((entry) => fits(entry, host, address, port))
    if (kind === 'loopback' || kind === 'own')
      return !ownPorts().includes(port) && named.some(({ bits }) => bits === undefined)
    if (kind === 'private' || !secure) return named.length > 0
    return true
  }

  function refuse({ host, secure }: Destination, address = host): never {
    throw new DeliveryFailed(
      secure || (isIP(address) !== 0 && kindOf(address) !== 'public')
        ? `The address ${host} is private or the server's own; the server's administrator has not allowed it.`
        : `Without TLS nothing is sent to ${host}; the server's administrator has not allowed it.`,
    )
  }

  function check(destination: Destination): void {
    const { host } = destination
    if (host.replace(/\.$/, '') === ownHost && isIP(host) === 0) refuse({ ...destination, secure: true })
    if (isIP(host) !== 0 && !may(destination, host)) refuse(destination)
  }

  return {
    check,
    async resolve(destination) {
      check(destination)
      const { host } = destination
      const vouched = allow.some((entry) => entry.bits === undefined && entry.host === host)
      try {
        return await checkedAddress(
          host,
          (address) => may(destination, address),
          vouched ? systemLookup : byName,
        )
      } catch (error) {
        if (!(error instanceof AddressRefused)) throw error
        if (error.why === 'refused') refuse(destination)
        throw new DeliveryFailed(`The host name ${host} cannot be resolved.`)
      }
    },
  }
}

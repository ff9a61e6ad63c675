// Where container engines are, and whether the server may go there. The address comes from a user, so every
// request to it is one that the server makes on someone's behalf: names are resolved here, at every
// connection, every address they stand for is checked, and the connection goes to the checked address, so
// that a name cannot change its mind in between. Loopback, link-local (cloud metadata) and unspecified
// addresses, those of this machine's own interfaces, and its sockets are refused unless the administrator
// allows them.
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { ConnectorTls } from '@hawser/contract/connectors'
import {
  engineClient,
  EngineFailure,
  engineInfo,
  type EngineClient,
  type EngineEndpoint,
} from '@hawser/engine'

export interface EngineAddress {
  readonly address: string
  readonly port: number
  readonly secure: boolean
  readonly tls: ConnectorTls | undefined
}

export interface Engine {
  /** Throws nothing: whether the engine may be reached, and can, is found out with every request. */
  client(engine: EngineAddress, signal?: AbortSignal): EngineClient
  /** What the engine says of itself. Throws an Error with a sentence that is safe to show. */
  info(engine: EngineAddress): Promise<Record<string, unknown>>
}

const forbidden = new BlockList()
for (const [net, bits] of [
  ['127.0.0.0', 8],
  ['0.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 4],
  ['255.255.255.255', 32],
  // Where some clouds tell their machines secrets.
  ['100.100.100.200', 32],
  ['192.0.0.192', 32],
] as const)
  forbidden.addSubnet(net, bits, 'ipv4')
for (const [net, bits] of [
  // Unspecified, loopback, and IPv4 in its oldest disguise.
  ['::', 96],
  ['fe80::', 10],
  ['ff00::', 8],
  ['fd00:ec2::254', 128],
  ['fd20:ce::254', 128],
  // IPv4 behind translators and relays: loopback and link-local.
  ['64:ff9b::7f00:0', 104],
  ['64:ff9b::a9fe:0', 112],
  ['2002:7f00::', 24],
  ['2002:a9fe::', 32],
] as const)
  forbidden.addSubnet(net, bits, 'ipv6')

/** `::ffff:127.0.0.1` is 127.0.0.1 to the network; BlockList knows that too. */
export function isForbidden(address: string): boolean {
  return forbidden.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/**
 * Asked each time: interfaces come and go. What listens on one of them often believes whoever is on the same
 * machine.
 */
function isOwn(address: string): boolean {
  const own = new BlockList()
  for (const each of Object.values(networkInterfaces()).flatMap((list) => list ?? []))
    own.addAddress(each.address, each.family === 'IPv6' ? 'ipv6' : 'ipv4')
  return own.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

const socket = 'unix://'

/** `allow`: host names, addresses or sockets that the administrator vouches for, whatever they resolve to. */
export function engine({ allow }: { allow: readonly string[] }): Engine {
  const refuse = (address: string): never => {
    throw new EngineFailure(
      `The address ${address} is the server's own or link-local; the administrator has not allowed it.`,
    )
  }

  async function resolve(host: string): Promise<string> {
    let found: { address: string }[]
    try {
      found = await lookup(host, { all: true, verbatim: true })
    } catch {
      throw new EngineFailure(`The host name ${host} cannot be resolved.`)
    }
    const mayNot = (address: string): boolean =>
      (isForbidden(address) || isOwn(address)) && !allow.includes(address)
    if (!allow.includes(host) && found.some(({ address }) => mayNot(address))) refuse(host)
    const [first] = found
    if (!first) throw new EngineFailure(`The host name ${host} has no address.`)
    return first.address
  }

  async function endpoint({ address, port, secure, tls }: EngineAddress): Promise<EngineEndpoint> {
    if (address.startsWith(socket))
      return allow.includes(address) ? { socketPath: address.slice(socket.length) } : refuse(address)
    const host = await resolve(address)
    const name = `${isIP(address) === 6 ? `[${address}]` : address}:${port}`
    return {
      host,
      port,
      name,
      tls: secure ? { secureContext: contextOf(tls), servername: isIP(address) ? '' : address } : undefined,
    }
  }

  const client: Engine['client'] = (address, signal) =>
    engineClient({ endpoint: async () => endpoint(address), signal })
  return { client, info: async (address) => engineInfo(client(address)) }
}

/** Made here and not by the request, so that what OpenSSL says of a bad key does not reach the caller. */
function contextOf(tls: ConnectorTls | undefined): SecureContext {
  try {
    // By name: among the other options of TLS are some that load code into this process.
    const { ca, cert, key } = tls ?? {}
    return createSecureContext({ ca, cert, key, minVersion: 'TLSv1.2' })
  } catch (cause) {
    throw new EngineFailure('The certificates or the key for TLS cannot be used.', { cause })
  }
}

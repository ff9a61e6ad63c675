// Where container engines are, and whether the server may go there. A user chooses the address, so names are
// resolved at every connection, every address is checked, and the connection goes to the checked address,
// which the name cannot change in between. Loopback, link-local (cloud metadata) and unspecified addresses,
// those of this machine's own interfaces, and its sockets are refused unless the administrator allows them.
import { isIP } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { ConnectorTls } from '@hawser/contract/connectors'
import {
  engineClient,
  engineFacts,
  EngineFailure,
  engineInfo,
  type EngineClient,
  type EngineEndpoint,
} from '@hawser/engine'
import { AddressRefused, checkedAddress, kindOf, type AddressKind } from '../outbound/addresses.ts'

export interface EngineAddress {
  readonly address: string
  readonly port: number
  readonly secure: boolean
  readonly tls: ConnectorTls | undefined
}

export interface Engine {
  /** Never throws: each request checks whether the engine may be reached. */
  client(engine: EngineAddress, signal?: AbortSignal): EngineClient
  /** Throws an Error with a sentence that is safe to show. */
  info(engine: EngineAddress): Promise<Record<string, unknown>>
}

/** Refused unless the administrator allows them. Private networks are not among them. */
const refusedKinds: readonly AddressKind[] = ['forbidden', 'loopback', 'own']

const socket = 'unix://'

/** `allow`: host names, addresses or sockets that the administrator vouches for, whatever they resolve to. */
export function engine({ allow }: { allow: readonly string[] }): Engine {
  const refuse = (address: string): never => {
    throw new EngineFailure(
      `The address ${address} is the server's own or link-local; the administrator has not allowed it.`,
    )
  }

  const may = (address: string): boolean => allow.includes(address) || !refusedKinds.includes(kindOf(address))

  async function resolve(host: string): Promise<string> {
    try {
      return await checkedAddress(host, (address) => allow.includes(host) || may(address))
    } catch (error) {
      if (!(error instanceof AddressRefused)) throw error
      if (error.why === 'refused') return refuse(host)
      throw new EngineFailure(`The host name ${host} cannot be resolved.`)
    }
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
  return {
    client,
    async info(address) {
      const asked = client(address)
      // Many things answer a request for info; only an engine reports the version of its interface.
      await engineFacts(asked)
      return engineInfo(asked)
    },
  }
}

/** Made here and not by the request, so that OpenSSL's words about a bad key do not reach the caller. */
function contextOf(tls: ConnectorTls | undefined): SecureContext {
  try {
    // By name: among the other options of TLS are some that load code into this process.
    const { ca, cert, key } = tls ?? {}
    return createSecureContext({ ca, cert, key, minVersion: 'TLSv1.2' })
  } catch (cause) {
    throw new EngineFailure('The certificates or the key for TLS cannot be used.', { cause })
  }
}

// Speaks to a container engine: plain HTTP or TLS, nothing but what the engine's own API needs. The address comes from
// a user, so it is a request that the server makes on someone's behalf: names are resolved here, every address they
// stand for is checked, and the connection goes to the checked address, so that a name cannot change its mind in
// between. Loopback, link-local (cloud metadata) and unspecified addresses are refused unless the administrator allows
// them.
import { lookup } from 'node:dns/promises'
import http from 'node:http'
import https from 'node:https'
import { BlockList, isIP } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { ConnectorTls } from '@hawser/contract/connectors'

export interface EngineAddress {
  readonly address: string
  readonly port: number
  readonly secure: boolean
  readonly tls: ConnectorTls | undefined
}

export interface Engine {
  /** What the engine says of itself. Throws a plain Error with a sentence that is safe to show. */
  info(engine: EngineAddress): Promise<Record<string, unknown>>
}

const answer_ms = 5000
const largest_answer = 1024 * 1024

const forbidden = new BlockList()
forbidden.addSubnet('127.0.0.0', 8, 'ipv4')
forbidden.addSubnet('0.0.0.0', 8, 'ipv4')
forbidden.addSubnet('169.254.0.0', 16, 'ipv4')
forbidden.addSubnet('224.0.0.0', 4, 'ipv4')
forbidden.addAddress('255.255.255.255', 'ipv4')
forbidden.addAddress('::', 'ipv6')
forbidden.addAddress('::1', 'ipv6')
forbidden.addSubnet('fe80::', 10, 'ipv6')
forbidden.addSubnet('ff00::', 8, 'ipv6')
forbidden.addAddress('fd00:ec2::254', 'ipv6')

/** `::ffff:127.0.0.1` is 127.0.0.1 to the network; BlockList knows that too. */
export function isForbidden(address: string): boolean {
  return forbidden.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/** `allow`: host names or addresses that the administrator vouches for, whatever they resolve to. */
export function engine({ allow }: { allow: readonly string[] }): Engine {
  async function resolve(host: string): Promise<string> {
    let found: { address: string }[]
    try {
      found = await lookup(host, { all: true, verbatim: true })
    } catch {
      throw new Error(`The host name ${host} cannot be resolved.`)
    }
    const refused = found.find(({ address }) => isForbidden(address) && !allow.includes(host) && !allow.includes(address))
    if (refused) throw new Error(`The address ${host} is the server's own or link-local; the administrator has not allowed it.`)
    const [first] = found
    if (!first) throw new Error(`The host name ${host} has no address.`)
    return first.address
  }

  return {
    async info({ address, port, secure, tls }) {
      const host = await resolve(address)
      const options: https.RequestOptions = {
        host,
        port,
        path: '/info',
        method: 'GET',
        headers: { host: `${isIP(address) === 6 ? `[${address}]` : address}:${port}`, accept: 'application/json' },
        signal: AbortSignal.timeout(answer_ms),
        agent: false,
        ...(secure ? { secureContext: contextOf(tls), servername: isIP(address) ? '' : address } : {}),
      }
      const text = await ask(secure ? https : http, options)
      try {
        const parsed: unknown = JSON.parse(text)
        if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as Record<string, unknown>
      } catch {
        // falls through: not what an engine says
      }
      throw new Error('What answers there is not a container engine.')
    },
  }
}

/** Made here and not by the request, so that what OpenSSL says of a bad key does not reach the caller. */
function contextOf(tls: ConnectorTls | undefined): SecureContext {
  try {
    return createSecureContext({ ...tls, minVersion: 'TLSv1.2' })
  } catch (cause) {
    throw new Error('The certificates or the key for TLS cannot be used.', { cause })
  }
}

function ask(protocol: typeof http | typeof https, options: https.RequestOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = protocol.request(options, (response) => {
      if (response.statusCode !== 200) {
        response.resume()
        reject(new Error(`The engine answered with status ${response.statusCode}.`))
        return
      }
      const chunks: Buffer[] = []
      let size = 0
      response.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size > largest_answer) request.destroy(new Error('too large'))
        else chunks.push(chunk)
      })
      response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
      response.on('error', () => reject(new Error('The engine broke off its answer.')))
    })
    request.on('error', (error: NodeJS.ErrnoException) => {
      reject(
        new Error(
          error.name === 'AbortError' ? 'The engine did not answer in time.' : `The engine cannot be reached (${error.code ?? 'failed'}).`,
        ),
      )
    })
    request.end()
  })
}

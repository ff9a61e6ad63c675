// The addresses of services: one label each, under a domain in which the server has nothing else.
import { addressPattern } from '@hawser/contract/services'

export interface ServiceAddresses {
  /** Of every service, without the dot before it. */
  readonly domain: string
  readonly secure: boolean
  /** host[:port] */
  hostOf(address: string): string
  urlOf(address: string): string
  /**
   * The label of a host below the domain; empty if it cannot be one of a service. Undefined: the host is not
   * below the domain, and the request is for the console.
   */
  labelOf(host: string): string | undefined
}

const label = new RegExp(addressPattern)

/** `base`: scheme and port under which browsers reach the server; `own`: a host that is the console's. */
export function serviceAddresses(domain: string, base: string, own = ''): ServiceAddresses {
  const { protocol, port } = new URL(base)
  const hostOf = (address: string): string => `${address}.${domain}${port === '' ? '' : `:${port}`}`
  return {
    domain,
    secure: protocol === 'https:',
    hostOf,
    urlOf: (address) => `${protocol}//${hostOf(address)}`,
    labelOf(host) {
      const name = host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
      if (!name.endsWith(`.${domain}`) || name === own) return undefined
      const first = name.slice(0, -domain.length - 1)
      return label.test(first) ? first : ''
    },
  }
}

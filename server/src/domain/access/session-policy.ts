// A namespace's policy as the gateway applies it, with sentences for the logged-in person. Destinations are
// compared as the device would understand them: an address has many spellings, and loopback many names; only
// the device resolves others.
import { isIP } from 'node:net'
import { posix } from 'node:path'
import { domainToASCII } from 'node:url'
import type { Policy } from '@hawser/contract/policies'
import { part, type SentencePart } from '@hawser/contract/sentences'
import { plainAddress } from '../../kit/address.ts'

/** Each method returns why something is forbidden; undefined: it is allowed. */
export interface SessionPolicy {
  readonly files: { readonly reads: string | undefined; readonly writes: string | undefined }
  command(command: string): string | undefined
  subsystem(name: string): string | undefined
  /** A connection from the client to an address or a socket that the device reaches. */
  forward(
    to: { readonly host: string; readonly port: number } | { readonly path: string },
  ): string | undefined
  /** Connections from the device to the client. */
  listen(): string | undefined
  /** Services of the device in a browser. */
  services(): string | undefined
}

const no = (what: string): string => `The policy of the namespace does not allow ${what}.`
const sentences = {
  uploads: no('uploads'),
  downloads: no('downloads'),
  receives: no('uploads, and this command receives files'),
  sends: no('downloads, and this command sends files'),
  subsystem: no('this subsystem'),
  unknown: no('some transfers of files, and only those of the subsystem sftp can be told apart'),
  forward: no('connections to this address'),
  unclear: no('connections to everything, and this address has characters that can mean another one'),
  listen: no('connections from the device'),
  services: no('services of devices to be opened'),
} as const

export function sessionPolicy(policy: Policy): SessionPolicy {
  const { uploads, downloads } = policy
  const excepted = policy.forward_exceptions.map(destinationOf)
  const isForbidden = policy.forwards === 'forbid'
  return {
    files: {
      reads: downloads ? undefined : sentences.downloads,
      writes: uploads ? undefined : sentences.uploads,
    },
    command(command) {
      const { receives, sends } = transfersOf(command)
      if (receives && !uploads) return sentences.receives
      return sends && !downloads ? sentences.sends : undefined
    },
    subsystem(name) {
      const isException = policy.subsystem_exceptions.includes(name)
      if ((policy.subsystems === 'forbid') !== isException) return sentences.subsystem
      return (uploads && downloads) || name === 'sftp' ? undefined : sentences.unknown
    },
    forward(to) {
      if (!isForbidden && excepted.length === 0) return undefined
      if (!('path' in to ? isClearPath(to.path) : isClearHost(to.host))) return sentences.unclear
      const names = 'path' in to ? [posix.normalize(to.path)] : namesOf(to.host, isForbidden)
      const isException = excepted.some((one) => ('path' in to ? one.fits(names) : one.fits(names, to.port)))
      return isException === isForbidden ? undefined : sentences.forward
    },
    listen: () => (isForbidden ? sentences.listen : undefined),
    services: () => (policy.services === 'forbid' ? sentences.services : undefined),
  }
}

export function policyPart(policy: Policy): SentencePart {
  const list = (
    kind: 'forwards' | 'subsystems',
    excepted: readonly string[],
    only: 'policy-forwards-to' | 'policy-subsystems-of',
  ): SentencePart[] => {
    const exceptions = excepted.join(', ')
    if (policy[kind] === 'allow') return exceptions === '' ? [] : [part(only, { exceptions })]
    return [exceptions === '' ? part(`policy-${kind}`) : part(`policy-${kind}-but`, { exceptions })]
  }
  const forbidden = [
    ...(policy.uploads ? [] : [part('policy-uploads')]),
    ...(policy.downloads ? [] : [part('policy-downloads')]),
    ...list('forwards', policy.forward_exceptions, 'policy-forwards-to'),
    ...list('subsystems', policy.subsystem_exceptions, 'policy-subsystems-of'),
    ...(policy.services === 'allow' ? [] : [part('policy-services')]),
  ]
  return forbidden.length === 0 ? part('policy-open') : { ...part('policy'), list: forbidden }
}

/** Whether a command line of scp, rsync or an SFTP server receives or sends files. */
export function transfersOf(line: string): { receives: boolean; sends: boolean } {
  let [receives, sends] = [false, false]
  for (const command of line.replaceAll(/["'\\]/g, '').split(/[;|&\n()`]/)) {
    const words = command.split(/\s+/)
    for (const [index, word] of words.entries()) {
      const program = word.slice(word.lastIndexOf('/') + 1)
      const rest = words.slice(index + 1)
      const has = (option: RegExp): boolean => rest.some((other) => option.test(other))
      if (program === 'scp' || program === 'rcp') {
        receives ||= has(/^-[A-Za-z0-9]*t/)
        sends ||= has(/^-[A-Za-z0-9]*f/)
      } else if (program === 'rsync' && has(/^--server$/)) {
        const isDaemon = has(/^--daemon$/)
        const isSender = has(/^--sender$/)
        receives ||= isDaemon || !isSender
        sends ||= isDaemon || isSender
      } else if (program === 'sftp-server' || program === 'internal-sftp') receives = sends = true
    }
  }
  return { receives, sends }
}

interface Destination {
  fits(names: readonly string[], port?: number): boolean
}

function destinationOf(pattern: string): Destination {
  if (pattern.startsWith('unix:')) {
    const fits = glob(pattern.slice('unix:'.length))
    return { fits: (names, port) => port === undefined && names.some(fits) }
  }
  const colon = pattern.lastIndexOf(':')
  const host = pattern.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
  const matches = glob(host.includes('*') ? host.toLowerCase() : canonical(host))
  // The beginning of an address is not the beginning of a name: `10.0.*` is not 10.0.example.com.
  const isOfAddresses = /^[\d.]+\*|\*[\d.]+$/.test(host)
  const fits = (name: string): boolean => matches(name) && (!isOfAddresses || isIP(name) !== 0)
  const [low = '', high = low] = pattern.slice(colon + 1).split('-')
  const isPort = (port: number): boolean => low === '*' || (port >= Number(low) && port <= Number(high))
  return { fits: (names, port) => port !== undefined && isPort(port) && names.some(fits) }
}

/** One `*` at most, so that matching takes linear time. */
function glob(pattern: string): (text: string) => boolean {
  const [start = '', end] = pattern.split('*')
  if (end === undefined) return (text) => text === pattern
  return (text) => text.length >= start.length + end.length && text.startsWith(start) && text.endsWith(end)
}

/**
 * A device may look up another name than given: a NUL ends a name, and letters of other alphabets become
 * plain ones, so that `\uFF11\uFF12\uFF17.1` is 127.0.0.1.
 */
const isClearHost = (host: string): boolean =>
  /^[\w.-]*$/.test(host) || isIP(host.replace(/^\[(.*)\]$/, '$1')) === 6

/** Only the device knows what another path is relative to. */
const isClearPath = (path: string): boolean => path.startsWith('/') && !path.includes('\0')

const loopbackNames = ['localhost', '127.0.0.1', '::1']
/** Loopback names in the hosts files of distributions. */
const hostsFileNames = [
  'ip6-localhost',
  'ip6-loopback',
  'loopback',
  'localhost.localdomain',
  'localhost4',
  'localhost4.localdomain4',
  'localhost6',
  'localhost6.localdomain6',
]

/**
 * The names under which a host is looked for. An exception that allows covers only the names of loopback that
 * never vary; one that forbids covers everything known to lead there.
 */
function namesOf(host: string, exceptionAllows: boolean): string[] {
  const name = canonical(host)
  const names = exceptionAllows ? loopbackNames : [...loopbackNames, ...hostsFileNames]
  const leadsThere =
    name.startsWith('127.') || name.endsWith('.localhost') || name === '0.0.0.0' || name === '::'
  return names.includes(name) || (leadsThere && !exceptionAllows) ? [name, ...names] : [name]
}

/** `127.1`, `0x7f000001` and `::ffff:127.0.0.1` are one address. An empty host is the device itself. */
function canonical(host: string): string {
  const plain = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/%.*$/, '')
    .replace(/\.+$/, '')
  if (plain === '') return 'localhost'
  if (plain.includes(':')) return plainAddress(plain)
  if (!/^[0-9a-fx.]+$/.test(plain)) return domainToASCII(plain) || plain
  return URL.parse(`http://${plain}/`)?.hostname ?? plain
}

// The settings: one table, read once at the start. Only this file reads the environment. All mistakes are
// listed together, each with an example. The reference page is generated from this table.
import { BlockList, isIP } from 'node:net'
import path from 'node:path'
import { mostDeviceTags } from '@hawser/contract/fields'
import { longestPing_s, shortestPing_s } from '@hawser/contract/tunnel'
import { plainAddress } from './kit/address.ts'
import { logLevels } from './kit/log.ts'
import type { AllowedReceiver } from './receivers/destination.ts'

export interface Listen {
  readonly host: string
  readonly port: number
}

/** Where people and agents connect. */
export interface PublicListen extends Listen {
  /** Whether other nodes on this machine may listen there as well. */
  readonly reusePort: boolean
}

interface Setting<T> {
  readonly doc: string
  readonly example: string
  /** The value of an absent or empty variable. */
  readonly fallback: string
  readonly secret?: boolean
  /** Throws a sentence when the text does not fit. */
  readonly read: (text: string) => T
}

type Given<T> = Pick<Setting<T>, 'doc' | 'example'> & Partial<Setting<T>>
/** Empty by default, and a plain text. */
const setting = <T = string>(shape: Given<T>): Setting<T> => ({
  fallback: '',
  read: (text) => text as T,
  ...shape,
})
const list = (text: string): string[] =>
  text
    .split(/[\s,]+/)
    .map((part) => part.trim())
    .filter(Boolean)

function listen(text: string): Listen {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]*)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (!match || port > 65_535) throw new Error('an address and a port are expected')
  return { host: match[1] ?? (match[2] || '0.0.0.0'), port }
}

/** The longest path of a Unix socket, without the zero at its end. */
const longestSocketPath_bytes = 107

/** A TCP port, or `unix:` and the path of a socket. */
function nodeAddress(text: string): Listen | { readonly path: string } {
  if (!text.startsWith('unix:')) return listen(text)
  const socket = text.slice('unix:'.length)
  if (!path.isAbsolute(socket) || Buffer.byteLength(socket) > longestSocketPath_bytes)
    throw new Error(`unix: and an absolute path of at most ${longestSocketPath_bytes} bytes is expected`)
  return { path: path.normalize(socket) }
}

function choice<const T extends string>(...allowed: readonly T[]): (text: string) => T {
  return (text) => {
    const found = allowed.find((value) => value === text)
    if (!found) throw new Error(`one of ${allowed.join(', ')} is expected`)
    return found
  }
}

function address(...protocols: string[]): (text: string) => string {
  return (text) => {
    if (text === '') return ''
    if (!URL.canParse(text) || !protocols.includes(new URL(text).protocol))
      throw new Error(`an address with ${protocols.join(' or ')} is expected`)
    return text.replace(/\/+$/, '')
  }
}

/** Addresses and subnets of proxies whose headers about the caller's address count. */
function proxies(text: string): BlockList {
  const trusted = new BlockList()
  if (text === 'none') return trusted
  for (const part of list(text)) {
    const [net = '', bits] = part.split('/')
    const family = isIP(net) === 6 ? 'ipv6' : 'ipv4'
    if (!isIP(net) || (bits !== undefined && !/^\d{1,3}$/.test(bits)))
      throw new Error(`${part} is neither an address nor a subnet`)
    if (bits === undefined) trusted.addAddress(net, family)
    else trusted.addSubnet(net, Number(bits), family)
  }
  return trusted
}

/** Hosts, addresses or subnets, each with a port or without. */
function allowedReceivers(text: string): AllowedReceiver[] {
  return list(text).map((part) => {
    const wrong = new Error(`${part} is neither a host, an address nor a subnet, with a port or without`)
    const subnet = /^\[?([0-9a-fA-F:.]+)\/(\d{1,3})\]?(?::(\d{1,5}))?$/.exec(part)
    const bracketed = /^\[([0-9a-fA-F:.]+)\](?::(\d{1,5}))?$/.exec(part)
    const named = /^([A-Za-z0-9._-]+)(?::(\d{1,5}))?$/.exec(part)
    const [host, port] = subnet
      ? [subnet[1], subnet[3]]
      : bracketed
        ? [bracketed[1], bracketed[2]]
        : named
          ? [named[1], named[2]]
          : [isIP(part) === 6 ? part : undefined, undefined]
    if (host === undefined || Number(port ?? 1) > 65_535 || port === '0') throw wrong
    const bits = subnet ? Number(subnet[2]) : undefined
    if (bits !== undefined && (!isIP(host) || bits > (isIP(host) === 6 ? 128 : 32))) throw wrong
    return {
      host: plainAddress(host.toLowerCase()),
      port: port === undefined ? undefined : Number(port),
      bits,
    }
  })
}

function headerName(text: string): string {
  if (!/^[A-Za-z0-9-]*$/.test(text)) throw new Error('the name of a header is expected')
  return text.toLowerCase()
}

function rate(text: string): { max: number; window_ms: number } {
  const match = /^(\d{1,7})\/(\d{1,5})$/.exec(text)
  if (!match || Number(match[2]) === 0)
    throw new Error('calls/seconds is expected; 0/10 switches the limit off')
  return { max: Number(match[1]) || Infinity, window_ms: Number(match[2]) * 1000 }
}

function number(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (!/^\d{1,9}$/.test(text) || value < least || value > most)
      throw new Error(`a whole number from ${least} to ${most} is expected`)
    return value
  }
}

const megabytes = (text: string): number => number(0, 1_000_000_000)(text) * 1024 * 1024

function recordingsFolder(text: string): string {
  if (text === '') return ''
  if (!text.startsWith('s3:')) return path.resolve(text)
  if (!/^s3:\/\/[a-zA-Z0-9][\w.-]{2,62}(\/[\w!.*'()/-]*)?$/.test(text))
    throw new Error('a folder or s3://bucket/prefix is expected')
  return text
}

function email(text: string): string {
  if (!/^([^\s@<>,]+@[^\s@<>,]+)?$/.test(text)) throw new Error('an e-mail address is expected')
  return text
}

const file = (text: string): string => (text === '' ? '' : path.resolve(text))

export const settings = {
  HAWSER_HTTP: setting({
    doc: 'Where the HTTP interface listens.',
    example: '127.0.0.1:8080',
    fallback: '0.0.0.0:8080',
    read: listen,
  }),
  HAWSER_TLS_CERT: setting({
    doc: 'The file with the certificate for HTTPS and the chain to its issuer, in PEM. It and the key are read again when they change. Empty: no TLS, unless HAWSER_ACME_EMAIL is set.',
    example: '/etc/letsencrypt/live/hawser.example.com/fullchain.pem',
    read: file,
  }),
  HAWSER_TLS_KEY: setting({
    doc: 'The file with the private key of the certificate, in PEM.',
    example: '/etc/letsencrypt/live/hawser.example.com/privkey.pem',
    read: file,
  }),
  HAWSER_ACME_EMAIL: setting({
    doc: 'If set, the server gets its certificate for the name in HAWSER_URL from an ACME server, and renews it. The address is for that server’s notices; setting it agrees to its terms. Port 80 of the name must lead to HAWSER_HTTP.',
    example: 'ops@example.com',
    read: email,
  }),
  HAWSER_ACME_DIRECTORY: setting({
    doc: 'The directory of the ACME server. The default is Let’s Encrypt.',
    example: 'https://acme-staging-v02.api.letsencrypt.org/directory',
    fallback: 'https://acme-v02.api.letsencrypt.org/directory',
    read: address('https:'),
  }),
  HAWSER_HTTPS: setting({
    doc: 'Where the HTTP interface listens with TLS, if there is a certificate.',
    example: '0.0.0.0:443',
    fallback: '0.0.0.0:8443',
    read: listen,
  }),
  HAWSER_PLAIN_HTTP: setting({
    doc: 'With TLS, what becomes of requests to HAWSER_HTTP: `redirect` sends them to HTTPS and refuses tunnels; `serve` redirects browsers only, for agents and programs that still have an address with http://.',
    example: 'serve',
    fallback: 'redirect',
    read: choice('redirect', 'serve'),
  }),
  HAWSER_TLS_RATE_LIMIT: setting({
    doc: 'New TLS connections/seconds that one address may make; 0/10: no limit.',
    example: '50/10',
    fallback: '200/10',
    read: rate,
  }),
  HAWSER_SSH: setting({
    doc: 'Where the SSH gateway listens.',
    example: '0.0.0.0:22',
    fallback: '0.0.0.0:2222',
    read: listen,
  }),
  HAWSER_REUSE_PORT: setting({
    doc: 'With `on`, several nodes on one machine listen on the same HAWSER_HTTP, HAWSER_HTTPS and HAWSER_SSH, and the kernel spreads new connections over them. It needs Linux, HAWSER_NATS, and the same user for all of them.',
    example: 'on',
    fallback: 'off',
    read: (text) => choice('on', 'off')(text) === 'on',
  }),
  HAWSER_COMPRESSION: setting({
    doc: 'When sessions are compressed. Towards agents of ours: `auto` where the link to the device is slow or its agent asks for it, `always`, or `never`. Clients that ask for it (`ssh -C`) get it unless it is `never`.',
    example: 'always',
    fallback: 'auto',
    read: choice('auto', 'always', 'never'),
  }),
  HAWSER_SSH_PUBLIC_PORT: setting({
    doc: 'The port under which people reach the SSH gateway, where a router or balancer in front of it has another; 0: the same.',
    example: '22',
    fallback: '0',
    read: number(0, 65_535),
  }),
  HAWSER_DATA: setting({
    doc: 'The folder for everything the server keeps: database, master key, outbox, control socket.',
    example: '/var/lib/hawser',
    fallback: './data',
    read: (text) => path.resolve(text),
  }),
  HAWSER_RECORDINGS: setting({
    doc: 'The folder for recordings of sessions, or `s3://bucket/prefix` for any S3-compatible store. Empty: `recordings` in the data folder.',
    example: 's3://recordings/hawser',
    read: recordingsFolder,
  }),
  HAWSER_S3_ENDPOINT: setting({
    doc: 'The address of the store of recordings. Empty: Amazon’s.',
    example: 'https://objects.example.com',
    read: address('http:', 'https:'),
  }),
  HAWSER_S3_REGION: setting({
    doc: 'The region of the store.',
    example: 'eu-central-1',
    fallback: 'us-east-1',
  }),
  HAWSER_S3_ACCESS_KEY: setting({
    doc: 'The access key for the store. Empty: what the machine’s role or profile gives.',
    example: 'AKIAIOSFODNN7EXAMPLE',
  }),
  HAWSER_S3_SECRET_KEY: setting({
    doc: 'The secret of the access key.',
    example: 'a long random text',
    secret: true,
  }),
  HAWSER_RECORDING_DAYS: setting({
    doc: 'Days after the end of a session for which its recording is kept; 0: for ever.',
    example: '90',
    fallback: '0',
    read: number(0, 36_500),
  }),
  HAWSER_RECORDING_QUOTA: setting({
    doc: 'Megabytes that the recordings of one namespace may take up; after that nothing more of it is recorded. 0: as much as there is. `auto`: 10000, or twice what the namespace held before it had a quota, if that is more.',
    example: '50000',
    fallback: 'auto',
    read: (text): number | 'auto' => (text === 'auto' ? text : megabytes(text)),
  }),
  HAWSER_DISK_LOW: setting({
    doc: 'Megabytes of free space below which nothing is recorded, so that recordings never fill the disk; 0: recordings may.',
    example: '1000',
    fallback: '256',
    read: megabytes,
  }),
  HAWSER_DISK_RESERVE: setting({
    doc: 'Megabytes that the server holds in the data folder (with SQLite) and gives up when the disk is full, so that people can sign in and delete something; 0: none.',
    example: '64',
    fallback: '16',
    read: megabytes,
  }),
  HAWSER_DATABASE: setting({
    doc: 'Empty: SQLite in the data folder. Otherwise the address of a PostgreSQL database.',
    example: 'postgres://hawser:…@db.example.com/hawser',
    secret: true,
    read: address('postgres:', 'postgresql:'),
  }),
  HAWSER_NATS: setting({
    doc: 'Addresses of NATS servers, for an installation of several nodes on one PostgreSQL database. Empty: there is one node.',
    example: 'nats://hawser:…@nats.example.com:4222',
    secret: true,
    read: (text) => {
      for (const one of list(text)) address('nats:', 'tls:')(one)
      return list(text).join(',')
    },
  }),
  HAWSER_NODE_ADDRESS: setting({
    doc: 'Where this node listens for the other nodes, and where they reach it: an address that they can dial, and a port; or, where all nodes are on one machine and run as one user, `unix:` and the path of a socket, which costs less because it needs no TLS.',
    example: '10.0.0.5:7400',
    read: (text) => (text === '' ? undefined : nodeAddress(text)),
  }),
  HAWSER_SECRET: setting({
    doc: 'The master key, 64 hexadecimal characters, the same on every node. `openssl rand -hex 32` makes one. Empty: made at the first start, in `master.key` in the data folder.',
    example: '6f'.repeat(32),
    secret: true,
    read: (text) => {
      if (text !== '' && !/^[0-9a-fA-F]{64}$/.test(text))
        throw new Error('64 hexadecimal characters are expected')
      return text
    },
  }),
  HAWSER_URL: setting({
    doc: 'The address under which people reach the server; links in e-mails start with it. Empty: http://localhost and the HTTP port, or https://localhost with HAWSER_TLS_CERT.',
    example: 'https://hawser.example.com',
    read: address('http:', 'https:'),
  }),
  HAWSER_SERVICES_DOMAIN: setting({
    doc: 'The domain of services: each is at a name of its own below it, 32 hexadecimal characters. A wildcard record in the DNS leads there. It should not be the domain of the server itself, because pages of devices can set cookies for it. Empty: `localhost`, for browsers on this machine.',
    example: 'devices.example.net',
    read: (text) => {
      if (!/^$|^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text))
        throw new Error('a domain in lower case is expected')
      return text
    },
  }),
  HAWSER_SERVICES_TLS_CERT: setting({
    doc: 'The file with the certificate for services, for all names below HAWSER_SERVICES_DOMAIN, in PEM; read again when it changes. Empty: with HAWSER_ACME_EMAIL each service gets its own, otherwise the one of HAWSER_TLS_CERT must be for these names, too.',
    example: '/etc/letsencrypt/live/devices.example.net/fullchain.pem',
    read: file,
  }),
  HAWSER_SERVICES_TLS_KEY: setting({
    doc: 'The file with the private key of the certificate for services, in PEM.',
    example: '/etc/letsencrypt/live/devices.example.net/privkey.pem',
    read: file,
  }),
  HAWSER_SERVICES_CERTIFICATES: setting({
    doc: 'With HAWSER_ACME_EMAIL, how many services get a certificate from the ACME server, the oldest first, and how many new ones are ordered in a week; 0: none. Where several namespaces have services, one gets at most half. Let’s Encrypt gives 50 a week for one domain.',
    example: '20',
    fallback: '40',
    read: number(0, 10_000),
  }),
  HAWSER_SMTP: setting({
    doc: 'The mail server. Empty: e-mails are written as .eml files into the outbox of the data folder.',
    example: 'smtp://user:password@mail.example.com:587',
    secret: true,
    read: address('smtp:', 'smtps:'),
  }),
  HAWSER_MAIL_FROM: setting({
    doc: 'The sender of e-mails.',
    example: 'Hawser <noreply@example.com>',
    fallback: 'Hawser <hawser@localhost>',
  }),
  HAWSER_TRUSTED_PROXIES: setting({
    doc: 'Addresses or subnets whose X-Forwarded-* headers, and PROXY header in front of SSH, are believed; `none` for nobody.',
    example: '10.0.0.0/8, ::1',
    fallback: '127.0.0.0/8, ::1',
    read: proxies,
  }),
  HAWSER_ADDRESS_HEADER: setting({
    doc: 'The one header in which trusted proxies say who calls. Empty: X-Forwarded-For, or X-Real-IP where a proxy on this machine sets no other.',
    example: 'X-Real-IP',
    read: headerName,
  }),
  HAWSER_REGISTRATION: setting({
    doc: 'Who may create an account: anybody (open), people with an invitation (invited), or only the administrator of the server, for others (closed).',
    example: 'closed',
    fallback: 'open',
    read: choice('open', 'invited', 'closed'),
  }),
  HAWSER_NAMESPACE_LIMIT: setting({
    doc: 'How many namespaces a user who registered or was invited may own; 0: no limit. Users created by the administrator of the server have no limit.',
    example: '5',
    fallback: '100',
    read: number(0, 1_000_000),
  }),
  HAWSER_LOG: setting({
    doc: 'How much is logged.',
    example: 'debug',
    fallback: 'info',
    read: choice(...logLevels),
  }),
  HAWSER_METRICS: setting({
    doc: 'Where Prometheus metrics are served at /metrics, on a port of their own. Empty: nowhere, unless HAWSER_METRICS_TOKEN is set.',
    example: '127.0.0.1:9090',
    read: (text) => (text === '' ? undefined : listen(text)),
  }),
  HAWSER_METRICS_TOKEN: setting({
    doc: 'If set, /metrics is also served on the HTTP port to callers with this bearer token.',
    example: 'a long random text',
    secret: true,
  }),
  HAWSER_RATE_LIMIT: setting({
    doc: 'Calls/seconds that one address may make to operations that need no credential, and new devices that it may bring.',
    example: '200/10',
    fallback: '100/10',
    read: rate,
  }),
  HAWSER_DEVICE_TAGS: setting({
    doc: 'The most tags that a device may have. ShellHub’s clients expect 3.',
    example: '10',
    fallback: '3',
    read: number(3, mostDeviceTags),
  }),
  HAWSER_DEVICE_RATE_LIMIT: setting({
    doc: 'Calls/seconds that one device may make to Auth device from one address, and all devices at one address together a hundred times as many.',
    example: '5/10',
    fallback: '20/10',
    read: rate,
  }),
  HAWSER_AGENT_UPDATES: setting({
    doc: 'Devices that may fetch a new agent at the same time, of all namespaces and nodes together; 0: no agent is updated.',
    example: '10',
    fallback: '50',
    read: number(0, 100_000),
  }),
  HAWSER_TUNNEL_RATE_LIMIT: setting({
    doc: 'Agents/seconds whose tunnels are let in; those above it have to retry later. It prevents a stampede after a restart.',
    example: '1000/1',
    fallback: '400/1',
    read: rate,
  }),
  HAWSER_PING_INTERVAL: setting({
    doc: 'The most seconds between two pings of a device, 25 to 600. Each device of ours learns how many its network bears. More save its data; fewer show sooner that it is gone.',
    example: '120',
    fallback: String(longestPing_s),
    read: number(shortestPing_s, longestPing_s),
  }),
  HAWSER_SHELLHUB_TOKENS: setting({
    doc: 'For how long devices that moved from a ShellHub open tunnels with the token they have from there, if its key was imported: `until-renewed`, until the device has come with a token of ours; or a number of days after the key was added, 0 for never.',
    example: '30',
    fallback: 'until-renewed',
    read: (text) => (text === 'until-renewed' ? undefined : number(0, 36_500)(text)),
  }),
  HAWSER_SSH_PER_SOURCE: setting({
    doc: 'SSH connections that one address may have at a time.',
    example: '50',
    fallback: '500',
    read: number(1, 1_000_000),
  }),
  HAWSER_SSH_RATE_LIMIT: setting({
    doc: 'New SSH connections/seconds that an address may make from which nobody logged in lately, and all of them together ten times as many; 0/10: no limit.',
    example: '20/10',
    fallback: '100/10',
    read: rate,
  }),
  HAWSER_SSH_FAILURE_LIMIT: setting({
    doc: 'Failed logins/seconds on devices that one address may have; after that it waits.',
    example: '10/600',
    fallback: '30/60',
    read: rate,
  }),
  HAWSER_SSH_ALGORITHMS: setting({
    doc: 'What the SSH gateway speaks: `modern` leaves out the MACs hmac-sha2-256 and hmac-sha2-512, which `compatible` offers last, for clients with libssh2 before 1.11 and others of that age.',
    example: 'modern',
    fallback: 'compatible',
    read: choice('compatible', 'modern'),
  }),
  HAWSER_SSH_IDLE: setting({
    doc: 'Seconds after which a session without a byte in either direction is ended; 0 for never.',
    example: '3600',
    fallback: '0',
    read: number(0, 31_536_000),
  }),
  HAWSER_SSH_KEEPALIVE: setting({
    doc: 'Seconds without a sign of life after which an SSH client is asked for one; one that does not answer three times is lost.',
    example: '30',
    fallback: '15',
    read: number(1, 3_600),
  }),
  HAWSER_DRAIN: setting({
    doc: 'Seconds that sessions get to end, and over which agents are let go, when the server stops.',
    example: '60',
    fallback: '10',
    read: number(0, 3_600),
  }),
  HAWSER_STRIPE_KEY: setting({
    doc: 'The secret key of the Stripe account that namespaces pay to. Empty: nothing is billed and nothing is limited.',
    example: 'sk_live_…',
    secret: true,
  }),
  HAWSER_STRIPE_PRICE: setting({
    doc: 'The price of one device: a recurring, licensed price of that account, for each unit. Needed with HAWSER_STRIPE_KEY.',
    example: 'price_1MoBy5LkdIwHu7ix',
  }),
  HAWSER_STRIPE_WEBHOOK_SECRET: setting({
    doc: 'What Stripe signs its events with, sent to /api/webhook-billing (`customer.*` and `invoice.*`). Needed with HAWSER_STRIPE_KEY.',
    example: 'whsec_…',
    secret: true,
  }),
  HAWSER_STRIPE_URL: setting({
    doc: 'Where the interface of Stripe is.',
    example: 'https://api.stripe.com',
    fallback: 'https://api.stripe.com',
    read: address('http:', 'https:'),
  }),
  HAWSER_CONNECTOR_ALLOW: setting({
    doc: 'Host names, addresses or sockets of container engines that are allowed although they are loopback, link-local or of this machine.',
    example: '127.0.0.1, unix:///var/run/docker.sock',
    read: list,
  }),
  HAWSER_STREAM_ALLOW: setting({
    doc: 'Receivers of audit streams that are allowed although they are in a private network (RFC 1918 and alike), loopback, of this machine, or without TLS: hosts, addresses or subnets, each with a port or without. A subnet allows private networks only. Link-local addresses and the server’s own ports are never allowed.',
    example: 'siem.internal:6514, 10.20.0.0/16',
    read: allowedReceivers,
  }),
}

export type Config = { readonly [K in keyof typeof settings]: ReturnType<(typeof settings)[K]['read']> }

export class ConfigError extends Error {}

/** Variables of the command line, whose users may run the administrator's commands from the same shell. */
const ofPeople = ['HAWSER_SERVER', 'HAWSER_API_KEY']

export function readConfig(environment: Record<string, string | undefined>): Config {
  const problems: string[] = []
  const entries = Object.entries(settings).map(([name, { read, fallback, example }]) => {
    try {
      return [name, read(environment[name]?.trim() || fallback)]
    } catch (error) {
      problems.push(`${name}: ${(error as Error).message}, for example ${example}`)
      return [name, undefined]
    }
  })
  for (const name of Object.keys(environment))
    if (name.startsWith('HAWSER_') && !(name in settings) && !ofPeople.includes(name))
      problems.push(`${name}: there is no such setting; \`hawser admin config print\` lists them`)
  if (problems.length > 0)
    throw new ConfigError(`These settings cannot be used:\n${problems.map((line) => `  ${line}`).join('\n')}`)
  return Object.fromEntries(entries) as Config
}

/**
 * Where people and agents connect. Throws when other nodes are to share the port and cannot: a second server
 * on the same database would otherwise start unnoticed.
 */
export function publicListen(
  config: Pick<Config, 'HAWSER_REUSE_PORT' | 'HAWSER_NATS'>,
  where: Listen,
  platform: NodeJS.Platform = process.platform,
): PublicListen {
  const reusePort = config.HAWSER_REUSE_PORT
  if (reusePort && platform !== 'linux')
    throw new ConfigError(
      'HAWSER_REUSE_PORT: only Linux spreads connections over several nodes; put a balancer in front of them.',
    )
  if (reusePort && config.HAWSER_NATS === '')
    throw new ConfigError(
      'HAWSER_REUSE_PORT: several nodes also need HAWSER_NATS and HAWSER_DATABASE, which they share.',
    )
  return { ...where, reusePort }
}

/** Where the server keeps everything, also when other settings are wrong. */
export const dataFolder = (environment: Record<string, string | undefined>): string =>
  settings.HAWSER_DATA.read(environment['HAWSER_DATA']?.trim() || settings.HAWSER_DATA.fallback)

/** Lines NAME=value with the values in force; secrets are not shown. */
export function printConfig(environment: Record<string, string | undefined>): string[] {
  return Object.entries(settings).map(([name, shape]) => {
    const value = environment[name]?.trim()
    return `${name}=${value ? ('secret' in shape && shape.secret ? '[secret]' : value) : shape.fallback}`
  })
}

export const environment = (): Record<string, string | undefined> => process.env

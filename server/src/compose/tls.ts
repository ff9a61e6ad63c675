// Composition of TLS: the certificate's source, and the listener that hands its connections to the HTTP
// server, so that the same code serves both ports.
import type { Server } from 'node:http'
import { isIP } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import { ConfigError, publicListen, type Config } from '../config.ts'
import type { HttpsParts } from '../http/plain-requests.ts'
import { iso, minute_ms } from '../kit/clock.ts'
import { newUuid } from '../kit/ids.ts'
import { limiter } from '../kit/limiter.ts'
import { concurrencyByKey } from '../kit/concurrency.ts'
import type { Log } from '../kit/log.ts'
import type { Certificate } from '../tls/certificate.ts'
import { certificateFiles } from '../tls/files.ts'
import { handshakes } from '../tls/handshakes.ts'
import { listenTls, type TlsServer } from '../tls/listen.ts'
import { manyNames } from '../tls/many-names.ts'
import type { Renewal } from '../tls/renewal.ts'
import type { Rooms } from './rooms.ts'

/** Two files, or an ACME server that gives a certificate for the name. */
type TlsSource = { readonly chain: string; readonly key: string } | AcmeSource

interface AcmeSource {
  readonly directory: string
  readonly email: string
  readonly name: string
}

export interface Tls extends Pick<TlsServer, 'port' | 'certificate' | 'refused' | 'close'> {
  /** The answer to a challenge of the ACME server. */
  readonly answer?: Renewal['answer'] | undefined
}

/** Undefined without TLS. Throws when the settings contradict each other. */
export function tlsSource(config: Config): TlsSource | undefined {
  const { HAWSER_TLS_CERT: chain, HAWSER_TLS_KEY: key, HAWSER_ACME_EMAIL: email } = config
  if ((chain === '') !== (key === ''))
    throw new ConfigError('HAWSER_TLS_CERT and HAWSER_TLS_KEY: both files are needed, or none.')
  if (email !== '' && chain !== '')
    throw new ConfigError(
      'HAWSER_ACME_EMAIL: with HAWSER_TLS_CERT there is a certificate already; unset one.',
    )
  if (email === '' && chain === '' && config.HAWSER_SERVICES_TLS_CERT !== '')
    throw new ConfigError(
      'HAWSER_SERVICES_TLS_CERT: the server speaks no TLS without HAWSER_TLS_CERT or HAWSER_ACME_EMAIL.',
    )
  if (email === '') return chain === '' ? undefined : { chain, key }
  const { protocol, hostname } = new URL(config.HAWSER_URL || 'http://localhost')
  if (protocol !== 'https:' || isIP(hostname) || hostname.startsWith('[') || !hostname.includes('.'))
    throw new ConfigError(
      'HAWSER_ACME_EMAIL: HAWSER_URL must be https:// and the public name that the certificate is for, for example https://hawser.example.com.',
    )
  return { directory: config.HAWSER_ACME_DIRECTORY, email, name: hostname }
}

export function plainRequests(config: Config, tls: () => Tls | undefined): HttpsParts {
  return {
    policy: config.HAWSER_PLAIN_HTTP,
    url: config.HAWSER_URL.startsWith('https:') ? config.HAWSER_URL : '',
    get port() {
      return tls()?.port ?? config.HAWSER_HTTPS.port
    },
    isReady: () => tls()?.certificate !== undefined,
  }
}

export async function openTls(
  source: TlsSource,
  rooms: Rooms,
  config: Config,
  log: Log,
  http: Server,
): Promise<Tls> {
  const { clock } = rooms
  if (config.HAWSER_URL.startsWith('http:'))
    log.warn({
      event: 'tls.url',
      message: 'HAWSER_URL begins with http:// although the server speaks TLS: links in e-mails will, too.',
    })
  const turns = concurrencyByKey(Infinity)
  const ofServices = await servicesTls(source, rooms, config, log, (work) => turns.run('', work)!)
  const listener = await listenTls({
    contextOf: (name) => ofServices?.contextOf(name),
    listen: publicListen(config, config.HAWSER_HTTPS),
    handshakes: handshakes(limiter(clock, config.HAWSER_TLS_RATE_LIMIT)),
    trusted: config.HAWSER_TRUSTED_PROXIES,
    onConnection: (socket) => void http.emit('connection', socket),
    log,
  })
  function use(certificate: Certificate): void {
    listener.use(certificate)
    const { names, expires_at } = certificate
    const about = { event: 'certificate.loaded', names: names.join(' '), expires_at: iso(expires_at) }
    if (expires_at > clock.now()) return log.info(about)
    log.error({ ...about, message: 'The TLS certificate has expired; clients will refuse it.' })
  }
  const renewing =
    'email' in source
      ? await renewWith(source, rooms, log, (work) => turns.run('', work, { first: true })!, use)
      : undefined
  if ('chain' in source)
    try {
      const files = await certificateFiles({
        ...source,
        onChange: use,
        onBad: (why) =>
          log.error({
            event: 'certificate.refused',
            message: `${why} The certificate from before stays in use.`,
          }),
      })
      rooms.background.own(files)
      use(files.certificate)
    } catch (error) {
      await listener.close()
      throw new ConfigError(`HAWSER_TLS_CERT and HAWSER_TLS_KEY: ${(error as Error).message}`)
    }
  return {
    port: listener.port,
    get certificate() {
      return listener.certificate
    },
    get refused() {
      return listener.refused
    },
    answer: renewing?.answer,
    async close() {
      await ofServices?.[Symbol.asyncDispose]()
      await renewing?.[Symbol.asyncDispose]()
      await listener.close()
    },
  }
}

type InTurn = <T>(work: () => Promise<T>) => Promise<T>

/** The code is loaded only where it is used. */
async function renewWith(
  { directory, email, name }: AcmeSource,
  rooms: Rooms,
  log: Log,
  inTurn: InTurn,
  onCertificate: (certificate: Certificate) => void,
): Promise<Renewal> {
  const renew = await renewer({ directory, email }, rooms, log, inTurn)
  return renew(name, onCertificate)
}

async function renewer(
  { directory, email }: Pick<AcmeSource, 'directory' | 'email'>,
  { stores, vault, clock, node }: Rooms,
  log: Log,
  inTurn: InTurn,
) {
  const [{ renewal }, { orderCertificate }] = await Promise.all([
    import('../tls/renewal.ts'),
    import('../tls/acme.ts'),
  ])
  const holder = node || newUuid()
  return (name: string, onCertificate: (certificate: Certificate) => void): Renewal =>
    renewal({
      which: { directory, name },
      email,
      holder,
      store: stores.certificates,
      vault,
      clock,
      log,
      order: orderCertificate,
      inTurn,
      onCertificate,
    })
}

interface ServicesTls extends AsyncDisposable {
  contextOf(name: string): SecureContext | undefined
}

/** Undefined: the certificate of the server itself is for services, too. */
async function servicesTls(
  source: TlsSource,
  rooms: Rooms,
  config: Config,
  log: Log,
  inTurn: InTurn,
): Promise<ServicesTls | undefined> {
  const { HAWSER_SERVICES_TLS_CERT: chain, HAWSER_SERVICES_TLS_KEY: key } = config
  if ((chain === '') !== (key === ''))
    throw new ConfigError(
      'HAWSER_SERVICES_TLS_CERT and HAWSER_SERVICES_TLS_KEY: both files are needed, or none.',
    )
  if (chain !== '') return servicesFiles({ chain, key }, rooms, log)
  const { HAWSER_SERVICES_DOMAIN: domain, HAWSER_SERVICES_CERTIFICATES: most } = config
  if (!('email' in source) || domain === '' || most === 0) return undefined
  const { directory } = source
  const names = manyNames({
    most,
    look_ms: minute_ms,
    names: async (at_most) => {
      const found = await rooms.stores.presentedServices.addresses(iso(rooms.clock.now()), at_most)
      return found.map(({ address, tenant_id }) => ({ name: `${address}.${domain}`, owner: tenant_id }))
    },
    stored: async () => new Set(await rooms.stores.certificates.names(directory)),
    clock: rooms.clock,
    renew: await renewer(source, rooms, log, inTurn),
    onError: (err) => log.error({ event: 'certificate.unread', err }),
  })
  const heard = rooms.bus.hear('service.changed', names.changed)
  return {
    contextOf: names.contextOf,
    async [Symbol.asyncDispose]() {
      heard[Symbol.dispose]()
      await names[Symbol.asyncDispose]()
    },
  }
}

async function servicesFiles(
  source: { readonly chain: string; readonly key: string },
  { serviceAddresses }: Rooms,
  log: Log,
): Promise<ServicesTls> {
  let context: SecureContext | undefined
  const use = ({ chain, key, names, expires_at }: Certificate): void => {
    context = createSecureContext({ cert: chain, key })
    log.info({ event: 'certificate.loaded', names: names.join(' '), expires_at: iso(expires_at) })
  }
  try {
    const files = await certificateFiles({
      ...source,
      onChange: use,
      onBad: (why) =>
        log.error({
          event: 'certificate.refused',
          message: `${why} The certificate from before stays in use.`,
        }),
    })
    use(files.certificate)
    return {
      contextOf: (name) => (serviceAddresses.labelOf(name) === undefined ? undefined : context),
      [Symbol.asyncDispose]: () => files[Symbol.asyncDispose](),
    }
  } catch (error) {
    throw new ConfigError(`HAWSER_SERVICES_TLS_CERT and HAWSER_SERVICES_TLS_KEY: ${(error as Error).message}`)
  }
}

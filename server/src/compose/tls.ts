// Composition of TLS: where the certificate comes from, and the listener that hands its connections to the
// HTTP server, so that everything is served on both ports by the same code.
import type { Server } from 'node:http'
import { ConfigError, type Config } from '../config.ts'
import type { HttpsParts } from '../http/plain-requests.ts'
import { iso } from '../kit/clock.ts'
import { limiter } from '../kit/limiter.ts'
import type { Log } from '../kit/log.ts'
import type { Certificate } from '../tls/certificate.ts'
import { certificateFiles } from '../tls/files.ts'
import { handshakes } from '../tls/handshakes.ts'
import { listenTls, type TlsServer } from '../tls/listen.ts'
import type { Rooms } from './rooms.ts'

/** Two files with certificate and key. */
interface TlsFiles {
  readonly chain: string
  readonly key: string
}

export type Tls = Pick<TlsServer, 'port' | 'certificate' | 'refused' | 'close'>

/** Where the certificate comes from; undefined without TLS. Throws when the settings contradict each other. */
export function tlsSource(config: Config): TlsFiles | undefined {
  const { HAWSER_TLS_CERT: chain, HAWSER_TLS_KEY: key } = config
  if ((chain === '') !== (key === ''))
    throw new ConfigError('HAWSER_TLS_CERT and HAWSER_TLS_KEY: both files are needed, or none.')
  return chain === '' ? undefined : { chain, key }
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
  source: TlsFiles,
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
  const listener = await listenTls({
    listen: config.HAWSER_HTTPS,
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
  return listener
}

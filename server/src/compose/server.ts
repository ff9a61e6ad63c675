// The server: the rooms of `rooms.ts` behind listeners for HTTP and SSH. Disposing stops it in order.
import type { Server as HttpServer } from 'node:http'
import type { Server } from 'node:net'
import { cipherImplementation } from '@hawser/ssh'
import { version } from '@hawser/contract/version'
import { metrics, type Metrics } from '../http/metrics.ts'
import { metricsServer, servePages } from '../http/pages.ts'
import { httpServer } from '../http/serve.ts'
import { publicListen } from '../config.ts'
import { turnOf } from '../domain/callers/callers.ts'
import { second_ms } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import { watchRooms, watchTls } from './gauges.ts'
import { openReach, type Reach } from './reach.ts'
import { openRooms, type Rooms, type ServerOptions } from './rooms.ts'
import { openTls, plainRequests, tlsSource, type Tls } from './tls.ts'

/** How long requests under way get to finish when the server stops. */
const drain_ms = 5 * second_ms

export interface ServedFolders {
  /** The built web console. */
  readonly console: string
}

const portOf = (listener: { server: Server } | undefined): number | undefined => {
  const address = listener?.server.address()
  return typeof address === 'object' ? address?.port : undefined
}

export async function startServer(options: ServerOptions & ServedFolders) {
  const { config, log } = options
  const source = tlsSource(config)
  const listen = publicListen(config, config.HAWSER_HTTP)
  await using opened = new AsyncDisposableStack()
  const rooms = opened.use(await openRooms({ ...options, serving: true }))
  const reach = await openReach(rooms)
  opened.defer(() => reach.stop())
  const figures = metrics(config.HAWSER_METRICS !== undefined || config.HAWSER_METRICS_TOKEN !== '')
  watchRooms(figures, rooms, reach)
  let tls = undefined as Tls | undefined
  opened.defer(() => tls?.close())
  const served: string[] = []
  const app = openHttp(options, rooms, reach, figures, served, { uses: source !== undefined, of: () => tls })
  rooms.neighbours?.offerHttp(app.server)
  const own = config.HAWSER_METRICS ? metricsServer(figures) : undefined
  opened.defer(() => own?.close())
  opened.defer(() => app.close())
  // Every line of the log has an event, so this replaces Fastify's own text; our line comes below.
  await app.listen({
    ...listen,
    listenTextResolver: (address) => ({ event: 'http.bound', address }) as never,
  })
  tls = source && (await openTls(source, rooms, config, log, app.server))
  if (config.HAWSER_METRICS) await own?.listen(config.HAWSER_METRICS)
  // From here on they are closed in the order of `stop`.
  opened.move()

  const { port } = app.server.address() as { port: number }
  for (const one of [port, tls?.port, reach.port, portOf(own)]) if (one !== undefined) rooms.ports.add(one)
  log.info({ event: 'http.listening', host: config.HAWSER_HTTP.host, port })
  if (tls) {
    log.info({ event: 'https.listening', host: config.HAWSER_HTTPS.host, port: tls.port })
    watchTls(figures, tls)
  }
  log.info({ event: 'ssh.listening', host: config.HAWSER_SSH.host, port: reach.port })
  const { name: implementation, ...why } = cipherImplementation()
  log.info({ event: 'ssh.ciphers', implementation, ...why })
  const listeners = own ? [app, own] : [app]
  return {
    rooms,
    reach,
    port,
    /** Undefined without TLS. */
    tlsPort: tls?.port,
    /** `METHOD /path` of every route, so that a test can compare them with the contract. */
    served,
    async [Symbol.asyncDispose]() {
      rooms.drain()
      const closePorts = () => Promise.all([app.close(), tls?.close()])
      // A balancer sees at the health check that this node stops. The kernel sees it when the ports close.
      const closing = listen.reusePort ? closePorts() : undefined
      // Before the ports close, which waits for the sockets of browsers and agents.
      await reach.stop()
      await endingRequests(listeners, log, async () => {
        await (closing ?? closePorts())
        await own?.close()
      })
      await rooms[Symbol.asyncDispose]()
      log.info({ event: 'server.stopped' })
    },
  }
}

function openHttp(
  { config, log, console, agents }: ServerOptions & ServedFolders,
  rooms: Rooms,
  reach: Reach,
  figures: Metrics,
  served: string[],
  tls: { readonly uses: boolean; of(): Tls | undefined },
) {
  const app = httpServer({
    rules: rooms.rules,
    gate: rooms.gate,
    turnOf,
    log,
    believed: {
      trusted: config.HAWSER_TRUSTED_PROXIES,
      header: config.HAWSER_ADDRESS_HEADER,
      onContradiction: (message) => log.warn({ event: 'address.contradicted', message }),
    },
    openCalls: rooms.limiter('open calls', config.HAWSER_RATE_LIMIT),
    metrics: figures,
    isFull: rooms.isFull,
    lines: rooms.lines,
    served,
    doors: reach.doors,
    services: reach.services,
    plain: tls.uses ? plainRequests(config, tls.of) : undefined,
  })
  servePages(app, {
    version,
    metrics: figures,
    metricsToken: config.HAWSER_METRICS_TOKEN,
    console,
    agents,
    archives: rooms.archives,
    challenge: async (token) => tls.of()?.answer?.(token),
  })
  return app
}

/**
 * Closes listeners with an end to the requests under way: Node has no time limit for them once its server
 * closes.
 */
async function endingRequests(
  listeners: readonly { readonly server: HttpServer }[],
  log: Log,
  close: () => Promise<void>,
): Promise<void> {
  const deadline = setTimeout(() => {
    log.warn({ event: 'request.abandoned', message: 'requests that did not end in time were cut off' })
    for (const listener of listeners) listener.server.closeAllConnections()
  }, drain_ms)
  // After an answer a connection stays open for the next request; the stop must not wait for that.
  const idle = setInterval(() => {
    for (const listener of listeners) listener.server.closeIdleConnections()
  }, 50)
  await close()
  clearInterval(idle)
  clearTimeout(deadline)
}

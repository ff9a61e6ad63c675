// The server: everything that `rooms.ts` makes, behind the listeners for HTTP and SSH. It stops in order
// when it is disposed.
import type { Server } from 'node:net'
import { cipherImplementation } from '@hawser/ssh'
import { version } from '@hawser/contract/version'
import { metrics } from '../http/metrics.ts'
import { metricsServer, servePages } from '../http/pages.ts'
import { httpServer } from '../http/serve.ts'
import { publicListen } from '../config.ts'
import { turnOf } from '../domain/callers/callers.ts'
import { second_ms } from '../kit/clock.ts'
import { watchRooms, watchTls } from './gauges.ts'
import { openReach, type Reach } from './reach.ts'
import { openRooms, type ServerOptions } from './rooms.ts'
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

/** The rooms behind their doors, listening. */
export async function startServer(options: ServerOptions & ServedFolders) {
  const { config, log } = options
  const source = tlsSource(config)
  const listen = publicListen(config, config.HAWSER_HTTP)
  const rooms = await openRooms({ ...options, serving: true })
  let reach: Reach
  try {
    reach = await openReach(rooms, config, log)
  } catch (error) {
    await rooms[Symbol.asyncDispose]()
    throw error
  }
  const figures = metrics()
  watchRooms(figures, rooms, reach)
  const served: string[] = []
  let tls: Tls | undefined
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
    plain: source && plainRequests(config, () => tls),
  })
  servePages(app, {
    version,
    metrics: figures,
    metricsToken: config.HAWSER_METRICS_TOKEN,
    console: options.console,
    agents: options.agents,
    archives: rooms.archives,
    challenge: async (token) => tls?.answer?.(token),
  })
  reach.serveWith(app.server)
  const own = config.HAWSER_METRICS && metricsServer(figures)
  const listeners = own ? [app, own] : [app]
  try {
    // Every line of the log has an event, so this replaces Fastify's own text; our line comes below.
    await app.listen({
      ...listen,
      listenTextResolver: (address) => ({ event: 'http.bound', address }) as never,
    })
    tls = source && (await openTls(source, rooms, config, log, app.server))
    await own?.listen(config.HAWSER_METRICS)
  } catch (error) {
    for (const listener of listeners) await listener.close()
    await tls?.close()
    await reach.stop()
    await rooms[Symbol.asyncDispose]()
    throw error
  }
  const { port } = app.server.address() as { port: number }
  const ports = [port, tls?.port, reach.port, portOf(own)].filter((one) => one !== undefined)
  rooms.self.ports = () => ports
  log.info({ event: 'http.listening', host: config.HAWSER_HTTP.host, port })
  if (tls) {
    log.info({ event: 'https.listening', host: config.HAWSER_HTTPS.host, port: tls.port })
    watchTls(figures, tls)
  }
  log.info({ event: 'ssh.listening', host: config.HAWSER_SSH.host, port: reach.port })
  const { name: implementation, ...why } = cipherImplementation()
  log.info({ event: 'ssh.ciphers', implementation, ...why })
  return {
    rooms,
    reach,
    port,
    /** The port with TLS; undefined without. */
    tlsPort: tls?.port,
    /** `METHOD /path` of every route, so that a test can compare them with the contract. */
    served,
    /** Accepts no more requests, finishes those under way, writes what waits, closes. */
    async [Symbol.asyncDispose]() {
      rooms.drain()
      const closePorts = () => Promise.all([app.close(), tls?.close()])
      // A balancer sees at the health check that this node stops. The kernel sees it when the ports close.
      const closing = listen.reusePort ? closePorts() : undefined
      await reach.stop()
      // Node has no time limit for requests once its server closes: without this, half a request would block
      // the stop for ever.
      const deadline = setTimeout(() => {
        log.warn({ event: 'request.abandoned', message: 'requests that did not end in time were cut off' })
        for (const listener of listeners) listener.server.closeAllConnections()
      }, drain_ms)
      // After an answer a connection stays open for the next request; the stop must not wait for that.
      const idle = setInterval(() => {
        for (const listener of listeners) listener.server.closeIdleConnections()
      }, 50)
      await (closing ?? closePorts())
      await own?.close()
      clearInterval(idle)
      clearTimeout(deadline)
      await rooms[Symbol.asyncDispose]()
      log.info({ event: 'server.stopped' })
    },
  }
}

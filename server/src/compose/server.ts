// The server: the rooms behind the doors that listen, HTTP and SSH. It stops in good order when it is
// disposed.
import { fileURLToPath } from 'node:url'
import { cipherImplementation } from '@hawser/ssh'
import { version } from '@hawser/contract/version'
import { metrics } from '../http/metrics.ts'
import { metricsServer, servePages } from '../http/pages.ts'
import { httpServer } from '../http/serve.ts'
import { second_ms } from '../kit/clock.ts'
import { watchRooms } from './gauges.ts'
import { openReach, type Reach } from './reach.ts'
import { openRooms, type ServerOptions } from './rooms.ts'

/** How long requests that are under way get when the server stops. */
const drain_ms = 5 * second_ms

/** The rooms behind their doors, listening. */
export async function startServer(options: ServerOptions & { readonly agents?: string | undefined }) {
  const { config, log } = options
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
  const app = httpServer({
    rules: rooms.rules,
    gate: rooms.gate,
    log,
    believed: {
      trusted: config.HAWSER_TRUSTED_PROXIES,
      header: config.HAWSER_ADDRESS_HEADER,
      onContradiction: (message) => log.warn({ event: 'address.contradicted', message }),
    },
    openCalls: rooms.limiter('open calls', config.HAWSER_RATE_LIMIT),
    metrics: figures,
    isFull: rooms.isFull,
    served,
    doors: reach.doors,
  })
  servePages(app, {
    version,
    metrics: figures,
    metricsToken: config.HAWSER_METRICS_TOKEN,
    console: fileURLToPath(new URL('../../../console/dist', import.meta.url)),
    agents: options.agents,
  })
  reach.serveWith(app.server)
  const doors = [app]
  try {
    // Fastify says where it listens in its own words; ours are below, and every line of the log has its
    // event.
    await app.listen({
      ...config.HAWSER_HTTP,
      listenTextResolver: (address) => ({ event: 'http.bound', address }) as never,
    })
    if (config.HAWSER_METRICS) {
      const own = metricsServer(figures)
      await own.listen(config.HAWSER_METRICS)
      doors.push(own)
    }
  } catch (error) {
    for (const door of doors) await door.close()
    await reach.stop()
    await rooms[Symbol.asyncDispose]()
    throw error
  }
  const { port } = app.server.address() as { port: number }
  log.info({ event: 'http.listening', host: config.HAWSER_HTTP.host, port })
  log.info({ event: 'ssh.listening', host: config.HAWSER_SSH.host, port: reach.port })
  const { name: implementation, ...why } = cipherImplementation()
  log.info({ event: 'ssh.ciphers', implementation, ...why })
  return {
    rooms,
    reach,
    port,
    /** `METHOD /path` of every route, so that a test can hold them against the contract. */
    served,
    /** Stops taking requests, finishes those under way, writes what waits, closes. */
    async [Symbol.asyncDispose]() {
      rooms.drain()
      await reach.stop()
      // Node stops timing requests when its server closes: without this, half a request would hold us for
      // ever.
      const impatience = setTimeout(() => {
        log.warn({ event: 'request.abandoned', message: 'requests that did not end in time were cut off' })
        for (const door of doors) door.server.closeAllConnections()
      }, drain_ms)
      // A connection stays open for the next request when one is answered; nobody is to wait for that.
      const idle = setInterval(() => {
        for (const door of doors) door.server.closeIdleConnections()
      }, 50)
      await Promise.all(doors.map((door) => door.close()))
      clearInterval(idle)
      clearTimeout(impatience)
      await rooms[Symbol.asyncDispose]()
      log.info({ event: 'server.stopped' })
    },
  }
}

// The TLS listener. It accepts connections within limits (see handshakes.ts), makes them secure and hands
// them on. It listens from the start and refuses everybody until it has a certificate. A new certificate
// counts for new connections. Clients may resume a session within a day, which spares both ends certificates
// and signatures; the key of the tickets is this process's own and is replaced every day.
import { randomBytes } from 'node:crypto'
import net, { type AddressInfo, type BlockList, type Socket } from 'node:net'
import tls, { type SecureContext, type TLSSocket } from 'node:tls'
import { once } from 'node:events'
import { plainAddress } from '../kit/address.ts'
import { day_ms, second_ms } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Certificate } from './certificate.ts'
import type { Handshakes } from './handshakes.ts'

export interface TlsServerParts {
  readonly listen: { readonly host: string; readonly port: number }
  readonly handshakes: Handshakes
  /** Proxies whose connections stand for those of many people. */
  readonly trusted: BlockList
  onConnection(socket: TLSSocket): void
  /** The certificate for a name of its own; undefined: the one for all others. */
  contextOf?(name: string): SecureContext | undefined
  readonly log: Log
}

export interface TlsServer {
  readonly port: number
  /** For new connections; undefined before there is one. */
  readonly certificate: Certificate | undefined
  use(certificate: Certificate): void
  readonly refused: number
  /** Accepts no more connections and ends handshakes; resolves when the open connections have ended. */
  close(): Promise<void>
}

const handshake_ms = 10 * second_ms
const secureOptions = { sessionTimeout: day_ms / second_ms, minVersion: 'TLSv1.2' } as const
const ticketKey_bytes = 48

export async function listenTls(parts: TlsServerParts): Promise<TlsServer> {
  let certificate: Certificate | undefined
  let refused = 0
  /** Connections in their handshake, by the client's address and port. */
  const pending = new Map<string, { readonly socket: Socket; readonly place: Disposable }>()

  // Node's defaults are TLS 1.2 and newer with forward secrecy.
  const secure = tls.createServer({
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: handshake_ms,
    SNICallback: (name, done) => done(null, parts.contextOf?.(name)),
    ...secureOptions,
  })
  const rotating = setInterval(() => secure.setTicketKeys(randomBytes(ticketKey_bytes)), day_ms)
  rotating.unref()
  secure.on('secureConnection', (socket) => {
    finish(nameOf(socket))
    parts.onConnection(socket)
  })
  secure.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
    parts.log.debug({
      event: 'tls.failed',
      source: plainAddress(socket.remoteAddress ?? ''),
      reason: error.code ?? error.message,
    })
    socket.destroy()
  })

  function finish(name: string): void {
    pending.get(name)?.place[Symbol.dispose]()
    pending.delete(name)
  }

  const server = net.createServer({ noDelay: true }, (socket) => {
    const address = plainAddress(socket.remoteAddress ?? '')
    const family = net.isIP(address)
    const trusted = family !== 0 && parts.trusted.check(address, family === 6 ? 'ipv6' : 'ipv4')
    const place = certificate && parts.handshakes.enter(address, trusted)
    if (!place) {
      refused += 1
      socket.destroy()
      return
    }
    const name = nameOf(socket)
    pending.set(name, { socket, place })
    socket.once('close', () => finish(name))
    // Before TLS has taken it, a connection that breaks is nobody's fault.
    socket.on('error', () => undefined)
    secure.emit('connection', socket)
  })
  server.listen(parts.listen)
  await once(server, 'listening')

  return {
    port: (server.address() as AddressInfo).port,
    get certificate() {
      return certificate
    },
    use(next) {
      secure.setSecureContext({ cert: next.chain, key: next.key, ...secureOptions })
      certificate = next
    },
    get refused() {
      return refused
    },
    async close() {
      clearInterval(rotating)
      const closed = once(server, 'close')
      server.close()
      for (const { socket } of pending.values()) socket.destroy()
      await closed
    },
  }
}

const nameOf = (socket: Socket): string => `${socket.remoteAddress} ${socket.remotePort}`

// What nodes do for each other: a device whose tunnel another node has is reached through that node, and a
// request for a WebSocket that only another node can serve (a session that is watched there, a ticket that
// was given there, a stream that an agent brings to the wrong node) is handed over as it came, to be judged
// there as if it had come there. Who has what is asked on the bus by name; whoever holds a name answers with
// its address.
import type { Server } from 'node:http'
import { duplexPair, type Duplex } from 'node:stream'
import { Failure } from '@hawser/contract/failures'
import type { Bus } from '../bus/bus.ts'
import type { WayTo } from '../gateway/device-leg.ts'
import type { Upgrade } from '../http/upgrade.ts'
import type { Log } from '../kit/log.ts'
import { join, startPeers, type PeerAddress, type PeerRequest } from './peers.ts'
import { deviceName } from '../tunnel/registry.ts'
import { Unreachable, type Tunnel } from '../tunnel/tunnel.ts'

export interface Neighbours {
  /** The way to a device that is not here. */
  wayTo: WayTo
  /** True if another node holds the name, and has the request now. */
  handOver(name: string, upgrade: Upgrade): Promise<boolean>
  stop(): Promise<void>
}

export interface NeighbourParts {
  bus: Bus
  masterKey: Buffer
  listen: { readonly host: string; readonly port: number }
  /** Called with the address at which the other nodes reach this one. */
  onListening(address: PeerAddress): void
  log: Log
  tunnel(uid: string, least: number): Tunnel | undefined
  /** Where requests that are handed over to us go. */
  http(): Server | undefined
}

const dial_ms = 5_000

export async function meetNeighbours({
  bus,
  masterKey,
  listen,
  onListening,
  log,
  tunnel,
  http,
}: NeighbourParts): Promise<Neighbours> {
  async function serve({ kind, ...about }: PeerRequest, signal: AbortSignal): Promise<Duplex> {
    if (kind === 'http') return comeIn(String(about['from']))
    const found = kind === 'ssh' ? tunnel(String(about['uid']), Number(about['least'])) : undefined
    if (!found) throw new Unreachable('The device is not here any more.')
    return found.openSsh(String(about['id']), signal)
  }

  /** A connection to our own HTTP server, from the address that the other node saw. */
  function comeIn(remoteAddress: string): Duplex {
    const server = http()
    if (!server) throw new Unreachable('The node is starting.')
    const [theirs, ours] = duplexPair()
    server.emit('connection', Object.assign(ours, { remoteAddress }))
    return theirs
  }

  const peers = await startPeers({
    listen,
    masterKey,
    serve,
    onError: (err) => log.warn({ event: 'node.refused', err }),
  })
  onListening({ host: listen.host, port: peers.port })

  async function holderOf(name: string, question = ''): Promise<PeerAddress | undefined> {
    try {
      const answer = await bus.seek(name, question)
      return answer === undefined ? undefined : (JSON.parse(answer) as PeerAddress)
    } catch (err) {
      log.warn({ event: 'node.unsought', name, err })
      return undefined
    }
  }

  return {
    async wayTo({ uid, tunnel: least }) {
      const address = await holderOf(deviceName(uid), String(least))
      return (
        address && { openSsh: (id, signal) => peers.open(address, { kind: 'ssh', uid, id, least }, signal) }
      )
    },
    async handOver(name, { request, socket, head }) {
      const address = await holderOf(name)
      if (!address) return false
      const from = request.socket.remoteAddress ?? ''
      const stream = await peers
        .open(address, { kind: 'http', from }, AbortSignal.timeout(dial_ms))
        .catch((cause: unknown) => {
          throw new Failure('unavailable', {
            message: 'The node that has it cannot be reached.',
            retryAfter: 5,
            cause,
          })
        })
      const headers = request.rawHeaders.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`))
      stream.write(
        Buffer.concat([
          Buffer.from(`${request.method} ${request.url} HTTP/1.1\r\n${headers.join('')}\r\n`, 'latin1'),
          head,
        ]),
      )
      join(stream, socket)
      return true
    },
    async stop() {
      await peers[Symbol.asyncDispose]()
    },
  }
}

// What nodes do for each other. A node reaches a device whose tunnel another node has through that node. It
// hands over a WebSocket request that only another node can serve (a session that runs there, a ticket that
// was issued there, a stream that an agent opens at the wrong node) unchanged, and the other node checks it
// as if it had arrived there. A node asks on the bus by name, and the node that has registered the name
// answers with its address.
import type { Server } from 'node:http'
import { duplexPair, type Duplex } from 'node:stream'
import { Failure } from '@hawser/contract/failures'
import { features, protocols, type Feature } from '@hawser/contract/tunnel'
import type { Bus } from '../bus/bus.ts'
import type { RemoteAttachRequest } from '../gateway/carried-terminal.ts'
import type { FindTunnel } from '../gateway/device-leg.ts'
import type { Upgrade } from '../http/upgrade.ts'
import type { Log } from '../kit/log.ts'
import { join, startPeers, type PeerAddress, type PeerRequest } from './peers.ts'
import { deviceName } from '../tunnel/registry.ts'
import { Unreachable, type RemoteTunnel, type Tunnel } from '../tunnel/tunnel.ts'

export interface Neighbours {
  /** Finds the tunnel of a device on another node. */
  findTunnel: FindTunnel
  /** The same, by the device's uid and the least number that counts. */
  tunnelOf(uid: string, least: number): Promise<RemoteTunnel | undefined>
  /** Hands the request over to the node that has registered the name; false if there is none. */
  handOver(name: string, upgrade: Upgrade): Promise<boolean>
  /** A stream to the terminal of a session at this address, for a client here. */
  openTerminal(address: PeerAddress, request: RemoteAttachRequest): Promise<Duplex>
  stop(): Promise<void>
}

export interface NeighbourParts {
  bus: Bus
  masterKey: Buffer
  listen: PeerAddress
  /** Called with the address at which the other nodes reach this one. */
  onListening(address: PeerAddress): void
  log: Log
  tunnel(uid: string, least: number): Tunnel | undefined
  /** The HTTP server that gets requests which other nodes hand over. */
  http(): Server | undefined
  /** Gives the terminal of a session here to a client at another node. */
  terminal(request: RemoteAttachRequest): Promise<Duplex>
}

const dial_ms = 5_000
/** What a node may open through the tunnel of another, beside SSH. */
const carried: readonly string[] = [protocols.resumable, protocols.resume]

/**
 * The answer of the node that has something: its address and, for a tunnel, what its agent supports. Nodes of
 * older versions do not say that.
 */
type Owner = PeerAddress & { readonly features?: readonly Feature[] }

export async function startNeighbours({
  bus,
  masterKey,
  listen,
  onListening,
  log,
  tunnel,
  http,
  terminal,
}: NeighbourParts): Promise<Neighbours> {
  async function serve({ kind, ...about }: PeerRequest, signal: AbortSignal): Promise<Duplex> {
    if (kind === 'http') return connectToHttp(String(about['from']), about['secure'] === 1)
    if (kind === 'terminal') return terminal(JSON.parse(String(about['request'])) as RemoteAttachRequest)
    const found = tunnel(String(about['uid']), Number(about['least']))
    const protocol = String(about['protocol'])
    if (found && kind === 'ssh') return found.openSsh(String(about['id']), signal)
    if (found?.carry && kind === 'carry' && carried.includes(protocol))
      return found.carry(protocol, String(about['head']), signal)
    if (found && kind === 'check') found.check?.()
    throw new Unreachable('The device is not here any more.')
  }

  /**
   * A connection to this node's HTTP server, from the address that the other node saw, with TLS or without.
   */
  function connectToHttp(remoteAddress: string, encrypted: boolean): Duplex {
    const server = http()
    if (!server) throw new Unreachable('The node is starting.')
    const [theirs, ours] = duplexPair()
    server.emit('connection', Object.assign(ours, { remoteAddress, encrypted }))
    return theirs
  }

  const peers = await startPeers({
    listen,
    masterKey,
    serve,
    onError: (err) => log.warn({ event: 'node.refused', err }),
  })
  onListening(peers.address)

  /** Throws a Failure while this node is cut off, and Unreachable when a node that has it does not answer. */
  async function ownerOf(name: string, question = ''): Promise<Owner | undefined> {
    try {
      const answer = await bus.seek(name, question)
      return answer === undefined ? undefined : (JSON.parse(answer) as Owner)
    } catch (err) {
      log.warn({ event: 'node.unsought', name, err })
      if (err instanceof Failure) throw err
      throw new Unreachable('The node that has it does not answer.', { cause: err })
    }
  }

  async function tunnelOf(uid: string, least: number): ReturnType<Neighbours['tunnelOf']> {
    const owner = await ownerOf(deviceName(uid), String(least))
    if (!owner) return undefined
    const { features: named, ...address } = owner
    return {
      features: new Set(features.filter((feature) => named?.includes(feature))),
      openSsh: (id, signal) => peers.open(address, { kind: 'ssh', uid, id, least }, signal),
      carry: (protocol, head, signal) =>
        peers.open(address, { kind: 'carry', uid, least, protocol, head }, signal),
      // Whatever the answer is: the other node looks after its tunnel.
      check: () =>
        void peers
          .open(address, { kind: 'check', uid, least }, AbortSignal.timeout(dial_ms))
          .catch(() => undefined),
    }
  }

  return {
    tunnelOf,
    findTunnel: async ({ uid, tunnel: least }) => tunnelOf(uid, least),
    async handOver(name, { request, socket, head }) {
      const unavailable = (cause: unknown): never => {
        throw new Failure('unavailable', {
          message: 'The node that has it cannot be reached.',
          retryAfter: 5,
          cause,
        })
      }
      const address = await ownerOf(name).catch(unavailable)
      if (!address) return false
      const from = request.socket.remoteAddress ?? ''
      const secure = 'encrypted' in request.socket && request.socket.encrypted === true
      const stream = await peers
        .open(address, { kind: 'http', from, secure: Number(secure) }, AbortSignal.timeout(dial_ms))
        .catch(unavailable)
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
    openTerminal: (address, request) =>
      peers.open(
        address,
        { kind: 'terminal', request: JSON.stringify(request) },
        AbortSignal.timeout(dial_ms),
      ),
    async stop() {
      await peers[Symbol.asyncDispose]()
    },
  }
}

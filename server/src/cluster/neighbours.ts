// Traffic between nodes. A node reaches a device through the node that has its tunnel. It hands over a
// WebSocket request that only another node can serve (a session or ticket of that node, a stream that an
// agent opens at the wrong node) unchanged, and that node checks it as its own. The node that has registered
// a name on the bus answers with its address.
import type { Server } from 'node:http'
import { duplexPair, type Duplex } from 'node:stream'
import { Failure } from '@hawser/contract/failures'
import { features, protocols, type Feature } from '@hawser/contract/tunnel'
import type { Bus } from '../bus/bus.ts'
import type { FindTunnel } from '../gateway/device/device-leg.ts'
import type { Upgrade } from '../http/upgrade.ts'
import type { Log } from '../kit/log.ts'
import { join, startPeers, type PeerAddress, type PeerRequest } from './peers.ts'
import { deviceName } from '../tunnel/registry.ts'
import { asTargetRefused } from '../tunnel/targets.ts'
import { Unreachable, type RemoteTunnel, type Tunnel } from '../tunnel/tunnel.ts'

export interface Neighbours extends AsyncDisposable {
  /** Where the other nodes reach this one. */
  readonly address: PeerAddress
  /** Lets other nodes reach devices through the tunnels of this one. */
  offerTunnels(find: (uid: string, least: number) => Tunnel | undefined): void
  /** Passes requests from other nodes to this server. */
  offerHttp(server: Server): void
  findTunnel: FindTunnel
  /** By uid and the least number that counts. */
  tunnelOf(uid: string, least: number): Promise<RemoteTunnel | undefined>
  /** Hands the request over to the node that has registered the name; false if there is none. */
  forward(name: string, upgrade: Upgrade): Promise<boolean>
}

export interface NeighbourParts {
  bus: Bus
  masterKey: Buffer
  listen: PeerAddress
  log: Log
}

const dial_ms = 5_000
/** The protocols that a node may open through the tunnel of another, besides SSH. */
const carried: readonly string[] = [protocols.resumable, protocols.resume, protocols.listening]

/**
 * The answer of the owning node: its address and, for a tunnel, the agent's features. Nodes of older versions
 * omit those.
 */
type Owner = PeerAddress & { readonly features?: readonly Feature[] }

export async function startNeighbours({ bus, masterKey, listen, log }: NeighbourParts): Promise<Neighbours> {
  let tunnel: (uid: string, least: number) => Tunnel | undefined = () => undefined
  let http: Server | undefined

  async function serve({ kind, ...about }: PeerRequest, signal: AbortSignal): Promise<Duplex> {
    if (kind === 'http') return connectToHttp(String(about['from']), about['secure'] === 1)
    const found = tunnel(String(about['uid']), Number(about['least']))
    const protocol = String(about['protocol'])
    if (found && kind === 'ssh') return found.openSsh(String(about['id']), signal)
    if (found?.carry && kind === 'carry' && carried.includes(protocol))
      return found.carry(protocol, String(about['head']), signal)
    if (found?.openTarget && kind === 'target')
      return found.openTarget({ host: String(about['host']), port: Number(about['port']) }, signal)
    if (found && kind === 'check') found.check?.()
    throw new Unreachable('The device is no longer connected here.')
  }

  /** A connection to this node's HTTP server, from the address that the other node saw, with TLS or without. */
  function connectToHttp(remoteAddress: string, encrypted: boolean): Duplex {
    if (!http) throw new Unreachable('The node is starting.')
    const [theirs, ours] = duplexPair()
    http.emit('connection', Object.assign(ours, { remoteAddress, encrypted }))
    return theirs
  }

  const peers = await startPeers({
    listen,
    masterKey,
    serve,
    onError: (err) => log.warn({ event: 'node.refused', err }),
  })

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
      async openTarget({ host, port }, signal) {
        try {
          return await peers.open(address, { kind: 'target', uid, least, host, port }, signal)
        } catch (error) {
          throw asTargetRefused(error)
        }
      },
      // The answer does not matter: the other node looks after its tunnel.
      check: () =>
        void peers
          .open(address, { kind: 'check', uid, least }, AbortSignal.timeout(dial_ms))
          .catch(() => undefined),
    }
  }

  return {
    address: peers.address,
    offerTunnels: (find) => void (tunnel = find),
    offerHttp: (server) => void (http = server),
    tunnelOf,
    findTunnel: async ({ uid, tunnel: least }) => tunnelOf(uid, least),
    async forward(name, { request, socket, head }) {
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
    [Symbol.asyncDispose]: () => peers[Symbol.asyncDispose](),
  }
}

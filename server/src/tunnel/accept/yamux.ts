// Version 2 of the tunnel: one WebSocket with yamux, a stream for every SSH connection. The agent is yamux's
// server. Negotiation costs no round trip: protocol names and JSON line leave with the opening, and the
// agent's replies are read off the stream first. Some agents read the line with a buffer that they discard,
// so nothing may be sent before the agent's SSH server has spoken; our own agent gets what follows at once.
// Agents in the field and the server ping each other every `ping_ms`. With the feature `report` only the
// agent pings: its packets preserve a NAT's mapping, and it can connect again. The server then ends a tunnel
// that is silent for longer than the agent announced.
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import {
  firstPing_s,
  mostStreams,
  ping_ms,
  pong_ms,
  protocols,
  shellHubProxy,
  type Feature,
  type EndOrder,
  type Proof,
  type TargetAddress,
  type TargetRequest,
} from '@hawser/contract/tunnel'
import { ConnectionLost, liveness, multistream, MuxClosed, openMux, type Mux } from '@hawser/mux'
import { newUuid } from '../../kit/ids.ts'
import type { Meter } from '../meter.ts'
import { readShellHubAnswer, readTargetAnswer, TargetRefused } from '../targets.ts'
import { proves, Unreachable, type Tunnel, type TunnelDevice, type TunnelEnd } from '../tunnel.ts'

const longestAnswer_bytes = 4_096
/** The most that a ping may be late; never more than its interval. */
const mostLate_ms = 30_000

/** `reports`: the agent pings, and we do not. */
function opening(mux: Mux, reports: boolean) {
  /** `expected` is taken off the agent's first bytes. */
  const begin = (protocol: string, head: string, expected?: Buffer): Duplex => {
    const first = Buffer.concat([multistream.propose(protocol), Buffer.from(`${head}\n`)])
    const stream = mux.open(first, expected)
    // Use reveals a dead link: the next ping may be minutes away.
    if (reports) mux.expectWord(pong_ms)
    return stream
  }

  /** Undefined when the agent does not know the protocol. */
  async function open(protocol: string, head: object, signal: AbortSignal): Promise<Duplex | undefined> {
    const stream = begin(protocol, JSON.stringify(head))
    const stop = (): void => void stream.destroy()
    signal.addEventListener('abort', stop, { once: true })
    // The caller handles errors of an open stream; until then they are handled here.
    const failed = (): void => undefined
    stream.on('error', failed)
    try {
      signal.throwIfAborted()
      if (await multistream.readReply(stream, protocol)) return stream
      stream.destroy()
      return undefined
    } catch (cause) {
      stream.destroy()
      throw new Unreachable('The agent did not answer.', { cause })
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** The line that the agent answers with; undefined when it does not know the protocol. */
  async function ask(protocol: string, head: object, signal: AbortSignal): Promise<string | undefined> {
    const stream = await open(protocol, head, signal)
    try {
      return stream && (await multistream.readLine(stream, longestAnswer_bytes, signal))
    } finally {
      stream?.destroy()
    }
  }

  return { begin, open, ask }
}

/** What the server signs for the agent at the other end, and for no other. */
export interface SignedOrders {
  hangUp(): string
  target(target: TargetAddress): string
}

export function yamuxTunnel(
  device: TunnelDevice,
  carrier: Duplex,
  seen: () => void,
  features: ReadonlySet<Feature>,
  meter: Meter,
  /** The orders of the server; undefined: the agent takes none. */
  orders?: SignedOrders,
): Tunnel {
  const reports = features.has('report')
  const mux = openMux(carrier, {
    role: 'client',
    mostIncoming: reports ? 1 : 0,
    mostStreams,
    ...(reports ? { onPing: seen } : { ping: { every_ms: ping_ms, timeout_ms: pong_ms }, onPong: seen }),
  })
  /**
   * The interval that the agent has named, and its SSH connections: with one it pings every `ping_ms` at
   * most.
   */
  let interval_ms = firstPing_s * 1_000
  let connections = 0

  function watch(): void {
    if (!reports) return
    const expected_ms = connections > 0 ? Math.min(interval_ms, ping_ms) : interval_ms
    mux.allowSilence(expected_ms + Math.min(expected_ms, mostLate_ms))
  }
  watch()

  const alive = liveness(carrier, mux)
  const { begin, open, ask } = opening(mux, reports)

  const counted = (stream: Duplex): Duplex => {
    connections++
    watch()
    stream.once('close', () => {
      connections--
      watch()
    })
    return meter.session(stream)
  }

  return {
    device,
    features,
    meter,
    async openSsh(id, signal) {
      if (features.has('pipelining')) {
        signal.throwIfAborted()
        const opened = begin(protocols.ssh, JSON.stringify({ id }), multistream.agreement(protocols.ssh))
        if (opened.destroyed) throw new Unreachable('The tunnel takes no more streams.')
        return counted(opened)
      }
      const stream = await open(protocols.ssh, { id }, signal)
      if (!stream) throw new Unreachable('The agent does not take SSH connections.')
      return counted(stream)
    },
    carry: async (protocol, head) => counted(begin(protocol, head)),
    check: () => alive.check(),
    roundTrip: () => mux.ping(),
    async prove(signal) {
      const nonce = randomBytes(32).toString('hex')
      const line = await ask(protocols.proof, { nonce }, signal)
      if (line === undefined) return undefined
      const { signature } = JSON.parse(line) as Partial<Proof>
      return typeof signature === 'string' && proves(device, nonce, signature)
    },
    async openTarget(target, signal) {
      const isOurs = features.has('services') && orders !== undefined
      const { host, port } = target
      const request: TargetRequest | undefined = isOurs
        ? { host, port, signature: orders.target(target) }
        : undefined
      const stream = request
        ? await open(protocols.target, request, signal)
        : await open(shellHubProxy, { id: newUuid(), host, port: String(port) }, signal)
      if (!stream) throw new TargetRefused('unsupported')
      try {
        await (isOurs ? readTargetAnswer : readShellHubAnswer)(stream, signal)
        return counted(stream)
      } catch (error) {
        stream.destroy()
        throw error
      }
    },
    ...(orders
      ? {
          async hangUp(signal: AbortSignal): Promise<void> {
            const order: EndOrder = { signature: orders.hangUp() }
            await ask(protocols.hangUp, order, signal)
          },
        }
      : {}),
    ...(reports
      ? {
          incoming: mux.incoming,
          pingsEvery(next_ms: number): void {
            interval_ms = next_ms
            watch()
          },
        }
      : {}),
    close(why) {
      mux.close(new Error(why))
    },
    ended: mux.ended.then(endOf),
  }
}

function endOf(error: Error | undefined): TunnelEnd | undefined {
  if (error === undefined || error instanceof MuxClosed) return { ending: 'closed' }
  if (!(error instanceof ConnectionLost)) return { ending: 'broken', detail: error.message }
  return { ending: 'lost', detail: error.message, silent: error.silent }
}

// Version 2 of the tunnel: one WebSocket, yamux on it, a stream for every SSH connection. The agent is
// yamux's server: we open, it accepts. Negotiation costs no round trip: the names of the protocols and the
// JSON line leave with the opening. The agent's replies are read off the stream before anybody else sees it,
// and nothing is said on it until the agent's SSH server has spoken, because some agents read the line with a
// buffer that they throw away.
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { mostStreams, ping_ms, pong_ms, protocols, type Proof } from '@hawser/contract/tunnel'
import { ConnectionLost, multistream, MuxClosed, openMux } from '@hawser/mux'
import { proves, Unreachable, type Tunnel, type TunnelDevice, type TunnelEnd } from '../tunnel.ts'

const longestProof_bytes = 4_096

export function yamuxTunnel(device: TunnelDevice, carrier: Duplex, seen: () => void): Tunnel {
  const mux = openMux(carrier, {
    role: 'client',
    mostIncoming: 0,
    mostStreams,
    ping: { every_ms: ping_ms, timeout_ms: pong_ms },
    onPong: seen,
  })

  /** Undefined when the agent does not know the protocol. */
  async function open(protocol: string, head: object, signal: AbortSignal): Promise<Duplex | undefined> {
    const stream = mux.open(
      Buffer.concat([multistream.propose(protocol), Buffer.from(`${JSON.stringify(head)}\n`)]),
    )
    const stop = (): void => void stream.destroy()
    signal.addEventListener('abort', stop, { once: true })
    // Whoever gets the stream hears of later errors; until then they are heard here.
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

  return {
    device,
    async openSsh(id, signal) {
      const stream = await open(protocols.ssh, { id }, signal)
      if (!stream) throw new Unreachable('The agent does not take SSH connections.')
      return stream
    },
    async prove(signal) {
      const nonce = randomBytes(32).toString('hex')
      const stream = await open(protocols.proof, { nonce }, signal)
      if (!stream) return undefined
      try {
        const { signature } = JSON.parse(
          await multistream.readLine(stream, longestProof_bytes, signal),
        ) as Partial<Proof>
        return typeof signature === 'string' && proves(device, nonce, signature)
      } finally {
        stream.destroy()
      }
    },
    close(why) {
      mux.close(new Error(why))
    },
    ended: mux.ended.then(endOf),
  }
}

/** What the end of the session says about the agent. */
function endOf(error: Error | undefined): TunnelEnd | undefined {
  if (error === undefined || error instanceof MuxClosed) return { ending: 'closed' }
  return { ending: error instanceof ConnectionLost ? 'lost' : 'broken', detail: error.message }
}

// The tunnel: a WebSocket to the server, held open and made again whenever it is lost. On it the server opens
// streams; each names its use: an SSH connection to this device, the end of one, or a proof that this agent
// holds the device's key.
import { randomUUID, sign, type KeyObject } from 'node:crypto'
import type { Duplex } from 'node:stream'
import {
  instanceHeader,
  mostStreams,
  ping_ms,
  pong_ms,
  proofText,
  protocols,
  tunnelPaths,
  type Proof,
  type ProofRequest,
  type StreamHead,
} from '@hawser/contract/tunnel'
import { dialBytes, multistream, openMux } from '@hawser/mux'

export interface TunnelParts {
  readonly server: string
  readonly key: KeyObject
  /** Serves one SSH connection until it is over. */
  serve(stream: Duplex, signal: AbortSignal): Promise<void>
  log(event: Record<string, unknown>): void
}

/** Names this process to the server. */
const instance = randomUUID()
const head_ms = 15_000
const longestHead_bytes = 4_096

/** Resolves when a tunnel that was up is lost; throws UpgradeFailed when the server does not want it. */
export async function holdTunnel(
  parts: TunnelParts,
  device: { readonly uid: string; readonly token: string },
  signal: AbortSignal,
  onUp: () => void,
): Promise<void> {
  const url = `${parts.server.replace(/^http/, 'ws')}${tunnelPaths.streams}`
  const carrier = await dialBytes(url, {
    headers: { authorization: `Bearer ${device.token}`, [instanceHeader]: instance },
    signal,
  })
  using mux = openMux(carrier, {
    role: 'server',
    mostStreams,
    ping: { every_ms: ping_ms, timeout_ms: pong_ms },
  })
  const stop = (): void => mux.close()
  signal.addEventListener('abort', stop, { once: true })
  onUp()
  /** By the id that the server gave them, so that it can end one. */
  const connections = new Map<string, AbortController>()

  async function take(stream: Duplex): Promise<void> {
    stream.on('error', () => undefined)
    const limit = AbortSignal.timeout(head_ms)
    const { protocol } = await multistream.negotiate(stream, Object.values(protocols), limit)
    const head: unknown = JSON.parse(await multistream.readLine(stream, longestHead_bytes, limit))
    if (protocol === protocols.proof) return prove(stream, head as ProofRequest)
    const { id } = head as StreamHead
    if (protocol === protocols.close) {
      connections.get(id)?.abort()
      return void stream.end()
    }
    const ending = new AbortController()
    connections.set(id, ending)
    try {
      await parts.serve(stream, ending.signal)
    } finally {
      if (connections.get(id) === ending) connections.delete(id)
    }
  }

  function prove(stream: Duplex, { nonce }: ProofRequest): void {
    const signature = sign('sha256', Buffer.from(proofText(device.uid, nonce)), parts.key)
    const proof: Proof = { signature: signature.toString('base64') }
    stream.end(`${JSON.stringify(proof)}\n`)
  }

  const accept = async (): Promise<void> => {
    for await (const stream of mux.incoming) {
      void take(stream).catch((error: unknown) => {
        parts.log({
          level: 'warn',
          event: 'stream.failed',
          why: error instanceof Error ? error.message : String(error),
        })
        stream.destroy()
      })
    }
  }
  const [lost] = await Promise.all([mux.ended, accept().catch(() => undefined)])
  signal.removeEventListener('abort', stop)
  for (const connection of connections.values()) connection.abort()
  parts.log({ level: 'info', event: 'tunnel.lost', why: lost?.message ?? 'closed' })
}

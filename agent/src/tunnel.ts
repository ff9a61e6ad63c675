// The tunnel: a WebSocket to the server, held open and made again whenever it is lost. On it the server opens
// streams; each names its use: an SSH connection to this device, the end of one, or a proof that this agent
// holds the device's key. The agent opens one stream itself, to report (report.ts), if the server takes
// reports; then the agent alone pings, as seldom as the network bears.
import { randomBytes, randomUUID, sign, type KeyObject } from 'node:crypto'
import type { Duplex } from 'node:stream'
import {
  features,
  featuresHeader,
  hangUpHeader,
  instanceHeader,
  mostStreams,
  nonceHeader,
  ping_ms,
  pong_ms,
  proofText,
  protocols,
  sharedFeatures,
  tunnelPaths,
  type Feature,
  type EndOrder,
  type Proof,
  type ProofRequest,
  type ResumableHead,
  type ResumeRequest,
  type StreamHead,
} from '@hawser/contract/tunnel'
import type { ConnectionReport, LeavingReason } from '@hawser/contract/reports'
import { ConnectionLost, dialBytes, liveness, multistream, openMux, UpgradeFailed } from '@hawser/mux'
import { resumingTls } from './call.ts'
import type { PingInterval } from './ping-interval.ts'
import { openReports, type Reports, type WatchedReport } from './report.ts'
import type { ResumableStreams } from './resumable-streams.ts'

export interface TunnelParts {
  readonly server: string
  readonly key: KeyObject
  /** What is named to the server; all that this version supports unless stated. */
  readonly features?: readonly Feature[]
  /** Serves one SSH connection until it is over. */
  serve(stream: Duplex, signal: AbortSignal): Promise<void>
  /** SSH connections that outlive the tunnel. */
  readonly resumable: ResumableStreams
  readonly reports: WatchedReport
  readonly interval: PingInterval
  /** What is said once about this tunnel. */
  connection(): ConnectionReport
  /** Why the agent stops. */
  leaving(): LeavingReason
  /** Whether the server has signed the order to hang up, for the request with this nonce. */
  isHangUp(signature: unknown, nonce: string): Promise<boolean>
  /** Ends all that outlives a tunnel. */
  hangUp(): Promise<void>
  /** The tunnel has ended, and the agent was not told to stop. */
  onLost(why: string): void
  log(event: Record<string, unknown>): void
}

/** Names this process to the server. */
const instance = randomUUID()
const head_ms = 15_000
const longestHead_bytes = 4_096
/** For the server to read why the agent leaves, at most. */
const goodbye_ms = 1_000

/**
 * Resolves when a tunnel that was up is lost, with how long it had been idle in milliseconds; undefined when
 * it was closed in good order. Throws UpgradeFailed when the server does not want it.
 */
export async function holdTunnel(
  parts: TunnelParts,
  device: { readonly uid: string; readonly token: string },
  signal: AbortSignal,
  onUp: (shared: ReadonlySet<Feature>) => void,
): Promise<number | undefined> {
  const url = `${parts.server.replace(/^http/, 'ws')}${tunnelPaths.streams}`
  const named = parts.features ?? features
  /** What the server supports too. */
  let shared: ReadonlySet<Feature> = new Set()
  const nonce = randomBytes(16).toString('hex')
  const carrier = await dialBytes(url, {
    onHeaders: (headers) => void (shared = sharedFeatures(headers[featuresHeader], named)),
    headers: {
      authorization: `Bearer ${device.token}`,
      [instanceHeader]: instance,
      [featuresHeader]: named.join(', '),
      [nonceHeader]: nonce,
    },
    signal,
    agent: resumingTls,
  }).catch(async (error: unknown) => {
    if (error instanceof UpgradeFailed && (await parts.isHangUp(error.headers[hangUpHeader], nonce)))
      await parts.hangUp()
    throw error
  })
  const learns = shared.has('report')
  /** While people are connected, the end of the tunnel is to be noticed soon. */
  const pace = () => {
    const usual_ms = learns ? parts.interval.now_s * 1_000 : ping_ms
    return {
      every_ms: inUse > 0 ? Math.min(ping_ms, usual_ms) : usual_ms,
      timeout_ms: pong_ms,
    }
  }
  /** Streams that carry SSH connections; the server counts them too. */
  let inUse = 0
  /** Connections that end with the tunnel, by the id that the server gave them, so that it can end one. */
  const connections = new Map<string, AbortController>()
  let reports: Reports | undefined
  using mux = openMux(carrier, {
    role: 'server',
    mostStreams,
    ping: pace(),
    onPong(idle_ms) {
      if (!learns) return
      parts.interval.survived(idle_ms)
      keepPace()
    },
  })
  const tunnel = liveness(carrier, mux)
  /** The server is told of a longer interval before it is used. */
  const keepPace = (): void => {
    if (reports?.check() === true) mux.pace(pace())
  }
  const stop = (): void => {
    if (reports?.leave(parts.leaving()) !== true) return mux.close()
    // The answer to a ping says that the server has what came before it.
    void mux.ping().then(
      () => mux.close(),
      () => undefined,
    )
    setTimeout(() => mux.close(), goodbye_ms).unref()
  }
  signal.addEventListener('abort', stop, { once: true })
  onUp(shared)
  parts.log({ level: 'debug', event: 'tunnel.features', features: [...shared] })
  const connection = parts.connection()
  if (learns)
    reports = openReports(mux, {
      report: () => ({ ...parts.reports.report(), connection, ping_s: parts.interval.now_s }),
      told(news) {
        if (news.ping) {
          parts.interval.limit(news.ping.longest_s)
          parts.interval.adopt(news.ping.learnt_s)
        }
        parts.reports.told(news)
        keepPace()
      },
    })
  using _ = parts.reports.watch(keepPace)

  async function take(stream: Duplex): Promise<void> {
    stream.on('error', () => undefined)
    const limit = AbortSignal.timeout(head_ms)
    const { protocol } = await multistream.negotiate(stream, Object.values(protocols), limit)
    const head: unknown = JSON.parse(await multistream.readLine(stream, longestHead_bytes, limit))
    if (protocol === protocols.proof) return prove(stream, head as ProofRequest)
    if (protocol === protocols.hangUp) return hangUp(stream, head as EndOrder)
    if (protocol !== protocols.close) count(stream)
    if (protocol === protocols.resumable) return parts.resumable.open(head as ResumableHead, stream, tunnel)
    if (protocol === protocols.resume) return parts.resumable.resume(head as ResumeRequest, stream, tunnel)
    const { id } = head as StreamHead
    if (protocol === protocols.close) {
      connections.get(id)?.abort()
      parts.resumable.close(id)
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

  function count(stream: Duplex): void {
    inUse++
    keepPace()
    stream.once('close', () => {
      inUse--
      keepPace()
    })
  }

  async function hangUp(stream: Duplex, { signature }: EndOrder): Promise<void> {
    if (!(await parts.isHangUp(signature, nonce))) throw new Error('The server did not sign the order.')
    for (const connection of connections.values()) connection.abort()
    await parts.hangUp()
    stream.end('{}\n')
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
  const why = lost?.message ?? 'The server closed the connection.'
  parts.log({ level: 'info', event: 'tunnel.lost', why: lost ? why : 'closed' })
  if (!signal.aborted) parts.onLost(why)
  return learns && lost instanceof ConnectionLost ? mux.idle_ms : undefined
}

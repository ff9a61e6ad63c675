// The tunnel: a WebSocket to the server. The server opens streams on it, each with a purpose: an SSH connection to
// this device, the end of one, a connection to a target of a web service, or a proof that this agent holds the
// device's key. If the server takes reports, the agent opens one stream for them (report.ts), and it alone pings,
// as rarely as the network permits.
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
import {
  ConnectionLost,
  dialBytes,
  liveness,
  multistream,
  openMux,
  UpgradeFailed,
  type Liveness,
} from '@hawser/mux'
import { resumingTls } from './call.ts'
import { messageOf } from './message-of.ts'
import type { PingInterval } from './ping-interval.ts'
import { openReports, type Reports, type WatchedReport } from './report.ts'
import type { ResumableStreams } from './resumable-streams.ts'
import { noServices, type Services } from './services.ts'

export interface TunnelParts {
  readonly server: string
  readonly key: KeyObject
  /** All features of this version unless stated. */
  readonly features?: readonly Feature[]
  serve(stream: Duplex, signal: AbortSignal): Promise<void>
  readonly resumable: ResumableStreams
  /** Off unless stated. */
  readonly services?: Services
  readonly reports: WatchedReport
  readonly interval: PingInterval
  /** Reported once for each tunnel. */
  connection(): ConnectionReport
  leaving(): LeavingReason
  /** Whether the server has signed the order to hang up, for the request with this nonce. */
  isHangUp(signature: unknown, nonce: string): Promise<boolean>
  /** Ends everything that outlives a tunnel. */
  hangUp(): Promise<void>
  /** The tunnel has ended, although the agent continues. */
  onLost(why: string): void
  log(event: Record<string, unknown>): void
}

/** Identifies this process. */
const instance = randomUUID()
const head_ms = 15_000
const longestHead_bytes = 4_096
/** How long the agent waits for the server to read why it leaves. */
const goodbye_ms = 1_000

/**
 * Resolves when the tunnel is lost, with its idle time in milliseconds; undefined when it was closed
 * regularly. Throws UpgradeFailed when the server refuses the tunnel.
 */
export async function holdTunnel(
  parts: TunnelParts,
  device: { readonly uid: string; readonly token: string },
  signal: AbortSignal,
  onUp: (shared: ReadonlySet<Feature>) => void,
): Promise<number | undefined> {
  const nonce = randomBytes(16).toString('hex')
  const { carrier, shared } = await dial(parts, device.token, nonce, signal)
  const learns = shared.has('report')
  /** While people are connected, the end of the tunnel must be noticed soon. */
  const pace = () => {
    const usual_ms = learns ? parts.interval.now_s * 1_000 : ping_ms
    const every_ms = streams.count() > 0 ? Math.min(ping_ms, usual_ms) : usual_ms
    return { every_ms, timeout_ms: pong_ms }
  }
  let reports: Reports | undefined
  /** The server learns of a longer interval before it is used. */
  const keepPace = (): void => {
    if (reports?.check() === true) mux.pace(pace())
  }
  const streams = streamsOf(parts, { uid: device.uid, nonce }, keepPace)
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
  const stop = (): void => {
    if (reports?.leave(parts.leaving()) !== true) return mux.close()
    // The answer to a ping means that the server has everything sent before it.
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

  const accept = async (): Promise<void> => {
    for await (const stream of mux.incoming) {
      void streams.take(stream, tunnel).catch((error: unknown) => {
        parts.log({ level: 'warn', event: 'stream.failed', why: messageOf(error) })
        stream.destroy()
      })
    }
  }
  const [lost] = await Promise.all([mux.ended, accept().catch(() => undefined)])
  signal.removeEventListener('abort', stop)
  streams.end()
  const why = lost?.message ?? 'The server closed the connection.'
  parts.log({ level: 'info', event: 'tunnel.lost', why: lost ? why : 'closed' })
  if (!signal.aborted) parts.onLost(why)
  return learns && lost instanceof ConnectionLost ? mux.idle_ms : undefined
}

/** Returns the connection and the features that both support. */
async function dial(
  { server, features: named = features, isHangUp, hangUp }: TunnelParts,
  token: string,
  nonce: string,
  signal: AbortSignal,
): Promise<{ carrier: Duplex; shared: ReadonlySet<Feature> }> {
  let shared: ReadonlySet<Feature> = new Set()
  try {
    const carrier = await dialBytes(`${server.replace(/^http/, 'ws')}${tunnelPaths.streams}`, {
      onHeaders: (headers) => void (shared = sharedFeatures(headers[featuresHeader], named)),
      headers: {
        authorization: `Bearer ${token}`,
        [instanceHeader]: instance,
        [featuresHeader]: named.join(', '),
        [nonceHeader]: nonce,
      },
      signal,
      agent: resumingTls,
    })
    return { carrier, shared }
  } catch (error) {
    if (error instanceof UpgradeFailed && (await isHangUp(error.headers[hangUpHeader], nonce))) await hangUp()
    throw error
  }
}

interface Streams {
  /** How many carry connections; the server counts them too. */
  count(): number
  /** Serves a stream by its head. */
  take(stream: Duplex, tunnel: Liveness): Promise<void>
  end(): void
}

function streamsOf(
  parts: TunnelParts,
  device: { readonly uid: string; readonly nonce: string },
  counted: () => void,
): Streams {
  let count = 0
  /** Connections that end with the tunnel, by the id with which the server can end each. */
  const connections = new Map<string, AbortController>()
  /** Streams with targets of web services. */
  const targets = new Set<Duplex>()
  const { services = noServices } = parts
  const end = (): void => {
    for (const connection of connections.values()) connection.abort()
    for (const stream of targets) stream.destroy()
  }

  async function take(stream: Duplex, tunnel: Liveness): Promise<void> {
    stream.on('error', () => undefined)
    const limit = AbortSignal.timeout(head_ms)
    const { protocol } = await multistream.negotiate(stream, Object.values(protocols), limit)
    const head: unknown = JSON.parse(await multistream.readLine(stream, longestHead_bytes, limit))
    if (protocol === protocols.proof) return prove(stream, head as ProofRequest)
    if (protocol === protocols.hangUp) return hangUp(stream, head as EndOrder)
    if (protocol === protocols.listening) return services.listening(stream)
    if (protocol !== protocols.close) add(stream)
    if (protocol === protocols.target) return reach(stream, head)
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

  function add(stream: Duplex): void {
    // The pace depends on whether there are any.
    if (++count === 1) counted()
    stream.once('close', () => {
      if (--count === 0) counted()
    })
  }

  async function reach(stream: Duplex, request: unknown): Promise<void> {
    targets.add(stream)
    try {
      await services.target(stream, request, device.nonce)
    } finally {
      targets.delete(stream)
    }
  }

  async function hangUp(stream: Duplex, { signature }: EndOrder): Promise<void> {
    if (!(await parts.isHangUp(signature, device.nonce)))
      throw new Error('The server has not signed the order.')
    end()
    await parts.hangUp()
    stream.end('{}\n')
  }

  function prove(stream: Duplex, { nonce }: ProofRequest): void {
    const signature = sign('sha256', Buffer.from(proofText(device.uid, nonce)), parts.key)
    const proof: Proof = { signature: signature.toString('base64') }
    stream.end(`${JSON.stringify(proof)}\n`)
  }

  return { count: () => count, take, end }
}

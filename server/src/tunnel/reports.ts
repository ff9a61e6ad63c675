// The stream on which our own agents report, one per tunnel: lines of JSON both ways. It is read only once
// the tunnel is its device's, so that a mere token cannot change what is known of the device. A device that
// reports too often is read more slowly; its stream's window bounds what waits. A line that is no report ends
// the tunnel. The server sends only changes.
import type { Duplex } from 'node:stream'
import type { DeviceNews, DeviceReport } from '@hawser/contract/reports'
import { reportProtocol } from '@hawser/contract/tunnel'
import { multistream } from '@hawser/mux'
import type { Limiter } from '../kit/limiter.ts'
import type { Tunnel, TunnelDevice } from './tunnel.ts'

export interface ReportStreamParts {
  /** Undefined for a line that is no report. */
  read(line: string): DeviceReport | undefined
  /** Saves the report and returns what the agent should know; undefined: the device is gone. */
  take(device: TunnelDevice, said: DeviceReport, source: string | undefined): Promise<DeviceNews | undefined>
  /** Called for each line before anything is saved. */
  heard(device: TunnelDevice, report: DeviceReport): void
  /** Lines of one device. */
  lines: Limiter
  /** A device counts as connected no longer than this without a ping, whatever interval it announces. */
  longestPing_s: number
  onError(device: TunnelDevice, error: unknown): void
}

export interface ReportStreams {
  /** Serves the stream of a tunnel that has become its device's. */
  serve(tunnel: Tunnel, source: string | undefined): void
  /** Notifies the device's agent, if it has a tunnel here. */
  changed(uid: string): void
  /** News may have been missed: every agent gets the present state with its next ping. */
  missed(): void
  pinged(uid: string): void
}

interface Reporting {
  readonly tunnel: Tunnel
  readonly source: string | undefined
  readonly stream: Duplex
  /** All that the agent has reported. */
  said: DeviceReport
  /** The values that the agent was sent, as JSON by field. */
  readonly told: Map<string, string>
  /** Something may have changed since the last check. */
  isBehind: boolean
  /** A check is due. */
  isQueued: boolean
  /** One step after the other. */
  last: Promise<void>
}

const longestLine_bytes = 8 * 1024
/** For the agent to name the protocol. */
const head_ms = 15_000
/** The most that may wait for an agent that does not read. */
const mostUnread_bytes = 256 * 1024

export function reportStreams(parts: ReportStreamParts): ReportStreams {
  const open = new Map<string, Reporting>()

  /** Sends the agent what it does not know yet. */
  async function tell(reporting: Reporting): Promise<void> {
    const { tunnel, stream, told } = reporting
    reporting.isBehind = false
    reporting.isQueued = false
    const news = await parts.take(tunnel.device, reporting.said, reporting.source)
    if (!news) return
    const fresh = Object.entries(news).filter(([name, value]) => told.get(name) !== JSON.stringify(value))
    if (fresh.length === 0 || stream.destroyed) return
    if (stream.writableLength > mostUnread_bytes) return tunnel.close('The agent does not read its news.')
    for (const [name, value] of fresh) told.set(name, JSON.stringify(value))
    stream.write(`${JSON.stringify(Object.fromEntries(fresh))}\n`)
  }

  /** A failure leaves the agent behind until its next ping. */
  function inTurn(reporting: Reporting): Promise<void> {
    if (reporting.isQueued) return reporting.last
    reporting.isQueued = true
    reporting.last = reporting.last
      .then(() => tell(reporting))
      .catch((error: unknown) => {
        reporting.isBehind = true
        parts.onError(reporting.tunnel.device, error)
      })
    return reporting.last
  }

  async function read(reporting: Reporting): Promise<void> {
    const { tunnel, stream } = reporting
    const { device } = tunnel
    for (;;) {
      const line = await multistream.readLine(stream, longestLine_bytes)
      const report = parts.read(line)
      if (!report) return tunnel.close('The agent’s report cannot be read.')
      const wait_s = parts.lines.take(device.uid)
      if (wait_s > 0) await pause(stream, wait_s * 1_000)
      parts.heard(device, report)
      reporting.said = { ...reporting.said, ...report }
      if (report.ping_s !== undefined)
        tunnel.pingsEvery?.(Math.min(report.ping_s, parts.longestPing_s) * 1_000)
      await inTurn(reporting)
    }
  }

  async function take(tunnel: Tunnel, source: string | undefined, stream: Duplex): Promise<void> {
    const { uid } = tunnel.device
    stream.on('error', () => undefined)
    await multistream.negotiate(stream, [reportProtocol], AbortSignal.timeout(head_ms))
    const reporting: Reporting = {
      tunnel,
      source,
      stream,
      said: {},
      told: new Map(),
      isBehind: false,
      isQueued: false,
      last: Promise.resolve(),
    }
    open.set(uid, reporting)
    try {
      await read(reporting)
    } finally {
      if (open.get(uid) === reporting) open.delete(uid)
    }
  }

  return {
    serve(tunnel, source) {
      const accept = async (): Promise<void> => {
        for await (const stream of tunnel.incoming ?? [])
          // The end of the stream without the end of the tunnel is one, too: the agent would learn nothing
          // more.
          await take(tunnel, source, stream).catch(() => tunnel.close('The agent stopped to report.'))
      }
      void accept().catch((error: unknown) => parts.onError(tunnel.device, error))
    },
    changed(uid) {
      const reporting = open.get(uid)
      if (reporting) void inTurn(reporting)
    },
    missed() {
      for (const reporting of open.values()) reporting.isBehind = true
    },
    pinged(uid) {
      const reporting = open.get(uid)
      if (reporting?.isBehind === true) void inTurn(reporting)
    },
  }
}

/** Over at once when the stream ends. */
function pause(stream: Duplex, wait_ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      stream.off('close', done)
      resolve()
    }
    const timer = setTimeout(done, wait_ms)
    timer.unref()
    stream.on('close', done)
    if (stream.destroyed) done()
  })
}

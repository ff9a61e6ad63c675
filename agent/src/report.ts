// The agent's reports through its tunnel: a line of JSON for each change, on a stream for this alone. The
// server's news for the agent arrive on the same stream.
import type { DeviceNews, DeviceReport, LeavingReason } from '@hawser/contract/reports'
import { reportProtocol } from '@hawser/contract/tunnel'
import { multistream, type Mux } from '@hawser/mux'

export interface ReportParts {
  report(): DeviceReport
  told(news: DeviceNews): void
}

export interface WatchedReport extends ReportParts {
  /** Calls back when there is something new to report, until it is disposed. */
  watch(changed: () => void): Disposable
}

export interface Reports {
  /** Sends changes since the last line. False: the server has stopped listening. */
  check(): boolean
  /** Reports why the agent leaves. False: the server has stopped listening. */
  leave(why: LeavingReason): boolean
}

/** The longest are releases of agents with their signatures. */
const longestNews_bytes = 64 * 1024

export function openReports(mux: Mux, { report, told }: ReportParts): Reports {
  /** Reported values, as JSON by field. */
  const said = new Map<string, string>()

  function changes(): Buffer | undefined {
    const fresh = Object.entries(report()).filter(([name, value]) => said.get(name) !== JSON.stringify(value))
    if (fresh.length === 0) return undefined
    for (const [name, value] of fresh) said.set(name, JSON.stringify(value))
    return Buffer.from(`${JSON.stringify(Object.fromEntries(fresh))}\n`)
  }

  const stream = mux.open(Buffer.concat([multistream.propose(reportProtocol), changes() ?? Buffer.alloc(0)]))
  stream.on('error', () => undefined)

  async function listen(): Promise<void> {
    if (!(await multistream.readReply(stream, reportProtocol))) return void stream.destroy()
    for (;;) told(JSON.parse(await multistream.readLine(stream, longestNews_bytes)) as DeviceNews)
  }
  void listen().catch(() => stream.destroy())

  return {
    check() {
      if (stream.destroyed) return false
      const line = changes()
      if (line) stream.write(line)
      return true
    },
    leave(why) {
      if (stream.destroyed) return false
      stream.write(`${JSON.stringify({ leaving: why } satisfies DeviceReport)}\n`)
      return true
    },
  }
}

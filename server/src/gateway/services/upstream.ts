// Node's own pool of connections for HTTP, over streams to a device instead of sockets. A connection is used
// again for the next request; one that the device closes, or on which it says something unasked, is gone.
import http from 'node:http'
import type { Duplex } from 'node:stream'

/** Browsers open six connections for a page, and WebSockets leave the pool. */
const mostConnections = 32
/** As many as a burst of requests has opened wait a moment for the next one, and a few wait longer. */
const fewIdle = 8
/** Agents refuse to dial more than 64 at a time, for all services of their device. */
const mostDialling = 16
const idle_ms = 60_000
const burst_ms = 5_000

type Settle = (error: Error | null, stream: Duplex) => void

export function upstreamAgent(dial: () => Promise<Duplex>, most = mostConnections): http.Agent {
  return new StreamAgent(dial, most)
}

class StreamAgent extends http.Agent {
  readonly #dial: () => Promise<Duplex>
  readonly #waiting: (() => void)[] = []
  #dialling = 0
  readonly #idle = new WeakMap<Duplex, NodeJS.Timeout>()

  constructor(dial: () => Promise<Duplex>, most: number) {
    super({ keepAlive: true, maxSockets: most, maxFreeSockets: mostConnections })
    this.#dial = dial
  }

  /** Takes turns. */
  async #open(): Promise<Duplex> {
    if (this.#dialling < mostDialling) this.#dialling += 1
    else await new Promise<void>((turn) => void this.#waiting.push(turn))
    try {
      return await this.#dial()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#dialling -= 1
    }
  }

  override createConnection(_: http.ClientRequestArgs, settle: Settle): undefined {
    this.#open().then(
      (stream) => {
        // A half-open connection takes no further request.
        stream.once('end', () => void (stream.writableEnded || stream.end()))
        stream.once('close', () => clearTimeout(this.#idle.get(stream)))
        stream.on('error', () => undefined)
        // Node's pool calls it for sockets.
        if (!('ref' in stream)) Object.assign(stream, { ref: () => undefined })
        settle(null, stream)
      },
      (error: Error) => settle(error, undefined as never),
    )
    return undefined
  }

  /** A stream is no socket: Node's own version would set options of one. */
  override keepSocketAlive(stream: Duplex): boolean {
    if (stream.destroyed || stream.readableEnded || stream.writableEnded) return false
    this.#idle.set(stream, setTimeout(() => stream.destroy(), this.#isCrowded() ? burst_ms : idle_ms).unref())
    return true
  }

  override reuseSocket(stream: Duplex, request: http.ClientRequest): void {
    clearTimeout(this.#idle.get(stream))
    super.reuseSocket(stream, request)
  }

  #isCrowded(): boolean {
    let idle = 0
    for (const streams of Object.values(this.freeSockets)) idle += streams?.length ?? 0
    return idle >= fewIdle
  }
}

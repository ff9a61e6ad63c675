// Node's own pool of connections for HTTP, over streams to a device instead of sockets. A connection is used
// again for the next request; one that the device closes, or on which it says something unasked, is gone. Node
// counts a connection only once it is there, so the bound is on requests: each has its turn (`take`), and a
// connection that is being made for a request ends with it.
import http from 'node:http'
import type { Duplex } from 'node:stream'
import { concurrencyByKey } from '../../kit/concurrency.ts'
import { TargetUnreachable } from './target.ts'

/** Browsers open six connections for a page, and WebSockets leave the pool. */
const mostConnections = 32
/** Further requests wait; the places of people and strangers (door.ts) are fewer. */
const mostWaiting = 1_024
/** Idle connections that wait a minute for the next request; those beyond it wait `burst_ms`. */
const fewIdle = 8
/** Agents refuse to dial more than 64 at a time, for all services of their device. */
const mostDialling = 16
const idle_ms = 60_000
const burst_ms = 5_000

type Settle = (error: Error | null, stream: Duplex) => void

export type Dial = (gone: AbortSignal) => Promise<Duplex>

/** The connections of one visit to its target. */
export interface Upstream {
  /** Runs a request when it is its turn; undefined: too many wait. Rejects when the signal is aborted before. */
  take(request: () => Promise<void>, gone: AbortSignal): Promise<void> | undefined
  /** A request without an answer; `gone` ends the connection that is being made for it. */
  begin(options: http.RequestOptions, gone: AbortSignal): http.ClientRequest
  /** Ends idle connections; those of requests end with these. */
  destroy(): void
}

export function upstream(dial: Dial, most = mostConnections): Upstream {
  const agent = new StreamAgent(dial)
  const turns = concurrencyByKey(mostWaiting, { each: most })
  return {
    take: (request, signal) => turns.run('', request, { signal }),
    begin: (options, gone) => http.request({ ...options, agent, gone } as http.RequestOptions),
    destroy: () => agent.destroy(),
  }
}

class StreamAgent extends http.Agent {
  readonly #dial: Dial
  readonly #dialling = concurrencyByKey(mostWaiting, { each: mostDialling })
  readonly #idle = new WeakMap<Duplex, NodeJS.Timeout>()
  #isOver = false

  constructor(dial: Dial) {
    super({ keepAlive: true, maxFreeSockets: mostConnections })
    this.#dial = dial
  }

  override destroy(): void {
    this.#isOver = true
    super.destroy()
  }

  override createConnection(
    { gone }: http.ClientRequestArgs & { gone: AbortSignal },
    settle: Settle,
  ): undefined {
    const dialled = this.#dialling.run('', async () => this.#dial(gone), { signal: gone })
    if (!dialled) {
      settle(new TargetUnreachable('busy'), undefined as never)
      return undefined
    }
    dialled.then(
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
    if (this.#isOver || stream.destroyed || stream.readableEnded || stream.writableEnded) return false
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

// SSH connections that outlive the tunnel. The gateway opens one with an id and a secret; when the tunnel
// breaks, the connection and the programs behind it stay for the grace time, and the gateway continues the
// stream over the next tunnel. Only the gateway that opened a stream knows its secret. An id that is unknown
// here (the agent has started again, or the time is over) is answered so, and the session ends at once.
import { timingSafeEqual } from 'node:crypto'
import type { Duplex } from 'node:stream'
import {
  mostGrace_s,
  mostStreams,
  type ResumableHead,
  type ResumeAnswer,
  type ResumeRequest,
} from '@hawser/contract/tunnel'
import { ResumableMemory, ResumableStream, type Liveness } from '@hawser/mux'

export interface ResumableStreams {
  /** Serves a new stream until it is over. Throws for an invalid head. */
  open(head: ResumableHead, carrier: Duplex, tunnel: Liveness): Promise<void>
  /** Continues a stream on this carrier. */
  resume(request: ResumeRequest, carrier: Duplex, tunnel: Liveness): void
  close(id: string): void
  /** Each promise resolves when a stream is over. */
  closeAll(): Promise<void>[]
}

interface Entry {
  readonly stream: ResumableStream
  readonly secret: Buffer
  readonly ending: AbortController
  readonly over: Promise<void>
  /** The stream's latest tunnel. */
  tunnel: Liveness
}

/** Small devices have little memory: what one stream needs at full speed, a few times. */
const memory_bytes = 16 * 1024 * 1024

export function resumableStreams(
  serve: (stream: Duplex, ending: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): ResumableStreams {
  const entries = new Map<string, Entry>()
  const memory = new ResumableMemory(memory_bytes)
  const stop = (): void => {
    for (const { ending } of entries.values()) ending.abort()
  }
  // Before the tunnel handles it and closes, so that the gateway still learns how the sessions ended.
  signal.addEventListener('abort', stop, { once: true })

  return {
    async open({ id, secret, grace_s }, carrier, tunnel) {
      const isHead =
        typeof id === 'string' &&
        typeof secret === 'string' &&
        /^[0-9a-f]{32,128}$/.test(secret) &&
        Number.isInteger(grace_s) &&
        grace_s > 0
      if (!isHead || entries.has(id)) throw new Error('The server opened an invalid stream.')
      if (entries.size >= mostStreams) throw new Error('Too many connections are open.')
      const ending = new AbortController()
      const over = Promise.withResolvers<void>()
      const entry: Entry = {
        secret: Buffer.from(secret, 'hex'),
        ending,
        over: over.promise,
        tunnel,
        stream: new ResumableStream({
          grace_ms: Math.min(grace_s, mostGrace_s) * 1000,
          memory,
          onStalled: () => entry.tunnel.check(),
        }),
      }
      entries.set(id, entry)
      entry.stream.attach(carrier)
      try {
        await serve(entry.stream, ending.signal)
      } finally {
        entry.stream.destroy()
        entries.delete(id)
        over.resolve()
      }
    },
    resume({ id, secret, received, read, over }, carrier, tunnel) {
      const answer = (line: ResumeAnswer): void => void carrier.write(`${JSON.stringify(line)}\n`)
      const found = entries.get(id)
      const entry = found && isSame(found.secret, secret) ? found : undefined
      if (over) {
        entry?.ending.abort()
        entry?.stream.destroy()
      }
      if (!entry || entry.stream.destroyed) {
        answer({ unknown: true })
        carrier.end()
        return
      }
      entry.tunnel = tunnel
      answer(entry.stream.detach())
      entry.stream.attach(carrier, { received, read })
    },
    close: (id) => entries.get(id)?.ending.abort(),
    closeAll() {
      stop()
      return [...entries.values()].map(({ over }) => over)
    },
  }
}

function isSame(secret: Buffer, given: unknown): boolean {
  const bytes = Buffer.from(typeof given === 'string' ? given : '', 'hex')
  return bytes.length === secret.length && timingSafeEqual(bytes, secret)
}

// Pings of one session: those that measure the round trip, and those that tell whether the peer is still
// there. A peer is gone when it has said nothing at all for the time limit after a ping: an answer can be late
// because it stands behind many bytes, but then the bytes come. There is one timer, and none without
// `PingTimes`.
import { performance } from 'node:perf_hooks'
import { ConnectionLost, StreamRefused } from './errors.ts'

/** How often to ping, and how long a peer may say nothing at all after a ping. */
export interface PingTimes {
  readonly every_ms: number
  readonly timeout_ms: number
}

interface Measure {
  readonly sent: number
  readonly resolve: (took_ms: number) => void
  readonly reject: (error: Error) => void
}

const mostMeasures = 64

export class Pings {
  readonly #send: (id: number) => void
  readonly #lost: (error: Error) => void
  #nextId = 0
  /** Round trips that are being measured, by id. */
  #measures: Map<number, Measure> | undefined
  /** The id of the ping that tells whether the peer is there, until it is answered. */
  #awaited: number | undefined
  /** Something came since then. */
  #heard = false
  #timer: NodeJS.Timeout | undefined

  constructor(send: (id: number) => void, lost: (error: Error) => void, times: PingTimes | undefined) {
    this.#send = send
    this.#lost = lost
    // Spread: after a restart thousands of sessions begin in the same second.
    if (times) this.#after(times.every_ms * (0.5 + Math.random() / 2), () => this.#ask(times))
  }

  heard(): void {
    this.#heard = true
  }

  measure(): Promise<number> {
    this.#measures ??= new Map()
    if (this.#measures.size >= mostMeasures)
      return Promise.reject(new StreamRefused('Too many pings are under way.'))
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const id = this.#id()
    this.#measures.set(id, { sent: performance.now(), resolve, reject })
    this.#send(id)
    return promise
  }

  /** False for an answer to what was not asked. */
  answered(id: number): boolean {
    const measure = this.#measures?.get(id)
    if (measure) {
      this.#measures?.delete(id)
      measure.resolve(performance.now() - measure.sent)
      return true
    }
    if (id !== this.#awaited) return false
    this.#awaited = undefined
    return true
  }

  end(error: Error): void {
    clearTimeout(this.#timer)
    for (const measure of this.#measures?.values() ?? []) measure.reject(error)
    this.#measures = undefined
  }

  #id(): number {
    const id = this.#nextId
    this.#nextId = (id + 1) >>> 0
    return id
  }

  #ask(times: PingTimes): void {
    this.#awaited = this.#id()
    this.#heard = false
    // The timer first: sending can end the session, which ends the timer.
    this.#after(times.timeout_ms, () => this.#check(times))
    this.#send(this.#awaited)
  }

  #check(times: PingTimes): void {
    if (!this.#heard) return this.#lost(new ConnectionLost('The peer did not answer a ping.'))
    if (this.#awaited === undefined)
      return this.#after(Math.max(0, times.every_ms - times.timeout_ms), () => this.#ask(times))
    this.#heard = false
    this.#after(times.timeout_ms, () => this.#check(times))
  }

  #after(delay_ms: number, act: () => void): void {
    this.#timer = setTimeout(act, delay_ms)
    this.#timer.unref()
  }
}

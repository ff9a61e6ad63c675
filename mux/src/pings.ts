// Pings of one session: those that measure the round trip, and those that tell whether the peer is still
// there. A peer is gone when it has said nothing at all for the time limit after a ping: an answer can be
// late because it stands behind many bytes, but then the bytes come. There is one timer, and none without
// `PingTimes`, which may change while the session lives. Each answer tells how long the connection was idle
// before its ping, so that the caller learns what the path bears.
import { ConnectionLost, StreamRefused } from './errors.ts'

/** How often to ping, and how long a peer may be silent after a ping. */
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
  /** Undefined: no pings. */
  #times: PingTimes | undefined
  #nextId = 0
  /** Round trips under measurement, by id. */
  #measures: Map<number, Measure> | undefined
  /** The id of the ping that checks the peer, until it is answered. */
  #awaited: number | undefined
  /** Something came since then. */
  #heard = false
  /** The timer runs until the next ping, not until the limit of the last one. */
  #pausing = false
  #timer: NodeJS.Timeout | undefined
  /** When something last came or left, without the pings that check the peer. */
  #active_at = performance.now()
  /** How long the connection was idle when the last of these pings was sent. */
  #idle_ms = 0

  constructor(send: (id: number) => void, lost: (error: Error) => void, times: PingTimes | undefined) {
    this.#send = send
    this.#lost = lost
    this.#times = times
    // Spread: after a restart thousands of sessions begin in the same second.
    if (times) this.#pause(times.every_ms * (0.5 + Math.random() / 2))
  }

  heard(): void {
    this.#heard = true
    if (this.#times) this.#active_at = performance.now()
  }

  sent(): void {
    if (this.#times) this.#active_at = performance.now()
  }

  /** Changes the times. A ping in flight keeps its time limit. */
  pace(times: PingTimes): void {
    const before = this.#times
    this.#times = times
    if (before && !this.#pausing) return
    if (before?.every_ms !== times.every_ms) this.#pause(times.every_ms)
  }

  /** How long nothing has come or left; with a ping in flight, how long that was before it. */
  get idle_ms(): number {
    return this.#awaited === undefined ? performance.now() - this.#active_at : this.#idle_ms
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

  /** How long the connection was idle before the answered ping; undefined: no such ping was sent. */
  answered(id: number): number | undefined {
    const measure = this.#measures?.get(id)
    if (measure) {
      this.#measures?.delete(id)
      measure.resolve(performance.now() - measure.sent)
      return 0
    }
    if (id !== this.#awaited) return undefined
    this.#awaited = undefined
    return this.#idle_ms
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

  #pause(delay_ms: number): void {
    this.#after(delay_ms, () => this.#ask())
    this.#pausing = true
  }

  #ask(): void {
    if (!this.#times) return
    this.#idle_ms = performance.now() - this.#active_at
    this.#awaited = this.#id()
    this.#heard = false
    // The timer first: sending can end the session, which ends the timer.
    this.#after(this.#times.timeout_ms, () => this.#check())
    this.#send(this.#awaited)
  }

  #check(): void {
    if (!this.#times) return
    if (!this.#heard)
      return this.#lost(new ConnectionLost('The peer did not answer a ping.', { silent: true }))
    const { every_ms, timeout_ms } = this.#times
    if (this.#awaited === undefined) return this.#pause(Math.max(0, every_ms - timeout_ms))
    this.#heard = false
    this.#after(timeout_ms, () => this.#check())
  }

  #after(delay_ms: number, act: () => void): void {
    this.#pausing = false
    clearTimeout(this.#timer)
    this.#timer = setTimeout(act, delay_ms)
    this.#timer.unref()
  }
}

// Pings of one session: those that are asked for, to measure the way, and those that tell whether the peer is
// still there. A peer is gone when it has said nothing at all for the time limit after a ping: an answer can
// be late because it stands behind many bytes, but then the bytes come. One timer, and none when nobody is to
// be watched.
import { performance } from 'node:perf_hooks'
import { CarrierLost, StreamRefused } from './errors.ts'

export interface Watch {
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
  #measures: Map<number, Measure> | undefined
  #watched: number | undefined
  #heard = false
  #timer: NodeJS.Timeout | undefined

  constructor(send: (id: number) => void, lost: (error: Error) => void, watch: Watch | undefined) {
    this.#send = send
    this.#lost = lost
    // Spread: after a restart thousands of sessions begin in the same second.
    if (watch) this.#after(watch.every_ms * (0.5 + Math.random() / 2), () => this.#ask(watch))
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
    if (id !== this.#watched) return false
    this.#watched = undefined
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

  #ask(watch: Watch): void {
    this.#watched = this.#id()
    this.#heard = false
    // The timer first: sending can end the session, which ends the timer.
    this.#after(watch.timeout_ms, () => this.#check(watch))
    this.#send(this.#watched)
  }

  #check(watch: Watch): void {
    if (!this.#heard) return this.#lost(new CarrierLost('The peer did not answer a ping.'))
    if (this.#watched === undefined)
      return this.#after(Math.max(0, watch.every_ms - watch.timeout_ms), () => this.#ask(watch))
    this.#heard = false
    this.#after(watch.timeout_ms, () => this.#check(watch))
  }

  #after(delay_ms: number, act: () => void): void {
    this.#timer = setTimeout(act, delay_ms)
    this.#timer.unref()
  }
}

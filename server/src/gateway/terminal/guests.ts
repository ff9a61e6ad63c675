// The lines of a shared terminal about guests who come and go. Those who supervise come and go without a word; a guest
// does not. All windows of a guest are one, and a guest who is back in a moment, or comes all the time, has not left.
import { limiter } from '../../kit/limiter.ts'

/** A guest who returns within this time only lost their connection. */
const left_ms = 3_000
/**
 * Guests who come more often are reported as gone only after the longer time, so that they do not fill the
 * terminal with lines.
 */
const visitsOfGuest = { max: 3, window_ms: 600_000 }
const restless_ms = 600_000

export class Guests {
  readonly #line: (sentence: string) => void
  readonly #visits = limiter(performance, visitsOfGuest)
  /** Guests who were announced, with a timer when they may have left. */
  readonly #guests = new Map<string, { readonly isRestless: boolean; timer?: NodeJS.Timeout }>()

  constructor(line: (sentence: string) => void) {
    this.#line = line
  }

  arrived(id: string, name: string): void {
    const known = this.#guests.get(id)
    if (known) return clearTimeout(known.timer)
    this.#guests.set(id, { isRestless: this.#visits.take(id) > 0 })
    this.#line(`${name} watches`)
  }

  /** The last window of a guest is closed; `isTold`: everybody has read that they left. */
  left(id: string, name: string, isTold: boolean): void {
    const guest = this.#guests.get(id)
    if (!guest) return
    const { isRestless } = guest
    if (isTold && !isRestless) return void this.#guests.delete(id)
    guest.timer = setTimeout(
      () => {
        this.#guests.delete(id)
        if (!isTold) this.#line(`${name} has left`)
      },
      isRestless ? restless_ms : left_ms,
    ).unref()
  }

  forget(): void {
    for (const { timer } of this.#guests.values()) clearTimeout(timer)
    this.#guests.clear()
  }
}

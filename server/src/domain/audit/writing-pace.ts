// Limits how much of the audit log one user may write: beyond an hourly limit, the user's sign-ins take
// turns.
import { callLimits } from '@hawser/contract/limits'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { second_ms, type Clock } from '../../kit/clock.ts'
import { limiter } from '../../kit/limiter.ts'

export interface Writer {
  /** Bytes are counted together for a user and all API keys that the user has created. */
  readonly person: string
  /** The sign-in, which takes turns beyond the limit; empty: all API keys of the user together. */
  readonly turn: string
}

/**
 * Bytes per second beyond `callLimits.changes` (about 100,000 ordinary changes). Each sign-in has its own
 * turns, so that a thief with another sign-in takes none of the owner's; those who take turns share the
 * bytes.
 */
const slow_bytes = 16 * 1024
/** Others take turns with the API keys. */
const mostTurns = 8
const mostRemembered = 10_000

export function writingPace(clock: Clock) {
  const written_bytes = limiter(clock, callLimits.changes)
  /** When each turn of a user over the limit may make the next change. */
  const slow = new BoundedMap<string, Map<string, number>>(mostRemembered)

  const hasWrittenTooMuch = (writer: Writer | undefined): boolean =>
    writer !== undefined && written_bytes.peek(writer.person) > 0

  function turnsOf({ person, turn }: Writer): { turns: Map<string, number>; own: string } {
    const turns = slow.get(person) ?? new Map<string, number>()
    for (const [one, until] of turns) if (until <= clock.now()) turns.delete(one)
    return { turns, own: turns.has(turn) || turns.size < mostTurns ? turn : '' }
  }

  /** Returns seconds to wait; 0: the change passes. */
  function takeTurn(writer: Writer): number {
    const { turns, own } = turnsOf(writer)
    const left_ms = (turns.get(own) ?? 0) - clock.now()
    if (left_ms > 0) return Math.ceil(left_ms / second_ms)
    slow.set(writer.person, turns.set(own, clock.now() + second_ms))
    return 0
  }

  function count(writer: Writer, bytes: number): void {
    written_bytes.add(writer.person, bytes)
    if (!hasWrittenTooMuch(writer)) return
    const { turns, own } = turnsOf(writer)
    const shared_by = turns.size + (turns.has(own) ? 0 : 1)
    const wait_ms = second_ms * Math.max(1, (bytes * shared_by) / slow_bytes)
    // A small entry must not end the wait that a large one began.
    const until = Math.max(turns.get(own) ?? 0, clock.now() + wait_ms)
    slow.set(writer.person, turns.set(own, until))
  }

  return { hasWrittenTooMuch, takeTurn, count }
}

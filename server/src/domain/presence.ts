// Who is there. Heartbeats come tens of thousands a second, so presence lives here in memory and is written in batches:
// coming and going at once, the time of the last sign in turn, at most `batch` devices a second or a 300th of those that
// wait, whichever is more. Answers read memory first, so they are never behind; lists order by what was written.
// A device is online for two minutes after its last sign.
import { iso, type Clock } from '../kit/clock.ts'
import type { PresenceRow } from '../storage/presence.ts'
import type { Stores } from '../storage/stores.ts'

export const online_ms = 120_000
const flush_every_ms = 1000
const batch = 1000
const longest_lag_s = 300

interface Sign {
  last_seen: number
  online: boolean
}

export interface Presence extends AsyncDisposable {
  /** Takes over what was written before a restart, oldest sign first, so that it runs out like any other. */
  adopt(rows: readonly { uid: string; last_seen: string }[]): void
  /** A sign of life. */
  seen(uid: string): void
  /** Gone, until the next sign; written before this resolves. */
  offline(uid: string): Promise<void>
  /** The present truth about a stored device. */
  of(row: { uid: string; last_seen: string; online: 0 | 1 }): { last_seen: string; online: boolean }
  /** The device was deleted. */
  forget(uid: string): void
  /** Writes what waits, if that is little: a list asked for right after a sign should show it in order. */
  settle(): Promise<void>
}

export function presence({ stores, clock, onError }: { stores: Stores; clock: Clock; onError: (error: unknown) => void }): Presence {
  // In the order of their last sign: re-inserting moves a device to the end, so the stale ones are at the front.
  const signs = new Map<string, Sign>()
  // Those whose coming or going is not written yet go first; the others are merely late.
  const urgent = new Set<string>()
  const late = new Set<string>()
  let writing = Promise.resolve()

  /** Marks those whose last sign is too old as gone, and drops them once that is written. */
  function expire(now: number): void {
    for (const [uid, sign] of signs) {
      if (sign.last_seen > now - online_ms) break
      if (sign.online) {
        sign.online = false
        urgent.add(uid)
      } else if (!urgent.has(uid) && !late.has(uid)) signs.delete(uid)
    }
  }

  function take(from: Set<string>, most: number): PresenceRow[] {
    const rows: PresenceRow[] = []
    for (const uid of from) {
      if (rows.length >= most) break
      from.delete(uid)
      const sign = signs.get(uid)
      if (sign) rows.push({ uid, last_seen: iso(sign.last_seen), online: sign.online })
    }
    return rows
  }

  async function write(rows: PresenceRow[]): Promise<void> {
    try {
      for (let start = 0; start < rows.length; start += batch) await stores.presence.write(rows.slice(start, start + batch))
    } catch (error) {
      // Nothing is lost: they wait for the next turn.
      for (const row of rows) if (signs.has(row.uid)) late.add(row.uid)
      onError(error)
    }
  }

  function flush(most = Math.max(batch, Math.ceil(late.size / longest_lag_s))): Promise<void> {
    writing = writing.then(() => {
      const rows = take(urgent, Infinity)
      for (const row of rows) late.delete(row.uid)
      return write([...rows, ...take(late, most)])
    })
    return writing
  }

  const timer = setInterval(() => {
    expire(clock.now())
    if (urgent.size + late.size > 0) void flush()
  }, flush_every_ms)
  timer.unref()

  return {
    adopt(rows) {
      for (const { uid, last_seen } of rows) if (!signs.has(uid)) signs.set(uid, { last_seen: Date.parse(last_seen), online: true })
    },
    seen(uid) {
      const known = signs.get(uid)
      const now = clock.now()
      if (known) {
        signs.delete(uid)
        if (!known.online) urgent.add(uid)
        else late.add(uid)
        known.last_seen = now
        known.online = true
        signs.set(uid, known)
      } else {
        signs.set(uid, { last_seen: now, online: true })
        urgent.add(uid)
      }
    },
    async offline(uid) {
      const sign = signs.get(uid)
      const last_seen = sign?.last_seen
      if (sign) sign.online = false
      urgent.delete(uid)
      late.delete(uid)
      await writing
      if (last_seen === undefined) await stores.presence.markOffline(uid)
      else await stores.presence.write([{ uid, last_seen: iso(last_seen), online: false }])
    },
    of(row) {
      const sign = signs.get(row.uid)
      return sign
        ? { last_seen: iso(sign.last_seen), online: sign.online }
        : { last_seen: row.last_seen, online: row.online === 1 && Date.parse(row.last_seen) > clock.now() - online_ms }
    },
    forget(uid) {
      signs.delete(uid)
      urgent.delete(uid)
      late.delete(uid)
    },
    async settle() {
      if (urgent.size + late.size > 0 && late.size <= batch) await flush()
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await flush(Infinity)
    },
  }
}

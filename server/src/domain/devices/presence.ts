// Who is there. Heartbeats come tens of thousands a second, so presence lives here in memory and is written
// in batches: coming and going at once, the time of the last sign in turn, at most `batch` devices a second
// or a 300th of those that wait, whichever is more. Answers read memory first, so they are never behind;
// lists order by what was written. A device is online for two minutes after its last sign. With several nodes
// a device belongs to the one that has its tunnel. Only that one's memory counts then, and what the others
// know is what was written: coming and going is written within a second. Signs by calls may come to any node.
import type { Bus } from '../../bus/bus.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import type { PresenceRow } from '../../storage/presence.ts'
import type { Stores } from '../../storage/stores.ts'

export const online_ms = 120_000
const flush_every_ms = 1000
const batch = 1000
const longest_lag_s = 300

interface Sign {
  last_seen: number
  online: boolean
  /** There is a tunnel, here. */
  tunnel: boolean
  /** Its number among all nodes; 0 when there are no others. */
  number: number
}

export interface Presence extends AsyncDisposable {
  /** Takes over what was written before a restart, oldest sign first, so that it runs out like any other. */
  adopt(rows: readonly { uid: string; last_seen: string }[]): void
  /** A sign of life. */
  seen(uid: string): void
  /** A sign through the device's tunnel of this number; 0 when there are no other nodes. */
  up(uid: string, number: number): void
  /** The tunnel is gone, and with it the device until its next sign; written before this resolves. */
  down(uid: string, number: number): Promise<void>
  /** Gone, until the next sign; written before this resolves. */
  offline(uid: string): Promise<void>
  /** The present truth about a stored device. */
  of(row: { uid: string; last_seen: string; online: 0 | 1; node: string }): {
    last_seen: string
    online: boolean
  }
  /** The device was deleted, or is another node's now. */
  forget(uid: string): void
  /** Writes again who is here by a tunnel: it was written that they are gone. */
  revive(): Promise<void>
  /** Writes what waits, if that is little: a list asked for right after a sign should show it in order. */
  settle(): Promise<void>
}

export interface PresenceParts {
  stores: Stores
  clock: Clock
  bus: Bus
  /** Empty when there are no others. */
  node: string
  onError: (error: unknown) => void
}

export function presence({ stores, clock, bus, node, onError }: PresenceParts): Presence {
  // In the order of their last sign: re-inserting moves a device to the end, so the stale ones are at the
  // front.
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
      if (sign) rows.push({ ...sign, uid, last_seen: iso(sign.last_seen) })
    }
    return rows
  }

  async function write(rows: PresenceRow[]): Promise<void> {
    try {
      for (let start = 0; start < rows.length; start += batch)
        await stores.presence.write(rows.slice(start, start + batch), node)
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

  function note(uid: string, tunnel: boolean, number = 0): void {
    const known = signs.get(uid)
    const now = clock.now()
    if (known) {
      signs.delete(uid)
      if (!known.online || (tunnel && !known.tunnel)) urgent.add(uid)
      else late.add(uid)
      known.last_seen = now
      known.online = true
      known.tunnel ||= tunnel
      known.number = number || known.number
      signs.set(uid, known)
    } else {
      signs.set(uid, { last_seen: now, online: true, tunnel, number })
      urgent.add(uid)
    }
  }

  /** What we knew by heart of a device whose tunnel went elsewhere is of no use any more. */
  const ear = bus.hear('device.offline', ({ node: from, uid }) => {
    if (from !== node && signs.get(uid)?.tunnel === false) signs.delete(uid)
  })

  /** Gone in memory, at once; resolves with its last sign when nothing is being written any more. */
  async function leave(uid: string): Promise<string | undefined> {
    const sign = signs.get(uid)
    urgent.delete(uid)
    late.delete(uid)
    if (sign) Object.assign(sign, { online: false, tunnel: false })
    const last_seen = sign && iso(sign.last_seen)
    await writing
    return last_seen
  }

  function forget(uid: string): void {
    signs.delete(uid)
    urgent.delete(uid)
    late.delete(uid)
  }

  const timer = setInterval(() => {
    expire(clock.now())
    if (urgent.size + late.size > 0) void flush()
  }, flush_every_ms)
  timer.unref()

  return {
    adopt(rows) {
      for (const { uid, last_seen } of rows)
        if (!signs.has(uid))
          signs.set(uid, { last_seen: Date.parse(last_seen), online: true, tunnel: false, number: 0 })
    },
    seen: (uid) => note(uid, false),
    up: (uid, number) => note(uid, true, number),
    async down(uid, number) {
      const last_seen = await leave(uid)
      await stores.presence.write(
        [{ uid, last_seen: last_seen ?? iso(clock.now()), online: false, tunnel: true, number }],
        node,
      )
      bus.tell('device.offline', { node, uid })
    },
    async offline(uid) {
      await stores.presence.markOffline(uid, await leave(uid))
      bus.tell('device.offline', { node, uid })
    },
    of(row) {
      const sign = signs.get(row.uid)
      const ours = sign && (sign.tunnel || row.node === '' || row.node === node)
      if (ours) return { last_seen: iso(sign.last_seen), online: sign.online }
      // Of what other nodes have, the flag is true; only the time may lag behind.
      const fresh = node !== '' || Date.parse(row.last_seen) > clock.now() - online_ms
      return { last_seen: row.last_seen, online: row.online === 1 && fresh }
    },
    forget,
    async revive() {
      for (const [uid, sign] of signs) if (sign.tunnel) urgent.add(uid)
      await flush()
    },
    async settle() {
      if (urgent.size + late.size > 0 && late.size <= batch) await flush()
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      ear[Symbol.dispose]()
      await flush(Infinity)
    },
  }
}

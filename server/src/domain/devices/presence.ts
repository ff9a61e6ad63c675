// Which devices are online. Tens of thousands of heartbeats arrive in a second, so presence lives in memory
// and is written in batches: a change of online at once, `last_seen` in turn, at most `batch` devices a
// second or a 300th of those that wait, whichever is more. Answers read memory first, so they are never
// behind; lists sort by what was written. A device is online while it has a tunnel, whose own end notices
// when it falls silent, and otherwise for two minutes after its last heartbeat. While it has a tunnel,
// `last_seen` follows the clock, because its pings may be minutes apart; when the tunnel is lost, the time of
// the last ping counts. With several nodes a device belongs to the one that has its tunnel. Then only that
// node's memory counts, and the others know what was written; a change of online is written within a second.
// Heartbeats by HTTP calls may arrive at any node.
import type { Bus } from '../../bus/bus.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import type { PresenceRow } from '../../storage/presence.ts'
import type { Stores } from '../../storage/stores.ts'

export const online_ms = 120_000
/** `last_seen` of a device with a tunnel is never older. */
const refresh_ms = 90_000
const flush_every_ms = 1000
const batch = 1000
const longest_lag_s = 300

interface Heartbeat {
  last_seen: number
  /** When the device itself was last heard. */
  heard_at: number
  online: boolean
  /** Whether this node has the device's tunnel. */
  tunnel: boolean
  /** The tunnel's number among all nodes; 0 when there are no others. */
  number: number
}

export interface Presence extends AsyncDisposable {
  /** Takes over what was written before a restart, oldest first, so that it expires like any other entry. */
  adopt(rows: readonly { uid: string; last_seen: string }[]): void
  /** A heartbeat by a call. */
  seen(uid: string): void
  /** A heartbeat through the device's tunnel of this number; 0 when there are no other nodes. */
  up(uid: string, number: number): void
  /** The tunnel closed: the device is offline until its next heartbeat. Written before this resolves. */
  down(uid: string, number: number): Promise<void>
  /** The device is offline until its next heartbeat. Written before this resolves. */
  offline(uid: string): Promise<void>
  /** The present state of a stored device. */
  of(row: { uid: string; last_seen: string; online: 0 | 1; node: string }): {
    last_seen: string
    online: boolean
  }
  /** When this node last heard the device itself, in milliseconds since 1970; undefined: it does not know. */
  heardAt(uid: string): number | undefined
  /** Drops a device that was deleted, or whose tunnel another node has now. */
  forget(uid: string): void
  /** Writes all devices with a tunnel here as online, after another node wrote them as offline. */
  revive(): Promise<void>
  /** Writes what waits, if that is little: a list right after a heartbeat should have the right order. */
  settle(): Promise<void>
}

export interface PresenceParts {
  stores: Stores
  clock: Clock
  bus: Bus
  /** The id of this node; empty when there are no others. */
  node: string
  onError: (error: unknown) => void
}

export function presence({ stores, clock, bus, node, onError }: PresenceParts): Presence {
  /**
   * In the order of the last heartbeat: inserting again moves a device to the end, so stale ones come first.
   */
  const heartbeats = new Map<string, Heartbeat>()
  /** Devices whose change of online is not written yet; they are written first. */
  const urgent = new Set<string>()
  /** Devices of which only `last_seen` is not written yet. */
  const late = new Set<string>()
  let writing = Promise.resolve()

  /**
   * Marks devices as offline whose last heartbeat is too old, and drops them once that is written. Those with
   * a tunnel are seen as long as they have it.
   */
  function expire(now: number): void {
    for (const [uid, heartbeat] of heartbeats) {
      if (heartbeat.last_seen > now - refresh_ms) break
      if (heartbeat.tunnel && heartbeat.online) {
        heartbeats.delete(uid)
        heartbeats.set(uid, heartbeat)
        heartbeat.last_seen = now
        late.add(uid)
      } else if (heartbeat.last_seen > now - online_ms) continue
      else if (heartbeat.online) {
        heartbeat.online = false
        urgent.add(uid)
      } else if (!urgent.has(uid) && !late.has(uid)) heartbeats.delete(uid)
    }
  }

  function take(from: Set<string>, most: number): PresenceRow[] {
    const rows: PresenceRow[] = []
    for (const uid of from) {
      if (rows.length >= most) break
      from.delete(uid)
      const heartbeat = heartbeats.get(uid)
      if (heartbeat) rows.push({ ...heartbeat, uid, last_seen: iso(heartbeat.last_seen) })
    }
    return rows
  }

  async function write(rows: PresenceRow[]): Promise<void> {
    try {
      for (let start = 0; start < rows.length; start += batch)
        await stores.presence.write(rows.slice(start, start + batch), node)
    } catch (error) {
      // Nothing is lost: the rows wait for the next flush.
      for (const row of rows) if (heartbeats.has(row.uid)) late.add(row.uid)
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
    const known = heartbeats.get(uid)
    const now = clock.now()
    if (known) {
      heartbeats.delete(uid)
      if (!known.online || (tunnel && !known.tunnel)) urgent.add(uid)
      else late.add(uid)
      known.last_seen = now
      known.heard_at = now
      known.online = true
      known.tunnel ||= tunnel
      known.number = number || known.number
      heartbeats.set(uid, known)
    } else {
      heartbeats.set(uid, { last_seen: now, heard_at: now, online: true, tunnel, number })
      urgent.add(uid)
    }
  }

  // A device that went offline on another node has no tunnel here: what this node remembers is out of date.
  const subscription = bus.hear('device.offline', ({ node: from, uid }) => {
    if (from !== node && heartbeats.get(uid)?.tunnel === false) heartbeats.delete(uid)
  })

  /**
   * Marks a device as offline in memory at once; resolves with its `last_seen` when running writes are done.
   */
  async function leave(uid: string): Promise<string | undefined> {
    const heartbeat = heartbeats.get(uid)
    urgent.delete(uid)
    late.delete(uid)
    if (heartbeat) Object.assign(heartbeat, { online: false, tunnel: false, last_seen: heartbeat.heard_at })
    const last_seen = heartbeat && iso(heartbeat.last_seen)
    await writing
    return last_seen
  }

  function forget(uid: string): void {
    heartbeats.delete(uid)
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
      for (const { uid, last_seen } of rows) {
        if (heartbeats.has(uid)) continue
        const heard_at = Date.parse(last_seen)
        heartbeats.set(uid, { last_seen: heard_at, heard_at, online: true, tunnel: false, number: 0 })
      }
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
      const heartbeat = heartbeats.get(row.uid)
      const ours = heartbeat && (heartbeat.tunnel || row.node === '' || row.node === node)
      if (ours) return { last_seen: iso(heartbeat.last_seen), online: heartbeat.online }
      // For a device of another node the written `online` is right; only `last_seen` may lag behind.
      const fresh = node !== '' || Date.parse(row.last_seen) > clock.now() - online_ms
      return { last_seen: row.last_seen, online: row.online === 1 && fresh }
    },
    heardAt: (uid) => heartbeats.get(uid)?.heard_at,
    forget,
    async revive() {
      for (const [uid, heartbeat] of heartbeats) if (heartbeat.tunnel) urgent.add(uid)
      await flush()
    },
    async settle() {
      if (urgent.size + late.size > 0 && late.size <= batch) await flush()
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      subscription[Symbol.dispose]()
      await flush(Infinity)
    },
  }
}

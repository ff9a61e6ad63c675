// Which devices are online. Tens of thousands of heartbeats arrive in a second, so presence lives in memory
// and is written in batches: a change of online at once, `last_seen` in turn, at most `batch` devices a
// second or a 300th of those that wait, whichever is more. Answers read memory first, so they are never
// behind; lists sort by what was written. A device is online while it has a tunnel, whose own end notices
// when it falls silent, and otherwise for two minutes after its last heartbeat. While it has a tunnel,
// `last_seen` follows the clock, because its pings may be minutes apart; when the tunnel is lost, the time of
// the last ping counts. With several nodes a device belongs to the one that has its tunnel. Then only that
// node's memory counts, and the others know what was written; a change of online is written within a second.
// A write that fails is tried again every second until it succeeds; going offline is then still written before
// whatever came after it. Heartbeats by HTTP calls may arrive at any node.
import { iso } from '../../kit/clock.ts'
import { WriteTurns, type WriteReport } from '../../kit/write-behind.ts'
import type { PresenceRow } from '../../storage/presence.ts'
import type { With } from '../audit/parts.ts'

export const online_ms = 120_000
const refresh_ms = 90_000
const flush_every_ms = 1000
const batch = 1000
const longest_lag_s = 300

interface Heartbeat {
  last_seen: number
  heard_at: number
  online: boolean
  tunnel: boolean
  /** 0 when there are no other nodes. */
  number: number
}

export interface Presence extends AsyncDisposable {
  /** Takes over what was written before a restart, oldest first, so that it expires like any other entry. */
  adopt(rows: readonly { uid: string; last_seen: string }[]): void
  /** A heartbeat by a call. */
  seen(uid: string): void
  /** A heartbeat through the tunnel of this number; 0 when there are no other nodes. */
  up(uid: string, number: number): void
  /**
   * The tunnel closed: the device is offline until its next heartbeat. Resolves after the first attempt to
   * write that; others follow until it is written.
   */
  down(uid: string, number: number): Promise<void>
  /** The device is offline until its next heartbeat. Resolves once that is written, or throws. */
  offline(uid: string): Promise<void>
  of(row: { uid: string; last_seen: string; online: 0 | 1; node: string }): {
    last_seen: string
    online: boolean
  }
  /** In milliseconds since 1970, by this node; undefined: unknown. */
  heardAt(uid: string): number | undefined
  /** For a device that was deleted, or whose tunnel another node has. */
  forget(uid: string): void
  /** Writes all devices with a tunnel here as online, after another node wrote them as offline. */
  revive(): Promise<void>
  /** Writes what waits, if that is little: a list right after a heartbeat should have the right order. */
  settle(): Promise<void>
}

export interface PresenceParts
  extends Pick<WriteReport, 'onError' | 'onRecovered'>, With<'stores' | 'clock' | 'bus'> {
  /** The id of this node; empty when there are no others. */
  node: string
}

/** Changes to write, in the order in which they must be: departures, changes of online, `last_seen`. */
interface Unwritten extends AsyncDisposable {
  readonly departures: Map<string, PresenceRow>
  readonly urgent: Set<string>
  readonly late: Set<string>
  readonly size: number
  has(uid: string): boolean
  drop(uid: string): void
  /** Runs writes one after the other, in the order in which they were decided. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** Attempts to write what waits, with at most `most` of `late`. Callers share a turn. */
  flush(most?: number): Promise<void>
}

function unwritten(
  { stores, bus, node, ...report }: PresenceParts,
  heartbeats: ReadonlyMap<string, Heartbeat>,
): Unwritten {
  const departures = new Map<string, PresenceRow>()
  const urgent = new Set<string>()
  const late = new Set<string>()
  let mostLate: number | undefined
  const turns = new WriteTurns({
    delay_ms: flush_every_ms,
    // Whether devices are shown as online depends on it.
    longestPause_ms: flush_every_ms,
    ...report,
    write: turn,
  })
  const usualMost = (): number => Math.max(batch, Math.ceil(late.size / longest_lag_s))

  async function write(rows: PresenceRow[]): Promise<void> {
    for (let start = 0; start < rows.length; start += batch)
      await stores.presence.write(rows.slice(start, start + batch), node)
  }

  async function writeDepartures(): Promise<void> {
    const rows = [...departures.values()]
    await write(rows)
    for (const row of rows) {
      if (departures.get(row.uid) === row) departures.delete(row.uid)
      if (row.tunnel) bus.tell('device.offline', { node, uid: row.uid })
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

  async function writeFrom(waiting: Set<string>, most: number): Promise<void> {
    const rows = take(waiting, most)
    try {
      await write(rows)
    } catch (error) {
      for (const { uid } of rows) if (heartbeats.has(uid)) waiting.add(uid)
      throw error
    }
  }

  async function turn(): Promise<boolean> {
    const most = mostLate ?? usualMost()
    mostLate = undefined
    await writeDepartures()
    for (const uid of urgent) late.delete(uid)
    await writeFrom(urgent, Infinity)
    await writeFrom(late, most)
    // The ticks of presence make further turns.
    return false
  }

  return {
    departures,
    urgent,
    late,
    get size() {
      return departures.size + urgent.size + late.size
    },
    has: (uid) => departures.has(uid) || urgent.has(uid) || late.has(uid),
    drop(uid) {
      departures.delete(uid)
      urgent.delete(uid)
      late.delete(uid)
    },
    inTurn: (work) => turns.inTurn(work),
    flush(most = usualMost()) {
      mostLate = Math.max(mostLate ?? 0, most)
      return turns.run()
    },
    [Symbol.asyncDispose]() {
      mostLate = Infinity
      return turns.close()
    },
  }
}

/**
 * Marks devices as offline whose last heartbeat is too old, and drops them once that is written. Those with a
 * tunnel do not expire.
 */
function expire(now: number, heartbeats: Map<string, Heartbeat>, waiting: Unwritten): void {
  for (const [uid, heartbeat] of heartbeats) {
    if (heartbeat.last_seen > now - refresh_ms) break
    if (heartbeat.tunnel && heartbeat.online) {
      heartbeats.delete(uid)
      heartbeats.set(uid, heartbeat)
      heartbeat.last_seen = now
      waiting.late.add(uid)
    } else if (heartbeat.last_seen > now - online_ms) continue
    else if (heartbeat.online) {
      heartbeat.online = false
      waiting.urgent.add(uid)
    } else if (!waiting.has(uid)) heartbeats.delete(uid)
  }
}

export function presence(parts: PresenceParts): Presence {
  const { stores, clock, bus, node } = parts
  /**
   * In the order of the last heartbeat: inserting again moves a device to the end, so stale ones come first.
   */
  const heartbeats = new Map<string, Heartbeat>()
  const waiting = unwritten(parts, heartbeats)
  const { departures, urgent, late, flush } = waiting

  function note(uid: string, tunnel: boolean, number = 0): void {
    const known = heartbeats.get(uid)
    const now = clock.now()
    if (tunnel) departures.delete(uid)
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

  // A device that went offline on another node has no tunnel here: this node's memory, and what it may be
  // writing now, are out of date.
  const subscription = bus.hear('device.offline', ({ node: from, uid }) => {
    const heartbeat = heartbeats.get(uid)
    if (from === node || heartbeat?.tunnel !== false) return
    // A departure that waits here stays, and what came to this node after it is out of date all the same.
    if (departures.has(uid)) leave(uid)
    else {
      forget(uid)
      departures.set(uid, { uid, last_seen: iso(heartbeat.last_seen), online: false })
    }
  })

  /** Returns the last heartbeat. */
  function leave(uid: string): Heartbeat | undefined {
    const heartbeat = heartbeats.get(uid)
    urgent.delete(uid)
    late.delete(uid)
    if (heartbeat) Object.assign(heartbeat, { online: false, tunnel: false, last_seen: heartbeat.heard_at })
    return heartbeat
  }

  function forget(uid: string): void {
    heartbeats.delete(uid)
    waiting.drop(uid)
  }

  const timer = setInterval(() => {
    expire(clock.now(), heartbeats, waiting)
    if (waiting.size > 0) void flush()
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
    down(uid, number) {
      const now = clock.now()
      const gone = { last_seen: now, heard_at: now, online: false, tunnel: false, number }
      const { last_seen } = leave(uid) ?? gone
      // While nothing is written, this node answers from memory.
      if (!heartbeats.has(uid)) heartbeats.set(uid, gone)
      departures.set(uid, { uid, last_seen: iso(last_seen), online: false, tunnel: true, number })
      return flush(0)
    },
    async offline(uid) {
      const last = leave(uid)
      try {
        await waiting.inTurn(() => stores.presence.markOffline(uid, last && iso(last.heard_at)))
      } catch (error) {
        // A later turn writes it, unless the device is heard again or has a tunnel.
        if (last && heartbeats.get(uid) === last && !last.online) urgent.add(uid)
        throw error
      }
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
      if (waiting.size > 0 && late.size <= batch) await flush()
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      subscription[Symbol.dispose]()
      await waiting[Symbol.asyncDispose]()
    },
  }
}

// Restores sessions after the loss of a server. Their agents report the detached terminals; each is then
// taken over (take-over.ts) and held. After a restart all devices come together, so few are restored at the
// same time, and namespaces take turns. Failures are retried, after a longer pause each time.
import { sessionLimits } from '@hawser/contract/limits'
import type { SessionPerson } from '@hawser/contract/sessions'
import type { Logins } from '../../domain/access/logins.ts'
import type { DetachedSession, DetachedSessions } from '../../domain/sessions/detached-sessions.ts'
import type { SessionLogin, OpenSession } from '../../domain/sessions/revocation.ts'
import { concurrencyByKey } from '../../kit/concurrency.ts'
import { limiter } from '../../kit/limiter.ts'
import type { TunnelDevice } from '../../tunnel/tunnel.ts'
import { anybody, identityOf, type Claim, type HeldSessions } from './held.ts'
import type { Elsewhere } from './reattach.ts'
import { takeOver, type TakenOver, type TakeOverParts } from './take-over.ts'
import type { Reattached } from './terminal.ts'

export interface RestoreParts extends TakeOverParts {
  open: ReadonlyMap<string, OpenSession>
  held: Pick<HeldSessions, 'find'>
  logins: Pick<Logins, 'find'>
  detached: Pick<DetachedSessions, 'claim' | 'take' | 'arrived' | 'elsewhere'>
  mayBeHeld(held: SessionLogin): Promise<boolean>
  clock: { now(): number }
}

export interface Restore {
  /** The device has a new tunnel and keeps the terminals of exactly these sessions. */
  arrived(device: TunnelDevice, sessions: readonly string[]): void
  /** The device reports all terminals that wait for a gateway. */
  reported(device: TunnelDevice, sessions: readonly string[]): void
  left(device_uid: string): void
  /**
   * Resolves when the reported terminals of this device are restored, or after a short wait; undefined: there
   * are none.
   */
  pending(device_uid: string): Promise<void> | undefined
  /** Sessions of a person at other nodes, which this node can take over. */
  readonly elsewhere: Elsewhere
  stop(): void
}

/** Legs dialled at the same time. */
const dialled = { each: 4, atOnce: 16, keys: 5_000 }
/** After this time the next one begins too: one slow device must not delay the rest. */
const place_ms = 2_000
/** For each namespace, which may hold half as many sessions. */
const mostWaiting = 1_000
/** Between two tries; longer each time. */
const again_ms = 2_000
const longest_ms = 60_000
/** How long a login waits for what is being restored. */
const patience_ms = 5_000

/** The sessions that one device has reported, and the work on them. */
interface Reported {
  readonly device: TunnelDevice
  sessions: ReadonlySet<string>
  pending: Promise<unknown> | undefined
  tries: number
  retry: NodeJS.Timeout | undefined
}

const ignored = (): void => undefined

/** Takes terminals over, for restores and for people who reattach. */
function takes(
  parts: RestoreParts,
  signal: AbortSignal,
): Pick<Restore, 'elsewhere'> & {
  takeOnce(device_uid: string, uid: string, by?: Reattached): Promise<TakenOver>
} {
  const { open } = parts
  /** Sessions that are being taken over, each with its device. */
  const taking = new Map<string, Promise<unknown>>()

  /** An agent gives its terminal to the last server that asked, so this node asks once at a time. */
  async function takeOnce(device_uid: string, uid: string, by?: Reattached): Promise<TakenOver> {
    // A device may name the session of another, which must not wait for it.
    const which = `${device_uid} ${uid}`
    while (taking.has(which)) await taking.get(which)
    if (open.has(uid)) return 'held'
    const taken = parts.logins
      .find(device_uid)
      .then(async (to) => (to ? takeOver(parts, to, uid, signal, by) : 'over'))
    taking.set(
      which,
      taken.then(ignored, ignored).finally(() => taking.delete(which)),
    )
    return taken
  }

  /** Sessions that this person may take now. Among people who share a password, only held ones. */
  async function offered(claim: Claim, person: SessionPerson): Promise<DetachedSession[]> {
    const sessions = (await parts.detached.elsewhere(claim, person)).filter(
      (session) =>
        identityOf(session.person, session.fingerprint, session.key) === claim.identity &&
        (claim.identity !== anybody || session.isHeld) &&
        !open.has(session.uid),
    )
    const may = await Promise.all(
      sessions.map(async ({ uid, key, via, fingerprint, standing }) =>
        parts
          .mayBeHeld({ ...claim, person, key, via, shown: fingerprint, standing, restored: uid })
          .catch(() => false),
      ),
    )
    return sessions.filter((_, at) => may[at])
  }

  const elsewhere: Elsewhere = async (claim, person) =>
    (await offered(claim, person)).map(({ uid, started_at, isHeld }) => ({
      uid,
      started_at,
      isHeld,
      async take(by) {
        // The question may have stood for minutes: rights may have ended, and its client may be back.
        const isStill = open.has(uid) || (await offered(claim, person)).some((one) => one.uid === uid)
        const taken = isStill && (await takeOnce(claim.device_uid, uid, by))
        return taken === 'held' ? parts.held.find(uid) : undefined
      },
    }))

  return { takeOnce, elsewhere }
}

export function restore(parts: RestoreParts): Restore {
  const { open, log } = parts
  const stopping = new AbortController()
  const { signal } = stopping
  const { takeOnce, elsewhere } = takes(parts, signal)
  const places = concurrencyByKey(mostWaiting, dialled)
  const looks = limiter(parts.clock, sessionLimits.restored)
  const devices = new Map<string, Reported>()
  /** Sessions that are being restored, with the device that reported each. */
  const busy = new Set<string>()

  const isWanted = ({ device: { uid }, sessions }: Reported, session: string): boolean =>
    !signal.aborted && !open.has(session) && devices.has(uid) && sessions.has(session)

  function look(reported: Reported, uid: string): void {
    const { device } = reported
    const which = `${device.uid} ${uid}`
    if (busy.has(which)) return
    // Put off, not forgotten: the device may not report it again.
    if (looks.take(device.uid) > 0) return later(reported)
    busy.add(which)
    const done = inTurn(device, async () => !isWanted(reported, uid) || restoreOne(device, uid))
      .catch((err: unknown) => {
        const level = reported.tries > 0 ? 'debug' : 'warn'
        log[level]({ event: 'session.not-restored', session: uid, device: device.uid, err })
        return false
      })
      .then((isDone) => {
        busy.delete(which)
        if (!isDone && isWanted(reported, uid)) later(reported)
      })
    const all = Promise.all([reported.pending, done]).finally(() => {
      if (reported.pending !== all) return
      reported.pending = undefined
      // Everything was found: the next try begins with a short pause.
      if (!reported.retry) reported.tries = 0
      forget(reported)
    })
    reported.pending = all
  }

  /** The place is free again when the work is done, or after `place_ms`. */
  async function inTurn({ tenant_id }: TunnelDevice, work: () => Promise<boolean>): Promise<boolean> {
    const waiting = places.run(tenant_id, async () => {
      const working = work()
      const late = Promise.withResolvers<void>()
      const timer = setTimeout(late.resolve, place_ms)
      await Promise.race([working.catch(() => undefined), late.promise])
      clearTimeout(timer)
      return { working }
    })
    return (await waiting)?.working ?? false
  }

  function later(reported: Reported): void {
    if (reported.retry || signal.aborted) return
    const wait_ms = Math.min(longest_ms, again_ms * 2 ** reported.tries)
    reported.tries += 1
    reported.retry = setTimeout(() => {
      reported.retry = undefined
      const wanted = [...reported.sessions].filter((uid) => isWanted(reported, uid))
      if (wanted.length === 0) reported.tries = 0
      for (const uid of wanted) look(reported, uid)
      forget(reported)
    }, wait_ms).unref()
  }

  function forget({ device, sessions, pending, retry }: Reported): void {
    if (sessions.size === 0 && !pending && !retry) devices.delete(device.uid)
  }

  /** False: to be tried again. */
  async function restoreOne(device: TunnelDevice, uid: string): Promise<boolean> {
    return (await takeOnce(device.uid, uid)) !== 'elsewhere'
  }

  return {
    elsewhere,
    arrived(device, sessions) {
      const isHere = (uid: string): boolean => open.has(uid) || sessions.includes(uid)
      parts.detached
        .arrived(device, isHere)
        .catch((err: unknown) => log.warn({ event: 'session.unwritten', device: device.uid, err }))
    },
    reported(device, sessions) {
      const known = devices.get(device.uid)
      if (!known && sessions.length === 0) return
      const reported = known ?? {
        device,
        sessions: new Set(),
        pending: undefined,
        tries: 0,
        retry: undefined,
      }
      reported.sessions = new Set(sessions)
      devices.set(device.uid, reported)
      for (const uid of sessions) if (isWanted(reported, uid)) look(reported, uid)
      forget(reported)
    },
    left(device_uid) {
      const reported = devices.get(device_uid)
      if (!reported) return
      reported.sessions = new Set()
      forget(reported)
    },
    pending(device_uid) {
      const going = devices.get(device_uid)?.pending
      if (!going) return undefined
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, patience_ms)
      void going.finally(resolve)
      return promise.finally(() => clearTimeout(timer))
    },
    stop() {
      stopping.abort()
      for (const { retry } of devices.values()) clearTimeout(retry)
    },
  }
}

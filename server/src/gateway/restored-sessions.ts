// Sessions that come back after a server was lost. Their agents have kept the terminals (agent/src/kept-terminals.ts)
// and say so. This gateway then logs in to the account with a key of its own, as for a login by public key, proves
// with a secret that only the server can make that the terminal is one of its own, and has a session as if its client
// had been lost a moment ago: held, for whoever opened it. From there on everything is as for other held sessions. Its
// person logs in anew, and a person who may not come back ends it.
import { keepText, keepVariable, keptSubsystem, type KeptHead } from '@hawser/contract/tunnel'
import {
  localPair,
  Reason,
  startSession,
  writeRequest,
  type Channel,
  type Connection,
  type SessionRequest,
} from '@hawser/ssh'
import type { Logins, Reachable } from '../domain/access/logins.ts'
import type { KeptSessions, OrphanedSession } from '../domain/sessions/kept-sessions.ts'
import type { LiveSession } from '../domain/sessions/live-sessions.ts'
import { concurrencyByKey } from '../kit/concurrency.ts'
import { newUid } from '../kit/ids.ts'
import { limiter } from '../kit/limiter.ts'
import type { Log } from '../kit/log.ts'
import type { TunnelDevice } from '../tunnel/tunnel.ts'
import { deviceLeg, type DeviceLeg, type DeviceLegParts } from './device-leg.ts'
import { runSession, type SessionParts } from './session.ts'

export interface RestoredSessionParts extends DeviceLegParts, SessionParts {
  logins: Pick<Logins, 'find'>
  kept: Pick<KeptSessions, 'claim' | 'arrived'>
  clock: { now(): number }
  /** Takes a promise that resolves when everything of a session is closed. */
  begun(done: Promise<void>): void
  log: Log
}

export interface RestoredSessions {
  /** The device has a new tunnel, and has kept the terminals of these sessions, and of no others. */
  arrived(device: TunnelDevice, sessions: readonly string[]): void
  /** The device says that it has the terminals of these sessions, and of no others, without their gateway. */
  reported(device: TunnelDevice, sessions: readonly string[]): void
  /** The device has no tunnel here any more. */
  left(device_uid: string): void
  /** Resolves when what this device has kept is there again, or soon in any case; undefined: nothing is on its way. */
  pending(device_uid: string): Promise<void> | undefined
  /** Nothing is restored any more. */
  stop(): void
}

/** Legs that are dialled at the same time: after a restart all devices come together. Namespaces take turns. */
const dialled = { each: 4, atOnce: 16, keys: 5_000 }
/** After so long the next one begins, too: a device that does not answer is not worth the wait of others. */
const place_ms = 2_000
/** In one namespace, which holds half as many sessions. */
const mostWaiting = 1_000
/** Until it is asked again whether another node has a session, or whether a device can be reached: longer each time. */
const again_ms = 2_000
const longest_ms = 60_000
/** For the agent to hand the terminal over. */
const handOver_ms = 30_000
/** For somebody who logs in meanwhile. */
const patience_ms = 5_000
/** What one device makes the server look up; an agent keeps less. */
const perDevice = { max: 100, window_ms: 60_000 }

export function restoredSessions(parts: RestoredSessionParts): RestoredSessions {
  const { open, log } = parts
  const stopping = new AbortController()
  const places = concurrencyByKey(mostWaiting, dialled)
  const looks = limiter(parts.clock, perDevice)
  /** What each device has said last. */
  const said = new Map<string, ReadonlySet<string>>()
  /** Sessions that are being looked for, each with the device that says it has it. */
  const busy = new Set<string>()
  /** What is being restored, by device. */
  const pending = new Map<string, Promise<unknown>>()
  /** Devices of which something is looked for again. */
  const retries = new Map<string, { tries: number; timer: NodeJS.Timeout | undefined }>()

  const isWanted = ({ uid }: TunnelDevice, session: string): boolean =>
    !stopping.signal.aborted && !open.has(session) && said.get(uid)?.has(session) === true

  function look(device: TunnelDevice, uid: string): void {
    const which = `${device.uid} ${uid}`
    if (busy.has(which)) return
    // Put off and not forgotten: the device may not say it again.
    if (looks.take(device.uid) > 0) return later(device)
    busy.add(which)
    const done = inTurn(device, async () => (isWanted(device, uid) ? restore(device, uid) : 'done'))
      .catch((err: unknown) => {
        const level = retries.has(device.uid) ? 'debug' : 'warn'
        log[level]({ event: 'session.not-restored', session: uid, device: device.uid, err })
        return 'again' as const
      })
      .then((outcome) => {
        busy.delete(which)
        if (outcome === 'again' && isWanted(device, uid)) later(device)
      })
    const all = Promise.all([pending.get(device.uid), done]).finally(() => {
      if (pending.get(device.uid) !== all) return
      pending.delete(device.uid)
      // Everything is found that was looked for: what comes next begins with a short wait.
      if (!retries.get(device.uid)?.timer) retries.delete(device.uid)
    })
    pending.set(device.uid, all)
  }

  /** Runs the work when a place is free. The place is free again when the work is done, or after `place_ms`. */
  async function inTurn(
    { tenant_id }: TunnelDevice,
    work: () => Promise<'done' | 'again'>,
  ): Promise<'done' | 'again'> {
    const waiting = places.run(tenant_id, async () => {
      const working = work()
      const late = Promise.withResolvers<void>()
      const timer = setTimeout(late.resolve, place_ms)
      await Promise.race([working.catch(() => undefined), late.promise])
      clearTimeout(timer)
      return { working }
    })
    return (await waiting)?.working ?? 'again'
  }

  /** Looks again for all that the device says it has, after a longer wait each time. */
  function later(device: TunnelDevice): void {
    const retry = retries.get(device.uid) ?? { tries: 0, timer: undefined }
    if (retry.timer || stopping.signal.aborted) return
    const wait_ms = Math.min(longest_ms, again_ms * 2 ** retry.tries)
    retry.tries += 1
    retry.timer = setTimeout(() => {
      retry.timer = undefined
      const wanted = [...(said.get(device.uid) ?? [])].filter((uid) => isWanted(device, uid))
      if (wanted.length === 0) retries.delete(device.uid)
      for (const uid of wanted) look(device, uid)
    }, wait_ms).unref()
    retries.set(device.uid, retry)
  }

  async function restore(device: TunnelDevice, uid: string): Promise<'done' | 'again'> {
    const to = await parts.logins.find(device.uid)
    if (!to) return 'done'
    const claimed = await parts.kept.claim(device, uid)
    if (claimed?.state === 'elsewhere') return 'again'
    if (!claimed) return 'done'
    const { session } = claimed
    // The stop of the server ends only what is on its way. What is there again ends like every other session.
    const onItsWay = new AbortController()
    const giveUp = (): void => onItsWay.abort()
    stopping.signal.addEventListener('abort', giveUp, { once: true })
    if (stopping.signal.aborted) giveUp()
    const leg = deviceLeg(
      { ...parts, grace_s: to.namespace.reconnect_grace_s },
      to.device,
      newUid(),
      onItsWay.signal,
    )
    const kept = await continueTerminal(leg, session)
      .catch((error: unknown) => {
        leg.end()
        // The record stays open: the device may be back soon, and another node may have its tunnel then.
        if (claimed.state === 'left') claimed.record.leave(new Date(session.until).toISOString())
        throw error
      })
      .finally(() => stopping.signal.removeEventListener('abort', giveUp))
    if (claimed.state === 'over' || !kept) {
      // A terminal that is closed is hung up.
      await kept?.channel.close('now')
      leg.end()
      if (claimed.state === 'left') claimed.record.finish()
      log.info({ event: 'session.lost', session: uid, device: device.uid, known: kept !== undefined })
      return 'done'
    }
    parts.begun(run(to, session, claimed.record, leg, kept))
    log.info({ event: 'session.restored', session: uid, device: device.uid })
    return 'done'
  }

  /** Undefined: the agent does not have it any more. */
  async function continueTerminal(leg: DeviceLeg, session: OrphanedSession): Promise<Kept | undefined> {
    if ((await leg.publicKey(session.username)) !== 'accepted')
      throw new Error('The device did not let the server in.')
    const late = setTimeout(() => leg.end(), handOver_ms)
    return takeOver(leg, session).finally(() => clearTimeout(late))
  }

  async function takeOver(leg: DeviceLeg, session: OrphanedSession): Promise<Kept | undefined> {
    const channel = await leg.connection().open('session')
    const ask = async (request: SessionRequest): Promise<boolean> => {
      const { name, payload } = writeRequest(request)
      return channel.request(name, payload, true)
    }
    const keep = { id: session.uid, secret: parts.keepSecret(session.uid), grace_s: 1 }
    const asked = [
      ask({ type: 'env', name: keepVariable, value: keepText(keep) }),
      ask({ type: 'subsystem', name: keptSubsystem }),
    ]
    if ((await Promise.all(asked)).includes(false)) return undefined
    const first = await channel.read()
    return { channel, ...readHead(first?.bytes) }
  }

  async function run(
    to: Reachable,
    session: OrphanedSession,
    record: LiveSession,
    leg: DeviceLeg,
    { channel, columns, rows }: Kept,
  ): Promise<void> {
    const far = continuedConnection(leg.connection(), channel)
    const [mine, near] = localPair()
    const login = {
      target: { username: session.username, data: session.uid },
      // What was announced when it began is not announced again.
      to: { ...to, namespace: { ...to.namespace, connection_announcement: '' } },
      leg: { ...leg, connection: () => far },
      record: withoutType(record),
      limits: undefined,
      proof: {
        method: session.key === undefined ? 'password' : 'publickey',
        fingerprint: session.fingerprint,
        refused: 0,
      },
      person: session.person,
      via: session.via,
      key: session.key,
    } as const
    const { started_at, until, standing } = session
    const restored = { started_at, until, standing }
    const running = runSession(parts, near, login, { address: session.ip_address, port: 0 }, log, restored)
    try {
      // Somebody who opens a terminal like the one that was, and is lost at once.
      await startSession(mine, {
        program: { type: 'shell' },
        pty: { terminal: session.term, columns, rows, width: 0, height: 0, modes: new Map() },
      })
      await mine.end(Reason.connectionLost, 'The server was away.')
    } catch {
      await mine.end(Reason.byApplication, 'The session could not be continued.')
    }
    try {
      await running
    } catch (err) {
      log.error({ event: 'session.failed', session: session.uid, err })
    } finally {
      leg.end()
      record.finish()
    }
  }

  return {
    arrived(device, sessions) {
      const isHere = (uid: string): boolean => open.has(uid) || sessions.includes(uid)
      parts.kept
        .arrived(device, isHere)
        .catch((err: unknown) => log.warn({ event: 'session.unwritten', device: device.uid, err }))
    },
    reported(device, sessions) {
      if (sessions.length === 0) said.delete(device.uid)
      else said.set(device.uid, new Set(sessions))
      for (const uid of sessions) if (isWanted(device, uid)) look(device, uid)
    },
    left: (device_uid) => void said.delete(device_uid),
    pending(device_uid) {
      const going = pending.get(device_uid)
      if (!going) return undefined
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, patience_ms)
      void going.finally(resolve)
      return promise.finally(() => clearTimeout(timer))
    },
    stop() {
      stopping.abort()
      for (const { timer } of retries.values()) clearTimeout(timer)
    },
  }
}

interface Kept extends KeptHead {
  readonly channel: Channel
}

function readHead(bytes: Buffer | undefined): KeptHead {
  const { columns, rows } = JSON.parse(String(bytes)) as Partial<KeptHead>
  const isSize = (one: unknown): one is number =>
    Number.isInteger(one) && Number(one) > 0 && Number(one) < 65_536
  if (!isSize(columns) || !isSize(rows)) throw new Error('The device did not say how large the terminal is.')
  return { columns, rows }
}

/** The record without changes of its type, which was noted when the session began. */
const withoutType = (record: LiveSession): LiveSession => ({
  ...record,
  note(change) {
    const rest = { ...change }
    delete rest.type
    record.note(rest)
  },
})

/** The leg, on which the first session is the one that goes on. */
function continuedConnection(far: Connection, going: Channel): Connection {
  let first: Channel | undefined = continuedChannel(going)
  return {
    channels: far.channels,
    requests: far.requests,
    async open(type, payload, signal) {
      const one = type === 'session' ? first : undefined
      if (one) first = undefined
      return one ?? far.open(type, payload, signal)
    },
    openEarly: undefined,
    request: async (name, payload) => far.request(name, payload),
    tell: (name, payload) => far.tell(name, payload),
    rekey: () => far.rekey(),
    end: async (reason, text) => far.end(reason, text),
    ended: far.ended,
    transport: far.transport,
    [Symbol.asyncDispose]: async () => far[Symbol.asyncDispose](),
  }
}

const begun = new Set(['env', 'pty-req', 'shell'])

/** The channel of a program that runs already: nothing is asked to start it. What it shows is for the terminal then. */
function continuedChannel(going: Channel): Channel {
  const started = Promise.withResolvers<void>()
  void going.closed.then(started.resolve)
  return {
    type: going.type,
    requests: going.requests,
    closed: going.closed,
    read: async () => started.promise.then(async () => going.read()),
    readAll: async (take) => started.promise.then(async () => going.readAll(take)),
    write: async (bytes, stream) => going.write(bytes, stream),
    send: (bytes, stream) => going.send(bytes, stream),
    sendNow: (bytes, stream) => going.sendNow(bytes, stream),
    end: async () => going.end(),
    close: async (when) => going.close(when),
    async request(type, payload, wantReply) {
      if (type === 'shell') started.resolve()
      return begun.has(type) ? true : going.request(type, payload, wantReply)
    },
    [Symbol.asyncIterator]: () => going[Symbol.asyncIterator](),
    [Symbol.asyncDispose]: async () => going[Symbol.asyncDispose](),
  }
}

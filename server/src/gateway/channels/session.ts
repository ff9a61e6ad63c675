// One session: it pipes between a client and the device that the client logged in to, until one of them disconnects or
// somebody ends the session. Whatever happens, both legs are closed and the record is finished.
import { personText } from '@hawser/contract/tunnel'
import { pipe, Reason, type Channel, type ConnectionEnd } from '@hawser/ssh'
import type { SessionPolicy } from '../../domain/access/session-policy.ts'
import type { DetachedSession } from '../../domain/sessions/detached-sessions.ts'
import type { LiveSession } from '../../domain/sessions/live-sessions.ts'
import type { SessionLogin, OpenSession } from '../../domain/sessions/revocation.ts'
import type { Size } from '../../recording/journal.ts'
import type { SessionRecorder, RecordingSettings } from '../../recording/tap.ts'
import type { TerminalScreen } from '../../recording/terminal-screen.ts'
import type { Log } from '../../kit/log.ts'
import type { ResumableStream } from '../../tunnel/resumable.ts'
import type { ClientEnd } from '../terminal/client.ts'
import { identityOf } from '../terminal/held.ts'
import { holding, type HoldingParts } from '../terminal/holding.ts'
import { lostEnd, nearEnd, type NearEnd } from '../terminal/near-end.ts'
import { reattaching, type Elsewhere } from '../terminal/reattach.ts'
import type { Handed } from '../terminal/take-over.ts'
import type { DeviceLeg } from '../device/device-leg.ts'
import { sharedTerminals } from '../terminal/sharing.ts'
import { announcementFor, channelPolicy, type RestoredChannel } from './channels.ts'
import type { HashThread } from './hash-thread.ts'
import type { LoggedIn, Origin } from './logged-in.ts'
import { livePolicy } from './live-policy.ts'

export interface Recording {
  recorder(about: RecordedLogin, onFailed: (goesOn: boolean) => void): SessionRecorder
  /** Whether the namespace records sessions on the device now. */
  wanted(tenant_id: string, device_uid: string): Promise<RecordingSettings>
}

export interface PolicySource {
  /** The policy that the login read. */
  of(namespace: LoggedIn['to']['namespace']): SessionPolicy
  /** The policy in the database now. Throws while the database is away. */
  now(tenant_id: string): Promise<SessionPolicy>
}

export interface RecordedLogin {
  readonly record: LiveSession
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
  /** Who opened the session; absent: unknown. */
  readonly person?: string | undefined
}

export interface SessionParts extends HoldingParts {
  open: Map<string, OpenSession>
  /** A session ends when no byte has passed for this long; 0: never. */
  idle_ms: number
  isThere(device: LoggedIn['to']['device']): Promise<boolean>
  /** Whether the firewall admits this address to this user of the device. */
  mayReach(to: LoggedIn['to'], username: string, source: string): Promise<boolean>
  /** Why the login no longer counts: its membership or API key is gone, or its public key no longer allows it. */
  lostRight(login: SessionLogin): Promise<string | undefined>
  recording: Recording
  /** Held sessions that are not on this node; undefined: there are none. */
  elsewhere: Elsewhere | undefined
  /** Lets the user reattach in a browser, until this is disposed. */
  attachable(session_uid: string, user_id: string): Disposable
  /** Takes a place for a guest who types; undefined: none is free. */
  typistPlace(tenant_id: string): Disposable | undefined
  screen(size: Size, tenant_id: string): TerminalScreen
  policies: PolicySource
  /**
   * Resolves when the detached terminals that the device reported are restored; undefined: it reported none.
   */
  restoring(device_uid: string): Promise<void> | undefined
  hashing: HashThread
}

/** A session whose terminal this server takes over. */
export interface Restored {
  /** The channel on which the agent has handed the terminal over. */
  readonly channel: Channel
  readonly term: string
  readonly size: Size
  readonly output: Uint8Array
  readonly isWhole: boolean
  readonly started_at: number
  readonly expires_at: number
  /** The standing of its person when the session began. */
  readonly standing: string
}

/** Shorter interruptions are not announced. */
const shortest_ms = 2_000

export async function runSession(
  parts: SessionParts,
  client: ConnectionEnd & ClientEnd,
  login: LoggedIn,
  origin: Origin,
  log: Log,
  restored?: Restored,
): Promise<void> {
  const { record, to, person } = login
  const far = login.leg.connection()
  const { tenant_id } = to.namespace
  const end = (sentence: string): void => void near.end(Reason.byApplication, sentence)
  const idle = idleTimer(parts.idle_ms, () => {
    const { continues } = holds.session
    // Bytes pass through the session that was held, which has an idle time of its own.
    if (continues !== undefined && parts.open.has(continues)) idle.active()
    // A held session has a time of its own, too, and nobody in it who could be idle.
    else if (holds.session.terminal()?.heldUntil === undefined) end('The session was idle for too long.')
  })
  const claim = {
    tenant_id,
    device_uid: to.device.uid,
    username: login.target.username,
    identity: identityOf(person, login.proof.fingerprint, login.key),
  }
  const holds = holding(parts, {
    claim,
    record,
    hold_s: holdOf(login),
    login: {
      person,
      key: login.key,
      via: login.via,
      shown: login.proof.fingerprint,
      standing: restored?.standing,
      restored: record.uid,
    },
    near: (): NearEnd => near,
    far,
    started_at: restored?.started_at ?? Date.now(),
    expires_at: restored?.expires_at,
    active: idle.active,
    log,
  })
  const reattach = reattaching({
    held: parts.held,
    restoring: parts.restoring,
    elsewhere: parts.elsewhere,
    claim,
    person,
    uid: record.uid,
    by: { source: origin.address, via: login.via },
    onReattached: holds.reattachedTo,
  })
  const near = nearEnd(client, {
    ...holds.terminal,
    screen(size) {
      holds.terminal.onOpened()
      return parts.screen(size, tenant_id)
    },
    // A browser has a page to ask on, and an operation to continue with.
    ...(restored || login.via === 'browser' || !isWhole(login) ? {} : { onProgram: reattach }),
  })
  const recorder = parts.recording.recorder(
    {
      record,
      tenant_id,
      device_uid: claim.device_uid,
      username: claim.username,
      person: personText(person) || undefined,
    },
    (goesOn) => {
      if (goesOn) record.note({ unrecorded: 1 })
      else end('The session could not be recorded, and was ended.')
    },
  )
  const policy = livePolicy(parts.policies.of(to.namespace))
  const sharing = sharedTerminals({
    person: personText(person) || claim.username,
    place: () => parts.typistPlace(tenant_id),
    mayReach: async (source) => parts.mayReach(to, claim.username, source),
    shared: (participants, notes) => record.shared(participants, notes),
  })
  using registered = new DisposableStack()
  parts.open.set(record.uid, {
    shared: sharing.find,
    desk: sharing.desk,
    uid: record.uid,
    device_uid: claim.device_uid,
    tenant_id,
    person,
    end,
    record: recorder.apply,
    heldFor: () => (holds.session.terminal()?.heldUntil === undefined ? undefined : holds.heldFor()),
    restrict: policy.change,
    hold: holds.hold,
  })
  registered.defer(() => parts.open.delete(record.uid))
  registered.use(parts.held.add(holds.session))
  if (holds.detachText !== undefined && person.kind === 'user')
    registered.use(parts.attachable(record.uid, person.id))
  const away = tellWhenAway(login, near, (event) =>
    log.warn({ event, session: record.uid, device: claim.device_uid, tenant_id }),
  )
  registered.use(away)
  registered.use(idle)
  const continued = restored && restoredChannel(near, restored)
  log.info({
    event: 'session.started',
    session: record.uid,
    device: claim.device_uid,
    tenant_id,
    username: claim.username,
    source: origin.address,
    person: personText(person) || undefined,
    via: login.via,
    ...login.proof,
  })
  try {
    await recheck(parts, login, holds.heldFor(), { recorder, policy, end })
    const rules = channelPolicy(
      {
        ...rulesOf(login, origin),
        record,
        detachText: holds.detachText,
        onDetachable: holds.onDetachable,
        lostMessage: away.lostMessage,
        shareable: sharing.add,
        recorder: recorder.channel,
        mask: recorder.mask,
        policy,
        hashing: parts.hashing,
        active: idle.active,
      },
      continued,
    )
    const { side, ended } = await pipe(near, far, rules)
    if (side === 'far') await (holds.handedOver() ?? near.end(Reason.connectionLost, away.lostMessage()))
    log.info({
      event: 'session.ended',
      session: record.uid,
      by: side === 'near' ? 'client' : 'device',
      why: ended.message,
    })
  } finally {
    registered.dispose()
    await far.end(Reason.byApplication, 'The session is over.')
    await recorder[Symbol.asyncDispose]()
  }
}

/** The rules for what passes that follow from the login. */
function rulesOf({ leg, limits, person, to: { namespace, device } }: LoggedIn, client: Origin) {
  const agentIsOurs = leg.connection().transport.peerIdent.startsWith('SSH-2.0-Hawser')
  return {
    limits,
    announcement: announcementFor(namespace.connection_announcement),
    client,
    person: personText(person),
    agentIsOurs,
    acceptEnv: JSON.parse(namespace.accept_env) as string[],
    // A device without an agent has an SSH server of its own, which closes each direction by itself.
    closesAtEof: !agentIsOurs && device.enrolment_key === null,
  }
}

/** A session that was taken over from its agent: held, for the person who opened it. */
export async function runRestored(
  parts: SessionParts,
  session: DetachedSession,
  to: LoggedIn['to'],
  record: LiveSession,
  leg: DeviceLeg,
  { channel, columns, rows, output, isWhole }: Handed,
  log: Log,
): Promise<void> {
  const { uid, username, key, fingerprint, person, via, term, started_at, standing, until } = session
  const login: LoggedIn = {
    target: { username, data: uid },
    // The announcement was shown when the session began.
    to: { ...to, namespace: { ...to.namespace, connection_announcement: '' } },
    leg,
    record,
    limits: undefined,
    proof: { method: key === undefined ? 'password' : 'publickey', fingerprint, refused: 0 },
    person,
    via,
    key,
  }
  const size = { width: columns, height: rows }
  const restored = { channel, term, size, output, isWhole, started_at, expires_at: until, standing }
  try {
    await runSession(parts, lostEnd(), login, { address: session.ip_address, port: 0 }, log, restored)
  } catch (err) {
    log.error({ event: 'session.failed', session: uid, err })
  } finally {
    leg.end()
    record.finish()
  }
}

/** Adds the restored terminal to the session; undefined: it cannot be held, and the session ends. */
function restoredChannel(near: NearEnd, { channel, ...program }: Restored): RestoredChannel | undefined {
  const terminal = near.restore(program.size, program.isWhole)
  return terminal && { near: terminal, far: channel, program }
}

/**
 * Checks again what may have changed between the login and now, when the news could not reach this session:
 * the device, the person and the key, whether it is recorded, and what is forbidden. Later changes arrive on
 * the bus. Without the database the login's values count.
 */
async function recheck(
  parts: SessionParts,
  { to }: LoggedIn,
  heldFor: SessionLogin,
  session: {
    readonly recorder: SessionRecorder
    readonly policy: { change(rules: SessionPolicy): void }
    end(sentence: string): void
  },
): Promise<void> {
  const { tenant_id, session_record, continue_unrecorded } = to.namespace
  const [isThere, lost] = await Promise.all([parts.isThere(to.device), parts.lostRight(heldFor)])
  if (!isThere) session.end('The device is no longer available.')
  else if (lost !== undefined) session.end(lost)
  const known = { record: session_record === 1, continueUnrecorded: continue_unrecorded === 1 }
  session.recorder.apply(await parts.recording.wanted(tenant_id, to.device.uid).catch(() => known))
  const forbidden = await parts.policies.now(tenant_id).catch(() => undefined)
  if (forbidden) session.policy.change(forbidden)
}

/**
 * How long a terminal of this login is held when its client is lost: the `hold_sessions` of the namespace, in
 * seconds. 0 for a certificate that forbids programs or terminals, and for unknown people with a password
 * unless the namespace allows it (`hold_unknown`).
 */
function holdOf(login: LoggedIn): number {
  const { to, person, proof } = login
  const { namespace } = to
  if (!isWhole(login)) return 0
  const isAnybody = person.kind === 'unknown' && proof.fingerprint === undefined
  return isAnybody && namespace.hold_unknown === 0 ? 0 : namespace.hold_sessions
}

/** Whether the login may run any program and have a terminal; a certificate may forbid it. */
const isWhole = ({ limits }: LoggedIn): boolean =>
  limits === undefined || (limits.forceCommand === undefined && limits.permits.has('permit-pty'))

/** Calls `onIdle` repeatedly while nothing was active for this long; 0: never. */
function idleTimer(idle_ms: number, onIdle: () => void): Disposable & { active(): void } {
  let active_at = performance.now()
  const look = (): void => {
    if (performance.now() - active_at > idle_ms) onIdle()
  }
  const timer = idle_ms > 0 ? setInterval(look, idle_ms / 4) : undefined
  return { active: () => void (active_at = performance.now()), [Symbol.dispose]: () => clearInterval(timer) }
}

/**
 * Tells the shells of a session when its device is away for more than a moment, and at the end how it was
 * lost.
 */
function tellWhenAway(
  { leg, to: { namespace, device } }: LoggedIn,
  near: Pick<NearEnd, 'terminals'>,
  onUnsteady: (event: 'session.unsteady') => void,
): Disposable & { lostMessage(): string } {
  const stream: ResumableStream | undefined = leg.resumable()
  const name = `${namespace.name}.${device.name}`
  let lostMessage = `The connection to ${name} was lost.`
  let timer: NodeJS.Timeout | undefined
  const onBack = (): void => clearTimeout(timer)
  const tell = (): void => {
    const waits = `the session waits for it for up to ${durationOf(namespace.reconnect_grace_s)}`
    for (const terminal of near.terminals)
      if (terminal.isShell) terminal.say(`\r\nThe connection to ${name} is interrupted; ${waits}.\r\n`)
  }
  const onAway = (): void => {
    clearTimeout(timer)
    timer = setTimeout(tell, shortest_ms)
  }
  const onGivenUp = (): void => {
    lostMessage = `The connection to ${name} broke again and again, and the session was ended.`
    onUnsteady('session.unsteady')
  }
  stream?.on('away', onAway).on('back', onBack).once('close', onBack).once('unsteady', onGivenUp)
  return {
    lostMessage: () => lostMessage,
    [Symbol.dispose]() {
      stream?.off('away', onAway).off('back', onBack).off('unsteady', onGivenUp)
      clearTimeout(timer)
    },
  }
}

function durationOf(seconds: number): string {
  const [count, unit] = seconds % 60 === 0 ? [seconds / 60, 'minute'] : [seconds, 'second']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

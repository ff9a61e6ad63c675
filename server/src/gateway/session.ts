// One session: it pipes between a client and the device that the client logged in to, until one of them
// disconnects or somebody ends the session. Whatever happens, both legs are closed and the record is
// finished.
import { keepText, personText } from '@hawser/contract/tunnel'
import { pipe, Reason, type ConnectionEnd } from '@hawser/ssh'
import type { SessionPolicy } from '../domain/access/session-policy.ts'
import type { LiveSession } from '../domain/sessions/live-sessions.ts'
import type { HeldFor, OpenSession } from '../domain/sessions/revocation.ts'
import type { Log } from '../kit/log.ts'
import type { ChannelRecorder, SessionRecorder, RecordingSettings } from '../recording/tap.ts'
import type { ResumableStream } from '../tunnel/resumable.ts'
import type { KeptScreen } from '../recording/kept-screen.ts'
import type { Size } from '../recording/journal.ts'
import { iso } from '../kit/clock.ts'
import { comingBack, type RemoteSessions } from './coming-back.ts'
import { identityOf, type HeldSessions, type KeptSession } from './held-sessions.ts'
import { keptEnd } from './kept-end.ts'
import type { ClientEnd } from './kept-terminal.ts'
import { announcementFor, channelPolicy } from './channels.ts'
import type { HashThread } from './hash-thread.ts'
import { livePolicy } from './live-policy.ts'
import type { LoggedIn } from './login.ts'
import type { Origin } from './proxy-header.ts'
import { sharedTerminals } from './sharing.ts'

/** How a session is recorded, and whether. */
export interface Recording {
  recorder(about: RecordedLogin, onFailed: (goesOn: boolean) => void): SessionRecorder
  /** Whether the namespace wants sessions on the device recorded now. */
  wanted(tenant_id: string, device_uid: string): Promise<RecordingSettings>
}

/** The policies of namespaces. */
export interface PolicySource {
  /** The policy as the login has read it. */
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

export interface SessionParts {
  /** All sessions on this node. */
  open: Map<string, OpenSession>
  /** A session ends after so long without a byte in either direction; 0: never. */
  idle_ms: number
  /** Whether the device may still be reached. */
  isThere(device: LoggedIn['to']['device']): Promise<boolean>
  /** Whether the firewall lets somebody at this address in to this user of the device. */
  mayReach(to: LoggedIn['to'], username: string, source: string): Promise<boolean>
  /** Why the login no longer counts: its membership or API key is gone, or its public key no longer allows it. */
  lostRight(login: HeldFor): Promise<string | undefined>
  /** Whether a session may wait for its person. */
  mayWait(held: HeldFor): Promise<boolean>
  /** A text that changes when the person's role, membership or password does. */
  standing(held: HeldFor): Promise<string | undefined>
  recording: Recording
  /** Sessions that go on without their client. */
  held: HeldSessions
  /** Sessions of other nodes; undefined: there are no other nodes. */
  remote: RemoteSessions | undefined
  /** The user can continue the session in a browser, until this is disposed. */
  attachable(session_uid: string, user_id: string): Disposable
  /** Takes a place for somebody who types in a session of somebody else; undefined: there is none. */
  typistPlace(tenant_id: string): Disposable | undefined
  /** The screen of a terminal that may be held. */
  screen(size: Size, tenant_id: string): KeptScreen
  policies: PolicySource
  /** The secret by which this installation, and nobody else, continues a terminal that an agent has kept. */
  keepSecret(session_uid: string): string
  /** Resolves when the sessions are there again that a device has kept; undefined: it has kept none. */
  restoring(device_uid: string): Promise<void> | undefined
  /** Hashes the files that pass. */
  hashing: HashThread
}

/** A session that goes on after the server was away. */
export interface Restored {
  readonly started_at: number
  /** When the wait for its person ends. */
  readonly until: number
  /** The standing of its person when the session began. */
  readonly standing: string
}

/** An interruption that is over so soon is not worth a sentence. */
const shortest_ms = 2_000
/** The pause before the database is asked again. */
const recheck_ms = 5_000

export async function runSession(
  parts: SessionParts,
  client: ConnectionEnd & ClientEnd,
  login: LoggedIn,
  origin: Origin,
  log: Log,
  restored?: Restored,
): Promise<void> {
  const { record, to } = login
  const far = login.leg.connection()
  const { tenant_id } = to.namespace
  /** What the agent was told, too: it keeps a terminal no longer than this. */
  const kept_s = holdOf(login)
  let hold_s = kept_s
  const claim = {
    tenant_id,
    device_uid: to.device.uid,
    username: login.target.username,
    identity: identityOf(login.person, login.proof.fingerprint, login.key),
  }
  /** When the wait of a restored session ends; undefined once its person is back. */
  let until = restored?.until
  /** Whether the agent keeps the terminal, and has one to keep. */
  const keeping = { agent: false, terminal: false }
  let continues: string | undefined
  let isLeft = false
  const noteKept = (what: keyof typeof keeping): void => {
    keeping[what] = true
    if (keeping.agent && keeping.terminal && !restored) void noteFor().catch(() => undefined)
  }
  const noteFor = async (): Promise<void> => {
    const standing = await parts.standing(heldFor())
    if (standing !== undefined) record.note({ kept_s, kept_for: { key: login.key, standing } })
  }
  const kept: KeptSession = {
    ...claim,
    uid: record.uid,
    started_at: restored?.started_at ?? Date.now(),
    get hold_s() {
      return until === undefined ? hold_s : Math.max(1, Math.round((until - Date.now()) / 1_000))
    },
    held_until: undefined,
    get continues() {
      return continues
    },
    get isLeft() {
      return isLeft
    },
    terminal: () => [...near.terminals].find(({ isHoldable }) => isHoldable),
    resumed(source, via) {
      until = undefined
      active_at = performance.now()
      record.resumed(source, via)
      for (const one of recorders) one.interrupted({ type: 'resumed', via })
      log.info({ event: 'session.resumed', session: record.uid, source, via })
    },
    mayContinue: async () => parts.mayWait(heldFor()),
    join: async (other) => near.join(other),
    end: (sentence) => end(sentence),
    leave(sentence) {
      if (!keeping.agent || kept.terminal() === undefined) return false
      isLeft = true
      record.leave(iso(kept.held_until ?? Date.now() + Math.min(kept.hold_s, kept_s) * 1_000))
      // The client goes first, or it would read that the device was lost.
      void near.end(Reason.serviceNotAvailable, sentence)
      // An agent that reads this reason keeps the terminal, as if the connection had broken.
      void far.end(Reason.connectionLost, 'The server is stopping.')
      return true
    },
  }
  /** The recorders of the session's terminals. */
  const recorders = new Set<ChannelRecorder>()
  const heldFor = (): HeldFor => {
    const before = until === undefined ? {} : { standing: restored?.standing, restored: record.uid }
    const { person, key, via, proof } = login
    return { ...claim, person, key, via, shown: proof.fingerprint, ...before }
  }
  /** Rights may have changed since the login. While the database is away, the question is repeated. */
  const checkHeld = async (): Promise<void> => {
    const may = await parts.mayWait(heldFor()).catch(() => undefined)
    if (kept.held_until === undefined) return
    if (may === false) end('Nobody may come back to the session.')
    if (may === undefined) setTimeout(() => void checkHeld(), recheck_ms).unref()
  }
  const comeBack = comingBack({
    held: parts.held,
    restoring: parts.restoring,
    remote: parts.remote,
    claim,
    person: login.person,
    uid: record.uid,
    where: `${login.via} from ${origin.address}`,
    source: origin.address,
    via: login.via,
    onResumed(uid) {
      continues = uid
      record.note({ resumes: uid })
      // Bytes now pass through the session that goes on, which has an idle time of its own.
      clearInterval(idle)
    },
  })
  const near = keptEnd(client, {
    screen(size) {
      if (kept_s === 0) return undefined
      noteKept('terminal')
      const screen = parts.screen(size, tenant_id)
      return restored ? partial(screen) : screen
    },
    onLost(terminal) {
      if (!parts.held.hold(kept)) return false
      record.held(iso(kept.held_until!))
      for (const one of recorders) one.interrupted({ type: 'held' })
      log.info({ event: 'session.held', session: record.uid, seconds: hold_s })
      void terminal.settle()
      void checkHeld()
      return true
    },
    onAttached: () => parts.held.resume(kept),
    // A browser has a page to ask on, and an operation to continue with.
    ...(restored || login.via === 'browser' || !isWhole(login) ? {} : { onProgram: comeBack }),
  })
  const end = (sentence: string): void => void near.end(Reason.byApplication, sentence)
  const recorder = parts.recording.recorder(
    {
      record,
      tenant_id,
      device_uid: to.device.uid,
      username: login.target.username,
      person: personText(login.person) || undefined,
    },
    (goesOn) => {
      if (goesOn) record.note({ unrecorded: 1 })
      else end('The session could not be recorded, and was ended.')
    },
  )
  const policy = livePolicy(parts.policies.of(to.namespace))
  const sharing = sharedTerminals({
    person: personText(login.person) || login.target.username,
    place: () => parts.typistPlace(tenant_id),
    mayReach: async (source) => parts.mayReach(to, login.target.username, source),
    shared: record.shared,
  })
  parts.open.set(record.uid, {
    shared: sharing.find,
    desk: sharing.desk,
    uid: record.uid,
    device_uid: to.device.uid,
    tenant_id,
    person: login.person,
    end,
    record: recorder.apply,
    heldFor: () => (kept.held_until === undefined ? undefined : heldFor()),
    restrict: policy.change,
    // Without a screen from its beginning on nobody could come back; 0 is for `mayWait`.
    hold: (seconds) => void (kept_s > 0 && seconds > 0 && (hold_s = seconds)),
  })
  using holdable = new DisposableStack()
  holdable.use(parts.held.add(kept))
  if (kept_s > 0 && login.person.kind === 'user') holdable.use(parts.attachable(record.uid, login.person.id))
  const shells = new Set<(text: string) => void>()
  const name = `${to.namespace.name}.${to.device.name}`
  let lostMessage = `The connection to ${name} was lost.`
  const stopWatching = tellWhenAway(login.leg.resumable(), {
    away() {
      const waits = `the session waits for it for up to ${durationOf(to.namespace.reconnect_grace_s)}`
      for (const say of shells) say(`\r\nThe connection to ${name} is interrupted; ${waits}.\r\n`)
    },
    unsteady() {
      lostMessage = `The connection to ${name} broke again and again, and the session was ended.`
      log.warn({ event: 'session.unsteady', session: record.uid, device: to.device.uid, tenant_id })
    },
  })
  let active_at = performance.now()
  const idle =
    parts.idle_ms > 0
      ? setInterval(() => {
          // A held session has its own time, and nobody in it who could be idle.
          if (kept.held_until === undefined && performance.now() - active_at > parts.idle_ms)
            end('The session was idle for too long.')
        }, parts.idle_ms / 4)
      : undefined
  log.info({
    event: 'session.started',
    session: record.uid,
    device: to.device.uid,
    tenant_id,
    username: login.target.username,
    source: origin.address,
    person: personText(login.person) || undefined,
    via: login.via,
    ...login.proof,
  })
  try {
    // The device, the person or the key may have been removed between the login and now, when the news could
    // not reach this session.
    const [isThere, lost] = await Promise.all([parts.isThere(to.device), parts.lostRight(heldFor())])
    if (!isThere) end('The device is no longer available.')
    else if (lost !== undefined) end(lost)
    // Asked again, because the setting may have changed since the login. Without the database the login's
    // value counts.
    const { session_record, continue_unrecorded } = to.namespace
    const known = { record: session_record === 1, continueUnrecorded: continue_unrecorded === 1 }
    recorder.apply(await parts.recording.wanted(tenant_id, to.device.uid).catch(() => known))
    // The policy is asked again for the same reason. Later changes are told to the session.
    const forbidden = await parts.policies.now(tenant_id).catch(() => undefined)
    if (forbidden) policy.change(forbidden)
    const agentIsOurs = far.transport.peerIdent.startsWith('SSH-2.0-Hawser')
    const { side, ended } = await pipe(
      near,
      far,
      channelPolicy({
        record,
        limits: login.limits,
        announcement: announcementFor(to.namespace.connection_announcement),
        client: origin,
        person: personText(login.person),
        agentIsOurs,
        keep:
          kept_s > 0
            ? keepText({ id: record.uid, secret: parts.keepSecret(record.uid), grace_s: kept_s })
            : undefined,
        onKept(closed) {
          noteKept('agent')
          void closed.then(() => (keeping.agent = false))
        },
        acceptEnv: JSON.parse(to.namespace.accept_env) as string[],
        // A device without an agent has an SSH server of its own, which closes each direction by itself.
        closesAtEof: !agentIsOurs && to.device.enrolment_key === null,
        lostMessage: () => lostMessage,
        shells,
        shareable: sharing.add,
        recorder: () => recorder.channel(),
        mask: recorder.mask,
        recorders,
        policy,
        hashing: parts.hashing,
        active: () => void (active_at = performance.now()),
      }),
    )
    if (side === 'far') await near.end(Reason.connectionLost, lostMessage)
    log.info({
      event: 'session.ended',
      session: record.uid,
      by: side === 'near' ? 'client' : 'device',
      why: ended.message,
    })
  } finally {
    clearInterval(idle)
    stopWatching()
    parts.open.delete(record.uid)
    await far.end(Reason.byApplication, 'The session is over.')
    await recorder[Symbol.asyncDispose]()
  }
}

/**
 * How long a session waits for its person. Unknown people with a password wait only where the
 * namespace says so.
 */
function holdOf(login: LoggedIn): number {
  const { to, person, proof } = login
  const { namespace } = to
  if (!isWhole(login)) return 0
  const isAnybody = person.kind === 'unknown' && proof.fingerprint === undefined
  return isAnybody && namespace.hold_unknown === 0 ? 0 : namespace.hold_sessions
}

/** A screen of which nobody has seen all: programs are to draw theirs anew. */
const partial = (screen: KeptScreen): KeptScreen => ({
  show: screen.show,
  resize: screen.resize,
  redraw: screen.redraw,
  settle: screen.settle,
  isPartial: true,
  get held_bytes() {
    return screen.held_bytes
  },
  [Symbol.dispose]: () => screen[Symbol.dispose](),
})

/** Whether the login may have any program and a terminal; a certificate may say that it has not. */
const isWhole = ({ limits }: LoggedIn): boolean =>
  limits === undefined || (limits.forceCommand === undefined && limits.permits.has('permit-pty'))

/**
 * Calls `away` once for each time that the device is away for longer than a moment, and `unsteady` before the
 * stream is given up because it broke too often.
 */
function tellWhenAway(
  stream: ResumableStream | undefined,
  { away, unsteady }: { away(): void; unsteady(): void },
): () => void {
  let timer: NodeJS.Timeout | undefined
  const onBack = (): void => clearTimeout(timer)
  const onAway = (): void => {
    clearTimeout(timer)
    timer = setTimeout(away, shortest_ms)
  }
  stream?.on('away', onAway).on('back', onBack).once('close', onBack).once('unsteady', unsteady)
  return () => {
    stream?.off('away', onAway).off('back', onBack).off('unsteady', unsteady)
    clearTimeout(timer)
  }
}

function durationOf(seconds: number): string {
  const [count, unit] = seconds % 60 === 0 ? [seconds / 60, 'minute'] : [seconds, 'second']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

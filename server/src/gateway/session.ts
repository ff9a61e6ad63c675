// One session: a client that is in, joined to the device it logged in to, until one of them is gone or it is
// told to end. Whatever happens, both legs are closed and the record is finished.
import { pipe, Reason, type ConnectionEnd } from '@hawser/ssh'
import type { LiveSession } from '../domain/sessions/live-sessions.ts'
import type { Log } from '../kit/log.ts'
import type { SessionRecorder, RecordingSettings } from '../recording/tap.ts'
import { announcementFor, passage } from './channels.ts'
import type { LoggedIn } from './login.ts'
import type { Origin } from './proxy-header.ts'

export interface OpenSession {
  readonly uid: string
  readonly device_uid: string
  readonly tenant_id: string
  /** Ends it; the client reads the sentence. */
  end(sentence: string): void
  /** What the namespace wants, from now on. */
  record(wish: RecordingSettings): void
}

/** Whose session is recorded, how, and whether. */
export interface Recording {
  recorder(about: RecordedLogin, onFailed: (goesOn: boolean) => void): SessionRecorder
  /** As the namespace wants it now. */
  wanted(tenant_id: string): Promise<RecordingSettings>
}

export interface RecordedLogin {
  readonly record: LiveSession
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
}

export interface SessionParts {
  /** All that are going on here. */
  open: Map<string, OpenSession>
  /** Without a byte in either direction for so long it ends; 0: never. */
  idle_ms: number
  /** Whether the device may still be reached. */
  isThere(device_uid: string): Promise<boolean>
  recording: Recording
}

export async function runSession(
  parts: SessionParts,
  near: ConnectionEnd,
  login: LoggedIn,
  origin: Origin,
  log: Log,
): Promise<void> {
  const { record, to } = login
  const far = login.leg.connection()
  const end = (sentence: string): void => void near.end(Reason.byApplication, sentence)
  const { tenant_id } = to.namespace
  const recorder = parts.recording.recorder(
    { record, tenant_id, device_uid: to.device.uid, username: login.target.username },
    (goesOn) => {
      if (goesOn) record.note({ unrecorded: 1 })
      else end('The session could not be recorded, and was ended.')
    },
  )
  parts.open.set(record.uid, {
    uid: record.uid,
    device_uid: to.device.uid,
    tenant_id,
    end,
    record: recorder.apply,
  })
  let active_at = performance.now()
  const idle =
    parts.idle_ms > 0
      ? setInterval(() => {
          if (performance.now() - active_at > parts.idle_ms) end('The session was idle for too long.')
        }, parts.idle_ms / 4)
      : undefined
  log.info({
    event: 'session.started',
    session: record.uid,
    device: to.device.uid,
    username: login.target.username,
    source: origin.address,
  })
  try {
    // News that the device has left may have come between the login and now, when nobody here heard them.
    if (!(await parts.isThere(to.device.uid))) end('The device is no longer available.')
    // Asked anew: it may have changed since the login looked. Without the database, what the login saw
    // counts.
    const { session_record, continue_unrecorded } = to.namespace
    const known = { record: session_record === 1, continueUnrecorded: continue_unrecorded === 1 }
    recorder.apply(await parts.recording.wanted(tenant_id).catch(() => known))
    const agentIsOurs = far.transport.peerIdent.startsWith('SSH-2.0-Hawser')
    const { side, ended } = await pipe(
      near,
      far,
      passage({
        record,
        limits: login.limits,
        announcement: announcementFor(to.namespace.connection_announcement),
        client: origin,
        agentIsOurs,
        acceptEnv: JSON.parse(to.namespace.accept_env) as string[],
        // A device without an agent has an SSH server of its own, which knows the two directions apart.
        closesAtEof: !agentIsOurs && to.device.enrolment_key === null,
        farewell: `The connection to ${to.namespace.name}.${to.device.name} was lost.`,
        recorder: () => recorder.channel(),
        active: () => void (active_at = performance.now()),
      }),
    )
    if (side === 'far')
      await near.end(
        Reason.connectionLost,
        `The connection to ${to.namespace.name}.${to.device.name} was lost.`,
      )
    log.info({
      event: 'session.ended',
      session: record.uid,
      by: side === 'near' ? 'client' : 'device',
      why: ended.message,
    })
  } finally {
    clearInterval(idle)
    parts.open.delete(record.uid)
    await far.end(Reason.byApplication, 'The session is over.')
    await recorder[Symbol.asyncDispose]()
  }
}

// One session: it pipes between a client and the device that the client logged in to, until one of them
// disconnects or somebody ends the session. Whatever happens, both legs are closed and the record is
// finished.
import { pipe, Reason, type ConnectionEnd } from '@hawser/ssh'
import type { LiveSession } from '../domain/sessions/live-sessions.ts'
import type { OpenSession } from '../domain/sessions/revocation.ts'
import type { Log } from '../kit/log.ts'
import type { SessionRecorder, RecordingSettings } from '../recording/tap.ts'
import { announcementFor, channelPolicy } from './channels.ts'
import type { LoggedIn } from './login.ts'
import type { Origin } from './proxy-header.ts'

/** How a session is recorded, and whether. */
export interface Recording {
  recorder(about: RecordedLogin, onFailed: (goesOn: boolean) => void): SessionRecorder
  /** Whether the namespace wants its sessions recorded now. */
  wanted(tenant_id: string): Promise<RecordingSettings>
}

export interface RecordedLogin {
  readonly record: LiveSession
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
}

export interface SessionParts {
  /** All sessions on this node. */
  open: Map<string, OpenSession>
  /** A session ends after so long without a byte in either direction; 0: never. */
  idle_ms: number
  /** Whether the device may still be reached. */
  isThere(device: LoggedIn['to']['device']): Promise<boolean>
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
    tenant_id,
    username: login.target.username,
    source: origin.address,
    ...login.proof,
  })
  try {
    // The device may have been removed between the login and now, when the news could not reach this session.
    if (!(await parts.isThere(to.device))) end('The device is no longer available.')
    // Asked again, because the setting may have changed since the login. Without the database the login's
    // value counts.
    const { session_record, continue_unrecorded } = to.namespace
    const known = { record: session_record === 1, continueUnrecorded: continue_unrecorded === 1 }
    recorder.apply(await parts.recording.wanted(tenant_id).catch(() => known))
    const agentIsOurs = far.transport.peerIdent.startsWith('SSH-2.0-Hawser')
    const lostMessage = `The connection to ${to.namespace.name}.${to.device.name} was lost.`
    const { side, ended } = await pipe(
      near,
      far,
      channelPolicy({
        record,
        limits: login.limits,
        announcement: announcementFor(to.namespace.connection_announcement),
        client: origin,
        agentIsOurs,
        acceptEnv: JSON.parse(to.namespace.accept_env) as string[],
        // A device without an agent has an SSH server of its own, which closes each direction by itself.
        closesAtEof: !agentIsOurs && to.device.enrolment_key === null,
        lostMessage,
        recorder: () => recorder.channel(),
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
    parts.open.delete(record.uid)
    await far.end(Reason.byApplication, 'The session is over.')
    await recorder[Symbol.asyncDispose]()
  }
}

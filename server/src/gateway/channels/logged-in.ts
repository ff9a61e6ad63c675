// A login that the device has accepted: what login/ hands to the session.
import type { SessionOrigin, SessionPerson } from '@hawser/contract/sessions'
import type { LoginLimits, Reachable, Target } from '../../domain/access/logins.ts'
import type { LiveSession } from '../../domain/sessions/live-sessions.ts'
import type { DeviceLeg } from '../device/device-leg.ts'

/** Where a client's connection comes from. */
export interface Origin {
  readonly address: string
  readonly port: number
}

export interface AcceptedProof {
  readonly method: 'password' | 'publickey'
  readonly fingerprint: string | undefined
  /** Attempts on the same connection that were refused before. */
  readonly refused: number
}

export interface LoggedIn {
  readonly target: Target
  readonly to: Reachable
  readonly leg: DeviceLeg
  readonly record: LiveSession
  readonly limits: LoginLimits | undefined
  readonly proof: AcceptedProof
  readonly person: SessionPerson
  readonly via: SessionOrigin
  /** The MD5 fingerprint of the registered key; undefined: it was a password. */
  readonly key: string | undefined
}

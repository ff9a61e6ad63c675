// One login, whoever asks for it: an SSH client at the door, or a browser. Which device is meant, is it
// there, does the firewall let this caller through, and is this very proof good: each question is asked anew
// for every attempt. Passwords are the device's to judge, keys the namespace's. Nothing is written for
// somebody who has proved nothing. How a refusal is said is for those who speak with the caller.
import type { LiveSession, LiveSessions } from '../domain/sessions/live-sessions.ts'
import type { KeyVerdict, LoginKey, LoginLimits, Logins, Reachable, Target } from '../domain/access/logins.ts'
import { neighbourhood } from '../kit/address.ts'
import type { Limiter } from '../kit/limiter.ts'
import type { Log } from '../kit/log.ts'
import { DeviceAway, innerLeg, type InnerLeg, type InnerParts } from './device-leg.ts'

export interface LoginParts extends InnerParts {
  logins: Logins
  sessions: LiveSessions
  /** Refused passwords and keys of one source. */
  failures: Limiter
}

export interface LoggedIn {
  readonly target: Target
  readonly to: Reachable
  readonly leg: InnerLeg
  readonly record: LiveSession
  readonly limits: LoginLimits | undefined
}

export type WhyAway =
  | 'unknown'
  | 'offline'
  | 'away'
  | 'changed'
  | 'firewall'
  | 'over the limit'
  | 'too many failures'

/** There is no use in a further attempt. */
export class TurnedAway extends Error {
  override readonly name = 'TurnedAway'
  readonly why: WhyAway
  constructor(why: WhyAway) {
    super(why)
    this.why = why
  }
}

export interface Login extends Disposable {
  /** Refuses whoever has failed too often, before anything is looked up. Throws TurnedAway. */
  patient(): void
  /**
   * What every attempt begins with: the device, if it can be reached and this caller may. Throws TurnedAway.
   */
  find(target: Target): Promise<Reachable>
  /** Whether a key may be shown for such a name, there or not. */
  offered(target: Target, key: LoginKey): Promise<KeyVerdict>
  /** What a key is good for; nothing happens yet. */
  key(to: Reachable, target: Target, key: LoginKey): Promise<KeyVerdict>
  /** The device's word on a password. Throws TurnedAway. */
  password(to: Reachable, target: Target, password: string): Promise<boolean>
  /** Logs in whoever has proved to hold a key that is good. Throws TurnedAway. */
  vouch(to: Reachable, target: Target, limits: LoginLimits | undefined): Promise<boolean>
  /** A proof that was no good. */
  failed(target: Target, method: string): void
  /** Makes the leg to the device ready, for whoever will need it soon. */
  prepare(to: Reachable): void
  /** After an attempt was accepted. */
  outcome(): LoggedIn
}

/** From this version on agents check that a public-key login comes from the server. */
const checksLogins = [0, 6, 0]

export function openLogin(
  parts: LoginParts,
  uid: string,
  source: string,
  log: Log,
  signal: AbortSignal,
): Login {
  let leg: InnerLeg | undefined
  let loggedIn: LoggedIn | undefined

  const legTo = (to: Reachable): InnerLeg => (leg ??= innerLeg(parts, to.device, uid, signal))
  const failed = ({ username, data }: Target, why: string): void => {
    parts.failures.take(neighbourhood(source))
    log.info({ event: 'login.refused', why, source, sshid: `${username}@${data}` })
  }

  const patient = (): void => {
    if (parts.failures.peek(neighbourhood(source)) > 0) throw new TurnedAway('too many failures')
  }
  const refuseKey = ({ username, data }: Target, why: string): KeyVerdict => {
    log.debug({ event: 'key.refused', why, source, sshid: `${username}@${data}` })
    return { allowed: false, because: why }
  }

  /** The device's word is asked for; success makes the session's record. */
  async function enter(
    to: Reachable,
    target: Target,
    method: string,
    limits: LoginLimits | undefined,
    ask: (leg: InnerLeg) => Promise<boolean>,
  ): Promise<boolean> {
    let accepted: boolean
    try {
      accepted = await ask(legTo(to))
    } catch (error) {
      if (!(error instanceof DeviceAway)) throw error
      log.warn({ event: 'device.away', device: to.device.uid, err: error })
      // What agents do with their keys is theirs; a device without one has a person who can set it right.
      throw new TurnedAway(error.changed && to.device.enrolment_key !== null ? 'changed' : 'away')
    }
    if (!accepted) {
      failed(target, method)
      return false
    }
    const { tenant_id, uid: device_uid } = to.device
    const record = await parts.sessions.begin({
      uid,
      tenant_id,
      device_uid,
      username: target.username,
      ip_address: source,
    })
    loggedIn = { target, to, leg: legTo(to), record, limits }
    return true
  }

  return {
    patient,
    async find(target) {
      const to = await parts.logins.find(target.data)
      if (!to) throw new TurnedAway('unknown')
      if (!(await parts.find(to.device))) throw new TurnedAway('offline')
      if (!(await parts.logins.firewall(to, target.username, source))) throw new TurnedAway('firewall')
      if (!(await parts.logins.withinLimit(to))) throw new TurnedAway('over the limit')
      return to
    },
    async offered(target, key) {
      const verdict = await parts.logins.offered(target, source, key)
      return verdict.allowed ? verdict : refuseKey(target, verdict.because)
    },
    async key(to, target, key) {
      const verdict = await parts.logins.key(to, target.username, source, key)
      if (!verdict.allowed) return refuseKey(target, verdict.because)
      return vouchable(to.device.info_version) ? verdict : refuseKey(target, 'The agent is too old.')
    },
    // Whoever has signed with a key that is good does not pay for the guesses of others behind the same
    // address.
    async password(to, target, password) {
      patient()
      return enter(to, target, 'password', undefined, (inner) => inner.password(target.username, password))
    },
    vouch: async (to, target, limits) =>
      enter(to, target, 'publickey', limits, (inner) => inner.vouch(target.username)),
    failed,
    prepare: (to) => legTo(to).prepare(),
    outcome() {
      if (!loggedIn) throw new Error('Nobody is logged in yet.')
      return loggedIn
    },
    [Symbol.dispose]() {
      leg?.end()
      loggedIn?.record.finish()
    },
  }
}

function vouchable(version: string): boolean {
  const numbers = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)
  // `latest` and what cannot be read: agents that were built from the newest sources.
  if (!numbers) return true
  const [major, minor, patch] = numbers.slice(1).map(Number)
  const [a, b, c] = checksLogins
  return major! !== a! ? major! > a! : minor! !== b! ? minor! > b! : patch! >= c!
}

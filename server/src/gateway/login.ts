// One login to a device, by an SSH client or by a browser. Every attempt asks all questions again: which
// device is meant, is it online, does the firewall allow this caller, and is this proof valid. The device
// checks passwords; the namespace's keys are checked here. Nothing is written for a caller who has proved
// nothing. The caller of this module words the refusals.
import type { LiveSession, LiveSessions } from '../domain/sessions/live-sessions.ts'
import type {
  KeyDecision,
  LoginKey,
  LoginLimits,
  Logins,
  Reachable,
  Target,
} from '../domain/access/logins.ts'
import { neighbourhood } from '../kit/address.ts'
import type { Limiter } from '../kit/limiter.ts'
import type { Log } from '../kit/log.ts'
import { deviceLeg, DeviceUnreachable, type DeviceLeg, type DeviceLegParts } from './device-leg.ts'

export interface LoginParts extends DeviceLegParts {
  logins: Logins
  sessions: LiveSessions
  /** Limits refused passwords and keys of one source. */
  failures: Limiter
}

export interface LoggedIn {
  readonly target: Target
  readonly to: Reachable
  readonly leg: DeviceLeg
  readonly record: LiveSession
  readonly limits: LoginLimits | undefined
}

export type RefusalReason =
  | 'unknown'
  | 'offline'
  | 'away'
  | 'changed'
  | 'firewall'
  | 'over the limit'
  | 'too many failures'

/** The login is refused, and further attempts are useless. */
export class LoginRefused extends Error {
  override readonly name = 'LoginRefused'
  readonly why: RefusalReason
  constructor(why: RefusalReason) {
    super(why)
    this.why = why
  }
}

export interface DeviceLogin extends Disposable {
  /** Throws LoginRefused for a source with too many failures, before anything is looked up. */
  requireFewFailures(): void
  /** Finds the device, if it is online and this caller may reach it. Throws LoginRefused. */
  find(target: Target): Promise<Reachable>
  /** Whether the namespace has the key for such a name, whether or not the device exists. */
  offered(target: Target, key: LoginKey): Promise<KeyDecision>
  /** What a key is good for. It does not log in. */
  key(to: Reachable, target: Target, key: LoginKey): Promise<KeyDecision>
  /** Logs in with a password, if the device accepts it. Throws LoginRefused. */
  password(to: Reachable, target: Target, password: string): Promise<boolean>
  /** Logs in a caller who has proved to have a valid key. Throws LoginRefused. */
  publicKey(to: Reachable, target: Target, limits: LoginLimits | undefined): Promise<boolean>
  /** Counts and logs a failed proof. */
  failed(target: Target, method: string): void
  /** Prepares the leg to the device, because a login will soon need it. */
  prepare(to: Reachable): void
  /** The login, after an attempt was accepted. */
  outcome(): LoggedIn
}

/** The first version of agents that check that a public-key login comes from the server. */
const firstToCheckLogins = [0, 6, 0]

export function openLogin(
  parts: LoginParts,
  uid: string,
  source: string,
  log: Log,
  signal: AbortSignal,
): DeviceLogin {
  let leg: DeviceLeg | undefined
  let loggedIn: LoggedIn | undefined

  const legTo = (to: Reachable): DeviceLeg => (leg ??= deviceLeg(parts, to.device, uid, signal))
  const failed = ({ username, data }: Target, why: string): void => {
    parts.failures.take(neighbourhood(source))
    log.info({ event: 'login.refused', why, source, sshid: `${username}@${data}` })
  }

  const requireFewFailures = (): void => {
    if (parts.failures.peek(neighbourhood(source)) > 0) throw new LoginRefused('too many failures')
  }
  const refuseKey = ({ username, data }: Target, why: string): KeyDecision => {
    log.debug({ event: 'key.refused', why, source, sshid: `${username}@${data}` })
    return { allowed: false, because: why }
  }

  /** Asks the device; success creates the session's record. */
  async function logIn(
    to: Reachable,
    target: Target,
    method: string,
    limits: LoginLimits | undefined,
    ask: (leg: DeviceLeg) => Promise<boolean>,
  ): Promise<boolean> {
    let accepted: boolean
    try {
      accepted = await ask(legTo(to))
    } catch (error) {
      if (!(error instanceof DeviceUnreachable)) throw error
      log.warn({ event: 'device.away', device: to.device.uid, err: error })
      // An agent manages its own key. A device without an agent has an owner who can repair the host key.
      throw new LoginRefused(error.changed && to.device.enrolment_key !== null ? 'changed' : 'away')
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
    requireFewFailures,
    async find(target) {
      const to = await parts.logins.find(target.data)
      if (!to) throw new LoginRefused('unknown')
      if (!(await parts.findTunnel(to.device))) throw new LoginRefused('offline')
      if (!(await parts.logins.firewall(to, target.username, source))) throw new LoginRefused('firewall')
      if (!(await parts.logins.withinLimit(to))) throw new LoginRefused('over the limit')
      return to
    },
    async offered(target, key) {
      const verdict = await parts.logins.offered(target, source, key)
      return verdict.allowed ? verdict : refuseKey(target, verdict.because)
    },
    async key(to, target, key) {
      const verdict = await parts.logins.key(to, target.username, source, key)
      if (!verdict.allowed) return refuseKey(target, verdict.because)
      return checksLogins(to.device.info_version) ? verdict : refuseKey(target, 'The agent is too old.')
    },
    // Only passwords are throttled: a valid key must work although others behind the same address have
    // failed.
    async password(to, target, password) {
      requireFewFailures()
      return logIn(to, target, 'password', undefined, (device) => device.password(target.username, password))
    },
    publicKey: async (to, target, limits) =>
      logIn(to, target, 'publickey', limits, (device) => device.publicKey(target.username)),
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

/** Whether agents of this version check that a public-key login comes from the server. */
function checksLogins(version: string): boolean {
  const numbers = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)
  // Agents built from the newest sources say `latest`, or something else that is no version.
  if (!numbers) return true
  const [major, minor, patch] = numbers.slice(1).map(Number)
  const [a, b, c] = firstToCheckLogins
  return major! !== a! ? major! > a! : minor! !== b! ? minor! > b! : patch! >= c!
}

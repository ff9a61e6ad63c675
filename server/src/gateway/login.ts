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
import type { AcceptedProof, LoginReason, LoginRefusal, LoginReport, LoginReports } from './login-report.ts'
import { deviceLeg, DeviceUnreachable, type DeviceLeg, type DeviceLegParts } from './device-leg.ts'

export interface LoginParts extends DeviceLegParts {
  logins: Logins
  sessions: LiveSessions
  /** Limits refused passwords and keys of one source. */
  failures: Limiter
  /** What refused logins leave in the log. */
  reports: LoginReports
}

export interface LoggedIn {
  readonly target: Target
  readonly to: Reachable
  readonly leg: DeviceLeg
  readonly record: LiveSession
  readonly limits: LoginLimits | undefined
  readonly proof: AcceptedProof
}

export type RefusalReason = Extract<
  LoginReason,
  | 'unknown-device'
  | 'offline'
  | 'unreachable'
  | 'host-key-changed'
  | 'firewall'
  | 'device-limit'
  | 'rate-limited'
>

/** The login is refused, and further attempts are useless. */
export class LoginRefused extends Error {
  override readonly name = 'LoginRefused'
  readonly reason: RefusalReason
  /** The id of the firewall rule that refused. */
  readonly rule: string | undefined
  constructor(reason: RefusalReason, rule?: string) {
    super(reason)
    this.reason = reason
    this.rule = rule
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
  publicKey(to: Reachable, target: Target, key: LoginKey, limits: LoginLimits | undefined): Promise<boolean>
  /** Notes a refusal for the log. */
  refused(refusal: LoginRefusal): void
  /** The same for a failed proof, which also counts against its source. */
  failed(refusal: LoginRefusal): void
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
  report: LoginReport,
  log: Log,
  signal: AbortSignal,
): DeviceLogin {
  let leg: DeviceLeg | undefined
  let loggedIn: LoggedIn | undefined

  const legTo = (to: Reachable): DeviceLeg => (leg ??= deviceLeg(parts, to.device, uid, signal))
  const failed = (refusal: LoginRefusal): void => {
    parts.failures.take(neighbourhood(source))
    report.refused(refusal)
  }

  const requireFewFailures = (): void => {
    if (parts.failures.peek(neighbourhood(source)) > 0) throw new LoginRefused('rate-limited')
  }

  /** Asks the device; success creates the session's record. */
  async function logIn(
    to: Reachable,
    target: Target,
    { key, limits }: { key?: LoginKey; limits?: LoginLimits | undefined },
    ask: (leg: DeviceLeg) => Promise<boolean>,
  ): Promise<boolean> {
    const [method, refusal] = key
      ? (['publickey', 'device-refused'] as const)
      : (['password', 'password'] as const)
    let accepted: boolean
    try {
      accepted = await ask(legTo(to))
    } catch (error) {
      if (!(error instanceof DeviceUnreachable)) throw error
      log.warn({ event: 'device.away', device: to.device.uid, err: error })
      // An agent manages its own key. A device without an agent has an owner who can repair the host key.
      throw new LoginRefused(
        error.changed && to.device.enrolment_key !== null ? 'host-key-changed' : 'unreachable',
      )
    }
    if (!accepted) {
      failed({ reason: refusal, method, fingerprint: key?.sha256 })
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
    loggedIn = { target, to, leg: legTo(to), record, limits, proof: report.accepted(method, key?.sha256) }
    return true
  }

  return {
    requireFewFailures,
    async find(target) {
      const to = await parts.logins.find(target.data)
      if (!to) throw new LoginRefused('unknown-device')
      report.found(to)
      if (!(await parts.findTunnel(to.device))) throw new LoginRefused('offline')
      const { allowed, rule } = await parts.logins.firewall(to, target.username, source)
      if (!allowed) throw new LoginRefused('firewall', rule ?? undefined)
      if (!(await parts.logins.withinLimit(to))) throw new LoginRefused('device-limit')
      return to
    },
    offered: (target, key) => parts.logins.offered(target, source, key),
    async key(to, target, key) {
      const verdict = await parts.logins.key(to, target.username, source, key)
      if (!verdict.allowed || checksLogins(to.device.info_version)) return verdict
      return { allowed: false, reason: 'old-agent', because: 'The agent is too old.' }
    },
    // Only passwords are throttled: a valid key must work although others behind the same address have
    // failed.
    async password(to, target, password) {
      requireFewFailures()
      return logIn(to, target, {}, (device) => device.password(target.username, password))
    },
    publicKey: async (to, target, key, limits) =>
      logIn(to, target, { key, limits }, (device) => device.publicKey(target.username)),
    refused: report.refused,
    failed,
    prepare: (to) => legTo(to).prepare(),
    outcome() {
      if (!loggedIn) throw new Error('Nobody is logged in yet.')
      return loggedIn
    },
    [Symbol.dispose]() {
      leg?.end()
      loggedIn?.record.finish()
      report[Symbol.dispose]()
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

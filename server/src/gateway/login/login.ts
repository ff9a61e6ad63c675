// One login to a device, by an SSH client or by a browser. Every attempt is judged anew: which device,
// whether it is online, whether the firewall admits the caller, and whether the proof is valid. The device
// checks passwords; the namespace's keys are checked here. No session record is written for a caller without a proof.
// The caller of this module words the refusals. While the database is away, a login waits for it for a few
// seconds.
import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '@hawser/contract/failures'
import { ping_ms, pong_ms } from '@hawser/contract/tunnel'
import { unknownPerson, type SessionPerson, type SessionOrigin } from '@hawser/contract/sessions'
import type { LiveSessions } from '../../domain/sessions/live-sessions.ts'
import type {
  AcceptedKey,
  KeyDecision,
  LoginKey,
  Logins,
  Reachable,
  Target,
} from '../../domain/access/logins.ts'
import { keyRefusals } from '@hawser/contract/logins'
import { neighbourhood } from '../../kit/address.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { Log } from '../../kit/log.ts'
import type { LoginReason, LoginRefusal, LoginReport, LoginReports } from './login-report.ts'
import {
  deviceLeg,
  DeviceUnreachable,
  type DeviceLeg,
  type DeviceLegParts,
  type KeyAnswer,
} from '../device/device-leg.ts'
import type { LoggedIn } from '../channels/logged-in.ts'
import type { PasswordGuesses } from './guesses.ts'

export interface LoginParts extends DeviceLegParts {
  clock: Clock
  logins: Logins
  sessions: LiveSessions
  failures: Limiter
  guesses: PasswordGuesses
  reports: LoginReports
}

export interface LoginOrigin {
  readonly via: SessionOrigin
  /** Who is signed in at the client; undefined: the owner of the key. */
  readonly person?: SessionPerson | undefined
  readonly client: string
}

export type RefusalReason = Extract<
  LoginReason,
  | 'unknown-device'
  | 'offline'
  | 'unreachable'
  | 'host-key-changed'
  | 'firewall'
  | 'device-limit'
  | 'person-required'
  | 'rate-limited'
  | 'unavailable'
>

/** The login is refused, and further attempts are useless. */
export class LoginRefused extends Error {
  override readonly name = 'LoginRefused'
  readonly reason: RefusalReason
  readonly rule: string | undefined
  /** How soon the device comes back, when another node that has its tunnel does not respond. */
  readonly back_s: number | undefined
  constructor(reason: RefusalReason, about: { rule?: string | undefined; back_s?: number } = {}) {
    super(reason)
    this.reason = reason
    this.rule = about.rule
    this.back_s = about.back_s
  }
}

/** How long a question waits for a database that is away, and the pause before it is repeated. */
const patience_ms = 5_000
const again_ms = 500

export const uncheckable = 'The service cannot check logins right now; try again in a moment'

/** Repeats the question while the database is away, for a limited time. */
export async function patiently<T>(clock: Clock, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (const until = clock.now() + patience_ms; ;) {
    try {
      return await ask()
    } catch (error) {
      const isAway = error instanceof Failure && error.kind === 'unavailable'
      if (!isAway || signal.aborted || clock.now() >= until) throw error
    }
    await pause(again_ms, undefined, { ref: false })
  }
}

/** An agent whose ping is not answered opens a new tunnel within this time. */
const reconnect_s = 10
const comesBack_s = (ping_s: number): number => (ping_s || ping_ms / 1_000) + pong_ms / 1_000 + reconnect_s

export interface DeviceLogin extends Disposable {
  /** Throws LoginRefused for a source with too many failures, before anything is looked up. */
  requireFewFailures(): void
  /** Throws LoginRefused unless the device is online and this caller may reach it. */
  find(target: Target): Promise<Reachable>
  /** Whether the namespace has the key, whether or not the device exists. */
  offered(target: Target, key: LoginKey): Promise<KeyDecision>
  /** Whether a key may log in, without logging in. */
  key(to: Reachable, target: Target, key: LoginKey): Promise<KeyDecision>
  /** Throws LoginRefused. */
  password(to: Reachable, target: Target, password: string): Promise<boolean>
  /** For a caller who has proved to have a valid key. Throws LoginRefused. */
  publicKey(to: Reachable, target: Target, key: LoginKey, verdict: AcceptedKey): Promise<KeyAnswer>
  /** Whether the namespace requires an identified person, and neither the client nor the key names one. */
  lacksPerson(to: Reachable, verdict: AcceptedKey | undefined): Promise<boolean>
  refused(refusal: LoginRefusal): void
  /** Notes a failed proof, which also counts against its source. */
  failed(refusal: LoginRefusal): void
  /** Notes a refused password, whether or not a device has judged it. */
  wrong(target: Target, password: string, refusal: Omit<LoginRefusal, 'method'>): void
  /** Opens the leg to the device, because a login will soon need it. */
  prepare(to: Reachable): void
  outcome(): LoggedIn
}

export function openLogin(
  parts: LoginParts,
  uid: string,
  source: string,
  /** The facts about the login as they are now; read again when an attempt is accepted. */
  origin: (to: Reachable) => Promise<LoginOrigin>,
  report: LoginReport,
  log: Log,
  signal: AbortSignal,
): DeviceLogin {
  let leg: DeviceLeg | undefined
  let loggedIn: LoggedIn | undefined

  const legTo = (to: Reachable): DeviceLeg =>
    (leg ??= deviceLeg({ ...parts, grace_s: to.namespace.reconnect_grace_s }, to.device, uid, signal))
  const failed = (refusal: LoginRefusal): void => {
    parts.failures.take(neighbourhood(source))
    report.refused(refusal)
  }
  const wrong: DeviceLogin['wrong'] = ({ username, data }, password, about) => {
    const refusal = { ...about, method: 'password' } as const
    const counts = parts.guesses.counts(neighbourhood(source), `${username}@${data}`, password)
    if (counts) failed(refusal)
    else report.refused(refusal)
  }

  const ask = <T>(question: () => Promise<T>): Promise<T> => patiently(parts.clock, signal, question)

  /** Throws LoginRefused when this node cannot find out, or when the node that has the tunnel is silent. */
  const tunnelTo = async ({ device }: Reachable): Promise<unknown> =>
    parts.findTunnel(device).catch((error: unknown) => {
      if (error instanceof Failure) throw new LoginRefused('unavailable')
      throw new LoginRefused('unreachable', { back_s: comesBack_s(device.ping_s) })
    })

  const requireFewFailures = (): void => {
    if (parts.failures.peek(neighbourhood(source)) > 0) throw new LoginRefused('rate-limited')
  }

  /** The person signed in at the client, or else the owner of the key. */
  const personOf = (from: LoginOrigin, verdict: AcceptedKey | undefined): SessionPerson =>
    from.person ?? verdict?.person ?? unknownPerson
  const lacksPerson = async (to: Reachable, verdict: AcceptedKey | undefined): Promise<boolean> =>
    to.namespace.require_person === 1 && personOf(await origin(to), verdict).kind === 'unknown'

  /** Asks the device; success creates the session's record. */
  async function logIn(
    to: Reachable,
    target: Target,
    shown: { readonly key: LoginKey; readonly verdict: AcceptedKey } | undefined,
    ask: (leg: DeviceLeg) => Promise<KeyAnswer>,
  ): Promise<KeyAnswer> {
    const { key, verdict } = shown ?? {}
    // A key is proof of something; a password is not until the device has accepted it.
    if (key && (await lacksPerson(to, verdict))) throw new LoginRefused('person-required')
    let answer: KeyAnswer
    try {
      answer = await ask(legTo(to))
    } catch (error) {
      if (!(error instanceof DeviceUnreachable)) throw error
      log.warn({ event: 'device.away', device: to.device.uid, err: error })
      // An agent manages its own key. A device without an agent has an owner who can repair the host key.
      throw new LoginRefused(
        error.changed && to.device.enrolment_key !== null ? 'host-key-changed' : 'unreachable',
      )
    }
    if (answer !== 'accepted') {
      const detail = answer === 'no account' ? keyRefusals['no-account'] : undefined
      if (key) failed({ reason: 'device-refused', method: 'publickey', fingerprint: key.sha256, detail })
      return answer
    }
    const method = key ? 'publickey' : 'password'
    // Read now: the client may have waited, and the device may have been slow.
    const from = await origin(to)
    const { via, client } = from
    const person = personOf(from, verdict)
    if (to.namespace.require_person === 1 && person.kind === 'unknown')
      throw new LoginRefused('person-required')
    const { tenant_id, uid: device_uid } = to.device
    const record = await parts.sessions.begin({
      uid,
      tenant_id,
      device_uid,
      username: target.username,
      ip_address: source,
      person,
      via,
      method: key?.certificate ? 'certificate' : method,
      ...(key && verdict ? { key: { fingerprint: key.sha256, name: verdict.name } } : {}),
      client,
    })
    const proof = report.accepted(method, key?.sha256)
    const registered = (key?.certificate?.authority ?? key)?.fingerprint
    const limits = verdict?.limits
    loggedIn = { target, to, leg: legTo(to), record, limits, proof, person, via, key: registered }
    return answer
  }

  return {
    requireFewFailures,
    async find(target) {
      const to = await ask(() => parts.logins.find(target.data))
      if (!to) throw new LoginRefused('unknown-device')
      report.found(to)
      if (!(await tunnelTo(to))) throw new LoginRefused('offline')
      const { allowed, rule } = await ask(() => parts.logins.firewall(to, target.username, source))
      if (!allowed) throw new LoginRefused('firewall', { rule: rule ?? undefined })
      if (!(await ask(() => parts.logins.withinLimit(to)))) throw new LoginRefused('device-limit')
      return to
    },
    offered: (target, key) => ask(() => parts.logins.offered(target, source, key)),
    key: (to, target, key) => ask(() => parts.logins.key(to, target.username, source, key)),
    // Only passwords are throttled: a valid key must work although others behind the same address have
    // failed.
    async password(to, target, password) {
      requireFewFailures()
      const answer = await logIn(to, target, undefined, async (device) =>
        (await device.password(target.username, password)) ? 'accepted' : 'refused',
      )
      if (answer !== 'accepted') wrong(target, password, { reason: 'password' })
      return answer === 'accepted'
    },
    publicKey: async (to, target, key, verdict) =>
      logIn(to, target, { key, verdict }, (device) => device.publicKey(target.username)),
    lacksPerson,
    refused: report.refused,
    failed,
    wrong,
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

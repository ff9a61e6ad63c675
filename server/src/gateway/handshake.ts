// Who is at the door. The client's user name says which device is meant; every attempt after that is judged alone: is the
// device there, does the firewall let this caller through, and is this very proof good. Passwords are the device's to
// judge, keys the namespace's. Nothing is written for somebody who has proved nothing, and what does not exist, is not
// accepted or is offline is answered with the same words.
// While a person types a password the leg to the device is made ready, within narrow limits; see decision 12.
import {
  fingerprintMd5,
  judgeCertificate,
  Reason,
  SshError,
  type Attempt,
  type Certificate,
  type Decision,
  type ShownKey,
} from '@hawser/ssh'
import type { LiveSession, LiveSessions } from '../domain/live-sessions.ts'
import type { KeyVerdict, LoginKey, LoginLimits, Logins, Reachable, Target } from '../domain/logins.ts'
import { neighbourhood } from '../kit/address.ts'
import type { Limiter } from '../kit/limiter.ts'
import type { Log } from '../kit/log.ts'
import { DeviceAway, innerLeg, type InnerLeg, type InnerParts } from './inner.ts'

export interface HandshakeParts extends InnerParts {
  logins: Logins
  parseTarget(sshid: string): Target | undefined
  sessions: LiveSessions
  /** Refused passwords and keys of one source. */
  failures: Limiter
  /** Legs made ready before anybody proved anything, of one source. */
  guesses: Limiter
}

export interface Handshake extends Disposable {
  authenticate(attempt: Attempt): Promise<Decision>
  /** After an attempt was accepted. */
  outcome(): LoggedIn
}

export interface LoggedIn {
  readonly target: Target
  readonly to: Reachable
  readonly leg: InnerLeg
  readonly record: LiveSession
  readonly limits: LoginLimits | undefined
}

/** A client that says nothing for so long waits for a person. */
const typing_ms = 150
/** From this version on agents check that a public-key login comes from the server. */
const checksLogins = [0, 6, 0]

export function handshake(parts: HandshakeParts, uid: string, source: string, log: Log, signal: AbortSignal): Handshake {
  let target: Target | undefined
  let reachable: Reachable | undefined
  let leg: InnerLeg | undefined
  let loggedIn: LoggedIn | undefined
  let typing: NodeJS.Timeout | undefined

  /** The client reads the sentence and is let go: asking for a password would be of no use. */
  function turnAway(attempt: Attempt, why: string, sentence: string): never {
    log.info({ event: 'login.refused', why, source, sshid: attempt.user })
    attempt.banner(`${sentence}\n`)
    throw new SshError(Reason.noMoreAuthMethods, sentence)
  }

  async function find(attempt: Attempt): Promise<Reachable> {
    reachable = undefined
    target = parts.parseTarget(attempt.user)
    if (!target) turnAway(attempt, 'not an SSHID', `${printable(attempt.user)} is not a valid SSHID`)
    const away = `${printable(target.data)} is offline or cannot be reached`
    const to = await parts.logins.find(target.data)
    if (!to || !(await parts.find(to.device))) turnAway(attempt, to ? 'offline' : 'unknown', away)
    if (!(await parts.logins.firewall(to, target.username, source)))
      turnAway(attempt, 'firewall', `you cannot access ${printable(target.data)} due a policy rule`)
    if (!(await parts.logins.withinLimit(to)))
      turnAway(attempt, 'over the limit', 'the namespace has more devices than it may have; its owner has to choose some or to subscribe')
    return (reachable = to)
  }

  const legTo = (to: Reachable): InnerLeg => (leg ??= innerLeg(parts, to.device, uid, signal))

  /** The device's word is asked for; success makes the session's record. */
  async function enter(attempt: Attempt, to: Reachable, limits: LoginLimits | undefined, ask: (leg: InnerLeg) => Promise<boolean>) {
    if (parts.failures.peek(neighbourhood(source)) > 0)
      turnAway(attempt, 'too many failures', 'Too many failed attempts from your address; wait a while.')
    let accepted: boolean
    try {
      accepted = await ask(legTo(to))
    } catch (error) {
      if (!(error instanceof DeviceAway)) throw error
      log.warn({ event: 'device.away', device: to.device.uid, err: error })
      return turnAway(attempt, 'away', `${printable(target!.data)} is offline or cannot be reached`)
    }
    if (!accepted) {
      parts.failures.take(neighbourhood(source))
      log.info({ event: 'login.refused', why: attempt.method, source, sshid: attempt.user })
      return 'refuse'
    }
    const record = await parts.sessions.begin({
      uid,
      tenant_id: to.device.tenant_id,
      device_uid: to.device.uid,
      username: target!.username,
      ip_address: source,
    })
    loggedIn = { target: target!, to, leg: legTo(to), record, limits }
    return 'accept'
  }

  async function judge(attempt: Attempt): Promise<Decision> {
    const to = await find(attempt)
    const { username } = target!
    if (attempt.method === 'password') return enter(attempt, to, undefined, (inner) => inner.password(username, attempt.password))
    if (attempt.method !== 'publickey' && attempt.method !== 'publickey-offer') return 'refuse'
    const verdict = await parts.logins.key(to, username, source, loginKey(attempt.key))
    if (!verdict.allowed || !vouchable(to.device.info_version)) {
      log.debug({ event: 'key.refused', why: verdict.allowed ? 'the agent is too old' : verdict.because, source, sshid: attempt.user })
      return 'refuse'
    }
    // Merely offered: the client now has to sign, and until then nothing happens.
    if (attempt.method === 'publickey-offer') return 'accept'
    return enter(attempt, to, verdict.limits, (inner) => inner.vouch(username))
  }

  return {
    async authenticate(attempt) {
      clearTimeout(typing)
      const decision = await judge(attempt)
      const to = reachable
      if (decision !== 'accept' && to && parts.guesses.take(neighbourhood(source)) === 0)
        typing = setTimeout(() => legTo(to).prepare(), typing_ms).unref()
      return decision
    },
    outcome() {
      if (!loggedIn) throw new Error('Nobody is logged in yet.')
      return loggedIn
    },
    [Symbol.dispose]() {
      clearTimeout(typing)
      leg?.end()
      loggedIn?.record.finish()
    },
  }
}

function loginKey({ type, bits, blob, certificate }: ShownKey): LoginKey {
  return {
    type,
    bits,
    fingerprint: fingerprintMd5(blob),
    certificate: certificate && {
      authority: fingerprintMd5(certificate.authority),
      judge: (use) => verdictOf(certificate, judgeCertificate(certificate, { ...use, kind: 'user', authorities: [certificate.authority] })),
    },
  }
}

function verdictOf(certificate: Certificate, judged: ReturnType<typeof judgeCertificate>): KeyVerdict {
  if (!judged.allowed) return judged
  return { allowed: true, limits: { forceCommand: judged.forceCommand, permits: new Set(certificate.extensions.keys()) } }
}

function vouchable(version: string): boolean {
  const numbers = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)
  // `latest` and what cannot be read: agents that were built from the newest sources.
  if (!numbers) return true
  const [major, minor, patch] = numbers.slice(1).map(Number)
  const [a, b, c] = checksLogins
  return major! !== a! ? major! > a! : minor! !== b! ? minor! > b! : patch! >= c!
}

/** What strangers typed, fit for a terminal. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 300)
}

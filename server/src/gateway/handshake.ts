// Who is at the SSH door. The client's user name says which device is meant; every attempt after that is a login of its own
// (see login.ts). What does not exist, is not accepted or is offline is answered with the same words, and the client is let
// go: asking for a password would be of no use.
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
import type { KeyVerdict, LoginKey, Reachable, Target } from '../domain/logins.ts'
import { neighbourhood } from '../kit/address.ts'
import type { Limiter } from '../kit/limiter.ts'
import type { Log } from '../kit/log.ts'
import { openLogin, TurnedAway, type LoggedIn, type LoginParts, type WhyAway } from './login.ts'

export interface HandshakeParts extends LoginParts {
  parseTarget(sshid: string): Target | undefined
  /** Legs made ready before anybody proved anything, of one source. */
  guesses: Limiter
}

export interface Handshake extends Disposable {
  authenticate(attempt: Attempt): Promise<Decision>
  /** After an attempt was accepted. */
  outcome(): LoggedIn
}

/** A client that says nothing for so long waits for a person. */
const typing_ms = 150

export function handshake(parts: HandshakeParts, uid: string, source: string, log: Log, signal: AbortSignal): Handshake {
  const login = openLogin(parts, uid, source, log, signal)
  let reachable: Reachable | undefined
  let typing: NodeJS.Timeout | undefined

  /** The client reads the sentence and is let go. */
  function turnAway(attempt: Attempt, why: string, sentence: string): never {
    log.info({ event: 'login.refused', why, source, sshid: attempt.user })
    attempt.banner(`${sentence}\n`)
    throw new SshError(Reason.noMoreAuthMethods, sentence)
  }

  async function judge(attempt: Attempt, target: Target): Promise<Decision> {
    const to = (reachable = await login.find(target))
    if (attempt.method === 'password') return decision(await login.password(to, target, attempt.password))
    if (attempt.method !== 'publickey' && attempt.method !== 'publickey-offer') return 'refuse'
    const verdict = await login.key(to, target, loginKey(attempt.key))
    if (!verdict.allowed) return 'refuse'
    // Merely offered: the client now has to sign, and until then nothing happens.
    if (attempt.method === 'publickey-offer') return 'accept'
    const accepted = await login.vouch(to, target, verdict.limits)
    if (!accepted && to.device.enrolment_key !== null)
      attempt.banner(`${printable(target.data)} does not take the login key of its namespace for ${printable(target.username)}\n`)
    return decision(accepted)
  }

  return {
    async authenticate(attempt) {
      clearTimeout(typing)
      reachable = undefined
      const target = parts.parseTarget(attempt.user)
      if (!target) turnAway(attempt, 'not an SSHID', `${printable(attempt.user)} is not a valid SSHID`)
      const judged = await judge(attempt, target).catch((error: unknown) => {
        if (error instanceof TurnedAway) return turnAway(attempt, error.why, sentences[error.why](printable(target.data)))
        throw error
      })
      const to = reachable
      if (judged !== 'accept' && to && parts.guesses.take(neighbourhood(source)) === 0)
        typing = setTimeout(() => login.prepare(to), typing_ms).unref()
      return judged
    },
    outcome: () => login.outcome(),
    [Symbol.dispose]() {
      clearTimeout(typing)
      login[Symbol.dispose]()
    },
  }
}

const away = (name: string): string => `${name} is offline or cannot be reached`
const sentences: Readonly<Record<WhyAway, (name: string) => string>> = {
  unknown: away,
  offline: away,
  away,
  changed: (name) => `${name} does not have the host key that it joined with, and was told nothing`,
  firewall: (name) => `you cannot access ${name} due a policy rule`,
  'over the limit': () => 'the namespace has more devices than it may have; its owner has to choose some or to subscribe',
  'too many failures': () => 'Too many failed attempts from your address; wait a while.',
}

const decision = (accepted: boolean): Decision => (accepted ? 'accept' : 'refuse')

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

/** What strangers typed, fit for a terminal. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 300)
}

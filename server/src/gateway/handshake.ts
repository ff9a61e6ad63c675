// Who is at the SSH door. The client's user name says which device is meant; every attempt after that is a
// login of its own (see login.ts). Whoever has proved nothing gets the same answers at the same times for a
// device that is there, that is offline, pending or denied to them, and for one that does not exist. Whoever
// has signed with a key of the namespace is told what is the matter, and let go. While a person types a
// password the leg to the device is made ready, within narrow limits; see decision 12. Clients that expect
// PAM ask for keyboard-interactive: one question, and its answer is a password like any other.
import { setTimeout as pause } from 'node:timers/promises'
import {
  fingerprintMd5,
  judgeCertificate,
  parsePublicKeyBlob,
  publicKeyLine,
  Reason,
  SshError,
  type Attempt,
  type Certificate,
  type Decision,
  type ShownKey,
} from '@hawser/ssh'
import type { KeyName, KeyVerdict, LoginKey, Target } from '../domain/access/logins.ts'
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
  /** The client came with a signature that is not one of its key. */
  forged(user: string): void
  /** After an attempt was accepted. */
  outcome(): LoggedIn
}

/** A client that says nothing for so long waits for a person. */
const typing_ms = 150

/** When a refused password is answered; one that took longer at twice, four times … that time. */
const refusal_ms = 1_000

export function handshake(
  parts: HandshakeParts,
  uid: string,
  source: string,
  log: Log,
  signal: AbortSignal,
): Handshake {
  const login = openLogin(parts, uid, source, log, signal)
  let typing: NodeJS.Timeout | undefined
  let toldWhy = false
  let keyFailed = false

  /** The client reads the sentence and is let go. */
  function turnAway(attempt: Attempt, why: string, sentence: string): never {
    log.info({ event: 'login.refused', why, source, sshid: attempt.user })
    attempt.banner(`${sentence}\n`)
    throw new SshError(Reason.noMoreAuthMethods, sentence)
  }

  /**
   * The device's word on a password; where there is no device to ask, or the caller may not, the password is
   * wrong.
   */
  async function isRight(target: Target, password: string): Promise<boolean> {
    try {
      return await login.password(await login.find(target), target, password)
    } catch (error) {
      if (!(error instanceof TurnedAway) || error.why === 'too many failures') throw error
      login.failed(target, error.why)
      return false
    }
  }

  async function judgePassword(attempt: Attempt, target: Target, password: string): Promise<Decision> {
    const asked_at = performance.now()
    login.patient()
    if (await isRight(target, password)) return 'accept'
    let due_ms = refusal_ms
    while (due_ms < performance.now() - asked_at) due_ms *= 2
    await pause(due_ms - (performance.now() - asked_at), undefined, { ref: false })
    if (!toldWhy)
      attempt.banner(
        `${printable(target.data)} is offline or cannot be reached, or does not let you in with this password\n`,
      )
    toldWhy = true
    return 'refuse'
  }

  /** Clients try all keys that they have: the first that is refused counts, for the connection. */
  function refuseKey(target: Target, why: string): Decision {
    if (!keyFailed) login.failed(target, why)
    keyFailed = true
    return 'refuse'
  }

  async function judgeKey(attempt: Attempt & { method: 'publickey' }, target: Target): Promise<Decision> {
    const key = loginKey(attempt.key)
    const offered = await login.offered(target, key)
    if (!offered.allowed) return refuseKey(target, offered.because)
    // Whoever has a key of the namespace may know what is the matter with its devices.
    const to = await login.find(target)
    const verdict = await login.key(to, target, key)
    if (!verdict.allowed) return refuseKey(target, verdict.because)
    const accepted = await login.vouch(to, target, verdict.limits)
    if (!accepted && to.device.enrolment_key !== null)
      attempt.banner(
        `${printable(target.data)} does not take the login key of its namespace for ${printable(target.username)}\n`,
      )
    return decision(accepted)
  }

  async function judge(attempt: Attempt, target: Target): Promise<Decision> {
    if (attempt.method === 'password') return judgePassword(attempt, target, attempt.password)
    if (attempt.method === 'keyboard-interactive') {
      prepareSoon(target)
      const [password = ''] = await attempt.ask([{ text: 'Password: ', echo: false }])
      clearTimeout(typing)
      return judgePassword(attempt, target, password)
    }
    if (attempt.method === 'publickey') return judgeKey(attempt, target)
    // Merely offered: the client now has to sign, and until then nothing happens.
    if (attempt.method === 'publickey-offer')
      return decision((await login.offered(target, loginKey(attempt.key))).allowed)
    return 'refuse'
  }

  const prepare = async (target: Target): Promise<void> => {
    // What cannot be reached, or may not be, is made known when somebody has proved something.
    const to = await login.find(target).catch(() => undefined)
    if (to && !signal.aborted) login.prepare(to)
  }

  /** Whoever types now will need the leg soon. */
  const prepareSoon = (target: Target): void => {
    if (parts.guesses.take(neighbourhood(source)) === 0)
      typing = setTimeout(() => void prepare(target), typing_ms).unref()
  }

  return {
    async authenticate(attempt) {
      clearTimeout(typing)
      const target = parts.parseTarget(attempt.user)
      if (!target) turnAway(attempt, 'not an SSHID', `${printable(attempt.user)} is not a valid SSHID`)
      const judged = await judge(attempt, target).catch((error: unknown) => {
        if (error instanceof TurnedAway)
          return turnAway(attempt, error.why, sentences[error.why](printable(target.data)))
        throw error
      })
      if (judged !== 'accept') prepareSoon(target)
      return judged
    },
    forged: (user) =>
      void refuseKey(
        parts.parseTarget(user) ?? { username: user, data: '' },
        'The signature is not one of the key.',
      ),
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
  'over the limit': () =>
    'the namespace has more devices than it may have; its owner has to choose some or to subscribe',
  'too many failures': () => 'Too many failed attempts from your address; wait a while.',
}

const decision = (accepted: boolean): Decision => (accepted ? 'accept' : 'refuse')

function loginKey({ type, bits, blob, certificate }: ShownKey): LoginKey {
  return {
    type,
    bits,
    ...keyName(type, blob),
    certificate: certificate && {
      authority: keyName(parsePublicKeyBlob(certificate.authority).type, certificate.authority),
      judge: (use) =>
        verdictOf(
          certificate,
          judgeCertificate(certificate, { ...use, kind: 'user', authorities: [certificate.authority] }),
        ),
    },
  }
}

/** What a public key is found by, and compared with. */
export function keyName(type: string, blob: Buffer): KeyName {
  return { fingerprint: fingerprintMd5(blob), line: publicKeyLine(type, blob) }
}

function verdictOf(certificate: Certificate, judged: ReturnType<typeof judgeCertificate>): KeyVerdict {
  if (!judged.allowed) return judged
  return {
    allowed: true,
    limits: { forceCommand: judged.forceCommand, permits: new Set(certificate.extensions.keys()) },
  }
}

/** What strangers typed, fit for a terminal. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 300)
}

// The authentication of an SSH client. The user name says which device is meant; every attempt is a login of
// its own (see login.ts). Online, offline, pending, denied and unknown devices give the same answers at the
// same times to a client that has proved nothing, so that strangers cannot tell them apart. A client that has
// signed with a key of the namespace gets the reason and is disconnected. While a person types a password the
// gateway prepares the leg to the device, within narrow limits; see decision 12. Clients that expect PAM use
// keyboard-interactive: it asks one question, and the answer is a password like any other. A client may first
// show an identity certificate, which says who is signed in there; it proves no right to log in.
import { setTimeout as pause } from 'node:timers/promises'
import {
  fingerprintMd5,
  fingerprintSha256,
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
import { Failure } from '@hawser/contract/failures'
import { longestClient, type SessionPerson } from '@hawser/contract/sessions'
import type { IdentityClaims, IdentityReader } from '../domain/access/identity-certificates.ts'
import type {
  CertificateDecision,
  KeyName,
  LoginKey,
  Reachable,
  RefusedKey,
  Target,
} from '../domain/access/logins.ts'
import { neighbourhood } from '../kit/address.ts'
import type { Limiter } from '../kit/limiter.ts'
import { safeText, type Log } from '../kit/log.ts'
import type { IdentityCertificates } from './identity-certificates.ts'
import type { LoginMethod, LoginReason, LoginRefusal } from './login-report.ts'
import {
  LoginRefused,
  openLogin,
  patiently,
  uncheckable,
  type LoggedIn,
  type LoginOrigin,
  type LoginParts,
  type RefusalReason,
} from './login.ts'

export interface HandshakeParts extends LoginParts {
  parseTarget(sshid: string): Target | undefined
  /** Reads certificates that say who is signed in at the client. */
  identities: Pick<IdentityCertificates, 'isOwn' | 'read'> & IdentityReader
  /** Limits the legs that are prepared for one source before it has proved anything. */
  preparations: Limiter
  /** Whether this node cannot ask the others which devices they have. */
  isCutOff(): boolean
}

export interface Handshake extends Disposable {
  authenticate(attempt: Attempt): Promise<Decision>
  /** The client sent a signature that this key did not make. */
  forged(user: string, key: ShownKey): void
  /** The login, after an attempt was accepted. */
  outcome(): LoggedIn
}

/** The methods that the server lists to the client. */
export const methods: readonly string[] = ['password', 'publickey', 'keyboard-interactive']
const uncounted: Decision = { refuse: methods, uncounted: true }

/** A client that sends nothing for so long waits for a person. */
const typing_ms = 150

/** A refused password is answered after this time, or after twice, four times … if the check took longer. */
const refusal_ms = 1_000

export function handshake(
  parts: HandshakeParts,
  uid: string,
  source: string,
  log: Log,
  signal: AbortSignal,
): Handshake {
  const report = parts.reports.open({ source, via: 'ssh' })
  /** How the client identifies itself, from the first attempt on. */
  let client = ''
  /**
   * The claim of an identity certificate of this connection, and the key that it is for. It may cease to hold
   * before the login.
   */
  let named: { readonly claim: IdentityClaims; readonly key: Buffer } | undefined
  const personOf = async (claim: IdentityClaims): Promise<SessionPerson | undefined> =>
    patiently(parts.clock, signal, () => parts.identities.personOf(claim))
  const origin = async ({ device }: Reachable): Promise<LoginOrigin> => {
    const person = named?.claim.tenant_id === device.tenant_id ? await personOf(named.claim) : undefined
    return { via: person ? 'cli' : 'ssh', person, client }
  }
  const login = openLogin(parts, uid, source, origin, report, log, signal)
  let typing: NodeJS.Timeout | undefined
  let bannerSent = false
  let keyFailed = false

  /** Everybody who is refused gets a reference, whatever the reason: only administrators can look it up. */
  const withReference = (sentence: string): string => `${sentence} (reference ${report.reference()})`

  /** Sends the sentence to the client and disconnects it. */
  function disconnect(attempt: Attempt, reason: LoginReason, sentence: string, rule?: string): never {
    const fingerprint = 'key' in attempt ? fingerprintSha256(attempt.key.blob) : undefined
    report.refused({ reason, rule, fingerprint, method: methodOf(attempt) })
    const referenced = withReference(sentence)
    attempt.banner(`${referenced}\n`)
    throw new SshError(Reason.noMoreAuthMethods, referenced)
  }

  /**
   * Whether the device accepts the password; without a reachable, permitted device the password is wrong.
   * Throws LoginRefused when the client may know the reason.
   */
  async function isRight(target: Target, password: string): Promise<boolean> {
    try {
      return await login.password(await login.find(target), target, password)
    } catch (error) {
      if (!(error instanceof LoginRefused) || toldReasons.has(error.reason)) throw error
      login.wrong(target, password, { reason: error.reason, rule: error.rule })
      return false
    }
  }

  async function judgePassword(attempt: Attempt, target: Target, password: string): Promise<Decision> {
    const asked_at = performance.now()
    login.requireFewFailures()
    if (await isRight(target, password)) return 'accept'
    let due_ms = refusal_ms
    while (due_ms < performance.now() - asked_at) due_ms *= 2
    await pause(due_ms - (performance.now() - asked_at), undefined, { ref: false })
    if (!bannerSent) attempt.banner(`${withReference(notLetIn(printable(target.data)))}\n`)
    bannerSent = true
    return 'refuse'
  }

  /** The same words for every name, whether or not there is such a device. */
  const notLetIn = (name: string): string =>
    parts.isCutOff()
      ? `${name} may be on a server node that cannot be reached right now, or does not let you in with this password`
      : `${name} is offline or cannot be reached, or does not let you in with this password`

  /** Clients try all their keys, so only the first refused key of a connection counts as a failure. */
  function refuseKey({ sha256: fingerprint }: Pick<LoginKey, 'sha256'>, why: ProofRefused): Decision {
    const refusal = refusalOf(why, fingerprint)
    if (keyFailed) login.refused(refusal)
    else login.failed(refusal)
    keyFailed = true
    return 'refuse'
  }

  async function judgeKey(attempt: Attempt & { method: 'publickey' }, target: Target): Promise<Decision> {
    const key = loginKey(attempt.key)
    const offered = await login.offered(target, key)
    if (!offered.allowed) return refuseKey(key, offered)
    // The holder of a key of the namespace may know why its devices cannot be reached.
    const to = await login.find(target)
    const verdict = await login.key(to, target, key)
    if (!verdict.allowed) return refuseKey(key, verdict)
    if (await login.lacksPerson(to, verdict)) {
      // Another key of the client may have an owner.
      if (!bannerSent) attempt.banner(`${sentences['person-required'](printable(target.data))}\n`)
      bannerSent = true
      login.refused({
        reason: 'person-required',
        method: 'publickey',
        fingerprint: key.sha256,
        rule: verdict.name,
      })
      return 'refuse'
    }
    const answer = await login.publicKey(to, target, key, verdict)
    const [name, user] = [printable(target.data), printable(target.username)]
    if (answer === 'no account')
      attempt.banner(`${withReference(`${name} has no account ${user}, or it has no home folder there`)}\n`)
    else if (answer === 'refused' && to.device.enrolment_key !== null)
      attempt.banner(`${withReference(`${name} does not take the login key of its namespace for ${user}`)}\n`)
    return answer === 'accepted' ? 'accept' : 'refuse'
  }

  /** Notes whom the certificate names. The client then goes on with what lets it in. */
  async function identify(
    method: 'publickey' | 'publickey-offer',
    { blob }: ShownKey,
    certificate: Certificate,
  ): Promise<Decision> {
    // After a success in part OpenSSH tries all its keys once more.
    if (named) return uncounted
    const claim = parts.identities.read(certificate)
    if (!claim || !(await personOf(claim))) return 'refuse'
    if (method === 'publickey-offer') return 'accept'
    named = { claim, key: blob }
    return { partial: methods }
  }

  async function judge(attempt: Attempt, target: Target): Promise<Decision> {
    if ('key' in attempt && attempt.key.certificate && parts.identities.isOwn(attempt.key.certificate))
      return identify(attempt.method, attempt.key, attempt.key.certificate)
    if (attempt.method === 'password') return judgePassword(attempt, target, attempt.password)
    if (attempt.method === 'keyboard-interactive') {
      prepareSoon(target)
      const [password = ''] = await attempt.ask([{ text: 'Password: ', echo: false }])
      clearTimeout(typing)
      return judgePassword(attempt, target, password)
    }
    if (attempt.method === 'publickey') return judgeKey(attempt, target)
    // The key is only offered: nothing happens until the client signs with it.
    if (attempt.method === 'publickey-offer') {
      const key = loginKey(attempt.key)
      const offered = await login.offered(target, key)
      if (offered.allowed) return 'accept'
      // OpenSSH also offers the plain key of a certificate, which is nobody's failure.
      if (named?.key.equals(attempt.key.blob)) return uncounted
      report.refused(refusalOf(offered, key.sha256))
      return 'refuse'
    }
    return 'refuse'
  }

  const prepare = async (target: Target): Promise<void> => {
    // A client learns of an unreachable or denied device only after it has proved something.
    const to = await login.find(target).catch(() => undefined)
    if (to && !signal.aborted) login.prepare(to)
  }

  /** Prepares the leg while a person types, because the login will need it soon. */
  const prepareSoon = (target: Target): void => {
    if (parts.preparations.take(neighbourhood(source)) === 0)
      typing = setTimeout(() => void prepare(target), typing_ms).unref()
  }

  return {
    async authenticate(attempt) {
      clearTimeout(typing)
      report.asked(attempt.user)
      client = safeText(attempt.peerIdent, longestClient - 1)
      const target = parts.parseTarget(attempt.user)
      if (!target) disconnect(attempt, 'invalid-sshid', `${printable(attempt.user)} is not a valid SSHID`)
      const judged = await judge(attempt, target).catch((error: unknown) => {
        if (error instanceof LoginRefused)
          return disconnect(
            attempt,
            error.reason,
            sentences[error.reason](printable(target.data), error.back_s),
            error.rule,
          )
        if (error instanceof Failure && error.kind === 'unavailable')
          return disconnect(attempt, 'unavailable', uncheckable)
        if (error instanceof Failure) report.refused({ reason: 'unavailable', method: methodOf(attempt) })
        throw error
      })
      if (judged !== 'accept') prepareSoon(target)
      return judged
    },
    forged(user, { blob }) {
      report.asked(user)
      void refuseKey(
        { sha256: fingerprintSha256(blob) },
        { reason: 'signature', because: 'The signature is not one of the key.' },
      )
    },
    outcome: () => login.outcome(),
    [Symbol.dispose]() {
      clearTimeout(typing)
      login[Symbol.dispose]()
    },
  }
}

const unreachable = (name: string): string => `${name} is offline or cannot be reached`
const sentences: Readonly<Record<RefusalReason, (name: string, back_s?: number) => string>> = {
  'unknown-device': unreachable,
  offline: unreachable,
  unreachable: (name, back_s) =>
    back_s === undefined
      ? unreachable(name)
      : `the server node that ${name} is connected to is not responding; the device should be back within ${minutes(back_s)}`,
  unavailable: (name) => `${name} cannot be located right now; try again in a moment`,
  'host-key-changed': (name) => `the host key of ${name} has changed; no credentials were sent`,
  firewall: (name) => `you cannot access ${name} due a policy rule`,
  'device-limit': () => 'this namespace is over its device limit; its owner must remove devices or upgrade',
  'person-required': (name) =>
    `${name} requires an identified user: use hawser ssh or the terminal in the browser, or ask an administrator to make you the owner of your public key`,
  'rate-limited': () => 'Too many failed attempts from your address; wait a while.',
}

/**
 * Reasons that a client may know although it has no key of the namespace: it sent too much, or
 * the right password.
 */
const toldReasons: ReadonlySet<RefusalReason> = new Set(['rate-limited', 'person-required'])

/** A key that is no good, or a signature that is not the key's. */
type ProofRefused = Pick<RefusedKey, 'because' | 'rule'> & {
  readonly reason: RefusedKey['reason'] | 'signature'
}

const refusalOf = ({ reason, because, rule }: ProofRefused, fingerprint: string): LoginRefusal => ({
  reason,
  rule,
  detail: because,
  method: 'publickey',
  fingerprint,
})

function methodOf({ method }: Attempt): LoginMethod | undefined {
  if (method === 'none') return undefined
  return method === 'publickey' || method === 'publickey-offer' ? 'publickey' : 'password'
}

function loginKey({ type, bits, blob, certificate }: ShownKey): LoginKey {
  return {
    type,
    bits,
    sha256: fingerprintSha256(blob),
    ...keyName(type, blob),
    certificate: certificate && {
      authority: keyName(parsePublicKeyBlob(certificate.authority).type, certificate.authority),
      id: certificate.id,
      judge: (use) =>
        verdictOf(
          certificate,
          judgeCertificate(certificate, { ...use, kind: 'user', authorities: [certificate.authority] }),
        ),
    },
  }
}

/** The fingerprint to find a public key by, and the line to compare it with. */
export function keyName(type: string, blob: Buffer): KeyName {
  return { fingerprint: fingerprintMd5(blob), line: publicKeyLine(type, blob) }
}

function verdictOf(
  certificate: Certificate,
  judged: ReturnType<typeof judgeCertificate>,
): CertificateDecision {
  if (!judged.allowed) return { ...judged, reason: 'certificate' }
  return {
    allowed: true,
    limits: { forceCommand: judged.forceCommand, permits: new Set(certificate.extensions.keys()) },
  }
}

function minutes(duration_s: number): string {
  const count = Math.ceil(duration_s / 60)
  return count === 1 ? 'a minute' : `${count} minutes`
}

/** Text from a stranger, made safe for a terminal. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 300)
}

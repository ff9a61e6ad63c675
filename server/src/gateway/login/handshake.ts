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
import type { IdentityClaims, IdentityReader } from '../../domain/access/identity-certificates.ts'
import type {
  CertificateDecision,
  KeyName,
  LoginKey,
  Reachable,
  RefusedKey,
  Target,
} from '../../domain/access/logins.ts'
import { neighbourhood } from '../../kit/address.ts'
import type { Limiter } from '../../kit/limiter.ts'
import { safeText, type Log } from '../../kit/log.ts'
import type { IdentityCertificates } from './certificates.ts'
import type { LoginMethod, LoginReason, LoginRefusal, LoginReport } from './login-report.ts'
import {
  LoginRefused,
  openLogin,
  patiently,
  uncheckable,
  type DeviceLogin,
  type LoginOrigin,
  type LoginParts,
  type RefusalReason,
} from './login.ts'
import type { LoggedIn } from '../channels/logged-in.ts'

export interface HandshakeParts extends LoginParts {
  parseTarget(sshid: string): Target | undefined
  identities: Pick<IdentityCertificates, 'isOwn' | 'read'> & IdentityReader
  /** Limits the legs that one source has prepared before it has proved anything. */
  preparations: Limiter
  /** Whether this node cannot ask the others which devices they have. */
  isCutOff(): boolean
}

export interface Handshake extends Disposable {
  authenticate(attempt: Attempt): Promise<Decision>
  /** The client sent a signature that this key did not make. */
  forged(user: string, key: ShownKey): void
  outcome(): LoggedIn
}

/** The methods that the server lists to the client. */
export const methods: readonly string[] = ['password', 'publickey', 'keyboard-interactive']
const uncounted: Decision = { refuse: methods, uncounted: true }

/** Silence of this length means that a person is typing. */
const typing_ms = 150

/** The delay of a refusal; twice, four times … this if the check took longer. */
const refusal_ms = 1_000

export const handshake = (
  parts: HandshakeParts,
  uid: string,
  source: string,
  log: Log,
  signal: AbortSignal,
): Handshake => new ClientHandshake(parts, uid, source, log, signal)

class ClientHandshake implements Handshake {
  readonly #parts: HandshakeParts
  readonly #source: string
  readonly #signal: AbortSignal
  readonly #report: LoginReport
  readonly #login: DeviceLogin
  /** How the client identifies itself, from the first attempt on. */
  #client = ''
  /**
   * The claim of an identity certificate of this connection, and its key. It may cease to hold before the
   * login.
   */
  #named: { readonly claim: IdentityClaims; readonly key: Buffer } | undefined
  #typing: NodeJS.Timeout | undefined
  #isBannerSent = false
  #hasKeyFailed = false

  constructor(parts: HandshakeParts, uid: string, source: string, log: Log, signal: AbortSignal) {
    this.#parts = parts
    this.#source = source
    this.#signal = signal
    this.#report = parts.reports.open({ source, via: 'ssh' })
    const origin = async (to: Reachable): Promise<LoginOrigin> => this.#origin(to)
    this.#login = openLogin(parts, uid, source, origin, this.#report, log, signal)
  }

  async authenticate(attempt: Attempt): Promise<Decision> {
    clearTimeout(this.#typing)
    this.#report.asked(attempt.user)
    this.#client = safeText(attempt.peerIdent, longestClient - 1)
    const target = this.#parts.parseTarget(attempt.user)
    if (!target) this.#disconnect(attempt, 'invalid-sshid', `${printable(attempt.user)} is not a valid SSHID`)
    const judged = await this.#judge(attempt, target).catch((error: unknown) => {
      if (error instanceof LoginRefused) {
        const sentence = sentences[error.reason](printable(target.data), error.back_s)
        return this.#disconnect(attempt, error.reason, sentence, error.rule)
      }
      if (error instanceof Failure && error.kind === 'unavailable')
        return this.#disconnect(attempt, 'unavailable', uncheckable)
      if (error instanceof Failure) this.#report.refused({ reason: 'unavailable', method: methodOf(attempt) })
      throw error
    })
    if (judged !== 'accept') this.#prepareSoon(target)
    return judged
  }

  forged(user: string, { blob }: ShownKey): void {
    this.#report.asked(user)
    const because = 'The signature is not one of the key.'
    void this.#refuseKey({ sha256: fingerprintSha256(blob) }, { reason: 'signature', because })
  }

  outcome(): LoggedIn {
    return this.#login.outcome()
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#typing)
    this.#login[Symbol.dispose]()
  }

  async #personOf(claim: IdentityClaims): Promise<SessionPerson | undefined> {
    return patiently(this.#parts.clock, this.#signal, () => this.#parts.identities.personOf(claim))
  }

  async #origin({ device }: Reachable): Promise<LoginOrigin> {
    const named = this.#named
    const person = named?.claim.tenant_id === device.tenant_id ? await this.#personOf(named.claim) : undefined
    return { via: person ? 'cli' : 'ssh', person, client: this.#client }
  }

  /** Everybody who is refused gets a reference, whatever the reason: only administrators can look it up. */
  #withReference(sentence: string): string {
    return `${sentence} (reference ${this.#report.reference()})`
  }

  /** Shows a sentence once in a connection. */
  #showOnce(attempt: Attempt, sentence: () => string): void {
    if (!this.#isBannerSent) attempt.banner(`${sentence()}\n`)
    this.#isBannerSent = true
  }

  /** Sends the sentence to the client and disconnects it. */
  #disconnect(attempt: Attempt, reason: LoginReason, sentence: string, rule?: string): never {
    const fingerprint = 'key' in attempt ? fingerprintSha256(attempt.key.blob) : undefined
    this.#report.refused({ reason, rule, fingerprint, method: methodOf(attempt) })
    const referenced = this.#withReference(sentence)
    attempt.banner(`${referenced}\n`)
    throw new SshError(Reason.noMoreAuthMethods, referenced)
  }

  async #judge(attempt: Attempt, target: Target): Promise<Decision> {
    if ('key' in attempt && attempt.key.certificate && this.#parts.identities.isOwn(attempt.key.certificate))
      return this.#identify(attempt.method, attempt.key, attempt.key.certificate)
    if (attempt.method === 'password') return this.#judgePassword(attempt, target, attempt.password)
    if (attempt.method === 'keyboard-interactive') {
      this.#prepareSoon(target)
      const [password = ''] = await attempt.ask([{ text: 'Password: ', echo: false }])
      clearTimeout(this.#typing)
      return this.#judgePassword(attempt, target, password)
    }
    if (attempt.method === 'publickey') return this.#judgeKey(attempt, target)
    if (attempt.method === 'publickey-offer') return this.#judgeOffer(attempt.key, target)
    return 'refuse'
  }

  // ---- passwords

  async #judgePassword(attempt: Attempt, target: Target, password: string): Promise<Decision> {
    const asked_at = performance.now()
    this.#login.requireFewFailures()
    if (await this.#isRight(target, password)) return 'accept'
    let due_ms = refusal_ms
    while (due_ms < performance.now() - asked_at) due_ms *= 2
    await pause(due_ms - (performance.now() - asked_at), undefined, { ref: false })
    this.#showOnce(attempt, () => this.#withReference(this.#notLetIn(printable(target.data))))
    return 'refuse'
  }

  /**
   * Without a reachable, permitted device the password is wrong. Throws LoginRefused when the client may know
   * the reason.
   */
  async #isRight(target: Target, password: string): Promise<boolean> {
    try {
      return await this.#login.password(await this.#login.find(target), target, password)
    } catch (error) {
      if (!(error instanceof LoginRefused) || toldReasons.has(error.reason)) throw error
      this.#login.wrong(target, password, { reason: error.reason, rule: error.rule })
      return false
    }
  }

  /** The same words for every name, whether or not there is such a device. */
  #notLetIn(name: string): string {
    return this.#parts.isCutOff()
      ? `${name} may be on a server node that cannot be reached right now, or does not let you in with this password`
      : `${name} is offline or cannot be reached, or does not let you in with this password`
  }

  // ---- keys

  /** Clients try all their keys, so only the first refused key of a connection counts as a failure. */
  #refuseKey({ sha256: fingerprint }: Pick<LoginKey, 'sha256'>, why: ProofRefused): Decision {
    const refusal = refusalOf(why, fingerprint)
    if (this.#hasKeyFailed) this.#login.refused(refusal)
    else this.#login.failed(refusal)
    this.#hasKeyFailed = true
    return 'refuse'
  }

  /** Judges a key that is only offered: nothing happens until the client signs with it. */
  async #judgeOffer(shown: ShownKey, target: Target): Promise<Decision> {
    const key = loginKey(shown)
    const offered = await this.#login.offered(target, key)
    if (offered.allowed) return 'accept'
    // OpenSSH also offers the plain key of a certificate, which is nobody's failure.
    if (this.#named?.key.equals(shown.blob)) return uncounted
    this.#report.refused(refusalOf(offered, key.sha256))
    return 'refuse'
  }

  async #judgeKey(attempt: Attempt & { method: 'publickey' }, target: Target): Promise<Decision> {
    const login = this.#login
    const key = loginKey(attempt.key)
    const offered = await login.offered(target, key)
    if (!offered.allowed) return this.#refuseKey(key, offered)
    // The holder of a key of the namespace may know why its devices cannot be reached.
    const to = await login.find(target)
    const verdict = await login.key(to, target, key)
    if (!verdict.allowed) return this.#refuseKey(key, verdict)
    const [name, user] = [printable(target.data), printable(target.username)]
    if (await login.lacksPerson(to, verdict)) {
      // Another key of the client may have an owner.
      this.#showOnce(attempt, () => sentences['person-required'](name))
      const reason = 'person-required'
      login.refused({ reason, method: 'publickey', fingerprint: key.sha256, rule: verdict.name })
      return 'refuse'
    }
    const answer = await login.publicKey(to, target, key, verdict)
    if (answer === 'accepted') return 'accept'
    const why =
      answer === 'no account'
        ? `${name} has no account ${user}, or it has no home folder there`
        : `${name} does not accept the login key of its namespace for ${user}`
    if (answer === 'no account' || to.device.enrolment_key !== null)
      attempt.banner(`${this.#withReference(why)}\n`)
    return 'refuse'
  }

  /** Notes the person in the certificate. The client then continues with what lets it in. */
  async #identify(
    method: 'publickey' | 'publickey-offer',
    { blob }: ShownKey,
    certificate: Certificate,
  ): Promise<Decision> {
    // After a success in part OpenSSH tries all its keys once more.
    if (this.#named) return uncounted
    const claim = this.#parts.identities.read(certificate)
    if (!claim || !(await this.#personOf(claim))) return 'refuse'
    if (method === 'publickey-offer') return 'accept'
    this.#named = { claim, key: blob }
    return { partial: methods }
  }

  // ---- the leg to the device

  async #prepare(target: Target): Promise<void> {
    // A client learns of an unreachable or denied device only after it has proved something.
    const to = await this.#login.find(target).catch(() => undefined)
    if (to && !this.#signal.aborted) this.#login.prepare(to)
  }

  /** Prepares the leg while a person types, because the login will need it soon. */
  #prepareSoon(target: Target): void {
    if (this.#parts.preparations.take(neighbourhood(this.#source)) === 0)
      this.#typing = setTimeout(() => void this.#prepare(target), typing_ms).unref()
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

/** Reasons that a client without a key of the namespace may know: it sent too much, or the right password. */
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

function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 300)
}

// A terminal for a browser. A browser has no SSH client, so the near end of the session is a connection
// inside this process (`localPair`). From there on it is a session like any other, with the same firewall,
// taps, limits and end. A password goes to the device as usual. A private key stays in the browser, which
// signs what an SSH client would sign to log in (RFC 4252 section 7), with 32 random bytes of this login as
// the session id and `user@device` as the user. So a signature is good for this login only, once. SHA-1 is
// not accepted.
import { randomBytes } from 'node:crypto'
import { Failure } from '@hawser/contract/failures'
import {
  fingerprintSha256,
  localPair,
  openSftp,
  parsePublicKeyLine,
  proofData,
  Reason,
  startSession,
  verifySignature,
  type ConnectionEnd,
  type RunningSession,
} from '@hawser/ssh'
import type { Reachable, Target } from '../domain/access/logins.ts'
import { newUid } from '../kit/ids.ts'
import { safeText, type Log } from '../kit/log.ts'
import { keyName } from './handshake.ts'
import { remoteFiles, type RemoteFiles } from './files.ts'
import type { LoginRefusal } from './login-report.ts'
import { LoginRefused, openLogin, type DeviceLogin, type LoginParts, type RefusalReason } from './login.ts'
import { runSession, type SessionParts } from './session.ts'

export interface TerminalRequest {
  readonly device_uid: string
  readonly username: string
  /** The person at the browser, for the log. */
  readonly by?: string | undefined
  readonly size: TerminalSize
  readonly proof: { readonly password: string } | KeyProof
}

export interface KeyProof {
  /** The MD5 fingerprint of a key of the namespace. */
  readonly fingerprint: string
  /** Gives the browser's raw signature of these bytes, which name the algorithm. */
  sign(challenge: Buffer): Promise<Buffer>
}

export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

export interface Terminal {
  readonly session_uid: string
  /** The output of the shell; ends with it. */
  readonly output: AsyncIterable<Buffer>
  /** Resolves when the device has room for more. */
  write(bytes: Uint8Array): Promise<void>
  resize(size: TerminalSize): Promise<void>
  /** The user's files on the device, on a channel of the same session. */
  files(): Promise<RemoteFiles>
  /** Ends the session. */
  end(): Promise<void>
  /** Resolves at the end of the session; with a sentence if somebody else than the user ended it. */
  readonly ended: Promise<string | undefined>
}

export interface TerminalParts extends LoginParts, SessionParts {
  /** Called when a session has begun, with a promise that resolves when everything of it is closed. */
  begun(done: Promise<void>): void
  log: Log
}

const terminalName = 'xterm-256color'
/** RFC 4254 section 8: ECHO and both speeds, which ShellHub's web terminal also sends. */
const modes = new Map([
  [53, 1],
  [128, 14_400],
  [129, 14_400],
])
const rsaAlgorithm = 'rsa-sha2-512'

/** Throws a Failure with a sentence for the user. */
export async function openTerminal(
  parts: TerminalParts,
  request: TerminalRequest,
  source: string,
  signal: AbortSignal,
): Promise<Terminal> {
  const { log } = parts
  using stack = new DisposableStack()
  const report = parts.reports.open({ source, via: 'web', by: request.by })
  const login = stack.use(openLogin(parts, newUid(), source, report, log, signal))
  const target: Target = { username: request.username, data: request.device_uid }
  report.asked(`${target.username}@${target.data}`)
  await logIn(parts, login, target, request.proof).catch((error: unknown) => {
    const method = 'password' in request.proof ? 'password' : 'publickey'
    if (!(error instanceof LoginRefused)) {
      if (error instanceof Failure && error.status >= 500) report.refused({ reason: 'unavailable', method })
      throw error
    }
    report.refused({ reason: error.reason, rule: error.rule, method })
    throw new Failure('forbidden', { message: sentences[error.reason] })
  })
  if (signal.aborted) throw new Failure('unavailable', { message: 'The browser has left.' })

  const outcome = login.outcome()
  const [mine, near] = localPair()
  const owned = stack.move()
  const done = runSession(parts, near, outcome, { address: source, port: 0 }, log)
    .catch((err: unknown) => log.error({ event: 'session.failed', session: outcome.record.uid, err }))
    .finally(() => {
      void mine.end()
      owned.dispose()
    })
  parts.begun(done)
  const leave = (): void => void mine.end()
  signal.addEventListener('abort', leave, { once: true })
  void done.then(() => signal.removeEventListener('abort', leave))
  try {
    const shell = await startSession(mine, {
      program: { type: 'shell' },
      pty: { terminal: terminalName, ...request.size, width: 0, height: 0, modes },
    })
    return terminalOn(mine, shell, outcome.record.uid)
  } catch (cause) {
    await mine.end()
    await done
    const ended = await mine.ended
    throw new Failure('forbidden', {
      message: ended.by === 'peer' ? ended.message : 'The device refused to open a terminal.',
      cause,
    })
  }
}

async function logIn(
  parts: TerminalParts,
  login: DeviceLogin,
  target: Target,
  proof: TerminalRequest['proof'],
): Promise<void> {
  const to = await login.find(target)
  if ('password' in proof) {
    if (await login.password(to, target, proof.password)) return
    throw new Failure('forbidden', { message: 'The user name or the password is wrong.' })
  }
  const { key, limits } = await prove(parts, login, to, target, proof)
  if (await login.publicKey(to, target, key, limits)) return
  throw new Failure('forbidden', { message: 'The device did not let this user in.' })
}

async function prove(
  parts: TerminalParts,
  login: DeviceLogin,
  to: Reachable,
  target: Target,
  proof: KeyProof,
) {
  const refuse = (refusal: LoginRefusal): never => {
    login.refused({ ...refusal, method: 'publickey' })
    throw new Failure('forbidden', {
      message: 'This key is not registered here for this user on this device.',
    })
  }
  const line = await parts.logins.registered(to, proof.fingerprint)
  if (line === undefined)
    return refuse({ reason: 'unknown-key', fingerprint: safeText(`MD5:${proof.fingerprint}`, 64) })
  const { type, bits, blob } = parsePublicKeyLine(line)
  const key = { type, bits, sha256: fingerprintSha256(blob), ...keyName(type, blob) }
  const verdict = await login.key(to, target, key)
  if (!verdict.allowed)
    return refuse({
      reason: verdict.reason,
      rule: verdict.rule,
      detail: verdict.because,
      fingerprint: key.sha256,
    })
  const algorithm = type === 'ssh-rsa' ? rsaAlgorithm : type
  const challenge = proofData(randomBytes(32), `${target.username}@${target.data}`, algorithm, blob)
  const signature = await proof.sign(challenge)
  const encoded = Buffer.concat([sshString(Buffer.from(algorithm)), sshString(signature)])
  if (!(await verifySignature(blob, algorithm, challenge, encoded))) {
    login.failed({ reason: 'signature', method: 'publickey', fingerprint: key.sha256 })
    throw new Failure('forbidden', {
      message: `The signature is not one of this key, made with ${algorithm}.`,
    })
  }
  return { key, limits: verdict.limits }
}

function terminalOn(mine: ConnectionEnd, shell: RunningSession, session_uid: string): Terminal {
  const { channel } = shell
  return {
    session_uid,
    output: outputOf(channel),
    write: async (bytes) => channel.write(bytes),
    resize: async (size) => shell.resize({ ...size, width: 0, height: 0 }),
    files: async () => remoteFiles(async () => openSftp(mine)),
    end: async () => mine.end(Reason.byApplication, 'The browser has left.'),
    ended: mine.ended.then((how) => (how.by === 'peer' ? how.message : undefined)),
  }
}

async function* outputOf(channel: AsyncIterable<{ bytes: Buffer }>): AsyncGenerator<Buffer> {
  for await (const { bytes } of channel) yield bytes
}

/** A string of SSH (RFC 4251 section 5). */
function sshString(bytes: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(bytes.length)
  return Buffer.concat([head, bytes])
}

const unreachable = 'The device is offline or cannot be reached.'
const sentences: Readonly<Record<RefusalReason, string>> = {
  'unknown-device': unreachable,
  offline: unreachable,
  unreachable,
  'host-key-changed': 'The device does not have the host key that it joined with, and was told nothing.',
  firewall: 'A firewall rule of the namespace does not allow this.',
  'device-limit':
    'The namespace has more devices than it may have; its owner has to choose some or to subscribe.',
  'rate-limited': 'Too many failed attempts from your address; wait a while.',
}

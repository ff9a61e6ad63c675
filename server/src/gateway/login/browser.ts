// A terminal for a browser. A browser has no SSH client, so the near end of the session is a connection
// inside this process (`localPair`). From there on it is a session like any other, with the same firewall,
// taps, limits and end. A password goes to the device as usual. A private key stays in the browser, which
// signs what an SSH client would sign to log in (RFC 4252 section 7), with 32 random bytes of this login as
// the session id and `user@device` as the user. So a signature is good for this login only, once. SHA-1 is
// not accepted.
import { randomBytes } from 'node:crypto'
import { Failure } from '@hawser/contract/failures'
import { longestClient, type SessionPerson } from '@hawser/contract/sessions'
import {
  fingerprintSha256,
  localPair,
  openSftp,
  parsePublicKeyLine,
  proofData,
  Reason,
  startSession,
  verifySignature,
  writeRequest,
  type ConnectionEnd,
  type RunningSession,
} from '@hawser/ssh'
import type { AcceptedKey, Reachable, Target } from '../../domain/access/logins.ts'
import { newUid } from '../../kit/ids.ts'
import { safeText, type Log } from '../../kit/log.ts'
import { keyName } from './handshake.ts'
import { continuableTerminal, identityOf, type HeldSessions } from '../terminal/held.ts'
import { clientOf } from '../terminal/client.ts'
import { remoteFiles, type RemoteFiles } from '../channels/files.ts'
import type { LoginRefusal } from './login-report.ts'
import { LoginRefused, openLogin, type DeviceLogin, type LoginParts, type RefusalReason } from './login.ts'
import { runSession, type SessionParts } from '../channels/session.ts'
import { terminalUploads, type Uploads } from '../channels/uploads.ts'

export interface TerminalRequest {
  readonly device_uid: string
  readonly username: string
  /** The person at the browser. */
  readonly person: SessionPerson
  /** How the browser identifies itself. */
  readonly client: string
  readonly size: TerminalSize
  readonly proof: { readonly password: string } | KeyProof
}

/** Somebody continues a session of theirs. */
export interface AttachRequest {
  readonly session_uid: string
  readonly tenant_id: string
  readonly person: SessionPerson
  readonly size: TerminalSize
  readonly scrollback: boolean
  /** The ticket of the browser. */
  readonly token: string
  /** The ticket by which the client is known that comes back by itself. */
  readonly after?: string | undefined
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

export interface BrowserTerminal {
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
  /** Whether the session goes on with another client. */
  isMoved(): boolean
  /** Whether the session goes on without this server, which stops. */
  isLeft(): boolean
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
): Promise<BrowserTerminal> {
  const { log } = parts
  using stack = new DisposableStack()
  const { person, client } = request
  // Until the session has begun the browser takes everything along; after that the session may outlive it.
  const leaving = new AbortController()
  const giveUp = (): void => leaving.abort()
  signal.addEventListener('abort', giveUp, { once: true })
  if (signal.aborted) giveUp()
  stack.defer(() => signal.removeEventListener('abort', giveUp))
  const report = parts.reports.open({ source, via: 'web', by: person.name })
  const origin = { via: 'browser', person, client: safeText(client, longestClient - 1) } as const
  const login = stack.use(openLogin(parts, newUid(), source, async () => origin, report, log, leaving.signal))
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

  signal.removeEventListener('abort', giveUp)
  const outcome = login.outcome()
  const [mine, end] = localPair()
  const moved = { is: false }
  const near = { ...end, onMoved: () => void (moved.is = true) }
  const owned = stack.move()
  const done = runSession(parts, near, outcome, { address: source, port: 0 }, log)
    .catch((err: unknown) => log.error({ event: 'session.failed', session: outcome.record.uid, err }))
    .finally(() => {
      void mine.end()
      owned.dispose()
    })
  parts.begun(done)
  const uploads = terminalUploads(async () => openSftp(mine))
  const leave = (): void => void leaveFor(mine, uploads, signal)
  signal.addEventListener('abort', leave, { once: true })
  void done.then(() => signal.removeEventListener('abort', leave))
  try {
    const shell = await startSession(mine, {
      program: { type: 'shell' },
      pty: { terminal: terminalName, ...request.size, width: 0, height: 0, modes },
    })
    return terminalOn(
      mine,
      shell,
      { uid: outcome.record.uid, tenant_id: outcome.to.device.tenant_id },
      uploads,
      moved,
    )
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

/** A browser that is lost leaves its session behind; one that says goodbye ends it. */
async function leaveFor(mine: ConnectionEnd, uploads: Uploads, { reason }: AbortSignal): Promise<void> {
  // Removing the parts needs the device, so it comes before the end.
  await uploads.clear()
  if (reason === 'lost') await mine.end(Reason.connectionLost, 'The browser is lost.')
  else await mine.end(Reason.byApplication, 'The browser has left.')
}

/**
 * Continues a session in a browser, whose user is judged as at a login. Throws a Failure with a
 * sentence for the user.
 */
export async function attachTerminal(
  { logins, held }: { logins: LoginParts['logins']; held: HeldSessions },
  request: AttachRequest,
  source: string,
  signal: AbortSignal,
): Promise<BrowserTerminal> {
  const session = held.find(request.session_uid)
  const isOwn =
    session?.tenant_id === request.tenant_id && session.identity === identityOf(request.person, undefined)
  if (!session || !isOwn) throw new Failure('notFound', { message: 'The session is over.' })
  const to = await logins.find(session.device_uid)
  if (!to) throw new Failure('forbidden', { message: unreachable })
  const { allowed } = await logins.firewall(to, session.username, source)
  if (!allowed) throw new Failure('forbidden', { message: sentences.firewall })
  if (!(await logins.withinLimit(to))) throw new Failure('forbidden', { message: sentences['device-limit'] })
  const terminal = await continuableTerminal(session)
  if (!terminal) throw new Failure('notFound', { message: 'The session is over, or may not be continued.' })
  if (signal.aborted) throw new Failure('unavailable', { message: 'The browser has left.' })
  const { after, token } = request
  if (after !== undefined && terminal.isMovedFrom(after))
    throw new Failure('conflict', { message: 'The session continues elsewhere.' })

  const [mine, near] = localPair()
  const moved = { is: false }
  const uploads = terminalUploads(async () => openSftp(mine))
  const leave = (): void => void leaveFor(mine, uploads, signal)
  signal.addEventListener('abort', leave, { once: true })
  void mine.ended.then(() => signal.removeEventListener('abort', leave))
  const opening = mine.open('session')
  const accepted = (await near.channels.next())!.accept()
  const channel = await opening
  const onMoved = (): void => void (moved.is = true)
  const client = clientOf(accepted, { ended: near.ended, onMoved, id: after ?? token }, terminal)
  // The file transfers of this browser are channels of the continued session.
  void session.join(near)
  const { columns, rows } = request.size
  const by = { source, via: 'browser' } as const
  terminal
    .attach(client, { width: columns, height: rows }, { scrollback: request.scrollback, ...by })
    .catch(async () => mine.end(Reason.byApplication, 'The session is over.'))
  const resize = async (size: TerminalSize): Promise<void> => {
    const { name, payload } = writeRequest({ type: 'window-change', size: { ...size, width: 0, height: 0 } })
    await channel.request(name, payload)
  }
  const shown = terminalOn(mine, { channel, resize }, session, uploads, moved)
  return { ...shown, isLeft: () => session.isLeft === true || shown.isLeft() }
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
  const proved = await prove(parts, login, to, target, proof)
  const answer = await login.publicKey(proved.to, target, proved.key, proved.verdict)
  if (answer === 'no account')
    throw new Failure('forbidden', {
      message: 'The device has no such account, or the account has no home folder.',
    })
  if (answer === 'refused')
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
  const judge = async (now: Reachable): Promise<AcceptedKey> => {
    const verdict = await login.key(now, target, key)
    if (verdict.allowed) return verdict
    return refuse({
      reason: verdict.reason,
      rule: verdict.rule,
      detail: verdict.because,
      fingerprint: key.sha256,
    })
  }
  await judge(to)
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
  // The browser took its time to sign. The device, the firewall and the key of now decide.
  const now = await login.find(target)
  return { to: now, key, verdict: await judge(now) }
}

function terminalOn(
  mine: ConnectionEnd,
  shell: Pick<RunningSession, 'channel' | 'resize'>,
  session: { readonly uid: string; readonly tenant_id: string },
  uploads: Uploads,
  moved: { readonly is: boolean },
): BrowserTerminal {
  const { channel } = shell
  let isLeft = false
  void mine.ended.then(({ reason }) => (isLeft = reason === Reason.serviceNotAvailable))
  return {
    session_uid: session.uid,
    output: outputOf(channel),
    write: async (bytes) => channel.write(bytes),
    resize: async (size) => shell.resize({ ...size, width: 0, height: 0 }),
    files: async () => remoteFiles(async () => openSftp(mine), uploads, session.tenant_id),
    async end() {
      await uploads.clear()
      await mine.end(Reason.byApplication, 'The browser has left.')
    },
    ended: mine.ended.then((how) => (how.by === 'peer' ? how.message : undefined)),
    isMoved: () => moved.is,
    isLeft: () => isLeft,
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
  'host-key-changed': 'The host key of the device has changed; no credentials were sent.',
  firewall: 'A firewall rule of the namespace does not allow this.',
  'device-limit': 'This namespace is over its device limit; its owner must remove devices or upgrade.',
  'person-required': 'This namespace only allows identified users.',
  'rate-limited': 'Too many failed attempts from your address; wait a while.',
  unavailable: 'The device cannot be located right now; try again in a moment.',
}

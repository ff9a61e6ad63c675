// Authentication, seen from the server (RFC 4252, 4256). The rules are the caller's: each attempt is handed
// to one async function with what was proved and nothing more, and judged alone; nothing that an earlier
// attempt did can help a later one. A key that is merely offered and a key that signed are different
// attempts, so that they cannot be mixed up. Guarded here: proofs are verified before anyone hears of them,
// attempts are counted, messages are taken in order.
import { ProtocolError, Reason, SshError } from '../errors.ts'
import { isCertificate, parseCertificate, type Certificate } from '../keys/certificate.ts'
import { plainName } from '../keys/certified-key.ts'
import { knownKey } from '../keys/key-object.ts'
import { KeyFormatError } from '../keys/public-key.ts'
import { verifySignature } from '../keys/signature.ts'
import { Message } from '../messages.ts'
import type { Transport } from '../transport/transport.ts'
import { message, Reader } from '../wire.ts'
import { authService, connectionService, proofData } from './proof.ts'

/** The public key of an attempt. */
export interface ShownKey {
  /** Type, blob and bits are those of the plain key, also when a certificate was shown. */
  readonly type: string
  readonly blob: Buffer
  readonly bits: number | null
  /** Signed by the authority that it names, which may not be a trusted one. */
  readonly certificate: Certificate | undefined
}

/** One question to a person (RFC 4256 section 3.2). */
export interface Prompt {
  readonly text: string
  readonly echo: boolean
}

interface AnyAttempt {
  readonly user: string
  /** Identifies the connection; no other one has the same (RFC 4253 section 7.2). */
  readonly sessionId: Buffer
  /** Such as SSH-2.0-OpenSSH_10.0 (RFC 4253 section 4.2). */
  readonly peerIdent: string
  /** Aborted when the client is gone, so that nobody waits for a person in vain. */
  readonly signal: AbortSignal
  /** Shows a text to the user now. */
  banner(text: string): void
}

/** One attempt of a client to log in, with its proof verified. */
export type Attempt = AnyAttempt &
  (
    | { readonly method: 'none' }
    | { readonly method: 'password'; readonly password: string }
    /** Would this key do? Nothing is proved. */
    | { readonly method: 'publickey-offer'; readonly key: ShownKey }
    /** The client has the private key. */
    | { readonly method: 'publickey'; readonly key: ShownKey }
    | {
        readonly method: 'keyboard-interactive'
        /** Can be called repeatedly. */
        ask(prompts: readonly Prompt[], title?: string, instruction?: string): Promise<string[]>
      }
  )

/**
 * Refusals and partial successes may name the methods that can continue; else the connection's own list is
 * sent.
 */
export type Decision =
  | 'accept'
  | 'refuse'
  | { readonly refuse: readonly string[]; /** It is no failure. */ readonly uncounted?: true }
  | { readonly partial: readonly string[] }

export interface ServerAuthOptions {
  /** In the order for the client. */
  readonly methods: readonly string[]
  authenticate(attempt: Attempt): Promise<Decision>
  /** A signature was not of the key it came with: such an attempt is refused before anybody judges it. */
  onBadSignature?(user: string, key: ShownKey): void
  /** Failed attempts; the first `none` is free. */
  readonly mostFailures: number
}

/** Requests of any kind, so that accepted offers are limited, too. */
const mostRequests = 256
const longestUser = 1_024
const longestPassword = 4_096
const mostPrompts = 32

/** A new request came instead of the answers: the old one needs no reply (RFC 4252 section 5.1). */
class Abandoned extends Error {}

/** Resolves with the name of the logged-in user; throws when the connection is over. */
export async function authenticateClient(transport: Transport, options: ServerAuthOptions): Promise<string> {
  const gone = new AbortController()
  const over = transport.ended.then((how): never => {
    gone.abort(how)
    throw how
  })
  over.catch(() => undefined)
  await acceptService(transport)

  let user: string | undefined
  let failures = 0
  let next: Buffer | undefined
  /** Banners are allowed only before success (RFC 4252 section 5.4). */
  let judging = true
  const banner = (text: string): void => {
    if (judging) sendBanner(transport, text)
  }
  for (let requests = 0; requests < mostRequests; requests += 1) {
    const payload = next ?? (await transport.receive())
    next = undefined
    const request = readRequest(payload)
    if (user !== undefined && user !== request.user)
      throw new ProtocolError('The user name changed between attempts.')
    user = request.user

    const refuse = (methods: readonly string[], partial: boolean): void =>
      transport.send(message(Message.authFailure).names(methods).boolean(partial))
    const abandon = (payload: Buffer): void => {
      next = payload
    }
    const read = await readAttempt(transport, request, abandon, (key) =>
      options.onBadSignature?.(request.user, key),
    )
    let decision: Decision = 'refuse'
    if (read) {
      try {
        const { sessionId, peerIdent } = transport
        const asked = { ...read.attempt, user, sessionId, peerIdent, signal: gone.signal, banner }
        // The judgement may take long, and must not outlive the client.
        decision = await Promise.race([options.authenticate(asked), over])
      } catch (error) {
        if (error instanceof Abandoned) continue
        throw error
      }
    }
    // Another attempt came during this one, and only that one is answered.
    if (next) continue
    if (decision === 'accept' && read?.attempt.method === 'publickey-offer') {
      transport.send(message(Message.authKeyOk, 1_200).string(read.algorithm).string(read.blob))
      continue
    }
    if (decision === 'accept') {
      judging = false
      transport.send(message(Message.authSuccess))
      return user
    }
    if (typeof decision === 'object' && 'partial' in decision) {
      refuse(decision.partial, true)
      continue
    }
    const uncounted = decision !== 'refuse' && decision.uncounted
    if (!uncounted && (request.method !== 'none' || requests > 0)) failures += 1
    if (failures >= options.mostFailures) break
    refuse(decision === 'refuse' ? options.methods : decision.refuse, false)
  }
  throw new SshError(Reason.protocolError, 'Too many authentication failures.')
}

async function acceptService(transport: Transport): Promise<void> {
  const reader = new Reader(await transport.receive())
  if (reader.byte() !== Message.serviceRequest) throw new ProtocolError('A service must be requested first.')
  const service = reader.text()
  if (service !== authService)
    throw new SshError(Reason.serviceNotAvailable, 'Before authentication there is no other service.')
  transport.send(message(Message.serviceAccept).string(service))
}

function sendBanner(transport: Transport, text: string): void {
  // Lines end with CR LF on the wire (RFC 4252 section 5.4).
  const lines = text.replaceAll(/\r?\n/g, '\r\n')
  transport.send(
    message(Message.authBanner, lines.length + 16)
      .string(lines)
      .string(''),
  )
}

interface Request {
  readonly user: string
  readonly method: string
  readonly fields: Reader
}

/** byte 50, string user, string service, string method, fields of the method. */
function readRequest(payload: Buffer): Request {
  const fields = new Reader(payload)
  if (fields.byte() !== Message.authRequest) throw new ProtocolError('Only authentication is possible now.')
  const user = fields.text(longestUser)
  if (fields.text() !== connectionService)
    throw new SshError(Reason.serviceNotAvailable, 'There is no such service.')
  return { user, method: fields.text(), fields }
}

type AnAttempt<A extends Attempt = Attempt> = A extends Attempt ? Omit<A, keyof AnyAttempt> : never

interface ReadAttempt {
  readonly attempt: AnAttempt
  /** The algorithm and the blob of a key, as the client wrote them. */
  readonly algorithm: string
  readonly blob: Buffer
}

/** The attempt with its proof verified; undefined: the method or the proof is bad. */
async function readAttempt(
  transport: Transport,
  request: Request,
  abandon: (payload: Buffer) => void,
  forged: (key: ShownKey) => void,
): Promise<ReadAttempt | undefined> {
  const { fields, method } = request
  const plain = (attempt: AnAttempt): ReadAttempt => ({ attempt, algorithm: '', blob: Buffer.alloc(0) })
  switch (method) {
    case 'none':
      return plain({ method })
    case 'password': {
      // True: a change of the password (RFC 4252 section 8), which we never request.
      if (fields.boolean()) return undefined
      const password = fields.text(longestPassword)
      fields.end()
      return plain({ method, password })
    }
    case 'keyboard-interactive':
      return plain({
        method,
        ask: async (prompts, title = '', instruction = '') =>
          askUser(transport, prompts, title, instruction, abandon),
      })
    case 'publickey':
      return readKey(transport, request, forged)
    default:
      return undefined
  }
}

async function readKey(
  transport: Transport,
  { user, fields }: Request,
  forged: (key: ShownKey) => void,
): Promise<ReadAttempt | undefined> {
  const signed = fields.boolean()
  const [algorithm, blob] = [fields.text(), Buffer.from(fields.string())]
  const signature = signed ? fields.string() : undefined
  fields.end()
  let key: ShownKey
  try {
    key = await shownKey(blob)
  } catch (error) {
    if (error instanceof KeyFormatError) return undefined
    throw error
  }
  // A certificate uses the certificate's name of an algorithm, a plain key the plain one.
  const signs = plainName(algorithm)
  if ((signs !== undefined) !== (key.certificate !== undefined)) return undefined
  if (signature === undefined) return { attempt: { method: 'publickey-offer', key }, algorithm, blob }
  const data = proofData(transport.sessionId, user, algorithm, blob)
  if (!(await verifySignature(key.blob, signs ?? algorithm, data, signature))) {
    forged(key)
    return undefined
  }
  return { attempt: { method: 'publickey', key }, algorithm, blob }
}

async function shownKey(blob: Buffer): Promise<ShownKey> {
  const certificate = isCertificate(blob) ? await parseCertificate(blob) : undefined
  const plain = certificate?.key ?? blob
  const { type, bits } = knownKey(plain)
  return { type, bits, blob: plain, certificate }
}

async function askUser(
  transport: Transport,
  prompts: readonly Prompt[],
  title: string,
  instruction: string,
  abandon: (payload: Buffer) => void,
): Promise<string[]> {
  if (prompts.length > mostPrompts) throw new TypeError('Too many questions at once.')
  const written = message(Message.authInfoRequest, 512)
    .string(title)
    .string(instruction)
    .string('')
    .uint32(prompts.length)
  for (const prompt of prompts) written.string(prompt.text).boolean(prompt.echo)
  transport.send(written)
  const payload = await transport.receive()
  const reader = new Reader(payload)
  if (reader.byte() !== Message.authInfoResponse) {
    abandon(payload)
    throw new Abandoned('Another attempt was made instead.')
  }
  if (reader.uint32() !== prompts.length) throw new ProtocolError('Not every question was answered.')
  const answers = prompts.map(() => reader.text(longestPassword))
  reader.end()
  return answers
}

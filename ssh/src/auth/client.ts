// Authentication, seen from the client (RFC 4252, 4256): one proof at a time, as many as the server puts up
// with, on one connection. What a refused proof leaves open is said in the answer.
import { ProtocolError } from '../errors.ts'
import { plainName } from '../keys/certified-key.ts'
import type { Signer } from '../keys/signer.ts'
import { Message } from '../messages.ts'
import type { Transport } from '../transport/transport.ts'
import { message, Reader, type Writer } from '../wire.ts'
import { authService, connectionService, proofData } from './proof.ts'
import type { Prompt } from './server.ts'

/** With keyboard-interactive (RFC 4256 section 3.2). */
export interface Questions {
  readonly title: string
  readonly instruction: string
  readonly prompts: readonly Prompt[]
}

/** One way to log in: a password, a key that signs, or a person who answers questions. */
export type Proof =
  | { readonly method: 'none' }
  | { readonly method: 'password'; readonly password: string }
  | { readonly method: 'publickey'; readonly key: Signer }
  | { readonly method: 'keyboard-interactive'; answer(questions: Questions): Promise<readonly string[]> }

/** The server's answer to a proof. */
export type Answer =
  | { readonly accepted: true }
  /** `partial`: this proof was good, and another one is needed. */
  | { readonly accepted: false; readonly partial: boolean; readonly methods: readonly string[] }

export interface ClientAuth {
  attempt(user: string, proof: Proof): Promise<Answer>
}

const mostPrompts = 32
/** Rounds of questions in one attempt; each sends the answers once more. */
const mostRounds = 16

const request = (user: string, method: string, room = 256): Writer =>
  message(Message.authRequest, room).string(user).string(connectionService).string(method)

const conclusion = (payload: Buffer): Answer => {
  if (payload[0] === Message.authSuccess) return { accepted: true }
  if (payload[0] !== Message.authFailure) throw new ProtocolError('That is no answer to an attempt.')
  const reader = new Reader(payload, 1)
  return { accepted: false, methods: reader.names(), partial: reader.boolean() }
}

const passwordConclusion = (payload: Buffer): Answer => {
  // The password is right but too old, and the server wants a new one, which we do not have.
  if (payload[0] === Message.authPasswordChange) return { accepted: false, partial: false, methods: [] }
  return conclusion(payload)
}

/**
 * With `pipelining` the service is requested at once, and proofs do not wait for the answer. The host key
 * must have been checked.
 */
export function clientAuth(
  transport: Transport,
  onBanner: (text: string) => void,
  pipelining = false,
): ClientAuth {
  let served: Promise<void> | undefined

  const next = async (): Promise<Buffer> => {
    for (;;) {
      const payload = await transport.receive()
      if (payload[0] !== Message.authBanner) return payload
      onBanner(new Reader(payload, 1).text())
    }
  }

  const askForService = async (): Promise<void> => {
    transport.send(message(Message.serviceRequest).string(authService))
    const reader = new Reader(await next())
    if (reader.byte() !== Message.serviceAccept || reader.text() !== authService)
      throw new ProtocolError('The service was not accepted.')
  }

  /** The answer to a proof, which follows the answer about the service. */
  const receive = async (): Promise<Buffer> => {
    await served
    return next()
  }

  if (pipelining) {
    served = askForService()
    served.catch(() => undefined)
  }

  const withKey = async (user: string, key: Signer): Promise<Answer> => {
    const known = transport.serverSigAlgs
    // Servers from before RFC 8308 send no list; those that know SHA-2 at all know SHA-256.
    const usable = known
      ? key.algorithms.filter((name) => known.includes(plainName(name) ?? name))
      : key.algorithms.toReversed()
    const algorithm = usable[0] ?? key.algorithms[0]
    if (algorithm === undefined) return { accepted: false, partial: false, methods: [] }
    if (key.askFirst) {
      transport.send(request(user, 'publickey', 2_000).boolean(false).string(algorithm).string(key.blob))
      const payload = await receive()
      if (payload[0] !== Message.authKeyOk) return conclusion(payload)
    }
    const signature = await key.sign(algorithm, proofData(transport.sessionId, user, algorithm, key.blob))
    transport.send(
      request(user, 'publickey', 2_000).boolean(true).string(algorithm).string(key.blob).string(signature),
    )
    return conclusion(await receive())
  }

  const interactively = async (
    user: string,
    answer: (questions: Questions) => Promise<readonly string[]>,
  ): Promise<Answer> => {
    transport.send(request(user, 'keyboard-interactive').string('').string(''))
    for (let round = 1; ; round += 1) {
      const payload = await receive()
      if (payload[0] !== Message.authInfoRequest) return conclusion(payload)
      if (round > mostRounds) throw new ProtocolError('The server asks endless questions.')
      const reader = new Reader(payload, 1)
      const [title, instruction] = [reader.text(), reader.text()]
      reader.string()
      const count = reader.uint32()
      if (count > mostPrompts) throw new ProtocolError('The server asks too many questions at once.')
      const prompts = Array.from({ length: count }, () => ({ text: reader.text(), echo: reader.boolean() }))
      const answers = await answer({ title, instruction, prompts })
      const written = message(Message.authInfoResponse).uint32(answers.length)
      for (const one of answers) written.string(one)
      transport.send(written)
    }
  }

  return {
    async attempt(user, proof) {
      served ??= askForService()
      if (!pipelining) await served
      if (proof.method === 'publickey') return withKey(user, proof.key)
      if (proof.method === 'keyboard-interactive') return interactively(user, proof.answer)
      if (proof.method === 'none') {
        transport.send(request(user, 'none'))
        return conclusion(await receive())
      }
      transport.send(request(user, 'password').boolean(false).string(proof.password))
      return passwordConclusion(await receive())
    },
  }
}

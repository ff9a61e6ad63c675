// Requests about the whole connection, in both directions (RFC 4254 section 4). Replies carry no number: they
// come in the order of the requests. What the owner of the connection did not name is refused at once; what
// waits for the owner is bounded, and counted as the memory it takes.
import { ProtocolError, type ConnectionEnded } from '../errors.ts'
import { compact, heldBy, request_bytes, type Account } from '../memory.ts'
import { Message } from '../messages.ts'
import { queue } from '../queue.ts'
import type { Transport } from '../transport/transport.ts'
import { message, type Reader } from '../wire.ts'
import { orderedAnswers } from './answers.ts'
import type { ConnectionOptions, GlobalRequest } from './types.ts'

/** Many may come in one read, before their reader has a turn. */
const mostRequests = 256

interface HeldRequest extends GlobalRequest {
  release(): void
}

export class GlobalRequests {
  /** The peer's requests for the owner. */
  readonly incoming = queue<HeldRequest>(mostRequests, (asked) => {
    if (!asked.wantReply) asked.release()
  })
  readonly #transport: Transport
  readonly #memory: Account
  readonly #options: Pick<ConnectionOptions, 'globalRequests' | 'answer'>
  /** Our unanswered requests. */
  readonly #replies: PromiseWithResolvers<Buffer | undefined>[] = []
  readonly #answers = orderedAnswers<Uint8Array | false>((answer) => {
    if (answer === false) this.#transport.send(message(Message.requestFailure))
    else this.#transport.send(message(Message.requestSuccess, answer.length).raw(answer))
  })
  #endedWith: ConnectionEnded | undefined

  constructor(
    transport: Transport,
    memory: Account,
    options: Pick<ConnectionOptions, 'globalRequests' | 'answer'>,
  ) {
    this.#transport = transport
    this.#memory = memory
    this.#options = options
  }

  /** Undefined: the peer refused. */
  async request(name: string, payload: Uint8Array): Promise<Buffer | undefined> {
    if (this.#endedWith) throw this.#endedWith
    const reply = Promise.withResolvers<Buffer | undefined>()
    this.#replies.push(reply)
    this.#send(name, true, payload)
    return reply.promise
  }

  tell(name: string, payload: Uint8Array): void {
    this.#send(name, false, payload)
  }

  onRequest(reader: Reader): Promise<void> | void {
    const [name, wantReply] = [reader.text(256), reader.boolean()]
    const payload = compact(reader.rest())
    let held_bytes = request_bytes + heldBy(payload)
    const release = (): void => {
      this.#memory.release(held_bytes)
      held_bytes = 0
    }
    const answer: (answered: Uint8Array | false) => void = wantReply
      ? this.#answers.expect(release)
      : () => undefined
    this.#memory.hold(held_bytes)
    const known = wantReply ? this.#options.answer?.(name, payload) : undefined
    // A client may leave when its program has ended, before it learns the answer to an earlier request, so
    // all else waits.
    if (known) return known.then((answered) => answer(answered ?? false))
    const { globalRequests } = this.#options
    const isWanted = globalRequests === 'all' || globalRequests.includes(name)
    const request: HeldRequest = {
      name,
      wantReply,
      payload,
      accept: (answered = Buffer.alloc(0)) => answer(answered),
      refuse: () => answer(false),
      release,
    }
    if (isWanted && this.incoming.push(request)) return
    answer(false)
    if (!wantReply) release()
  }

  onReply(answer: Buffer | undefined): void {
    const reply = this.#replies.shift()
    if (!reply) throw new ProtocolError('A reply came to no request.')
    reply.resolve(answer)
  }

  end(how: ConnectionEnded): void {
    this.#endedWith = how
    for (const reply of this.#replies.splice(0)) reply.reject(how)
    this.incoming.end()
  }

  #send(name: string, wantReply: boolean, payload: Uint8Array): void {
    this.#transport.send(
      message(Message.globalRequest, 64 + payload.length)
        .string(name)
        .boolean(wantReply)
        .raw(payload),
    )
  }
}

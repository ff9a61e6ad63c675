// A transport without a wire: the messages of an input go in as if they had been decrypted, what is sent is
// thrown away. So a fuzzer reaches what is above the ciphers with every input. An input is a row of messages,
// each behind its length (2 bytes).
import { ConnectionEnded, type SshError } from '../../ssh/src/errors.ts'
import type { Transport } from '../../ssh/src/transport/transport.ts'
import { payloadOf, type Writer } from '../../ssh/src/wire.ts'

export interface BareTransport {
  readonly transport: Transport
  /** Hands every message of the input over; says why the connection ended, if it did. */
  feed(input: Buffer): Promise<SshError | undefined>
}

export function bareTransport(): BareTransport {
  const ended = Promise.withResolvers<ConnectionEnded>()
  let over: ConnectionEnded | undefined
  let deliver: ((payload: Buffer) => Promise<void> | void) | undefined
  const inbox: Buffer[] = []
  let taker: PromiseWithResolvers<Buffer> | undefined
  const finish = (how: ConnectionEnded): void => {
    over ??= how
    taker?.reject(over)
    ended.resolve(over)
  }
  const unused = (): never => {
    throw new Error('Nobody asks for this above the transport.')
  }
  const transport: Transport = {
    role: 'server',
    established: Promise.resolve(),
    ended: ended.promise,
    sessionId: Buffer.alloc(32, 7),
    peerIdent: 'SSH-2.0-Fuzz',
    hostKey: Buffer.alloc(32),
    get negotiated() {
      return unused()
    },
    serverSigAlgs: undefined,
    received: 0,
    async receive() {
      const waiting = inbox.shift()
      if (waiting) return waiting
      if (over) throw over
      taker ??= Promise.withResolvers<Buffer>()
      return taker.promise
    },
    takeOver(receive) {
      deliver = receive
      for (const payload of inbox.splice(0)) void receive(payload)
    },
    send: (_written: Writer) => undefined,
    sendData: () => undefined,
    setPlain: () => undefined,
    releaseMessage: () => undefined,
    congested: false,
    dataWaits: () => undefined,
    pauseReading: () => undefined,
    resumeReading: () => undefined,
    reading: true,
    delivered: () => undefined,
    rekey: () => undefined,
    end: (error) => finish(new ConnectionEnded('us', error.reason, error.message, { cause: error })),
  }
  const hand = async (payload: Buffer): Promise<void> => {
    if (deliver) return deliver(payload)
    if (!taker) return void inbox.push(payload)
    const waiting = taker
    taker = undefined
    waiting.resolve(payload)
  }
  return {
    transport,
    async feed(input) {
      for (const payload of messagesIn(input)) {
        if (over) break
        try {
          await hand(payload)
        } catch (error) {
          // As the transport does: what a message throws ends the connection.
          transport.end(error as SshError)
          return error as SshError
        }
        await turn()
      }
      await turn()
      const how = over
      finish(new ConnectionEnded('network', 10, 'The connection was lost.'))
      await turn()
      return how
    },
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export function* messagesIn(input: Buffer): Generator<Buffer> {
  for (let at = 0; at + 2 < input.length;) {
    const length = Math.max(1, input.readUInt16BE(at))
    yield input.subarray(at + 2, at + 2 + length)
    at += 2 + length
  }
}

/** The other way round, for seeds. */
export function inputOf(...written: readonly Writer[]): Buffer {
  const parts = written.map((one) => Buffer.from(payloadOf(one)))
  return Buffer.concat(
    parts.flatMap((payload) => [Buffer.of(payload.length >> 8, payload.length & 0xff), payload]),
  )
}

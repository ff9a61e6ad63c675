// The key exchanges of one connection, the first and all later ones (RFC 4253 sections 7 and 9; strict key
// exchange: OpenSSH's PROTOCOL file, section 1.10). From our KEXINIT to our NEWKEYS we may send nothing else
// (`holding`). Each direction changes its keys at its own NEWKEYS.
import { canCompress, kexMethods, quickCiphers, type Algorithms } from '../algorithms.ts'
import type { Opener } from '../ciphers/cipher.ts'
import type { CompressionContext } from '../compression/compression.ts'
import { ProtocolError, Reason, SshError } from '../errors.ts'
import type { Agreement, Started } from '../kex/method.ts'
import type { PrivateKey } from '../keys/private-key.ts'
import { Message } from '../messages.ts'
import { message, payloadOf, type Writer } from '../wire.ts'
import { deriveKeys, firstMessage, keyExchange, type Exchanged, type KeyExchange } from './key-exchange.ts'
import {
  extInfoMarker,
  negotiate,
  peerOf,
  readKexInit,
  strictMarker,
  writeKexInit,
  type Negotiated,
  type Role,
} from './kexinit.ts'
import type { PacketReader, PacketWriter } from './packets.ts'

/** The transport, for its exchanges. */
export interface ExchangesOptions {
  readonly role: Role
  readonly algorithms: Algorithms
  readonly hostKeys: readonly PrivateKey[]
  /** A client: the first message of the first exchange follows our KEXINIT, on a guess. */
  readonly guess: boolean
  readonly reader: PacketReader
  readonly writer: PacketWriter
  readonly compression: CompressionContext
  /** Both idents, once known. */
  idents(): Readonly<Record<Role, string>>
  /** Sends past everything that is held back. */
  send(written: Writer): void
  onKexInitSent(): void
  /** Sending continues under new keys. */
  onNewKeysSent(isFirst: boolean, wantsExtInfo: boolean): void
  onNewKeysReceived(): void
}

/**
 * Exponents of thousands of bits take tens of times as long as a point on a curve, and so do RSA signatures.
 */
const [groupCost, rsaCost] = [8, 2]

function costOf({ kex, hostKey }: Negotiated): number {
  return 1 + (kex.name.startsWith('diffie-hellman') ? groupCost : 0) + (hostKey.includes('rsa') ? rsaCost : 0)
}

export class Exchanges {
  readonly #options: ExchangesOptions
  readonly #algorithms: Algorithms
  /** The payloads of the KEXINITs, until the peer's NEWKEYS. */
  #ours: Buffer | undefined
  #theirs: Buffer | undefined
  /** The current exchange, once both KEXINITs are there. */
  #exchange: KeyExchange | undefined
  /** Our half of the exchange that we guessed. */
  #guessed: Promise<Started> | undefined
  /** The peer's guess was wrong: its next message is dropped. */
  #ignoreGuess = false
  /** For packets after the peer's NEWKEYS. */
  #nextOpener: Opener | undefined
  /** Quick ciphers that both sides have. */
  #quick: readonly string[] = []

  /** From our KEXINIT to our NEWKEYS nothing else may be sent. */
  holding = true
  /** After the peer's first NEWKEYS. */
  keyed = false
  /** Both sides want strict key exchange. */
  strict = false
  sessionId: Buffer | undefined
  hostKey: Buffer | undefined
  negotiated: Negotiated | undefined
  /** The work of the current exchange, in exchanges of the cheapest kind, once both KEXINITs are there. */
  cost = 1

  constructor(options: ExchangesOptions) {
    this.#options = options
    this.#algorithms = withKeys(options.algorithms, options.role, options.hostKeys)
  }

  /** Our KEXINIT was sent, and the peer's NEWKEYS has not come. */
  get underWay(): boolean {
    return this.#ours !== undefined
  }

  /** New keys would be for a cheaper cipher. */
  get couldBeQuicker(): boolean {
    return (
      this.#options.role === 'server' &&
      this.keyed &&
      this.#quick.length > 0 &&
      this.negotiated !== undefined &&
      !this.#quick.includes(this.negotiated.toClient.cipher.name)
    )
  }

  /** Sends our KEXINIT, unless an exchange is under way. */
  begin(): void {
    if (this.#ours) return
    const { role } = this.#options
    // The client's order decides, so that a server which knows the client's list offers the best of it alone.
    const offered =
      role === 'server' && this.keyed && this.#quick.length > 0
        ? { ...this.#algorithms, ciphers: this.#quick }
        : this.#algorithms
    const guess = this.#guessedMethod(offered)
    const init = writeKexInit(role, offered, guess !== undefined)
    this.#ours = Buffer.from(payloadOf(init))
    this.holding = true
    this.#options.send(init)
    this.#options.onKexInitSent()
    if (guess) {
      this.#guessed = this.#sendGuess(guess)
      // The code that awaits the guess later learns of its failure.
      this.#guessed.catch(() => undefined)
    }
  }

  /** The method that both sides prefer, if the server's preferences are ours. */
  #guessedMethod({ kex: [first = ''] }: Algorithms): Agreement | undefined {
    if (!this.#options.guess || this.#options.role !== 'client' || this.sessionId) return undefined
    const method = kexMethods.get(first)
    return method?.kind === 'direct' ? method.agreement : undefined
  }

  async #sendGuess(agreement: Agreement): Promise<Started> {
    const started = await agreement.start()
    this.#options.send(firstMessage(started))
    return started
  }

  /** A message with a number from 20 to 49. Later messages must wait for the returned promise. */
  receive(payload: Buffer): Promise<void> | undefined {
    if (payload[0] === Message.kexInit) return this.#onKexInit(payload)
    if (payload[0] === Message.newKeys) this.#onNewKeys(payload)
    else if (!this.#exchange) throw new ProtocolError('A message of a key exchange came without one.')
    else if (!this.#ignoreGuess) return this.#exchange.receive(payload)
    else this.#ignoreGuess = false
    return undefined
  }

  /** Frees keys that are not in use yet. */
  free(): void {
    this.#nextOpener?.free()
    this.#nextOpener = undefined
  }

  async #onKexInit(payload: Buffer): Promise<void> {
    if (this.#theirs) throw new ProtocolError('A KEXINIT came during a key exchange.')
    this.begin()
    this.#theirs = Buffer.from(payload)
    const { role, reader, hostKeys } = this.#options
    const inits = { [role]: this.#ours, [peerOf(role)]: this.#theirs } as Record<Role, Buffer>
    const [client, server] = [readKexInit(inits.client), readKexInit(inits.server)]
    if (!this.sessionId) {
      this.strict = client.kex.includes(strictMarker.client) && server.kex.includes(strictMarker.server)
      if (this.strict && reader.sequence !== 0) throw new ProtocolError('Something came before the KEXINIT.')
    }
    const agreed = negotiate(client, server)
    this.cost = costOf(agreed)
    this.#quick = quickCiphers.filter(
      (name) => this.#algorithms.ciphers.includes(name) && client.cipher.every((list) => list.includes(name)),
    )
    this.#ignoreGuess = agreed.wrongGuess && (role === 'client' ? server : client).guess
    // Awaited even if it is useless: later messages must leave after it.
    const guessed = await this.#guessed
    this.#guessed = undefined
    this.#exchange = keyExchange({
      role,
      negotiated: agreed,
      idents: this.#options.idents(),
      inits,
      started: agreed.wrongGuess ? undefined : guessed,
      hostKey: hostKeys.find((key) => key.algorithms.includes(agreed.hostKey)),
      send: (written) => this.#options.send(written),
      done: (exchanged) => this.#onExchanged(exchanged, agreed, client.kex.includes(extInfoMarker)),
    })
    await this.#exchange.begin()
  }

  #onExchanged(exchanged: Exchanged, agreed: Negotiated, wantsExtInfo: boolean): void {
    const { role, writer, compression } = this.#options
    const isFirst = !this.sessionId
    if (this.hostKey && !this.hostKey.equals(exchanged.hostKey))
      throw new SshError(Reason.hostKeyNotVerifiable, 'The host key changed.')
    const sessionId = (this.sessionId ??= exchanged.digest)
    this.hostKey = exchanged.hostKey
    this.negotiated = agreed
    const keysOf = (towards: Role) => {
      const direction = towards === 'server' ? agreed.toServer : agreed.toClient
      return { ...direction, keys: deriveKeys(exchanged, sessionId, towards, direction) }
    }
    const [outward, inward] = [keysOf(peerOf(role)), keysOf(role)]
    // First, because it throws when the connection has ended while the keys were computed.
    this.#options.send(message(Message.newKeys))
    const sealer = outward.cipher.sealer(outward.keys, outward.mac)
    writer.use(sealer, this.strict, outward.compression?.compressor(compression))
    this.#nextOpener = inward.cipher.opener(inward.keys, inward.mac)
    this.holding = false
    this.#options.onNewKeysSent(isFirst, wantsExtInfo)
  }

  #onNewKeys(payload: Buffer): void {
    if (!this.#nextOpener || payload.length !== 1) throw new ProtocolError('NEWKEYS came out of order.')
    const { role, reader, compression } = this.#options
    const inward = role === 'server' ? this.negotiated?.toServer : this.negotiated?.toClient
    reader.use(this.#nextOpener, this.strict, inward?.compression?.decompressor(compression))
    this.#nextOpener = this.#exchange = this.#ours = this.#theirs = undefined
    this.keyed = true
    this.#options.onNewKeysReceived()
  }
}

/** Only what works is offered: a server needs a key for it, compression needs Node's zlib. */
function withKeys(offered: Algorithms, role: Role, hostKeys: readonly PrivateKey[]): Algorithms {
  const algorithms = { ...offered, compression: offered.compression.filter(canCompress) }
  if (role === 'client') return algorithms
  const hostKey = algorithms.hostKey.filter((name) => hostKeys.some((key) => key.algorithms.includes(name)))
  if (hostKey.length === 0) throw new TypeError('A server needs a host key for one of its algorithms.')
  return { ...algorithms, hostKey }
}

// The key exchanges of one connection, the first and all later ones (RFC 4253 sections 7 and 9; strict key
// exchange: OpenSSH's PROTOCOL file, section 1.10). Whose turn it is: from our KEXINIT to our NEWKEYS we may
// send nothing else (`holding`). Each direction changes its keys at its own NEWKEYS.
import { quickCiphers, type Algorithms } from '../algorithms.ts'
import type { Opener } from '../ciphers/cipher.ts'
import { ProtocolError, Reason, SshError } from '../errors.ts'
import type { PrivateKey } from '../keys/private-key.ts'
import { Message } from '../messages.ts'
import { message, payloadOf, type Writer } from '../wire.ts'
import { deriveKeys, keyExchange, type Exchanged, type KeyExchange } from './key-exchange.ts'
import {
  extInfoMarker,
  negotiate,
  readKexInit,
  strictMarker,
  writeKexInit,
  type Negotiated,
  type Role,
} from './kexinit.ts'
import type { PacketReader, PacketWriter } from './packets.ts'

export interface ExchangesOptions {
  readonly role: Role
  readonly algorithms: Algorithms
  readonly hostKeys: readonly PrivateKey[]
  readonly reader: PacketReader
  readonly writer: PacketWriter
  /** Both idents, once known. */
  idents(): Readonly<Record<Role, string>>
  /** Sends past everything that is held back. */
  send(written: Writer): void
  /** Our KEXINIT has left. */
  onBegin(): void
  /** Our NEWKEYS has left: sending goes on under new keys. */
  onSending(first: boolean, wantsExtInfo: boolean): void
  /** The peer's NEWKEYS is here: the exchange is over. */
  onDone(): void
}

export interface Exchanges {
  /** Unless one is under way. */
  begin(): void
  /** A message with a number from 20 to 49. No other message may be taken before what it returns is done. */
  receive(payload: Buffer): Promise<void> | undefined
  readonly underWay: boolean
  readonly holding: boolean
  /** After the peer's first NEWKEYS. */
  readonly keyed: boolean
  readonly strict: boolean
  readonly sessionId: Buffer | undefined
  readonly hostKey: Buffer | undefined
  readonly negotiated: Negotiated | undefined
  /**
   * Of the exchange under way, once both sides have said what they want: how many of the cheapest kind would
   * take as long.
   */
  readonly cost: number
  /** New keys would be for a cipher that costs less. */
  readonly couldBeQuicker: boolean
  /** The connection is over: frees keys that are not in use yet. */
  free(): void
}

/**
 * Exponents of thousands of bits take tens of times as long as a point on a curve, and so does a signature
 * with RSA.
 */
const [groupCost, rsaCost] = [8, 2]

function costOf({ kex, hostKey }: Negotiated): number {
  return 1 + (kex.name.startsWith('diffie-hellman') ? groupCost : 0) + (hostKey.includes('rsa') ? rsaCost : 0)
}

export function exchanges(options: ExchangesOptions): Exchanges {
  const { role, reader, writer } = options
  const peer: Role = role === 'client' ? 'server' : 'client'
  const algorithms = withKeys(options.algorithms, role, options.hostKeys)
  /** The payloads of the KEXINITs, from when they were sent or came until the peer's NEWKEYS. */
  let ours: Buffer | undefined
  let theirs: Buffer | undefined
  let exchange: KeyExchange | undefined
  let nextOpener: Opener | undefined
  let ignoreGuess = false
  let holding = true
  let keyed = false
  let strict = false
  let sessionId: Buffer | undefined
  let hostKey: Buffer | undefined
  let negotiated: Negotiated | undefined
  let cost = 1
  /** What both sides have of them. */
  let quick: readonly string[] = []

  const begin = (): void => {
    if (ours) return
    // The client's order decides, so that a server which knows the client's list offers the best of it alone.
    const offered =
      role === 'server' && keyed && quick.length > 0 ? { ...algorithms, ciphers: quick } : algorithms
    const init = writeKexInit(role, offered)
    ours = Buffer.from(payloadOf(init))
    holding = true
    options.send(init)
    options.onBegin()
  }

  const onKexInit = async (payload: Buffer): Promise<void> => {
    if (theirs) throw new ProtocolError('A KEXINIT came during a key exchange.')
    begin()
    theirs = Buffer.from(payload)
    const inits = { [role]: ours, [peer]: theirs } as Record<Role, Buffer>
    const [client, server] = [readKexInit(inits.client), readKexInit(inits.server)]
    if (!sessionId) {
      strict = client.kex.includes(strictMarker.client) && server.kex.includes(strictMarker.server)
      if (strict && reader.sequence !== 0) throw new ProtocolError('Something came before the KEXINIT.')
    }
    const agreed = negotiate(client, server)
    cost = costOf(agreed)
    quick = quickCiphers.filter(
      (name) => algorithms.ciphers.includes(name) && client.cipher.every((list) => list.includes(name)),
    )
    ignoreGuess = agreed.wrongGuess && (role === 'client' ? server : client).guess
    exchange = keyExchange({
      role,
      negotiated: agreed,
      idents: options.idents(),
      inits,
      hostKey: options.hostKeys.find((key) => key.algorithms.includes(agreed.hostKey)),
      send: options.send,
      done: (exchanged) => onExchanged(exchanged, agreed, client.kex.includes(extInfoMarker)),
    })
    await exchange.begin()
  }

  const onExchanged = (exchanged: Exchanged, agreed: Negotiated, wantsExtInfo: boolean): void => {
    const first = !sessionId
    if (hostKey && !hostKey.equals(exchanged.hostKey))
      throw new SshError(Reason.hostKeyNotVerifiable, 'The host key changed.')
    sessionId ??= exchanged.digest
    hostKey = exchanged.hostKey
    negotiated = agreed
    const keysOf = (towards: Role) => {
      const direction = towards === 'server' ? agreed.toServer : agreed.toClient
      return { ...direction, keys: deriveKeys(exchanged, sessionId!, towards, direction) }
    }
    const [outward, inward] = [keysOf(peer), keysOf(role)]
    // First of all, because it throws when the connection has ended while the keys were computed.
    options.send(message(Message.newKeys))
    writer.use(outward.cipher.sealer(outward.keys, outward.mac), strict)
    nextOpener = inward.cipher.opener(inward.keys, inward.mac)
    holding = false
    options.onSending(first, wantsExtInfo)
  }

  const onNewKeys = (payload: Buffer): void => {
    if (!nextOpener || payload.length !== 1) throw new ProtocolError('NEWKEYS came out of order.')
    reader.use(nextOpener, strict)
    nextOpener = exchange = ours = theirs = undefined
    keyed = true
    options.onDone()
  }

  return {
    begin,
    receive(payload) {
      if (payload[0] === Message.kexInit) return onKexInit(payload)
      if (payload[0] === Message.newKeys) onNewKeys(payload)
      else if (!exchange) throw new ProtocolError('A message of a key exchange came without one.')
      else if (!ignoreGuess) return exchange.receive(payload)
      else ignoreGuess = false
      return undefined
    },
    free() {
      nextOpener?.free()
      nextOpener = undefined
    },
    get underWay() {
      return ours !== undefined
    },
    get holding() {
      return holding
    },
    get couldBeQuicker() {
      return (
        role === 'server' && keyed && quick.length > 0 && !quick.includes(negotiated!.toClient.cipher.name)
      )
    },
    get keyed() {
      return keyed
    },
    get strict() {
      return strict
    },
    get sessionId() {
      return sessionId
    },
    get hostKey() {
      return hostKey
    },
    get negotiated() {
      return negotiated
    },
    get cost() {
      return cost
    },
  }
}

/** A server offers only what it has keys for. */
function withKeys(algorithms: Algorithms, role: Role, hostKeys: readonly PrivateKey[]): Algorithms {
  if (role === 'client') return algorithms
  const hostKey = algorithms.hostKey.filter((name) => hostKeys.some((key) => key.algorithms.includes(name)))
  if (hostKey.length === 0) throw new TypeError('A server needs a host key for one of its algorithms.')
  return { ...algorithms, hostKey }
}

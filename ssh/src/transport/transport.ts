// The transport of one connection (RFC 4253): identification strings, packets, key exchanges, and the few
// messages that belong to no service. The layer above sees messages in order, may send at any time, and is
// told when to hold data back. Invariants: nothing but the exchange itself is sent between our KEXINIT
// and our NEWKEYS; with strict key exchange (the answer to the Terrapin attack) nothing else is taken at
// all before the first keys, and packets are counted from zero after every NEWKEYS. Before the login
// there is one key exchange and no other. Every wait here has a limit, and whatever waits is counted as
// the memory it takes.
import type { Duplex } from 'node:stream'
import type { CompressionContext, CompressionMode } from '../compression/compression.ts'
import { ConnectionEnded, errorFrom, ProtocolError, Reason, SshError } from '../errors.ts'
import { isKexMessage, Message } from '../messages.ts'
import { payloadOf, type Writer } from '../wire.ts'
import { Exchanges } from './exchanges.ts'
import {
  isServiceMessage,
  readDisconnect,
  readServerSigAlgs,
  writeDisconnect,
  writeExtInfo,
  writePong,
  writeUnimplemented,
} from './generic-messages.ts'
import { identOf, identReader, type IdentReader } from './ident.ts'
import { peerOf, type Negotiated, type Role } from './kexinit.ts'
import { PacketReceiver, type Deliver } from './receiver.ts'
import { KeyUsage, RekeyBudget } from './rekeying.ts'
import { PacketSender } from './sender.ts'
import { SlowLink } from './slow-link.ts'
import type { Transport, TransportOptions } from './types.ts'

export type { Transport, TransportOptions } from './types.ts'

/** For an exchange over a slow network that is full of data. */
const exchange_ms = 300_000
/** For a peer that waits for our KEXINIT while we wait for its own. */
const kexInit_ms = 50
/** A session that has moved this much will move more: new keys for a quicker cipher pay off. */
const worthQuicker_bytes = 1024 * 1024
/** For the DISCONNECT to leave. */
const disconnect_ms = 2_000

/** Begins at once, unless the peer is to speak first. */
export function openTransport(socket: Duplex, options: TransportOptions): Transport {
  return new SshTransport(socket, options)
}

class SshTransport implements Transport {
  readonly role: Role
  readonly #socket: Duplex
  readonly #options: TransportOptions
  readonly #sender: PacketSender
  readonly #receiver: PacketReceiver
  readonly #exchanges: Exchanges
  readonly #established = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<ConnectionEnded>()
  /** Undefined: the connection is open. */
  #endedWith: ConnectionEnded | undefined

  /** Our identification string, and whether it was sent. */
  readonly #ident: string
  #identSent = false
  /** The peer's identification string, once it has come. */
  readonly #identReader: IdentReader
  #peerIdent: string | undefined
  serverSigAlgs: readonly string[] | undefined
  received = 0

  readonly #keyUsage = new KeyUsage()
  readonly #rekeyBudget = new RekeyBudget()
  readonly #link: SlowLink
  readonly #compression: TransportCompression
  /** Limits the current exchange, or waits for the next. */
  #exchangeTimer: NodeJS.Timeout | undefined
  /** Runs until our first KEXINIT leaves without the peer's. */
  #kexInitTimer: NodeJS.Timeout | undefined
  /** The next packet of a server is its EXT_INFO. */
  #extInfoDue = false
  /** Keys are renewed only after the login; and whether they were due before. */
  #loggedIn = false
  #rekeyAfterLogin = false
  /** Called when there is room to send, after the takeover. */
  #onRoom: (() => void) | undefined

  constructor(socket: Duplex, options: TransportOptions) {
    this.role = options.role
    this.#socket = socket
    this.#options = options
    this.#ident = identOf(options.software)
    this.#identReader = identReader(peerOf(this.role))
    this.#established.promise.catch(() => undefined)
    const onRoom = (): void => {
      if (!this.#exchanges.holding) this.#onRoom?.()
    }
    const onError = (error: unknown): void => this.end(errorFrom(error))
    this.#sender = new PacketSender(socket, this.#keyUsage, onRoom, onError)
    this.#receiver = new PacketReceiver(socket, {
      onMessage: (payload) => this.#onMessage(payload),
      onIdle: () => this.#rekeyIfDue(),
      onError,
    })
    this.#link = new SlowLink(() => this.#sender.unsent_bytes)
    this.#compression = new TransportCompression(options.compress ?? 'auto', this.#link)
    this.#exchanges = new Exchanges({
      role: options.role,
      algorithms: options.algorithms,
      hostKeys: options.hostKeys,
      guess: options.guess ?? false,
      reader: this.#receiver.reader,
      writer: this.#sender.writer,
      compression: this.#compression,
      idents: () =>
        ({ [this.role]: this.#ident, [peerOf(this.role)]: this.peerIdent }) as Record<Role, string>,
      send: (written) => {
        // An exchange was computing when everything ended.
        if (this.#endedWith) throw this.#endedWith
        this.#sender.send(written)
      },
      onKexInitSent: () => this.#limitExchange(),
      onNewKeysSent: (isFirst, wantsExtInfo) => this.#onNewKeysSent(isFirst, wantsExtInfo),
      onNewKeysReceived: () => this.#onNewKeysReceived(),
    })
    socket.on('data', (chunk: Buffer) => this.#onData(chunk))
    socket.on('end', () => this.#onLost())
    socket.on('close', () => this.#onLost())
    socket.on('error', (error: Error) => this.#onLost(error))
    this.#limitExchange()
    if (!options.speakSecond) this.#speak()
  }

  get established(): Promise<void> {
    return this.#established.promise
  }

  get ended(): Promise<ConnectionEnded> {
    return this.#ended.promise
  }

  get sessionId(): Buffer {
    return known(this.#exchanges.sessionId)
  }

  get peerIdent(): string {
    return known(this.#peerIdent)
  }

  get hostKey(): Buffer {
    return known(this.#exchanges.hostKey)
  }

  get negotiated(): Negotiated {
    return known(this.#exchanges.negotiated)
  }

  get congested(): boolean {
    return this.#exchanges.holding || this.#endedWith !== undefined || this.#sender.congested
  }

  get reading(): boolean {
    return !this.#receiver.isPaused
  }

  receive(): Promise<Buffer> {
    return this.#receiver.next()
  }

  takeOver(deliver: Deliver, onRoom: () => void): void {
    this.#loggedIn = this.#compression.loggedIn = true
    this.#onRoom = onRoom
    this.#sender.trustPeer()
    this.#receiver.takeOver(deliver)
    if (this.#rekeyAfterLogin) this.rekey()
  }

  releaseMessage(): void {
    this.#receiver.reader.release()
  }

  dataWaits(): void {
    this.#link.waits()
  }

  send(written: Writer): void {
    if (this.#endedWith) return
    try {
      if (this.#exchanges.holding) return this.#sender.hold(written)
      this.#sendExtInfo()
      this.#sender.send(written)
      if (!this.#loggedIn) this.#noteBeforeLogin(payloadOf(written)[0])
      this.#rekeyIfDue()
    } catch (error) {
      this.end(errorFrom(error))
    }
  }

  sendData(channel: number, stream: number, bytes: Uint8Array, most_bytes: number): void {
    if (this.#endedWith) return
    try {
      this.#sendExtInfo()
      this.#sender.sendData(channel, stream, bytes, most_bytes)
      this.#rekeyIfDue()
    } catch (error) {
      this.end(errorFrom(error))
    }
  }

  setPlain(channel: number, isPlain: boolean): void {
    this.#compression.setPlain(channel, isPlain)
  }

  pauseReading(): void {
    this.#receiver.pause()
  }

  resumeReading(): void {
    this.#receiver.resume()
  }

  delivered(bytes: number): void {
    this.#rekeyBudget.delivered(bytes)
  }

  rekey(): void {
    try {
      if (!this.#loggedIn) this.#rekeyAfterLogin = true
      else if (!this.#endedWith && this.#exchanges.keyed) this.#exchanges.begin()
    } catch (error) {
      this.end(errorFrom(error))
    }
  }

  end(error: SshError): void {
    if (this.#endedWith) return
    try {
      if (this.#identSent) this.#sender.send(writeDisconnect(error))
    } catch {
      // A DISCONNECT that cannot be sent is not worth another failure.
    }
    this.#sender.flush()
    this.#finish(new ConnectionEnded('us', error.reason, error.message, { cause: error }))
    this.#socket.end()
    this.#socket.resume()
    const timer = setTimeout(() => this.#socket.destroy(), disconnect_ms)
    this.#socket.once('close', () => clearTimeout(timer))
  }

  #speak(): void {
    this.#identSent = true
    this.#socket.write(`${this.#ident}\r\n`)
    if (this.#options.answerKexInit)
      this.#kexInitTimer = setTimeout(() => this.#exchanges.begin(), kexInit_ms).unref()
    else this.#exchanges.begin()
  }

  #sendExtInfo(): void {
    if (!this.#extInfoDue) return
    this.#extInfoDue = false
    this.#sender.send(writeExtInfo())
  }

  #limitExchange(): void {
    clearTimeout(this.#kexInitTimer)
    this.#setExchangeTimer(exchange_ms, () =>
      this.end(new SshError(Reason.keyExchangeFailed, 'The key exchange took too long.')),
    )
  }

  #setExchangeTimer(after_ms: number, then: () => void): void {
    clearTimeout(this.#exchangeTimer)
    this.#exchangeTimer = setTimeout(then, after_ms).unref()
  }

  #onNewKeysSent(isFirst: boolean, wantsExtInfo: boolean): void {
    this.#keyUsage.reset()
    this.#extInfoDue = isFirst && this.role === 'server' && wantsExtInfo
    for (const written of this.#sender.takeHeld()) this.send(written)
    if (!this.#sender.congested) this.#onRoom?.()
  }

  #onNewKeysReceived(): void {
    this.#setExchangeTimer(this.#options.rekey_ms, () => this.rekey())
    // Only now: the client's next message after its NEWKEYS would wait for our kernel's late acknowledgement
    // (40 ms) without a packet from us. It still directly follows our own NEWKEYS (RFC 8308 section 2.4).
    this.#sendExtInfo()
    this.#established.resolve()
  }

  #rekeyIfDue(): void {
    const { rekey_bytes } = this.#options
    const exchanges = this.#exchanges
    const limit_bytes = exchanges.couldBeQuicker ? Math.min(worthQuicker_bytes, rekey_bytes) : rekey_bytes
    if (this.#keyUsage.exceeds(limit_bytes) && this.#loggedIn && exchanges.keyed && !exchanges.underWay)
      exchanges.begin()
  }

  /** A KEXINIT after the first keys. */
  #onRekey(kexInit: Buffer): Promise<void> | undefined {
    if (!this.#loggedIn) throw new ProtocolError('New keys are not made before the login.')
    const wasAskedFor = this.#exchanges.underWay
    const work = this.#exchanges.receive(kexInit)
    if (wasAskedFor || this.#rekeyBudget.spend(this.#exchanges.cost)) return work
    work?.catch(() => undefined)
    throw new ProtocolError('The peer wants new keys too often.')
  }

  #onData(chunk: Buffer): void {
    if (this.#endedWith) return
    this.#keyUsage.bytes += chunk.length
    if (!this.#identSent) this.#speak()
    if (this.#peerIdent !== undefined) return this.#receiver.push(chunk)
    try {
      const found = this.#identReader.push(chunk)
      if (!found) return
      this.#peerIdent = found.ident
      this.#receiver.push(found.rest)
    } catch (error) {
      this.end(errorFrom(error))
    }
  }

  #onMessage(payload: Buffer): Promise<void> | void {
    const type = payload[0]!
    const { keyed, strict } = this.#exchanges
    this.received += 1
    if (type === Message.disconnect) return this.#onDisconnect(payload)
    if (type === Message.kexInit && keyed) return this.#onRekey(payload)
    if (isKexMessage(type)) return this.#exchanges.receive(payload)
    if (!keyed && (strict || type > Message.debug))
      throw new ProtocolError('A message came before the first keys.')
    if (type === Message.ignore || type === Message.debug || type === Message.unimplemented) return
    // After its KEXINIT the peer should send nothing else until its NEWKEYS (RFC 4253 section 7.1). Some do;
    // their messages are good under the old keys, so they are taken, as OpenSSH does.
    if (type === Message.extInfo) return this.#onExtInfo(payload)
    if (type === Message.ping) return this.send(writePong(payload))
    if (type === Message.pong) return
    if (!isServiceMessage(type)) return this.send(writeUnimplemented(this.#receiver.reader.sequence))
    // A server may renew its keys right after the login, before anybody here has taken over.
    if (type === Message.serviceAccept) this.#link.answered()
    if (type === Message.authSuccess && this.role === 'client')
      this.#loggedIn = this.#compression.loggedIn = true
    return this.#receiver.deliver(payload)
  }

  #noteBeforeLogin(type: number | undefined): void {
    if (type === Message.serviceRequest) this.#link.asked()
    // Later messages are compressed.
    if (type === Message.authSuccess && this.role === 'server') this.#compression.loggedIn = true
  }

  #onExtInfo(payload: Buffer): void {
    const algorithms = readServerSigAlgs(payload)
    if (algorithms && this.role === 'client') this.serverSigAlgs = algorithms
  }

  #onDisconnect(payload: Buffer): void {
    this.#finish(readDisconnect(payload))
    this.#socket.destroy()
  }

  #onLost(cause?: Error): void {
    this.#finish(new ConnectionEnded('network', Reason.connectionLost, 'The connection was lost.', { cause }))
    this.#socket.destroy()
  }

  /** Nothing is sent or taken after this. */
  #finish(how: ConnectionEnded): void {
    if (this.#endedWith) return
    this.#endedWith = how
    clearTimeout(this.#exchangeTimer)
    clearTimeout(this.#kexInitTimer)
    this.#link.answered()
    this.#sender.end()
    this.#receiver.end(how)
    this.#exchanges.free()
    this.#established.reject(how)
    this.#ended.resolve(how)
  }
}

class TransportCompression implements CompressionContext {
  readonly mode: CompressionMode
  readonly #link: SlowLink
  readonly #plain = new Set<number>()
  loggedIn = false
  peerWants = false

  constructor(mode: CompressionMode, link: SlowLink) {
    this.mode = mode
    this.#link = link
  }

  isSlow(bytes: number): boolean {
    return this.#link.isSlow(bytes)
  }

  isPlain(channel: number): boolean {
    return this.#plain.has(channel)
  }

  setPlain(channel: number, isPlain: boolean): void {
    if (isPlain) this.#plain.add(channel)
    else this.#plain.delete(channel)
  }
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('This is known only after the first key exchange.')
  return value
}

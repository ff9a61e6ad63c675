// The transport of one connection (RFC 4253): idents, packets, key exchanges, and the few messages that
// belong to no service. Whoever is above sees messages in order, may send at any time, and is told when to
// hold data back. Invariants: nothing but the exchange itself is sent between our KEXINIT and our NEWKEYS;
// with strict key exchange (the answer to the Terrapin attack) nothing else is taken at all before the first
// keys, and packets are counted from zero after every NEWKEYS. Before the login there is one key exchange and
// no other. Every wait here has a limit, and whatever waits is counted as the memory it takes.
import type { Duplex } from 'node:stream'
import type { Algorithms } from '../algorithms.ts'
import { ConnectionEnded, errorFrom, ProtocolError, Reason, SshError } from '../errors.ts'
import type { PrivateKey } from '../keys/private-key.ts'
import { signatureAlgorithms } from '../keys/signature.ts'
import { compact, heldBy, object_bytes } from '../memory.ts'
import { isKexMessage, Message } from '../messages.ts'
import { message, Reader, type Writer } from '../wire.ts'
import { exchanges } from './exchanges.ts'
import { identOf, identReader } from './ident.ts'
import type { Negotiated, Role } from './kexinit.ts'
import { mostUnsent_bytes, outbox } from './outbox.ts'
import { largestPacket_bytes, packetReader, packetWriter } from './packets.ts'

export interface TransportOptions {
  readonly role: Role
  /** The software part of our ident. */
  readonly software: string
  readonly algorithms: Algorithms
  readonly hostKeys: readonly PrivateKey[]
  /** New keys are made after so many bytes in either direction, and after so long. */
  readonly rekey_bytes: number
  readonly rekey_ms: number
  /** Say nothing before the peer has: some tunnels need it. */
  readonly speakSecond: boolean
  /** Our first KEXINIT waits a moment for the peer's. */
  readonly answerKexInit: boolean
}

export interface Transport {
  readonly role: Role
  /** Resolves with the first keys. */
  readonly established: Promise<void>
  /** Resolves, never rejects, when the connection is over. */
  readonly ended: Promise<ConnectionEnded>
  readonly sessionId: Buffer
  readonly peerIdent: string
  /** The server's host key. */
  readonly hostKey: Buffer
  readonly negotiated: Negotiated
  /** What the server said it verifies (RFC 8308); undefined if it said nothing. */
  readonly serverSigAlgs: readonly string[] | undefined
  /** Packets that have arrived; whoever watches it sees whether the peer lives. */
  readonly received: number
  /** The next message, until somebody took over. */
  receive(): Promise<Buffer>
  /**
   * Somebody is logged in. From now on messages go to this function as they arrive, and the peer may send
   * large packets. When it returns a promise the messages after it wait.
   */
  takeOver(receive: (payload: Buffer) => Promise<void> | void, onRoom: () => void): void
  send(written: Writer): void
  /** True while data should wait. */
  readonly congested: boolean
  /** Nothing is taken from the peer until `readOn`. */
  stopReading(): void
  readOn(): void
  readonly reading: boolean
  /**
   * So many bytes of a channel have reached whom they were for, on either side: what the peer pays for new
   * keys with.
   */
  delivered(bytes: number): void
  rekey(): void
  /** Says goodbye and ends. */
  end(error: SshError): void
}

/** Messages that wait for whoever authenticates, in memory; then the socket waits. */
const mostWaiting_bytes = 64 * 1024
/** Answers that a stranger has not read. */
const strangersUnsent_bytes = 64 * 1024
/** How long an exchange may take, over a slow line that is full of data. */
const exchange_ms = 300_000
/** For a peer who waits for our KEXINIT while we wait for its own. */
const kexInit_ms = 50
/** A session that has moved so much will move more: it is worth the time for keys of a quicker cipher. */
const worthQuicker_bytes = 1024 * 1024
/**
 * Under one key: the numbers of packets, which some ciphers take for their nonce, must not come round (RFC
 * 4344 section 3.1).
 */
const mostPackets = 2 ** 31
/** How long the goodbye may take to leave. */
const farewell_ms = 2_000
/** Memory of answers that wait for the end of an exchange; data does not, it is held back. */
const mostHeld_bytes = 1024 * 1024
/**
 * New keys cost us a thousand times what they cost to ask for: so many of the cheapest kind for nothing, then
 * for data that was delivered, and now and then for the time that passed. OpenSSH with a RekeyLimit of 512K
 * wants them after every packet of data.
 */
const exchangesAtOnce = 64
const exchangeEvery_ms = 500
const exchangeEvery_bytes = 32 * 1024
const longestPing_bytes = 4_096
const longestGoodbye = 512

export function openTransport(socket: Duplex, options: TransportOptions): Transport {
  const { role } = options
  const peer: Role = role === 'client' ? 'server' : 'client'
  const reader = packetReader()
  const writer = packetWriter()
  const ident = identOf(options.software)
  const identIn = identReader(peer)

  const established = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<ConnectionEnded>()
  established.promise.catch(() => undefined)
  let over: ConnectionEnded | undefined
  let spoke = false
  let peerIdent: string | undefined
  let serverSigAlgs: string[] | undefined
  let received = 0
  let extInfoDue = false
  let sinceKeys_bytes = 0
  let sinceKeys_packets = 0
  let timer: NodeJS.Timeout | undefined
  let kexInitTimer: NodeJS.Timeout | undefined
  let allowance = exchangesAtOnce
  let exchanged_at = performance.now()
  let delivered_bytes = 0
  /** What cannot leave before our NEWKEYS. */
  let held: Writer[] = []
  let held_bytes = 0

  /** Until somebody takes over, messages wait here. */
  const inbox: Buffer[] = []
  let inbox_bytes = 0
  let taker: PromiseWithResolvers<Buffer> | undefined
  let loggedIn = false
  /** New keys were due before the login. */
  let rekeyLate = false
  /** The inbox is full, or whoever took over wants no more. */
  let [paused, stopped] = [false, false]
  /**
   * Of what came, so much is being computed: what comes meanwhile waits for it, so that packets keep their
   * order.
   */
  let computing = 0
  let deliver: ((payload: Buffer) => Promise<void> | void) | undefined
  let room: () => void = () => undefined

  const out = outbox(socket, () => {
    if (!kex.holding) room()
  })
  out.allow(strangersUnsent_bytes)

  const kex = exchanges({
    ...options,
    reader,
    writer,
    idents: () => ({ [role]: ident, [peer]: peerIdent! }) as Record<Role, string>,
    send(written) {
      // An exchange that was computing when everything ended.
      if (over) throw over
      sendNow(written)
    },
    onBegin() {
      clearTimeout(kexInitTimer)
      watch(exchange_ms, () => end(new SshError(Reason.keyExchangeFailed, 'The key exchange took too long.')))
    },
    onSending(first, wantsExtInfo) {
      sinceKeys_bytes = sinceKeys_packets = 0
      held_bytes = 0
      extInfoDue = first && role === 'server' && wantsExtInfo
      for (const written of held.splice(0)) send(written)
      if (!out.congested) room()
    },
    onDone() {
      watch(options.rekey_ms, rekey)
      // Only now: the client has just sent its NEWKEYS, and what it sends next would wait for our kernel's
      // late acknowledgement (40 ms) if there were nothing from us. It is still what follows our own NEWKEYS
      // (RFC 8308 section 2.4).
      sendExtInfo()
      established.resolve()
    },
  })

  const sendExtInfo = (): void => {
    if (!extInfoDue) return
    extInfoDue = false
    sendNow(extInfo())
  }

  const speak = (): void => {
    spoke = true
    socket.write(`${ident}\r\n`)
    if (options.answerKexInit) kexInitTimer = setTimeout(kex.begin, kexInit_ms).unref()
    else kex.begin()
  }

  const sendNow = (written: Writer): void => {
    const sealed = writer.seal(written, out.room)
    for (const part of sealed) sinceKeys_bytes += part.length
    sinceKeys_packets += 1
    out.push(sealed)
  }

  const send = (written: Writer): void => {
    if (over) return
    try {
      if (!kex.holding) {
        sendExtInfo()
        sendNow(written)
        rekeyIfDue()
      } else {
        held.push(written)
        held_bytes += written.capacity + object_bytes
        if (held_bytes > mostHeld_bytes) throw new ProtocolError('The peer does not finish the key exchange.')
      }
    } catch (error) {
      end(errorFrom(error))
    }
  }

  const rekeyIfDue = (): void => {
    const limit_bytes = kex.couldBeQuicker
      ? Math.min(worthQuicker_bytes, options.rekey_bytes)
      : options.rekey_bytes
    const due = sinceKeys_bytes > limit_bytes || sinceKeys_packets > mostPackets
    if (due && loggedIn && kex.keyed && !kex.underWay) kex.begin()
  }

  const rekey = (): void => {
    try {
      if (!loggedIn) rekeyLate = true
      else if (!over && kex.keyed) kex.begin()
    } catch (error) {
      end(errorFrom(error))
    }
  }

  const watch = (after_ms: number, then: () => void): void => {
    clearTimeout(timer)
    timer = setTimeout(then, after_ms).unref()
  }

  const onMessage = (payload: Buffer): void => {
    const type = payload[0]!
    received += 1
    if (type === Message.disconnect) return onDisconnect(payload)
    if (type === Message.kexInit && kex.keyed) return onRenewal(payload)
    if (isKexMessage(type)) return waitFor(kex.receive(payload))
    if (!kex.keyed && (kex.strict || type > Message.debug))
      throw new ProtocolError('A message came before the first keys.')
    if (type === Message.ignore || type === Message.debug || type === Message.unimplemented) return
    // After its KEXINIT the peer should send nothing else until its NEWKEYS (RFC 4253 section 7.1). Some do
    // while keys are renewed; what comes is under the old keys and good, so it is taken, as OpenSSH does.
    if (type === Message.extInfo) return onExtInfo(payload)
    if (type === Message.ping) {
      const echoed = new Reader(payload, 1).string()
      if (echoed.length > longestPing_bytes) throw new ProtocolError('A ping is too long.')
      return send(message(Message.pong, 4 + echoed.length).string(echoed))
    }
    if (type === Message.pong) return
    if (!isServiceMessage(type)) return send(message(Message.unimplemented).uint32(reader.sequence))
    if (deliver) return waitFor(deliver(payload))
    // A server may renew its keys as soon as it has let us in, before anybody here has taken over.
    if (type === Message.authSuccess && role === 'client') loggedIn = true
    if (taker) {
      const waiting = taker
      taker = undefined
      return waiting.resolve(payload)
    }
    const kept = compact(payload)
    inbox.push(kept)
    inbox_bytes += heldBy(kept)
    if (inbox_bytes >= mostWaiting_bytes) {
      paused = true
      socket.pause()
    }
  }

  const waitFor = (computed: Promise<void> | void): void => {
    if (!computed) return
    computing += 1
    socket.pause()
    computed.then(
      () => {
        computing -= 1
        goOn()
      },
      (error: unknown) => end(errorFrom(error)),
    )
  }

  const onRenewal = (kexInit: Buffer): void => {
    if (!loggedIn) throw new ProtocolError('New keys are not made before the login.')
    const peersWish = !kex.underWay
    waitFor(kex.receive(kexInit))
    if (!peersWish) return
    const now = performance.now()
    const earned = (now - exchanged_at) / exchangeEvery_ms + delivered_bytes / exchangeEvery_bytes
    allowance = Math.min(exchangesAtOnce, allowance + earned) - kex.cost
    exchanged_at = now
    delivered_bytes = 0
    if (allowance < 0) throw new ProtocolError('The peer wants new keys too often.')
  }

  const onExtInfo = (payload: Buffer): void => {
    const fields = new Reader(payload, 1)
    for (let count = fields.uint32(); count > 0; count -= 1) {
      const [name, value] = [fields.text(), fields.string()]
      if (name === 'server-sig-algs' && role === 'client') serverSigAlgs = value.toString('latin1').split(',')
    }
  }

  const onDisconnect = (payload: Buffer): void => {
    const fields = new Reader(payload, 1)
    const reason = fields.uint32()
    finish(new ConnectionEnded('peer', reason, fields.text().slice(0, longestGoodbye)))
    socket.destroy()
  }

  const mayTake = (): boolean => !over && !paused && !stopped && computing === 0

  const unpack = (): void => {
    try {
      while (mayTake()) {
        // What came before somebody took over comes first.
        const waiting = deliver ? inbox.shift() : undefined
        if (waiting) {
          waitFor(deliver?.(waiting))
          continue
        }
        const payload = reader.next()
        if (!payload) break
        onMessage(payload)
      }
      rekeyIfDue()
    } catch (error) {
      end(errorFrom(error))
    }
  }

  const onData = (chunk: Buffer): void => {
    if (over) return
    sinceKeys_bytes += chunk.length
    if (!spoke) speak()
    if (peerIdent === undefined) {
      try {
        const found = identIn.push(chunk)
        if (!found) return
        peerIdent = found.ident
        reader.push(found.rest)
      } catch (error) {
        return end(errorFrom(error))
      }
    } else {
      reader.push(chunk)
    }
    unpack()
  }

  const goOn = (): void => {
    if (!mayTake()) return
    unpack()
    if (mayTake()) socket.resume()
  }

  const unpause = (): void => {
    if (!paused || inbox_bytes >= mostWaiting_bytes) return
    paused = false
    goOn()
  }

  /** Nothing is sent or taken after this. */
  const finish = (how: ConnectionEnded): void => {
    if (over) return
    over = how
    clearTimeout(timer)
    clearTimeout(kexInitTimer)
    held = []
    reader.free()
    writer.free()
    kex.free()
    established.reject(how)
    taker?.reject(how)
    ended.resolve(how)
  }

  const end = (error: SshError): void => {
    if (over) return
    try {
      if (spoke)
        sendNow(
          message(Message.disconnect, error.message.length + 16)
            .uint32(error.reason)
            .string(error.message)
            .string(''),
        )
    } catch {
      // A goodbye that cannot be said is not worth another failure.
    }
    out.flush()
    finish(new ConnectionEnded('us', error.reason, error.message, { cause: error }))
    socket.end()
    socket.resume()
    const farewell = setTimeout(() => socket.destroy(), farewell_ms)
    socket.once('close', () => clearTimeout(farewell))
  }

  const lost = (cause?: Error): void => {
    finish(new ConnectionEnded('network', Reason.connectionLost, 'The connection was lost.', { cause }))
    socket.destroy()
  }

  socket.on('data', onData)
  socket.on('end', () => lost())
  socket.on('close', () => lost())
  socket.on('error', (error: Error) => lost(error))
  watch(exchange_ms, () => end(new SshError(Reason.keyExchangeFailed, 'The key exchange took too long.')))
  if (!options.speakSecond) speak()

  const known = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('This is known only after the first key exchange.')
    return value
  }

  return {
    role,
    established: established.promise,
    ended: ended.promise,
    get sessionId() {
      return known(kex.sessionId)
    },
    get peerIdent() {
      return known(peerIdent)
    },
    get hostKey() {
      return known(kex.hostKey)
    },
    get negotiated() {
      return known(kex.negotiated)
    },
    get serverSigAlgs() {
      return serverSigAlgs
    },
    get received() {
      return received
    },
    async receive() {
      const waiting = inbox.shift()
      if (waiting) {
        inbox_bytes -= heldBy(waiting)
        unpause()
        return waiting
      }
      if (over) throw over
      taker ??= Promise.withResolvers<Buffer>()
      return taker.promise
    },
    takeOver(receive, onRoom) {
      reader.allow(largestPacket_bytes)
      out.allow(mostUnsent_bytes)
      loggedIn = true
      deliver = receive
      room = onRoom
      inbox_bytes = 0
      paused = false
      goOn()
      if (rekeyLate) rekey()
    },
    send,
    get congested() {
      return kex.holding || over !== undefined || out.congested
    },
    stopReading() {
      if (over) return
      stopped = true
      socket.pause()
    },
    readOn() {
      if (!stopped) return
      stopped = false
      // Later: whoever has room now may be in the middle of a message.
      setImmediate(goOn)
    },
    get reading() {
      return !stopped
    },
    delivered(bytes) {
      delivered_bytes += bytes
    },
    rekey,
    end,
  }
}

function isServiceMessage(type: number): boolean {
  return (
    type === Message.serviceRequest ||
    type === Message.serviceAccept ||
    (type >= 50 && type <= Message.channelFailure)
  )
}

/** RFC 8308 section 2.3. */
function extInfo(): Writer {
  return message(Message.extInfo, 300)
    .uint32(2)
    .string('server-sig-algs')
    .string(signatureAlgorithms.join(','))
    .string('ping@openssh.com')
    .string('0')
}

// The connection protocol (RFC 4254) on one authenticated transport: many channels, requests about the whole,
// and fairness between them. It is a value: ask it to open a channel or for a favour, read what the peer
// wants from `channels` and `requests`, dispose of it when done. Types of channels and requests that its
// owner did not name are refused here, at once and honestly; what waits for the owner is bounded, and beyond
// the bound refused. What the peer makes us hold is counted as memory: beyond a limit of the connection, or
// of the process, nothing more is read from the peer until somebody took some.
import type { ConnectionEnded } from '../errors.ts'
import { ChannelRefused, ProtocolError, Reason, SshError } from '../errors.ts'
import { compact, heldBy, type Account } from '../memory.ts'
import { Message } from '../messages.ts'
import { queue } from '../queue.ts'
import type { Transport } from '../transport/transport.ts'
import { message, Reader, type Writer } from '../wire.ts'
import { openChannel, type ConnectionChannel } from './channel.ts'
import { GlobalRequests } from './global-requests.ts'
import { keepalive, tooMuchUnread } from './keepalive.ts'
import { OpenFailure, type Channel, type Connection, type ConnectionOptions, type Opening } from './types.ts'
import { windowsOf, type Window, type Windows } from './windows.ts'

export { OpenFailure } from './types.ts'
export type { Connection, ConnectionOptions, GlobalRequest, Opening } from './types.ts'

/** However large the peer's limit is. */
const largestSent_bytes = 128 * 1024
/** Waiting data may hold twice its bytes in memory (`compact`). */
const slack = 2
/** For readers of data from before the end. */
const linger_ms = 30_000
/** Estimated size of an opening and its closures. */
const opening_bytes = 4_096

/**
 * The suffix of an early channel's type. Its own fields follow the number that the opener has chosen for the
 * peer's side. Such numbers count upwards from the first, so they never meet those that the peer chooses.
 */
const earlySuffix = '+early@hawser'
const firstEarlyId = 0x8000_0000
/** The window of an early channel before it is confirmed: every window is at least this large. */
const early_bytes = 32 * 1024

interface Slot {
  inside?: ConnectionChannel
  /** The peer's side of our early channel, until it is confirmed. */
  unconfirmed?: Remote | undefined
  /** Only of a channel that we open. */
  readonly opening?: {
    readonly type: string
    readonly window: Window
    abandoned: boolean
  } & PromiseWithResolvers<Channel>
}

/** The peer's side of a channel, by its opening or confirmation. */
interface Remote {
  readonly id: number
  readonly window_bytes: number
  packet_bytes: number
}

export function openConnection(transport: Transport, options: ConnectionOptions): Connection {
  return new SshConnection(transport, options)
}

class SshConnection implements Connection {
  readonly transport: Transport
  readonly channels: Connection['channels']
  readonly #options: ConnectionOptions
  readonly #slots = new Map<number, Slot>()
  /** Numbers are not reused: a late message must not reach another channel. */
  #nextId = 0
  /** For the next early channel: of ours at the peer, and of the peer's here. */
  #nextEarlyThere = firstEarlyId
  #nextEarlyHere = firstEarlyId
  readonly openEarly: Connection['openEarly']
  /** Channels with output, in turn. */
  readonly #ready = new Set<ConnectionChannel>()
  readonly #windows: Windows
  /** The memory of this connection. */
  readonly #memory: Account
  readonly #requests: GlobalRequests
  #endedWith: ConnectionEnded | undefined
  /** The connection was ended because it held too much memory. */
  #evicted = false

  constructor(transport: Transport, options: ConnectionOptions) {
    this.transport = transport
    this.#options = options
    this.channels = queue<Opening>(options.mostChannels)
    this.openEarly = options.earlyChannels ? (type, payload) => this.#openEarly(type, payload) : undefined
    this.#windows = windowsOf({ largest_bytes: options.window_bytes, mostChannels: options.mostChannels })
    this.#memory = options.memory.open({
      limit_bytes: this.#windows.most_bytes * slack,
      pause: () => transport.pauseReading(),
      resume: () => transport.resumeReading(),
      evict: () => {
        this.#evicted = true
        transport.end(new SshError(Reason.byApplication, tooMuchUnread))
      },
    })
    this.#requests = new GlobalRequests(transport, this.#memory, options)
    const stopKeepalive = keepalive(
      transport,
      options,
      (name) => void this.request(name).catch(() => undefined),
    )
    void transport.ended.then((how) => {
      stopKeepalive()
      this.#onEnded(how)
    })
    transport.takeOver(
      (payload) => this.#onMessage(payload),
      () => this.#sendReady(),
    )
  }

  get requests(): Connection['requests'] {
    return this.#requests.incoming
  }

  get ended(): Promise<ConnectionEnded> {
    return this.transport.ended
  }

  async open(type: string, payload: Uint8Array = Buffer.alloc(0), signal?: AbortSignal): Promise<Channel> {
    this.#requireRoom()
    signal?.throwIfAborted()
    const window = this.#windows.open()
    const opening = { type, window, abandoned: false, ...Promise.withResolvers<Channel>() }
    const abandon = (): void => {
      opening.abandoned = true
      opening.reject(signal?.reason)
    }
    signal?.addEventListener('abort', abandon, { once: true })
    const id = this.#takeId({ opening })
    this.transport.send(this.#opening(type, id, window).raw(payload))
    return opening.promise.finally(() => signal?.removeEventListener('abort', abandon))
  }

  #openEarly(type: string, payload: Uint8Array = Buffer.alloc(0)): Channel {
    this.#requireRoom()
    const window = this.#windows.open()
    const remote: Remote = {
      id: this.#nextEarlyThere++,
      window_bytes: early_bytes,
      packet_bytes: early_bytes,
    }
    const slot: Slot = { unconfirmed: remote }
    const id = this.#takeId(slot)
    slot.inside = this.#makeChannel(type, id, remote, window, slot)
    const opening = this.#opening(type + earlySuffix, id, window)
    this.transport.send(opening.uint32(remote.id).raw(payload))
    return slot.inside
  }

  request(name: string, payload: Uint8Array = Buffer.alloc(0)): Promise<Buffer | undefined> {
    return this.#requests.request(name, payload)
  }

  tell(name: string, payload: Uint8Array = Buffer.alloc(0)): void {
    this.#requests.tell(name, payload)
  }

  rekey(): void {
    this.transport.rekey()
  }

  async end(reason: number = Reason.byApplication, text: string = 'Goodbye.'): Promise<void> {
    this.transport.end(new SshError(reason, text))
    await this.transport.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end()
  }

  #requireRoom(): void {
    if (this.#endedWith) throw this.#endedWith
    if (this.#slots.size >= this.#options.mostChannels)
      throw new ChannelRefused(OpenFailure.resourceShortage, 'There are too many channels.')
  }

  /** The fields that every CHANNEL_OPEN has. */
  #opening(type: string, id: number, window: Window): Writer {
    return message(Message.channelOpen, 256)
      .string(type)
      .uint32(id)
      .uint32(window.size_bytes)
      .uint32(this.#options.packet_bytes)
  }

  /** One packet each in turn: a busy channel does not starve the others. */
  #sendReady(): void {
    // A set includes what is added while it is walked.
    for (const inside of this.#ready) {
      if (this.transport.congested) return
      this.#ready.delete(inside)
      if (inside.sendOne()) this.#ready.add(inside)
    }
  }

  #takeId(slot: Slot): number {
    const id = this.#nextId
    // Below the numbers of early channels.
    this.#nextId = (this.#nextId + 1) % firstEarlyId
    this.#slots.set(id, slot)
    return id
  }

  #makeChannel(type: string, id: number, remote: Remote, window: Window, slot?: Slot): ConnectionChannel {
    const { transport } = this
    // Others choose the content of a forwarded connection: nothing secret may be compressed with it.
    const isPlain = type !== 'session'
    if (isPlain) transport.setPlain(remote.id, true)
    const inside: ConnectionChannel = openChannel({
      type,
      remoteId: remote.id,
      window,
      packet_bytes: this.#options.packet_bytes,
      get confirmed() {
        return slot?.unconfirmed === undefined
      },
      memory: this.#memory,
      remoteWindow_bytes: remote.window_bytes,
      get remotePacket_bytes() {
        return remote.packet_bytes
      },
      send: (written) => transport.send(written),
      releaseMessage: () => transport.releaseMessage(),
      sendData: (stream, bytes) => transport.sendData(remote.id, stream, bytes, remote.packet_bytes),
      get congested() {
        return transport.congested
      },
      delivered: (bytes) => transport.delivered(bytes),
      ready: () => {
        this.transport.dataWaits()
        this.#ready.add(inside)
        this.#sendReady()
      },
      forget: () => {
        this.#ready.delete(inside)
        this.#slots.delete(id)
        if (isPlain) transport.setPlain(remote.id, false)
      },
    })
    return inside
  }

  #onMessage(payload: Buffer): Promise<void> | void {
    const reader = new Reader(payload)
    const type = reader.byte()
    // Attempts in flight when one succeeded must be ignored (RFC 4252 section 5.1).
    if (type === Message.authRequest) return
    switch (type) {
      case Message.globalRequest:
        return this.#requests.onRequest(reader)
      case Message.requestSuccess:
        return this.#requests.onReply(Buffer.from(reader.rest()))
      case Message.requestFailure:
        return this.#requests.onReply(undefined)
      case Message.channelOpen:
        return this.#onOpen(reader)
      case Message.channelOpenConfirmation:
        return this.#onOpened(reader, true)
      case Message.channelOpenFailure:
        return this.#onOpened(reader, false)
      default:
        return this.#onChannelMessage(type, reader)
    }
  }

  #onOpen(reader: Reader): void {
    const { transport } = this
    const { channelTypes, mostChannels, packet_bytes } = this.#options
    const named = reader.text(256)
    const remote = readRemote(reader)
    const slot: Slot = {}
    const isEarly = this.#options.earlyChannels === true && named.endsWith(earlySuffix)
    const type = isEarly ? named.slice(0, -earlySuffix.length) : named
    const chosen = isEarly ? this.#readEarlyId(reader) : undefined
    const isWanted = channelTypes === 'all' || channelTypes.includes(type)
    const hasRoom = isWanted && this.#slots.size < mostChannels
    const id = hasRoom ? (chosen ?? this.#takeId(slot)) : undefined
    let held_bytes = 0
    const release = (): void => {
      this.#memory.release(held_bytes)
      held_bytes = 0
    }
    const refuse = (reason: number, text: string): void => {
      release()
      if (id !== undefined) this.#slots.delete(id)
      slot.inside?.onRefused(new ChannelRefused(reason, text))
      transport.send(
        message(Message.channelOpenFailure, 64 + text.length)
          .uint32(remote.id)
          .uint32(reason)
          .string(text)
          .string(''),
      )
    }
    if (!isWanted) return refuse(OpenFailure.unknownType, 'Channels of this type are not opened here.')
    if (id === undefined) return refuse(OpenFailure.resourceShortage, 'There are too many channels.')
    const payload = compact(reader.rest())
    held_bytes = opening_bytes + heldBy(payload)
    this.#memory.hold(held_bytes)
    const window = isEarly ? this.#windows.open() : undefined
    if (window) {
      // Input behind the opening waits in the channel until it is accepted.
      this.#slots.set(id, slot)
      slot.inside = this.#makeChannel(type, id, remote, window)
    }
    const opening: Opening = {
      type,
      payload,
      accept: (answered = Buffer.alloc(0)) => {
        release()
        const granted = window ?? this.#windows.open()
        const inside = (slot.inside ??= this.#makeChannel(type, id, remote, granted))
        const written = message(Message.channelOpenConfirmation, 16 + answered.length)
          .uint32(remote.id)
          .uint32(id)
        transport.send(written.uint32(granted.size_bytes).uint32(packet_bytes).raw(answered))
        if (this.#endedWith) inside.onLost(this.#endedWith, this.#evicted)
        return inside
      },
      refuse,
    }
    if (!this.channels.push(opening)) refuse(OpenFailure.resourceShortage, 'The connection is ending.')
  }

  /** The peer's number for our side of an early channel. */
  #readEarlyId(reader: Reader): number {
    const id = reader.uint32()
    if (id !== this.#nextEarlyHere) throw new ProtocolError('An early channel has a wrong number.')
    this.#nextEarlyHere += 1
    return id
  }

  #onEarlyOpened(id: number, slot: Slot, expected: Remote, reader: Reader, isConfirmed: boolean): void {
    slot.unconfirmed = undefined
    if (!isConfirmed) {
      this.#slots.delete(id)
      slot.inside?.onRefused(new ChannelRefused(reader.uint32(), reader.text(4_096)))
      return
    }
    const { id: remoteId, window_bytes, packet_bytes } = readRemote(reader)
    if (remoteId !== expected.id || Math.min(window_bytes, packet_bytes) < early_bytes)
      throw new ProtocolError('An early channel was confirmed as another one.')
    expected.packet_bytes = packet_bytes
    slot.inside?.onAdjust(window_bytes - early_bytes)
  }

  #onOpened(reader: Reader, isConfirmed: boolean): void {
    const id = reader.uint32()
    const slot = this.#slots.get(id)
    if (slot?.unconfirmed) return this.#onEarlyOpened(id, slot, slot.unconfirmed, reader, isConfirmed)
    if (!slot?.opening || slot.inside)
      throw new ProtocolError('The peer confirmed a channel that was not requested.')
    const { type, window, abandoned, resolve, reject } = slot.opening
    if (isConfirmed) {
      slot.inside = this.#makeChannel(type, id, readRemote(reader), window)
      resolve(slot.inside)
      if (abandoned) void slot.inside.close('now')
    } else {
      this.#slots.delete(id)
      window.close()
      reject(new ChannelRefused(reader.uint32(), reader.text(4_096)))
    }
  }

  #onChannelMessage(type: number, reader: Reader): void {
    if (type < Message.channelWindowAdjust) throw new ProtocolError('A message came at a wrong time.')
    const id = reader.uint32()
    const { inside, unconfirmed } = this.#slots.get(id) ?? {}
    if (unconfirmed) throw new ProtocolError('A message came for a channel that was not confirmed.')
    if (!inside) {
      // The peer did not know yet that its early channel was refused, or is closed.
      if (id >= firstEarlyId && id < this.#nextEarlyHere) return
      // sshd sends a program's exit status even after both sides have closed.
      if (type === Message.channelRequest && id < this.#nextId && !this.#slots.has(id)) return
      throw new ProtocolError('A message came for a channel that does not exist.')
    }
    switch (type) {
      case Message.channelWindowAdjust:
        return inside.onAdjust(reader.uint32())
      case Message.channelData:
        return inside.onData(reader.string(), 0)
      case Message.channelExtendedData: {
        const stream = reader.uint32()
        return inside.onData(reader.string(), stream)
      }
      case Message.channelEof:
        return inside.onEof()
      case Message.channelClose:
        return inside.onClose()
      case Message.channelRequest: {
        const name = reader.text(256)
        const wantReply = reader.boolean()
        return inside.onRequest(name, wantReply, reader.rest())
      }
      case Message.channelSuccess:
        return inside.onReply(true)
      default:
        return inside.onReply(false)
    }
  }

  #onEnded(how: ConnectionEnded): void {
    this.#endedWith = how
    this.#requests.end(how)
    for (const slot of this.#slots.values()) {
      if (slot.inside) slot.inside.onLost(how, this.#evicted)
      else slot.opening?.reject(how)
    }
    this.#ready.clear()
    this.channels.end()
    // The last data may still be on its way to a program, and is held until then.
    if (this.#memory.held_bytes === 0) this.#memory.close()
    else setTimeout(() => this.#memory.close(), linger_ms).unref()
  }
}

function readRemote(reader: Reader): Remote {
  const remote = {
    id: reader.uint32(),
    window_bytes: reader.uint32(),
    packet_bytes: Math.min(reader.uint32(), largestSent_bytes),
  }
  if (remote.packet_bytes === 0) throw new ProtocolError('A channel without packets is of no use.')
  return remote
}

// The connection protocol (RFC 4254) on one authenticated transport: many channels, requests about the whole,
// and fairness between them. It is a value: ask it to open a channel or for a favour, read what the peer
// wants from `channels` and `requests`, dispose of it when done. Types of channels and requests that its
// owner did not name are refused here, at once and honestly; what waits for the owner is bounded, and beyond
// the bound refused. What the peer makes us hold is counted as memory: beyond a limit of the connection, or
// of the process, nothing more is read from the peer until somebody took some.
import type { ConnectionEnded } from '../errors.ts'
import { ChannelRefused, ProtocolError, Reason, SshError } from '../errors.ts'
import { compact, heldBy, request_bytes, type MemoryPool } from '../memory.ts'
import { Message } from '../messages.ts'
import { queue, type Queue } from '../queue.ts'
import type { Transport } from '../transport/transport.ts'
import { message, Reader } from '../wire.ts'
import { orderedAnswers } from './answers.ts'
import { openChannel, type Channel, type ChannelInside } from './channel.ts'
import { windowsOf, type Window } from './windows.ts'

/** RFC 4254 section 5.1. */
export const OpenFailure = { prohibited: 1, connectFailed: 2, unknownType: 3, resourceShortage: 4 } as const

/** The peer wants to open a channel: exactly one of the two functions must be called. */
export interface Opening {
  readonly type: string
  /** What follows the fields that every type has. */
  readonly payload: Buffer
  accept(payload?: Uint8Array): Channel
  refuse(reason: number, text: string): void
}

/** What the peer asks of the whole connection (RFC 4254 section 4). */
export interface GlobalRequest {
  readonly name: string
  readonly wantReply: boolean
  readonly payload: Buffer
  accept(payload?: Uint8Array): void
  refuse(): void
}

export interface ConnectionOptions {
  /** Types of channels that the peer may ask for. */
  readonly channelTypes: readonly string[] | 'all'
  /** Names of global requests that are for the owner. */
  readonly globalRequests: readonly string[] | 'all'
  readonly mostChannels: number
  /** What the peer may at most send on a channel before somebody reads it, and in one packet. */
  readonly window_bytes: number
  readonly packet_bytes: number
  /** After so long without a sign of life the peer is asked for one; after so many questions it is gone. */
  readonly keepalive_ms: number
  readonly mostUnanswered: number
  /** Where it is counted what peers make us hold. */
  readonly memory: MemoryPool
  /**
   * Global requests that need no owner, which is not asked about one that wants no reply: undefined for those
   * that do.
   */
  answer?(name: string, payload: Buffer): Promise<Uint8Array | undefined> | undefined
}

/** An authenticated connection, from either side: channels and global requests in both directions. */
export interface Connection extends AsyncDisposable {
  /** What the peer wants to open. */
  readonly channels: Queue<Opening>
  readonly requests: Queue<GlobalRequest>
  /** The signal gives up waiting for the peer's answer. */
  open(type: string, payload?: Uint8Array, signal?: AbortSignal): Promise<Channel>
  /** Resolves with the payload of the peer's answer, undefined if it refused. */
  request(name: string, payload?: Uint8Array): Promise<Buffer | undefined>
  /** The same without an answer. */
  tell(name: string, payload?: Uint8Array): void
  /** New keys now. */
  rekey(): void
  /** Says goodbye; channels that are open break off. */
  end(reason?: number, text?: string): Promise<void>
  readonly ended: Promise<ConnectionEnded>
  readonly transport: Transport
}

/** Many may come in one read, before their reader has a turn. */
const mostGlobalRequests = 256
/** However large the peer says that packets may be. */
const largestSent_bytes = 128 * 1024

/** What waits may hold twice its bytes in memory (`compact`). */
const slack = 2
const tooMuch = 'Too much waits here that nobody reads.'
/** For those who read what came before the end. */
const linger_ms = 30_000
/** About what an opening and its closures take. */
const opening_bytes = 4_096

interface Slot {
  inside?: ChannelInside
  /** Of a channel that we want to open. */
  readonly opening?: {
    readonly type: string
    readonly window: Window
    abandoned: boolean
  } & PromiseWithResolvers<Channel>
}

interface Asked extends GlobalRequest {
  letGo(): void
}

export function openConnection(transport: Transport, options: ConnectionOptions): Connection {
  const slots = new Map<number, Slot>()
  /** Numbers are not used again: a late message must not reach another channel than it was meant for. */
  let nextId = 0
  const ready = new Set<ChannelInside>()
  const windows = windowsOf({ largest_bytes: options.window_bytes, mostChannels: options.mostChannels })
  const memory = options.memory.open({
    limit_bytes: windows.most_bytes * slack,
    wait: transport.stopReading,
    goOn: transport.readOn,
    go() {
      dropped = true
      transport.end(new SshError(Reason.byApplication, tooMuch))
    },
  })
  const channels = queue<Opening>(options.mostChannels)
  const requests = queue<Asked>(mostGlobalRequests, (asked) => {
    if (!asked.wantReply) asked.letGo()
  })
  const replies: PromiseWithResolvers<Buffer | undefined>[] = []
  const answers = orderedAnswers<Uint8Array | false>((answer) => {
    if (answer === false) transport.send(message(Message.requestFailure))
    else transport.send(message(Message.requestSuccess, answer.length).raw(answer))
  })
  let over: ConnectionEnded | undefined
  /** There is no memory for what waits. */
  let dropped = false

  const pump = (): void => {
    // One packet each in turn: a channel with much to say does not silence the others.
    while (ready.size > 0 && !transport.congested) {
      const [inside] = ready
      ready.delete(inside!)
      if (inside!.sendOne()) ready.add(inside!)
    }
  }

  const takeId = (slot: Slot): number => {
    const id = nextId
    nextId = (nextId + 1) >>> 0
    slots.set(id, slot)
    return id
  }
  const forget = (id: number): void => {
    slots.delete(id)
  }

  interface Remote {
    readonly id: number
    readonly window_bytes: number
    readonly packet_bytes: number
  }

  const readRemote = (reader: Reader): Remote => {
    const remote = {
      id: reader.uint32(),
      window_bytes: reader.uint32(),
      packet_bytes: Math.min(reader.uint32(), largestSent_bytes),
    }
    if (remote.packet_bytes === 0) throw new ProtocolError('A channel without packets is of no use.')
    return remote
  }

  const makeChannel = (type: string, id: number, remote: Remote, window: Window): ChannelInside => {
    const inside: ChannelInside = openChannel({
      type,
      remoteId: remote.id,
      window,
      packet_bytes: options.packet_bytes,
      memory,
      remoteWindow_bytes: remote.window_bytes,
      remotePacket_bytes: remote.packet_bytes,
      send: transport.send,
      delivered: transport.delivered,
      ready() {
        ready.add(inside)
        pump()
      },
      forget() {
        ready.delete(inside)
        forget(id)
      },
    })
    return inside
  }

  const onOpen = (reader: Reader): void => {
    const type = reader.text(256)
    const remote = readRemote(reader)
    const slot: Slot = {}
    const wanted = options.channelTypes === 'all' || options.channelTypes.includes(type)
    const id = wanted && slots.size < options.mostChannels ? takeId(slot) : undefined
    let held_bytes = 0
    const letGo = (): void => {
      memory.release(held_bytes)
      held_bytes = 0
    }
    const refuse = (reason: number, text: string): void => {
      letGo()
      if (id !== undefined) forget(id)
      transport.send(
        message(Message.channelOpenFailure, 64 + text.length)
          .uint32(remote.id)
          .uint32(reason)
          .string(text)
          .string(''),
      )
    }
    if (!wanted) return refuse(OpenFailure.unknownType, 'Channels of this type are not opened here.')
    if (id === undefined) return refuse(OpenFailure.resourceShortage, 'There are too many channels.')
    const payload = compact(reader.rest())
    held_bytes = opening_bytes + heldBy(payload)
    memory.hold(held_bytes)
    const opening: Opening = {
      type,
      payload,
      accept(answered = Buffer.alloc(0)) {
        letGo()
        const window = windows.open()
        slot.inside = makeChannel(type, id, remote, window)
        const written = message(Message.channelOpenConfirmation, 16 + answered.length)
          .uint32(remote.id)
          .uint32(id)
        transport.send(written.uint32(window.size_bytes).uint32(options.packet_bytes).raw(answered))
        if (over) slot.inside.onLost(over, dropped)
        return slot.inside.channel
      },
      refuse,
    }
    if (!channels.push(opening)) refuse(OpenFailure.resourceShortage, 'The connection is ending.')
  }

  /** The answer to an opening of ours. */
  const onOpened = (reader: Reader, confirmed: boolean): void => {
    const id = reader.uint32()
    const slot = slots.get(id)
    if (!slot?.opening || slot.inside) throw new ProtocolError('A channel was opened that nobody asked for.')
    if (confirmed) {
      slot.inside = makeChannel(slot.opening.type, id, readRemote(reader), slot.opening.window)
      slot.opening.resolve(slot.inside.channel)
      if (slot.opening.abandoned) void slot.inside.channel.close('now')
    } else {
      forget(id)
      slot.opening.window.close()
      slot.opening.reject(new ChannelRefused(reader.uint32(), reader.text(4_096)))
    }
  }

  const onGlobalRequest = (reader: Reader): Promise<void> | void => {
    const [name, wantReply] = [reader.text(256), reader.boolean()]
    const payload = compact(reader.rest())
    let held_bytes = request_bytes + heldBy(payload)
    const letGo = (): void => {
      memory.release(held_bytes)
      held_bytes = 0
    }
    const answer: (answered: Uint8Array | false) => void = wantReply ? answers.expect(letGo) : () => undefined
    memory.hold(held_bytes)
    const known = wantReply ? options.answer?.(name, payload) : undefined
    // A client may leave when its program has ended, and would not learn what it asked for before that: all
    // else waits.
    if (known) return known.then((answered) => answer(answered ?? false))
    const wanted = options.globalRequests === 'all' || options.globalRequests.includes(name)
    const asked: Asked = {
      name,
      wantReply,
      payload,
      accept: (answered = Buffer.alloc(0)) => answer(answered),
      refuse: () => answer(false),
      letGo,
    }
    if (wanted && requests.push(asked)) return
    answer(false)
    if (!wantReply) letGo()
  }

  const onReply = (answer: Buffer | undefined): void => {
    const reply = replies.shift()
    if (!reply) throw new ProtocolError('A reply came to no request.')
    reply.resolve(answer)
  }

  const receive = (payload: Buffer): Promise<void> | void => {
    const reader = new Reader(payload)
    const type = reader.byte()
    // Attempts that were on their way when one succeeded are to be ignored (RFC 4252 section 5.1).
    if (type === Message.authRequest) return
    switch (type) {
      case Message.globalRequest:
        return onGlobalRequest(reader)
      case Message.requestSuccess:
        return onReply(Buffer.from(reader.rest()))
      case Message.requestFailure:
        return onReply(undefined)
      case Message.channelOpen:
        return onOpen(reader)
      case Message.channelOpenConfirmation:
        return onOpened(reader, true)
      case Message.channelOpenFailure:
        return onOpened(reader, false)
      default:
        return onChannelMessage(type, reader)
    }
  }

  const onChannelMessage = (type: number, reader: Reader): void => {
    if (type < Message.channelWindowAdjust) throw new ProtocolError('A message came at a wrong time.')
    const id = reader.uint32()
    const inside = slots.get(id)?.inside
    if (!inside) {
      // sshd says how a program ended even if that was after both sides had closed.
      if (type === Message.channelRequest && id < nextId && !slots.has(id)) return
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

  const stopWatching = watchLife(transport, options, (name) => void ask(name).catch(() => undefined))

  async function ask(name: string, payload: Uint8Array = Buffer.alloc(0)): Promise<Buffer | undefined> {
    if (over) throw over
    const reply = Promise.withResolvers<Buffer | undefined>()
    replies.push(reply)
    transport.send(
      message(Message.globalRequest, 64 + payload.length)
        .string(name)
        .boolean(true)
        .raw(payload),
    )
    return reply.promise
  }

  void transport.ended.then((how) => {
    over = how
    stopWatching()
    for (const reply of replies.splice(0)) reply.reject(how)
    for (const slot of slots.values()) {
      if (slot.inside) slot.inside.onLost(how, dropped)
      else slot.opening?.reject(how)
    }
    ready.clear()
    channels.end()
    requests.end()
    // What came last may still be on its way to a program, and is held until then.
    if (memory.held_bytes === 0) memory.close()
    else setTimeout(() => memory.close(), linger_ms).unref()
  })
  transport.takeOver(receive, pump)

  const end = async (reason: number = Reason.byApplication, text = 'Goodbye.'): Promise<void> => {
    transport.end(new SshError(reason, text))
    await transport.ended
  }

  return {
    channels,
    requests,
    transport,
    ended: transport.ended,
    async open(type, payload = Buffer.alloc(0), signal) {
      if (over) throw over
      signal?.throwIfAborted()
      if (slots.size >= options.mostChannels)
        throw new ChannelRefused(OpenFailure.resourceShortage, 'There are too many channels.')
      const window = windows.open()
      const opening = { type, window, abandoned: false, ...Promise.withResolvers<Channel>() }
      const abandon = (): void => {
        opening.abandoned = true
        opening.reject(signal!.reason)
      }
      signal?.addEventListener('abort', abandon, { once: true })
      const id = takeId({ opening })
      const written = message(Message.channelOpen, 64 + payload.length)
        .string(type)
        .uint32(id)
      transport.send(written.uint32(window.size_bytes).uint32(options.packet_bytes).raw(payload))
      return opening.promise.finally(() => signal?.removeEventListener('abort', abandon))
    },
    request: ask,
    tell(name, payload = Buffer.alloc(0)) {
      transport.send(
        message(Message.globalRequest, 64 + payload.length)
          .string(name)
          .boolean(false)
          .raw(payload),
      )
    },
    rekey: transport.rekey,
    end,
    [Symbol.asyncDispose]: async () => end(),
  }
}

/** Asks a silent peer for a sign of life; any packet is one. Returns what stops it. */
function watchLife(
  transport: Transport,
  options: ConnectionOptions,
  ask: (name: string) => void,
): () => void {
  if (options.keepalive_ms === 0) return () => undefined
  let seen = transport.received
  let unanswered = 0
  const timer = setInterval(() => {
    if (transport.received !== seen) unanswered = 0
    else if (unanswered >= options.mostUnanswered)
      transport.end(new SshError(Reason.connectionLost, tired(transport)))
    if (transport.received === seen) {
      unanswered += 1
      ask('keepalive@openssh.com')
    }
    seen = transport.received
  }, options.keepalive_ms).unref()
  return () => clearInterval(timer)
}

function tired(transport: Transport): string {
  return transport.reading ? 'The peer does not answer.' : tooMuch
}

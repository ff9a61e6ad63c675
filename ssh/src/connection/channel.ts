// One channel (RFC 4254 section 5): two streams of bytes with credit, and requests. The credit that the peer
// gets follows the pace of whoever reads here: taking a chunk is what opens the window again, so that a slow
// reader holds at most one window of bytes and the peer waits. What waits is counted in the connection's
// account as the memory it is, until the reader asks for the next chunk. Writing waits for the peer's window
// and for the socket. Data, EOF and CLOSE leave in the order in which they were asked for; requests do not
// wait behind data, because a signal must pass a full window.
import { ChannelClosed, ProtocolError } from '../errors.ts'
import { compact, heldBy, object_bytes, request_bytes, type Account } from '../memory.ts'
import { Message } from '../messages.ts'
import { queue, type Queue } from '../queue.ts'
import { message, passingMessage, type Writer } from '../wire.ts'
import { orderedAnswers } from './answers.ts'
import type { Window } from './windows.ts'

/** Bytes of one stream: 0 is the standard one, 1 is stderr (RFC 4254 section 5.2). */
export interface Chunk {
  readonly bytes: Buffer
  readonly stream: number
}

/** What the peer asks of a channel (RFC 4254 section 5.4). */
export interface ChannelRequest {
  readonly type: string
  readonly wantReply: boolean
  /** What follows the type; `readRequest` understands it. */
  readonly payload: Buffer
  /** To be called once for every request; it does nothing where no reply is wanted. */
  reply(success: boolean): void
}

/** A channel of a connection: two streams of bytes with flow control, and requests (RFC 4254 section 5). */
export interface Channel extends AsyncIterable<Chunk>, AsyncDisposable {
  readonly type: string
  /**
   * What the peer asks of this channel; ends when the channel is closed. Requests beyond the queue are
   * refused.
   */
  readonly requests: Queue<ChannelRequest>
  /** The next bytes; undefined after the peer's EOF. Throws if the connection broke off before it. */
  read(): Promise<Chunk | undefined>
  /** Resolves when all of it was handed to the socket. */
  write(bytes: Uint8Array, stream?: number): Promise<void>
  /** EOF after all that was written: nothing more will be. */
  end(): Promise<void>
  /** Closes after all that was written, or now without it; resolves when the peer has closed, too. */
  close(when?: 'now'): Promise<void>
  /** Resolves with the peer's reply; true at once where none is wanted. */
  request(type: string, payload?: Uint8Array, wantReply?: boolean): Promise<boolean>
  /** Resolves when the channel is gone, however that came about. */
  readonly closed: Promise<void>
}

/** What the connection tells the channel. */
export interface ChannelInside {
  readonly channel: Channel
  onData(bytes: Buffer, stream: number): void
  onAdjust(bytes: number): void
  onEof(): void
  /** True when both sides have closed. */
  onClose(): void
  onRequest(type: string, wantReply: boolean, payload: Buffer): void
  onReply(success: boolean): void
  /** What waits can still be read, unless it is dropped. */
  onLost(error: Error, drop: boolean): void
  /**
   * Sends one packet of what waits; true if there is more that could leave. Only while the transport is not
   * congested.
   */
  sendOne(): boolean
}

export interface ChannelOutside {
  readonly type: string
  readonly remoteId: number
  /** What the peer may send, and in one packet. */
  readonly window: Window
  readonly packet_bytes: number
  /** What we may. */
  readonly remoteWindow_bytes: number
  readonly remotePacket_bytes: number
  /** Where it is counted what waits here. */
  readonly memory: Account
  send(written: Writer): void
  /** So many bytes have reached the reader here, or left for the peer. */
  delivered(bytes: number): void
  /** Something waits in this channel. */
  ready(): void
  /** Both sides have closed. */
  forget(): void
}

/** What the peer may ask without being answered. */
const mostRequests = 256
/**
 * Small pieces that wait are joined into pieces of this size, or each would cost far more memory than its
 * bytes.
 */
const joined_bytes = 8_192
/** A chunk that somebody waits for is not copied out of so small a buffer. */
const small_bytes = 4_096
const largestWindow = 0xffff_ffff

type Leaving =
  | {
      readonly kind: 'data'
      bytes: Uint8Array
      readonly stream: number
      readonly done: PromiseWithResolvers<void>
    }
  | { readonly kind: 'eof' | 'close'; readonly done: PromiseWithResolvers<void> }

interface Waiting {
  bytes: Buffer
  readonly stream: number
  /** Memory of its own, in which small pieces are joined. */
  joined: Buffer | undefined
  held_bytes: number
}

interface Asked extends ChannelRequest {
  letGo(): void
}

export function openChannel(outside: ChannelOutside): ChannelInside {
  const { remoteId, send, memory, window } = outside
  const requests = queue<Asked>(mostRequests, (asked) => {
    if (!asked.wantReply) asked.letGo()
  })
  const closed = Promise.withResolvers<void>()
  const answers = orderedAnswers<boolean>((success) => {
    if (!sentClose) send(message(success ? Message.channelSuccess : Message.channelFailure).uint32(remoteId))
  })

  const chunks: Waiting[] = []
  let reader: PromiseWithResolvers<Chunk | undefined> | undefined
  let credit_bytes = window.size_bytes
  /** Read, and no credit was given for it yet. */
  let unpaid_bytes = 0
  /** Held by the chunk that the reader has, until it asks for another. */
  let lent_bytes = 0
  /** Held by requests that were not answered. */
  let asked_bytes = 0
  let gotEof = false
  let gotClose = false
  let lost: Error | undefined

  const leaving: Leaving[] = []
  const replies: PromiseWithResolvers<boolean>[] = []
  let remoteWindow_bytes = outside.remoteWindow_bytes
  let endWanted = false
  let closeWanted = false
  let sentClose = false

  const give = (bytes: number): void => {
    unpaid_bytes += bytes
    if (!memory.crowded) return pay()
    // One callback is enough for all that is read until then.
    if (unpaid_bytes === bytes) memory.whenRoom(pay)
  }

  const pay = (): void => {
    const bytes = unpaid_bytes
    unpaid_bytes = 0
    if (bytes === 0 || gotEof || gotClose || sentClose || lost) return
    const credit = window.taken(bytes, !memory.tight)
    if (credit === 0) return
    credit_bytes += credit
    send(message(Message.channelWindowAdjust).uint32(remoteId).uint32(credit))
  }

  /** The reader is done with the chunk that it had, and has another. */
  const lend = (held_bytes: number): void => {
    const before = lent_bytes
    lent_bytes = held_bytes
    if (before > 0) memory.release(before)
  }

  const read = async (): Promise<Chunk | undefined> => {
    const chunk = chunks.shift()
    lend(chunk?.held_bytes ?? 0)
    if (chunk) {
      give(chunk.bytes.length)
      outside.delivered(chunk.bytes.length)
      return chunk
    }
    if (gotEof || gotClose) return undefined
    if (lost) throw lost
    if (reader) throw new Error('Only one can read from a channel at a time.')
    reader = Promise.withResolvers()
    return reader.promise
  }

  const endReading = (): void => {
    reader?.resolve(undefined)
    reader = undefined
  }

  const leave = async (kind: 'eof' | 'close'): Promise<void> => {
    const done = Promise.withResolvers<void>()
    leaving.push({ kind, done })
    outside.ready()
    await done.promise
  }

  const dropLeaving = (error: Error): void => {
    for (const item of leaving.splice(0)) {
      if (item.kind === 'data') item.done.reject(error)
      else item.done.resolve()
    }
    for (const reply of replies.splice(0)) reply.reject(error)
  }

  const gone = (): void => {
    requests.end()
    memory.release(asked_bytes)
    asked_bytes = 0
    window.close()
    outside.forget()
    closed.resolve()
  }

  const sendClose = (): void => {
    sentClose = true
    send(message(Message.channelClose).uint32(remoteId))
    if (gotClose) gone()
  }

  const dropChunks = (): void => {
    for (const { held_bytes } of chunks.splice(0)) memory.release(held_bytes)
    lend(0)
  }

  const close = async (when?: 'now'): Promise<void> => {
    if (when === 'now' && !sentClose) dropLeaving(new ChannelClosed('The channel was closed.'))
    if ((!closeWanted || when === 'now') && !sentClose && !gotClose && !lost) {
      closeWanted = true
      await leave('close')
    }
    // What the peer still sends is not for anybody.
    dropChunks()
    await closed.promise
  }

  const channel: Channel = {
    type: outside.type,
    requests,
    closed: closed.promise,
    read,
    async write(bytes, stream = 0) {
      if (lost) throw lost
      if (endWanted || closeWanted || gotClose) throw new ChannelClosed('The channel is closed for writing.')
      if (bytes.length === 0) return
      const done = Promise.withResolvers<void>()
      leaving.push({ kind: 'data', bytes, stream, done })
      outside.ready()
      await done.promise
    },
    async end() {
      if (endWanted || closeWanted || gotClose || lost) return
      endWanted = true
      await leave('eof')
    },
    close,
    async request(type, payload = Buffer.alloc(0), wantReply = false) {
      if (lost) throw lost
      if (sentClose || gotClose) throw new ChannelClosed('The channel is closed.')
      send(
        message(Message.channelRequest, 64 + payload.length)
          .uint32(remoteId)
          .string(type)
          .boolean(wantReply)
          .raw(payload),
      )
      if (!wantReply) return true
      const reply = Promise.withResolvers<boolean>()
      replies.push(reply)
      return reply.promise
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const chunk = await read()
        if (!chunk) return
        yield chunk
      }
    },
    async [Symbol.asyncDispose]() {
      await close()
    },
  }

  return {
    channel,
    onData(bytes, stream) {
      if (gotEof || gotClose) throw new ProtocolError('Data came after the end of a channel.')
      if (bytes.length > outside.packet_bytes)
        throw new ProtocolError('A packet of data is larger than was allowed.')
      if (bytes.length > credit_bytes) throw new ProtocolError('More data came than the window allows.')
      credit_bytes -= bytes.length
      if (bytes.length === 0) return
      // Nobody will read it, but the peer must not be stuck before it hears that we close.
      if (closeWanted) return give(bytes.length)
      if (reader) {
        const waiting = reader
        reader = undefined
        give(bytes.length)
        outside.delivered(bytes.length)
        const chunk = bytes.buffer.byteLength <= small_bytes ? bytes : compact(bytes)
        memory.hold(heldBy(chunk))
        lend(heldBy(chunk))
        return waiting.resolve({ bytes: chunk, stream })
      }
      memory.hold(keep(chunks, bytes, stream))
    },
    onAdjust(bytes) {
      remoteWindow_bytes += bytes
      if (remoteWindow_bytes > largestWindow) throw new ProtocolError('A window grew too large.')
      if (leaving.length > 0) outside.ready()
    },
    onEof() {
      if (gotEof || gotClose) throw new ProtocolError('A second EOF came.')
      gotEof = true
      endReading()
    },
    onClose() {
      if (gotClose) throw new ProtocolError('A second CLOSE came.')
      gotClose = true
      endReading()
      dropLeaving(new ChannelClosed('The peer closed the channel.'))
      if (sentClose) gone()
      else sendClose()
    },
    onRequest(type, wantReply, payload) {
      const kept = compact(payload)
      let held_bytes = request_bytes + heldBy(kept)
      const letGo = (): void => {
        // What the channel held was let go with it.
        if (asked_bytes === 0) return
        asked_bytes -= held_bytes
        memory.release(held_bytes)
        held_bytes = 0
      }
      const reply = wantReply ? answers.expect(letGo) : () => undefined
      asked_bytes += held_bytes
      memory.hold(held_bytes)
      const asked: Asked = { type, wantReply, payload: kept, reply, letGo }
      if (!requests.push(asked)) {
        reply(false)
        letGo()
      }
    },
    onReply(success) {
      const reply = replies.shift()
      if (!reply) throw new ProtocolError('A reply came to no request.')
      reply.resolve(success)
    },
    onLost(error, drop) {
      lost = error
      if (drop) dropChunks()
      reader?.reject(error)
      reader = undefined
      dropLeaving(error)
      requests.end()
      window.close()
      closed.resolve()
    },
    sendOne() {
      const item = leaving[0]
      if (!item) return false
      if (item.kind === 'data') {
        const size = Math.min(item.bytes.length, remoteWindow_bytes, outside.remotePacket_bytes)
        if (size === 0) return false
        const extended = item.stream !== 0
        const written = passingMessage(extended ? Message.channelExtendedData : Message.channelData).uint32(
          remoteId,
        )
        if (extended) written.uint32(item.stream)
        send(written.string(size === item.bytes.length ? item.bytes : item.bytes.subarray(0, size)))
        remoteWindow_bytes -= size
        outside.delivered(size)
        if (size < item.bytes.length) {
          item.bytes = item.bytes.subarray(size)
          return remoteWindow_bytes > 0
        }
      } else if (item.kind === 'eof') {
        send(message(Message.channelEof).uint32(remoteId))
      } else {
        sendClose()
      }
      leaving.shift()
      item.done.resolve()
      return leaving.length > 0
    },
  }
}

/**
 * Returns how much more is held by it. Small pieces are joined; others stay where they are unless that holds
 * far more.
 */
function keep(chunks: Waiting[], bytes: Buffer, stream: number): number {
  const last = chunks.at(-1)
  const length = (last?.bytes.length ?? 0) + bytes.length
  if (last?.joined && last.stream === stream && length <= joined_bytes) {
    const before = last.held_bytes
    if (length > last.joined.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(joined_bytes, length * 2))
      last.bytes.copy(larger)
      last.joined = larger
      last.held_bytes = object_bytes + larger.length
    }
    bytes.copy(last.joined, last.bytes.length)
    last.bytes = last.joined.subarray(0, length)
    return last.held_bytes - before
  }
  const kept = compact(bytes)
  const held_bytes = heldBy(kept)
  chunks.push({ bytes: kept, stream, joined: kept === bytes ? undefined : kept, held_bytes })
  return held_bytes
}

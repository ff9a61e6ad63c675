// One channel (RFC 4254 section 5): two streams of bytes with credit, and requests. The credit that the peer gets follows
// the pace of whoever reads here: taking a chunk is what opens the window again, so that a slow reader holds at most one
// window of bytes and the peer waits. Writing waits for the peer's window and for the socket. Data, EOF and CLOSE leave in
// the order in which they were asked for; requests do not wait behind data, because a signal must pass a full window.
import { ChannelClosed, ProtocolError } from '../errors.ts'
import { Message } from '../messages.ts'
import { queue, type Queue } from '../queue.ts'
import { message, passingMessage, type Writer } from '../wire.ts'
import { orderedAnswers } from './answers.ts'

/** Bytes of one stream: 0 is the standard one, 1 is stderr (RFC 4254 section 5.2). */
export interface Chunk {
  readonly bytes: Buffer
  readonly stream: number
}

export interface ChannelRequest {
  readonly type: string
  readonly wantReply: boolean
  /** What follows the type; `readRequest` understands it. */
  readonly payload: Buffer
  /** To be called once for every request; it does nothing where no reply is wanted. */
  reply(success: boolean): void
}

export interface Channel extends AsyncIterable<Chunk>, AsyncDisposable {
  readonly type: string
  /** What the peer asks of this channel; ends when the channel is closed. Requests beyond the queue are refused. */
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
  onLost(error: Error): void
  /** Sends one packet of what waits; true if there is more that could leave. Only while the transport is not congested. */
  sendOne(): boolean
}

export interface ChannelOutside {
  readonly type: string
  readonly remoteId: number
  /** What the peer may send at first, and in one packet. */
  readonly window_bytes: number
  readonly packet_bytes: number
  /** What we may. */
  readonly remoteWindow_bytes: number
  readonly remotePacket_bytes: number
  send(written: Writer): void
  /** Something waits in this channel. */
  ready(): void
  /** Both sides have closed. */
  forget(): void
}

/** What the peer may ask without being answered. */
const mostRequests = 256
/** Small pieces that wait are joined into pieces of this size, or each would cost far more memory than its bytes. */
const joined_bytes = 8_192
const small_bytes = 1_024
const largestWindow = 0xffff_ffff
/** The window is opened again in steps of this part of it. */
const creditSteps = 8

type Leaving =
  | { readonly kind: 'data'; bytes: Uint8Array; readonly stream: number; readonly done: PromiseWithResolvers<void> }
  | { readonly kind: 'eof' | 'close'; readonly done: PromiseWithResolvers<void> }

interface Waiting {
  bytes: Buffer
  readonly stream: number
  /** Where small pieces are joined. */
  readonly joined: Buffer | undefined
}

export function openChannel(outside: ChannelOutside): ChannelInside {
  const { remoteId, send } = outside
  const requests = queue<ChannelRequest>(mostRequests)
  const closed = Promise.withResolvers<void>()
  const answers = orderedAnswers<boolean>((success) => {
    if (!sentClose) send(message(success ? Message.channelSuccess : Message.channelFailure).uint32(remoteId))
  })

  const chunks: Waiting[] = []
  let reader: PromiseWithResolvers<Chunk | undefined> | undefined
  let credit_bytes = outside.window_bytes
  let taken_bytes = 0
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
    taken_bytes += bytes
    if (taken_bytes < outside.window_bytes / creditSteps || gotEof || gotClose || sentClose || lost) return
    credit_bytes += taken_bytes
    send(message(Message.channelWindowAdjust).uint32(remoteId).uint32(taken_bytes))
    taken_bytes = 0
  }

  const read = async (): Promise<Chunk | undefined> => {
    const chunk = chunks.shift()
    if (chunk) {
      give(chunk.bytes.length)
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
    outside.forget()
    closed.resolve()
  }

  const sendClose = (): void => {
    sentClose = true
    send(message(Message.channelClose).uint32(remoteId))
    if (gotClose) gone()
  }

  const close = async (when?: 'now'): Promise<void> => {
    if (when === 'now' && !sentClose) dropLeaving(new ChannelClosed('The channel was closed.'))
    if ((!closeWanted || when === 'now') && !sentClose && !gotClose && !lost) {
      closeWanted = true
      await leave('close')
    }
    // What the peer still sends is not for anybody.
    chunks.length = 0
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
      if (bytes.length > outside.packet_bytes) throw new ProtocolError('A packet of data is larger than was allowed.')
      if (bytes.length > credit_bytes) throw new ProtocolError('More data came than the window allows.')
      credit_bytes -= bytes.length
      if (bytes.length === 0) return
      // Nobody will read it, but the peer must not be stuck before it hears that we close.
      if (closeWanted) return give(bytes.length)
      if (reader) {
        const waiting = reader
        reader = undefined
        give(bytes.length)
        return waiting.resolve({ bytes, stream })
      }
      keep(chunks, bytes, stream)
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
      const answer = wantReply ? answers.expect() : () => undefined
      const request = { type, wantReply, payload, reply: answer }
      if (!requests.push(request)) request.reply(false)
    },
    onReply(success) {
      const reply = replies.shift()
      if (!reply) throw new ProtocolError('A reply came to no request.')
      reply.resolve(success)
    },
    onLost(error) {
      lost = error
      reader?.reject(error)
      reader = undefined
      dropLeaving(error)
      requests.end()
      closed.resolve()
    },
    sendOne() {
      const item = leaving[0]
      if (!item) return false
      if (item.kind === 'data') {
        const size = Math.min(item.bytes.length, remoteWindow_bytes, outside.remotePacket_bytes)
        if (size === 0) return false
        const extended = item.stream !== 0
        const written = passingMessage(extended ? Message.channelExtendedData : Message.channelData).uint32(remoteId)
        if (extended) written.uint32(item.stream)
        send(written.string(size === item.bytes.length ? item.bytes : item.bytes.subarray(0, size)))
        remoteWindow_bytes -= size
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

function keep(chunks: Waiting[], bytes: Buffer, stream: number): void {
  if (bytes.length > small_bytes) {
    chunks.push({ bytes, stream, joined: undefined })
    return
  }
  const last = chunks.at(-1)
  if (last?.joined && last.stream === stream && last.bytes.length + bytes.length <= last.joined.length) {
    bytes.copy(last.joined, last.bytes.length)
    last.bytes = last.joined.subarray(0, last.bytes.length + bytes.length)
    return
  }
  // The first piece that waits stays as it is: as a rule its reader comes at once.
  if (!last) {
    chunks.push({ bytes, stream, joined: undefined })
    return
  }
  const joined = Buffer.allocUnsafeSlow(joined_bytes)
  bytes.copy(joined)
  chunks.push({ bytes: joined.subarray(0, bytes.length), stream, joined })
}

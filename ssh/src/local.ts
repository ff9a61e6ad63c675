// Two ends of a connection that never leaves the process: channels and requests as on a wire, without the
// wire. A user without an SSH client, such as a terminal in a browser, is joined in this way to a device by
// the same `pipe`, and meets the same taps, as everybody else. Nothing is encoded or copied: a write resolves
// when the other end has taken the bytes, so that the pace of the reader is the pace of the writer, and
// nothing piles up between them.
import type { Channel, ChannelRequest, Chunk } from './connection/channel.ts'
import { OpenFailure, type Connection, type Opening } from './connection/connection.ts'
import { ChannelClosed, ChannelRefused, ConnectionEnded, Reason } from './errors.ts'
import { queue, type Queue } from './queue.ts'

/** A connection for its users, whatever carries it. */
export type ConnectionEnd = Pick<
  Connection,
  'channels' | 'requests' | 'open' | 'openEarly' | 'request' | 'tell' | 'end' | 'ended'
>

const mostChannels = 64
const mostOpenings = 16
const mostRequests = 256

/** A connection within the process: each end accepts what the other opens. */
export function localPair(): [ConnectionEnd, ConnectionEnd] {
  const ended = [Promise.withResolvers<ConnectionEnded>(), Promise.withResolvers<ConnectionEnded>()] as const
  const openings = [queue<Opening>(mostOpenings), queue<Opening>(mostOpenings)] as const
  const requests = [0, 1].map((): ConnectionEnd['requests'] => queue(mostRequests))
  const channels = new Set<LocalChannels>()
  let over: ConnectionEnded | undefined

  function finish(by: 0 | 1, reason: number, text: string): void {
    if (over) return
    over = new ConnectionEnded('us', reason, text)
    for (const one of channels) one.lose(over)
    for (const side of [0, 1] as const) {
      openings[side].end()
      requests[side]!.end()
      ended[side].resolve(side === by ? over : new ConnectionEnded('peer', reason, text))
    }
  }

  async function open(
    from: 0 | 1,
    type: string,
    payload: Uint8Array,
    signal: AbortSignal | undefined,
  ): Promise<Channel> {
    if (over) throw over
    signal?.throwIfAborted()
    if (channels.size >= mostChannels)
      throw new ChannelRefused(OpenFailure.resourceShortage, 'There are too many channels.')
    const answer = Promise.withResolvers<Channel>()
    const pair = channelPair(type)
    channels.add(pair)
    pair.near.closed.then(
      () => channels.delete(pair),
      () => undefined,
    )
    const abandon = (): void => {
      answer.reject(signal!.reason)
      pair.lose(new ChannelClosed('It was given up.'))
    }
    signal?.addEventListener('abort', abandon, { once: true })
    const refuse = (reason: number, text: string): void => {
      answer.reject(over ?? new ChannelRefused(reason, text))
      pair.lose(new ChannelClosed(text))
    }
    pair.onLost(() => answer.reject(over ?? new ChannelClosed('The channel was closed.')))
    const taken = openings[from === 0 ? 1 : 0].push({
      type,
      payload: asBuffer(payload),
      accept() {
        answer.resolve(pair.near)
        return pair.far
      },
      refuse,
    })
    if (!taken) refuse(OpenFailure.resourceShortage, 'Too many channels are being opened.')
    return answer.promise.finally(() => signal?.removeEventListener('abort', abandon))
  }

  const side = (at: 0 | 1): ConnectionEnd => {
    const other = at === 0 ? 1 : 0
    return {
      channels: openings[at],
      requests: requests[at]!,
      ended: ended[at].promise,
      openEarly: undefined,
      open: async (type, payload = Buffer.alloc(0), signal) => open(at, type, payload, signal),
      async request(name, payload = Buffer.alloc(0)) {
        if (over) throw over
        const answer = Promise.withResolvers<Buffer | undefined>()
        const taken = requests[other]!.push({
          name,
          wantReply: true,
          payload: asBuffer(payload),
          accept: (given = Buffer.alloc(0)) => answer.resolve(asBuffer(given)),
          refuse: () => answer.resolve(undefined),
        })
        if (!taken) return undefined
        void ended[at].promise.then((how) => answer.reject(how))
        return answer.promise
      },
      tell(name, payload = Buffer.alloc(0)) {
        const nothing = (): void => undefined
        requests[other]!.push({
          name,
          wantReply: false,
          payload: asBuffer(payload),
          accept: nothing,
          refuse: nothing,
        })
      },
      async end(reason = Reason.byApplication, text = 'Goodbye.') {
        finish(at, reason, text)
        await ended[at].promise
      },
    }
  }
  return [side(0), side(1)]
}

interface LocalChannels {
  readonly near: Channel
  readonly far: Channel
  lose(error: Error): void
  onLost(listen: () => void): void
}

interface Written {
  readonly chunk: Chunk
  readonly taken: PromiseWithResolvers<void>
}

/** One direction: bytes wait until the other end takes them. */
function lane() {
  const waiting: Written[] = []
  let reader: PromiseWithResolvers<Chunk | undefined> | undefined
  let ended = false
  let failure: Error | undefined
  const drained: (() => void)[] = []
  const settle = (): void => {
    if (waiting.length === 0) for (const resolve of drained.splice(0)) resolve()
  }
  return {
    async write(chunk: Chunk): Promise<void> {
      if (failure) throw failure
      if (ended) throw new ChannelClosed('The channel is closed for writing.')
      if (chunk.bytes.length === 0) return
      if (reader) {
        reader.resolve(chunk)
        reader = undefined
        return
      }
      const taken = Promise.withResolvers<void>()
      waiting.push({ chunk, taken })
      await taken.promise
    },
    async read(): Promise<Chunk | undefined> {
      const first = waiting.shift()
      if (first) {
        first.taken.resolve()
        settle()
        return first.chunk
      }
      if (ended) return undefined
      if (failure) throw failure
      if (reader) throw new Error('Only one can read from a channel at a time.')
      reader = Promise.withResolvers()
      return reader.promise
    },
    /** The rest can still be read. */
    async end(): Promise<void> {
      ended = true
      if (waiting.length === 0) {
        reader?.resolve(undefined)
        reader = undefined
      } else await new Promise<void>((resolve) => drained.push(resolve))
    },
    /** Ends reading, too; undefined: regularly, which is an end like any other for the reader. */
    stop(error: Error | undefined): void {
      if (error && !ended) failure = error
      ended ||= error === undefined
      for (const { taken } of waiting.splice(0))
        taken.reject(error ?? new ChannelClosed('The channel was closed.'))
      settle()
      if (failure) reader?.reject(failure)
      else reader?.resolve(undefined)
      reader = undefined
    },
  }
}

type Lane = ReturnType<typeof lane>

function channelPair(type: string): LocalChannels {
  const [out, back] = [lane(), lane()]
  const requests = [queue<ChannelRequest>(mostRequests), queue<ChannelRequest>(mostRequests)] as const
  const closed = Promise.withResolvers<void>()
  const replies = new Set<PromiseWithResolvers<boolean>>()
  const listeners: (() => void)[] = []
  let over = false
  let failure: Error | undefined

  function shut(error: Error | undefined): void {
    if (over) return
    over = true
    failure = error
    for (const one of [out, back]) one.stop(error)
    for (const reply of replies) reply.reject(error ?? new ChannelClosed('The channel was closed.'))
    for (const one of requests) one.end()
    closed.resolve()
    for (const listen of listeners) listen()
  }

  const end = (
    writing: Lane,
    reading: Lane,
    asked: Queue<ChannelRequest>,
    asking: Queue<ChannelRequest>,
  ): Channel => {
    let closing = false
    const close = async (when?: 'now'): Promise<void> => {
      if (over) return
      if (when !== 'now' && !closing) {
        closing = true
        // Unread bytes must not delay the end when the other end has left.
        await Promise.race([writing.end(), closed.promise])
      }
      shut(undefined)
      await closed.promise
    }
    const write = async (bytes: Uint8Array, stream = 0): Promise<void> => {
      if (failure) throw failure
      if (over || closing) throw new ChannelClosed('The channel is closed for writing.')
      await writing.write({ bytes: asBuffer(bytes), stream })
    }
    return {
      type,
      requests: asked,
      closed: closed.promise,
      read: async () => reading.read(),
      async readAll(take) {
        for (let chunk = await reading.read(); chunk; chunk = await reading.read()) await take(chunk)
      },
      write,
      send: write,
      // Bytes wait here until the other end takes them.
      sendNow: () => 0,
      async end() {
        if (!over && !closing) await writing.end()
      },
      close,
      async request(name, payload = Buffer.alloc(0), wantReply = false) {
        if (failure) throw failure
        if (over) throw new ChannelClosed('The channel is closed.')
        const reply = Promise.withResolvers<boolean>()
        replies.add(reply)
        const answer = (success: boolean): void => {
          replies.delete(reply)
          reply.resolve(success)
        }
        if (!asking.push({ type: name, wantReply, payload: asBuffer(payload), reply: answer })) answer(false)
        if (wantReply) return reply.promise
        answer(true)
        return true
      },
      async *[Symbol.asyncIterator]() {
        for (;;) {
          const chunk = await reading.read()
          if (!chunk) return
          yield chunk
        }
      },
      [Symbol.asyncDispose]: async () => close(),
    }
  }

  return {
    near: end(out, back, requests[0], requests[1]),
    far: end(back, out, requests[1], requests[0]),
    lose: shut,
    onLost: (listen) => void listeners.push(listen),
  }
}

const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)

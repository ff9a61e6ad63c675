// A terminal whose client is at another node. The node that has the session and the node that the client has reached
// speak the same on a stream between them: frames with what passes through the channel at their end. The stream's
// pace is the pace of both. Whoever leaves says so; a stream that ends without a word is a client that is lost to the
// one node, and a session that is lost to the other.
//   a frame: uint8 kind, uint32 length, and so many bytes
import { once } from 'node:events'
import { duplexPair, type Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { SessionOrigin } from '@hawser/contract/sessions'
import { localPair, Reason, type Channel, type ChannelRequest } from '@hawser/ssh'
import { boundedQueue } from './bounded-queue.ts'
import { continuableTerminal, isOf, type Claim, type HeldSessions } from './held-sessions.ts'
import { clientOf, isLoss, letGo, lostStatus, ofAttached, type KeptTerminal } from './kept-terminal.ts'

/** The request of one node to the node that has the session. */
export interface RemoteAttachRequest extends Claim {
  readonly uid: string
  readonly width: number
  readonly height: number
  readonly scrollback: boolean
  /** How whoever has the session now is told where it goes on. */
  readonly where: string
  readonly source: string
  readonly via: SessionOrigin
}

const Frame = { data: 0, stderr: 1, request: 2, eof: 3, close: 4 } as const
const head_bytes = 5
const mostFrame_bytes = 64 * 1024
const farewell = { left: Buffer.from('left'), lost: Buffer.from('lost') } as const

/** How it came to an end: here, or because the other node said so, or without a word. */
type CarryEnd = 'here' | 'left' | 'lost' | 'broken'

/** Carries what passes through a channel over the stream. Resolves when either is over. */
async function carry(
  channel: Channel,
  requests: AsyncIterable<ChannelRequest>,
  stream: Duplex,
  wasLost: () => Promise<boolean>,
): Promise<CarryEnd> {
  stream.on('error', () => undefined)
  const send = async (kind: number, bytes: Uint8Array): Promise<void> => sendFrames(stream, kind, bytes)
  const outward = [
    channel
      .readAll(({ bytes, stream: of }) => send(of === 0 ? Frame.data : Frame.stderr, bytes))
      // A request that was made before the end is before it on the stream, too.
      .then(async () => (await nextTurn(), send(Frame.eof, Buffer.alloc(0)))),
    (async () => {
      for await (const { type, payload } of requests)
        await send(Frame.request, Buffer.concat([Buffer.of(type.length), Buffer.from(type), payload]))
    })(),
  ]
  const inward = receive(channel, stream).catch((): CarryEnd => 'broken')
  const settled = Promise.allSettled(outward)
  const ended = await Promise.race([inward, channel.closed.then((): CarryEnd => 'here')])
  if (ended === 'here') {
    const how = (await wasLost()) ? farewell.lost : farewell.left
    await settled
    await send(Frame.close, how).catch(() => undefined)
  }
  stream.end()
  // Nobody needs the rest of the stream; it is read and dropped, so that the stream can end.
  void inward.then(() => stream.resume())
  return ended
}

async function receive(channel: Channel, stream: Duplex): Promise<CarryEnd> {
  for await (const { kind, bytes } of framesOf(stream)) {
    if (kind === Frame.close) return bytes.equals(farewell.lost) ? 'lost' : 'left'
    if (kind === Frame.data || kind === Frame.stderr) await channel.send(bytes, kind)
    if (kind === Frame.eof) void channel.end().catch(() => undefined)
    if (kind === Frame.request) {
      const after = 1 + bytes.readUInt8(0)
      await channel.request(bytes.toString('latin1', 1, after), bytes.subarray(after))
    }
  }
  return 'broken'
}

function frameOf(kind: number, bytes: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(head_bytes + bytes.length)
  frame.writeUInt8(kind, 0)
  frame.writeUInt32BE(bytes.length, 1)
  frame.set(bytes, head_bytes)
  return frame
}

async function* framesOf(stream: Duplex): AsyncGenerator<{ kind: number; bytes: Buffer }> {
  let waiting: Buffer = Buffer.alloc(0)
  // Whoever stops to listen may still have something to say.
  for await (const bytes of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    waiting = waiting.length === 0 ? bytes : Buffer.concat([waiting, bytes])
    while (waiting.length >= head_bytes) {
      const end = head_bytes + waiting.readUInt32BE(1)
      if (end > head_bytes + mostFrame_bytes) throw new Error('A frame is too long.')
      if (waiting.length < end) break
      yield { kind: waiting.readUInt8(0), bytes: waiting.subarray(head_bytes, end) }
      waiting = waiting.subarray(end)
    }
  }
}

async function sendFrames(stream: Duplex, kind: number, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at === 0 || at < bytes.length; at += mostFrame_bytes)
    await write(stream, frameOf(kind, bytes.subarray(at, at + mostFrame_bytes)))
}

async function write(stream: Duplex, bytes: Buffer): Promise<void> {
  if (stream.destroyed || stream.writableEnded) throw new Error('The stream is over.')
  if (stream.write(bytes)) return
  const over = new AbortController()
  const { signal } = over
  await Promise.race([once(stream, 'drain', { signal }), once(stream, 'close', { signal })]).finally(() =>
    over.abort(),
  )
}

/** At the node that has the session: gives it to the client at the other end of the stream. Throws if it may not. */
export async function giveTerminal(held: HeldSessions, asked: RemoteAttachRequest): Promise<Duplex> {
  const session = held.find(asked.uid)
  if (!session || !isOf(session, asked)) throw new Error('The session is over.')
  const [theirs, stream] = duplexPair()
  const [mine, near] = localPair()
  const opening = mine.open('session')
  const accepted = (await near.channels.next())!.accept()
  const channel = await opening
  const terminal = await continuableTerminal(session)
  if (!terminal) {
    await mine.end(Reason.byApplication, 'The session cannot be continued.')
    throw new Error('The session is over, or may not be continued.')
  }
  const { width, height, scrollback, where } = asked
  session.resumed(asked.source, asked.via)
  terminal
    .attach(clientOf(accepted, near, terminal), { width, height }, { scrollback, where })
    .catch(async () => mine.end(Reason.byApplication, 'The session is over.'))
  void carry(channel, channel.requests, stream, async () => false).then(async (how) =>
    how === 'lost' || how === 'broken'
      ? mine.end(Reason.connectionLost, 'The client is lost.')
      : mine.end(Reason.byApplication, 'The client has left.'),
  )
  return theirs
}

/** At the node that the client has reached: from now on its terminal is the one at the other end of the stream. */
export function takeTerminal(terminal: KeptTerminal, stream: Duplex): void {
  const { client } = terminal
  if (!client) return void stream.destroy()
  terminal.release()
  const { channel } = client
  const requests = boundedQueue<ChannelRequest>()
  client.terminal = {
    takeRequest: async (_, request) => request.reply(ofAttached.has(request.type) && requests.push(request)),
  }
  void channel.closed.then(() => requests.end())
  // A node that stops lets its clients go; they come back by way of another one.
  const wasLost = async (): Promise<boolean> => {
    const how = await Promise.race([client.ended, nextTurn()])
    return how !== undefined && (isLoss(how) || how.by === 'us')
  }
  void carry(channel, requests, stream, wasLost).then(async (how) => {
    if (how === 'broken') await letGo(client, brokenSentence, lostStatus)
    else if (how !== 'here') await channel.close().catch(() => undefined)
  })
}

const brokenSentence =
  'The connection to the part of the server that has the session is lost; log in again to look for it.'

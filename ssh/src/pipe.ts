// Two connections joined: what the near peer (a client) wants is asked of the far one (a server), and the
// other way round. Channels, requests, replies, bytes, EOF and CLOSE pass in order; each side's pace is the
// other's, because a chunk is taken from one only when the one before was written to the other. Bytes are not
// looked at and copied once, into the packet in which they leave. A tap sees what passes before it is passed
// on; a slow tap slows the pipe, and one that throws lets nothing pass. What has a name that we know and a
// body that we cannot read is refused before any tap hears of it: no tap could judge it.
import type { Channel, ChannelRequest, Chunk } from './connection/channel.ts'
import { OpenFailure, type GlobalRequest, type Opening } from './connection/connection.ts'
import { isReadable } from './connection/forwarding.ts'
import { readRequest } from './connection/requests.ts'
import { ChannelClosed, ChannelRefused, ConnectionEnded } from './errors.ts'
import type { ConnectionEnd } from './local.ts'

/** The side of the client, or that of the server. */
export type Side = 'near' | 'far'

/** Somebody who sees, and may refuse, what passes between two channels. */
export interface Tap {
  /** Both channels are there and nothing has passed yet. What it throws ends the channel. */
  opened?(near: Channel, far: Channel): Promise<void> | void
  /** Bytes from the side, before the other gets them. What it throws ends the channel. */
  data?(from: Side, chunk: Chunk): Promise<void> | void
  /**
   * What becomes of a request: it passes as it is unless another form is given, or is refused to whoever
   * asked. What it throws ends the channel, and the request does not pass.
   */
  request?(
    from: Side,
    request: ChannelRequest,
  ): { readonly type: string; readonly payload: Uint8Array } | 'refuse' | undefined
  /**
   * Before the near channel is closed because the far one is gone. If it was not said how the program ended,
   * it can be said now.
   */
  ending?(near: Channel, how: { readonly lost: boolean; readonly exited: boolean }): Promise<void> | void
}

/** What may pass a pipe, and who watches it. */
export interface PipeOptions {
  /**
   * Whether a channel may be opened, and who watches it. What it refuses, or throws at, is refused to the
   * peer as not allowed.
   */
  channel?(from: Side, opening: Opening): Verdict
  /** Whether a request about the whole connection is passed on; it is not if this throws. */
  request?(from: Side, request: GlobalRequest): boolean
}

/** Whether a channel may be opened, and how it is joined. */
export interface Verdict {
  readonly allow: boolean
  readonly tap?: Tap | undefined
  /** See JoinOptions. */
  readonly holdEof_ms?: number | undefined
}

export interface JoinOptions {
  /**
   * The near side's EOF waits until the far side has ended, or has had nothing to say for so long: for far
   * peers that take EOF for the end of both directions and drop what they have still to send. Absent: it
   * passes at once.
   */
  readonly holdEof_ms?: number | undefined
}

/**
 * For input that a far program does not read once the near side is gone, and for last words to a near one
 * that does not.
 */
const linger_ms = 10_000

const programs = new Set(['shell', 'exec', 'subsystem'])

/**
 * Resolves when one of the two has ended, with what it ended with; the other is the caller's to end. When it
 * was the far one, the near channels have been closed by then, with what their taps had to say.
 */
export async function pipe(
  near: ConnectionEnd,
  far: ConnectionEnd,
  options: PipeOptions = {},
): Promise<{ side: Side; ended: ConnectionEnded }> {
  const joined = new Set<Promise<void>>()
  const track = (work: Promise<void>): void => {
    const tracked = work.finally(() => joined.delete(tracked))
    joined.add(tracked)
  }
  void passOpenings('near', near, far, options, track)
  void passOpenings('far', far, near, options, track)
  void passRequests('near', near, far, options)
  void passRequests('far', far, near, options)
  const first = await Promise.race([
    near.ended.then((ended) => ({ side: 'near' as const, ended })),
    far.ended.then((ended) => ({ side: 'far' as const, ended })),
  ])
  if (first.side === 'far') {
    const limit = Promise.withResolvers<void>()
    const timer = setTimeout(limit.resolve, linger_ms)
    await Promise.race([Promise.all(joined), near.ended, limit.promise])
    clearTimeout(timer)
  }
  return first
}

type Track = (work: Promise<void>) => void

async function passOpenings(
  from: Side,
  source: ConnectionEnd,
  target: ConnectionEnd,
  options: PipeOptions,
  track: Track,
): Promise<void> {
  for await (const opening of source.channels) track(passOpening(from, opening, target, options))
}

async function passOpening(
  from: Side,
  opening: Opening,
  target: ConnectionEnd,
  options: PipeOptions,
): Promise<void> {
  const verdict = judgedOpening(from, opening, options)
  if (!verdict.allow) return opening.refuse(OpenFailure.prohibited, 'This is not allowed.')
  let opened: Channel
  try {
    opened = await target.open(opening.type, opening.payload)
  } catch (error) {
    if (error instanceof ChannelRefused) return opening.refuse(error.reason, error.message)
    return opening.refuse(OpenFailure.connectFailed, 'The other side is gone.')
  }
  const accepted = opening.accept()
  const [near, far] = from === 'near' ? [accepted, opened] : [opened, accepted]
  // A tap that fails has ended its channel; why, it knows itself.
  await joinChannels(near, far, verdict.tap, verdict).catch(() => undefined)
}

function judgedOpening(from: Side, opening: Opening, options: PipeOptions): Verdict {
  if (!isReadable(opening.type, opening.payload)) return { allow: false }
  try {
    return options.channel?.(from, opening) ?? { allow: true }
  } catch {
    return { allow: false }
  }
}

function mayPass(from: Side, request: GlobalRequest, options: PipeOptions): boolean {
  try {
    return isReadable(request.name, request.payload) && options.request?.(from, request) !== false
  } catch {
    return false
  }
}

async function passRequests(
  from: Side,
  source: ConnectionEnd,
  target: ConnectionEnd,
  options: PipeOptions,
): Promise<void> {
  for await (const request of source.requests) {
    if (!mayPass(from, request, options)) request.refuse()
    else if (!request.wantReply) target.tell(request.name, request.payload)
    else {
      void target.request(request.name, request.payload).then(
        (answer) => (answer ? request.accept(answer) : request.refuse()),
        () => request.refuse(),
      )
    }
  }
}

/** Resolves when both channels are closed. Throws what a tap threw, after closing both. */
export async function joinChannels(
  near: Channel,
  far: Channel,
  tap: Tap = {},
  { holdEof_ms }: JoinOptions = {},
): Promise<void> {
  let exited = false
  let lost = false
  let nearOpen = true
  void near.closed.then(() => {
    nearOpen = false
  })
  /** What a tap threw; that somebody left is no failure. */
  let failure: Error | undefined
  const note = (error: unknown): void => {
    if (!(error instanceof ChannelClosed) && !(error instanceof ConnectionEnded)) failure ??= error as Error
  }
  // A server drops what comes for a session before it has a program, so that input waits until that was asked
  // for.
  const started = Promise.withResolvers<void>()
  if (near.type !== 'session') started.resolve()
  // A client closes at EOF, and what comes after that is lost, so that EOF waits until it was said how the
  // program ended.
  const exitPassed = Promise.withResolvers<void>()
  if (near.type !== 'session') exitPassed.resolve()

  const silence = holdEof_ms === undefined ? undefined : farSilence(holdEof_ms)
  const farEnded = Promise.withResolvers<void>()

  const passData = async (from: Side, source: Channel, target: Channel): Promise<void> => {
    if (from === 'near') await started.promise
    for (;;) {
      // While the near side is slow to take what came, the far one is not silent: it cannot go on.
      if (from === 'far') silence?.begin()
      const chunk = await source.read()
      if (from === 'far') silence?.end()
      if (!chunk) break
      const tapped = tap.data?.(from, chunk)
      if (tapped) await tapped
      await target.write(chunk.bytes, chunk.stream)
    }
  }

  const passChannelRequests = async (from: Side, source: Channel, target: Channel): Promise<void> => {
    for await (const request of source.requests) {
      let passed: ReturnType<NonNullable<Tap['request']>>
      try {
        passed =
          readRequest(request.type, request.payload).type === 'malformed'
            ? 'refuse'
            : tap.request?.(from, request)
      } catch (error) {
        note(error)
        request.reply(false)
        void near.close('now')
        void far.close('now')
        break
      }
      if (passed === 'refuse') {
        request.reply(false)
        continue
      }
      const { type, payload } = passed ?? request
      if (from === 'far' && type.startsWith('exit-')) exited = true
      void target.request(type, payload, request.wantReply).then(request.reply, () => request.reply(false))
      if (from === 'near' && programs.has(type)) started.resolve()
      if (exited) exitPassed.resolve()
    }
    if (from === 'near') started.resolve()
  }

  const outward = async (): Promise<void> => {
    const data = passData('near', near, far).then(async () => {
      if (silence) await Promise.race([farEnded.promise, silence.lasts(), near.closed])
      await far.end()
    })
    const requests = passChannelRequests('near', near, far)
    data.catch((error: unknown) => {
      note(error)
      if (failure) void near.close('now')
    })
    await near.closed
    await requests
    // The near side is gone: what it sent last is delivered if the program reads it.
    const limit = setTimeout(() => void far.close('now'), linger_ms)
    const delivered = await data.then(
      () => true,
      () => false,
    )
    clearTimeout(limit)
    await far.close(delivered ? undefined : 'now')
  }

  const inward = async (): Promise<void> => {
    const requests = passChannelRequests('far', far, near)
    try {
      // However slowly the near side reads, it gets all of the output.
      await passData('far', far, near).finally(() => {
        silence?.end()
        farEnded.resolve()
      })
      await Promise.race([exitPassed.promise, far.closed])
      if (exited || near.type !== 'session') await near.end()
      await far.closed
    } catch (error) {
      note(error)
      lost = true
      await far.close('now')
    }
    await requests
    if (nearOpen) await tap.ending?.(near, { lost, exited })
    await near.close(lost ? 'now' : undefined)
  }

  try {
    await tap.opened?.(near, far)
    await Promise.all([outward(), inward()])
  } catch (error) {
    note(error)
    await Promise.all([near.close('now'), far.close('now')])
  }
  if (failure) throw failure
}

/**
 * Whether a peer that may speak is silent for so long, from when somebody asks; counted anew each time that
 * it has spoken.
 */
function farSilence(most_ms: number) {
  const lasted = Promise.withResolvers<void>()
  let asked = false
  let maySpeak = false
  let timer: NodeJS.Timeout | undefined
  const count = (): void => {
    clearTimeout(timer)
    if (asked && maySpeak) timer = setTimeout(lasted.resolve, most_ms)
  }
  return {
    begin() {
      maySpeak = true
      count()
    },
    end() {
      maySpeak = false
      count()
    },
    lasts(): Promise<void> {
      asked = true
      count()
      return lasted.promise
    },
  }
}

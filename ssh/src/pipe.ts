// Two connections joined: what the near peer (a client) wants is asked of the far one (a server), and the
// other way round. Channels that both have opened are joined by join-channels.ts. What has a name that we
// know and a body that we cannot read is refused before any tap hears of it: no tap could judge it.
import type { Channel } from './connection/channel.ts'
import { OpenFailure, type GlobalRequest, type Opening } from './connection/connection.ts'
import { isReadable } from './connection/forwarding.ts'
import { ChannelRefused, type ConnectionEnded } from './errors.ts'
import { joinChannels, type JoinOptions, type Side, type Tap } from './join-channels.ts'
import type { ConnectionEnd } from './local.ts'

/** Decides what may pass a pipe, and watches it. */
export interface PipeOptions {
  /** Whether a channel may be opened, and with which tap. An error refuses it, too. */
  channel?(from: Side, opening: Opening): TapDecision
  /** Whether to pass a global request on; an error refuses it. */
  request?(from: Side, request: GlobalRequest): boolean
  /** Two open channels whose program runs. */
  readonly running?: RunningChannels | undefined
}

export interface RunningChannels {
  readonly near: Channel
  readonly far: Channel
  readonly tap: Tap
}

/** Whether a channel may be opened, and how it is joined. */
export interface TapDecision extends JoinOptions {
  readonly allow: boolean
  /** The reason for the peer; absent: an empty sentence. */
  readonly why?: string | undefined
  readonly tap?: Tap | undefined
}

/** For the last words of taps to a near side that does not read. */
const linger_ms = 10_000

/**
 * Resolves with the end of one of the two; the other is the caller's to end. When the far one ended, the near
 * channels have been closed by then, with the last words of their taps.
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
  const { running } = options
  if (running)
    track(joinChannels(running.near, running.far, running.tap, { isRunning: true }).catch(() => undefined))
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
  if (!verdict.allow) return opening.refuse(OpenFailure.prohibited, verdict.why ?? 'This is not allowed.')
  const openEarly = opening.type === 'session' ? target.openEarly : undefined
  let opened: Channel
  try {
    // A session is confirmed before the other side knows of it: its requests follow in the same flight.
    opened = openEarly
      ? openEarly(opening.type, opening.payload)
      : await target.open(opening.type, opening.payload)
  } catch (error) {
    if (error instanceof ChannelRefused) return opening.refuse(error.reason, error.message)
    return opening.refuse(OpenFailure.connectFailed, 'The other side is gone.')
  }
  const accepted = opening.accept()
  const [near, far] = from === 'near' ? [accepted, opened] : [opened, accepted]
  // A failing tap has ended its channel, and knows why.
  await joinChannels(near, far, verdict.tap, verdict).catch(() => undefined)
}

function judgedOpening(from: Side, opening: Opening, options: PipeOptions): TapDecision {
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

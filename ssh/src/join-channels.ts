// Two channels joined: requests, replies, bytes, EOF and CLOSE pass in order; each side's pace is the
// other's, because a chunk is taken from one only when the one before was written to the other. Bytes are not
// looked at and copied once, into the packet in which they leave. A tap sees what passes before it is passed
// on; a slow tap slows the channels, and one that throws lets nothing pass.
import type { Channel, ChannelRequest, Chunk } from './connection/channel.ts'
import { readRequest } from './connection/requests.ts'
import { ChannelClosed, ChannelRefused, ConnectionEnded } from './errors.ts'

/** The side of the client, or that of the server. */
export type Side = 'near' | 'far'

/** Watches, and may refuse, what passes between two channels. */
export interface Tap {
  /** Both channels are open and nothing has passed yet. An error ends the channel. */
  opened?(near: Channel, far: Channel): Promise<void> | void
  /** Bytes from the side, before the other gets them. An error ends the channel. */
  data?(from: Side, chunk: Chunk): Promise<void> | void
  /** The bytes that pass instead, after `data` has seen them; undefined: they pass as they are. */
  filter?(from: Side, chunk: Chunk): readonly Uint8Array[] | undefined
  /**
   * A request passes as it is, or in another form, or is refused, or granted without passing, when the tap
   * itself handles it. An error ends the channel, and the request does not pass.
   */
  request?(
    from: Side,
    request: ChannelRequest,
  ): { readonly type: string; readonly payload: Uint8Array } | 'refuse' | 'grant' | undefined
  /**
   * Called before the near channel is closed because the far one is gone, to report an exit that is still
   * missing.
   */
  ending?(near: Channel, how: Ending): Promise<void> | void
}

export interface Ending {
  /** The far side was lost. */
  readonly lost: boolean
  /** Why the far side refused the channel, after the near one was confirmed. */
  readonly refused: string | undefined
  /** The exit of the program was reported. */
  readonly exited: boolean
}

/** How two channels are joined. */
export interface JoinOptions {
  /**
   * The near side's EOF waits until the far side has ended, or was silent for this long: for far peers that
   * take EOF for the end of both directions and drop unsent data. Absent: it passes at once.
   */
  readonly holdEof_ms?: number | undefined
  /** The program runs already: input does not wait for a request to start one. */
  readonly isRunning?: boolean | undefined
}

/** For input that a far program does not read once the near side is gone. */
const linger_ms = 10_000

const programs = new Set(['shell', 'exec', 'subsystem'])

/** Resolves when both channels are closed. Throws the error of a tap, after closing both. */
export async function joinChannels(
  near: Channel,
  far: Channel,
  tap: Tap = {},
  options: JoinOptions = {},
): Promise<void> {
  await new Join(near, far, tap, options).run()
}

class Join {
  readonly #near: Channel
  readonly #far: Channel
  readonly #tap: Tap
  #exited = false
  #lost = false
  #refused: string | undefined
  #nearIsOpen = true
  /** The error of a tap; a lost channel is no failure. */
  #failure: Error | undefined
  /** Resolves with the request for a program. A server drops earlier input of a session, so input waits. */
  readonly #started = Promise.withResolvers<void>()
  /** Resolves when the exit was passed on. A client closes at EOF, and would not receive it, so EOF waits. */
  readonly #exitPassed = Promise.withResolvers<void>()
  readonly #farEnded = Promise.withResolvers<void>()
  /** The silence of the far side, where the near side's EOF waits for it. */
  readonly #silence: Silence | undefined

  constructor(near: Channel, far: Channel, tap: Tap, { holdEof_ms, isRunning }: JoinOptions) {
    this.#near = near
    this.#far = far
    this.#tap = tap
    if (holdEof_ms !== undefined) this.#silence = new Silence(holdEof_ms)
    if (isRunning) this.#started.resolve()
    if (near.type !== 'session') {
      this.#started.resolve()
      this.#exitPassed.resolve()
    }
    void near.closed.then(() => {
      this.#nearIsOpen = false
    })
  }

  async run(): Promise<void> {
    try {
      await this.#tap.opened?.(this.#near, this.#far)
      await Promise.all([this.#passOutward(), this.#passInward()])
    } catch (error) {
      this.#note(error)
      await Promise.all([this.#near.close('now'), this.#far.close('now')])
    }
    if (this.#failure) throw this.#failure
  }

  /** Until the near side is gone. */
  async #passOutward(): Promise<void> {
    const [near, far] = [this.#near, this.#far]
    const data = this.#passData('near', near, far).then(async () => {
      if (this.#silence) await Promise.race([this.#farEnded.promise, this.#silence.lasts(), near.closed])
      await far.end()
    })
    const requests = this.#passRequests('near', near, far)
    data.catch((error: unknown) => {
      this.#note(error)
      if (this.#failure) void near.close('now')
    })
    await near.closed
    await requests
    // The near side is gone: its last input is delivered if the program reads it.
    const limit = setTimeout(() => void far.close('now'), linger_ms)
    const delivered = await data.then(
      () => true,
      () => false,
    )
    clearTimeout(limit)
    await far.close(delivered ? undefined : 'now')
  }

  /** Until the far side is gone. */
  async #passInward(): Promise<void> {
    const [near, far] = [this.#near, this.#far]
    const requests = this.#passRequests('far', far, near)
    try {
      // However slowly the near side reads, it gets all of the output.
      await this.#passData('far', far, near).finally(() => {
        this.#silence?.end()
        this.#farEnded.resolve()
      })
      await Promise.race([this.#exitPassed.promise, far.closed])
      if (this.#exited || near.type !== 'session') await near.end()
      await far.closed
    } catch (error) {
      this.#note(error)
      this.#lost = true
      await far.close('now')
    }
    await requests
    const ending = { lost: this.#lost, refused: this.#refused, exited: this.#exited }
    if (this.#nearIsOpen) await this.#tap.ending?.(near, ending)
    await near.close(this.#lost ? 'now' : undefined)
  }

  async #passData(from: Side, source: Channel, target: Channel): Promise<void> {
    if (from === 'near') await this.#started.promise
    const silence = from === 'far' ? this.#silence : undefined
    silence?.begin()
    await source.readAll((chunk) => {
      // While the near side is slow, the far one cannot send, so it is not silent.
      silence?.end()
      const tapped = this.#tap.data?.(from, chunk)
      const sent = tapped
        ? tapped.then(() => this.#send(from, target, chunk))
        : this.#send(from, target, chunk)
      if (!sent) return silence?.begin()
      return silence ? sent.then(() => silence.begin()) : sent
    })
    silence?.end()
  }

  #send(from: Side, target: Channel, chunk: Chunk): Promise<void> | void {
    const passed = this.#tap.filter?.(from, chunk)
    if (!passed) return target.send(chunk.bytes, chunk.stream)
    const [first, ...others] = passed
    if (!first) return undefined
    const sent = target.send(first, chunk.stream)
    return others.length === 0 ? sent : sendAll(target, others, chunk.stream, sent)
  }

  async #passRequests(from: Side, source: Channel, target: Channel): Promise<void> {
    for await (const request of source.requests) {
      let passed: ReturnType<NonNullable<Tap['request']>>
      try {
        passed =
          readRequest(request.type, request.payload).type === 'malformed'
            ? 'refuse'
            : this.#tap.request?.(from, request)
      } catch (error) {
        this.#note(error)
        request.reply(false)
        void this.#near.close('now')
        void this.#far.close('now')
        break
      }
      if (passed === 'refuse' || passed === 'grant') {
        request.reply(passed === 'grant')
        continue
      }
      const { type, payload } = passed ?? request
      if (from === 'far' && type.startsWith('exit-')) this.#exited = true
      void target.request(type, payload, request.wantReply).then(request.reply, () => request.reply(false))
      if (from === 'near' && programs.has(type)) this.#started.resolve()
      if (this.#exited) this.#exitPassed.resolve()
    }
    if (from === 'near') this.#started.resolve()
  }

  #note(error: unknown): void {
    if (error instanceof ChannelRefused) this.#refused ??= error.message
    else if (!(error instanceof ChannelClosed || error instanceof ConnectionEnded))
      this.#failure ??= error as Error
  }
}

async function sendAll(
  target: Channel,
  pieces: readonly Uint8Array[],
  stream: number,
  before: Promise<void> | void,
): Promise<void> {
  await before
  for (const piece of pieces) await target.send(piece, stream)
}

/** Whether a peer that could send is silent for this long, measured from the first call. */
class Silence {
  readonly #most_ms: number
  readonly #lasted = Promise.withResolvers<void>()
  #asked = false
  /** The peer could send. */
  #maySend = false
  #timer: NodeJS.Timeout | undefined

  constructor(most_ms: number) {
    this.#most_ms = most_ms
  }

  begin(): void {
    this.#maySend = true
    this.#restart()
  }

  end(): void {
    this.#maySend = false
    this.#restart()
  }

  /** Resolves when the silence has lasted; every input restarts it. */
  lasts(): Promise<void> {
    this.#asked = true
    this.#restart()
    return this.#lasted.promise
  }

  #restart(): void {
    clearTimeout(this.#timer)
    if (this.#asked && this.#maySend) this.#timer = setTimeout(this.#lasted.resolve, this.#most_ms)
  }
}

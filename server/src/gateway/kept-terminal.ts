// The near channel of a terminal, which outlives its client. To the pipe it is one channel from the first byte to
// the last; behind it there is a client, or for a while nobody, and then perhaps another client. While there is a
// client, bytes pass as if this were not here, and its screen gets a copy of the output. While there is none, output
// goes to the screen and to the recorder alone, and after some megabytes slowly (unattended-pace.ts). Whoever attaches
// is first shown the screen.
// Channels without a terminal end with their client, as always.
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  ChannelClosed,
  Reason,
  readRequest,
  writeRequest,
  type Channel,
  type ChannelRequest,
  type Chunk,
  type ConnectionEnd,
  type ConnectionEnded,
} from '@hawser/ssh'
import type { Size } from '../recording/journal.ts'
import type { KeptScreen } from '../recording/kept-screen.ts'
import { boundedQueue } from './bounded-queue.ts'
import { unattendedPace } from './unattended-pace.ts'

/** Whoever sits at a terminal now. */
export interface TerminalClient {
  readonly channel: Channel
  /** How the connection of it ends. */
  readonly ended: Promise<ConnectionEnded>
  /** Somebody else has the terminal now. */
  onMoved?: (() => void) | undefined
  /** By which a client that comes back is known. */
  readonly id?: string | undefined
  /** Where its requests go. */
  terminal: Pick<KeptTerminal, 'takeRequest'>
}

export interface KeptTerminalParts {
  /** A screen for a terminal of this size; undefined: the session is not held without its client. */
  screen(size: Size): KeptScreen | undefined
  /** Whether the terminal goes on, now that its client is lost. */
  onLost(terminal: KeptTerminal): boolean
  /** A client was attached. */
  onAttached(terminal: KeptTerminal): void
  /**
   * A client asks for a program. A promise: it waits for that, and passes unless it is false; true: the client has
   * its answer already.
   */
  onProgram?(terminal: KeptTerminal, request: ChannelRequest): Promise<boolean | undefined> | undefined
}

/** What others who use a terminal, too, change for its client. */
export interface TerminalSharing {
  /** Filters the client's input. */
  typed(chunk: Chunk): Chunk | undefined
  /** The size of the terminal, if the client's window is so large. */
  fit(own: Size): Size
  /** Whether somebody else is here now. */
  isAttended(): boolean
}

/** What somebody who attaches may ask for: the terminal and its program are there already. */
export const ofAttached: ReadonlySet<string> = new Set(['window-change', 'signal', 'break'])
const programs = new Set(['shell', 'exec', 'subsystem'])
/** The exit status of an ssh whose connection is lost. */
export const lostStatus = 255
/** For a client that does not read any more. */
export const goodbye_ms = 2_000
/** Between two sizes: an editor that still draws for the first may miss the second. */
const secondSize_ms = 250

/** What is needed of a client's connection. */
export interface ClientEnd extends Pick<ConnectionEnd, 'ended'> {
  /** Called when its terminal goes on with another client. */
  onMoved?(): void
  readonly id?: string | undefined
}

/** Hears what a client asks, from its first request on; one loop for each channel, whoever has it. */
export function clientOf(channel: Channel, near: ClientEnd, first: KeptTerminal): TerminalClient {
  const client: TerminalClient = {
    channel,
    ended: near.ended,
    onMoved: near.onMoved,
    id: near.id,
    terminal: first,
  }
  void (async () => {
    for await (const request of channel.requests) await client.terminal.takeRequest(client, request)
  })().catch(() => undefined)
  return client
}

/** Whether a connection ended without a goodbye. */
export const isLoss = ({ reason }: ConnectionEnded): boolean => reason === Reason.connectionLost

export class KeptTerminal implements Channel {
  readonly type: string
  readonly requests = boundedQueue<ChannelRequest>()
  readonly #parts: KeptTerminalParts
  readonly #closed = Promise.withResolvers<void>()
  #client: TerminalClient | undefined
  /** The client that opened the channel; others may ask for less. */
  #first: TerminalClient | undefined
  /** The id of the client that came last, empty for one without; undefined: none came since it began here. */
  #lastId: string | undefined
  #screen: KeptScreen | undefined
  #size: Size | undefined
  /** The window of the client. */
  #own: Size | undefined
  /** Undefined: nobody else was ever here. */
  shared: TerminalSharing | undefined
  /** Typed before the program was asked for; it comes first. */
  typed: Buffer | undefined
  #isRunning = false
  #isOver = false
  #isReleased = false
  readonly #unanswered = new Set<Promise<void>>()
  /** Resolves when a client that was just attached has been shown the screen. */
  #drawing: Promise<void> | undefined
  /** The pace of output that no client gets. */
  readonly #pace = unattendedPace(
    () => this.#isOver || this.#client !== undefined || this.shared?.isAttended() === true,
  )
  #reading: (PromiseWithResolvers<void> & { take(chunk: Chunk): Promise<void> | void }) | undefined

  constructor(type: string, parts: KeptTerminalParts) {
    this.type = type
    this.#parts = parts
  }

  /** The first client, which has opened the channel. */
  begin(client: TerminalClient): void {
    this.#first = client
    this.#follow(client)
  }

  get closed(): Promise<void> {
    return this.#closed.promise
  }
  get isOver(): boolean {
    return this.#isOver
  }
  /** Whether a program runs in a terminal that can be held. */
  get isHoldable(): boolean {
    return this.#screen !== undefined && this.#isRunning && !this.#isOver
  }
  get client(): TerminalClient | undefined {
    return this.#client
  }
  /** Whether another client has come since the one with this id. */
  isMovedFrom(id: string): boolean {
    return this.#lastId !== undefined && this.#lastId !== id
  }
  get size(): Size | undefined {
    return this.#size
  }
  get held_bytes(): number {
    return this.#screen?.held_bytes ?? 0
  }

  // ---- what clients do

  async takeRequest(client: TerminalClient, request: ChannelRequest): Promise<void> {
    if (this.#client !== client || this.#isOver) return request.reply(false)
    const asked = readRequest(request.type, request.payload)
    if (client !== this.#first && !ofAttached.has(request.type)) return request.reply(false)
    if (asked.type === 'pty-req' && !this.#isRunning) this.#own = this.#size = sizeOf(asked.pty)
    if (asked.type === 'window-change') {
      this.#own = sizeOf(asked.size)
      if (this.shared) {
        this.refit()
        return request.reply(true)
      }
      this.#resize(this.#own)
    }
    if (programs.has(request.type) && !this.#isRunning) {
      const deciding = this.#parts.onProgram?.(this, request)
      const decided = deciding && (await deciding)
      // The client may be another terminal's after that.
      if (decided === false) return
      if (this.#isOver) return request.reply(false)
      if (decided) request = { ...request, reply: () => undefined }
      if (this.#size) this.#screen = this.#parts.screen(this.#size)
      this.#isRunning = true
    }
    const { reply } = request
    // Whoever has gone to another terminal has what was asked for there.
    const answered = Promise.withResolvers<void>()
    this.#unanswered.add(answered.promise)
    const answer = (success: boolean): void => {
      reply(success)
      this.#unanswered.delete(answered.promise)
      answered.resolve()
    }
    const passed = { ...request, reply: (success: boolean) => answer(success || this.#isReleased) }
    if (!this.requests.push(passed)) answer(false)
  }

  /**
   * Gives the terminal to another client, which is shown the screen at its size; whoever had it is told where
   * the session goes on, and let go.
   */
  async attach(
    client: TerminalClient,
    size: Size,
    { scrollback, where }: { scrollback: boolean; where: string },
  ): Promise<void> {
    const screen = this.#screen
    if (this.#isOver || !screen) throw new ChannelClosed('The session is over.')
    const before = this.#client
    this.#client = client
    this.#pace.wake()
    this.#lastId = client.id ?? ''
    client.terminal = this
    if (before) {
      before.onMoved?.()
      void letGo(before, `The session goes on elsewhere: ${where}.`)
    }
    let isWhole = false
    const drawing = (this.#drawing ?? Promise.resolve()).then(async () => {
      if (this.#client !== client) return
      const frame = await screen.redraw(size, scrollback)
      await client.channel.write(frame)
      isWhole = !screen.isPartial
    })
    const drawn = drawing.catch(() => undefined)
    this.#drawing = drawn
    await drawn
    if (this.#drawing === drawn) this.#drawing = undefined
    if (this.#client !== client) return
    this.#own = size
    this.#changeSize(this.shared?.fit(size) ?? size, !isWhole)
    this.#parts.onAttached(this)
    this.#follow(client)
  }

  /** Somebody else types: that goes the way of what the client types. */
  async typeFor(bytes: Uint8Array): Promise<void> {
    if (this.#isOver) return
    try {
      await this.#reading?.take({ bytes: Buffer.from(bytes), stream: 0 })
    } catch {
      // The device is gone, which the pipe hears, too.
    }
  }

  /** Makes programs draw anew, by a change of size; shells write their prompt again. */
  drawAnew(): void {
    if (this.#size && this.#isRunning && !this.#isOver) this.#changeSize(this.#size, true)
  }

  /** The windows of those who use it have changed. */
  refit(): void {
    if (!this.#own || !this.#size || this.#isOver) return
    const { width, height } = this.shared?.fit(this.#own) ?? this.#own
    if (width !== this.#size.width || height !== this.#size.height) this.#changeSize({ width, height }, false)
  }

  /** Lets a client go that takes another terminal instead; nothing has passed here yet. */
  release(): void {
    this.#isReleased = true
    this.#client = undefined
    this.#finish()
  }

  /** Resolves when everything that was asked of it is answered. */
  async answered(): Promise<void> {
    await Promise.all(this.#unanswered)
  }

  /** Makes the frame now, so that a held terminal needs little memory. */
  async settle(): Promise<void> {
    await this.#screen?.settle()
  }

  /** Ends it: the client, if there is one, is told the sentence, and fails as one whose connection is lost. */
  async stop(sentence: string): Promise<void> {
    const client = this.#client
    this.#client = undefined
    this.#finish()
    if (!client) return
    // A sentence would be nonsense among the packets of SFTP.
    if (this.#size) await letGo(client, sentence, lostStatus)
    else await client.channel.close('now').catch(() => undefined)
  }

  // ---- what the pipe does

  async readAll(take: (chunk: Chunk) => Promise<void> | void): Promise<void> {
    this.#reading = { take, ...Promise.withResolvers<void>() }
    if (this.#isOver) this.#reading.reject(new ChannelClosed('The client is gone.'))
    else if (this.#client) this.#readFrom(this.#client)
    return this.#reading.promise
  }

  async read(): Promise<Chunk | undefined> {
    return this.#client?.channel.read()
  }

  send(bytes: Uint8Array, stream = 0): Promise<void> | void {
    if (this.#isOver) throw new ChannelClosed('The channel is closed for writing.')
    // What comes now follows the screen that is being drawn.
    if (this.#drawing) return this.#drawing.then(() => (this.#isOver ? undefined : this.send(bytes, stream)))
    this.#screen?.show(bytes)
    const client = this.#client
    if (!client) return this.#pace.spend(bytes.length)
    try {
      // Whether the client is lost or has left is for `#left` to find out.
      return client.channel.send(bytes, stream)?.catch(() => undefined)
    } catch {
      return undefined
    }
  }

  async write(bytes: Uint8Array, stream?: number): Promise<void> {
    await this.send(bytes, stream)
  }
  sendNow(): number {
    return 0
  }

  async request(type: string, payload?: Uint8Array, wantReply?: boolean): Promise<boolean> {
    await this.#drawing
    return (await this.#client?.channel.request(type, payload, wantReply).catch(() => false)) ?? !wantReply
  }

  async end(): Promise<void> {
    await this.#drawing
    await this.#client?.channel.end()
  }

  async close(when?: 'now'): Promise<void> {
    await this.#drawing
    const client = this.#client
    this.#client = undefined
    if (client) await client.channel.close(when)
    this.#finish()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void> {
    for (let chunk = await this.read(); chunk; chunk = await this.read()) yield chunk
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  // ----

  #follow(client: TerminalClient): void {
    this.#client = client
    if (this.#reading) this.#readFrom(client)
    void client.channel.closed.then(async () => this.#left(client))
  }

  #readFrom(client: TerminalClient): void {
    const reading = this.#reading!
    const failed = (error: unknown): never => {
      reading.reject(error)
      throw error
    }
    const take = (chunk: Chunk): Promise<void> | void => {
      if (this.#client !== client) return undefined
      const typed = this.shared ? this.shared.typed(chunk) : chunk
      if (!typed) return undefined
      try {
        return reading.take(typed)?.catch(failed)
      } catch (error) {
        return failed(error)
      }
    }
    const read = async (): Promise<void> => {
      const { typed } = this
      this.typed = undefined
      if (typed) await take({ bytes: typed, stream: 0 })
      await client.channel.readAll(take)
    }
    read().then(
      () => this.#client === client && reading.resolve(),
      // Its channel is gone, which `#left` hears, too.
      () => undefined,
    )
  }

  /** The channel of a client is gone. */
  async #left(client: TerminalClient): Promise<void> {
    const how = await Promise.race([client.ended, nextTurn()])
    if (this.#client !== client) return
    this.#client = undefined
    // Whoever closes a login that only continues the session closes no more than that login.
    const isLost = how && (isLoss(how) || (how.by === 'us' && client !== this.#first))
    if (isLost && this.isHoldable && this.#parts.onLost(this)) return
    this.#finish()
  }

  #resize(size: Size): void {
    this.#size = size
    this.#screen?.resize(size)
  }

  /** Tells the device the size of the one who attached, and programs to draw anew if the screen lacks something. */
  #changeSize(size: Size, drawAnew: boolean): void {
    const tell = (one: Size): void => {
      const { name, payload } = writeRequest({
        type: 'window-change',
        size: { columns: one.width, rows: one.height, width: 0, height: 0 },
      })
      this.requests.push({
        type: name,
        payload: Buffer.from(payload),
        wantReply: false,
        reply: () => undefined,
      })
    }
    this.#resize(size)
    if (!drawAnew) return tell(size)
    tell({ ...size, height: size.height > 1 ? size.height - 1 : 2 })
    // The client may have changed the size by then.
    setTimeout(() => this.#size && tell(this.#size), secondSize_ms).unref()
  }

  #finish(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#pace.wake()
    this.requests.end()
    this.#reading?.reject(new ChannelClosed('The client is gone.'))
    this.#screen?.[Symbol.dispose]()
    this.#closed.resolve()
  }
}

const sizeOf = ({ columns, rows }: { columns: number; rows: number }): Size => ({
  width: columns,
  height: rows,
})

/** Tells a client one sentence and closes its channel. */
export async function letGo({ channel }: TerminalClient, sentence: string, status = 0): Promise<void> {
  const late = setTimeout(() => void channel.close('now').catch(() => undefined), goodbye_ms)
  try {
    await channel.write(Buffer.from(`${leaving}\r\n${sentence}\r\n`))
    const { name, payload } = writeRequest({ type: 'exit-status', status })
    await channel.request(name, payload)
    await channel.close()
  } catch {
    // It is gone already.
  } finally {
    clearTimeout(late)
  }
}

/**
 * Every mode off that a program may have switched on: the terminal of whoever leaves is theirs again. On the usual
 * screen 1049 puts the cursor where it was saved last, which is where it is.
 */
const leaving =
  '\u001b7\u001b[?1049l\u001b[!p\u001b[?9;1000;1002;1003;1004;1005;1006;1015;1016;2004l\u001b[?25h\u001b[m'

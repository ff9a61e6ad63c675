// A terminal of a session, which outlives its client. To the pipe it is the near channel from the first byte to the
// last; its person's client attaches and detaches, and may be another one each time. Output goes to the recorder first,
// which may hold it back, and which shows it on the terminal's one screen; then to the client. Without a client the
// terminal is held: its output then passes slowly after some megabytes (pace.ts). A client that attaches is first shown
// the screen, and so are viewers. A restored terminal begins held, with a program that runs already (restore.ts). A
// channel whose program has no terminal is one too, but never holdable: it ends with its client.
import {
  ChannelClosed,
  queue,
  readRequest,
  writeRequest,
  type Channel,
  type ChannelRequest,
  type Chunk,
} from '@hawser/ssh'
import type { SessionOrigin } from '@hawser/contract/sessions'
import type { Size } from '../../recording/journal.ts'
import type { ChannelRecorder } from '../../recording/channel-recorder.ts'
import type { TerminalScreen } from '../../recording/terminal-screen.ts'
import { dismiss, endingOf, isLoss, lostStatus, type TakesRequests, type TerminalClient } from './client.ts'
import { unattendedPace } from './pace.ts'

export type TerminalState =
  | { readonly is: 'attached'; readonly client: TerminalClient }
  | { readonly is: 'held'; readonly until: number }
  | { readonly is: 'over' }

export interface TerminalParts {
  screen(size: Size): TerminalScreen
  /** Whether a terminal of the session may be held without its client. */
  readonly mayHold: boolean
  /** Until when the terminal is held; undefined: it ends. */
  onLost(terminal: Terminal): number | undefined
  onAttach(by: Reattached): void
  /** The client that reattached has seen the screen. */
  onAttached(terminal: Terminal): void
  /**
   * With a promise the request waits, and passes unless it resolves to false; true: the client has its answer
   * already.
   */
  onProgram?(terminal: Terminal, request: ChannelRequest): Promise<boolean | undefined> | undefined
}

/** A client that reattaches, and from where. */
export interface Reattached {
  readonly source: string
  readonly via: SessionOrigin
}

export interface TerminalSharing {
  typed(chunk: Chunk): Chunk | undefined
  /** The size of the terminal for a client's window of this size. */
  fit(own: Size): Size
  /** Whether somebody else is at the terminal now. */
  isAttended(): boolean
}

/** Requests that may reach a program that runs already. */
const ofAttached: ReadonlySet<string> = new Set(['window-change', 'signal', 'break'])
const programs = new Set(['shell', 'exec', 'subsystem'])
const mostRequests = 256
/** The pause between two sizes: an editor that still draws for the first may miss the second. */
const secondSize_ms = 250

export class Terminal implements Channel, TakesRequests {
  readonly type: string
  readonly requests = queue<ChannelRequest>(mostRequests)
  readonly #parts: TerminalParts
  readonly #closed = Promise.withResolvers<void>()
  /** Undefined before the first client. */
  #state: TerminalState | undefined
  #first: TerminalClient | undefined
  /** Empty for a client without an id; undefined: none has attached since the beginning. */
  #lastId: string | undefined
  #screen: TerminalScreen | undefined
  #size: Size | undefined
  #own: Size | undefined
  /** Undefined: nobody else was ever at the terminal. */
  sharing: TerminalSharing | undefined
  /** Input that came before the program was requested; passes before all other input. */
  typedBefore: Buffer | undefined
  /** Gets all output before the client does. */
  recorder: ChannelRecorder | undefined
  /** Whether its program is the user's shell, which may be interrupted by a line of ours. */
  isShell = false
  #isRunning = false
  /** Whether parts of the screen were never seen here: programs redraw it for the next client. */
  #isPartial = false
  /** Whether its client has taken another terminal instead. */
  #isReleased = false
  readonly #unanswered = new Set<Promise<void>>()
  /** Resolves when a client that just attached has seen the screen; output waits for it. */
  #drawing: Promise<void> | undefined
  readonly #restored = Promise.withResolvers<void>()
  /** Resolves when the latest output is recorded; undefined: it is. */
  #recording: Promise<void> | undefined
  /** Slows output that no client gets. */
  readonly #pace = unattendedPace(() => this.#state?.is !== 'held' || this.sharing?.isAttended() === true)
  #reading: (PromiseWithResolvers<void> & { take(chunk: Chunk): Promise<void> | void }) | undefined

  constructor(type: string, parts: TerminalParts) {
    this.type = type
    this.#parts = parts
  }

  /** For the client that opened the channel. */
  begin(client: TerminalClient): void {
    this.#first = client
    this.#follow(client)
  }

  /** Begins held; false: that is not possible. `showStored` follows, with all output or the last of it. */
  restore(size: Size, isWhole: boolean): boolean {
    void this.#waitWith(Promise.race([this.#restored.promise, this.closed]))
    this.#size = size
    this.#screen = this.#parts.screen(size)
    this.#isRunning = true
    this.#isPartial = !isWhole
    const until = this.#parts.onLost(this)
    if (until === undefined) {
      this.#finish()
      return false
    }
    this.#state = { is: 'held', until }
    return true
  }

  /** Shows the agent's stored output, before anybody attaches. */
  async showStored(output: Uint8Array): Promise<void> {
    try {
      await this.recorder?.output(output)
    } finally {
      this.#restored.resolve()
    }
  }

  get closed(): Promise<void> {
    return this.#closed.promise
  }
  get isOver(): boolean {
    return this.#state?.is === 'over'
  }
  /** Whether a program runs in a terminal that can be held. */
  get isHoldable(): boolean {
    return this.#parts.mayHold && this.#screen !== undefined && this.#isRunning && !this.isOver
  }
  get client(): TerminalClient | undefined {
    return this.#state?.is === 'attached' ? this.#state.client : undefined
  }
  get heldUntil(): number | undefined {
    return this.#state?.is === 'held' ? this.#state.until : undefined
  }
  /** Whether another client has attached since the one with this id. */
  isMovedFrom(id: string): boolean {
    return this.#lastId !== undefined && this.#lastId !== id
  }
  get size(): Size | undefined {
    return this.#size
  }
  get held_bytes(): number {
    return this.#screen?.held_bytes ?? 0
  }
  get screen(): TerminalScreen | undefined {
    return this.#screen
  }

  // ---- what clients do

  async takeRequest(client: TerminalClient, request: ChannelRequest): Promise<void> {
    if (this.client !== client) return request.reply(false)
    const asked = readRequest(request.type, request.payload)
    if (client !== this.#first && !ofAttached.has(request.type)) return request.reply(false)
    if (asked.type === 'pty-req' && !this.#isRunning) this.#own = this.#size = sizeOf(asked.pty)
    if (asked.type === 'window-change') {
      this.#own = sizeOf(asked.size)
      if (this.sharing) {
        this.refit()
        return request.reply(true)
      }
      this.#resize(this.#own)
    }
    if (programs.has(request.type) && !this.#isRunning) {
      const deciding = this.#parts.onProgram?.(this, request)
      const decided = deciding && (await deciding)
      // The client may have another terminal by now.
      if (decided === false) return
      if (this.isOver) return request.reply(false)
      if (decided) request = { ...request, reply: () => undefined }
      if (this.#size) this.#screen = this.#parts.screen(this.#size)
      this.#isRunning = true
    }
    this.#pass(request)
  }

  /** A client that has taken another terminal gets its answers there. */
  #pass(request: ChannelRequest): void {
    const answered = Promise.withResolvers<void>()
    this.#unanswered.add(answered.promise)
    const reply = (success: boolean): void => {
      request.reply(success || this.#isReleased)
      this.#unanswered.delete(answered.promise)
      answered.resolve()
    }
    if (!this.requests.push({ ...request, reply })) reply(false)
  }

  /**
   * Shows the client the screen at its size. The former client learns where the session continues, and is let
   * go.
   */
  async attach(
    client: TerminalClient,
    size: Size,
    { scrollback, ...by }: Reattached & { readonly scrollback: boolean },
  ): Promise<void> {
    const screen = this.#screen
    if (this.isOver || !screen) throw new ChannelClosed('The session is over.')
    this.#parts.onAttach(by)
    this.recorder?.interrupted({ type: 'resumed', via: by.via })
    const before = this.client
    this.#state = { is: 'attached', client }
    this.#pace.wake()
    this.#lastId = client.end.id ?? ''
    client.terminal = this
    if (before) {
      before.end.onMoved?.()
      void dismiss(before, movedSentence(by))
    }
    let isWhole = false
    const draw = async (): Promise<void> => {
      await this.#recording
      if (this.client !== client) return
      const frame = await screen.redraw(size, scrollback)
      await client.channel.write(frame)
      isWhole = !screen.isPartial && !this.#isPartial
    }
    await this.#waitWith((this.#drawing ?? Promise.resolve()).then(draw))
    if (this.client !== client) return
    this.#own = size
    this.#changeSize(this.sharing?.fit(size) ?? size, !isWhole)
    this.#parts.onAttached(this)
    this.#follow(client)
  }

  /** Input of a guest takes the same way as the client's. */
  async typeFor(bytes: Uint8Array): Promise<void> {
    if (this.isOver) return
    try {
      await this.#reading?.take({ bytes: Buffer.from(bytes), stream: 0 })
    } catch {
      // The device is gone, which ends the pipe too.
    }
  }

  drawAnew(): void {
    if (this.#size && this.#isRunning && !this.isOver) this.#changeSize(this.#size, true)
  }

  refit(): void {
    if (!this.#own || !this.#size || this.isOver) return
    const { width, height } = this.sharing?.fit(this.#own) ?? this.#own
    if (width !== this.#size.width || height !== this.#size.height) this.#changeSize({ width, height }, false)
  }

  /** Releases a client that takes another terminal instead; nothing has passed here yet. */
  release(): void {
    this.#isReleased = true
    this.#finish()
  }

  async answered(): Promise<void> {
    await Promise.all(this.#unanswered)
  }

  /** Draws the frame now, so that a held terminal needs little memory. */
  async settle(): Promise<void> {
    await this.#screen?.settle()
  }

  /** Tells the client the sentence; the exit status is by default that of a lost connection. */
  async stop(sentence: string, status = lostStatus): Promise<void> {
    const { client } = this
    this.#finish()
    if (!client) return
    // A sentence would corrupt SFTP.
    if (this.#size) await dismiss(client, sentence, status)
    else await client.channel.close('now').catch(() => undefined)
  }

  /** Writes a line to everybody at the terminal, and to the recording. */
  say(text: string): void {
    // A recording that has failed throws.
    void this.write(Buffer.from(text)).catch(() => undefined)
  }

  /** Before all output. */
  announce(text: string): void {
    this.recorder?.announcement(text)
    if (this.client) void this.#waitWith(this.client.channel.write(Buffer.from(text)))
  }

  async readAll(take: (chunk: Chunk) => Promise<void> | void): Promise<void> {
    this.#reading = { take, ...Promise.withResolvers<void>() }
    if (this.isOver) this.#reading.reject(new ChannelClosed('The client is gone.'))
    else if (this.client) this.#readFrom(this.client)
    return this.#reading.promise
  }

  async read(): Promise<Chunk | undefined> {
    return this.client?.channel.read()
  }

  send(bytes: Uint8Array, stream = 0): Promise<void> | void {
    if (this.isOver) throw new ChannelClosed('The channel is closed for writing.')
    // New output follows the screen that is being drawn.
    if (this.#drawing) return this.#drawing.then(() => (this.isOver ? undefined : this.send(bytes, stream)))
    const recorded = this.recorder?.output(bytes)
    if (!recorded) return this.#show(bytes, stream)
    const recording = recorded
      .catch(() => undefined)
      .finally(() => {
        if (this.#recording === recording) this.#recording = undefined
      })
    this.#recording = recording
    return recorded.then(() => this.#show(bytes, stream))
  }

  #show(bytes: Uint8Array, stream: number): Promise<void> | void {
    const { client } = this
    if (!client) return this.#pace.spend(bytes.length)
    try {
      // `#left` finds out whether the client is lost or has left.
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
    return (await this.client?.channel.request(type, payload, wantReply).catch(() => false)) ?? !wantReply
  }

  async end(): Promise<void> {
    await this.#drawing
    await this.client?.channel.end()
  }

  async close(when?: 'now'): Promise<void> {
    await this.#drawing
    const { client } = this
    this.#state = { is: 'over' }
    if (client) await client.channel.close(when)
    this.#finish()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void> {
    for (let chunk = await this.read(); chunk; chunk = await this.read()) yield chunk
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Output waits until this is drawn. */
  #waitWith(drawing: Promise<unknown>): Promise<void> {
    const drawn = drawing
      .catch(() => undefined)
      .then(() => {
        if (this.#drawing === drawn) this.#drawing = undefined
      })
    this.#drawing = drawn
    return drawn
  }

  #follow(client: TerminalClient): void {
    this.#state = { is: 'attached', client }
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
      if (this.client !== client) return undefined
      const typed = this.sharing ? this.sharing.typed(chunk) : chunk
      if (!typed) return undefined
      try {
        return reading.take(typed)?.catch(failed)
      } catch (error) {
        return failed(error)
      }
    }
    const read = async (): Promise<void> => {
      const { typedBefore } = this
      this.typedBefore = undefined
      if (typedBefore) await take({ bytes: typedBefore, stream: 0 })
      await client.channel.readAll(take)
    }
    read().then(
      () => this.client === client && reading.resolve(),
      // `#left` handles a lost channel.
      () => undefined,
    )
  }

  /** Holds the terminal if its client was lost, and ends it if the client has left. */
  async #left(client: TerminalClient): Promise<void> {
    const how = await endingOf(client)
    if (this.client !== client) return
    // A client that only reattached closes its own login, not the session.
    const isLost = how && (isLoss(how) || (how.by === 'us' && client !== this.#first))
    const until = isLost && this.isHoldable ? this.#parts.onLost(this) : undefined
    if (until === undefined) return this.#finish()
    this.#state = { is: 'held', until }
    this.recorder?.interrupted({ type: 'held' })
    void this.settle()
  }

  #resize(size: Size): void {
    this.#size = size
    this.#screen?.resize(size)
  }

  /** Programs redraw if the screen lacks something. */
  #changeSize(size: Size, drawAnew: boolean): void {
    this.#resize(size)
    if (!drawAnew) return this.#tellSize(size)
    this.#tellSize({ ...size, height: size.height > 1 ? size.height - 1 : 2 })
    // The client may have changed the size by then.
    setTimeout(() => this.#size && this.#tellSize(this.#size), secondSize_ms).unref()
  }

  #tellSize({ width, height }: Size): void {
    const size = { columns: width, rows: height, width: 0, height: 0 }
    const { name, payload } = writeRequest({ type: 'window-change', size })
    this.requests.push({
      type: name,
      payload: Buffer.from(payload),
      wantReply: false,
      reply: () => undefined,
    })
  }

  #isFinished = false
  #finish(): void {
    if (this.#isFinished) return
    this.#isFinished = true
    this.#state = { is: 'over' }
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

/** The last line for a client whose terminal another one has taken. */
export const movedSentence = ({ source, via }: Reattached): string =>
  `The session continues elsewhere: ${via === 'browser' ? 'in a browser at' : `${via} from`} ${source}.`

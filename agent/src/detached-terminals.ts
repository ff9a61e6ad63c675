// Detached terminals: the agent keeps them when their gateway is lost without a goodbye (a crash, a restart,
// a lost node). The gateway marks a session's terminal for it, with a time limit. Until then the program
// runs, its output is read, and the last of it is stored. The agent reports detached terminals, and a gateway
// that knows the secret of one continues it alone, on another connection. The program is hung up when a
// gateway says goodbye, the agent stops, the time is over, or the device may no longer connect (hang-up.ts).
import { timingSafeEqual } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { mostDetached, type DetachRequest, type DetachedHead } from '@hawser/contract/tunnel'
import { Reason, type Channel, type ConnectionEnded, type Exit, type Session, type Size } from '@hawser/ssh'
import { DetachedOutput } from './detached-output.ts'
import { passOutput } from './outputs.ts'
import type { RunningProgram } from './program.ts'
import { passEvents, passInput } from './session-input.ts'

export interface GatewayLeg {
  readonly ended: Promise<ConnectionEnded>
  /** Undefined: the connection has its tunnel. */
  awaySince(): number | undefined
  /** Ends the connection, because another gateway has taken its terminal. */
  giveUp(): void
}

/** Reserved before the program starts. Disposing of an unused place frees it. */
export interface DetachedPlace extends Disposable {
  /** Registers the terminal of a program, unless the agent is stopping. */
  add(user: string, running: RunningProgram, size: Size): DetachedTerminal | undefined
}

export interface DetachedTerminals {
  /** Undefined: there is no room, or another terminal has this id. */
  reserve(detach: DetachRequest): DetachedPlace | undefined
  /** The terminal that a gateway with this secret may continue for this user. */
  find(detach: DetachRequest, user: string): DetachedTerminal | undefined
  /** Terminals without a gateway; undefined: there has never been one. */
  waiting(): string[] | undefined
  /** Calls back when `waiting` may have changed, until it is disposed. */
  watch(changed: () => void): Disposable
  check(): void
  /** Hangs up all terminals; each promise resolves when a program has ended. */
  hangUp(): Promise<void>[]
}

export interface DetachedTerminal {
  /** Joins the channel and the program until one of them ends, or another channel takes the program. */
  join(session: Session, leg: GatewayLeg, isFirst: boolean): Promise<Exit | undefined>
  /** Whether a channel of this connection has the terminal. */
  isOn(leg: GatewayLeg): boolean
  /** Resolves when the program has ended and its gateway knows, or none is left to know. */
  readonly over: Promise<void>
}

interface Line {
  readonly channel: Channel
  readonly leg: GatewayLeg
  /** Resolves when the stored output has been sent. */
  ready: Promise<unknown> | undefined
  /** Resolves when the channel no longer has the terminal. */
  readonly left: PromiseWithResolvers<undefined>
}

interface Entry {
  readonly detach: DetachRequest
  readonly user: string
  readonly terminal: DetachedTerminal
  isWaiting(): boolean
  hangUp(): void
}

/** `signal` hangs up all terminals. */
export function detachedTerminals(signal: AbortSignal): DetachedTerminals {
  const entries = new Map<string, Entry>()
  /** Terminals with a place and no program yet. */
  const reserved = new Set<string>()
  const watching = new Set<() => void>()
  let wasReported = false
  const changed = (): void => {
    for (const tell of watching) tell()
  }
  const hangUp = (): Promise<void>[] =>
    [...entries.values()].map(async (entry) => {
      entry.hangUp()
      return entry.terminal.over
    })
  signal.addEventListener('abort', hangUp, { once: true })
  return {
    reserve(detach) {
      const { id } = detach
      const isFull = entries.size + reserved.size >= mostDetached
      if (signal.aborted || isFull || entries.has(id) || reserved.has(id)) return undefined
      reserved.add(id)
      const place = new DisposableStack()
      place.defer(() => reserved.delete(id))
      return {
        add(user, running, size) {
          place.dispose()
          if (signal.aborted) return undefined
          const detached = detachedTerminal(detach, running, size, signal, changed)
          entries.set(id, { detach, user, ...detached })
          void detached.terminal.over.then(() => {
            entries.delete(id)
            changed()
          })
          return detached.terminal
        },
        [Symbol.dispose]: () => place.dispose(),
      }
    },
    find({ id, secret }, user) {
      const entry = entries.get(id)
      const isTheirs = entry?.user === user && isSame(entry.detach.secret, secret)
      return isTheirs ? entry.terminal : undefined
    },
    waiting() {
      const ids = [...entries].flatMap(([id, entry]) => (entry.isWaiting() ? [id] : []))
      wasReported ||= ids.length > 0
      return wasReported ? ids : undefined
    },
    watch(tell) {
      watching.add(tell)
      return { [Symbol.dispose]: () => void watching.delete(tell) }
    },
    check: changed,
    hangUp,
  }
}

/** For a gateway that is new to the terminal. */
async function show(
  channel: Channel,
  output: DetachedOutput,
  { columns, rows }: Size,
  isFirstSize: boolean,
): Promise<void> {
  const stored = output.read()
  const head: DetachedHead = { columns, rows, bytes: stored.length, whole: output.isWhole && isFirstSize }
  try {
    await channel.write(Buffer.from(JSON.stringify(head)), 1)
    await channel.write(stored)
  } catch {
    // The gateway is gone again.
  }
}

function detachedTerminal(
  { grace_s }: DetachRequest,
  running: RunningProgram,
  first: Size,
  signal: AbortSignal,
  changed: () => void,
): Pick<Entry, 'terminal' | 'isWaiting' | 'hangUp'> {
  const output = new DetachedOutput()
  const over = Promise.withResolvers<void>()
  let size = first
  let isFirstSize = true
  let line: Line | undefined
  let grace: NodeJS.Timeout | undefined

  const send = async (to: Line | undefined, bytes: Buffer): Promise<void> => {
    await to?.ready
    await to?.channel.write(bytes)
  }
  const passed = passOutput(running.stdout, running.ended, {
    takeNow(bytes) {
      let taken = bytes.length
      try {
        if (line) taken = line.ready ? 0 : line.channel.sendNow(bytes)
      } catch {
        // The channel is lost, which `left` notices.
      }
      output.push(bytes.subarray(0, taken))
      return taken
    },
    async take(bytes) {
      output.push(bytes)
      await send(line, bytes).catch(() => undefined)
    },
  })
  const exited = passed.catch(() => undefined).then(async () => running.ended)
  const control = {
    resize(to: Size) {
      isFirstSize &&= to.columns === size.columns && to.rows === size.rows
      size = to
      running.resize(to)
    },
    signal: running.signal,
    interrupt: running.interrupt,
  }

  const finish = (): void => {
    clearTimeout(grace)
    over.resolve()
  }
  const hangUp = (): void => {
    running.hangUp()
    void exited.then(finish)
  }

  async function left(from: Line): Promise<void> {
    const how = await Promise.race([from.leg.ended, nextTurn()])
    if (line !== from) return
    line = undefined
    from.left.resolve(undefined)
    if (how?.reason !== Reason.connectionLost || signal.aborted) return hangUp()
    const lost_ms = performance.now() - (from.leg.awaySince() ?? performance.now())
    grace = setTimeout(hangUp, Math.max(0, grace_s * 1_000 - lost_ms))
    changed()
  }

  const terminal: DetachedTerminal = {
    over: over.promise,
    isOn: (leg) => line?.leg === leg,
    async join(session, leg, isFirst) {
      const { channel } = session
      const before = line
      const own: Line = { channel, leg, ready: undefined, left: Promise.withResolvers() }
      line = own
      clearTimeout(grace)
      before?.left.resolve(undefined)
      before?.leg.giveUp()
      if (!isFirst)
        own.ready = show(channel, output, size, isFirstSize).finally(() => (own.ready = undefined))
      void channel.closed.then(async () => left(own))
      const working = [passInput(channel, running, () => line === own), passEvents(session, control)]
      changed()
      const exit = await Promise.race([exited, own.left.promise])
      if (!exit) return undefined
      await own.ready
      await session.exit(exit)
      if (line === own) finish()
      await Promise.all(working)
      return exit
    },
  }

  return {
    terminal,
    hangUp,
    isWaiting: () => line === undefined || line.leg.awaySince() !== undefined,
  }
}

function isSame(secret: string, given: string): boolean {
  const [own, other] = [Buffer.from(secret), Buffer.from(given)]
  return own.length === other.length && timingSafeEqual(own, other)
}

// Terminals that outlive the gateway. The gateway says of a session that its terminal is to be kept; when
// that gateway is lost without a goodbye (it has crashed, it starts again, its node is gone), the program
// runs on for the time that was said, its output is read on, and the last of it is kept. The agent reports
// which terminals wait, and a gateway that knows the secret of one continues it on another connection.
// Whoever has it then has it alone. A gateway that says goodbye, an agent that stops, a time that is over and
// a device that may no longer connect (hang-up.ts) hang the program up.
import { timingSafeEqual } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { mostKept, type Keep, type KeptHead } from '@hawser/contract/tunnel'
import { Reason, type Channel, type ConnectionEnded, type Exit, type Session, type Size } from '@hawser/ssh'
import { KeptOutput } from './kept-output.ts'
import { passOutput } from './outputs.ts'
import type { RunningProgram } from './program.ts'
import { passEvents, passInput } from './session-input.ts'

/** The connection of a gateway, as far as its terminals have to know it. */
export interface GatewayLeg {
  readonly ended: Promise<ConnectionEnded>
  /** When the connection lost its tunnel; undefined: it has one. */
  awaySince(): number | undefined
  /** Ends it, because another gateway has what it had. */
  giveUp(): void
}

/** Room for one terminal, from before its program begins; disposed of, it is for others, unless it was used. */
export interface KeptPlace extends Disposable {
  /** Keeps the terminal of a program, unless the agent stops; `size` is its own. */
  add(user: string, running: RunningProgram, size: Size): KeptTerminal | undefined
}

export interface KeptTerminals {
  /** Takes a place for the terminal; undefined: there is none, or there is a terminal of this id. */
  reserve(keep: Keep): KeptPlace | undefined
  /** The terminal that such a gateway may continue for this user. */
  find(keep: Keep, user: string): KeptTerminal | undefined
  /** Kept terminals that no gateway has; undefined: nothing was ever kept. */
  waiting(): string[] | undefined
  /** Calls back when the list of those that wait may have changed, until it is disposed. */
  watch(changed: () => void): Disposable
  /** The tunnel has come or gone. */
  check(): void
  /** Hangs all of them up; each resolves when its program has ended. */
  hangUp(): Promise<void>[]
}

export interface KeptTerminal {
  /** Joins the channel and the program until one of them has ended, or another channel has the program. */
  join(session: Session, leg: GatewayLeg, isFirst: boolean): Promise<Exit | undefined>
  /** Whether a channel of this connection has it. */
  isOn(leg: GatewayLeg): boolean
  /** Resolves when the program has ended and somebody has heard of it, or nobody can any more. */
  readonly over: Promise<void>
}

/** A channel on which a gateway has the terminal. */
interface Line {
  readonly channel: Channel
  readonly leg: GatewayLeg
  /** Resolves when it has been sent what was kept. */
  ready: Promise<unknown> | undefined
  /** Resolves when it has the terminal no longer. */
  readonly left: PromiseWithResolvers<undefined>
}

interface Entry {
  readonly keep: Keep
  readonly user: string
  readonly terminal: KeptTerminal
  isWaiting(): boolean
  hangUp(): void
}

/** The terminals that this agent keeps. `signal` hangs all of them up. */
export function keptTerminals(signal: AbortSignal): KeptTerminals {
  const entries = new Map<string, Entry>()
  /** The ids of terminals that have a place, and no program yet. */
  const reserved = new Set<string>()
  const watching = new Set<() => void>()
  let said = false
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
    reserve(keep) {
      const { id } = keep
      const isFull = entries.size + reserved.size >= mostKept
      if (signal.aborted || isFull || entries.has(id) || reserved.has(id)) return undefined
      reserved.add(id)
      const place = new DisposableStack()
      place.defer(() => reserved.delete(id))
      return {
        add(user, running, size) {
          place.dispose()
          if (signal.aborted) return undefined
          const kept = keptTerminal(keep, running, size, signal, changed)
          entries.set(id, { keep, user, ...kept })
          void kept.terminal.over.then(() => {
            entries.delete(id)
            changed()
          })
          return kept.terminal
        },
        [Symbol.dispose]: () => place.dispose(),
      }
    },
    find({ id, secret }, user) {
      const entry = entries.get(id)
      const isTheirs = entry?.user === user && isSame(entry.keep.secret, secret)
      return isTheirs ? entry.terminal : undefined
    },
    waiting() {
      const ids = [...entries].flatMap(([id, entry]) => (entry.isWaiting() ? [id] : []))
      said ||= ids.length > 0
      return said ? ids : undefined
    },
    watch(tell) {
      watching.add(tell)
      return { [Symbol.dispose]: () => void watching.delete(tell) }
    },
    check: changed,
    hangUp,
  }
}

function keptTerminal(
  { grace_s }: Keep,
  running: RunningProgram,
  first: Size,
  signal: AbortSignal,
  changed: () => void,
): Pick<Entry, 'terminal' | 'isWaiting' | 'hangUp'> {
  const output = new KeptOutput()
  const over = Promise.withResolvers<void>()
  let size = first
  let line: Line | undefined
  let grace: NodeJS.Timeout | undefined

  /** Sends output to whoever has the terminal; that it is lost is for `left` to find out. */
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
        // The channel is lost, which `left` finds out.
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

  /** The channel of a gateway is gone. */
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

  const terminal: KeptTerminal = {
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
      if (!isFirst) own.ready = show(channel).finally(() => (own.ready = undefined))
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

  /** Sends the size and the kept output to a gateway that has not seen the terminal before. */
  async function show(channel: Channel): Promise<void> {
    const head: KeptHead = { columns: size.columns, rows: size.rows }
    const kept = output.read()
    try {
      await channel.write(Buffer.from(JSON.stringify(head)), 1)
      await channel.write(kept)
    } catch {
      // The gateway is gone again.
    }
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

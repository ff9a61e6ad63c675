// `hawser play` plays a recording in the terminal, at its own speed or another. It streams the recording line
// by line, so the length does not matter. The output of the device passes through the filter of safe-text.ts.
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { contract } from '@hawser/contract'
import { client } from '@hawser/contract/client'
import type { Command, ParsedArgs } from '../command.ts'
import { CliError, notFoundCode, usageCode } from '../errors.ts'
import { openKeyboard, type Key } from '../keyboard.ts'
import { findSession } from '../resolve.ts'
import { entersAlternateScreen, resetSequence, screenFilter } from '../safe-text.ts'
import { openStream } from '../stream.ts'

const step_s = 10

export const play: Command = {
  words: ['play'],
  summary: 'Plays the recording of a session in this terminal.',
  arguments: [{ name: 'session', doc: 'its uid or the start of it, or `last`', completes: 'session' }],
  options: [
    {
      name: 'speed',
      value: 'factor',
      doc: 'such as 2 or 0.5; 0: all at once; default: 1, or 0 where the output is no terminal',
    },
    {
      name: 'skip',
      value: 'seconds',
      doc: 'starts this far into the recording, with the screen as it was then',
    },
    { name: 'idle', value: 'seconds', doc: 'the longest pause; default: 2' },
    {
      name: 'interruptions',
      doc: 'also plays output from when the session had no client',
    },
    { name: 'channel', value: 'number', doc: 'which terminal of the session, if it had several; from 0' },
  ],
  details: ['Keys: space pauses, + and - change the speed, the right arrow goes ten seconds ahead, q ends.'],
  async run(given, context) {
    const pace = openPlaybackClock({
      speed: amount(given, 'speed') ?? (process.stdout.isTTY ? 1 : 0),
      from_s: amount(given, 'skip') ?? 0,
      idle_s: amount(given, 'idle') ?? 2,
    })
    const channel = amount(given, 'channel')
    const options = context.options()
    const { uid } = await findSession(client(options), given.words[0]!)
    const stream = await openStream(contract.sessions.cast, { params: { uid }, query: { channel } }, options)
    const lines = createInterface({ input: stream, crlfDelay: Infinity })
    const filter = screenFilter()
    let [second, recorded, interrupted] = [false, false, false]
    using _ = openKeyboard(pace.press)
    try {
      for await (const line of lines) {
        const event = eventOf(line)
        if (event?.kind === 'header' && process.stderr.isTTY && process.stdout.isTTY && tooSmall(event)) {
          context.say(
            `The recording is ${event.width} wide and ${event.height} high; a terminal as large as that shows it right.`,
          )
        }
        // A jump into an interruption is meant to show it.
        if (event?.kind === 'held')
          interrupted = given.flag('interruptions') !== true && !pace.goesBeyond(event.at_s)
        if (event?.kind === 'resumed') interrupted = false
        if (event?.kind !== 'output') continue
        recorded = true
        if (!(await pace.reach(event.at_s, interrupted ? 0 : undefined))) break
        const shown = filter(event.text)
        second = entersAlternateScreen(shown) ?? second
        if (!process.stdout.write(shown)) await once(process.stdout, 'drain')
      }
    } finally {
      if (process.stdout.isTTY) process.stdout.write(resetSequence(second))
    }
    if (!recorded)
      throw new CliError(
        'The session has no recording: it had no terminal, or the namespace did not record.',
        notFoundCode,
      )
    context.say(pace.ended() ? '' : '\nThe recording is over.')
  },
}

const tooSmall = ({ width, height }: { width: number; height: number }): boolean =>
  width > process.stdout.columns || height > process.stdout.rows

function amount(given: ParsedArgs, option: string): number | undefined {
  const text = given.value(option)
  if (text === undefined) return undefined
  if (!/^\d{1,9}(\.\d+)?$/.test(text)) throw new CliError(`--${option} is a number, not ${text}.`, usageCode)
  return Number(text)
}

type CastEvent =
  | { readonly kind: 'header'; readonly width: number; readonly height: number }
  | { readonly kind: 'output'; readonly at_s: number; readonly text: string }
  | { readonly kind: 'held' | 'resumed'; readonly at_s: number }

/** Parses a line of an asciicast file. Other lines (resizes, other markers, unknown ones) give undefined. */
export function eventOf(line: string): CastEvent | undefined {
  try {
    const parsed = JSON.parse(line) as unknown
    if (Array.isArray(parsed)) {
      const [at_s, kind, text] = parsed as unknown[]
      if (typeof at_s !== 'number' || typeof text !== 'string') return undefined
      if (kind === 'o') return { kind: 'output', at_s, text }
      if (kind === 'm' && text === 'held') return { kind: 'held', at_s }
      return kind === 'm' && text.startsWith('resumed by ') ? { kind: 'resumed', at_s } : undefined
    }
    const { width, height } = parsed as { width?: unknown; height?: unknown }
    return typeof width === 'number' && typeof height === 'number'
      ? { kind: 'header', width, height }
      : undefined
  } catch {
    return undefined
  }
}

/** Keys change its speed, pause it and jump ahead. */
function openPlaybackClock({ speed, from_s, idle_s }: { speed: number; from_s: number; idle_s: number }) {
  const is = { over: false }
  let [now_s, skipTo_s, paused] = [0, from_s, false]
  let changed = new AbortController()
  const act: Record<Key, () => void> = {
    space: () => void (paused = !paused),
    quit: () => void (is.over = true),
    faster: () => void (speed = Math.min(speed * 2, 1024)),
    slower: () => void (speed = Math.max(speed / 2, 1 / 1024)),
    ahead: () => void (skipTo_s = Math.max(now_s, skipTo_s) + step_s),
  }
  return {
    press(key: Key): void {
      act[key]()
      changed.abort()
      changed = new AbortController()
    },
    ended: () => is.over,
    goesBeyond: (at_s: number) => skipTo_s > at_s,
    /** False: the person has quit. */
    async reach(at_s: number, longest_s = idle_s): Promise<boolean> {
      now_s = Math.max(now_s, at_s - longest_s)
      while (!is.over && now_s < at_s) {
        if (speed === 0 || skipTo_s > now_s) {
          now_s = speed === 0 ? at_s : Math.min(at_s, skipTo_s)
          continue
        }
        const started = performance.now()
        const wait_ms = paused ? 2 ** 30 : Math.min(((at_s - now_s) / speed) * 1000, 2 ** 30)
        await sleep(wait_ms, undefined, { signal: changed.signal }).catch(() => undefined)
        if (!paused && performance.now() - started >= wait_ms) now_s = at_s
        else if (!paused) now_s += ((performance.now() - started) / 1000) * speed
      }
      return !is.over
    },
  }
}

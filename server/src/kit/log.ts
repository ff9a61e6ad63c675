// Logs: JSON lines on stdout, one per event. `event` is `noun.verbed`; a secret never reaches a line, and
// should one be passed by mistake under a telling name it prints as [secret].
//
// And a limit on the lines that strangers can cause. Each source gets so many in a window of time, and all sources
// together get so many more. Dropped lines are counted, and told in a few lines at the end of the window. So a flood
// neither fills the disk nor goes unnoticed.
import { pino, stdSerializers, type Logger } from 'pino'
import { minute_ms } from './clock.ts'

export type Log = Logger

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const secrets = [
  'password',
  'current_password',
  'new_password',
  'token',
  'secret',
  'code',
  'recovery_code',
  'key',
  'authorization',
  'smtp',
]

export function openLog(level: string, destination?: NodeJS.WritableStream): Log {
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: plainError },
    redact: { paths: [...secrets, ...secrets.map((name) => `*.${name}`)], censor: '[secret]' },
  }
  return destination ? pino(options, destination) : pino(options)
}

/**
 * What one needs of an error, and no more: libraries hang connections, queries and rows on theirs. Its code
 * (ECONNREFUSED, 57P01) is called `reason`, because a `code` is taken for a secret.
 */
function plainError(error: Error): object {
  const { type, message, stack, code } = stdSerializers.err(error) as unknown as Record<string, unknown>
  return { type, message, stack, ...(code === undefined ? {} : { reason: code }) }
}

/**
 * Text of a stranger, for a line of the log or to be kept: short, and without the characters that would reach a
 * terminal or a page as more than text, for example those that turn the direction of a line. JSON escapes only
 * some of them.
 */
export function safeText(text: string, longest = 200): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text
  return cut.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '?')
}

/**
 * Makes one line of a text: control characters, line separators and marks that turn the writing around become
 * spaces.
 */
export function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\s]+/gu, ' ')
    .trim()
}

export interface LineLimiter extends Disposable {
  /** Whether one more line about the source may be written. If not, the line counts as dropped. */
  allows(source: string): boolean
}

/** Lines that were not written in the last window. Without a source: those of all other sources together. */
export interface DroppedLines {
  readonly source?: string
  readonly sources?: number
  readonly lines: number
}

export interface LineLimiterOptions {
  /** Lines about one source in a window. */
  readonly perSource: number
  /** Lines about all sources together in a window. */
  readonly together: number
  readonly window_ms?: number
  onDropped(dropped: DroppedLines): void
}

/** Sources that are counted by themselves; further ones share one count. */
const mostSources = 10_000
/** Sources that get a line of their own at the end of a window, those with the most lines first. */
const mostNamed = 10
const others = ''

export function lineLimiter(options: LineLimiterOptions): LineLimiter {
  const sources = new Map<string, { lines: number; dropped: number }>()
  let together = 0
  let window: NodeJS.Timeout | undefined

  function endWindow(): void {
    clearTimeout(window)
    window = undefined
    together = 0
    const worst = [...sources]
      .filter(([, { dropped }]) => dropped > 0)
      .toSorted(([, a], [, b]) => b.dropped - a.dropped)
    const named = worst.filter(([source]) => source !== others).slice(0, mostNamed)
    const rest = worst.filter((entry) => !named.includes(entry))
    sources.clear()
    for (const [source, { dropped }] of named) options.onDropped({ source, lines: dropped })
    if (rest.length > 0)
      options.onDropped({ sources: rest.length, lines: rest.reduce((sum, [, one]) => sum + one.dropped, 0) })
  }

  return {
    allows(source) {
      window ??= setTimeout(endWindow, options.window_ms ?? minute_ms).unref()
      const key = sources.has(source) || sources.size < mostSources ? source : others
      const count = sources.get(key) ?? { lines: 0, dropped: 0 }
      sources.set(key, count)
      if (count.lines >= options.perSource || together >= options.together) {
        count.dropped += 1
        return false
      }
      count.lines += 1
      together += 1
      return true
    },
    [Symbol.dispose]: endWindow,
  }
}

// Logs: JSON lines on stdout, one per event. `event` is `noun.verbed`; a secret never reaches a line, and
// should one be passed by mistake under a telling name it prints as [secret].
//
// And a limit on the lines that strangers can cause in a minute, for each source and for all sources together. Dropped
// lines are counted and reported in a few lines at its end. So a flood neither fills the disk nor goes unnoticed.
import { pino, stdSerializers, type Logger } from 'pino'
import { systemClock } from './clock.ts'
import { windows } from './limiter.ts'

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
 * Only what is needed of an error: libraries hang connections, queries and rows on theirs. Its code
 * (ECONNREFUSED, 57P01) is called `reason`, because a `code` is taken for a secret.
 */
function plainError(error: Error): object {
  const { type, message, stack, code } = stdSerializers.err(error) as unknown as Record<string, unknown>
  return { type, message, stack, ...(code === undefined ? {} : { reason: code }) }
}

/**
 * A stranger's text for the log or the database: short, and without characters that a terminal or a page
 * takes for more than text, such as those that turn the direction of a line. JSON escapes only some of them.
 */
export function safeText(text: string, longest = 200): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text
  return cut.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '?')
}

/** Replaces control characters, line separators and direction marks by spaces. */
export function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\s]+/gu, ' ')
    .trim()
}

export interface LineLimiter extends Disposable {
  /** False: the line counts as dropped. */
  allows(source: string): boolean
}

/** Lines dropped in the last window. Without a source: those of all other sources together. */
export interface DroppedLines {
  readonly source?: string
  readonly sources?: number
  readonly lines: number
}

export interface LineLimiterOptions {
  readonly perSource: number
  readonly together: number
  onDropped(dropped: DroppedLines): void
}

/** Further ones share one count. */
const mostSources = 10_000
/** Sources with their own line at the end of a window, most lines first. */
const mostNamed = 10
const others = ''

export function lineLimiter({ perSource, together, onDropped }: LineLimiterOptions): LineLimiter {
  let written = 0
  const sources = windows<{ source: string; lines: number; dropped: number }>({
    clock: systemClock,
    most: mostSources,
    onEnd(all) {
      written = 0
      const worst = all.filter(({ dropped }) => dropped > 0).toSorted((a, b) => b.dropped - a.dropped)
      const named = worst.filter(({ source }) => source !== others).slice(0, mostNamed)
      const rest = worst.filter((one) => !named.includes(one))
      for (const { source, dropped } of named) onDropped({ source, lines: dropped })
      if (rest.length > 0)
        onDropped({ sources: rest.length, lines: rest.reduce((sum, { dropped }) => sum + dropped, 0) })
    },
  })
  return {
    allows(source) {
      const names = { own: source, group: others, all: others }
      const count = sources.of('', names, (share) => ({ source: names[share], lines: 0, dropped: 0 }))
      const isAllowed = count.lines < perSource && written < together
      count[isAllowed ? 'lines' : 'dropped'] += 1
      if (isAllowed) written += 1
      return isAllowed
    },
    [Symbol.dispose]: sources[Symbol.dispose],
  }
}

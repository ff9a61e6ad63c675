// Limits the lines of the log that strangers can cause. Each source gets so many in a window of time, and all
// sources together get so many more. Dropped lines are counted, and told in a few lines at the end of the
// window. So a flood neither fills the disk nor goes unnoticed.
import { minute_ms } from './clock.ts'

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

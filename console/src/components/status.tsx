// Small indicators: online or offline, status, tags, and relative times.
import type { ReactNode } from 'react'

/** A dot for online or offline. Colour is never the only sign: the word stands beside it. */
export function Lamp({ on }: { on: boolean }) {
  return <span className="lamp" data-on={on} aria-hidden="true" />
}

export type Tone = 'plain' | 'good' | 'bad' | 'wait'

export function Pill({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span className="pill" data-tone={tone}>
      {children}
    </span>
  )
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const units: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
]

export function ago(moment: string): string {
  const seconds = (Date.now() - Date.parse(moment)) / 1000
  const unit = units.find(([, size]) => Math.abs(seconds) >= size)
  return unit ? relative.format(-Math.trunc(seconds / unit[1]), unit[0]) : 'a moment ago'
}

const full = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
export const inFull = (moment: string): string => full.format(new Date(moment))

/** A relative time; the tooltip has the full date. */
export function When({ at }: { at: string }) {
  return (
    <time dateTime={at} title={inFull(at)}>
      {ago(at)}
    </time>
  )
}

export function TagList({ tags }: { tags: readonly string[] }) {
  return tags.map((tag) => (
    <span key={tag} className="tag">
      {tag}
    </span>
  ))
}

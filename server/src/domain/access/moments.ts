// The ends of a span of time in a query: a day, or a moment with its zone.
import { Failure } from '@hawser/contract/failures'
import { day_ms } from '../../kit/clock.ts'

const form = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/

/** Milliseconds since 1970. `end`: the last millisecond of a day without a time. */
export function momentOf(
  field: string,
  text: string | undefined,
  end: 'start' | 'end' = 'start',
): number | undefined {
  if (text === undefined) return undefined
  const ms = form.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms))
    throw new Failure('invalid', {
      message: `${field}: a day such as 2026-11-17 or a moment such as 2026-11-17T03:30:00Z is expected`,
    })
  return end === 'end' && !text.includes('T') ? ms + day_ms - 1 : ms
}

export function spanOf({ from, to }: { from?: string | undefined; to?: string | undefined }): {
  from: string | undefined
  to: string | undefined
} {
  const stored = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString())
  return { from: stored(momentOf('from', from)), to: stored(momentOf('to', to, 'end')) }
}

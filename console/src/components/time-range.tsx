// The choice of a span of time above a list: one that ends now, or from one moment until another.
import { useState } from 'react'
import { msg, t } from '../language/language.ts'
import { Options } from './form.tsx'
import { quickRanges, type QuickRange, type TimeSpan } from '../search-params.ts'

export const rangeWords: Readonly<Record<QuickRange, string>> = {
  '1h': msg('Last hour'),
  '24h': msg('Last 24 hours'),
  '7d': msg('Last 7 days'),
  '30d': msg('Last 30 days'),
}

/** From the local date and time of a field; undefined: the field is empty. */
export const fromLocal = (value: string): string | undefined =>
  value === '' || Number.isNaN(Date.parse(value)) ? undefined : new Date(value).toISOString()

export function toLocal(moment: string | undefined): string {
  if (moment === undefined) return ''
  const at = new Date(moment)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

const moment = (label: string, value: string | undefined, look: (value: string | undefined) => void) => (
  <div className="pick">
    <input
      key={`${label} ${value ?? ''}`}
      type="datetime-local"
      aria-label={label}
      defaultValue={toLocal(value)}
      onBlur={(event) => look(fromLocal(event.currentTarget.value))}
      onKeyDown={(event) => event.key === 'Enter' && look(fromLocal(event.currentTarget.value))}
    />
  </div>
)

interface TimeRangeProps {
  search: TimeSpan
  look: (change: { [K in keyof TimeSpan]?: TimeSpan[K] | undefined }) => void
}

export function TimeRange({ search, look }: TimeRangeProps) {
  const { since, from, until } = search
  const [isOpen, setOpen] = useState(from !== undefined || until !== undefined)
  const chosen = since ?? (isOpen ? 'other' : '')
  return (
    <>
      <div className="pick">
        <select
          aria-label={t('Time')}
          value={chosen}
          onChange={({ currentTarget: { value } }) => {
            setOpen(value === 'other')
            const range = (Object.keys(quickRanges) as QuickRange[]).find((one) => one === value)
            look({ since: range, from: undefined, until: undefined })
          }}
        >
          <option value="">{t('Any time')}</option>
          <Options
            options={(Object.keys(quickRanges) as QuickRange[]).map((range) => [range, t(rangeWords[range])])}
          />
          <option value="other">{t('From … until …')}</option>
        </select>
      </div>
      {chosen === 'other' && (
        <>
          {moment(t('From'), from, (from) => look({ from }))}
          {moment(t('Until'), until, (until) => look({ until }))}
        </>
      )}
    </>
  )
}

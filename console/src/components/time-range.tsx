// The choice of a span of time above a list: one that ends now, or from one moment until another.
import { useState } from 'react'
import { msg, t } from '../language/language.ts'
import { quickRanges, type QuickRange, type TimeSpan } from '../search-params.ts'

export const rangeWords: Readonly<Record<QuickRange, string>> = {
  '1h': msg('Last hour'),
  '24h': msg('Last 24 hours'),
  '7d': msg('Last 7 days'),
  '30d': msg('Last 30 days'),
}

/** The moment of a field for a local date and time, as the address has it; undefined: the field is empty. */
const fromLocal = (value: string): string | undefined =>
  value === '' || Number.isNaN(Date.parse(value)) ? undefined : new Date(value).toISOString()

function toLocal(moment: string | undefined): string {
  if (moment === undefined) return ''
  const at = new Date(moment)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

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
          {(Object.keys(quickRanges) as QuickRange[]).map((range) => (
            <option key={range} value={range}>
              {t(rangeWords[range])}
            </option>
          ))}
          <option value="other">{t('From … until …')}</option>
        </select>
      </div>
      {chosen === 'other' && (
        <>
          <div className="pick">
            <input
              key={`from ${from ?? ''}`}
              type="datetime-local"
              aria-label={t('From')}
              defaultValue={toLocal(from)}
              onBlur={(event) => look({ from: fromLocal(event.currentTarget.value) })}
              onKeyDown={(event) =>
                event.key === 'Enter' && look({ from: fromLocal(event.currentTarget.value) })
              }
            />
          </div>
          <div className="pick">
            <input
              key={`until ${until ?? ''}`}
              type="datetime-local"
              aria-label={t('Until')}
              defaultValue={toLocal(until)}
              onBlur={(event) => look({ until: fromLocal(event.currentTarget.value) })}
              onKeyDown={(event) =>
                event.key === 'Enter' && look({ until: fromLocal(event.currentTarget.value) })
              }
            />
          </div>
        </>
      )}
    </>
  )
}

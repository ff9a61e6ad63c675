// When a device was connected in the last days, drawn from its timeline: a stripe from left to right, filled
// while it was there. What lies before the oldest event that is kept is unknown, and is left open.
import type { TimelineEvent } from '@hawser/contract/timeline'
import type { Device } from '@hawser/contract/devices'
import { api } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { t } from '../language/language.ts'

const days = 7
const day_ms = 86_400_000
const [width, height] = [700, 24] as const

interface Stretch {
  readonly from: number
  readonly to: number
  readonly on: boolean
}

/** Oldest first; `events` are newest first. */
export function stretchesOf(
  events: readonly Pick<TimelineEvent, 'at' | 'kind'>[],
  online: boolean,
  first: number,
  now: number,
): Stretch[] {
  const found: Stretch[] = []
  let [to, on] = [now, online]
  for (const { at, kind } of events) {
    if (kind !== 'connected' && kind !== 'disconnected') continue
    const moment = Math.max(first, Date.parse(at))
    if (moment < to) found.unshift({ from: moment, to, on })
    to = Math.min(to, moment)
    on = kind === 'disconnected'
    if (to <= first) return found
  }
  return found
}

export function OnlineHistory({ device: { uid, online } }: { device: Device }) {
  const events = useNamespaceQuery(
    ['timeline', uid, 500],
    async () => (await api.devices.timeline({ params: { uid }, query: { limit: 500 } })).body.events,
  ).data
  if (!events) return null
  const now = Date.now()
  const first = now - days * day_ms
  const stretches = stretchesOf(events, online, first, now)
  const known = stretches.reduce((sum, { from, to }) => sum + to - from, 0)
  const there = stretches.reduce((sum, { from, to, on }) => sum + (on ? to - from : 0), 0)
  const trip = events.find(({ kind }) => kind === 'round-trip')?.milliseconds
  const share = known === 0 ? undefined : Math.round((there / known) * 100)
  const place = (moment: number): number => ((moment - first) / (now - first)) * width
  return (
    <div className="stack">
      {share !== undefined && (
        <>
          <svg
            className="history"
            viewBox={`0 0 ${width} ${height}`}
            preserveAspectRatio="none"
            role="img"
            aria-label={t('Online {share}% of the known time in the last {days} days.', {
              share,
              days,
            })}
          >
            {stretches.map(({ from, to, on }) => (
              <rect
                key={from}
                className={on ? 'on' : 'off'}
                x={place(from)}
                width={Math.max(1, place(to) - place(from))}
                y={on ? 0 : height - 4}
                height={on ? height : 4}
              />
            ))}
          </svg>
          <p className="chart-days" aria-hidden="true">
            <span>{t('{days} days ago', { days })}</span>
            <span>{t('now')}</span>
          </p>
        </>
      )}
      <p className="soft">
        {share === undefined
          ? t('No connections are known yet.')
          : t('Online {share}% of the time.', { share })}
        {trip !== undefined && ` ${t('A round trip takes {trip} ms.', { trip })}`}
      </p>
    </div>
  )
}

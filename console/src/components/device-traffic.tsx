// The traffic of a device in the last 30 days, a bar a day, and the rest of its data budget.
// The table has the same numbers for those who cannot see the bars.
import type { Device, DeviceTraffic } from '@hawser/contract/devices'
import { api } from '../api.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { Panel } from './page.tsx'
import { QueryContent } from './query-content.tsx'
import { Pill, type Tone } from './status.tsx'
import { bytesText, calendarDay } from '../language/format.ts'
import { msg, t } from '../language/language.ts'

type Day = DeviceTraffic['days'][number]
type Flow = Day['idle']

const days = 30
const day_ms = 86_400_000

const sumOf = ({ received, sent }: Flow): number => received + sent
const total = (of: readonly number[]): number => of.reduce((sum, one) => sum + one, 0)

export function DeviceTrafficPanel({ device }: { device: Device }) {
  const traffic = useNamespaceQuery(
    ['traffic', device.uid],
    async () => (await api.devices.traffic({ params: { uid: device.uid }, query: { days } })).body.days,
  )
  return (
    <Panel title={t('Data')}>
      {device.data_budget && <Budget {...device.data_budget} />}
      <QueryContent query={traffic}>
        {(found) =>
          found.length === 0 ? (
            <p className="soft">{t('It used no data in the last {days} days.', { days })}</p>
          ) : (
            <Days found={found} />
          )
        }
      </QueryContent>
    </Panel>
  )
}

const states: Readonly<Record<NonNullable<Device['data_budget']>['state'], readonly [string, Tone]>> = {
  under: [msg('within its budget'), 'good'],
  warned: [msg('80% used'), 'wait'],
  over: [msg('used up'), 'bad'],
}

function Budget({ used, bytes, state, tag }: NonNullable<Device['data_budget']>) {
  const [words, tone] = states[state]
  return (
    <p>
      {t('{used} of {bytes} this month', { used: bytesText(used), bytes: bytesText(bytes) })}
      {tag === undefined ? '' : `, ${t('together with all devices that have the tag {tag}', { tag })}`}{' '}
      <Pill tone={tone}>{t(words)}</Pill>
    </p>
  )
}

function Days({ found }: { found: readonly Day[] }) {
  const idle = total(found.map((one) => sumOf(one.idle)))
  const sessions = total(found.map((one) => sumOf(one.sessions)))
  return (
    <>
      <p className="soft">
        {t('In the last {days} days {all}: {sessions} in sessions, {idle} idle.', {
          days,
          all: bytesText(idle + sessions),
          sessions: bytesText(sessions),
          idle: bytesText(idle),
        })}
      </p>
      <Bars found={found} />
      <details>
        <summary>{t('Day by day')}</summary>
        <table className="traffic-table">
          <thead>
            <tr>
              <th scope="col">{t('Day (UTC)')}</th>
              <th scope="col">{t('Received')}</th>
              <th scope="col">{t('Sent')}</th>
              <th scope="col">{t('In sessions')}</th>
              <th scope="col">{t('Idle')}</th>
            </tr>
          </thead>
          <tbody>
            {found.toReversed().map((one) => (
              <tr key={one.day}>
                <th scope="row">{calendarDay(one.day)}</th>
                <td>{bytesText(one.idle.received + one.sessions.received)}</td>
                <td>{bytesText(one.idle.sent + one.sessions.sent)}</td>
                <td>{bytesText(sumOf(one.sessions))}</td>
                <td>{bytesText(sumOf(one.idle))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </>
  )
}

/** The width of a day, and the height of the busiest. */
const [width, height, gap] = [10, 60, 2] as const

function Bars({ found }: { found: readonly Day[] }) {
  const byDay = new Map(found.map((one) => [one.day, one]))
  const most = Math.max(1, ...found.map((one) => sumOf(one.idle) + sumOf(one.sessions)))
  const last = Date.parse(found.at(-1)?.day ?? '')
  const shown = Array.from({ length: days }, (_, index) =>
    byDay.get(new Date(last - (days - 1 - index) * day_ms).toISOString().slice(0, 10)),
  )
  const tall = (bytes: number): number => (bytes / most) * height
  return (
    <svg
      className="traffic"
      viewBox={`0 0 ${days * width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={t('Bytes per day; {most} on the busiest day.', { most: bytesText(most) })}
    >
      {shown.map((one, index) => {
        if (!one) return null
        const [below, above] = [tall(sumOf(one.idle)), tall(sumOf(one.sessions))]
        const place = { x: index * width, width: width - gap }
        return (
          <g key={one.day}>
            <rect className="idle" {...place} y={height - below} height={below} />
            <rect className="sessions" {...place} y={height - below - above} height={above} />
            <title>
              {t('{day}: {sessions} in sessions, {idle} idle', {
                day: calendarDay(one.day),
                sessions: bytesText(sumOf(one.sessions)),
                idle: bytesText(sumOf(one.idle)),
              })}
            </title>
          </g>
        )
      })}
    </svg>
  )
}

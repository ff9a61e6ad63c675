// Counts by day as bars. The picture has one sentence for those who cannot see it, and each bar says its day.
import { number, shortDay } from '../language/format.ts'
import { t } from '../language/language.ts'

const [width, height, gap] = [10, 60, 2] as const
const day_ms = 86_400_000

/** For each of the last days, in UTC, oldest first. */
export function countsByDay(moments: readonly string[], days: number): { day: string; count: number }[] {
  const today = Math.floor(Date.now() / day_ms)
  const counts = new Map<number, number>()
  for (const moment of moments) {
    const day = Math.floor(Date.parse(moment) / day_ms)
    counts.set(day, (counts.get(day) ?? 0) + 1)
  }
  return Array.from({ length: days }, (_, index) => {
    const day = today - days + 1 + index
    return { day: shortDay(day * day_ms), count: counts.get(day) ?? 0 }
  })
}

interface BarChartProps {
  data: readonly { day: string; count: number }[]
  what: string
  tone?: 'bad'
  written?: (count: number) => string
  /** Whether counts of several days can be added: a device that is connected every day is one device. */
  sums?: boolean
}

export function BarChart({ data, what, tone, written = number, sums = true }: BarChartProps) {
  const most = Math.max(1, ...data.map(({ count }) => count))
  const total = data.reduce((sum, { count }) => sum + count, 0)
  const highest = total === 0 ? 0 : most
  return (
    <>
      <svg
        className="bars-chart"
        viewBox={`0 0 ${data.length * width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={
          sums
            ? t('{total} {what} in {days} days; {most} on the busiest day.', {
                total: written(total),
                what,
                days: data.length,
                most: written(highest),
              })
            : t('{what} in {days} days; {most} on the busiest day.', {
                what,
                days: data.length,
                most: written(highest),
              })
        }
      >
        {data.map(({ day, count }, index) => {
          const tall = Math.max(count > 0 ? 2 : 0.75, (count / most) * height)
          return (
            <rect
              key={day}
              className={count === 0 ? 'low' : tone}
              x={index * width + gap / 2}
              width={width - gap}
              y={height - tall}
              height={tall}
            >
              <title>{`${day}: ${written(count)} ${what}`}</title>
            </rect>
          )
        })}
      </svg>
      <p className="chart-days" aria-hidden="true">
        <span>{data[0]?.day}</span>
        <span>
          {sums
            ? t('{total} in total, at most {most} per day', { total: written(total), most: written(highest) })
            : t('at most {most} per day', { most: written(highest) })}
        </span>
        <span>{data.at(-1)?.day}</span>
      </p>
    </>
  )
}

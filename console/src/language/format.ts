// Dates, times, durations and quantities as the language and the region of the person write them. A moment is
// shown in the time zone of the browser, whose name stands next to it.
import { language, locale, msg, t } from './language.ts'

const formats = new Map<string, Intl.DateTimeFormat>()

function dateFormat(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = JSON.stringify([locale(), options])
  const format = formats.get(key) ?? new Intl.DateTimeFormat(locale(), options)
  formats.set(key, format)
  return format
}

/** German writes 17.11.2026; English names the month, which reads the same on both sides of the ocean. */
const dayParts = (): Intl.DateTimeFormatOptions =>
  language() === 'de'
    ? { day: '2-digit', month: '2-digit', year: 'numeric' }
    : { day: 'numeric', month: 'short', year: 'numeric' }

type Moment = string | number | Date

/** A day, a time and its zone. */
export const inFull = (moment: Moment): string =>
  dateFormat({ ...dayParts(), hour: '2-digit', minute: '2-digit', timeZoneName: 'short' }).format(
    new Date(moment),
  )

/** For events, of which two may be in one minute. */
export const toTheSecond = (moment: Moment): string =>
  dateFormat({
    ...dayParts(),
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'short',
  }).format(new Date(moment))

export const day = (moment: Moment): string => dateFormat(dayParts()).format(new Date(moment))

/** A day in words: Tuesday, November 17, 2026. */
export const longDay = (moment: Moment): string => dateFormat({ dateStyle: 'full' }).format(new Date(moment))

export const clockTime = (moment: Moment): string =>
  dateFormat({ timeStyle: 'short' }).format(new Date(moment))

/** In UTC, as the server counts days. */
export const calendarDay = (moment: Moment): string =>
  dateFormat({ ...dayParts(), timeZone: 'UTC' }).format(new Date(moment))

/** In short: 17 Nov. */
export const shortDay = (moment: Moment): string =>
  dateFormat({ day: 'numeric', month: 'short', timeZone: 'UTC' }).format(new Date(moment))

const spans: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
]

/** 3 hours ago, yesterday, in 2 days. */
export function ago(moment: string): string {
  const seconds = (Date.now() - Date.parse(moment)) / 1000
  const unit = spans.find(([, size]) => Math.abs(seconds) >= size)
  if (!unit) return t('a moment ago')
  const relative = new Intl.RelativeTimeFormat(locale(), { numeric: 'auto' })
  return relative.format(-Math.trunc(seconds / unit[1]), unit[0])
}

const shorts: Partial<Record<Intl.RelativeTimeFormatUnit, string>> = {
  year: msg('{count} y'),
  month: msg('{count} mo'),
  day: msg('{count} d'),
  hour: msg('{count} h'),
  minute: msg('{count} min'),
}

/** For tables: 3 d, 20 min. */
export function shortAgo(moment: string): string {
  const seconds = (Date.now() - Date.parse(moment)) / 1000
  const unit = spans.find(([, size]) => seconds >= size)
  return unit ? t(shorts[unit[0]] ?? '', { count: Math.trunc(seconds / unit[1]) }) : t('just now')
}

/** How long something took: 50 s, 2 h 5 min, 3 days. */
export function duration(seconds: number): string {
  if (seconds < 120) return t('{count} s', { count: seconds })
  const minutes = Math.floor(seconds / 60)
  if (minutes < 120) return t('{count} min', { count: minutes })
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return t('{hours} h {minutes} min', { hours, minutes: minutes % 60 })
  return t('{count} days', { count: Math.floor(hours / 24) })
}

export const number = (value: number, options?: Intl.NumberFormatOptions): string =>
  new Intl.NumberFormat(locale(), options).format(value)

const units = ['', 'kB', 'MB', 'GB', 'TB', 'PB'] as const
const oneDigit = { minimumFractionDigits: 1, maximumFractionDigits: 1 }

/** As 1.5 GB, in powers of a thousand, like disks and providers of mobile data. */
export function bytesText(bytes: number): string {
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  return power === 0
    ? t('{count} bytes', { count: bytes })
    : `${number(bytes / 1000 ** power, oneDigit)} ${units[power]}`
}

export const megabytes = (bytes: number): string => `${number(bytes / 1_000_000, oneDigit)} ${units[2]}`

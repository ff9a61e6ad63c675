// The search parameters of the pages of sessions; invalid ones are dropped.
import { defined } from '@hawser/contract/defined'
import { sessionMethods, type SessionMethod } from '@hawser/contract/sessions'
import { readTimeSpan, textOf, type TimeSpan } from './search-params.ts'

export interface SessionsSearch extends TimeSpan {
  /** Live sessions, past ones, or refused logins; none of these: all sessions. */
  live?: true
  past?: true
  refused?: true
  person?: string
  device?: string
  method?: SessionMethod
  recorded?: boolean
  reason?: string
}

export function readSessionsSearch(given: Record<string, unknown>): SessionsSearch {
  const [person, device, reason] = [textOf(given['person']), textOf(given['device']), textOf(given['reason'])]
  const method = sessionMethods.find((one) => one === given['method'])
  const recorded = given['recorded']
  const tab = (['past', 'live', 'refused'] as const).find((one) => given[one] === true)
  return {
    ...(tab ? { [tab]: true } : {}),
    ...defined({
      person: person || undefined,
      device: /^[0-9a-f]{64}$/.test(device) ? device : undefined,
      method,
      recorded: typeof recorded === 'boolean' ? recorded : undefined,
      reason: /^[a-z-]{1,40}$/.test(reason) ? reason : undefined,
    }),
    ...readTimeSpan(given),
  }
}

/** The terminal and the moment of the player, in seconds (`t`) or in milliseconds. */
export interface SessionSearch {
  t?: number
  at?: number
  channel?: number
}

export function readSessionSearch(given: Record<string, unknown>): SessionSearch {
  const number = (name: 'at' | 'channel'): SessionSearch => {
    const value = given[name]
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? { [name]: value } : {}
  }
  return { ...moment(given['t']), ...number('at'), ...number('channel') }
}

/** The player takes a later moment as the end of the recording. */
const latest_s = 1e9

const moment = (given: unknown): SessionSearch =>
  typeof given === 'number' && !Number.isNaN(given) ? { t: Math.max(0, Math.min(latest_s, given)) } : {}

export const momentOf_ms = ({ t, at = 0 }: SessionSearch): number =>
  t === undefined ? at : Math.round(t * 1000)

/** In tenths of a second; rounded up, so that the output of this moment is shown. */
export const secondsOf = (time_ms: number): number => Math.ceil(time_ms / 100) / 10

export function momentAddress(uid: string, channel: number, time_ms: number): string {
  const terminal = channel === 0 ? '' : `&channel=${channel}`
  return `/sessions/${uid}?t=${secondsOf(time_ms)}${terminal}`
}

export interface RecordingSearch {
  text?: string
}

export function readRecordingSearch(given: Record<string, unknown>): RecordingSearch {
  const text = textOf(given['text']).trim().slice(0, 300)
  return text ? { text } : {}
}

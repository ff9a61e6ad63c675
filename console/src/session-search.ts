// What the addresses of the pages of sessions say; invalid parameters are dropped.
import { sessionMethods, type SessionMethod } from '@hawser/contract/sessions'
import { readTimeSpan, textOf, type TimeSpan } from './search-params.ts'

export interface SessionsSearch extends TimeSpan {
  /** Only those that are live, only those that are over, or logins that were refused; none of these: all sessions. */
  live?: true
  past?: true
  refused?: true
  /** Only the sessions of this person, by id. */
  person?: string
  /** Only sessions on this device, by uid. */
  device?: string
  method?: SessionMethod
  recorded?: boolean
  /** Why a login was refused. */
  reason?: string
}

export function readSessionsSearch(given: Record<string, unknown>): SessionsSearch {
  const [person, device, reason] = [textOf(given['person']), textOf(given['device']), textOf(given['reason'])]
  const method = sessionMethods.find((one) => one === given['method'])
  const recorded = given['recorded']
  const tab = (['past', 'live', 'refused'] as const).find((one) => given[one] === true)
  return {
    ...(tab ? { [tab]: true } : {}),
    ...(person ? { person } : {}),
    ...(/^[0-9a-f]{64}$/.test(device) ? { device } : {}),
    ...(method ? { method } : {}),
    ...(typeof recorded === 'boolean' ? { recorded } : {}),
    ...(/^[a-z-]{1,40}$/.test(reason) ? { reason } : {}),
    ...readTimeSpan(given),
  }
}

/** The moment that the player begins at, in seconds (`t`) or in milliseconds, and of which terminal. */
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

/** The player takes a moment behind the end of the recording as its end. */
const latest_s = 1e9

const moment = (given: unknown): SessionSearch =>
  typeof given === 'number' && !Number.isNaN(given) ? { t: Math.max(0, Math.min(latest_s, given)) } : {}

/** The moment as a number of milliseconds. */
export const momentOf_ms = ({ t, at = 0 }: SessionSearch): number =>
  t === undefined ? at : Math.round(t * 1000)

/** In tenths of a second; rounded up, so that what is shown at this moment is there. */
export const secondsOf = (time_ms: number): number => Math.ceil(time_ms / 100) / 10

/** The address of a moment of a recording. */
export function momentAddress(uid: string, channel: number, time_ms: number): string {
  const terminal = channel === 0 ? '' : `&channel=${channel}`
  return `/sessions/${uid}?t=${secondsOf(time_ms)}${terminal}`
}

/** What is looked for in all recordings. */
export interface RecordingSearch {
  text?: string
}

export function readRecordingSearch(given: Record<string, unknown>): RecordingSearch {
  const text = textOf(given['text']).trim().slice(0, 300)
  return text ? { text } : {}
}

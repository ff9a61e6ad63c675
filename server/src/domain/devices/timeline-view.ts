// The timeline of a device in words. Pure. Comparing each connection with the one before reveals changes of
// address, version and boot.
import { defined } from '@hawser/contract/defined'
import type { LeavingReason } from '@hawser/contract/reports'
import { part, say, type Sentence, type SentencePart } from '@hawser/contract/sentences'
import type { TimelineEvent } from '@hawser/contract/timeline'
import { iso, second_ms } from '../../kit/clock.ts'
import { safeText } from '../../kit/log.ts'

export type DeviceHappening =
  | {
      readonly kind: 'up'
      readonly source?: string | undefined
      readonly version?: string | undefined
    }
  | {
      readonly kind: 'down'
      /** One of `tunnelEndings`. */
      readonly reason: string
      readonly detail?: string | undefined
      readonly lasted_s: number
      /** For a tunnel that was lost in silence. */
      readonly heard_at?: string | undefined
    }
  /** A tunnel that could not prove itself. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'round-trip'; readonly ms: number }
  /** The agent's report on connecting. */
  | {
      readonly kind: 'said'
      readonly boot_id?: string | undefined
      readonly started_at?: string | undefined
      /** How far its clock is ahead of the server's. */
      readonly ahead_s?: number | undefined
      readonly lost?: { readonly why: string; readonly at: string } | undefined
    }
  | { readonly kind: 'leaving'; readonly why: LeavingReason }
  | { readonly kind: 'conflict'; readonly addresses: readonly string[] }
  | { readonly kind: 'flapping'; readonly times: number }
  | { readonly kind: 'status'; readonly status: string }
  | { readonly kind: 'renamed'; readonly before: string; readonly after: string }
  /** By its engine or agent, as often as that likes. */
  | { readonly kind: 'followed-status'; readonly status: string }
  | { readonly kind: 'followed-name'; readonly before: string; readonly after: string }

export type PastHappening = DeviceHappening & { readonly at: string }

/** Messages take time, so a smaller difference is none. */
const leastSkew_s = 5

/** The last known facts of a device while its timeline is read, oldest first. */
interface Before {
  source?: string | undefined
  version?: string | undefined
  boot_id?: string | undefined
  ahead_s?: number | undefined
}

export function present(happenings: readonly PastHappening[]): TimelineEvent[] {
  const before: Before = {}
  return happenings
    .toReversed()
    .flatMap((happening) => inWords(happening, before))
    .toReversed()
}

type Fields = Omit<TimelineEvent, 'at' | 'kind' | 'sentence' | 'parts'>

const event = (
  at: string,
  kind: TimelineEvent['kind'],
  parts: readonly SentencePart[],
  fields: Fields = {},
): TimelineEvent => ({ at, kind, ...say(...parts), ...fields })

function inWords(happening: PastHappening, before: Before): TimelineEvent[] {
  const { at } = happening
  switch (happening.kind) {
    case 'up':
      return connected(happening, before)
    case 'down': {
      const { reason, detail, lasted_s } = happening
      return [
        event(at, 'disconnected', [ending(happening), part('had-lasted', { lasted_s })], {
          reason,
          ...defined({ detail }),
          seconds: lasted_s,
        }),
      ]
    }
    case 'refused':
      return [event(at, 'refused', [part('key-missing')])]
    case 'round-trip': {
      const milliseconds = happening.ms
      return [event(at, 'round-trip', [part('round-trip', { milliseconds })], { milliseconds })]
    }
    case 'said':
      return said(happening, before)
    case 'leaving':
      return [event(at, 'leaving', [part(`left-${happening.why}`)], { reason: happening.why })]
    case 'conflict': {
      const [place = '', address = ''] = happening.addresses
      return [event(at, 'conflict', [part('two-machines', { place, address })])]
    }
    case 'flapping': {
      const { times } = happening
      return [event(at, 'flapping', [part('flapping', { times })], { times })]
    }
    case 'status':
    case 'followed-status': {
      const { status } = happening
      return [event(at, 'status', [part('status-changed', { status })], { after: status })]
    }
    case 'renamed':
    case 'followed-name': {
      const change = { before: happening.before, after: happening.after }
      return [event(at, 'renamed', [part('renamed', change)], change)]
    }
    default:
      return []
  }
}

function connected({ at, source, version }: PastHappening & { kind: 'up' }, before: Before): TimelineEvent[] {
  const events = [
    event(at, 'connected', [source ? part('connected-from', { address: source }) : part('connected')]),
  ]
  const { source: address, version: former } = before
  if (source && address !== undefined && address !== source) {
    const change = { before: address, after: source }
    events.push(event(at, 'address', [part('address-changed', change)], change))
  }
  if (version && former !== undefined && former !== version) {
    // A device may report any version.
    const change = { before: safeText(former), after: safeText(version) }
    events.push(event(at, 'version', [part('agent-changed', change)], change))
  }
  before.source = source || address
  before.version = version || former
  return events
}

function said(
  { at, boot_id, started_at, ahead_s, lost }: PastHappening & { kind: 'said' },
  before: Before,
): TimelineEvent[] {
  const events: TimelineEvent[] = []
  if (lost) {
    const { at: lost_at, why } = lost
    events.push(event(at, 'loss', [part('loss-seen', { lost_at, why })], { detail: why }))
  }
  if (boot_id !== undefined && before.boot_id !== undefined && boot_id !== before.boot_id)
    events.push(event(at, 'reboot', [started_at ? part('rebooted-at', { started_at }) : part('rebooted')]))
  const seconds = ahead_s ?? 0
  if (Math.abs(seconds - (before.ahead_s ?? 0)) >= leastSkew_s)
    events.push(event(at, 'clock', [aboutClock(seconds)], { seconds }))
  before.boot_id = boot_id ?? before.boot_id
  before.ahead_s = seconds
  return events
}

function aboutClock(ahead_s: number): SentencePart {
  const skew_s = Math.abs(ahead_s)
  if (skew_s < leastSkew_s) return part('clock-right')
  return ahead_s > 0 ? part('clock-ahead', { skew_s }) : part('clock-behind', { skew_s })
}

type Down = PastHappening & { kind: 'down' }

/** How long the device had been silent when the server noticed the loss. */
const silence_s = ({ at, heard_at }: Down): number =>
  heard_at === undefined ? 0 : Math.max(0, Math.round((Date.parse(at) - Date.parse(heard_at)) / second_ms))

function ending(down: Down): SentencePart {
  const { reason, detail } = down
  switch (reason) {
    case 'lost':
      return down.heard_at === undefined
        ? part('ended-lost')
        : part('ended-silent', { silent_s: silence_s(down) })
    case 'broken':
      return detail ? part('ended-broken-by', { detail }) : part('ended-broken')
    case 'closed':
    case 'replaced':
    case 'moved':
    case 'revoked':
    case 'unproved':
    case 'stopping':
      return part(`ended-${reason}`)
    default:
      return part('ended')
  }
}

const goesOn = new Set(['replaced', 'moved'])

export function whyOffline(happenings: readonly PastHappening[]): Sentence | undefined {
  const last = happenings.find((one) => one.kind === 'up' || (one.kind === 'down' && !goesOn.has(one.reason)))
  if (last?.kind === 'up') return say(part('offline-server-lost', { up_at: last.at }))
  if (last?.kind !== 'down') return undefined
  const since = happenings.findIndex((one) => one.kind === 'up')
  const leaving = happenings.slice(0, since === -1 ? undefined : since).find((one) => one.kind === 'leaving')
  return say(
    leaving?.kind === 'leaving' ? part(`offline-${leaving.why}`, { left_at: leaving.at }) : offline(last),
  )
}

function offline(down: Down): SentencePart {
  const { at: ended_at, reason, detail, heard_at } = down
  switch (reason) {
    case 'lost': {
      if (heard_at === undefined) return part('offline-lost', { ended_at })
      const silent_s = silence_s(down)
      const gone_at = iso(Date.parse(ended_at) - silent_s * second_ms)
      return part('offline-silent', { gone_at, silent_s })
    }
    case 'broken':
      return detail ? part('offline-broken-by', { ended_at, detail }) : part('offline-broken', { ended_at })
    case 'closed':
    case 'revoked':
    case 'unproved':
    case 'stopping':
      return part(`offline-${reason}`, { ended_at })
    default:
      return part('offline-ended', { ended_at })
  }
}

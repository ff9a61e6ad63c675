// Small indicators: online or offline, status, tags, and relative times.
import type { ReactNode } from 'react'
import type { Device } from '@hawser/contract/devices'
import { ago, inFull, shortAgo } from '../language/format.ts'
import { isolated, msg, rich, t } from '../language/language.ts'
import { QuickLink } from './quick-link.tsx'

export { inFull } from '../language/format.ts'

/**
 * Disc: online, ring: offline, diamond: waiting, square: rejected. A word always stands next to the shape.
 */
export function Lamp({ on, state }: { on: boolean; state?: string | undefined }) {
  return <span className="lamp" data-on={on} data-state={state} aria-hidden="true" />
}

export function DeviceState({ device: { status, online, last_seen } }: { device: Device }) {
  const accepted = status === 'accepted'
  return (
    <span className="state">
      <Lamp on={accepted && online} state={accepted ? undefined : status} />
      {accepted ? (
        online ? (
          t('Online')
        ) : (
          <span>
            {rich('Offline {time}', {
              time: (
                <time className="soft" dateTime={last_seen} title={inFull(last_seen)}>
                  {shortAgo(last_seen)}
                </time>
              ),
            })}
          </span>
        )
      ) : (
        t(stateWords[status])
      )}
    </span>
  )
}

const stateWords: Readonly<Record<Device['status'], string>> = {
  accepted: msg('Accepted'),
  pending: msg('Waiting'),
  rejected: msg('Rejected'),
  removed: msg('Removed'),
  unused: msg('Unused'),
}

export type Tone = 'plain' | 'good' | 'bad' | 'wait'

export function Pill({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span className="pill" data-tone={tone}>
      {children}
    </span>
  )
}

/** The tooltip has the full date. */
export function When({ at }: { at: string }) {
  return (
    <time dateTime={at} title={inFull(at)}>
      {ago(at)}
    </time>
  )
}

/** Short but clear: tables have little room. */
export const systemName = ({ pretty_name, id }: Device['info']): string =>
  isolated((pretty_name || id).replace(' GNU/Linux ', ' '))

export function TagList({ tags }: { tags: readonly string[] }) {
  return tags.map((tag) => (
    <QuickLink
      key={tag}
      className="tag"
      destination={{ to: '/devices', search: { tag } }}
      aria-label={t('Devices with the tag {tag}', { tag })}
    >
      {isolated(tag)}
    </QuickLink>
  ))
}

// Things that need attention: devices that wait or have been away for long, refused logins, old agents, sessions that
// could not be recorded. Each is a sentence with the way there; nothing is shown when nothing is wrong.
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { encodeFilter } from '@hawser/contract/filters'
import { api, useMay } from '../api.ts'
import { oldAgent } from '../device-list.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { Panel } from './page.tsx'
import { Lamp } from './status.tsx'
import { t, tn } from '../language/language.ts'

const day_ms = 86_400_000
/** A device unseen for this long is likely to be forgotten or broken. */
const long_days = 7

function useAwayForLong(): number {
  return (
    useNamespaceQuery(['devices', 'away'], async () => {
      const before = new Date(Date.now() - long_days * day_ms).toISOString()
      const filter = encodeFilter([
        { type: 'property', params: { name: 'online', operator: 'eq', value: false } },
        { type: 'property', params: { name: 'last_seen', operator: 'lt', value: before } },
        { type: 'operator', params: { name: 'and' } },
      ])
      return (await api.devices.list({ query: { status: 'accepted', per_page: 1, filter } })).total
    }).data ?? 0
  )
}

function useOldAgents(): { behind: number; failed: number } {
  const agents = useNamespaceQuery(['agents'], async () => (await api.agents.get()).body.devices, false).data
  return { behind: agents?.behind ?? 0, failed: agents?.failed ?? 0 }
}

export function Attention({ unrecorded, refused }: { unrecorded: number; refused: number }) {
  const may = useMay('operator')
  const away = useAwayForLong()
  const { behind, failed } = useOldAgents()
  const found: readonly (readonly [state: string, text: ReactNode])[] = [
    ...(refused > 0
      ? [
          [
            'rejected',
            <Link key="refused" to="/sessions" search={{ refused: true, since: '24h' }}>
              {tn(
                refused,
                '{count} login was refused in the last 24 hours',
                '{count} logins were refused in the last 24 hours',
              )}
            </Link>,
          ] as const,
        ]
      : []),
    ...(unrecorded > 0
      ? [
          [
            'rejected',
            <Link key="unrecorded" to="/sessions" search={{ past: true, since: '7d' }}>
              {tn(
                unrecorded,
                '{count} session of the last 7 days could not be recorded',
                '{count} sessions of the last 7 days could not be recorded',
              )}
            </Link>,
          ] as const,
        ]
      : []),
    ...(away > 0
      ? [
          [
            'offline',
            <Link key="away" to="/devices" search={{ sort: 'seen', online: false, unseen: `${long_days}d` }}>
              {tn(
                away,
                '{count} device has not been seen for {days} days',
                '{count} devices have not been seen for {days} days',
                { days: long_days },
              )}
            </Link>,
          ] as const,
        ]
      : []),
    ...(failed > 0
      ? [
          [
            'rejected',
            <Link key="failed" to="/devices" search={{ sort: 'agent', agent: oldAgent }}>
              {tn(failed, '{count} agent could not be updated', '{count} agents could not be updated')}
            </Link>,
          ] as const,
        ]
      : []),
    ...(behind > 0
      ? [
          [
            'pending',
            <Link key="behind" to="/devices" search={{ sort: 'agent', agent: oldAgent }}>
              {tn(behind, '{count} device has an old agent', '{count} devices have an old agent')}
            </Link>,
          ] as const,
        ]
      : []),
  ]
  if (!may || found.length === 0) return null
  return (
    <Panel title={t('Needs attention')}>
      <ul className="attention">
        {found.map(([state, text], index) => (
          // The list is made anew each time.
          <li key={index} className="state">
            <Lamp on={false} state={state} /> {text}
          </li>
        ))}
      </ul>
    </Panel>
  )
}

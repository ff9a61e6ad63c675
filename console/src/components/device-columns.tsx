// The columns of the table of devices: their names, their order by, and what stands in them. What a device reports
// is rendered as text only.
import type { ReactNode } from 'react'
import type { Device } from '@hawser/contract/devices'
import { agentlessPlatform } from '@hawser/contract/tunnel'
import type { ColumnId, Sort } from '../device-list.ts'
import { AgentPill } from './agent-state.tsx'
import { DeviceState, inFull, systemName, TagList, When } from './status.tsx'
import { isolated, msg, t } from '../language/language.ts'

interface Column {
  readonly text: string
  readonly sort?: Sort
  readonly cell: (device: Device) => ReactNode
  /** For a file with comma-separated values. */
  readonly plain: (device: Device) => string
}

const agentOf = ({ info }: Device): string =>
  info.platform === agentlessPlatform
    ? t('none ({version})', { version: info.version })
    : isolated(info.version)

export const columns: Readonly<Record<ColumnId, Column>> = {
  state: {
    text: msg('State'),
    sort: 'state',
    cell: (device) => <DeviceState device={device} />,
    plain: ({ status, online }) => (status === 'accepted' ? (online ? 'online' : 'offline') : status),
  },
  tags: {
    text: msg('Tags'),
    cell: ({ tags }) => (
      <span className="tags">
        <TagList tags={tags} />
      </span>
    ),
    plain: ({ tags }) => tags.join(' '),
  },
  system: {
    text: msg('System'),
    sort: 'system',
    cell: ({ info }) => systemName(info),
    plain: ({ info }) => info.pretty_name || info.id,
  },
  arch: {
    text: msg('Processor'),
    sort: 'arch',
    cell: ({ info }) => isolated(info.arch),
    plain: ({ info }) => info.arch,
  },
  agent: {
    text: msg('Agent'),
    sort: 'agent',
    cell: (device) => (
      <span className="agent">
        <span title={agentOf(device)}>{agentOf(device)}</span>
        {device.status === 'accepted' && <AgentPill device={device} />}
      </span>
    ),
    plain: agentOf,
  },
  address: {
    text: msg('Address'),
    sort: 'address',
    cell: ({ remote_addr }) => remote_addr,
    plain: ({ remote_addr }) => remote_addr,
  },
  mac: {
    text: msg('MAC address'),
    sort: 'mac',
    cell: ({ identity }) => <code>{isolated(identity.mac)}</code>,
    plain: ({ identity }) => identity.mac,
  },
  seen: {
    text: msg('Last seen'),
    sort: 'seen',
    cell: ({ last_seen }) => <When at={last_seen} />,
    plain: ({ last_seen }) => last_seen,
  },
  created: {
    text: msg('Added'),
    sort: 'created',
    cell: ({ created_at }) => inFull(created_at),
    plain: ({ created_at }) => created_at,
  },
}

/** Programs for tables run a cell with this beginning as a formula. */
const risky = /^[=+\-@\t\r]/

const quoted = (text: string): string => {
  const safe = risky.test(text) ? `'${text}` : text
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

export function csvOf(devices: readonly Device[]): string {
  const all = Object.values(columns)
  const lines = [
    [t('Name'), t('Uid'), ...all.map(({ text }) => t(text))],
    ...devices.map((device) => [device.name, device.uid, ...all.map(({ plain }) => plain(device))]),
  ]
  return lines.map((cells) => cells.map(quoted).join(',')).join('\r\n')
}

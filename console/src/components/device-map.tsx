// The fleet at a glance: a small cell for each device, coloured by its state and grouped by its first tag. The cells
// are a picture; the words next to each group say the same, and lead to the table.
import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState, type MouseEvent } from 'react'
import type { Device } from '@hawser/contract/devices'
import { everyDevice, readDevicesSearch, tagsOf, type DevicesSearch } from '../device-list.ts'
import { useNamespaceQuery } from '../namespace-query.ts'
import { QueryContent } from './query-content.tsx'
import { Lamp } from './status.tsx'
import { t } from '../language/language.ts'

const mostCells = 10_000
/** The side of a cell, and of a cell where there are many. */
const [cell, smallCell] = [14, 8] as const
const many = 1500

type State = 'online' | 'offline' | 'pending' | 'rejected' | 'unused' | 'removed'
const stateOf = ({ status, online }: Device): State =>
  status === 'accepted' ? (online ? 'online' : 'offline') : status
const words: Readonly<Record<State, string>> = {
  online: 'online',
  offline: 'offline',
  pending: 'waiting',
  rejected: 'rejected',
  unused: 'unused',
  removed: 'removed',
}

export function DeviceMap({ search }: { search: DevicesSearch }) {
  const [count, setCount] = useState(0)
  const devices = useNamespaceQuery(
    ['devices', 'map', search],
    () => everyDevice({ ...search, sort: 'name' }, mostCells, setCount),
    false,
  )
  return (
    <div className="fleet wide" data-many={(devices.data?.length ?? 0) > many}>
      {devices.isFetching && !devices.data && (
        <p className="soft">{t('{count} devices so far …', { count })}</p>
      )}
      <QueryContent query={devices}>{(found) => <Groups devices={found} search={search} />}</QueryContent>
    </div>
  )
}

function Groups({ devices, search }: { devices: readonly Device[]; search: DevicesSearch }) {
  const groups = Map.groupBy(devices, ({ tags }) => tags[0] ?? '')
  const side = devices.length > many ? smallCell : cell
  return (
    <>
      <p className="legend">
        <span className="state">
          <Lamp on /> {t('online')}
        </span>
        <span className="state">
          <Lamp on={false} /> {t('offline')}
        </span>
        {devices.length === mostCells && (
          <span className="soft">{t('the first {count}', { count: mostCells })}</span>
        )}
      </p>
      {[...groups]
        .toSorted(([a], [b]) =>
          a === '' ? 1 : b === '' ? -1 : a.localeCompare(b, undefined, { numeric: true }),
        )
        .map(([tag, members]) => (
          <Group key={tag} tag={tag} members={members} side={side} search={search} />
        ))}
    </>
  )
}

interface GroupProps {
  tag: string
  members: readonly Device[]
  side: number
  search: DevicesSearch
}

function Group({ tag, members, side, search }: GroupProps) {
  const counts = Map.groupBy(members, stateOf)
  const summary = [...counts].map(([state, some]) => `${some.length} ${words[state]}`).join(', ')
  const { map: _, ...table } = search
  return (
    <section className="fleet-group" aria-label={tag || t('Without a tag')}>
      <h2>
        {tag ? (
          <Link to="/devices" search={readDevicesSearch({ ...table, tag: [...tagsOf(search), tag] })}>
            {tag}
          </Link>
        ) : (
          t('Without a tag')
        )}{' '}
        <span className="soft">{summary}</span>
      </h2>
      {side === smallCell ? <Picture members={members} /> : <Cells members={members} side={side} />}
    </section>
  )
}

const titleOf = (device: Device): string => `${device.name}, ${words[stateOf(device)]}`

function Cells({ members, side }: { members: readonly Device[]; side: number }) {
  const navigate = useNavigate()
  return (
    <div
      className="cells"
      data-side={side}
      aria-hidden="true"
      onClick={({ target }) => {
        const uid = (target as HTMLElement).dataset['uid']
        if (uid) void navigate({ to: '/devices/$uid', params: { uid } })
      }}
    >
      {members.map((device) => (
        <i
          key={device.uid}
          className="cell"
          data-uid={device.uid}
          data-state={stateOf(device)}
          title={titleOf(device)}
        />
      ))}
    </div>
  )
}

/** Between small cells. */
const pitch = smallCell + 2

/** A path for each state: thousands of elements would take a second to make. */
function Picture({ members }: { members: readonly Device[] }) {
  const navigate = useNavigate()
  const [columns, setColumns] = useState(0)
  const frame = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const { current } = frame
    if (!current) return undefined
    const watch = new ResizeObserver(() =>
      setColumns(Math.max(1, Math.floor((current.clientWidth + 2) / pitch))),
    )
    watch.observe(current)
    return () => watch.disconnect()
  }, [])
  const at = ({ nativeEvent: { offsetX, offsetY } }: MouseEvent): Device | undefined => {
    const column = Math.floor(offsetX / pitch)
    return column < columns ? members[Math.floor(offsetY / pitch) * columns + column] : undefined
  }
  const places = new Map<State, string>()
  if (columns > 0)
    for (const [index, device] of members.entries()) {
      const [x, y] = [(index % columns) * pitch, Math.floor(index / columns) * pitch]
      const state = stateOf(device)
      const cell = `M${x + 0.5} ${y + 0.5}h${smallCell - 1}v${smallCell - 1}h-${smallCell - 1}z`
      places.set(state, `${places.get(state) ?? ''}${cell}`)
    }
  return (
    <div
      ref={frame}
      className="cells drawn"
      aria-hidden="true"
      onPointerMove={(event) => {
        const device = at(event)
        event.currentTarget.title = device ? titleOf(device) : ''
      }}
      onClick={(event) => {
        const device = at(event)
        if (device) void navigate({ to: '/devices/$uid', params: { uid: device.uid } })
      }}
    >
      {columns > 0 && (
        <svg width={columns * pitch} height={Math.ceil(members.length / columns) * pitch}>
          {[...places].map(([state, path]) => (
            <path key={state} className="cell-path" data-state={state} d={path} />
          ))}
        </svg>
      )}
    </div>
  )
}

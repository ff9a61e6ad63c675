// The devices as a table that stays quick with a hundred thousand of them: only the rows on the screen are
// there, and their pages are fetched as they come. j and k go up and down, x chooses, Enter opens.
import { memo, useCallback, useEffect, useRef, useState, type ReactNode } from 'react'
import type { Device } from '@hawser/contract/devices'
import { useMay } from '../api.ts'
import {
  columnsOf,
  page_size,
  useDeviceWindow,
  type ColumnId,
  type DeviceWindow,
  type DevicesSearch,
  type Sort,
} from '../device-list.ts'
import { useColumnWidths } from '../column-widths.ts'
import { ColumnBorder, type Resized } from './column-border.tsx'
import { columns } from './device-columns.tsx'
import { DeviceRowActions } from './device-row-actions.tsx'
import { Icon } from './icon.tsx'
import { ErrorNotice, Loading } from './query-content.tsx'
import { PublicMark, usePublicDevices } from './public-mark.tsx'
import { QuickLink } from './quick-link.tsx'
import { useScreen } from './screen.ts'
import { DeviceState, Pill, systemName } from './status.tsx'
import { useShownRows } from './virtual-rows.ts'
import { t } from '../language/language.ts'

/** As in table.css: on small screens a row has two lines. */
const [rowHeight, tallRowHeight] = [32, 56] as const
/** Columns that a tablet has no room for. */
const onlyOnLarge: readonly ColumnId[] = ['agent', 'address', 'mac', 'created']

export type Chosen = ReadonlyMap<string, Device>

interface DeviceTableProps {
  search: DevicesSearch
  sortBy: (sort: Sort) => void
  chosen: Chosen
  /** Undefined: the user may not change devices. */
  choose: ((chosen: Chosen) => void) | undefined
  chooseAll: () => void
  empty: ReactNode
}

export function DeviceTable({ search, sortBy, chosen, choose, chooseAll, empty }: DeviceTableProps) {
  const body = useRef<HTMLTableSectionElement>(null)
  const screen = useScreen()
  const may = useMay('operator')
  const mayConnect = useMay('observer')
  const height = screen === 'small' ? tallRowHeight : rowHeight
  const ids =
    screen === 'small'
      ? []
      : columnsOf(search).filter((id) => screen === 'large' || !onlyOnLarge.includes(id))
  const names = ['name', ...ids]
  const { widths, setWidths } = useColumnWidths(names)
  const [known, setKnown] = useState(0)
  const shown = useShownRows(body, height, known)
  const list = useDeviceWindow(search, shown.first, Math.max(shown.last, 0))
  const total = list.total ?? known
  if (list.total !== undefined && list.total !== known) setKnown(list.total)

  const publicDevices = usePublicDevices()
  const tick = useTick(chosen, choose)
  const active = useKeys({
    total,
    height,
    body,
    mark: (row) => {
      const device = list.at(row)
      if (device) tick?.(device, !chosen.has(device.uid))
    },
  })

  if (list.error !== undefined && list.error !== null)
    return <ErrorNotice error={list.error} again={list.again} />
  if (list.total === undefined && known === 0) return <Loading />
  if (total === 0) return empty
  const resized: Resized = { columns: names, widths, setWidths }
  const head = (id: string) => ({ search, sortBy, width: widths?.[id], resized })
  const span = ids.length + (choose ? 3 : 2)
  const rows = Array.from({ length: Math.max(0, shown.last - shown.first + 1) }, (_, n) => shown.first + n)
  const below = Math.max(0, total - 1 - shown.last)
  return (
    <table className="table wide" aria-label={t('Devices')} aria-rowcount={total + 1}>
      <thead>
        <tr aria-rowindex={1}>
          {choose && (
            <th scope="col" className="tick-cell">
              <input
                type="checkbox"
                aria-label={t('Select all')}
                checked={chosen.size > 0 && chosen.size >= total}
                ref={(box) => {
                  if (box) box.indeterminate = chosen.size > 0 && chosen.size < total
                }}
                onChange={() => {
                  const all = total <= page_size ? allRows(list, total) : undefined
                  if (chosen.size > 0) choose(new Map())
                  else if (all) choose(new Map(all.map((device) => [device.uid, device])))
                  else chooseAll()
                }}
              />
            </th>
          )}
          <SortHead text={t('Name')} sort="name" {...head('name')} />
          {ids.map((id) => (
            <SortHead key={id} id={id} {...columns[id]} text={t(columns[id].text)} {...head(id)} />
          ))}
          <th scope="col" className="acts-cell">
            <span className="unseen">{t('Actions')}</span>
          </th>
        </tr>
      </thead>
      <tbody ref={body}>
        <Room rows={shown.first} height={height} span={span} />
        {rows.map((row) => {
          const device = list.at(row)
          return device ? (
            <DeviceTableRow
              key={device.uid}
              device={device}
              row={row}
              active={row === active}
              ids={ids.join(',')}
              isPublic={device.status === 'accepted' && (device.public_url || publicDevices.has(device.uid))}
              ticked={chosen.has(device.uid)}
              tick={tick}
              may={may}
              mayConnect={mayConnect}
            />
          ) : (
            <tr key={row} aria-hidden="true" className="coming">
              <td colSpan={span}>
                <span className="bar" />
              </td>
            </tr>
          )
        })}
        <Room rows={below} height={height} span={span} />
      </tbody>
    </table>
  )
}

function allRows(list: DeviceWindow, total: number): Device[] | undefined {
  const all = Array.from({ length: total }, (_, row) => list.at(row)).filter((device) => device !== undefined)
  return all.length === total ? all : undefined
}

type Tick = (device: Device, on: boolean) => void

/** A stable function, so that choosing one row does not render the others. */
function useTick(chosen: Chosen, choose: ((chosen: Chosen) => void) | undefined): Tick | undefined {
  const newest = useRef(chosen)
  newest.current = chosen
  const tick = useCallback<Tick>(
    (device, on) => {
      const next = new Map(newest.current)
      if (on) next.set(device.uid, device)
      else next.delete(device.uid)
      choose?.(next)
    },
    [choose],
  )
  return choose && tick
}

/** The space of rows that are off the screen. */
function Room({ rows, height, span }: { rows: number; height: number; span: number }) {
  return rows === 0 ? null : (
    <tr aria-hidden="true" className="room">
      <td colSpan={span} style={{ height: rows * height }} />
    </tr>
  )
}

interface SortHeadProps {
  id?: ColumnId
  text: string
  sort?: Sort
  search: DevicesSearch
  sortBy: (sort: Sort) => void
  /** Per cent; undefined: from the style. */
  width: number | undefined
  resized: Resized
}

function SortHead({ id, text, sort, search, sortBy, width, resized }: SortHeadProps) {
  const { sort: by = 'name', desc = false } = search
  const sorted = sort !== undefined && by === sort
  return (
    <th
      scope="col"
      className={`${id ?? 'name'}-cell`}
      aria-label={text}
      data-column={id ?? 'name'}
      style={width === undefined ? undefined : { width: `${width}%` }}
      aria-sort={sorted ? (desc ? 'descending' : 'ascending') : undefined}
    >
      {sort === undefined ? (
        text
      ) : (
        <button type="button" className="sort" onClick={() => sortBy(sort)}>
          {text}
          {sorted && <Icon name={desc ? 'falling' : 'rising'} />}
        </button>
      )}
      <ColumnBorder id={id ?? 'name'} text={text} resized={resized} />
    </th>
  )
}

interface RowProps {
  device: Device
  row: number
  active: boolean
  /** A text, so that a row is rendered only when something of it has changed. */
  ids: string
  isPublic: boolean
  ticked: boolean
  tick: Tick | undefined
  /** Whether the person may change devices, and connect to them. */
  may: boolean
  mayConnect: boolean
}

const DeviceTableRow = memo(function DeviceTableRow(props: RowProps) {
  const { device, row, active, ids, isPublic, ticked, tick, may, mayConnect } = props
  const { name, uid, info, remote_addr } = device
  return (
    <tr aria-rowindex={row + 2} data-row={row} data-active={active} data-chosen={ticked}>
      {tick && (
        <td className="tick-cell">
          <input
            type="checkbox"
            aria-label={t('Select {name}', { name })}
            checked={ticked}
            onChange={(event) => tick(device, event.currentTarget.checked)}
          />
        </td>
      )}
      <td className="name-cell">
        <span className={isPublic ? 'named' : ''}>
          <QuickLink destination={{ to: '/devices/$uid', params: { uid } }}>
            <strong>{name}</strong>
          </QuickLink>
          {isPublic && <PublicMark />}
        </span>{' '}
        {device.conflict && <Pill tone="bad">{t('two machines use this identity')}</Pill>}
        {device.replaces && (
          <Pill tone="bad">{t('would replace {name}', { name: device.replaces.name })}</Pill>
        )}
        <span className="facts small-only">
          <DeviceState device={device} />
          {[systemName(info), remote_addr].filter(Boolean).map((fact) => ` · ${fact}`)}
        </span>
      </td>
      {(ids === '' ? [] : ids.split(',')).map((id) => (
        <td key={id} className={`${id}-cell`}>
          {columns[id as ColumnId].cell(device)}
        </td>
      ))}
      <td className="acts-cell">
        <DeviceRowActions device={device} may={may} mayConnect={mayConnect} />
      </td>
    </tr>
  )
})

interface Keys {
  total: number
  height: number
  body: React.RefObject<HTMLElement | null>
  mark: (row: number) => void
}

/** Below the sticky head, and above the selection bar. */
const [headRoom, footRoom] = [44, 64] as const

function useKeys({ total, height, body, mark }: Keys): number {
  const [active, setActive] = useState(-1)
  const newest = useRef({ total, active, mark })
  newest.current = { total, active, mark }
  useEffect(() => {
    const go = (row: number) => {
      const top = (body.current?.getBoundingClientRect().top ?? 0) + row * height
      if (top < headRoom) scrollBy(0, top - headRoom)
      else if (top + height > innerHeight - footRoom) scrollBy(0, top + height - innerHeight + footRoom)
      setActive(row)
    }
    const hear = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement
      const writes = target.matches('input:not([type=checkbox]), textarea, select')
      const covered = document.querySelector('[role=dialog], [role=alertdialog], [role=menu]') !== null
      if (event.ctrlKey || event.metaKey || event.altKey || writes || covered) return
      const now = newest.current
      if (event.key === 'j' && now.active < now.total - 1) go(now.active + 1)
      else if (event.key === 'k' && now.active > 0) go(now.active - 1)
      else if (event.key === 'x' && now.active >= 0) now.mark(now.active)
      else return
      event.preventDefault()
    }
    addEventListener('keydown', hear)
    return () => removeEventListener('keydown', hear)
  }, [body, height])
  useEffect(() => {
    // The link of the row, so that Enter opens it and a screen reader says it.
    if (active < 0) return
    const link = body.current?.querySelector<HTMLElement>(`[data-row="${active}"] .name-cell a`)
    link?.focus({ preventScroll: true })
  }, [active, body])
  return active
}

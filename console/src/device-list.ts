// The list of devices as its address says it: which state, which search, which columns, in which order. Everything
// is in the address, so a view can be kept, shared and gone back to. Pages of the server's list are fetched as the
// reader scrolls to them.
import { useQueries } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { defined } from '@hawser/contract/defined'
import { deviceStatuses, type Device, type DeviceStatus } from '@hawser/contract/devices'
import { encodeFilter, type FilterElement } from '@hawser/contract/filters'
import { api, prefetch, refetch_ms, useMe } from './api.ts'

/** The server's largest page. */
export const page_size = 100

/** Columns that can be sorted → the field that the server sorts by. */
export const sorts = {
  name: 'name',
  state: 'online',
  seen: 'last_seen',
  system: 'info.pretty_name',
  arch: 'info.arch',
  agent: 'info.version',
  address: 'remote_addr',
  mac: 'identity.mac',
  created: 'created_at',
} as const
export type Sort = keyof typeof sorts
export const columnIds = [
  'state',
  'tags',
  'system',
  'arch',
  'agent',
  'address',
  'mac',
  'seen',
  'created',
] as const
export type ColumnId = (typeof columnIds)[number]
const firstColumns: readonly ColumnId[] = ['state', 'tags', 'system', 'agent', 'address']

/** Text filters, by the property of the device. */
const textFilters = {
  name: 'name',
  os: 'info.pretty_name',
  arch: 'info.arch',
  agent: 'info.version',
  ip: 'remote_addr',
  mac: 'identity.mac',
} as const
/** Filters by a span of time before now: `7d`, `12h`. */
const spanFilters = { unseen: 'last_seen', added: 'created_at' } as const

/** Filters of the list. */
export interface DeviceFilters {
  /** Words, each of which the device has somewhere. */
  find?: string
  /** Several: the device has each of them. */
  tag?: string | readonly string[]
  online?: boolean
  name?: string
  os?: string
  arch?: string
  agent?: string
  ip?: string
  mac?: string
  /** Not seen for this long, such as 7d. */
  unseen?: string
  /** Added within this time, such as 12h. */
  added?: string
}

export interface DevicesSearch extends DeviceFilters {
  status?: DeviceStatus
  sort?: Sort
  desc?: true
  cols?: string
  map?: true
}

const textOf = (given: unknown): string =>
  typeof given === 'string' || typeof given === 'number' ? String(given) : ''

const unit_ms = { h: 3_600_000, d: 86_400_000 } as const

/** `7d` and `12h`; undefined: not a span of time. */
export function spanOf(text: string): { count: number; unit: 'h' | 'd'; ms: number } | undefined {
  const [, digits, unit] = /^([1-9]\d{0,3})([hd])$/.exec(text) ?? []
  if (digits === undefined || (unit !== 'h' && unit !== 'd')) return undefined
  return { count: Number(digits), unit, ms: Number(digits) * unit_ms[unit] }
}

export const tagsOf = ({ tag }: DeviceFilters): readonly string[] =>
  tag === undefined ? [] : typeof tag === 'string' ? [tag] : tag

/** The server's limits. */
const [longestValue, mostTags, mostWords] = [255, 16, 5] as const

/** The same filters always give the same parameters, in the same order. */
function readFilters(given: Record<string, unknown>): DeviceFilters {
  const find = textOf(given['find'])
  const tags = [...new Set([given['tag']].flat().map(textOf).filter(Boolean))].toSorted().slice(0, mostTags)
  const texts = (Object.keys(textFilters) as (keyof typeof textFilters)[]).map(
    (key) => [key, textOf(given[key]).slice(0, longestValue)] as const,
  )
  const spans = (Object.keys(spanFilters) as (keyof typeof spanFilters)[])
    .map((key) => [key, textOf(given[key])] as const)
    .filter(([, value]) => spanOf(value))
  return {
    ...defined({
      find: find || undefined,
      tag: tags.length > 1 ? tags : tags[0],
      online: typeof given['online'] === 'boolean' ? given['online'] : undefined,
    }),
    ...Object.fromEntries([...texts, ...spans].filter(([, value]) => value !== '')),
  }
}

export const filtersIn = (search: DevicesSearch): DeviceFilters => readFilters({ ...search })

/** Invalid parameters are dropped. */
export function readDevicesSearch(given: Record<string, unknown>): DevicesSearch {
  const status = deviceStatuses.find((one) => one === given['status'])
  const sort = (Object.keys(sorts) as Sort[]).find((one) => one === given['sort'])
  const cols = columnsOf({ cols: textOf(given['cols']) }).join(',')
  return defined({
    status,
    sort,
    desc: given['desc'] === true || undefined,
    ...readFilters(given),
    cols: textOf(given['cols']) && cols !== firstColumns.join(',') ? cols : undefined,
    map: given['map'] === true || undefined,
  })
}

export function columnsOf({ cols }: Pick<DevicesSearch, 'cols'>): readonly ColumnId[] {
  if (!cols) return firstColumns
  const named = cols.split(',')
  return columnIds.filter((id) => named.includes(id))
}

const property = (
  name: string,
  operator: 'contains' | 'eq' | 'lt' | 'gt',
  value: unknown,
): FilterElement => ({ type: 'property', params: { name, operator, value } })
const join = (name: 'and' | 'or'): FilterElement => ({ type: 'operator', params: { name } })

/** Quotes keep words together: `"Debian GNU"` is one. */
export const wordsOf = (text: string): string[] => text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? []
export const unquoted = (word: string): string => word.replaceAll('"', '')

/** A word is searched for in all names of a device. Beyond a few words the last is the whole rest. */
function wordElements(find: string): FilterElement[] {
  const words = wordsOf(find).map(unquoted).filter(Boolean)
  const few =
    words.length <= mostWords
      ? words
      : [...words.slice(0, mostWords - 1), words.slice(mostWords - 1).join(' ')]
  return few.flatMap((word) => [
    ...['name', 'identity.mac', 'info.pretty_name', 'remote_addr'].map((name) =>
      property(name, 'contains', word),
    ),
    join('or'),
  ])
}

/** The moment this long ago, in steps, so that a list stays the same list from one moment to the next. */
function ago({ ms }: { ms: number }): string {
  const step_ms = Math.max(60_000, ms / 50)
  return new Date(Math.floor(Date.now() / step_ms) * step_ms - ms).toISOString()
}

/** A value of the filter by agent: older than the one that the server offers. */
export const oldAgent = 'old'

function textElement(key: keyof typeof textFilters, value: string): FilterElement {
  if (key === 'agent' && value === oldAgent) return property('agent.outdated', 'eq', true)
  return property(textFilters[key], 'contains', value)
}

function elementsOf(filters: DeviceFilters): FilterElement[] {
  const { find, online, unseen, added } = filters
  const tags = tagsOf(filters)
  const [away, young] = [spanOf(unseen ?? ''), spanOf(added ?? '')]
  return [
    ...(find ? wordElements(find) : []),
    ...(tags.length === 1 ? [property('tags', 'eq', tags[0]), join('and')] : []),
    ...(tags.length > 1 ? [property('tags', 'contains', tags), join('and')] : []),
    ...(online === undefined ? [] : [property('online', 'eq', online), join('and')]),
    ...(Object.keys(textFilters) as (keyof typeof textFilters)[]).flatMap((key) =>
      filters[key] ? [textElement(key, filters[key]), join('and')] : [],
    ),
    ...(away ? [property(spanFilters.unseen, 'lt', ago(away)), join('and')] : []),
    ...(young ? [property(spanFilters.added, 'gt', ago(young)), join('and')] : []),
  ]
}

/** The server's query for a search. */
function listQuery({ status = 'accepted', sort = 'name', desc, ...search }: DevicesSearch) {
  const elements = elementsOf(search)
  return {
    status,
    sort_by: sorts[sort],
    order_by: desc ? ('desc' as const) : ('asc' as const),
    ...defined({ filter: elements.length > 0 ? encodeFilter(elements) : undefined }),
  }
}

const at_once = 4

/** Every device that fits, at most `most`; `progress` receives the count so far. */
export async function everyDevice(
  search: DevicesSearch,
  most: number,
  progress: (count: number) => void = () => {},
): Promise<Device[]> {
  const found = new Map<string, Device>()
  const page = async (number: number) =>
    (await api.devices.list({ query: { ...listQuery(search), page: number, per_page: page_size } })).body
  for (let next = 1, width = 1; found.size < most; next += width, width = at_once) {
    const pages = await Promise.all(
      Array.from({ length: Math.min(width, Math.ceil(most / page_size)) }, (_, index) => page(next + index)),
    )
    // A device may move from one page to the next during the calls.
    for (const device of pages.flat()) found.set(device.uid, device)
    progress(found.size)
    if (pages.some((body) => body.length < page_size)) break
  }
  return [...found.values()].slice(0, most)
}

export interface DeviceWindow {
  /** Undefined: the first page is still loading. */
  total: number | undefined
  /** Undefined: the page of this row is not loaded. */
  at(row: number): Device | undefined
  error: unknown
  again(): void
}

const fetchPage = (query: ReturnType<typeof listQuery>, number: number, signal?: AbortSignal) =>
  api.devices.list({ query: { ...query, page: number + 1, per_page: page_size }, signal })

/** Before the table is there to request it. */
export function prefetchDevices(search: DevicesSearch): void {
  const query = listQuery(search)
  if (!search.map) prefetch(['devices', 'list', query, 0], () => fetchPage(query, 0))
}

/** Rows must stay on the screen this long before their pages are fetched: scrolling past fetches none. */
const settled_ms = 100

/** The pages on the screen, once they have settled; the first at once. */
function useSettledPages(from: number, to: number): readonly [from: number, to: number] {
  const [settled, setSettled] = useState([from, to] as const)
  useEffect(() => {
    const timer = setTimeout(() => setSettled([from, to]), settled_ms)
    return () => clearTimeout(timer)
  }, [from, to])
  return settled
}

/** The rows on the screen, and all others of loaded pages. */
export function useDeviceWindow(search: DevicesSearch, first: number, last: number): DeviceWindow {
  const { tenant } = useMe()
  const query = listQuery(search)
  const shown = Math.floor(first / page_size)
  const [from, to] = useSettledPages(shown, Math.max(shown, Math.floor(last / page_size)))
  const numbers = Array.from({ length: to - from + 1 }, (_, index) => from + index)
  const pages = useQueries({
    queries: numbers.map((number) => ({
      queryKey: ['in', tenant, 'devices', 'list', query, number],
      queryFn: ({ signal }: { signal: AbortSignal }) => fetchPage(query, number, signal),
      refetchInterval: refetch_ms,
    })),
  })
  const known = pages.find(({ data }) => data)?.data
  const failed = pages.find(({ isError, data }) => isError && !data)
  const sizes = pages.flatMap(({ data }, index) => (data ? [[from + index, data.body.length] as const] : []))
  return {
    total: useTotal(JSON.stringify(query), known?.total, sizes, query.filter !== undefined),
    at: (row) => pages[Math.floor(row / page_size) - from]?.data?.body[row % page_size],
    error: failed?.error,
    again: () => void failed?.refetch(),
  }
}

/**
 * In a large namespace the server counts only the first matches, and has more: after a full page at the end
 * of its count there is room for another one.
 */
function useTotal(
  list: string,
  counted: number | undefined,
  sizes: readonly (readonly [page: number, size: number])[],
  isFiltered: boolean,
): number | undefined {
  const key = `${list} ${counted}`
  const seen = useRef({ key, rows: 0, ended: false })
  if (seen.current.key !== key) seen.current = { key, rows: 0, ended: false }
  if (counted === undefined) return undefined
  for (const [page, size] of isFiltered ? sizes : []) {
    const end = page * page_size + size
    const ended = size < page_size
    if (end >= counted && (ended || !seen.current.ended))
      seen.current = { key, rows: ended ? end : Math.max(seen.current.rows, end), ended }
  }
  const { rows, ended } = seen.current
  return Math.max(counted, ended || rows === 0 ? rows : rows + page_size)
}

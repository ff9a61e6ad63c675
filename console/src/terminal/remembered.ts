// Which sessions the terminals of this page have and how their panes share the room, so that they go on after
// a reload. Only the names of sessions are kept, in the storage of this tab of the browser: to continue one,
// its person must be signed in.
import { useEffect } from 'react'
import { relabelled, type Layout } from './layout.ts'

/** A tab of terminals: its live panes with their sessions. */
export interface RememberedTab {
  readonly layout: Layout
  readonly panes: readonly (readonly [id: number, session: string])[]
  readonly active: number
}

const keyOf = (device: string): string => `hawser.terminals.${device}`
const most = 12

/** Tabs from before a reload, or the session of a link. */
export function openBefore(device: string): readonly RememberedTab[] {
  const before = reloaded(device)
  const asked = new URLSearchParams(location.search).get('continue') ?? ''
  return before.length > 0 || !/^[\w-]{8,64}$/.test(asked)
    ? before
    : [{ layout: 1, panes: [[1, asked]], active: 1 }]
}

function reloaded(device: string): readonly RememberedTab[] {
  // A duplicated tab of the browser has a copy, but the sessions stay where they are.
  const [how] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[]
  const kept = sessionStorage.getItem(keyOf(device)) ?? '[]'
  sessionStorage.removeItem(keyOf(device))
  return how?.type === 'reload' ? readTabs(kept) : []
}

/** The storage belongs to the console, but an older one may have written it. */
function readTabs(kept: string): readonly RememberedTab[] {
  try {
    const tabs: unknown = JSON.parse(kept)
    return Array.isArray(tabs) ? tabs.slice(0, most).flatMap(readTab) : []
  } catch {
    return []
  }
}

function readTab(given: unknown): RememberedTab[] {
  const { layout, panes, active } = (given ?? {}) as Partial<Record<keyof RememberedTab, unknown>>
  const found = (Array.isArray(panes) ? (panes as unknown[]) : []).filter(
    (pane): pane is [number, string] =>
      Array.isArray(pane) && typeof pane[0] === 'number' && typeof pane[1] === 'string',
  )
  const ids = new Map(found.map(([id]) => [id, id]))
  const room = relabelled(layout, ids)
  const last = found.at(-1)?.[0]
  if (room === undefined || last === undefined) return []
  return [{ layout: room, panes: found, active: ids.has(active as number) ? (active as number) : last }]
}

export function useRemembered(device: string, tabs: readonly RememberedTab[]): void {
  const text = JSON.stringify(tabs.filter(({ panes }) => panes.length > 0))
  // A link works once: a reopened page must not take the session from another place.
  useEffect(() => {
    if (new URLSearchParams(location.search).has('continue'))
      history.replaceState(history.state, '', location.pathname)
  }, [device])
  useEffect(() => sessionStorage.setItem(keyOf(device), text), [device, text])
  // Leaving by a link closes the terminals; a reload does not run this.
  useEffect(() => () => sessionStorage.removeItem(keyOf(device)), [device])
}

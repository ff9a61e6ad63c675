// Views of the list of devices that somebody has kept: a name, and the search parameters of its address. They
// are in this browser; the address itself can be sent to anybody.
import { useState } from 'react'
import { useMe } from './api.ts'
import { readDevicesSearch, type DevicesSearch } from './device-list.ts'

export interface SavedView {
  readonly name: string
  readonly search: DevicesSearch
}

const mostViews = 50
const keyOf = (tenant: string): string => `hawser.views.${tenant}`

function read(tenant: string): SavedView[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(keyOf(tenant)) ?? '[]')
    if (!Array.isArray(stored)) return []
    return stored.flatMap((one: { name?: unknown; search?: unknown } | null) =>
      typeof one?.name === 'string' && typeof one.search === 'object'
        ? [{ name: one.name, search: readDevicesSearch({ ...one.search }) }]
        : [],
    )
  } catch {
    return []
  }
}

export function useSavedViews() {
  const { tenant } = useMe()
  const [views, setViews] = useState(() => read(tenant))
  /** Replaces the view of this name; another window may have stored some since. */
  const store = (name: string, added: readonly SavedView[]) => {
    const next = [...read(tenant).filter((view) => view.name !== name), ...added].slice(-mostViews)
    if (next.length === 0) localStorage.removeItem(keyOf(tenant))
    else localStorage.setItem(keyOf(tenant), JSON.stringify(next))
    setViews(next)
  }
  return {
    views,
    save: (name: string, search: DevicesSearch) => store(name, [{ name, search }]),
    remove: (name: string) => store(name, []),
  }
}

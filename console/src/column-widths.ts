// How wide the columns of the table of devices are, for those who have changed it. A width is a share of the
// table in per cent, kept in this browser for each choice of columns, so that it fits a window of any size.
// One column gains what its neighbour loses.
import { useState } from 'react'

export type Widths = Readonly<Record<string, number>>

/** In per cent. */
export const narrowest = 4

const key = 'hawser.column-widths'
const mostChoices = 20

function read(): Readonly<Record<string, Widths>> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? '{}')
    return stored !== null && typeof stored === 'object' ? (stored as Record<string, Widths>) : {}
  } catch {
    return {}
  }
}

/** Only widths that all of these columns can have together. */
export function readWidths(given: unknown, columns: readonly string[]): Widths | undefined {
  if (typeof given !== 'object' || given === null) return undefined
  const found = columns.map((id) => [id, (given as Record<string, unknown>)[id]] as const)
  const sound = found.every(
    (one): one is readonly [string, number] =>
      typeof one[1] === 'number' && one[1] >= narrowest && one[1] <= 100,
  )
  const sum = found.reduce((all, [, width]) => all + Number(width), 0)
  return sound && sum <= 100 ? Object.fromEntries(found) : undefined
}

export function useColumnWidths(columns: readonly string[]) {
  const [stored, setStored] = useState(read)
  const choice = columns.join(',')
  return {
    widths: readWidths(stored[choice], columns),
    setWidths(widths: Widths | undefined): void {
      const others = Object.entries(read()).filter(([name]) => name !== choice)
      const all: [string, Widths][] = widths ? [...others, [choice, widths]] : others
      const next = Object.fromEntries(all.slice(-mostChoices))
      setStored(next)
      localStorage.setItem(key, JSON.stringify(next))
    },
  }
}

/** Moves the border after a column, in per cent, as far as both sides allow. */
export function moved(widths: Widths, columns: readonly string[], index: number, by: number): Widths {
  const [left, right] = [columns[index], columns[index + 1]]
  if (left === undefined || right === undefined) return widths
  const [before, after] = [widths[left] ?? narrowest, widths[right] ?? narrowest]
  const step = Math.max(narrowest - before, Math.min(by, after - narrowest))
  return { ...widths, [left]: before + step, [right]: after - step }
}

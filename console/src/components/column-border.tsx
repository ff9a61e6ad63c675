// The border after a column of a table: dragged, or moved with the arrow keys, it makes the column wider and
// its neighbour narrower. A double press, or Enter, gives all columns the widths of the style again.
import { useRef } from 'react'
import { moved, narrowest, type Widths } from '../column-widths.ts'
import { t } from '../language/language.ts'

export interface Resized {
  readonly columns: readonly string[]
  /** Undefined: from the style. */
  readonly widths: Widths | undefined
  readonly setWidths: (widths: Widths | undefined) => void
}

/** For an arrow key, in per cent. */
const step = 1

/** On the screen, in per cent of the table. */
function measured(border: HTMLElement, columns: readonly string[]): { widths: Widths; table: number } {
  const table = border.closest('table')
  const whole = table?.offsetWidth ?? 1
  const shares = columns.map((id) => {
    const head = table?.querySelector<HTMLElement>(`th[data-column="${id}"]`)
    return [id, Math.max(narrowest, Math.floor(((head?.offsetWidth ?? 0) / whole) * 1000) / 10)] as const
  })
  return { widths: Object.fromEntries(shares), table: whole }
}

export function ColumnBorder({ id, text, resized }: { id: string; text: string; resized: Resized }) {
  const { columns, widths, setWidths } = resized
  const drag = useRef<{ from: number; widths: Widths; before: Widths | undefined; table: number }>(undefined)
  const index = columns.indexOf(id)
  // The last one has no neighbour to take from.
  if (index < 0 || index === columns.length - 1) return null
  const end = () => void (drag.current = undefined)
  return (
    <span
      className="border"
      role="separator"
      aria-orientation="vertical"
      aria-label={t('Width of {column}', { column: text })}
      aria-valuemin={narrowest}
      aria-valuemax={100}
      aria-valuenow={Math.round(widths?.[id] ?? 100 / columns.length)}
      tabIndex={0}
      title={t('Drag to resize; double-click to reset')}
      onPointerDown={(event) => {
        if (event.button !== 0) return
        event.preventDefault()
        event.currentTarget.focus()
        event.currentTarget.setPointerCapture(event.pointerId)
        drag.current = { from: event.clientX, before: widths, ...measured(event.currentTarget, columns) }
      }}
      onPointerMove={({ clientX }) => {
        const { current } = drag
        if (!current) return
        const by = ((clientX - current.from) / current.table) * 100
        setWidths(moved(current.widths, columns, index, by))
      }}
      onPointerUp={end}
      onPointerCancel={end}
      onDoubleClick={() => setWidths(undefined)}
      onKeyDown={(event) => {
        const by = { ArrowLeft: -step, ArrowRight: step }[event.key]
        if (by !== undefined)
          setWidths(moved(widths ?? measured(event.currentTarget, columns).widths, columns, index, by))
        else if (event.key === 'Enter') setWidths(undefined)
        else if (event.key === 'Escape' && drag.current) setWidths(drag.current.before)
        else return
        if (by === undefined) end()
        event.preventDefault()
      }}
    />
  )
}

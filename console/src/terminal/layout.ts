// How the panes of a tab share its room: a tree of halves, told as rectangles. The panes themselves stay
// where they are in the document, because moving one would end its terminal.

export type Direction = 'row' | 'column'

/** A pane by its id, or two parts next to each other (`row`) or below each other (`column`). */
export type Layout =
  | number
  | {
      readonly direction: Direction
      /** The share of the first part, 0 to 1. */
      readonly share: number
      readonly parts: readonly [Layout, Layout]
    }

/** A place in shares of the whole. */
export interface Rectangle {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** A border that can be moved. */
export interface Border extends Rectangle {
  readonly direction: Direction
  readonly share: number
  /** From the top of the tree, which of the two parts to enter. */
  readonly path: readonly (0 | 1)[]
  /** The place of both parts together. */
  readonly around: Rectangle
}

export const shares = { least: 0.15, most: 0.85 } as const
const whole: Rectangle = { left: 0, top: 0, width: 1, height: 1 }

export function split(layout: Layout, id: number, direction: Direction, added: number): Layout {
  if (layout === id) return { direction, share: 0.5, parts: [id, added] }
  if (typeof layout === 'number') return layout
  const [first, second] = layout.parts
  return { ...layout, parts: [split(first, id, direction, added), split(second, id, direction, added)] }
}

/** Undefined: it was the only pane. */
export function without(layout: Layout, id: number): Layout | undefined {
  if (typeof layout === 'number') return layout === id ? undefined : layout
  const [first, second] = layout.parts.map((part) => without(part, id))
  if (first === undefined) return second
  if (second === undefined) return first
  return { ...layout, parts: [first, second] }
}

export function resized(layout: Layout, path: readonly (0 | 1)[], share: number): Layout {
  if (typeof layout === 'number') return layout
  const [at, ...rest] = path
  const bounded = Math.min(shares.most, Math.max(shares.least, share))
  if (at === undefined) return { ...layout, share: bounded }
  const [first, second] = layout.parts
  return {
    ...layout,
    parts: at === 0 ? [resized(first, rest, share), second] : [first, resized(second, rest, share)],
  }
}

export function rectangles(layout: Layout): {
  readonly panes: ReadonlyMap<number, Rectangle>
  readonly borders: readonly Border[]
} {
  const panes = new Map<number, Rectangle>()
  const borders: Border[] = []
  const place = (part: Layout, room: Rectangle, path: readonly (0 | 1)[]): void => {
    if (typeof part === 'number') return void panes.set(part, room)
    const { direction, share } = part
    const isRow = direction === 'row'
    const first = isRow ? { ...room, width: room.width * share } : { ...room, height: room.height * share }
    const second = isRow
      ? { ...room, left: room.left + first.width, width: room.width - first.width }
      : { ...room, top: room.top + first.height, height: room.height - first.height }
    const { left, top, width, height } = second
    borders.push({
      direction,
      share,
      path,
      around: room,
      ...(isRow ? { left, top, width: 0, height } : { left, top, width, height: 0 }),
    })
    place(part.parts[0], first, [...path, 0])
    place(part.parts[1], second, [...path, 1])
  }
  place(layout, whole, [])
  return { panes, borders }
}

const deepest = 8

/** With other ids, without panes that get none; undefined: nothing is left, or it is no layout. */
export function relabelled(
  given: unknown,
  ids: ReadonlyMap<number, number>,
  depth = deepest,
): Layout | undefined {
  if (typeof given === 'number') return ids.get(given)
  if (typeof given !== 'object' || given === null || depth === 0) return undefined
  const { direction, share, parts } = given as Readonly<Record<string, unknown>>
  if (!Array.isArray(parts)) return undefined
  const [first, second] = parts.slice(0, 2).map((part) => relabelled(part, ids, depth - 1))
  if (first === undefined || second === undefined) return first ?? second
  return {
    direction: direction === 'column' ? 'column' : 'row',
    share: typeof share === 'number' ? Math.min(shares.most, Math.max(shares.least, share)) : 0.5,
    parts: [first, second],
  }
}

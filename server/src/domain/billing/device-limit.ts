// How many accepted devices a namespace may have. A limit below one means none.

interface Count {
  readonly accepted: number
  /** Slots that deleted devices still hold. */
  readonly kept?: number
  readonly max_devices: number
}

export function hasRoom({ accepted, kept = 0, max_devices }: Count): boolean {
  return max_devices <= 0 || accepted + kept < max_devices
}

/** All, or those with these uids. */
export type Room = 'all' | readonly string[]

export function roomFor({
  kept,
  ...count
}: Omit<Count, 'kept'> & {
  /** Deleted devices that still hold a slot, and may return to it. */
  readonly kept: readonly string[]
}): Room {
  if (hasRoom({ ...count, kept: kept.length })) return 'all'
  return hasRoom({ ...count, kept: kept.length - 1 }) ? kept : []
}

export function isOver({ accepted, max_devices }: Count): boolean {
  return max_devices > 0 && accepted > max_devices
}

// How many accepted devices a namespace may have. A limit below one means that there is none.

interface Count {
  readonly accepted: number
  /** Slots that deleted devices still hold. */
  readonly kept?: number
  readonly max_devices: number
}

/** Whether one more device may be accepted. */
export function hasRoom({ accepted, kept = 0, max_devices }: Count): boolean {
  return max_devices <= 0 || accepted + kept < max_devices
}

/** Devices that may be accepted now: every one, or those with these uids. */
export type Room = 'all' | readonly string[]

/** Which devices may be accepted. A deleted device that still holds a slot may come back to it. */
export function roomFor({
  kept,
  ...count
}: Omit<Count, 'kept'> & {
  /** The uids of deleted devices that still hold a slot. */
  readonly kept: readonly string[]
}): Room {
  if (hasRoom({ ...count, kept: kept.length })) return 'all'
  return hasRoom({ ...count, kept: kept.length - 1 }) ? kept : []
}

/** Whether there are more devices than the limit allows, as after the end of a subscription. */
export function isOver({ accepted, max_devices }: Count): boolean {
  return max_devices > 0 && accepted > max_devices
}

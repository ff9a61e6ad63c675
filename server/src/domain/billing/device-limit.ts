// How many accepted devices a namespace may have. A limit below one means that there is none.
interface Count {
  readonly accepted: number
  /** Places that deleted devices keep for a while. */
  readonly kept?: number
  readonly max_devices: number
}

/** Whether one more device may be accepted. */
export function hasRoom({ accepted, kept = 0, max_devices }: Count): boolean {
  return max_devices <= 0 || accepted + kept < max_devices
}

/** Whether there are more devices than the limit allows, as after the end of a subscription. */
export function isOver({ accepted, max_devices }: Count): boolean {
  return max_devices > 0 && accepted > max_devices
}

// The memory that the screens of all terminals of this process take together, of live sessions as well as of
// held ones. A namespace may take as much as is left for all others: one that wants everything gets half of
// it, and whoever comes after it still finds room.

export interface ScreenMemory {
  /** Takes more for a screen of the namespace; false: there is not enough left for it. */
  take(tenant_id: string, bytes: number): boolean
  /** Counts memory whether or not there is room for it; negative: it is free again. */
  count(tenant_id: string, bytes: number): void
  readonly held_bytes: number
}

/**
 * Room for more than 1,300 terminals of one namespace, each with as much as one may keep when it is quiet.
 */
const most_bytes = 256 * 1024 * 1024

export function screenMemory(most = most_bytes): ScreenMemory {
  const ofNamespace = new Map<string, number>()
  let total_bytes = 0
  const count = (tenant_id: string, bytes: number): void => {
    total_bytes += bytes
    const held = (ofNamespace.get(tenant_id) ?? 0) + bytes
    if (held > 0) ofNamespace.set(tenant_id, held)
    else ofNamespace.delete(tenant_id)
  }
  return {
    count,
    take(tenant_id, bytes) {
      const own_bytes = (ofNamespace.get(tenant_id) ?? 0) + bytes
      if (own_bytes > most - (total_bytes + bytes)) return false
      count(tenant_id, bytes)
      return true
    },
    get held_bytes() {
      return total_bytes
    },
  }
}

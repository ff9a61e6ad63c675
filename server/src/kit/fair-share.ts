// Memory that namespaces share. Of three quarters of it a namespace may take as much as is left for all others:
// one that wants everything gets half of it, and the next one half of the rest. The last quarter is for namespaces
// that have little, so that an account with many namespaces leaves room for others.

export interface FairShare {
  /** Takes more for the namespace; false: there is not enough left for it. */
  take(tenant_id: string, bytes: number): boolean
  /** Counts memory whether or not there is room for it; negative: it is free again. */
  count(tenant_id: string, bytes: number): void
  readonly held_bytes: number
}

export function fairShare(most: number): FairShare {
  const little_bytes = most / 512
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
      const left_bytes = most - (total_bytes + bytes)
      const hasRoom = own_bytes <= little_bytes ? left_bytes >= 0 : own_bytes <= left_bytes - most / 4
      if (hasRoom) count(tenant_id, bytes)
      return hasRoom
    },
    get held_bytes() {
      return total_bytes
    },
  }
}

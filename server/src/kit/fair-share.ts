// Memory that owners share: namespaces, people or networks. Of three quarters of it an owner may take as much
// as is left for all others: the greediest gets half, the next one half of the rest. The last quarter is for
// owners that have little, so that an account with many namespaces leaves room for others.

export interface FairShare {
  hasRoom(owner: string, bytes: number): boolean
  /** False: there is not enough left for the owner. */
  take(owner: string, bytes: number): boolean
  /** Counts memory whether or not there is room for it; negative: it is free again. */
  count(owner: string, bytes: number): void
  readonly held_bytes: number
}

export function fairShare(most: number): FairShare {
  const little_bytes = most / 512
  const held_bytes = new Map<string, number>()
  let total_bytes = 0
  const count = (owner: string, bytes: number): void => {
    total_bytes += bytes
    const held = (held_bytes.get(owner) ?? 0) + bytes
    if (held > 0) held_bytes.set(owner, held)
    else held_bytes.delete(owner)
  }
  const hasRoom = (owner: string, bytes: number): boolean => {
    const own_bytes = (held_bytes.get(owner) ?? 0) + bytes
    const left_bytes = most - (total_bytes + bytes)
    return own_bytes <= little_bytes ? left_bytes >= 0 : own_bytes <= left_bytes - most / 4
  }
  return {
    count,
    hasRoom,
    take(owner, bytes) {
      const may = hasRoom(owner, bytes)
      if (may) count(owner, bytes)
      return may
    },
    get held_bytes() {
      return total_bytes
    },
  }
}

// Users who were heard of a moment ago, so that a terminal is not filled with lines about the same person.

interface RecentUsers {
  add(id: string, for_ms: number): void
  has(id: string): boolean
}

export function recentUsers(): RecentUsers {
  const untils = new Map<string, number>()
  return {
    add(id, for_ms) {
      const now = Date.now()
      for (const [user, until] of untils) if (until <= now) untils.delete(user)
      untils.set(id, now + for_ms)
    },
    has: (id) => (untils.get(id) ?? 0) > Date.now(),
  }
}

// The policy of the namespace during a session. After each change, every open channel checks whether it may
// continue.
import type { SessionPolicy } from '../../domain/access/session-policy.ts'

export interface LivePolicy {
  rules(): SessionPolicy
  change(rules: SessionPolicy): void
  /** Calls `recheck` after each change, until the returned function is called. */
  follow(recheck: () => void): () => void
}

export function livePolicy(first: SessionPolicy): LivePolicy {
  const followers = new Set<() => void>()
  let rules = first
  return {
    rules: () => rules,
    change(next) {
      rules = next
      for (const recheck of followers) recheck()
    },
    follow(recheck) {
      followers.add(recheck)
      return () => void followers.delete(recheck)
    },
  }
}

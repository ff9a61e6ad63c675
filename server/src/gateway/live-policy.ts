// The policy of the namespace while a session goes on. It may change at any moment; then each open channel
// asks again whether it may go on.
import type { SessionPolicy } from '../domain/access/session-policy.ts'

export interface LivePolicy {
  /** The present policy. */
  rules(): SessionPolicy
  change(rules: SessionPolicy): void
  /** Called after each change, until the function that it gives is called. */
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

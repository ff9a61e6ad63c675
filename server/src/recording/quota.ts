// Limits the recordings of a namespace. Recording stops when the disk is low or when the namespace has used
// up its quota. The storage measures the usage; this module adds later writes. It measures again after
// removals, and every few minutes, because other nodes record too. While a measurement is missing or fails,
// the last known number counts: the storage may be down, and sessions do not wait for it. The caller decides
// about a session that may not be recorded.
import { Failure } from '@hawser/contract/failures'
import { BoundedMap } from '../kit/bounded-map.ts'
import { minute_ms, second_ms } from '../kit/clock.ts'

export interface RecordingQuota {
  /** Throws a Failure when the namespace may not record. */
  begin(tenant_id: string): Promise<void>
  /** Counts bytes before they are written; throws a Failure when they exceed the quota. */
  take(tenant_id: string, bytes: number): void
  /** Measures the namespace again after recordings were removed. */
  freed(tenant_id: string): void
  /** As last measured; quota 0: unlimited. */
  usage(tenant_id: string): Promise<{ used_bytes: number; quota_bytes: number }>
}

export interface QuotaParts {
  isLow(): boolean
  /** The quota of each namespace; 0: none. */
  quota_bytes: number
  /** The quota of a namespace, where it depends on the usage. Called with each measurement. */
  ownQuota?(tenant_id: string, used_bytes: number): Promise<number>
  used(tenant_id: string): Promise<number>
  /** Called once for each measurement. */
  onUsedUp(tenant_id: string): void
  /** A measurement failed; the last known number still counts. */
  onUnmeasured(tenant_id: string, error: unknown): void
}

interface Usage {
  bytes: number
  /** Infinity until it is known. */
  quota_bytes: number
  /** The part of `bytes` since the running measurement began, which may have missed it. */
  since_bytes: number
  due_at: number
  measuring: Promise<void> | undefined
  reported: boolean
}

const again_ms = 10 * minute_ms
/** The pause after a failed measurement. */
const retry_ms = minute_ms
const patience_ms = 2 * second_ms
/** Namespaces whose usage is cached. */
const most = 100_000

export const lowDisk = 'The disk of the server is nearly full, so that nothing can be recorded.'

export function recordingQuota({
  isLow,
  quota_bytes,
  ownQuota,
  used,
  onUsedUp,
  onUnmeasured,
}: QuotaParts): RecordingQuota {
  const usages = new BoundedMap<string, Usage>(most)

  async function measure(tenant_id: string, usage: Usage): Promise<void> {
    usage.since_bytes = 0
    usage.due_at = Infinity
    let next_ms = again_ms
    try {
      const used_bytes = await used(tenant_id)
      if (ownQuota) usage.quota_bytes = await ownQuota(tenant_id, used_bytes)
      usage.bytes = used_bytes + usage.since_bytes
      usage.reported = false
    } catch (error) {
      next_ms = retry_ms
      onUnmeasured(tenant_id, error)
    }
    usage.measuring = undefined
    // Unless recordings were removed in between.
    if (usage.due_at === Infinity) usage.due_at = performance.now() + next_ms
  }

  /** Starts a measurement when one is due. */
  function usageOf(tenant_id: string): Usage {
    let usage = usages.get(tenant_id)
    if (!usage) {
      usage = {
        bytes: 0,
        quota_bytes: ownQuota ? Infinity : quota_bytes,
        since_bytes: 0,
        due_at: -Infinity,
        measuring: undefined,
        reported: false,
      }
      usages.set(tenant_id, usage)
    }
    if (!usage.measuring && performance.now() >= usage.due_at) usage.measuring = measure(tenant_id, usage)
    return usage
  }

  function requireSpace(tenant_id: string, bytes: number): void {
    if (isLow()) throw new Failure('unavailable', { message: lowDisk, retryAfter: 60 })
    if (quota_bytes === 0) return
    const usage = usageOf(tenant_id)
    if (usage.bytes + bytes > usage.quota_bytes) {
      if (!usage.reported) onUsedUp(tenant_id)
      usage.reported = true
      throw new Failure('unavailable', {
        message: 'The recordings of the namespace have used up their quota.',
        retryAfter: 3600,
      })
    }
    usage.bytes += bytes
    usage.since_bytes += bytes
  }

  return {
    async begin(tenant_id) {
      if (quota_bytes > 0) {
        const isNew = !usages.has(tenant_id)
        const { measuring, bytes, quota_bytes: most } = usageOf(tenant_id)
        // Only an unknown usage, or one near the quota, is worth waiting for.
        if (measuring && (isNew || bytes > most / 2)) await atMost(patience_ms, measuring)
      }
      requireSpace(tenant_id, 0)
    },
    take: requireSpace,
    freed(tenant_id) {
      const usage = usages.get(tenant_id)
      if (usage) usage.due_at = -Infinity
    },
    async usage(tenant_id) {
      const usage = usageOf(tenant_id)
      if (usage.measuring) await atMost(patience_ms, usage.measuring)
      const most = quota_bytes === 0 || usage.quota_bytes === Infinity ? quota_bytes : usage.quota_bytes
      return { used_bytes: usage.bytes, quota_bytes: most }
    },
  }
}

async function atMost(patience_ms: number, awaited: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, patience_ms)
  await Promise.race([awaited, late.promise])
  clearTimeout(timer)
}

// Whether there is room for what is recorded: the disk is not low, and the namespace has not used up its quota. What a namespace has
// is measured where recordings are kept, when one begins, and counted on from there; it is measured anew when some were removed,
// and now and then, because other nodes record too. Whoever is refused decides what becomes of the session.
import { Failure } from '@hawser/contract/failures'
import { minute_ms } from '../kit/clock.ts'

export interface Room {
  /** Throws a Failure when nothing of this namespace may be recorded now. */
  begin(tenant_id: string): Promise<void>
  /** Counts bytes that are about to be written; throws a Failure when there is no room for them. */
  take(tenant_id: string, bytes: number): void
  /** Some of its recordings were removed. */
  freed(tenant_id: string): void
}

export interface RoomParts {
  /** Whether the disk is nearly full. */
  isLow(): boolean
  /** Of each namespace; 0: as much as there is. */
  quota_bytes: number
  /** What the recordings of a namespace take up. */
  used(tenant_id: string): Promise<number>
  /** A namespace has used up its quota: told once in a while. */
  onUsedUp(tenant_id: string): void
}

interface Usage {
  bytes: number
  measured_at: number
  measuring: Promise<void> | undefined
  told: boolean
}

const again_ms = 10 * minute_ms
/** Namespaces of which it is remembered. */
const most = 10_000

export const lowDisk = 'The disk of the server is nearly full, so that nothing can be recorded.'

export function recordingRoom({ isLow, quota_bytes, used, onUsedUp }: RoomParts): Room {
  const usages = new Map<string, Usage>()

  function measure(tenant_id: string, usage: Usage): Promise<void> {
    usage.measuring ??= used(tenant_id)
      .then((bytes) => void Object.assign(usage, { bytes, measured_at: performance.now(), told: false }))
      .finally(() => (usage.measuring = undefined))
    return usage.measuring
  }

  function requireRoom(tenant_id: string, bytes: number): void {
    if (isLow()) throw new Failure('unavailable', { message: lowDisk, retryAfter: 60 })
    const usage = usages.get(tenant_id)
    if (!usage) return
    if (usage.bytes + bytes > quota_bytes) {
      if (!usage.told) onUsedUp(tenant_id)
      usage.told = true
      throw new Failure('unavailable', { message: 'The recordings of the namespace have used up their quota.', retryAfter: 3600 })
    }
    usage.bytes += bytes
  }

  return {
    async begin(tenant_id) {
      if (quota_bytes > 0) {
        let usage = usages.get(tenant_id)
        if (!usage) {
          const [oldest] = usages.size >= most ? usages.keys() : []
          if (oldest !== undefined) usages.delete(oldest)
          usages.set(tenant_id, (usage = { bytes: 0, measured_at: -Infinity, measuring: undefined, told: false }))
        }
        const measured = performance.now() - usage.measured_at > again_ms ? measure(tenant_id, usage) : undefined
        // Nobody waits for what is merely counted anew.
        if (usage.measured_at === -Infinity) await measured
        else measured?.catch(() => undefined)
      }
      requireRoom(tenant_id, 0)
    },
    take: requireRoom,
    freed: (tenant_id) => void usages.delete(tenant_id),
  }
}

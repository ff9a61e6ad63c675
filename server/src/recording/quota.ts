// Whether there is room for what is recorded: the disk is not low, and the namespace has not used up its
// quota. What a namespace has is measured where recordings are kept and counted on from there; it is measured
// anew when some were removed, and now and then, because other nodes record too. Until a measurement is
// there, and when one fails, what is known counts: the place where recordings are kept may be away, and
// sessions do not wait for it. Whoever is refused decides what becomes of the session.
import { Failure } from '@hawser/contract/failures'
import { BoundedMap } from '../kit/bounded-map.ts'
import { minute_ms, second_ms } from '../kit/clock.ts'

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
  /** What there is could not be measured: what was known before counts on. */
  onUnmeasured(tenant_id: string, error: unknown): void
}

interface Usage {
  bytes: number
  /** Of these: what was counted since the measurement under way began, which may not have seen it. */
  since_bytes: number
  /** When it is to be measured again. */
  due_at: number
  measuring: Promise<void> | undefined
  told: boolean
}

const again_ms = 10 * minute_ms
/** After a measurement that failed. */
const retry_ms = minute_ms
/** Whoever begins waits no longer than this for a measurement. */
const patience_ms = 2 * second_ms
/** Namespaces of which it is remembered. */
const most = 100_000

export const lowDisk = 'The disk of the server is nearly full, so that nothing can be recorded.'

export function recordingRoom({ isLow, quota_bytes, used, onUsedUp, onUnmeasured }: RoomParts): Room {
  const usages = new BoundedMap<string, Usage>(most)

  async function measure(tenant_id: string, usage: Usage): Promise<void> {
    usage.since_bytes = 0
    usage.due_at = Infinity
    let next_ms = again_ms
    try {
      usage.bytes = (await used(tenant_id)) + usage.since_bytes
      usage.told = false
    } catch (error) {
      next_ms = retry_ms
      onUnmeasured(tenant_id, error)
    }
    usage.measuring = undefined
    // Unless some were removed meanwhile.
    if (usage.due_at === Infinity) usage.due_at = performance.now() + next_ms
  }

  /** What is known of the namespace; it is measured again where that is due. */
  function usageOf(tenant_id: string): Usage {
    let usage = usages.get(tenant_id)
    if (!usage) {
      usages.set(
        tenant_id,
        (usage = { bytes: 0, since_bytes: 0, due_at: -Infinity, measuring: undefined, told: false }),
      )
    }
    if (!usage.measuring && performance.now() >= usage.due_at) usage.measuring = measure(tenant_id, usage)
    return usage
  }

  function requireRoom(tenant_id: string, bytes: number): void {
    if (isLow()) throw new Failure('unavailable', { message: lowDisk, retryAfter: 60 })
    if (quota_bytes === 0) return
    const usage = usageOf(tenant_id)
    if (usage.bytes + bytes > quota_bytes) {
      if (!usage.told) onUsedUp(tenant_id)
      usage.told = true
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
        const { measuring, bytes } = usageOf(tenant_id)
        // Nobody waits for what is merely counted anew, unless there may be no room without it.
        if (measuring && (isNew || bytes > quota_bytes / 2)) await atMost(patience_ms, measuring)
      }
      requireRoom(tenant_id, 0)
    },
    take: requireRoom,
    freed(tenant_id) {
      const usage = usages.get(tenant_id)
      if (usage) usage.due_at = -Infinity
    },
  }
}

async function atMost(patience_ms: number, awaited: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, patience_ms)
  await Promise.race([awaited, late.promise])
  clearTimeout(timer)
}

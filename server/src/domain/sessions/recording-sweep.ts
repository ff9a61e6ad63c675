// Removes recordings that nobody may see any more: those whose session was deleted with its device or
// namespace, and those that are older than the installation keeps them. A sweep is safe to repeat; the next
// one retries what failed.
import { day_ms, iso, type Clock } from '../../kit/clock.ts'
import type { Recordings } from '../../recording/recordings.ts'
import type { Stores } from '../../storage/stores.ts'

const batch = 100

export interface RecordingSweepParts {
  stores: Stores
  recordings: Pick<Recordings, 'remove'>
  clock: Clock
  /** Days for which a recording is kept; 0: for ever. */
  days: number
}

export function recordingSweep({
  stores,
  recordings,
  clock,
  days,
}: RecordingSweepParts): () => Promise<void> {
  async function unwanted(): Promise<number> {
    const found = await stores.recordings.unwanted(batch)
    for (const { tenant_id, session_uid, exists } of found) {
      if (exists === null) await recordings.remove(tenant_id, session_uid)
      await stores.recordings.forget(session_uid)
    }
    return found.length
  }
  async function old(): Promise<number> {
    if (days === 0) return 0
    const found = await stores.recordings.endedBefore(iso(clock.now() - days * day_ms), batch)
    for (const { tenant_id, uid } of found) {
      await recordings.remove(tenant_id, uid)
      await stores.of(tenant_id).sessions.save(uid, { recorded: 0, index_at: null })
    }
    return found.length
  }
  return async () => {
    while ((await unwanted()) === batch);
    while ((await old()) === batch);
  }
}

// Removes recordings that nobody may see: those whose session was deleted with its device or
// namespace, and those that are older than the installation keeps them. The latter leave entries in the audit
// log, before their files go. A sweep is safe to repeat; the next one retries what failed.
import { day_ms, iso } from '../../kit/clock.ts'
import type { Recordings } from '../../recording/recordings.ts'
import { theServer, type Audit, type AuditNote } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'

/** Also the sessions of one entry in the audit log. */
const batch = 100

export interface RecordingSweepParts extends With<'stores' | 'clock'> {
  audit: Pick<Audit, 'append'>
  recordings: Pick<Recordings, 'remove'>
  /** Days for which a recording is kept; 0: for ever. */
  days: number
}

export function recordingSweep({
  stores,
  audit,
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
  /** One entry for each namespace. */
  async function old(): Promise<number> {
    if (days === 0) return 0
    const before = iso(clock.now() - days * day_ms)
    return stores.transaction(async (inside) => {
      const found = await inside.recordings.expire(before, batch)
      const removed = Map.groupBy(found, ({ tenant_id }) => tenant_id)
      await audit.append(
        inside,
        [...removed].map(([tenant_id, sessions]) => entryOf(tenant_id, days, sessions)),
      )
      return found.length
    })
  }
  return async () => {
    while ((await old()) === batch);
    while ((await unwanted()) === batch);
  }
}

const entryOf = (tenant_id: string, days: number, sessions: readonly { uid: string }[]): AuditNote => ({
  by: { ...theServer, tenant_id },
  record: {
    action: 'recording.removed',
    target: { kind: 'namespace', id: tenant_id, name: '' },
    detail: { days, count: sessions.length, sessions: sessions.map(({ uid }) => uid) },
  },
})

// Which sessions of all namespaces are to be indexed. `index_at` says when a session's recordings are
// examined next; code that begins or changes a recording sets it.
import { flag, type AllNamespaces } from './context.ts'

const atOnce = ''

export function searchQueueStore({ db, reader, dialect }: AllNamespaces) {
  const recordedOf = (tenant_id: string) =>
    db
      .selectFrom('sessions')
      .select((all) => all.fn.countAll<number>().as('n'))
      .where('tenant_id', '=', tenant_id)
      .where('recorded', '=', 1)

  return {
    /**
     * Due sessions that have ended, longest due first. On PostgreSQL they are due again at `until`, so that
     * other nodes leave them alone.
     */
    async due(now: string, until: string, limit: number) {
      const found = db
        .selectFrom('sessions')
        .innerJoin('namespaces', 'namespaces.tenant_id', 'sessions.tenant_id')
        .select([
          'sessions.uid',
          'sessions.tenant_id',
          'sessions.device_uid',
          'last_seen',
          'index_at',
          'index_failures',
        ])
        .where('index_at', '<=', now)
        .where('active', '=', 0)
        .where('recorded', '=', 1)
        .where('namespaces.search', '=', flag(true))
        .orderBy('index_at')
        .orderBy('sessions.last_seen', 'desc')
        .limit(limit)
      if (dialect === 'sqlite') return found.execute()
      return db
        .updateTable('sessions')
        .set({ index_at: until })
        .where('uid', 'in', found.clearSelect().select('sessions.uid').forUpdate('sessions').skipLocked())
        .returning(['uid', 'tenant_id', 'device_uid', 'last_seen', 'index_at', 'index_failures'])
        .execute()
    },
    /**
     * Undefined: fully indexed. Nothing is saved if the session has become due again since: there is
     * something new.
     */
    save: (
      { uid, index_at }: { uid: string; index_at: string | null },
      next: string | undefined,
      index_failures: number,
    ) =>
      db
        .updateTable('sessions')
        .set({ index_at: next ?? null, index_failures })
        .where('uid', '=', uid)
        .where('index_at', '=', index_at)
        .execute(),
    /** Saved before indexing, so that it counts even if the process ends. */
    noteFailures: (uid: string, index_failures: number) =>
      db.updateTable('sessions').set({ index_failures }).where('uid', '=', uid).execute(),
    async markAll(tenant_id?: string): Promise<void> {
      const all = db
        .updateTable('sessions')
        .set({ index_at: atOnce, index_failures: 0 })
        .where('recorded', '=', 1)
      await (tenant_id === undefined ? all : all.where('tenant_id', '=', tenant_id)).execute()
    },
    async isOn(tenant_id: string): Promise<boolean> {
      const row = await db
        .selectFrom('namespaces')
        .select('search')
        .where('tenant_id', '=', tenant_id)
        .executeTakeFirst()
      return row?.search === 1
    },
    /** The properties that hits are filtered by; undefined: the session is gone. */
    about: (tenant_id: string, uid: string): Promise<{ device_uid: string; person_id: string } | undefined> =>
      db
        .selectFrom('sessions')
        .select(['device_uid', 'person_id'])
        .where('tenant_id', '=', tenant_id)
        .where('uid', '=', uid)
        .executeTakeFirst(),
    async count(tenant_id: string): Promise<number> {
      const row = await recordedOf(tenant_id).where('index_at', 'is not', null).executeTakeFirst()
      return row?.n ?? 0
    },
    /** Sessions whose indexing ended its thread again and again. */
    async failed(tenant_id: string): Promise<number> {
      const row = await recordedOf(tenant_id)
        .where('index_failures', '>', 0)
        .where('index_at', 'is', null)
        .executeTakeFirst()
      return row?.n ?? 0
    },
    async backlog(): Promise<{ count: number; oldest: string | null }> {
      const row = await reader
        .selectFrom('sessions')
        .innerJoin('namespaces', 'namespaces.tenant_id', 'sessions.tenant_id')
        .select((all) => [
          all.fn.countAll<number>().as('count'),
          all.fn.min<string | null>('last_seen').as('oldest'),
        ])
        .where('index_at', 'is not', null)
        .where('active', '=', 0)
        .where('recorded', '=', 1)
        .where('namespaces.search', '=', flag(true))
        .executeTakeFirst()
      return row ?? { count: 0, oldest: null }
    },
  }
}

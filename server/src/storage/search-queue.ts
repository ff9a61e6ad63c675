// Which sessions are to be indexed for the search, in all namespaces. `index_at` of a session says when its
// recordings are next to be looked at; whoever begins or changes a recording sets it.
import { flag, type AllNamespaces } from './context.ts'

/** Before every moment: due at once. */
const atOnce = ''

export function searchQueueStore({ db, reader, dialect }: AllNamespaces) {
  return {
    /**
     * Sessions that are due and over, the longest due first. On PostgreSQL they are due again at `until`, so
     * that other nodes leave them alone; SQLite has one process.
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
     * Undefined: everything of the session is indexed. Nothing is saved if the session became due again since
     * `due` gave it: there is something new.
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
    /** Before it is indexed, so that it counts even if the process ends. */
    noteFailures: (uid: string, index_failures: number) =>
      db.updateTable('sessions').set({ index_failures }).where('uid', '=', uid).execute(),
    /** Everything that is recorded, or that of one namespace, is due. */
    async markAll(tenant_id?: string): Promise<void> {
      const all = db
        .updateTable('sessions')
        .set({ index_at: atOnce, index_failures: 0 })
        .where('recorded', '=', 1)
      await (tenant_id === undefined ? all : all.where('tenant_id', '=', tenant_id)).execute()
    },
    /** Whether the namespace wants to be searched. */
    async isOn(tenant_id: string): Promise<boolean> {
      const row = await db
        .selectFrom('namespaces')
        .select('search')
        .where('tenant_id', '=', tenant_id)
        .executeTakeFirst()
      return row?.search === 1
    },
    /** What a hit can be filtered by; undefined: the session is gone. */
    about: (tenant_id: string, uid: string): Promise<{ device_uid: string; person_id: string } | undefined> =>
      db
        .selectFrom('sessions')
        .select(['device_uid', 'person_id'])
        .where('tenant_id', '=', tenant_id)
        .where('uid', '=', uid)
        .executeTakeFirst(),
    /** How many sessions are not indexed yet. */
    async count(tenant_id: string): Promise<number> {
      const row = await db
        .selectFrom('sessions')
        .select((all) => all.fn.countAll<number>().as('n'))
        .where('tenant_id', '=', tenant_id)
        .where('index_at', 'is not', null)
        .where('recorded', '=', 1)
        .executeTakeFirst()
      return row?.n ?? 0
    },
    /** How many sessions are given up: indexing them ended its thread again and again. */
    async failed(tenant_id: string): Promise<number> {
      const row = await db
        .selectFrom('sessions')
        .select((all) => all.fn.countAll<number>().as('n'))
        .where('tenant_id', '=', tenant_id)
        .where('index_failures', '>', 0)
        .where('index_at', 'is', null)
        .where('recorded', '=', 1)
        .executeTakeFirst()
      return row?.n ?? 0
    },
    /** Of all namespaces: sessions that are over and not indexed, and when the oldest of them ended. */
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

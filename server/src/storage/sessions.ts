// Sessions of one namespace, and the live sessions of all.
import { sql, type Insertable, type Selectable, type Updateable } from 'kysely'
import type { AllNamespaces, NamespaceContext, Slice } from './context.ts'
import { isOne, offsetOf } from './context.ts'
import type { Tables } from './tables.ts'

export type SessionRow = Selectable<Tables['sessions']>

export interface SessionFilter {
  readonly active?: boolean | undefined
  readonly persons?: readonly string[] | undefined
  readonly device_uid?: string | undefined
  readonly method?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly recorded?: boolean | undefined
}

export const sessionStore = (context: NamespaceContext) => ({
  ...sessionRecords(context),
  ...sessionsOfDevices(context),
  ...sessionLists(context),
})

function sessionRecords(context: NamespaceContext) {
  const mine = () => context.select('sessions')

  return {
    find: (uid: string): Promise<SessionRow | undefined> =>
      mine().selectAll().where('uid', '=', uid).executeTakeFirst(),
    findMany: (uids: readonly string[]): Promise<SessionRow[]> =>
      uids.length === 0 ? Promise.resolve([]) : mine().selectAll().where('uid', 'in', uids).execute(),
    insert: (row: Omit<Insertable<Tables['sessions']>, 'tenant_id'>) =>
      context.insert('sessions', row).execute(),
    save: (uid: string, change: Updateable<Tables['sessions']>) =>
      context.update('sessions').set(change).where('uid', '=', uid).execute(),
    /** Saves unless another node has taken the session over. */
    saveOn: (node: string, uid: string, change: Updateable<Tables['sessions']>) =>
      context.update('sessions').set(change).where('uid', '=', uid).where('node', 'in', [node, '']).execute(),
    /** The same by a node that takes it over; false: it is over, or another one has taken it since it was read. */
    take: (row: Pick<SessionRow, 'uid' | 'node'>, change: Updateable<Tables['sessions']>) =>
      isOne(
        context
          .update('sessions')
          .set(change)
          .where('uid', '=', row.uid)
          .where('node', '=', row.node)
          .where('active', '=', 1),
      ),
  }
}

function sessionsOfDevices(context: NamespaceContext) {
  const mine = () => context.select('sessions')

  return {
    /** Sessions of a device whose terminal its agent keeps, according to the records. */
    detachedOfDevice: (device_uid: string): Promise<SessionRow[]> =>
      mine()
        .selectAll()
        .where('device_uid', '=', device_uid)
        .where(sql<boolean>`active = 1`)
        .where('kept_s', '>', 0)
        .where('held_until', '<>', '')
        .execute(),
    async anyOfDevice(device_uid: string): Promise<boolean> {
      return (
        (await mine().select('uid').where('device_uid', '=', device_uid).limit(1).executeTakeFirst()) !==
        undefined
      )
    },
    /**
     * A person's live sessions on an account of a device that other nodes have and whose agents keep their
     * terminals: held ones first, then the newest.
     */
    detachedElsewhere: (
      account: Pick<SessionRow, 'device_uid' | 'username' | 'person_kind' | 'person_id'>,
      node: string,
      most: number,
    ): Promise<SessionRow[]> =>
      mine()
        .selectAll()
        .where(sql<boolean>`active = 1`)
        .where('device_uid', '=', account.device_uid)
        .where('username', '=', account.username)
        .where('person_kind', '=', account.person_kind)
        .where('person_id', '=', account.person_id)
        .where('kept_s', '>', 0)
        .where('node', '!=', node)
        .where('resumes', '=', '')
        .orderBy('held_until', 'desc')
        .orderBy('started_at', 'desc')
        .limit(most)
        .execute(),
    removeOfDevice: (device_uid: string) =>
      context.remove('sessions').where('device_uid', '=', device_uid).execute(),
    /** Moves the history of a replaced device to its successor. */
    moveToDevice: (from: string, to: string) =>
      context
        .update('sessions')
        .set({ device_uid: to, index_at: sql`case when recorded = 1 then '' else index_at end` })
        .where('device_uid', '=', from)
        .execute(),
    closeOfDevice: (device_uid: string) =>
      context
        .update('sessions')
        .set({ active: 0 })
        .where('device_uid', '=', device_uid)
        .where('active', '=', 1)
        .execute(),
    touch: (device_uid: string, uids: readonly string[], now: string) =>
      context
        .update('sessions')
        .set({ last_seen: now })
        .where('device_uid', '=', device_uid)
        .where('active', '=', 1)
        .where('uid', 'in', uids)
        .execute(),
  }
}

function sessionLists(context: NamespaceContext) {
  function filtered(filter: SessionFilter) {
    const { active, persons, device_uid, method, from, to, recorded } = filter
    return (
      context
        .read('sessions')
        // Literals, so that both databases use their partial index.
        .$if(active !== undefined, (query) =>
          query.where(active ? sql<boolean>`active = 1` : sql<boolean>`active = 0`),
        )
        .$if(recorded !== undefined, (query) =>
          query.where(recorded ? sql<boolean>`recorded = 1` : sql<boolean>`recorded = 0`),
        )
        .$if(persons !== undefined, (query) => query.where('person_id', 'in', persons ?? []))
        .$if(device_uid !== undefined, (query) => query.where('device_uid', '=', device_uid ?? ''))
        .$if(method !== undefined, (query) => query.where('method', '=', method ?? ''))
        .$if(from !== undefined, (query) => query.where('started_at', '>=', from ?? ''))
        .$if(to !== undefined, (query) => query.where('started_at', '<=', to ?? ''))
    )
  }

  /** Newest first, or those with a client first. */
  function walk(filter: SessionFilter, size: number, skipped: number, order?: 'held last') {
    // SQLite would walk all sessions in the order of their start rather than sort those of two persons.
    const several = filter.persons !== undefined && filter.persons.length > 1
    return filtered(filter)
      .selectAll()
      .$if(order === 'held last', (query) => query.orderBy(sql`held_until <> ''`))
      .orderBy(several ? sql`started_at || ''` : 'started_at', 'desc')
      .orderBy('uid', 'desc')
      .limit(size)
      .offset(skipped)
      .execute()
  }

  async function count({ active, ...filter }: SessionFilter): Promise<number> {
    if (Object.values(filter).some((one) => one !== undefined)) {
      const { n } = await filtered({ active, ...filter })
        .select((eb) => eb.fn.countAll<number>().as('n'))
        .executeTakeFirstOrThrow()
      return n
    }
    const tallies = await context
      .read('tallies')
      .select(['subject', 'n'])
      .where('subject', 'in', ['sessions', 'sessions.active'])
      .execute()
    const of = (subject: string): number => tallies.find((tally) => tally.subject === subject)?.n ?? 0
    if (active === undefined) return of('sessions')
    return active ? of('sessions.active') : of('sessions') - of('sessions.active')
  }

  return {
    /** Days without sessions are left out. */
    async countsByDay(since: string): Promise<Map<string, number>> {
      const day = sql<string>`substr(started_at, 1, 10)`
      const rows = await context
        .read('sessions')
        .select([day.as('day'), (eb) => eb.fn.countAll<number>().as('n')])
        .where('started_at', '>=', since)
        .groupBy(day)
        .execute()
      return new Map(rows.map((row) => [row.day, row.n]))
    },

    async list(slice: Slice & SessionFilter & { live_first?: boolean | undefined }) {
      const { live_first, page: _, per_page, ...filter } = slice
      const skipped = offsetOf(slice)
      // Two walks along their own indexes: no index has live sessions first.
      if (live_first && filter.active === undefined) {
        const live = await count({ ...filter, active: true })
        const first =
          skipped < live ? await walk({ ...filter, active: true }, per_page, skipped, 'held last') : []
        const rest = { size: per_page - first.length, skipped: Math.max(0, skipped - live) }
        const others = rest.size > 0 ? await walk({ ...filter, active: false }, rest.size, rest.skipped) : []
        return { items: [...first, ...others], total: await count(filter) }
      }
      const order = live_first && filter.active ? 'held last' : undefined
      return { items: await walk(filter, per_page, skipped, order), total: await count(filter) }
    },
  }
}

export function liveSessionStore({ db }: AllNamespaces) {
  return {
    touch: (uids: readonly string[], now: string) =>
      db
        .updateTable('sessions')
        .set({ last_seen: now })
        .where('uid', 'in', uids)
        .where('active', '=', 1)
        .execute(),
    /** Restores sessions that were closed with a lost node that still has them, unless somebody closed them. */
    revive: (uids: readonly string[], node: string, now: string) =>
      db
        .updateTable('sessions')
        .set({ active: 1, node, last_seen: now })
        .where('uid', 'in', uids)
        .where('node', '=', '')
        .execute(),
    /**
     * Closes at most `most` sessions that a crash or a lost node left open. Sessions whose terminals agents keep stay
     * until their time is over; `detached`: only those.
     */
    closeOlderThan: (which: 'all' | 'detached', last_seen: string, now: string, most: number) =>
      db
        .updateTable('sessions')
        .set({ active: 0 })
        .where('uid', 'in', (eb) =>
          eb
            .selectFrom('sessions')
            .select('uid')
            .where('active', '=', 1)
            .where('last_seen', '<', last_seen)
            .$if(which === 'detached', (query) => query.where('kept_s', '>', 0))
            .where((is) =>
              is.or([is('kept_s', '=', 0), is.and([is('held_until', '<>', ''), is('held_until', '<', now)])]),
            )
            .limit(most),
        )
        .returning(['tenant_id', 'uid', 'username', 'device_uid'])
        .execute(),
    async anyDetached(): Promise<boolean> {
      const row = await db
        .selectFrom('sessions')
        .select('uid')
        .where(sql<boolean>`active = 1`)
        .where('kept_s', '>', 0)
        .where('held_until', '<>', '')
        .limit(1)
        .executeTakeFirst()
      return row !== undefined
    },
    /** Sessions whose terminals agents keep, but whose records lack the end of their hold. */
    detachedSince: (last_seen: string, most: number) =>
      db
        .selectFrom('sessions')
        .select(['tenant_id', 'uid', 'last_seen', 'kept_s'])
        .where('active', '=', 1)
        .where('last_seen', '<', last_seen)
        .where('kept_s', '>', 0)
        .where('held_until', '=', '')
        .limit(most)
        .execute(),
  }
}

// Sessions of one namespace, and those that are going on in all of them.
import { sql, type Insertable, type Selectable, type Updateable } from 'kysely'
import type { AllNamespaces, NamespaceContext, Slice } from './context.ts'
import { offsetOf } from './context.ts'
import type { Tables } from './tables.ts'

export type SessionRow = Selectable<Tables['sessions']>

/** Which sessions are listed; an absent field fits every session. */
export interface SessionFilter {
  /** Those that are going on, or those that are over. */
  readonly active?: boolean | undefined
  /** Those of one of these. */
  readonly persons?: readonly string[] | undefined
  readonly device_uid?: string | undefined
  readonly method?: string | undefined
  /** Those that began then or later, and then or earlier. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly recorded?: boolean | undefined
}

export function sessionStore(context: NamespaceContext) {
  const mine = () => context.select('sessions')

  function filtered(filter: SessionFilter) {
    const { active, persons, device_uid, method, from, to, recorded } = filter
    return (
      context
        .read('sessions')
        // Written out, so that both databases see that their index is for it.
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

  /** The newest first; or those that have a client first. */
  function walk(filter: SessionFilter, size: number, skipped: number, order?: 'held last') {
    // SQLite would walk all sessions in the order of their start rather than sort those of two ids.
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

  /** Of all and of those that are live the database keeps the count. */
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
    find: (uid: string): Promise<SessionRow | undefined> =>
      mine().selectAll().where('uid', '=', uid).executeTakeFirst(),
    findMany: (uids: readonly string[]): Promise<SessionRow[]> =>
      uids.length === 0 ? Promise.resolve([]) : mine().selectAll().where('uid', 'in', uids).execute(),
    insert: (row: Omit<Insertable<Tables['sessions']>, 'tenant_id'>) =>
      context.insert('sessions', row).execute(),
    save: (uid: string, change: Updateable<Tables['sessions']>) =>
      context.update('sessions').set(change).where('uid', '=', uid).execute(),
    /** The same by a node that has the session, unless another one has taken it over. */
    saveOn: (node: string, uid: string, change: Updateable<Tables['sessions']>) =>
      context.update('sessions').set(change).where('uid', '=', uid).where('node', 'in', [node, '']).execute(),
    /** The same by a node that takes it over; false: it is over, or another one has taken it since it was read. */
    async take(
      row: Pick<SessionRow, 'uid' | 'node'>,
      change: Updateable<Tables['sessions']>,
    ): Promise<boolean> {
      const result = await context
        .update('sessions')
        .set(change)
        .where('uid', '=', row.uid)
        .where('node', '=', row.node)
        .where('active', '=', 1)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },
    /** Those of a device that its agent keeps for their person, as far as the records say. */
    keptOfDevice: (device_uid: string): Promise<SessionRow[]> =>
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
    /** Live sessions of a person on an account of a device that other nodes have: held ones first, then the newest. */
    onOtherNodes: (
      account: Pick<SessionRow, 'device_uid' | 'username' | 'person_kind' | 'person_id'>,
      node: string,
      most: number,
    ): Promise<Pick<SessionRow, 'uid' | 'node' | 'held_until'>[]> =>
      mine()
        .select(['uid', 'node', 'held_until'])
        .where(sql<boolean>`active = 1`)
        .where('device_uid', '=', account.device_uid)
        .where('username', '=', account.username)
        .where('person_kind', '=', account.person_kind)
        .where('person_id', '=', account.person_id)
        .where('node', 'not in', ['', node])
        .where('resumes', '=', '')
        .orderBy('held_until', 'desc')
        .orderBy('started_at', 'desc')
        .limit(most)
        .execute(),
    removeOfDevice: (device_uid: string) =>
      context.remove('sessions').where('device_uid', '=', device_uid).execute(),
    /** A device that took another's place takes its history along. */
    moveToDevice: (from: string, to: string) =>
      context
        .update('sessions')
        // The search knows recordings by their device.
        .set({ device_uid: to, index_at: sql`case when recorded = 1 then '' else index_at end` })
        .where('device_uid', '=', from)
        .execute(),
    /** Ends the live sessions of a device in the records. */
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

    /** How many began on each day, from this one on; days without any are left out. */
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

/**
 * Sessions of all namespaces that are going on: what the gateway holds is written in batches, as presence is.
 */
export function liveSessionStore({ db }: AllNamespaces) {
  return {
    touch: (uids: readonly string[], now: string) =>
      db
        .updateTable('sessions')
        .set({ last_seen: now })
        .where('uid', 'in', uids)
        .where('active', '=', 1)
        .execute(),
    /**
     * They were written off with their node, which has them all the same. Those that somebody closed stay so.
     */
    revive: (uids: readonly string[], node: string, now: string) =>
      db
        .updateTable('sessions')
        .set({ active: 1, node, last_seen: now })
        .where('uid', 'in', uids)
        .where('node', '=', '')
        .execute(),
    /**
     * What a crash, or a node that is gone, left open; at most so many of them. Those whose terminals their agents
     * keep stay until that time is over; `kept`: only those.
     */
    closeOlderThan: (which: 'all' | 'kept', last_seen: string, now: string, most: number) =>
      db
        .updateTable('sessions')
        .set({ active: 0 })
        .where('uid', 'in', (eb) =>
          eb
            .selectFrom('sessions')
            .select('uid')
            .where('active', '=', 1)
            .where('last_seen', '<', last_seen)
            .$if(which === 'kept', (query) => query.where('kept_s', '>', 0))
            .where((is) =>
              is.or([is('kept_s', '=', 0), is.and([is('held_until', '<>', ''), is('held_until', '<', now)])]),
            )
            .limit(most),
        )
        .returning(['tenant_id', 'uid', 'username', 'device_uid'])
        .execute(),
    /** Whether there is any that an agent keeps for its person, as far as the records say. */
    async anyKept(): Promise<boolean> {
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
    /** Those of which nobody says until when they wait for their person, although their agents keep them. */
    keptSince: (last_seen: string, most: number) =>
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

export type SessionStore = ReturnType<typeof sessionStore>

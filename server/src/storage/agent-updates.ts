// The keys that sign agent releases, the releases offered, and the devices that are to install one. These
// stores see several namespaces, because updates take turns among all of them.
import { sql, type Selectable, type SqlBool } from 'kysely'
import { stopsUpdates } from './budgets.ts'
import { insertNew, type AllNamespaces, type ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export function updateKeyStore({ db }: ServerContext) {
  return {
    list: () => db.selectFrom('update_keys').selectAll().execute(),
    /** Keeps the one that is there already: another node may have been quicker. */
    insert: (row: Selectable<Tables['update_keys']>) => insertNew(db.insertInto('update_keys').values(row)),
  }
}

export function agentReleaseStore({ db }: ServerContext) {
  return {
    list: () => db.selectFrom('agent_releases').selectAll().orderBy('released_at', 'desc').execute(),
    insert: (row: Selectable<Tables['agent_releases']>) =>
      insertNew(db.insertInto('agent_releases').values(row)),
  }
}

export interface AgentCounts {
  readonly total: number
  /** Agents that run the build and have had a tunnel since. */
  readonly current: number
  readonly online: number
  readonly updating: number
  readonly failed: number
}

/** A build, and the processors it exists for, as devices name them. */
export interface Offer {
  readonly build: string
  readonly arches: readonly string[]
}

export interface UpdateTarget {
  readonly tenant_id: string
  readonly uid: string
}

export const noRequest = {
  update_build: '',
  update_wanted_at: null,
  update_asked_at: null,
  update_phase: '',
} as const

const mostAsked = 1000

const monthOf = (now: string): string => now.slice(0, 7)

// Literals: a parameter would not match the conditions of the indexes.
const isWanted = sql<SqlBool>`update_build <> ''`
const updatesItself = sql<SqlBool>`agent_ability = 'self'`

const behind = ({ db }: Pick<AllNamespaces, 'db'>, { build, arches }: Offer) =>
  db
    .selectFrom('devices')
    .where(updatesItself)
    .where('agent_build', '<>', build)
    .where('update_build', '<>', build)
    .where('status', '=', 'accepted')
    .where('info_arch', 'in', arches)

export const agentUpdateStore = (context: AllNamespaces) => ({
  ...requests(context),
  ...turns(context),
  ...waves(context),
})

/** Which devices of a namespace are behind, and which are to install a build. */
function requests(context: AllNamespaces) {
  const { db, reader } = context
  return {
    async counts(tenant_id: string, { build, arches }: Offer): Promise<AgentCounts> {
      const when = (condition: ReturnType<typeof sql>) =>
        sql<number>`coalesce(sum(case when ${condition} then 1 else 0 end), 0)`
      const isCurrent = sql`agent_build = ${build} and update_phase <> 'trying'`
      return reader
        .selectFrom('devices')
        .select((eb) => [
          eb.fn.countAll<number>().as('total'),
          when(isCurrent).as('current'),
          when(sql`${isCurrent} and online = 1`).as('online'),
          when(sql`update_build = ${build} or (agent_build = ${build} and update_phase = 'trying')`).as(
            'updating',
          ),
          when(sql`agent_build <> ${build} and update_build <> ${build} and update_failed = ${build}`).as(
            'failed',
          ),
        ])
        .where('tenant_id', '=', tenant_id)
        .where(updatesItself)
        .where('status', '=', 'accepted')
        .where('info_arch', 'in', arches)
        .executeTakeFirstOrThrow()
    },

    /**
     * Whether a device of the namespace runs another build: two steps in an index, because it runs every few
     * seconds.
     */
    async isBehind(tenant_id: string, { build }: Offer): Promise<boolean> {
      for (const side of ['<', '>'] as const) {
        const row = await db
          .selectFrom('devices')
          .select('uid')
          .where('tenant_id', '=', tenant_id)
          .where(updatesItself)
          .where('agent_build', side, build)
          .limit(1)
          .executeTakeFirst()
        if (row) return true
      }
      return false
    },

    /** Requests the build for these devices of the namespace, or for all; returns how many. */
    async want(
      tenant_id: string,
      offer: Offer,
      uids: readonly string[] | 'all',
      now: string,
    ): Promise<number> {
      const result = await db
        .updateTable('devices')
        .set({
          ...noRequest,
          update_build: offer.build,
          update_wanted_at: now,
          update_failed: '',
          update_reason: '',
        })
        .where('tenant_id', '=', tenant_id)
        .where('uid', 'in', (eb) =>
          eb
            .selectFrom(behind(context, offer).where('tenant_id', '=', tenant_id).select('uid').as('behind'))
            .select('behind.uid'),
        )
        .$if(uids !== 'all', (query) => query.where('uid', 'in', uids as readonly string[]))
        .executeTakeFirst()
      return Number(result.numUpdatedRows)
    },

    async cancel(tenant_id: string): Promise<void> {
      await db
        .updateTable('devices')
        .set(noRequest)
        .where('tenant_id', '=', tenant_id)
        .where(isWanted)
        .execute()
      await db.deleteFrom('update_waves').where('tenant_id', '=', tenant_id).execute()
    },
  }
}

function turns({ db, reader }: AllNamespaces) {
  return {
    /**
     * The namespaces of the devices that are fetching, one entry per device; silent ones asked before `since`
     * do not count.
     */
    async fetching(since: string): Promise<string[]> {
      const rows = await db
        .selectFrom('devices')
        .select('tenant_id')
        .where(isWanted)
        .where('update_asked_at', '>', since)
        .where('update_phase', 'in', ['', 'fetching'])
        .execute()
      return rows.map((row) => row.tenant_id)
    },

    /**
     * Asks the devices that have waited longest and are online within their data budgets, in all namespaces
     * but these.
     */
    async ask(most: number, now: string, except: readonly string[] = []): Promise<UpdateTarget[]> {
      if (most <= 0) return []
      // On the connection for lists, because there may be many devices of one namespace to step over.
      const next = await reader
        .selectFrom('devices')
        .select('uid')
        .where(isWanted)
        .where('update_asked_at', 'is', null)
        .where('online', '=', 1)
        .where('status', '=', 'accepted')
        .where(sql<SqlBool>`not ${stopsUpdates(monthOf(now))}`)
        .$if(except.length > 0, (query) => query.where('tenant_id', 'not in', except))
        .orderBy('update_wanted_at')
        .orderBy('uid')
        .limit(Math.min(most, mostAsked))
        .execute()
      if (next.length === 0) return []
      const uids = next.map((row) => row.uid)
      return db
        .updateTable('devices')
        .set({ update_asked_at: now, update_phase: '' })
        .where('uid', 'in', uids)
        .where(isWanted)
        .where('update_asked_at', 'is', null)
        .returning(['tenant_id', 'uid'])
        .execute()
    },

    async renew(build: string): Promise<UpdateTarget[]> {
      const found: UpdateTarget[] = []
      for (const side of ['<', '>'] as const)
        found.push(
          ...(await db
            .updateTable('devices')
            .set({ update_build: build, update_asked_at: null, update_phase: '' })
            .where(isWanted)
            .where('update_build', side, build)
            .returning(['tenant_id', 'uid'])
            .execute()),
        )
      return found
    },

    giveUp: (before: string, reason: string) =>
      db
        .updateTable('devices')
        .set((eb) => ({ ...noRequest, update_failed: eb.ref('update_build'), update_reason: reason }))
        .where(isWanted)
        .where('update_asked_at', '<', before)
        .returning(['tenant_id', 'uid'])
        .execute(),
  }
}

function waves(context: AllNamespaces) {
  const { db } = context
  return {
    async automatic(): Promise<string[]> {
      const rows = await db
        .selectFrom('namespaces')
        .select('tenant_id')
        .where('agent_updates', '=', 'automatic')
        .orderBy('tenant_id')
        .execute()
      return rows.map((row) => row.tenant_id)
    },

    /**
     * Devices for the next wave: online, within their data budgets, ordered by uid, which is as good as
     * chance.
     */
    async candidates(tenant_id: string, offer: Offer, most: number, now: string): Promise<string[]> {
      const rows = await behind(context, offer)
        .select('uid')
        .where('tenant_id', '=', tenant_id)
        .where('online', '=', 1)
        .where('update_failed', '<>', offer.build)
        .where(sql<SqlBool>`not ${stopsUpdates(monthOf(now))}`)
        .orderBy('uid')
        .limit(most)
        .execute()
      return rows.map((row) => row.uid)
    },

    /**
     * Devices whose data budget is used up leave their wave, which would otherwise wait until the next month.
     */
    postpone: (tenant_id: string, now: string) =>
      db
        .updateTable('devices')
        .set(noRequest)
        .where(isWanted)
        .where('update_asked_at', 'is', null)
        .where('tenant_id', '=', tenant_id)
        .where(stopsUpdates(monthOf(now)))
        .execute(),

    wave: (tenant_id: string) =>
      db.selectFrom('update_waves').selectAll().where('tenant_id', '=', tenant_id).executeTakeFirst(),
    saveWave: (row: Selectable<Tables['update_waves']>) =>
      db
        .insertInto('update_waves')
        .values(row)
        .onConflict((conflict) =>
          conflict.column('tenant_id').doUpdateSet({
            build: row.build,
            wave: row.wave,
            opened_at: row.opened_at,
            stopped: row.stopped,
          }),
        )
        .execute(),
    endWave: (tenant_id: string) =>
      db.deleteFrom('update_waves').where('tenant_id', '=', tenant_id).execute(),
  }
}

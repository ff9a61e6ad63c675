// What the database knows of agents and their updates: the keys that sign releases, the releases that were
// offered, and the devices that are to install one. Updates take turns among all namespaces, so these stores
// see several; who may ask for an update is decided elsewhere.
import { sql, type Selectable, type SqlBool } from 'kysely'
import { stopsUpdates } from './budgets.ts'
import type { AllNamespaces, ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export function updateKeyStore({ db }: ServerContext) {
  return {
    list: () => db.selectFrom('update_keys').selectAll().execute(),
    /** Keeps the one that is there already: another node may have been quicker. */
    insert: (row: Selectable<Tables['update_keys']>) =>
      db
        .insertInto('update_keys')
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .execute(),
  }
}

export function agentReleaseStore({ db }: ServerContext) {
  return {
    /** Newest first. */
    list: () => db.selectFrom('agent_releases').selectAll().orderBy('released_at', 'desc').execute(),
    /** Keeps what is there already: another node may have been quicker. */
    insert: (row: Selectable<Tables['agent_releases']>) =>
      db
        .insertInto('agent_releases')
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .execute(),
  }
}

/** Of one namespace: devices whose agent can update itself to the build. */
export interface AgentCounts {
  readonly total: number
  /** They run the build, and have a tunnel since. */
  readonly current: number
  /** Of these, the ones that are online. */
  readonly online: number
  readonly updating: number
  readonly failed: number
}

/** What is offered, and for which processors, as devices name them. */
export interface Offer {
  readonly build: string
  readonly arches: readonly string[]
}

export interface UpdateTarget {
  readonly tenant_id: string
  readonly uid: string
}

/** A device without a request. */
export const noRequest = {
  update_build: '',
  update_wanted_at: null,
  update_asked_at: null,
  update_phase: '',
} as const

/** Devices that are asked by one statement; there is another one a few seconds later. */
const mostAsked = 1000

const monthOf = (now: string): string => now.slice(0, 7)

// As the indexes say them: a parameter would not match their conditions.
const isWanted = sql<SqlBool>`update_build <> ''`
const updatesItself = sql<SqlBool>`agent_ability = 'self'`

export function agentUpdateStore({ db, reader }: AllNamespaces) {
  /** Accepted devices that could install the build, and have not. */
  const behind = ({ build, arches }: Offer) =>
    db
      .selectFrom('devices')
      .where(updatesItself)
      .where('agent_build', '<>', build)
      .where('update_build', '<>', build)
      .where('status', '=', 'accepted')
      .where('info_arch', 'in', arches)

  return {
    /** Namespaces whose agents are updated by themselves. */
    async automatic(): Promise<string[]> {
      const rows = await db
        .selectFrom('namespaces')
        .select('tenant_id')
        .where('agent_updates', '=', 'automatic')
        .orderBy('tenant_id')
        .execute()
      return rows.map((row) => row.tenant_id)
    },

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
     * Whether a device of the namespace runs another build; asked again and again, so two steps in an index.
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

    /** Asks for the build on these devices of the namespace, or all; gives how many it concerns. */
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
            .selectFrom(behind(offer).where('tenant_id', '=', tenant_id).select('uid').as('behind'))
            .select('behind.uid'),
        )
        .$if(uids !== 'all', (query) => query.where('uid', 'in', uids as readonly string[]))
        .executeTakeFirst()
      return Number(result.numUpdatedRows)
    },

    /**
     * Devices for the next wave: online, with data left in their budgets, in the order of their uids, which
     * is as good as chance.
     */
    async candidates(tenant_id: string, offer: Offer, most: number, now: string): Promise<string[]> {
      const rows = await behind(offer)
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
     * The namespaces of the devices that are fetching, one for each device; a device that was asked before
     * `since` and said nothing counts no more.
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
     * The turn of those who have waited longest, as far as they are online and have data left in their
     * budgets; not of these namespaces.
     */
    async ask(most: number, now: string, except: readonly string[] = []): Promise<UpdateTarget[]> {
      if (most <= 0) return []
      // The devices of one namespace may be many to step over: not on the connection for the rest.
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

    /**
     * Devices of the namespace whose data budget is used up leave their wave, so that it does not wait for
     * them until the next month. A later wave takes them.
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

    /** A newer build takes the place of the one that was asked for. */
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

    /** Those that were asked before this moment and have not reported back. */
    giveUp: (before: string, reason: string) =>
      db
        .updateTable('devices')
        .set((eb) => ({ ...noRequest, update_failed: eb.ref('update_build'), update_reason: reason }))
        .where(isWanted)
        .where('update_asked_at', '<', before)
        .returning(['tenant_id', 'uid'])
        .execute(),

    async cancel(tenant_id: string): Promise<void> {
      await db
        .updateTable('devices')
        .set(noRequest)
        .where('tenant_id', '=', tenant_id)
        .where(isWanted)
        .execute()
      await db.deleteFrom('update_waves').where('tenant_id', '=', tenant_id).execute()
    },

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

export type AgentUpdateStore = ReturnType<typeof agentUpdateStore>

// Sessions of one namespace, and those that are going on in all of them.
import { sql, type Insertable, type Selectable, type Updateable } from 'kysely'
import type { AllNamespaces, NamespaceContext, Slice } from './context.ts'
import { offsetOf } from './context.ts'
import type { Tables } from './tables.ts'

export type SessionRow = Selectable<Tables['sessions']>

export function sessionStore(context: NamespaceContext) {
  const mine = () => context.select('sessions')
  return {
    find: (uid: string): Promise<SessionRow | undefined> =>
      mine().selectAll().where('uid', '=', uid).executeTakeFirst(),
    insert: (row: Omit<Insertable<Tables['sessions']>, 'tenant_id'>) =>
      context.insert('sessions', row).execute(),
    save: (uid: string, change: Updateable<Tables['sessions']>) =>
      context.update('sessions').set(change).where('uid', '=', uid).execute(),
    async anyOfDevice(device_uid: string): Promise<boolean> {
      return (
        (await mine().select('uid').where('device_uid', '=', device_uid).limit(1).executeTakeFirst()) !==
        undefined
      )
    },
    removeOfDevice: (device_uid: string) =>
      context.remove('sessions').where('device_uid', '=', device_uid).execute(),
    /** A device that took another's place takes its history along. */
    moveToDevice: (from: string, to: string) =>
      context.update('sessions').set({ device_uid: to }).where('device_uid', '=', from).execute(),
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

    /** `active`: those that are going on, or those that are over. */
    async list(slice: Slice & { readonly active?: boolean | undefined }) {
      const { active } = slice
      const items = await context
        .read('sessions')
        .selectAll()
        // Written out, so that both databases see that their index is for it.
        .$if(active !== undefined, (query) =>
          query.where(active ? sql<boolean>`active = 1` : sql<boolean>`active = 0`),
        )
        .orderBy('started_at', 'desc')
        .orderBy('uid', 'desc')
        .limit(slice.per_page)
        .offset(offsetOf(slice))
        .execute()
      const tallies = await context
        .read('tallies')
        .select(['subject', 'n'])
        .where('subject', 'in', ['sessions', 'sessions.active'])
        .execute()
      const count = (subject: string): number => tallies.find((tally) => tally.subject === subject)?.n ?? 0
      if (active === undefined) return { items, total: count('sessions') }
      return {
        items,
        total: active ? count('sessions.active') : count('sessions') - count('sessions.active'),
      }
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
    /** What a crash, or a node that is gone, left open. */
    closeOlderThan: (last_seen: string) =>
      db
        .updateTable('sessions')
        .set({ active: 0 })
        .where('active', '=', 1)
        .where('last_seen', '<', last_seen)
        .execute(),
  }
}

export type SessionStore = ReturnType<typeof sessionStore>

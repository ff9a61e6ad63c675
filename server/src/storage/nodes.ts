// The nodes that share a PostgreSQL database, each with its last sign by the database's clock, because the
// nodes' clocks may differ. When one is silent for too long, exactly one other cleans up after it: its
// devices are offline, its sessions over. SQLite has one node and uses none of this.
import { sql } from 'kysely'
import type { AllNamespaces } from './context.ts'

export function nodeStore({ db }: AllNamespaces) {
  return {
    /** Records a sign; true if the node was known. */
    async sign(id: string, address: string): Promise<boolean> {
      const { rows } = await sql<{
        known: boolean
      }>`insert into nodes (id, address, seen_at) values (${id}, ${address}, clock_timestamp())
        on conflict (id) do update set seen_at = clock_timestamp() returning xmax <> 0 as known`.execute(db)
      return rows[0]!.known
    },
    async others(id: string, silent_ms: number): Promise<{ id: string; address: string; seen: string }[]> {
      const { rows } = await sql<{
        id: string
        address: string
        seen: string
      }>`select id, address, seen_at::text as seen from nodes
        where id <> ${id} and seen_at >= clock_timestamp() - make_interval(secs => ${silent_ms / 1000})`.execute(
        db,
      )
      return rows
    },
    /** Removes nodes that were silent for this long; each is returned to exactly one caller. */
    async lost(silent_ms: number): Promise<string[]> {
      const { rows } = await sql<{ id: string }>`delete from nodes
        where seen_at < clock_timestamp() - make_interval(secs => ${silent_ms / 1000}) returning id`.execute(
        db,
      )
      return rows.map((row) => row.id)
    },
    /** As `lost`, for nodes that had our address before us: they are certainly gone. */
    async predecessors(id: string, address: string): Promise<string[]> {
      const rows = await db
        .deleteFrom('nodes')
        .where('address', '=', address)
        .where('id', '<>', id)
        .returning('id')
        .execute()
      return rows.map((row) => row.id)
    },
    /** One node, the same for all: for work that is done once. */
    first: async (): Promise<string | undefined> =>
      (await db.selectFrom('nodes').select('id').orderBy('id').limit(1).executeTakeFirst())?.id,
    leave: (id: string) => db.deleteFrom('nodes').where('id', '=', id).execute(),
    async cleanUp(id: string) {
      const devices = await db
        .updateTable('devices')
        .set({ online: 0, node: '' })
        .where('node', '=', id)
        .returning('uid')
        .execute()
      // Agents keep the terminals of some sessions, and whichever node they reach continues those.
      const detached = await db
        .updateTable('sessions')
        .set({ node: '' })
        .where('node', '=', id)
        .where('active', '=', 1)
        .where('kept_s', '>', 0)
        .returning(['uid', 'tenant_id', 'held_until', 'last_seen', 'kept_s'])
        .execute()
      const sessions = await db
        .updateTable('sessions')
        .set({ active: 0, node: '' })
        .where('node', '=', id)
        .where('active', '=', 1)
        .returning(['uid', 'tenant_id', 'username', 'device_uid'])
        .execute()
      return { devices: devices.map((row) => row.uid), sessions, detached }
    },
    /** Devices and sessions that name a missing node: the node that should have cleaned up died, too. */
    async orphans(): Promise<string[]> {
      const { rows } = await sql<{ node: string }>`select distinct node from (
          select node from devices where node <> '' union select node from sessions where active = 1 and node <> '') as named
        where not exists (select from nodes where nodes.id = named.node)`.execute(db)
      return rows.map((row) => row.node)
    },
  }
}

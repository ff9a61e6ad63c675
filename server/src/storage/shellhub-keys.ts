// Public keys of a ShellHub that devices have moved from: whose device tokens count, in which namespaces.
import type { Selectable } from 'kysely'
import { insertNew, type AllNamespaces } from './context.ts'
import type { Tables } from './tables.ts'

export type ShellHubKeyRow = Selectable<Tables['shellhub_keys']>

/** Not namespaced: a token's namespace is known only once it is verified. */
export function shellHubKeyStore({ db }: AllNamespaces) {
  return {
    list: (): Promise<ShellHubKeyRow[]> =>
      db
        .selectFrom('shellhub_keys')
        .selectAll()
        .orderBy('added_at')
        .orderBy('tenant_id')
        .orderBy('fingerprint')
        .execute(),
    /** Adding one that is there changes nothing. */
    add: (row: ShellHubKeyRow) => insertNew(db.insertInto('shellhub_keys').values(row)),
    async remove(tenant_id: string): Promise<boolean> {
      return (
        (await db.deleteFrom('shellhub_keys').where('tenant_id', '=', tenant_id).executeTakeFirst())
          .numDeletedRows > 0n
      )
    },
  }
}

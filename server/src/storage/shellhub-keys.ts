// Public keys of a ShellHub that devices have moved from: whose device tokens are taken, in which namespaces.
import type { Selectable } from 'kysely'
import type { AllNamespaces } from './context.ts'
import type { Tables } from './tables.ts'

export type ShellHubKeyRow = Selectable<Tables['shellhub_keys']>

/** Of all namespaces: a token says which one it is for only to somebody who can verify it. */
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
    add: (row: ShellHubKeyRow) =>
      db
        .insertInto('shellhub_keys')
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .execute(),
    async remove(tenant_id: string): Promise<boolean> {
      return (
        (await db.deleteFrom('shellhub_keys').where('tenant_id', '=', tenant_id).executeTakeFirst())
          .numDeletedRows > 0n
      )
    },
  }
}

export type ShellHubKeyStore = ReturnType<typeof shellHubKeyStore>

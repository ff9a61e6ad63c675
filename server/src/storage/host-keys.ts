// The gateway's host keys, its key for approvals (type `approval`) and its key for identity certificates
// (type `identity`), sealed: one of each type. All nodes of an installation have the same.
import type { Selectable } from 'kysely'
import type { ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export function hostKeyStore({ db }: ServerContext) {
  return {
    list: () => db.selectFrom('host_keys').selectAll().orderBy('type').execute(),
    /** Keeps the one that is there already: another node may have been quicker. */
    insert: (row: Selectable<Tables['host_keys']>) =>
      db
        .insertInto('host_keys')
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .execute(),
  }
}

export type HostKeyStore = ReturnType<typeof hostKeyStore>

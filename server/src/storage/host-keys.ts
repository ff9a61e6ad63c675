// The gateway's sealed host keys, its key for approvals (type `approval`) and for identity certificates
// (`identity`). All nodes share them.
import type { Selectable } from 'kysely'
import { insertNew, type ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export function hostKeyStore({ db }: ServerContext) {
  return {
    list: () => db.selectFrom('host_keys').selectAll().orderBy('type').execute(),
    /** Keeps the one that is there already: another node may have been quicker. */
    insert: (row: Selectable<Tables['host_keys']>) => insertNew(db.insertInto('host_keys').values(row)),
  }
}

// The keys that sign tokens, sealed. The newest one signs, all of them verify.
import type { Selectable } from 'kysely'
import type { ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export function signingKeyStore({ db }: ServerContext) {
  return {
    list: () =>
      db.selectFrom('signing_keys').selectAll().orderBy('created_at', 'desc').orderBy('kid').execute(),
    insert: (row: Selectable<Tables['signing_keys']>) => db.insertInto('signing_keys').values(row).execute(),
  }
}

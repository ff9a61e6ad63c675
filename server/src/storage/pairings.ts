// Pairings that wait for somebody to confirm them, and their outcome for the agent that asks for it. They
// belong to no namespace before that. Codes are kept as keyed hashes, secrets as hashes.
import type { Insertable, Selectable } from 'kysely'
import type { ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export type PairingRow = Selectable<Tables['pairings']>

export function pairingStore({ db }: ServerContext) {
  return {
    insert: (row: Insertable<Tables['pairings']>) => db.insertInto('pairings').values(row).execute(),
    /** How many there are, of this source and of all. */
    async count(source: string): Promise<{ own: number; all: number }> {
      // Each walks over an index alone.
      const rows = () => db.selectFrom('pairings').select((eb) => eb.fn.countAll<number>().as('n'))
      const own = await rows().where('source', '=', source).executeTakeFirstOrThrow()
      const all = await rows().executeTakeFirstOrThrow()
      return { own: own.n, all: all.n }
    },
    findWaiting: (code: string, now: string): Promise<PairingRow | undefined> =>
      db
        .selectFrom('pairings')
        .selectAll()
        .where('code', '=', code)
        .where('state', '=', 'waiting')
        .where('expires_at', '>', now)
        .executeTakeFirst(),
    findBySecret: (secret: string, now: string): Promise<PairingRow | undefined> =>
      db
        .selectFrom('pairings')
        .selectAll()
        .where('secret', '=', secret)
        .where('expires_at', '>', now)
        .executeTakeFirst(),
    /** Moves it from one state to the next; true for the one caller who did. */
    async move(
      secret: string,
      from: PairingRow['state'],
      change: Pick<PairingRow, 'state'> &
        Partial<Pick<PairingRow, 'namespace' | 'confirmed_by' | 'expires_at'>>,
    ): Promise<boolean> {
      const result = await db
        .updateTable('pairings')
        .set(change)
        .where('secret', '=', secret)
        .where('state', '=', from)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },
    sweep: (now: string) => db.deleteFrom('pairings').where('expires_at', '<=', now).execute(),
  }
}

export type PairingStore = ReturnType<typeof pairingStore>

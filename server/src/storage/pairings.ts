// Pairings that wait for confirmation, and their outcome for the agent. They belong to no namespace before
// it. Codes are stored as keyed hashes, secrets as hashes.
import type { Insertable, Selectable } from 'kysely'
import { isOne, type ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export type PairingRow = Selectable<Tables['pairings']>

export function pairingStore({ db }: ServerContext) {
  return {
    insert: (row: Insertable<Tables['pairings']>) => db.insertInto('pairings').values(row).execute(),
    async count(source: string): Promise<{ own: number; all: number }> {
      // Separate counts, so that each walks an index alone.
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
    move: (
      secret: string,
      from: PairingRow['state'],
      change: Pick<PairingRow, 'state'> &
        Partial<Pick<PairingRow, 'namespace' | 'confirmed_by' | 'expires_at'>>,
    ) => isOne(db.updateTable('pairings').set(change).where('secret', '=', secret).where('state', '=', from)),
    sweep: (now: string) => db.deleteFrom('pairings').where('expires_at', '<=', now).execute(),
  }
}

// TLS certificates from an ACME server, private keys sealed. All nodes share a certificate; the node that
// holds the lease of its name orders it.
import type { Selectable } from 'kysely'
import type { ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export type CertificateRow = Selectable<Tables['certificates']>

export type CertificateName = Pick<CertificateRow, 'directory' | 'name'>

export function certificateStore({ db }: ServerContext) {
  const save = ({ directory, name }: CertificateName, change: Partial<CertificateRow>) =>
    db
      .updateTable('certificates')
      .set({ ...change, lease_holder: '', lease_ends_at: '' })
      .where('directory', '=', directory)
      .where('name', '=', name)
      .execute()
  return {
    find: ({ directory, name }: CertificateName): Promise<CertificateRow | undefined> =>
      db
        .selectFrom('certificates')
        .selectAll()
        .where('directory', '=', directory)
        .where('name', '=', name)
        .executeTakeFirst(),
    /** The names for which a certificate was issued. */
    async names(directory: string): Promise<string[]> {
      const rows = await db
        .selectFrom('certificates')
        .select('name')
        .where('directory', '=', directory)
        .where('chain', '<>', '')
        .execute()
      return rows.map(({ name }) => name)
    },
    /**
     * Takes the lease until `ends_at` and returns the row, which it creates where needed; undefined: another
     * node holds it.
     */
    lease: (
      which: CertificateName,
      holder: string,
      now: string,
      ends_at: string,
    ): Promise<CertificateRow | undefined> =>
      db
        .insertInto('certificates')
        .values({ ...which, lease_holder: holder, lease_ends_at: ends_at })
        .onConflict((conflict) =>
          conflict
            .columns(['directory', 'name'])
            .doUpdateSet({ lease_holder: holder, lease_ends_at: ends_at })
            .where((where) =>
              where.or([
                where('certificates.lease_ends_at', '<', now),
                where('certificates.lease_holder', '=', holder),
              ]),
            ),
        )
        .returningAll()
        .executeTakeFirst(),
    release: (which: CertificateName) => save(which, {}),
    issued: (which: CertificateName, chain: string, private_key: string) =>
      save(which, { chain, private_key, failures: 0, retry_at: '' }),
    failed: (which: CertificateName, failures: number, retry_at: string) =>
      save(which, { failures, retry_at }),
    async account(directory: string): Promise<string | undefined> {
      const row = await db
        .selectFrom('acme_accounts')
        .select('private_key')
        .where('directory', '=', directory)
        .executeTakeFirst()
      return row?.private_key
    },
    saveAccount: (row: Selectable<Tables['acme_accounts']>) =>
      db
        .insertInto('acme_accounts')
        .values(row)
        .onConflict((conflict) =>
          conflict
            .column('directory')
            .doUpdateSet({ private_key: row.private_key, created_at: row.created_at }),
        )
        .execute(),
    async challenge(token: string, now: string): Promise<string | undefined> {
      const row = await db
        .selectFrom('acme_challenges')
        .select('answer')
        .where('token', '=', token)
        .where('expires_at', '>', now)
        .executeTakeFirst()
      return row?.answer
    },
    async addChallenge(row: Selectable<Tables['acme_challenges']>, now: string): Promise<void> {
      await db.deleteFrom('acme_challenges').where('expires_at', '<=', now).execute()
      await db
        .insertInto('acme_challenges')
        .values(row)
        .onConflict((conflict) => conflict.column('token').doUpdateSet({ expires_at: row.expires_at }))
        .execute()
    },
  }
}

export type CertificateStore = ReturnType<typeof certificateStore>

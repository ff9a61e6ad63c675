// Wrong attempts by subject (who, from where, at what) and the locks they led to. Kept in the database so
// that a restart, or another node, does not forgive.
import type { ServerContext } from './context.ts'

export function attemptStore({ db }: ServerContext) {
  return {
    find: (subject: string, now: string) =>
      db
        .selectFrom('attempts')
        .selectAll()
        .where('subject', '=', subject)
        .where('expires_at', '>', now)
        .executeTakeFirst(),

    /**
     * Counts an attempt in one statement, so that parallel guesses cannot share a count. The first attempt
     * sets when the count expires; else repeated attempts would prolong it for ever.
     */
    async count(subject: string, now: string, expires_at: string): Promise<number> {
      const row = await db
        .insertInto('attempts')
        .values({ subject, count: 1, locked_until: null, expires_at })
        .onConflict((oc) =>
          oc.column('subject').doUpdateSet((eb) => ({
            count: eb
              .case()
              .when('attempts.expires_at', '>', now)
              .then(eb('attempts.count', '+', 1))
              .else(1)
              .end(),
            locked_until: null,
            expires_at: eb
              .case()
              .when('attempts.expires_at', '>', now)
              .then(eb.ref('attempts.expires_at'))
              .else(expires_at)
              .end(),
          })),
        )
        .returning('count')
        .executeTakeFirstOrThrow()
      return row.count
    },

    lock: (subject: string, locked_until: string | null, expires_at: string) =>
      db.updateTable('attempts').set({ locked_until, expires_at }).where('subject', '=', subject).execute(),

    clear: (subject: string) => db.deleteFrom('attempts').where('subject', '=', subject).execute(),
    sweep: (now: string) => db.deleteFrom('attempts').where('expires_at', '<=', now).execute(),
  }
}

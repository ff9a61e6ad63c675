// Networks with recent SSH logins, which the gateway admits while strangers crowd it, also after a restart.
import type { ServerContext } from './context.ts'

export function knownSourceStore({ db }: ServerContext) {
  return {
    note: (source: string, logged_in_at: string) =>
      db
        .insertInto('known_sources')
        .values({ source, logged_in_at })
        .onConflict((oc) => oc.column('source').doUpdateSet({ logged_in_at }))
        .execute(),

    list: (since: string, most: number) =>
      db
        .selectFrom('known_sources')
        .selectAll()
        .where('logged_in_at', '>', since)
        .orderBy('logged_in_at', 'desc')
        .limit(most)
        .execute(),

    async sweep(before: string, most: number): Promise<void> {
      const tooOld = await db
        .selectFrom('known_sources')
        .select('logged_in_at')
        .where('logged_in_at', '>', before)
        .orderBy('logged_in_at', 'desc')
        .offset(most)
        .limit(1)
        .executeTakeFirst()
      await db
        .deleteFrom('known_sources')
        .where('logged_in_at', '<=', tooOld?.logged_in_at ?? before)
        .execute()
    },
  }
}

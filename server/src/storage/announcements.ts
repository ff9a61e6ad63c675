// Announcements of the server's administrator.
import type { Selectable } from 'kysely'
import type { ServerContext, Slice } from './context.ts'
import { offsetOf } from './context.ts'
import type { Tables } from './tables.ts'

export function announcementStore({ db }: ServerContext) {
  return {
    find: (uuid: string) =>
      db.selectFrom('announcements').selectAll().where('uuid', '=', uuid).executeTakeFirst(),
    insert: (row: Selectable<Tables['announcements']>) =>
      db.insertInto('announcements').values(row).execute(),
    async remove(uuid: string): Promise<boolean> {
      return (
        (await db.deleteFrom('announcements').where('uuid', '=', uuid).executeTakeFirst()).numDeletedRows ===
        1n
      )
    },
    async list(slice: Slice, order: 'asc' | 'desc') {
      const items = await db
        .selectFrom('announcements')
        .select(['uuid', 'title', 'date'])
        .orderBy('date', order)
        .orderBy('uuid', order)
        .limit(slice.per_page)
        .offset(offsetOf(slice))
        .execute()
      const { n } = await db
        .selectFrom('announcements')
        .select((eb) => eb.fn.countAll<number>().as('n'))
        .executeTakeFirstOrThrow()
      return { items, total: n }
    },
  }
}

export type AnnouncementStore = ReturnType<typeof announcementStore>

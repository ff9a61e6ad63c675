// Announcements of the server's administrator.
import type { Selectable } from 'kysely'
import type { ServerContext, Slice } from './context.ts'
import { isOne, pageOf } from './context.ts'
import type { Tables } from './tables.ts'

export function announcementStore({ db }: ServerContext) {
  return {
    find: (uuid: string) =>
      db.selectFrom('announcements').selectAll().where('uuid', '=', uuid).executeTakeFirst(),
    insert: (row: Selectable<Tables['announcements']>) =>
      db.insertInto('announcements').values(row).execute(),
    remove: (uuid: string) => isOne(db.deleteFrom('announcements').where('uuid', '=', uuid)),
    list: (slice: Slice, order: 'asc' | 'desc') =>
      pageOf(db.selectFrom('announcements'), slice, (all) =>
        all.select(['uuid', 'title', 'date']).orderBy('date', order).orderBy('uuid', order),
      ),
  }
}

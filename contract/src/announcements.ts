// Announcements of the server's administrator, who writes them on the command line. Everyone can read them.
import Type, { type Static } from './type.ts'
import { anyone } from './access.ts'
import { sample } from './examples.ts'
import { OrderBy, paging, Timestamp, Uuid } from './fields.ts'
import { operation } from './operation.ts'

export const Announcement = Type.Object({
  uuid: Uuid,
  title: Type.String(),
  content: Type.String({ description: 'Markdown.' }),
  date: Timestamp,
})
export type Announcement = Static<typeof Announcement>

export const announcements = {
  list: operation({
    title: 'List announcements',
    summary: 'The announcements, newest first unless asked otherwise.',
    method: 'GET',
    path: '/api/announcements',
    access: anyone,
    query: Type.Object({ ...paging, order_by: OrderBy }),
    list: Type.Omit(Announcement, ['content']),
    failures: [],
    example: { query: { order_by: 'asc' } },
  }),
  get: operation({
    title: 'Get an announcement',
    summary: 'One announcement.',
    method: 'GET',
    path: '/api/announcements/:uuid',
    access: anyone,
    params: Type.Object({ uuid: Uuid }),
    answer: Announcement,
    failures: [],
    example: { params: { uuid: sample.announcement } },
  }),
}

// Announcements: everyone reads them; the administrator's commands write them.
import { Failure } from '@hawser/contract/failures'
import type { Stores } from '../../storage/stores.ts'
import type { Rules } from '../callers/rules.ts'

export function announcements({ stores }: { stores: Stores }): Rules<'announcements'> {
  return {
    list: ({ query }) => stores.announcements.list(query, query.order_by),
    async get({ params }) {
      const found = await stores.announcements.find(params.uuid)
      if (!found) throw new Failure('notFound')
      return found
    },
  }
}

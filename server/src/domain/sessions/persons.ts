// Who opened a session: as its record has it, and as people name somebody in searches.
import type { Session } from '@hawser/contract/sessions'
import type { SessionRow } from '../../storage/sessions.ts'
import type { Stores } from '../../storage/stores.ts'

export const personOf = (
  row: Pick<SessionRow, 'person_kind' | 'person_id' | 'person_name' | 'person_created_by'>,
): Session['person'] => ({
  kind: row.person_kind,
  id: row.person_id,
  name: row.person_name,
  ...(row.person_created_by === '' ? {} : { created_by: row.person_created_by }),
})

/**
 * The ids that a person's name may stand for: itself, and that of the user with this name. There are always
 * two, so that timing does not reveal whether such a user exists elsewhere on the server.
 */
export async function personIds(stores: Pick<Stores, 'users'>, person: string): Promise<string[]> {
  const user = await stores.users.findByUsername(person.toLowerCase())
  return [person, user?.id ?? person]
}

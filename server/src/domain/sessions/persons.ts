// Who opened a session: as its record has it, and how people name somebody when they look for sessions.
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
 * The ids that a person's name may stand for: itself, and the id of the user who has this user name
 * now. There are always two, so that the time of an answer does not tell whether such a user exists
 * elsewhere on the server.
 */
export async function personIds(stores: Pick<Stores, 'users'>, person: string): Promise<string[]> {
  const user = await stores.users.findByUsername(person.toLowerCase())
  return [person, user?.id ?? person]
}

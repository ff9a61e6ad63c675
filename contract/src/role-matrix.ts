// Who may do what in a namespace: a row for each operation that members call, with the roles that it admits.
// Made from the operations themselves, so it cannot differ from what the server checks.
import { rank, roles, type Role } from './access.ts'
import { operations, type Contract } from './index.ts'
import { nouns } from './openapi.ts'

export interface RoleMatrixRow {
  readonly noun: keyof Contract
  readonly thing: string
  readonly title: string
  readonly summary: string
  readonly least: Role
  readonly allowed: Readonly<Record<Role, boolean>>
  /** Whether an API key of such a role may, too. */
  readonly apiKey: boolean
}

export function roleMatrix(): RoleMatrixRow[] {
  return operations.flatMap(({ noun, op: { access, title, summary, deprecated } }) => {
    if ((access.who !== 'member' && access.who !== 'device-or-member') || deprecated) return []
    const { role: least, apiKey } = access
    const allowed = Object.fromEntries(roles.map((role) => [role, rank(role) >= rank(least)]))
    return [
      {
        noun,
        thing: nouns[noun][0],
        title,
        summary,
        least,
        allowed: allowed as Record<Role, boolean>,
        apiKey,
      },
    ]
  })
}

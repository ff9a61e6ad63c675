// Tables about people, beside those of tables.ts, which says what the columns are made of.
import type { MemberRole } from '@hawser/contract/access'
import type { Flag, TenantId } from './columns.ts'

export interface PeopleTables {
  /** Where users are signed in. Every token belongs to one of them, and counts while it is there. */
  sign_ins: {
    id: string
    user_id: string
    /** What the client says it is, in its first request. */
    agent: string
    /** The address of its first request. */
    source: string
    created_at: string
    /** The address of a late request, and its moment: of the last one or of a few minutes before. */
    used_from: string
    used_at: string
    /** No token of it lives longer. */
    expires_at: string
  }
  /** People who are invited into a namespace and have not accepted yet. */
  member_invitations: {
    id: string
    tenant_id: TenantId
    email: string
    role: MemberRole
    hash: string
    /** The token went to the address and to nobody else, so whoever has it reads the mailbox. */
    by_mail: Flag
    invited_by: string
    valid_days: number
    created_at: string
    sent_at: string
    expires_at: string
  }
  /** Networks from which somebody logged in by SSH within a day. */
  known_sources: { source: string; logged_in_at: string }
}

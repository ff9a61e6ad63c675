// Tables about people; tables.ts says what columns are made of.
import type { MemberRole } from '@hawser/contract/access'
import type { Flag, TenantId } from './columns.ts'

export interface PeopleTables {
  /** Where users are signed in. Every token belongs to one, and counts while it is there. */
  sign_ins: {
    id: string
    user_id: string
    /** The client's User-Agent in its first request. */
    agent: string
    source: string
    created_at: string
    /** Noted every few minutes. */
    used_from: string
    used_at: string
    expires_at: string
  }
  member_invitations: {
    id: string
    tenant_id: TenantId
    email: string
    role: MemberRole
    hash: string
    /** The token was sent by e-mail only, so its holder reads the mailbox. */
    by_mail: Flag
    invited_by: string
    valid_days: number
    created_at: string
    sent_at: string
    expires_at: string
  }
  known_sources: { source: string; logged_in_at: string }
}

// The tables of the audit log and its streams; tables.ts says what their columns are like.
import type { Generated } from 'kysely'
import type { Flag, TenantId } from './columns.ts'

export interface AuditTables {
  /** The audit log of each namespace; tenant_id empty: the server's own. */
  audit_entries: {
    tenant_id: TenantId
    seq: number
    at: string
    action: string
    actor_kind: string
    actor_id: string
    actor_name: string
    source: string
    request_id: string
    target_kind: string
    target_id: string
    target_name: string
    detail: string
    hash: string
  }
  audit_heads: {
    tenant_id: TenantId
    seq: number
    hash: string
    at: string
    first_seq: number
    first_hash: string
  }
  audit_streams: {
    uid: string
    tenant_id: TenantId
    name: string
    /** Sealed JSON {url, secret, ca}. */
    receiver: string
    enable: Flag
    sent_seq: number
    failures: Generated<number>
    error: Generated<string>
    /** Moments, or empty. */
    failing_since: Generated<string>
    retry_at: Generated<string>
    attempted_at: Generated<string>
    sent_at: Generated<string>
    /** The node that delivers it; empty on SQLite, or while nobody does. */
    node: Generated<string>
    created_at: string
  }
  audit_dead_letters: {
    id: Generated<number>
    tenant_id: TenantId
    stream: string
    from_seq: number
    to_seq: number
    /** trimmed: the log no longer has them. */
    reason: 'unsent' | 'trimmed'
    error: string
    queued: Generated<Flag>
    at: string
  }
}

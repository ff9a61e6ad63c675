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
    /** Canonical JSON. */
    detail: string
    hash: string
  }
  /** The newest entry of each log, and the oldest that is kept with the hash before it. */
  audit_heads: {
    tenant_id: TenantId
    seq: number
    hash: string
    at: string
    first_seq: number
    first_hash: string
  }
  /** Where audit logs are sent. */
  audit_streams: {
    uid: string
    tenant_id: TenantId
    name: string
    /** Sealed JSON {url, secret, ca}. */
    receiver: string
    enable: Flag
    /** The newest entry that the receiver has taken. */
    sent_seq: number
    /** Since the last success. */
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
  /** Ranges of entries that the receiver of a stream did not take in time. */
  audit_dead_letters: {
    id: Generated<number>
    tenant_id: TenantId
    stream: string
    from_seq: number
    to_seq: number
    /** trimmed: the log does not have them any more. */
    reason: 'unsent' | 'trimmed'
    error: string
    /** They are to be sent again. */
    queued: Generated<Flag>
    at: string
  }
}

// The audit log of a namespace: who changed what, signed in, logged in, watched or was refused, from where
// and when. Entries are numbered, chained by hashes (audit-chain.ts), never changed, and hold no secrets.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { TenantId, Timestamp } from './fields.ts'
import { operation } from './operation.ts'

export const actorKinds = [
  'user',
  'api-key',
  'certificate',
  'device',
  'admin',
  'server',
  'anonymous',
] as const

const Target = Type.Object({ kind: Type.String(), id: Type.String(), name: Type.String() })

export const AuditEntry = Type.Object({
  tenant_id: Type.String({ description: 'The id of the namespace; empty: the server’s own log.' }),
  seq: Type.Integer({ description: 'Counted from 1 in each namespace, without gaps.' }),
  at: Timestamp,
  action: Type.String({ description: 'Such as `device.accepted`; the reference lists all of them.' }),
  actor: Type.Object(
    {
      kind: Type.String({ description: actorKinds.join(', ') }),
      id: Type.String(),
      name: Type.String(),
    },
    { description: 'Who did it. `admin`: a command on the server’s machine.' },
  ),
  source: Type.String({ description: 'The address that the request came from; empty: the server itself.' }),
  request_id: Type.String({
    description: 'The `X-Request-Id` of the answer; the log of the server has it, too.',
  }),
  target: Target,
  detail: Type.Record(Type.String(), Type.Unknown(), {
    description: '`before` and `after` with the fields that differ, and more by action. Never a secret.',
  }),
  hash: Type.String({ description: 'SHA-256 over the hash of the entry before and this entry, in hex.' }),
})
export type AuditEntry = Static<typeof AuditEntry>

export const AuditHead = Type.Object({
  tenant_id: TenantId,
  seq: Type.Integer({ description: 'The newest entry; 0: there is none.' }),
  hash: Type.String(),
  at: Type.String({ description: 'When the newest entry was written; empty: there is none.' }),
  first_seq: Type.Integer({ description: 'The oldest entry that is kept.' }),
  first_hash: Type.String({ description: 'The hash of the entry before that one.' }),
  signed_at: Timestamp,
  public_key: Type.String({ description: 'Ed25519, raw, in base64.' }),
  signature: Type.String({ description: 'Of seq, hash and both moments, in base64.' }),
})
export type AuditHead = Static<typeof AuditHead>

export const defaultRetention_days = 365
export const mostEntries = 500

const Text = Type.Optional(Type.String({ minLength: 1, maxLength: 255 }))
const Seq = Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))

const filters = {
  action: Type.Optional(
    Type.String({
      pattern: '^[a-z.-]{1,64}$',
      description: 'The beginning of an action: `firewall.` or `device.accepted`.',
    }),
  ),
  actor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 255, description: 'The id or the name of who did it.' }),
  ),
  target: Type.Optional(
    Type.String({ minLength: 1, maxLength: 255, description: 'The id or the name of what it was done to.' }),
  ),
  source: Text,
  from: Type.Optional(Type.String({ format: 'date-time', maxLength: 40, description: 'Not before.' })),
  to: Type.Optional(Type.String({ format: 'date-time', maxLength: 40, description: 'Before.' })),
}
const AuditFilter = Type.Object(filters)
export type AuditFilter = Static<typeof AuditFilter>

export const audit = {
  list: operation({
    title: 'Get audit log',
    summary:
      'Entries of the audit log, newest first; with `after` oldest first. Each call looks at a bounded number of entries.',
    method: 'GET',
    path: '/api/audit',
    access: member('administrator'),
    query: Type.Object({
      ...filters,
      before: Seq,
      after: Seq,
      limit: Type.Integer({
        minimum: 1,
        maximum: mostEntries,
        description: 'The maximum number of entries.',
        default: 100,
      }),
    }),
    answer: Type.Object({
      entries: Type.Array(AuditEntry),
      next: Type.Union([Type.Null(), Type.Integer()], {
        description: 'For `before` or `after` of the next call; null: there is nothing more for now.',
      }),
    }),
    failures: [],
    example: { query: { action: 'device.', limit: '20' } },
  }),
  export: operation({
    title: 'Export audit log',
    summary:
      'The whole log, or what a filter leaves of it, oldest first: a line of JSON for each entry, and the signed head at the end.',
    method: 'GET',
    path: '/api/audit/export',
    access: member('administrator'),
    audit: 'audit.exported',
    query: AuditFilter,
    text: 'application/x-ndjson',
    streamed: true,
    headers: Type.Object({ 'content-disposition': Type.String() }),
    failures: [],
    example: {},
  }),
  exportCsv: operation({
    title: 'Export audit log as CSV',
    summary: 'The same for spreadsheets. Only the other form can be verified.',
    method: 'GET',
    path: '/api/audit/export.csv',
    access: member('administrator'),
    audit: 'audit.exported',
    query: AuditFilter,
    text: 'text/csv; charset=utf-8',
    streamed: true,
    headers: Type.Object({ 'content-disposition': Type.String() }),
    failures: [],
    example: {},
  }),
  head: operation({
    title: 'Get audit head',
    summary:
      'How far the log has come, signed by the server. Kept elsewhere, it proves later that nothing before it has changed.',
    method: 'GET',
    path: '/api/audit/head',
    access: member('administrator'),
    answer: AuditHead,
    failures: [],
    example: {},
  }),
}

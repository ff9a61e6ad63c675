// Audit streams send a namespace's audit log to a webhook or a syslog server. Each stream has a place in the
// log, the newest entry that its receiver has taken. Entries go out in order, at least once, and again until
// taken. What a receiver refuses for a week, or what is more than 100,000 entries behind, becomes a dead
// letter: a range that can be sent again. docs/guides/auditing.md says what receivers get and how they check
// it.
import Type, { type Static } from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { Paging, paging, TenantId, Timestamp, Uuid } from './fields.ts'
import { operation } from './operation.ts'

/** Each has at most one request under way. */
export const mostStreams = 10
/** Days until entries that a receiver does not take become a dead letter. */
export const giveUp_days = 7
export const mostUnsent = 100_000
/** A new one replaces the oldest. */
export const mostDeadLetters = 100

export const signatureHeader = 'hawser-signature'

/** The signed text: `t` of the header, a dot, and the body as it was sent. */
export const webhookText = (time_s: number, body: string): string => `${time_s}.${body}`

export const streamKinds = ['webhook', 'syslog'] as const
export type StreamKind = (typeof streamKinds)[number]

export const AuditStream = Type.Object({
  uid: Uuid,
  tenant_id: TenantId,
  name: Type.String(),
  kind: Type.String({ description: `${streamKinds.join(' or ')}, by the scheme of the URL.` }),
  url: Type.String(),
  ca: Type.Union([Type.Null(), Type.String()], {
    description: 'The certificates that sign the receiver’s, in PEM; null: those that Node.js knows.',
  }),
  enable: Type.Boolean(),
  state: Type.String({
    description: 'off; sending: the receiver took the last batch, or got none yet; failing: it did not.',
  }),
  sent_seq: Type.Integer({ description: 'The newest entry that the receiver has taken.' }),
  unsent: Type.Integer({ description: 'How many entries wait to be sent.' }),
  failures: Type.Integer({ description: 'Attempts that failed since the last batch that was taken.' }),
  error: Type.String({ description: 'Why the last attempt failed; empty: it did not.' }),
  failing_since: Type.Union([Type.Null(), Timestamp]),
  retry_at: Type.Union([Type.Null(), Timestamp], { description: 'When the next attempt is made.' }),
  sent_at: Type.Union([Type.Null(), Timestamp], { description: 'When the receiver last took something.' }),
  dead_letters: Type.Integer({
    description: 'How many ranges of entries the receiver did not take in time.',
  }),
  created_at: Timestamp,
})
export type AuditStream = Static<typeof AuditStream>

export const deadLetterReasons = ['unsent', 'trimmed'] as const
export type DeadLetterReason = (typeof deadLetterReasons)[number]

export const DeadLetter = Type.Object({
  id: Type.String({ description: 'A decimal number, sent as a string.' }),
  from_seq: Type.Integer({ description: 'The first entry.' }),
  to_seq: Type.Integer({ description: 'The last one.' }),
  reason: Type.String({
    description:
      'unsent: the receiver did not take them in time; trimmed: the log no longer has them, so they cannot be sent.',
  }),
  error: Type.String({ description: 'Why the last attempt failed.' }),
  queued: Type.Boolean({ description: 'They are being sent again.' }),
  at: Timestamp,
})
export type DeadLetter = Static<typeof DeadLetter>

const Name = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
  description: '1 to 63 letters, digits, dots, hyphens or underscores',
})
const Url = Type.String({
  minLength: 1,
  maxLength: 2048,
  pattern: '^(https?|syslog\\+(tls|tcp))://[\\x21-\\x7e]+$',
  description:
    'https://… of a webhook, or syslog+tls://host:port of a syslog server (RFC 5424). http:// and syslog+tcp:// only for ' +
    'receivers that the server’s administrator allows (HAWSER_STREAM_ALLOW).',
})
const Secret = Type.String({
  minLength: 16,
  maxLength: 256,
  pattern: '^[\\x21-\\x7e]+$',
  description:
    'Signs what a webhook gets; 16 to 256 characters without spaces. Absent: the server makes one.',
})
const Ca = Type.Union([Type.Null(), Type.String({ minLength: 1, maxLength: 65_536 })], {
  description: 'Certificates in PEM that sign the receiver’s certificate.',
})
/** Large enough for the certificates as a JSON string. */
const largestBody = 128 * 1024
const params = Type.Object({ uid: Uuid })
const aStream = { params: { uid: sample.auditStream } }

export const auditStreams = {
  list: operation({
    title: 'Get audit streams',
    summary: 'Where the audit log of the namespace is sent to, and how far each receiver is.',
    method: 'GET',
    path: '/api/audit/streams',
    access: member('administrator'),
    query: Paging,
    list: AuditStream,
    failures: [],
    example: { query: { page: '1' } },
  }),
  get: operation({
    title: 'Get audit stream',
    summary: 'One audit stream.',
    method: 'GET',
    path: '/api/audit/streams/:uid',
    access: member('administrator'),
    params,
    answer: AuditStream,
    failures: [],
    example: aStream,
  }),
  create: operation({
    title: 'Create audit stream',
    summary:
      'Sends the audit log to a webhook or a syslog server from now on. The answer has the secret that signs what a webhook ' +
      'gets; it is shown only here.',
    method: 'POST',
    path: '/api/audit/streams',
    access: member('administrator'),
    audit: 'audit-stream.created',
    body: Type.Object({
      name: Name,
      url: Url,
      secret: Type.Optional(Secret),
      ca: Type.Optional(Ca),
      enable: Type.Optional(Type.Boolean({ description: 'Default: true.' })),
      from_start: Type.Optional(
        Type.Boolean({ description: 'Begin with the oldest entry that is kept, not with the next one.' }),
      ),
    }),
    largestBody,
    answer: Type.Object({
      ...AuditStream.properties,
      secret: Type.Optional(Type.String({ description: 'Of a webhook. It is never shown again.' })),
    }),
    failures: ['streamLimit', 'conflict'],
    example: { body: { name: 'archive', url: 'https://siem.example.com/hawser', enable: false } },
  }),
  update: operation({
    title: 'Update audit stream',
    summary:
      'Changes the given settings of an audit stream. Its place in the log stays: a stream that was switched off also continues ' +
      'where it was.',
    method: 'PATCH',
    path: '/api/audit/streams/:uid',
    access: member('administrator'),
    audit: 'audit-stream.updated',
    params,
    body: Type.Object({
      name: Type.Optional(Name),
      url: Type.Optional(Url),
      secret: Type.Optional(Secret),
      ca: Type.Optional(Ca),
      enable: Type.Optional(Type.Boolean()),
    }),
    largestBody,
    answer: AuditStream,
    failures: ['conflict'],
    example: { ...aStream, body: { name: 'siem-2' } },
  }),
  remove: operation({
    title: 'Delete audit stream',
    summary: 'Ends an audit stream and removes its dead letters. The audit log itself stays.',
    method: 'DELETE',
    path: '/api/audit/streams/:uid',
    access: member('administrator'),
    audit: 'audit-stream.removed',
    params,
    failures: [],
    example: aStream,
  }),
  test: operation({
    title: 'Test audit stream',
    summary:
      'Sends a message without entries to the receiver now, and says what is wrong if it is not taken.',
    method: 'POST',
    path: '/api/audit/streams/:uid/test',
    access: member('administrator'),
    audit: 'audit-stream.tested',
    params,
    failures: ['streamFailed', 'tooMany'],
    example: aStream,
  }),
  deadLetters: operation({
    title: 'Get dead letters of audit stream',
    summary: 'Ranges of entries that the receiver did not take in time, oldest first.',
    method: 'GET',
    path: '/api/audit/streams/:uid/dead-letters',
    access: member('administrator'),
    params,
    query: Type.Object({ ...paging }),
    list: DeadLetter,
    failures: [],
    example: aStream,
  }),
  redeliver: operation({
    title: 'Redeliver dead letters of audit stream',
    summary:
      'Sends dead letters again, before newer entries: one of them, or all. What fails again stays a dead letter.',
    method: 'POST',
    path: '/api/audit/streams/:uid/redeliver',
    access: member('administrator'),
    audit: 'audit-stream.redelivered',
    params,
    body: Type.Object({
      dead_letter: Type.Optional(
        Type.String({ pattern: '^[1-9][0-9]{0,14}$', description: 'The id of one; absent: all of them.' }),
      ),
    }),
    answer: Type.Object({ queued: Type.Integer({ description: 'How many dead letters are sent again.' }) }),
    failures: [],
    example: { ...aStream, body: {} },
  }),
}

// The audit log as administrators read it (pages, exports, the signed head), and its retention. An export
// reads pages as fast as its reader takes them, and ends at the head it began with.
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  defaultRetention_days,
  type AuditEntry,
  type AuditFilter,
  type AuditHead,
} from '@hawser/contract/audit'
import { entryColumns, firstHash, signedText } from '@hawser/contract/audit-chain'
import { Failure } from '@hawser/contract/failures'
import { day_ms, iso } from '../../kit/clock.ts'
import type { AuditQuery, AuditRow } from '../../storage/audit.ts'
import type { MemberCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import { theServer } from './audit.ts'
import type { AuditSigner } from './head-key.ts'
import type { With } from './parts.ts'

export interface AuditLogParts extends With<'stores' | 'audit' | 'clock'> {
  signer: AuditSigner
}

export interface AuditLog extends Rules<'audit'> {
  readonly public_key: string
  /** For the administrator's commands. Empty: the server's own log. */
  entries(tenant_id: string, query: Pick<AuditQuery, 'action' | 'before' | 'limit'>): Promise<AuditEntry[]>
  /** Removes entries beyond their namespace's retention, and those of removed namespaces. */
  trim(): Promise<void>
}

const window = 20_000
/** Entries per read; fewer after a read with more characters of details than this. */
const reading = { least: 10, most: 500, characters: 256 * 1024 }
/** A page ends early above this many characters of details. */
const longestPage = 1024 * 1024
/** Small, so that no other writer waits long. */
const trimStep = 5000

export function presentEntry(tenant_id: string, row: AuditRow): AuditEntry {
  const { seq, at, action, source, request_id, hash } = row
  return {
    tenant_id,
    seq,
    at,
    action,
    actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
    source,
    request_id,
    target: { kind: row.target_kind, id: row.target_id, name: row.target_name },
    detail: JSON.parse(row.detail) as Record<string, unknown>,
    hash,
  }
}

/** Throws a Failure that names the field. */
function momentOf(field: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const at = Date.parse(text)
  if (Number.isNaN(at) || at < 0)
    throw new Failure('invalid', { message: `${field}: a moment such as 2026-11-17T10:00:00Z is expected` })
  return iso(at)
}

const filterOf = ({ from, to, ...rest }: AuditFilter) => ({
  ...rest,
  from: momentOf('from', from),
  to: momentOf('to', to),
})

/**
 * Strangers choose names, and a spreadsheet runs a cell that begins with one of these as a formula. Where
 * commas are decimal, as in German, it splits cells at semicolons and does not see these quotes.
 */
const formulas = /^(?=[=+\-@\t\r])|(?<=[;\t\r\n])(?=[=+\-@])/g

const csvCell = (value: string | number): string =>
  `"${String(value).replaceAll(formulas, "'").replaceAll('"', '""')}"`

export function auditLog({ stores, audit, signer, clock }: AuditLogParts): AuditLog {
  async function headOf(tenant_id: string): Promise<AuditHead> {
    const row = await stores.of(tenant_id).audit.head()
    const head = {
      tenant_id,
      ...(row ?? { seq: 0, hash: firstHash, at: '', first_seq: 1, first_hash: firstHash }),
      signed_at: iso(clock.now()),
    }
    return { ...head, public_key: signer.public_key, signature: signer.sign(signedText(head)) }
  }

  /** Reads fewer entries at a time where they are large; `next` is where the following step continues. */
  async function* stepsOf(
    tenant_id: string,
    query: Omit<AuditQuery, 'limit' | 'window'>,
    most: { readonly entries: number; readonly looked: number } = { entries: Infinity, looked: Infinity },
  ): AsyncGenerator<{ rows: AuditRow[]; isFull: boolean; characters: number; next: number | undefined }> {
    const side = query.after === undefined ? 'before' : 'after'
    let at = query[side]
    let { entries: left, looked } = most
    let step = reading.least
    do {
      const limit = Math.min(step, left)
      const position = { [side]: at, limit, window: Math.min(window, looked) }
      const { rows, next } = await stores.of(tenant_id).audit.list({ ...query, ...position })
      const characters = rows.reduce((sum, { detail }) => sum + detail.length, 0)
      yield { rows, isFull: rows.length === limit, characters, next }
      step = characters > reading.characters ? step >> 1 : step << 1
      step = Math.max(reading.least, Math.min(reading.most, step))
      left -= rows.length
      if (next !== undefined && at !== undefined) looked -= Math.abs(next - at)
      at = next
    } while (at !== undefined && left > 0 && looked > 0)
  }

  /** In steps, between which others have their turn. */
  async function removeOld(tenant_id: string): Promise<void> {
    while (await stores.auditLogs.removeOld(tenant_id, trimStep)) await nextTurn()
  }

  async function* rowsOf(
    tenant_id: string,
    filter: ReturnType<typeof filterOf>,
    head: AuditHead,
  ): AsyncGenerator<AuditRow> {
    const range = { oldest: head.first_seq, after: head.first_seq - 1, before: head.seq + 1 }
    for await (const { rows } of stepsOf(tenant_id, { ...filter, ...range })) yield* rows
  }

  async function beginExport(caller: MemberCaller, query: AuditFilter, format: 'ndjson' | 'csv') {
    const filter = filterOf(query)
    await audit.change(caller, async (_, record) =>
      record({
        action: 'audit.exported',
        target: { kind: 'audit log', id: caller.tenant_id, name: '' },
        detail: { format, filter: query },
      }),
    )
    const head = await headOf(caller.tenant_id)
    const name = `audit-${head.signed_at.slice(0, 10)}.${format}`
    return { filter, head, headers: { 'content-disposition': `attachment; filename="${name}"` } }
  }

  return {
    public_key: signer.public_key,

    async list({ query }, { tenant_id }) {
      const { before, after, limit, ...filter } = query
      const wanted = filterOf(filter)
      const head = await stores.of(tenant_id).audit.head()
      if (!head) return { entries: [], next: null }
      const end = after === undefined ? (before ?? head.seq + 1) : before
      const range = { oldest: head.first_seq, before: end, after }
      const entries: AuditEntry[] = []
      let [characters, next] = [0, null as number | null]
      for await (const step of stepsOf(
        tenant_id,
        { ...wanted, ...range },
        { entries: limit, looked: window },
      )) {
        for (const row of step.rows) entries.push(presentEntry(tenant_id, row))
        characters += step.characters
        next = step.next ?? null
        if (!step.isFull || characters > longestPage) break
      }
      return { entries, next }
    },

    head: (_, { tenant_id }) => headOf(tenant_id),

    async export({ query }, caller) {
      const { filter, head, headers } = await beginExport(caller, query, 'ndjson')
      async function* lines(): AsyncGenerator<string> {
        for await (const row of rowsOf(caller.tenant_id, filter, head))
          yield `${JSON.stringify(presentEntry(caller.tenant_id, row))}\n`
        yield `${JSON.stringify({ head })}\n`
      }
      return { answer: lines(), headers }
    },

    async exportCsv({ query }, caller) {
      const { filter, head, headers } = await beginExport(caller, query, 'csv')
      async function* lines(): AsyncGenerator<string> {
        yield `${entryColumns.join(',')}\r\n`
        for await (const row of rowsOf(caller.tenant_id, filter, head))
          yield `${entryColumns.map((column) => csvCell(row[column])).join(',')}\r\n`
      }
      return { answer: lines(), headers }
    },

    async entries(tenant_id, query) {
      const mine = stores.of(tenant_id).audit
      const head = await mine.head()
      // The namespace is gone, and its entries are about to go.
      if (!head) return []
      const { rows } = await mine.list({ ...query, oldest: head.first_seq, window })
      return rows.map((row) => presentEntry(tenant_id, row))
    },

    async trim() {
      for (const { tenant_id, audit_retention_days } of await stores.auditLogs.retentions()) {
        const days = audit_retention_days ?? defaultRetention_days
        if (days === 0) continue
        // By whole days, so that a log is trimmed once a day at most: trimming leaves an entry itself.
        const midnight = `${iso(clock.now() - days * day_ms).slice(0, 10)}T00:00:00.000Z`
        const last = await stores.auditLogs.lastBefore(tenant_id, midnight)
        if (!last) continue
        const removed = await audit.change({ ...theServer, tenant_id }, async (inside, record) => {
          const mine = inside.of(tenant_id).audit
          const head = await mine.head()
          if (!head || head.first_seq > last.seq) return false
          await mine.saveHead({ first_seq: last.seq + 1, first_hash: last.hash })
          record({
            action: 'audit.trimmed',
            target: { kind: 'audit log', id: tenant_id, name: '' },
            detail: { days, first_seq: last.seq + 1, first_hash: last.hash },
          })
          return true
        })
        if (!removed) continue
        await removeOld(tenant_id)
      }
      for (const tenant_id of await stores.auditLogs.headless()) await removeOld(tenant_id)
    },
  }
}

// Audit streams as administrators and the audit log see them.
import { createHash } from 'node:crypto'
import type { AuditStream } from '@hawser/contract/audit-streams'
import { Failure } from '@hawser/contract/failures'
import type { Vault } from '../../kit/secrets.ts'
import type { Receiver, Receivers } from '../../receivers/receivers.ts'
import type { AuditStreamRow } from '../../storage/audit-streams.ts'
import type { With } from './parts.ts'

const sealed = 'audit stream receiver'

export const openReceiver = (vault: Vault, row: Pick<AuditStreamRow, 'receiver'>): Receiver =>
  JSON.parse(vault.open(sealed, row.receiver)) as Receiver

export const sealReceiver = (vault: Vault, { url, secret, ca }: Receiver): string =>
  vault.seal(sealed, JSON.stringify({ url, secret, ca }))

export interface StreamViewParts extends With<'stores' | 'vault'> {
  receivers: Receivers
}

export function streamView({ stores, vault, receivers }: StreamViewParts) {
  async function present(tenant_id: string, rows: readonly AuditStreamRow[]): Promise<AuditStream[]> {
    const mine = stores.of(tenant_id)
    const newest = (await mine.audit.head())?.seq ?? 0
    const letters = await mine.auditStreams.letterCounts(rows.map(({ uid }) => uid))
    return rows.map((row) => {
      const { url, ca } = openReceiver(vault, row)
      const isOn = row.enable === 1
      return {
        uid: row.uid,
        tenant_id,
        name: row.name,
        kind: receivers.describe(url).kind,
        url,
        ca,
        enable: isOn,
        state: isOn ? (row.failures > 0 ? 'failing' : 'sending') : 'off',
        sent_seq: row.sent_seq,
        unsent: Math.max(0, newest - row.sent_seq),
        failures: row.failures,
        error: row.error,
        failing_since: row.failing_since || null,
        retry_at: row.retry_at || null,
        sent_at: row.sent_at || null,
        dead_letters: letters.get(row.uid) ?? 0,
        created_at: row.created_at,
      }
    })
  }

  async function mustFind(tenant_id: string, uid: string): Promise<AuditStreamRow> {
    const row = await stores.of(tenant_id).auditStreams.find(uid)
    if (!row) throw new Failure('notFound')
    return row
  }

  async function show(tenant_id: string, uid: string): Promise<AuditStream> {
    const [shown] = await present(tenant_id, [await mustFind(tenant_id, uid)])
    if (!shown) throw new Failure('notFound')
    return shown
  }

  /** The host of the URL, and digests that reveal whether the rest has changed. */
  function audited(row: Pick<AuditStreamRow, 'name' | 'enable' | 'receiver'>) {
    const { url, secret, ca } = openReceiver(vault, row)
    const { kind, address } = receivers.describe(url)
    const mark = (text: string): string => vault.mark(sealed, text).slice(0, 16)
    return {
      name: row.name,
      enable: row.enable === 1,
      kind,
      receiver: address,
      url_mark: mark(url),
      secret_mark: kind === 'webhook' ? mark(secret) : null,
      ca: ca && createHash('sha256').update(ca).digest('hex'),
    }
  }

  return { present, mustFind, show, audited }
}

export const targetOf = ({ uid, name }: Pick<AuditStreamRow, 'uid' | 'name'>) => ({
  kind: 'audit stream',
  id: uid,
  name,
})

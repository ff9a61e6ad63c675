// Somebody fills the audit log of a namespace with hundreds of thousands of entries and removes the namespace: the
// entries were removed by one statement, and everybody waited for it. The removal takes the head of the log, without
// which nobody reads it, and the sweep removes the entries in steps, with turns for others between them.
import { describe, expect, test } from 'vitest'
import { firstHash } from '@hawser/contract/audit-chain'
import { audit, theServer } from '../../server/src/domain/audit/audit.ts'
import { auditLog } from '../../server/src/domain/audit/audit-log.ts'
import type { AuditRow } from '../../server/src/storage/audit.ts'
import { databases, namespace, openFresh, type Storage } from '../storage/databases.ts'

const entries = 12_000

const entry = (seq: number): AuditRow => ({
  seq,
  at: '2026-05-01T12:00:00.000Z',
  action: 'policy.updated',
  actor_kind: 'user',
  actor_id: 'u',
  actor_name: 'u',
  source: '',
  request_id: '',
  target_kind: 'policy',
  target_id: 'p',
  target_name: '',
  detail: '{}',
  hash: `hash ${seq}`,
})

async function filled({ stores }: Storage, tenant_id: string): Promise<void> {
  const first = { seq: 0, hash: firstHash }
  await stores.transaction(async (inside) => {
    const log = inside.of(tenant_id).audit
    await log.begin({ ...first, at: '', first_seq: 1, first_hash: firstHash })
    await log.append(
      first,
      Array.from({ length: entries }, (_, index) => entry(index + 1)),
    )
  })
}

const opened = ({ stores }: Storage) => {
  const clock = { now: () => Date.parse('2026-05-01T12:00:00.000Z') }
  const writing = audit({ stores, clock })
  const signer = { public_key: '', sign: () => '' }
  return { writing, log: auditLog({ stores, audit: writing, signer, clock }) }
}

describe.each(databases)('$name', (database) => {
  test('the removal leaves the entries to the sweep, which removes them in steps', async () => {
    await using storage = await openFresh(database)
    const { stores } = storage
    const [gone, stays] = [await namespace(storage), await namespace(storage)]
    for (const { tenant_id } of [gone, stays]) await filled(storage, tenant_id)
    const left = async (tenant_id: string): Promise<number> =>
      (await stores.of(tenant_id).audit.list({ oldest: 0, after: 0, limit: 20_000, window: 20_000 })).rows
        .length
    await stores.transaction((inside) => inside.namespaces.remove(gone.tenant_id))
    expect(await left(gone.tenant_id)).toBe(entries)
    expect(await opened(storage).log.entries(gone.tenant_id, { limit: 10 })).toEqual([])
    // As far as a server came that then crashed.
    expect(await stores.auditLogs.removeOld(gone.tenant_id, 5_000)).toBe(true)
    expect(await left(gone.tenant_id)).toBe(entries - 5_000)
    let turns = 0
    let isOver = false
    const turn = (): void => {
      turns += 1
      if (!isOver) setImmediate(turn)
    }
    turn()
    await opened(storage).log.trim()
    isOver = true
    expect(turns).toBeGreaterThan(1)
    expect([await left(gone.tenant_id), await left(stays.tenant_id)]).toEqual([0, entries])
  })

  test('a namespace with the id of a removed one has a log of its own, which the sweep leaves alone', async () => {
    await using storage = await openFresh(database)
    const { stores } = storage
    const { tenant_id } = await namespace(storage)
    const row = (await stores.namespaces.find(tenant_id))!
    await filled(storage, tenant_id)
    await stores.transaction((inside) => inside.namespaces.remove(tenant_id))
    await stores.transaction((inside) => inside.namespaces.insert(row))
    const { writing, log } = opened(storage)
    const target = { kind: 'namespace', id: tenant_id, name: row.name }
    await writing.event({ ...theServer, tenant_id }, { action: 'namespace.created', target })
    expect(await stores.auditLogs.removeOld(tenant_id, 5_000)).toBe(false)
    await log.trim()
    expect(await log.entries(tenant_id, { limit: 10 })).toMatchObject([
      { seq: 1, action: 'namespace.created' },
    ])
  })
})

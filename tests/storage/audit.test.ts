// The audit log in the database, on both: every change has its entry and the reverse, changes at once make
// one chain without gaps, pages meet every entry once, and trimming leaves a chain.
import { firstHash } from '@hawser/contract/audit-chain'
import { describe, expect, test } from 'vitest'
import { audit, chainHash, theServer, type AuditRecord } from '../../server/src/domain/audit/audit.ts'
import { auditLog } from '../../server/src/domain/audit/audit-log.ts'
import type { AuditRow } from '../../server/src/storage/audit.ts'
import { databases, namespace, openFresh, type Storage } from './databases.ts'

const day_ms = 86_400_000

/** A log whose clock the test moves. */
async function opened(storage: Storage) {
  const { tenant_id } = await namespace(storage)
  let now = Date.parse('2026-05-01T12:00:00.000Z')
  const clock = { now: () => now }
  const writing = audit({ stores: storage.stores, clock })
  const signer = { public_key: '', sign: () => '' }
  const mine = storage.stores.of(tenant_id).audit
  return {
    tenant_id,
    mine,
    writing,
    log: auditLog({ stores: storage.stores, audit: writing, signer, clock }),
    forward: (ms: number) => void (now += ms),
    all: async () => (await mine.list({ oldest: 0, after: 0, limit: 10_000, window: 10_000 })).rows,
    by: { ...theServer, tenant_id },
  }
}

const about = (name: string, more: Partial<AuditRecord> = {}): AuditRecord => ({
  action: 'device.updated',
  target: { kind: 'device', id: name, name },
  ...more,
})

function expectChain(tenant_id: string, rows: readonly AuditRow[], before = firstHash): void {
  let previous = before
  for (const row of rows) {
    previous = chainHash(previous, {
      ...row,
      tenant_id,
      actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
      target: { kind: row.target_kind, id: row.target_id, name: row.target_name },
      detail: JSON.parse(row.detail) as Record<string, unknown>,
    })
    expect(row.hash, `entry ${row.seq}`).toBe(previous)
  }
}

describe.each(databases)('$name', (database) => {
  test('a change that fails leaves no entry, and one that changes nothing neither', async () => {
    await using storage = await openFresh(database)
    const { writing, by, all, tenant_id } = await opened(storage)
    await expect(
      writing.change(by, async (inside, record) => {
        await inside.namespaces.save(tenant_id, { name: 'renamed' })
        record(about('failed'))
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    await writing.event(by, about('same', { before: { name: 'a' }, after: { name: 'a' } }))
    expect(await all()).toEqual([])
    expect((await storage.stores.namespaces.find(tenant_id))?.name).not.toBe('renamed')
  })

  test('sixty changes at once make one chain', async () => {
    await using storage = await openFresh(database)
    const { writing, by, all, mine, tenant_id } = await opened(storage)
    await Promise.all(
      Array.from({ length: 60 }, (_, number) =>
        writing.change(by, async (inside, record) => {
          await inside.namespaces.save(tenant_id, { connection_announcement: String(number) })
          record(about(String(number), { tenant_id: number % 2 === 0 ? tenant_id : '' }))
          record(about(String(number), { tenant_id: number % 2 === 0 ? '' : tenant_id }))
        }),
      ),
    )
    const rows = await all()
    expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 60 }, (_, index) => index + 1))
    expectChain(tenant_id, rows)
    expect(await mine.head()).toMatchObject({ seq: 60, hash: rows.at(-1)?.hash })
    expect(await storage.stores.of('').audit.head()).toMatchObject({ seq: 60 })
  })

  test('a remembered head that is wrong is read anew: another node wrote, or the transaction was rolled back', async () => {
    await using storage = await openFresh(database)
    const { writing, by, all, tenant_id } = await opened(storage)
    const other = audit({ stores: storage.stores, clock: { now: () => Date.parse('2026-05-01T13:00:00Z') } })
    for (const number of [1, 2, 3]) {
      await writing.event(by, about(`here ${number}`))
      await other.event(by, about(`there ${number}`))
      await expect(
        storage.stores.transaction(async (inside) => {
          await writing.append(inside, [{ by, record: about('rolled back') }])
          throw new Error('no')
        }),
      ).rejects.toThrow('no')
    }
    const rows = await all()
    expect(rows.map(({ target_id }) => target_id)).toEqual(
      [1, 2, 3].flatMap((number) => [`here ${number}`, `there ${number}`]),
    )
    expectChain(tenant_id, rows)
    // The other clock is ahead, and moments never go back.
    expect(rows.map(({ at }) => at)).toEqual(rows.map(({ at }) => at).toSorted())
  })

  test('only fields that differ are stored, and odd texts keep their hash', async () => {
    await using storage = await openFresh(database)
    const { writing, by, all, tenant_id } = await opened(storage)
    const odd = { nul: 'a\0b', lone: '\ud800', long: 'x'.repeat(5000), quote: `'"%\\` }
    await writing.event({ ...by, name: 'a\0b\ud800' }, about('odd', { after: odd }))
    await writing.event(by, about('two', { before: { a: 1, b: [1] }, after: { a: 1, b: [2], c: true } }))
    await writing.event(
      by,
      about('huge', { after: Object.fromEntries(Array.from({ length: 90 }, (_, n) => [n, odd])) }),
    )
    const rows = await all()
    expectChain(tenant_id, rows)
    expect(rows[0]?.detail.length).toBeLessThan(1500)
    expect(JSON.parse(rows[1]?.detail ?? '')).toEqual({
      before: { b: [1], c: null },
      after: { b: [2], c: true },
    })
    const huge = JSON.parse(rows[2]?.detail ?? '') as { truncated: boolean; after: object }
    expect(huge.truncated).toBe(true)
    expect(Object.keys(huge.after)).toHaveLength(90)
    expect(rows[2]?.detail.length).toBeLessThanOrEqual(16 * 1024)
  })

  test('pages meet every entry that fits once, in both directions, however small the window', async () => {
    await using storage = await openFresh(database)
    const { writing, by, mine, forward } = await opened(storage)
    for (let number = 1; number <= 60; number++) {
      forward(1000)
      const action = number % 7 === 0 ? 'firewall.rule.created' : 'device.updated'
      await writing.event(by, about(`d${number}`, { action }))
    }
    const wanted = Array.from({ length: 8 }, (_, index) => (index + 1) * 7)
    for (const direction of ['before', 'after'] as const)
      for (const [limit, window] of [
        [3, 5],
        [1, 60],
        [100, 7],
        [100, 1000],
      ] as const) {
        const met: number[] = []
        let place: number | undefined = direction === 'after' ? 0 : 1000
        for (let calls = 0; place !== undefined && calls < 100; calls++) {
          const page = await mine.list({ oldest: 1, action: 'firewall.', [direction]: place, limit, window })
          met.push(...page.rows.map(({ seq }) => seq))
          place = page.next
        }
        expect(met, `${direction} ${limit} of ${window}`).toEqual(
          direction === 'after' ? wanted : wanted.toReversed(),
        )
      }
    const between = await mine.list({
      oldest: 1,
      from: '2026-05-01T12:00:10.000Z',
      to: '2026-05-01T12:00:13.000Z',
      limit: 100,
      window: 100,
    })
    expect(between.rows.map(({ seq }) => seq)).toEqual([12, 11, 10])
    const ends = { oldest: 1, limit: 100, window: 100 }
    const [before, after] = ['2026-05-01T12:00:01.000Z', '2026-05-01T12:01:00.001Z']
    expect((await mine.list({ ...ends, to: before })).rows).toEqual([])
    expect((await mine.list({ ...ends, to: after })).rows).toHaveLength(60)
    expect((await mine.list({ ...ends, from: before })).rows).toHaveLength(60)
    expect((await mine.list({ ...ends, from: after })).rows).toEqual([])
    expect((await mine.list({ oldest: 1, target: 'd5', limit: 10, window: 100 })).rows).toHaveLength(1)
    expect((await mine.list({ oldest: 1, actor: 'nobody', limit: 10, window: 100 })).rows).toEqual([])
    expect((await mine.list({ oldest: 1, action: 'device.updated.x', limit: 10, window: 100 })).rows).toEqual(
      [],
    )
  })

  test('old entries go once a day, and the rest is a chain that begins where they ended', async () => {
    await using storage = await openFresh(database)
    const { writing, by, log, all, mine, tenant_id, forward } = await opened(storage)
    for (let number = 1; number <= 10; number++) {
      await writing.event(by, about(`d${number}`))
      forward(day_ms)
    }
    await storage.stores.namespaces.save(tenant_id, { audit_retention_days: 4 })
    await log.trim()
    const rows = await all()
    const head = await mine.head()
    expect(rows[0]?.seq).toBe(head?.first_seq)
    expect(rows[0]?.seq).toBe(7)
    expect(rows.at(-1)).toMatchObject({ action: 'audit.trimmed', actor_kind: 'server', seq: 11 })
    expectChain(tenant_id, rows, head?.first_hash)
    await log.trim()
    expect(await all()).toHaveLength(rows.length)
    await storage.stores.namespaces.save(tenant_id, { audit_retention_days: 0 })
    forward(1000 * day_ms)
    await log.trim()
    expect(await all()).toHaveLength(rows.length)
  })

  test('a namespace that is gone gets no entries', async () => {
    await using storage = await openFresh(database)
    const { writing, by, all, tenant_id, mine, log } = await opened(storage)
    await writing.event(by, about('d'))
    await storage.stores.transaction((inside) => inside.namespaces.remove(tenant_id))
    await writing.event(by, about('late'))
    await log.trim()
    expect(await all()).toEqual([])
    expect(await mine.head()).toBeUndefined()
  })
})

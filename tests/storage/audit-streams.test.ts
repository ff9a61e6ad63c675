// Audit streams in the database, on both: which are due and in which order, that one node has a stream until
// it is gone, that what a former node writes is refused, and that dead letters are bounded.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  auditStream,
  databases,
  deadLetter,
  earlier,
  later,
  namespace,
  now,
  openFresh,
  page,
  type Storage,
} from './databases.ts'

describe.each(databases)('$name', (database) => {
  let storage: Storage
  beforeAll(async () => {
    storage = await openFresh(database)
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  const queue = () => storage.stores.auditStreamQueue
  const due = (node = '', busy: string[] = []) => queue().due(node, now, busy, 10)
  const head = { seq: 5, hash: 'hash', at: now, first_seq: 1, first_hash: 'before' }

  /** A namespace with five entries and these streams. */
  async function streams(...changes: object[]) {
    const { here, tenant_id } = await namespace(storage)
    await here.audit.begin(head)
    const rows = changes.map((change) => auditStream(change))
    for (const row of rows) await here.auditStreams.insert(row)
    return { here, tenant_id, uids: rows.map(({ uid }) => uid) }
  }
  const remove = (tenant_id: string) =>
    storage.stores.transaction((inside) => inside.namespaces.remove(tenant_id))

  test('those are due that are on, have something to send and need not wait, the longest waiting first', async () => {
    const { here, uids, tenant_id } = await streams(
      { attempted_at: later },
      { attempted_at: earlier },
      { enable: 0 },
      { retry_at: later },
      { sent_seq: 5 },
      { sent_seq: 5, attempted_at: now },
    )
    expect(await due()).toEqual([uids[1], uids[0]])
    expect(await due('', [uids[1]!])).toEqual([uids[0]])
    // A dead letter that is to be sent again is something to send.
    await here.auditStreams.addLetter(deadLetter(uids[5]!), 9)
    expect(await due()).toEqual([uids[1], uids[0]])
    expect(await here.auditStreams.queueLetters(uids[5]!, undefined)).toHaveLength(1)
    expect(await due()).toEqual([uids[1], uids[5], uids[0]])
    await remove(tenant_id)
  })

  test('a stream belongs to one node until that is gone, and what a former node writes is refused', async () => {
    const { here, uids, tenant_id } = await streams({})
    const uid = uids[0]!
    for (const id of ['one', 'two'])
      await storage.opened.db
        .insertInto('nodes')
        .values({ id, address: id, seen_at: now as never })
        .execute()
    const [first, second] = [await queue().claim(uid, 'one', now), await queue().claim(uid, 'two', now)]
    expect([first?.node, second]).toEqual(['one', undefined])
    expect([await due('one'), await due('two')]).toEqual([[uid], []])
    await storage.stores.nodes.leave('one')
    expect(await due('two')).toEqual([uid])
    const taken = await queue().claim(uid, 'two', now)
    expect(taken).toMatchObject({ node: 'two' })
    expect(await here.auditStreams.saveAttempt(first!, { sent_seq: 3 })).toBe(false)
    expect(await here.auditStreams.saveAttempt(taken!, { sent_seq: 4 })).toBe(true)
    expect(await here.auditStreams.find(uid)).toMatchObject({ sent_seq: 4 })
    // Nor counts what was found out about a receiver that has changed since.
    await here.auditStreams.save(uid, { receiver: 'another' })
    expect(await here.auditStreams.saveAttempt(taken!, { failures: 1 })).toBe(false)
    await queue().release('two')
    expect(await here.auditStreams.find(uid)).toMatchObject({ node: '' })
    await storage.stores.nodes.leave('two')
    await remove(tenant_id)
  })

  test('of nodes that claim it at the same moment one gets it', async () => {
    const { uids, tenant_id } = await streams({})
    const nodes = ['a', 'b', 'c', 'd']
    for (const id of nodes)
      await storage.opened.db
        .insertInto('nodes')
        .values({ id, address: id, seen_at: now as never })
        .execute()
    const claims = await Promise.all(nodes.map((id) => queue().claim(uids[0]!, id, now)))
    expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1)
    for (const id of nodes) await storage.stores.nodes.leave(id)
    await remove(tenant_id)
  })

  test('a new dead letter replaces the oldest when there are too many', async () => {
    const { here, uids, tenant_id } = await streams({}, {})
    for (let seq = 1; seq <= 5; seq++)
      for (const uid of uids)
        await here.auditStreams.addLetter(deadLetter(uid, { from_seq: seq, to_seq: seq }), 3)
    for (const uid of uids) {
      const { items, total } = await here.auditStreams.letters(uid, page())
      expect([items.map(({ from_seq }) => from_seq), total]).toEqual([[3, 4, 5], 3])
    }
    expect(await here.auditStreams.letterCounts(uids)).toEqual(new Map(uids.map((uid) => [uid, 3])))
    expect(await queue().figures()).toEqual({ sending: 2, failing: 0 })
    await remove(tenant_id)
  })
})

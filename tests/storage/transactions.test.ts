// Transactions and races, the same on both databases: a transaction happens whole or not at all, nobody sees
// half of one, and where two callers want the same thing in the same moment exactly one gets it.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { deviceStatuses } from '@hawser/contract/devices'
import type { Stores } from '../../server/src/storage/stores.ts'
import {
  databases,
  device,
  later,
  namespace,
  now,
  openAt,
  openFresh,
  page,
  refusal,
  session,
  unique,
  user,
  type Storage,
} from './databases.ts'

// Real databases and processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 })

class Undo extends Error {}

describe.each(databases)('$name', (database) => {
  let storage: Storage
  let stores: Stores
  beforeAll(async () => {
    storage = await openFresh(database)
    stores = storage.stores
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  test('a transaction gives what its work gives, and what it wrote is there', async () => {
    const [one, other] = [user(), user()]
    const given = await stores.transaction(async (inside) => {
      await inside.users.insert(one)
      await inside.users.insert(other)
      return (await inside.users.find(one.id))?.id
    })
    expect(given).toBe(one.id)
    expect(await stores.users.find(other.id)).toEqual(other)
  })

  test('a transaction that fails leaves nothing, not even in counters and indexes', async () => {
    const { tenant_id, here } = await namespace(storage)
    const kept = device({ tags: '["pier"]' })
    await here.devices.insert(kept)
    const before = await here.devices.tallies()
    const error = await refusal(
      stores.transaction(async (inside) => {
        const { devices, sessions } = inside.of(tenant_id)
        await devices.insert(device({ status: 'accepted', tags: '["quay"]' }))
        await devices.save(kept.uid, { name: 'changed', tags: '[]' })
        await sessions.insert(session(kept.uid))
        await inside.attempts.count(kept.uid, now, later)
        throw new Undo()
      }),
    )
    expect(error).toBeInstanceOf(Undo)
    expect(await here.devices.find(kept.uid)).toMatchObject(kept)
    expect(await here.devices.tallies()).toEqual(before)
    expect(await here.devices.tags()).toEqual(['pier'])
    expect((await here.sessions.list(page())).total).toBe(0)
    expect(await stores.attempts.find(kept.uid, now)).toBeUndefined()
  })

  test('a statement that is refused undoes the transaction around it, and is still known as a duplicate', async () => {
    const [first, again] = [user(), user()]
    const error = await refusal(
      stores.transaction(async (inside) => {
        await inside.users.insert(first)
        await inside.users.insert({ ...again, username: first.username })
      }),
    )
    expect(stores.isDuplicate(error)).toBe(true)
    expect(await stores.users.find(first.id)).toBeUndefined()
    // And the connection is good for the next one.
    await stores.transaction((inside) => inside.users.insert(first))
    expect(await stores.users.find(first.id)).toEqual(first)
  })

  test('what others do meanwhile is not part of an open transaction', async () => {
    const [inside, outside] = [user(), user()]
    const entered = Promise.withResolvers<void>()
    const end = Promise.withResolvers<void>()
    const transaction = refusal(
      stores.transaction(async (trx) => {
        await trx.users.insert(inside)
        entered.resolve()
        await end.promise
        throw new Undo()
      }),
    )
    await entered.promise
    // It may have to wait for the transaction; what it may not do is to be undone with it, or to see into it.
    const written = stores.users.insert(outside)
    const seen = stores.users.find(inside.id)
    end.resolve()
    expect(await transaction).toBeInstanceOf(Undo)
    await written
    expect(await seen).toBeUndefined()
    expect(await stores.users.find(outside.id)).toEqual(outside)
  })

  test('lists do not see into an open transaction, and see it whole once it is done', async () => {
    const { tenant_id, here } = await namespace(storage)
    const query = { groups: [], sort: 'name', order: 'asc', ...page() } as const
    const during = await stores.transaction(async (inside) => {
      await inside.of(tenant_id).devices.insert(device())
      await inside.of(tenant_id).sessions.insert(session('any'))
      expect((await inside.of(tenant_id).devices.list(query)).total).toBe(1)
      return [(await here.devices.list(query)).total, (await here.sessions.list(page())).total]
    })
    expect(during).toEqual([0, 0])
    expect((await here.devices.list(query)).total).toBe(1)
    expect((await here.sessions.list(page())).total).toBe(1)
  })

  test('parallel transactions that read and then write one row lose nothing', async () => {
    const { tenant_id, here } = await namespace(storage)
    const row = device()
    await here.devices.insert(row)
    const names = Array.from({ length: 8 }, (_, index) => `tag-${index}`)
    const add = (tag: string) =>
      stores.transaction(async (inside) => {
        const mine = inside.of(tenant_id).devices
        const tags = JSON.parse((await mine.find(row.uid))!.tags) as string[]
        await mine.save(row.uid, { tags: JSON.stringify([...tags, tag]) })
      })
    await Promise.all(names.map(add))
    expect((JSON.parse((await here.devices.find(row.uid))!.tags) as string[]).toSorted()).toEqual(names)
    expect((await here.devices.tags()).toSorted()).toEqual(names)
  })

  test('parallel transactions that change the same things in different orders all succeed', async () => {
    const { tenant_id, here } = await namespace(storage)
    const rows = Array.from({ length: 4 }, () => device({ online: 1, tags: '["pier"]' }))
    for (const row of rows) await here.devices.insert(row)
    const turn = (number: number) =>
      stores.transaction(async (inside) => {
        const { devices, sessions } = inside.of(tenant_id)
        const order = number % 2 === 0 ? rows : rows.toReversed()
        if (number % 3 === 0) await sessions.insert(session(rows[0]!.uid))
        for (const row of order)
          await devices.save(row.uid, { status: deviceStatuses[number % deviceStatuses.length]! })
        if (number % 3 === 1) await sessions.insert(session(rows[0]!.uid))
      })
    const batch = (number: number) =>
      stores.presence.write(
        (number % 2 === 0 ? rows : rows.toReversed()).map((row) => ({
          uid: row.uid,
          last_seen: now,
          online: number % 4 < 2,
        })),
      )
    // Few at once: PostgreSQL looks for a circle only after it has waited for a second.
    for (let round = 0; round < 2; round++)
      await Promise.all(
        Array.from({ length: 5 }, (_, number) => (number === 3 ? batch(round) : turn(round * 5 + number))),
      )
    const counters = await here.devices.tallies()
    const sum = (prefix: string) =>
      [...counters].reduce((total, [subject, n]) => total + (subject.startsWith(prefix) ? n : 0), 0)
    expect(sum('devices.')).toBe(rows.length)
    expect(sum('online.')).toBe(
      (await here.devices.findMany(rows.map((row) => row.uid))).reduce((total, row) => total + row.online, 0),
    )
  })

  test('parallel wrong attempts each get a count of their own', async () => {
    const subject = unique('subject')
    const counts = await Promise.all(
      Array.from({ length: 30 }, () => stores.attempts.count(subject, now, later)),
    )
    expect(counts.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, index) => index + 1))
  })

  test('a one-time token is spent by exactly one of many, from several servers', async () => {
    const place = await database.migrated()
    try {
      await using here = await openAt(place)
      await using there = await openAt(place)
      for (let round = 0; round < 5; round++) {
        const hash = unique('hash')
        await here.stores.tokens.insert({ kind: 'recovery', hash, user_id: null, expires_at: later })
        const callers = Array.from(
          { length: 12 },
          (_, index) => (index % 2 === 0 ? here : there).stores.tokens,
        )
        const got = await Promise.all(callers.map((tokens) => tokens.spend('recovery', hash, now)))
        expect(got.filter(Boolean)).toEqual([true])
      }
    } finally {
      place[Symbol.dispose]()
    }
  })

  test('a recovery code and a time step are each spent by exactly one of many', async () => {
    const row = user()
    await stores.users.insert(row)
    await stores.users.setRecoveryCodes(row.id, ['a'])
    const codes = await Promise.all(
      Array.from({ length: 10 }, () => stores.users.spendRecoveryCode(row.id, 'a')),
    )
    const steps = await Promise.all(Array.from({ length: 10 }, () => stores.users.spendStep(row.id, 5)))
    expect([codes.filter(Boolean).length, steps.filter(Boolean).length]).toEqual([1, 1])
  })

  test('of parallel inserts of one name exactly one succeeds, and the others are duplicates', async () => {
    const { here } = await namespace(storage)
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, () => here.devices.insert(device({ name: 'crane', status: 'accepted' }))),
    )
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(refused).toHaveLength(7)
    for (const { reason } of refused) expect(stores.isDuplicate(reason)).toBe(true)
    expect(await here.devices.countWithStatus('accepted')).toBe(1)
  })
})

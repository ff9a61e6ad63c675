// Data budgets, the same on both databases: of several nodes that judge one at the same moment, one writes
// the state and so sends the e-mail; and a budget that somebody has changed meanwhile is judged again.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { BudgetResult } from '../../server/src/storage/budgets.ts'
import { budget, databases, device, later, namespace, now, openFresh, type Storage } from './databases.ts'

const month = now.slice(0, 7)
const used = { idle_received: 1, idle_sent: 2, session_received: 3, session_sent: 4_000_000_000_000 }

describe.each(databases)('$name', (database) => {
  let storage: Storage
  beforeAll(async () => {
    storage = await openFresh(database)
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  /** A budget that is used up, as a node that judges it has read it. */
  async function judged() {
    const { here } = await namespace(storage)
    const { uid } = device()
    await here.devices.insert(device({ uid, status: 'accepted' }))
    const id = await here.budgets.insert(budget({ device: uid }))
    const { trafficSums, budgetJudgements: store } = storage.stores
    await trafficSums.add([
      { uid, day: '2026-04-30', ...used },
      { uid, day: '2026-05-01', ...used },
    ])
    expect(await store.ofDevices([uid, 'gone'])).toEqual([id])
    const sum = (await store.usedByDevices([id], `${month}-01`)).get(id)
    expect(sum).toBe(4_000_000_000_006)
    const [row] = await store.findMany([id])
    if (!row || sum === undefined) throw new Error('there is no budget')
    const result: BudgetResult = { row, month, used: sum, state: 'over', told: 'over', isNews: true }
    return { here, id, store, result }
  }

  test('of many nodes that judge it at once, one writes it', async () => {
    const { here, id, store, result } = await judged()
    const written = await Promise.all(Array.from({ length: 8 }, () => store.save([result], later)))
    expect(written.filter((ids) => ids.has(id))).toHaveLength(1)
    expect(await here.budgets.find(id)).toMatchObject({
      month,
      used: result.used,
      state: 'over',
      told: 'over',
    })
  })

  test('of many nodes that look for an e-mail that was not sent, one gets it, and nobody once it is sent', async () => {
    const { id, store, result } = await judged()
    await store.save([result], later)
    const [soon, last] = [
      `${later.slice(0, 4)}-12-30T00:00:00.000Z`,
      `${later.slice(0, 4)}-12-31T00:00:00.000Z`,
    ]
    const take = async (before: string, now: string) =>
      (await store.takeUnsent(before, now, 10)).filter((row) => row.id === id)
    expect(await take(later, soon)).toEqual([])
    const taken = await Promise.all(Array.from({ length: 8 }, () => take(soon, soon)))
    expect(taken.flat()).toHaveLength(1)
    // The one who was thought lost has sent an older one: this one stays.
    await store.emailed([id], later)
    expect(await take(last, soon)).toHaveLength(1)
    await store.emailed([id], soon)
    expect(await take(last, last)).toEqual([])
  })

  test('a budget that was changed or removed meanwhile is not written', async () => {
    const { here, id, store, result } = await judged()
    await here.budgets.save(id, { bytes: 10 ** 15 })
    expect(await store.save([result], later)).toEqual(new Set())
    expect(await here.budgets.find(id)).toMatchObject({ bytes: 10 ** 15, state: 'under', judged_at: '' })
    await here.budgets.remove(id)
    expect(await store.findMany([id])).toEqual([])
    expect(await store.save([result], later)).toEqual(new Set())
  })
})

// Bytes of devices by day, the same on both databases: sums that several nodes add, a device that is gone,
// and how long they are kept.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { databases, device, namespace, openFresh, type Storage } from './databases.ts'

const used = { idle_received: 1, idle_sent: 20, session_received: 300, session_sent: 4_000_000_000 }

describe.each(databases)('$name', (database) => {
  let storage: Storage
  beforeAll(async () => {
    storage = await openFresh(database)
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  async function crane() {
    const found = await namespace(storage)
    const { uid } = device()
    await found.here.devices.insert(device({ uid, status: 'accepted' }))
    return { ...found, uid }
  }

  test('what nodes add at the same time is added up, in one row for a device and day', async () => {
    const { here, uid } = await crane()
    const { trafficSums } = storage.stores
    const day = '2026-11-17'
    await Promise.all(Array.from({ length: 8 }, () => trafficSums.add([{ uid, day, ...used }])))
    await trafficSums.add([{ uid, day: '2026-11-16', ...used }])
    expect(await here.traffic.days(uid, '2026-11-16')).toEqual([
      { day: '2026-11-16', ...used },
      { day, idle_received: 8, idle_sent: 160, session_received: 2_400, session_sent: 32_000_000_000 },
    ])
    expect(await here.traffic.days(uid, day)).toHaveLength(1)
  })

  test('a device that is gone gets no row, and its rows go with it', async () => {
    const { here, uid } = await crane()
    const { trafficSums } = storage.stores
    const day = '2026-11-17'
    await trafficSums.add([
      { uid, day, ...used },
      { uid: 'gone', day, ...used },
    ])
    await here.devices.remove(uid)
    expect(await here.traffic.days(uid, day)).toEqual([])
    await trafficSums.add([{ uid, day, ...used }])
    const { db } = storage.opened
    for (const one of [uid, 'gone'])
      expect(await db.selectFrom('device_traffic').selectAll().where('uid', '=', one).execute()).toEqual([])
  })

  test('old days are removed, in steps', async () => {
    const { here, uid } = await crane()
    const { trafficSums } = storage.stores
    const days = Array.from({ length: 9 }, (_, index) => `2025-01-0${index + 1}`)
    await trafficSums.add(days.map((day) => ({ uid, day, ...used })))
    await trafficSums.sweep('2025-01-08', 2)
    expect((await here.traffic.days(uid, '2025-01-01')).map(({ day }) => day)).toEqual(days.slice(7))
  })
})

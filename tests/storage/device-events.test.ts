// What happened to devices, the same on both databases: in order, bounded by kind, and gone with the device.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { trimmedEvery, type KeptEvents } from '../../server/src/storage/device-events.ts'
import { databases, device, namespace, openFresh, type Storage } from './databases.ts'

const at = '2026-11-17T10:32:00.000Z'
const kept: KeptEvents = { own: ['up', 'down'], own_most: 6, own_eachEndOfHour: 2, kind_most: 3 }

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
  const event = (uid: string, kind: string) => ({ uid, at, kind, detail: '{"a":"ü\\"\'"}' })
  const kinds = (rows: readonly { kind: string }[]) => rows.map(({ kind }) => kind)

  test('events of several devices in one batch are numbered for each, and read newest first', async () => {
    const [one, two] = [await crane(), await crane()]
    const { deviceEvents } = storage.stores
    await deviceEvents.add([event(one.uid, 'a'), event(two.uid, 'x'), event(one.uid, 'b')], kept)
    await deviceEvents.add([event(one.uid, 'c')], kept)
    expect(await one.here.timeline.newest(one.uid, 2)).toEqual([
      { at, kind: 'c', detail: '{"a":"ü\\"\'"}' },
      { at, kind: 'b', detail: '{"a":"ü\\"\'"}' },
    ])
    expect(kinds(await two.here.timeline.newest(two.uid, 10))).toEqual(['x'])
    expect(await two.here.timeline.newest(one.uid, 10)).toEqual([])
  })

  /** Events until the next trim, as they are then. */
  const lately = (uid: string) =>
    Array.from({ length: trimmedEvery }, (_, index) => ({ uid, at, kind: 'down', detail: String(index) }))

  test('of an hour the first and the last are kept, of all hours the newest, whatever the size of a batch', async () => {
    const { here, uid } = await crane()
    const { deviceEvents } = storage.stores
    for (const hour of ['07', '08', '09'])
      await deviceEvents.add(
        lately(uid).map((one) => ({ ...one, at: `2026-11-17T${hour}:00:00.000Z` })),
        kept,
      )
    const rows = await here.timeline.newest(uid, 100)
    expect(rows.map((row) => `${row.at.slice(11, 13)} ${row.detail}`)).toEqual([
      '09 15',
      '09 14',
      '09 1',
      '09 0',
      '08 15',
      '08 14',
    ])
  })

  test('neither kind pushes out another, and changes of version stay', async () => {
    const { here, uid } = await crane()
    const { deviceEvents } = storage.stores
    const up = (version: string) => ({ uid, at, kind: 'up', detail: JSON.stringify({ version }) })
    const first = [up('1'), up('1'), up('2'), up('2'), event(uid, 'renamed'), event(uid, 'conflict')]
    await deviceEvents.add([...first, ...lately(uid)], kept)
    for (let round = 0; round < 9; round += 1)
      await deviceEvents.add([...lately(uid), event(uid, 'conflict'), up('2')], kept)
    await deviceEvents.add(lately(uid), kept)
    const rows = await here.timeline.newest(uid, 100)
    const versions = rows.filter(({ kind }) => kind === 'up').map(({ detail }) => detail)
    expect(versions).toEqual(expect.arrayContaining(['{"version":"1"}', '{"version":"2"}']))
    expect(kinds(rows).filter((kind) => kind === 'conflict')).toHaveLength(3)
    expect(kinds(rows).filter((kind) => kind === 'renamed')).toHaveLength(1)
    expect(rows.length).toBeLessThanOrEqual(6 + 3 * 3 + trimmedEvery)
  })

  test('a device that is gone gets none, and its events go with it', async () => {
    const { here, uid } = await crane()
    const { deviceEvents } = storage.stores
    await deviceEvents.add([event(uid, 'a'), event('gone', 'a')], kept)
    await here.devices.remove(uid)
    await deviceEvents.add([event(uid, 'b')], kept)
    const { db } = storage.opened
    for (const one of [uid, 'gone'])
      expect(await db.selectFrom('device_events').selectAll().where('uid', '=', one).execute()).toEqual([])
  })

  test('nodes that write at the same time lose nothing: one of them is told to try again', async () => {
    const { here, uid } = await crane()
    const { deviceEvents, isDuplicate } = storage.stores
    const write = async (kind: string): Promise<void> => {
      for (;;)
        try {
          return await deviceEvents.add([event(uid, kind), event(uid, kind)], kept)
        } catch (error) {
          if (!isDuplicate(error)) throw error
        }
    }
    await Promise.all(Array.from({ length: 8 }, (_, node) => write(String(node))))
    expect(kinds(await here.timeline.newest(uid, 100)).toSorted()).toEqual(
      Array.from({ length: 16 }, (_, index) => String(index >> 1)),
    )
  })
})

// What happened in sessions, the same on both databases: in order, by pages, and gone with the session.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { databases, device, namespace, openFresh, session, sessionEvent, type Storage } from './databases.ts'

describe.each(databases)('$name', (database) => {
  let storage: Storage
  beforeAll(async () => {
    storage = await openFresh(database)
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  async function live() {
    const found = await namespace(storage)
    const one = device({ status: 'accepted' })
    await found.here.devices.insert(one)
    const { uid, ...rest } = session(one.uid)
    await found.here.sessions.insert({ uid, ...rest })
    return { ...found, uid, device: one.uid }
  }

  test('events of several namespaces in one batch are read in order, page by page', async () => {
    const [one, two] = [await live(), await live()]
    const { save } = storage.stores.sessionEventBatches
    await save([1, 2, 3].flatMap((seq) => [one, two].map(({ uid }) => sessionEvent(uid, { seq }))))
    const first = await one.here.sessionEvents.list(one.uid, 0, 2)
    expect(first).toEqual(
      [1, 2].map((seq) => ({ ...sessionEvent(one.uid, { seq }), tenant_id: one.tenant_id })),
    )
    expect((await one.here.sessionEvents.list(one.uid, 2, 2)).map(({ seq }) => seq)).toEqual([3])
    expect(await one.here.sessionEvents.list(two.uid, 0, 10)).toEqual([])
  })

  test('what becomes of an event later replaces what was said of it', async () => {
    const { here, uid } = await live()
    const { save } = storage.stores.sessionEventBatches
    await save([sessionEvent(uid, { outcome: 'open', received: 0 })])
    await save([sessionEvent(uid, { outcome: 'done', received: 7, subject: 'changed' })])
    const [event] = await here.sessionEvents.list(uid, 0, 10)
    expect(event).toMatchObject({ outcome: 'done', received: 7, subject: sessionEvent(uid).subject })
  })

  test('a session that is gone gets none, and its events go with it', async () => {
    const { here, uid, device: gone } = await live()
    const { save } = storage.stores.sessionEventBatches
    await save([sessionEvent(uid), sessionEvent('never')])
    await here.sessions.removeOfDevice(gone)
    await save([sessionEvent(uid)])
    const { db } = storage.opened
    for (const one of [uid, 'never'])
      expect(
        await db.selectFrom('session_events').selectAll().where('session_uid', '=', one).execute(),
      ).toEqual([])
  })
})

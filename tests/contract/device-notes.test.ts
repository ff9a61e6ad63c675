// Notes about devices: who reads and writes them, that nobody overwrites what they have not seen, what the
// audit log says, and where they go when a device is replaced or removed.
import { describe, expect, test } from 'vitest'
import { longestNotes } from '@hawser/contract/device-notes'
import { sample } from '@hawser/contract/examples'
import { bothDatabases, sharedPlace, type Place } from '../harness/place.ts'

const read = async (place: Place, uid: string) => (await place.observer.notes.get({ params: { uid } })).body
const write = async (place: Place, uid: string, text: string, version: number) =>
  (await place.operator.notes.set({ params: { uid }, body: { text, version } })).body

describe.each(bothDatabases)('on %s', (_, options) => {
  const place = sharedPlace(options)

  test('a device has none at first, then those that were written, by whom and when', async () => {
    const { uid } = await place.accepted('quay')
    expect(await read(place, uid)).toEqual({ text: '', version: 0 })
    const text = '# Quay\n\n- “key” in the *office* ⚓\n\u0007'
    const saved = await write(place, uid, text, 0)
    expect(saved).toMatchObject({ text, version: 1, changed_by: sample.operator.username })
    expect(await read(place, uid)).toEqual(saved)
    // The same again is no change.
    expect(await write(place, uid, text, 1)).toEqual(saved)
    const { body } = await place.key.notes.set({ params: { uid }, body: { text: 'short', version: 1 } })
    expect(body).toMatchObject({ text: 'short', version: 2, changed_by: `API key ${sample.apiKeyName}` })
    const {
      body: { entries },
    } = await place.administrator.audit.list({
      query: { action: 'device.notes.updated', limit: 10 },
    })
    const about = entries.filter(({ target }) => target.id === uid)
    expect(about.map(({ actor }) => actor.kind)).toEqual(['api-key', 'user'])
    expect(JSON.stringify(about)).not.toContain('office')
    expect(about[1]).toMatchObject({
      detail: { before: { version: 0, characters: 0 }, after: { version: 1, characters: [...text].length } },
    })
  })

  test('whoever has not seen the newest change changes nothing, also when both come at once', async () => {
    const { uid } = await place.accepted('slip')
    const tries = await Promise.allSettled(
      ['a', 'b', 'c', 'd'].map((text) => write(place, uid, `${text} was here`, 0)),
    )
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const one of tries.filter(({ status }) => status === 'rejected'))
      expect(one).toMatchObject({
        reason: { status: 409, message: 'oskar has changed the notes since you read them.' },
      })
    const now = await read(place, uid)
    expect(now).toMatchObject({ version: 1 })
    await write(place, uid, '', 1)
    // Emptied notes still count, so an old copy does not come back.
    await expect(write(place, uid, 'an old copy', 1)).rejects.toMatchObject({ status: 409 })
    await expect(write(place, uid, 'an old copy', 0)).rejects.toMatchObject({ status: 409 })
    expect(await read(place, uid)).toMatchObject({ text: '', version: 2 })
  })

  test('they have a longest length, counted in characters', async () => {
    const { uid } = await place.accepted('weir')
    await write(place, uid, '⚓'.repeat(longestNotes), 0)
    expect((await read(place, uid)).text).toHaveLength(longestNotes)
    await expect(write(place, uid, 'x'.repeat(longestNotes + 1), 1)).rejects.toMatchObject({ status: 400 })
    await expect(write(place, uid, 'a\0b', 1)).rejects.toMatchObject({ status: 400 })
  })

  test('another namespace has no such device, and an observer may not write', async () => {
    const { uid } = await place.accepted('groyne')
    const params = { uid }
    await expect(place.stranger.notes.get({ params })).rejects.toMatchObject({ status: 404 })
    const body = { text: 'x', version: 0 }
    await expect(place.stranger.notes.set({ params, body })).rejects.toMatchObject({ status: 404 })
    await expect(place.observer.notes.set({ params, body })).rejects.toMatchObject({ status: 403 })
    expect(await read(place, uid)).toEqual({ text: '', version: 0 })
  })

  test('they go over to the device that replaces it, before its own, and no further than fits', async () => {
    const mac = '00:00:5e:00:53:aa'
    const old = await place.enrol({ mac, hostname: 'lock' })
    await place.owner.devices.accept({ params: { uid: old.uid } })
    await write(place, old.uid, 'of the old one', 0)
    const young = await place.enrol({ mac, hostname: 'lock-new' })
    await write(place, young.uid, 'y'.repeat(longestNotes - 5), 0)
    await place.owner.devices.accept({ params: { uid: young.uid } })
    const { text, version } = await read(place, young.uid)
    expect(text).toMatch(/^of the old one\n\ny+$/)
    expect(text).toHaveLength(longestNotes)
    expect(version).toBe(2)
    await expect(read(place, old.uid)).rejects.toMatchObject({ status: 404 })
  })

  test('a device that is removed takes them with it, and comes back without', async () => {
    const device = await place.accepted('sluice')
    await write(place, device.uid, 'gone with it', 0)
    await place.administrator.devices.remove({ params: { uid: device.uid } })
    const { db } = place.rooms.database
    expect(await db.selectFrom('device_notes').selectAll().where('uid', '=', device.uid).execute()).toEqual(
      [],
    )
    await place.nobody.devices.auth({ body: device.body })
    expect(await read(place, device.uid)).toEqual({ text: '', version: 0 })
  })
})

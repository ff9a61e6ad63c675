// Somebody removes a recording, and the server is killed after the database knows of it and before the files
// are gone, or the files cannot be removed: nothing pointed at them any more, so that what was to be removed
// stayed on the disk for ever. What is to be removed is noted in the same transaction, and a sweep finishes
// it.
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { sample } from '@hawser/contract/examples'
import { expect, test, vi } from 'vitest'
import { recordingSweep } from '../../server/src/domain/sessions/recording-sweep.ts'
import { startPlace, type Place } from '../harness/place.ts'
import { startService } from '../harness/service.ts'

const journals = (folder: string): string[] => globSync('recordings/**/*.journal', { cwd: folder })

/** A session of the sample device with a recording. */
async function recorded(place: Place, uid: string, active: 0 | 1): Promise<void> {
  const now = new Date(place.clock.now()).toISOString()
  await place.rooms.stores.of(sample.tenant).sessions.insert({
    uid,
    device_uid: sample.device,
    username: 'root',
    ip_address: '192.0.2.9',
    started_at: now,
    last_seen: now,
    active: 1,
    authenticated: 0,
    recorded: 0,
    type: 'none',
    term: 'xterm',
    position: '{"latitude":0,"longitude":0}',
  })
  await place.administrator.sessions.record({
    params: { uid },
    body: { uid, message: 'login: ', width: 80, height: 24 },
  })
  await place.rooms.stores.of(sample.tenant).sessions.save(uid, { active })
}

const [first, second] = ['a'.repeat(64), 'b'.repeat(64)]
const sweep = ({ rooms: { stores, audit, recordings }, clock }: Place) =>
  recordingSweep({ stores, audit, recordings, clock, days: 0 })()

test('a recording whose removal a crash cut off is gone after the restart', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-orphans-'))
  try {
    {
      await using place = await startPlace({ folder })
      await recorded(place, first, 0)
      expect(journals(folder)).toHaveLength(1)
      // The process ends here, after the transaction and before the first file is touched.
      vi.spyOn(place.rooms.recordings, 'remove').mockRejectedValue(new Error('killed'))
      await expect(
        place.administrator.sessions.removeRecording({ params: { uid: first } }),
      ).rejects.toMatchObject({ status: 500 })
      expect(journals(folder)).toHaveLength(1)
    }
    await using again = await startService({ folder })
    expect(journals(folder)).toEqual([])
    expect(await again.rooms.stores.recordings.unwanted(10)).toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('files that cannot be removed now are removed by a sweep, once the session is over', async () => {
  await using place = await startPlace()
  await recorded(place, first, 0)
  await recorded(place, second, 1)
  const broken = vi.spyOn(place.rooms.recordings, 'remove').mockRejectedValue(new Error('the disk is away'))
  for (const uid of [first, second])
    await expect(place.administrator.sessions.removeRecording({ params: { uid } })).rejects.toMatchObject({
      status: 500,
    })
  broken.mockRestore()
  await sweep(place)
  // A session that goes on may be recorded again at any moment: its files wait for its end.
  expect(journals(place.folder)).toEqual([expect.stringContaining(second) as string])
  await place.rooms.stores.of(sample.tenant).sessions.save(second, { active: 0 })
  await sweep(place)
  expect(journals(place.folder)).toEqual([])
  expect(await place.rooms.stores.recordings.unwanted(10)).toEqual([])
})

test('what is recorded after a removal is not taken by a sweep', async () => {
  await using place = await startPlace()
  await recorded(place, first, 1)
  await place.administrator.sessions.removeRecording({ params: { uid: first } })
  expect(journals(place.folder)).toEqual([])
  const again = { uid: first, message: 'again', width: 80, height: 24 }
  await place.administrator.sessions.record({ params: { uid: first }, body: again })
  await place.rooms.stores.of(sample.tenant).sessions.save(first, { active: 0 })
  await sweep(place)
  expect(journals(place.folder)).toHaveLength(1)
})

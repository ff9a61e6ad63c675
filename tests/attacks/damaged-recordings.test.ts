// A recording that a disk, or somebody with a grudge, has damaged: whoever plays it gets a sentence and a
// failure with a name, not a bare 500, and the log says where the damage is. Nothing that is left of it is
// given out as if it were whole.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startPlace, type Place } from '../harness/place.ts'

const message = 'The recording is damaged and cannot be read; the server’s log says where.'

function fileOf({ folder }: Place): string {
  const at = path.join(folder, 'recordings')
  const found = readdirSync(at, { recursive: true, encoding: 'utf8' }).find((name) =>
    name.endsWith('.journal'),
  )
  if (found === undefined) throw new Error('nothing is recorded')
  return path.join(at, found)
}

const flipped = (at: number) => (bytes: Buffer) => {
  const changed = Buffer.from(bytes)
  changed[at] = (changed[at] ?? 0) ^ 0xff
  return changed
}

test.each<[string, (bytes: Buffer) => Buffer]>([
  ['is something else', (bytes) => Buffer.alloc(bytes.length, 'x')],
  ['is empty', () => Buffer.alloc(0)],
  ['has another beginning', flipped(0)],
  ['has an impossible length', flipped(8)],
  ['has another header', flipped(60)],
])('one that %s', async (_, damage) => {
  await using place = await startPlace()
  const { owner } = place
  const params = { uid: sample.session }
  for (const text of ['one', 'two', 'three'])
    await owner.sessions.record({
      params,
      body: { uid: sample.session, message: text, width: 80, height: 24 },
    })
  expect((await owner.sessions.play({ params })).body).toHaveLength(3)
  const file = fileOf(place)
  writeFileSync(file, damage(readFileSync(file)))
  const channel = { params: { ...params, channel: '0' } }
  for (const asked of [
    () => owner.recordings.list({ params }),
    () => owner.recordings.window({ ...channel, query: { at: 0 } }),
    () => owner.recordings.filmstrip({ ...channel, query: {} }),
    () => owner.recordings.search({ ...channel, query: { text: 'one' } }),
  ])
    await expect(asked()).rejects.toMatchObject({ status: 424, body: { message } })
  // These send as they read: refused, or broken off before the first frame.
  for (const asked of [() => owner.sessions.play({ params }), () => owner.sessions.cast({ params })]) {
    const outcome = await asked().then(
      () => 'whole',
      (error: { status?: number }) => error.status ?? 'broken off',
    )
    expect([424, 'broken off']).toContain(outcome)
  }
  expect(place.log()).toContain('JournalDamaged')
})

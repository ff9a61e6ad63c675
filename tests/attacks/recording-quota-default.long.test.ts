// One namespace must not fill the disk of all with recordings: each has a quota by default, which the server says
// at its start. Whoever held more than that before there was a quota is not cut off by an upgrade, and nothing of
// theirs is deleted.
import { existsSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { setUp, startProgram, temporaryFolder } from '../failures/program.ts'

vi.setConfig({ testTimeout: 120_000 })

const mebi = 1024 * 1024
const usual_bytes = 10_000 * mebi

/** A recording of this size, most of which takes no room on the disk. */
function record(folder: string, tenant: string, bytes: number): string {
  const uid = 'ab'.repeat(32)
  const file = path.join(folder, 'recordings', tenant, uid.slice(0, 2), uid, '0.journal')
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, '')
  truncateSync(file, bytes)
  return file
}

test('a namespace has a quota by default; the log says it, and the console what is used of it', async () => {
  using data = temporaryFolder()
  await using server = await startProgram({ folder: data.path })
  expect(await server.logged('recording.limit')).toMatchObject({ megabytes: 10_000 })
  const { api, tenant, token } = await setUp(server)
  expect((await api.recordings.usage()).body).toEqual({ used_bytes: 0, quota_bytes: usual_bytes })
  // The quota is decided by now: whoever holds too much later does not get more of it.
  record(data.path, tenant, 2 * usual_bytes)
  await server.kill()
  await using again = await startProgram({ folder: data.path })
  const { body } = await again.api({ token }).recordings.usage()
  expect(body).toEqual({ used_bytes: 2 * usual_bytes, quota_bytes: usual_bytes })
})

test('a namespace that held more before there was a quota may go on, and loses nothing', async () => {
  using data = temporaryFolder()
  await using server = await startProgram({ folder: data.path })
  const { api, tenant, token } = await setUp(server)
  const file = record(data.path, tenant, 2 * usual_bytes)
  const held = { used_bytes: 2 * usual_bytes, quota_bytes: 4 * usual_bytes }
  expect((await api.recordings.usage()).body).toEqual(held)
  expect(existsSync(file)).toBe(true)
  await server.kill()
  rmSync(file)
  await using again = await startProgram({ folder: data.path })
  expect((await again.api({ token }).recordings.usage()).body).toEqual({ ...held, used_bytes: 0 })
})

test.each([
  ['0', 0],
  ['5', 5 * mebi],
])('a quota that is set (%s MB) counts for every namespace', async (setting, quota_bytes) => {
  using data = temporaryFolder()
  await using server = await startProgram({
    folder: data.path,
    env: { HAWSER_RECORDING_QUOTA: setting },
  })
  expect(await server.logged('recording.limit')).toMatchObject({ megabytes: quota_bytes / mebi })
  const { api } = await setUp(server)
  expect((await api.recordings.usage()).body).toEqual({ used_bytes: 0, quota_bytes })
})

// A backup that is taken while the server works is a whole server: restored elsewhere it knows everybody,
// opens what was sealed and plays what was recorded. What would overwrite something, or is damaged, is
// refused.
import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

const place = mkdtempSync(path.join(os.tmpdir(), 'hawser-backup-'))
afterAll(() => rmSync(place, { recursive: true, force: true }))
const program = path.join(import.meta.dirname, '../../hawser.ts')

async function admin(
  data: string,
  ...words: string[]
): Promise<{ status: number; stdout: string; stderr: string }> {
  try {
    const done = await promisify(execFile)(process.execPath, [program, 'admin', ...words], {
      env: { PATH: process.env['PATH'], HAWSER_DATA: data },
    })
    return { status: 0, ...done }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { status: code, stdout, stderr }
  }
}

test('a server is backed up while it runs, and restored elsewhere', async () => {
  const copy = path.join(place, 'copy')
  const fresh = path.join(place, 'fresh')
  {
    await using service = await startService()
    const world = await buildWorld(service)
    const owner = service.api({ token: await world.token('owner') })
    await owner.namespaces.setSessionRecord({
      params: { tenant: sample.tenant },
      body: { session_record: true },
    })
    await owner.sessions.record({
      params: { uid: sample.session },
      body: { uid: sample.session, message: 'on tape', width: 80, height: 24 },
    })
    const taken = await admin(service.folder, 'backup', copy)
    expect(taken).toMatchObject({ status: 0, stderr: '' })
    // The folder may be one that others can enter.
    for (const name of ['master.key', 'hawser.db'])
      expect(statSync(path.join(copy, name)).mode & 0o777).toBe(0o600)
    // Again, into the same folder, with something new.
    await owner.devices.rename({ params: { uid: sample.device }, body: { name: 'renamed' } })
    expect((await admin(service.folder, 'backup', copy)).status).toBe(0)
    const there = await admin(service.folder, 'restore', copy)
    expect([there.status, there.stderr]).toEqual([1, expect.stringContaining('has a database already')])
  }
  expect(await admin(fresh, 'restore', copy)).toMatchObject({ status: 0, stderr: '' })
  await using restored = await startService({ folder: fresh })
  const { body } = await restored.api().users.login({ body: sample.owner })
  const owner = restored.api({ token: body.token })
  expect(await restored.rooms.auditLog.entries('', { action: 'admin.command', limit: 1 })).toMatchObject([
    { actor: { kind: 'admin' }, target: { id: 'restore' } },
  ])
  expect((await owner.devices.get({ params: { uid: sample.device } })).body.name).toBe('renamed')
  expect(
    (await owner.sessions.play({ params: { uid: sample.session } })).body
      .map(({ message }) => message)
      .join(''),
  ).toContain('on tape')
})

test('what is no backup, or is damaged, is refused, and nothing is left behind', async () => {
  const empty = path.join(place, 'empty')
  const nothing = await admin(empty, 'restore', place)
  expect([nothing.status, nothing.stderr]).toEqual([1, expect.stringContaining('is no backup')])
  const broken = mkdtempSync(path.join(place, 'broken-'))
  copyFileSync(path.join(place, 'copy', 'hawser.db'), path.join(broken, 'hawser.db'))
  const file = path.join(broken, 'hawser.db')
  truncateSync(file, Math.floor(readFileSync(file).length / 2))
  const damaged = await admin(empty, 'restore', broken)
  expect([damaged.status, damaged.stderr]).toEqual([
    1,
    expect.stringMatching(
      /^The backup \S+\/hawser\.db is damaged \(.+\)\. Nothing was restored: take an older backup\.\n$/,
    ),
  ])
  expect(damaged.stderr).toContain(file)
  expect(existsSync(path.join(empty, 'hawser.db'))).toBe(false)
  const where = await admin(empty, 'backup', path.join(place, 'other'))
  expect([where.status, where.stderr]).toEqual([1, expect.stringContaining('There is no database')])
  expect((await admin(empty, 'backup')).stderr).toContain('Usage: hawser admin backup <folder>')
})

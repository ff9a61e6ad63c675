// A disk that somebody fills up, a real one of 96 MB. Recordings stop before it is full; when it is, people
// can still sign in and delete something, because the server gives up a reserve; and what watches the server
// is told the truth.
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { watchDisk } from '../../server/src/kit/disk.ts'
import { setUp, startProgram, temporaryFolder, type Program } from '../failures/program.ts'
import { eventually } from '../harness/eventually.ts'

vi.setConfig({ testTimeout: 300_000 })

const megabyte = 1024 * 1024
const settings = { HAWSER_DISK_LOW: '40', HAWSER_DISK_RESERVE: '4', HAWSER_METRICS_TOKEN: 'gauge' }

/**
 * The program with its data folder on a small disk, which is there for this process alone and goes with it.
 */
async function onSmallDisk(folder: string, first = 'true'): Promise<{ program: Program; disk: string }> {
  const line = `mount -t tmpfs -o size=96m none "$0" && ${first} && exec "$@"`
  const program = await startProgram({
    folder,
    env: settings,
    command: [
      'unshare',
      '--mount',
      'sh',
      '-c',
      line,
      folder,
      process.execPath,
      path.join(import.meta.dirname, '../../hawser.ts'),
      'serve',
    ],
  })
  return { program, disk: path.join(`/proc/${program.child.pid}/root`, folder) }
}

function fill(disk: string, left_bytes: number, name = 'filler'): void {
  const file = openSync(path.join(disk, name), 'a')
  const piece = Buffer.alloc(64 * 1024, 1)
  try {
    for (;;) {
      const { bavail, bsize } = statfsSync(disk)
      if (bavail * bsize <= left_bytes) return
      writeSync(file, piece, 0, Math.min(piece.length, bavail * bsize - left_bytes))
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    closeSync(file)
  }
}

const inTime = <T>(check: () => T | Promise<T>): Promise<T> => eventually(check, 60_000)

async function health({ url }: Program): Promise<[number, string | null]> {
  const answer = await fetch(`${url}/healthcheck`)
  return [answer.status, answer.headers.get('x-disk')]
}

async function figure({ url }: Program, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`, { headers: { authorization: 'Bearer gauge' } })).text()
  return Number(new RegExp(`^${name} (.+)$`, 'm').exec(text)?.[1])
}

test('who fills the disk shuts nobody out, and does not go unnoticed', async () => {
  using folder = temporaryFolder()
  const { program, disk } = await onSmallDisk(folder.path)
  await using _ = program
  const olga = await setUp(program)
  const login = () =>
    program.api().users.login({ body: { username: olga.username, password: olga.password } })
  const reserve = path.join(disk, 'reserve')
  expect(existsSync(reserve)).toBe(true)
  expect(await health(program)).toEqual([200, null])
  expect(await figure(program, 'hawser_disk_state')).toBe(0)

  fill(disk, 30 * megabyte)
  // The server may have looked while the disk was being filled.
  await inTime(async () =>
    expect(await figure(program, 'hawser_disk_free_bytes')).toBeLessThan(31 * megabyte),
  )
  expect(await figure(program, 'hawser_disk_state')).toBe(1)
  expect(await health(program)).toEqual([200, 'low'])
  await program.logged('disk.low')
  const extra = (await olga.api.namespaces.create({ body: { name: 'spare' } })).body.tenant_id

  fill(disk, 0)
  const { token } = (await login()).body
  expect(await health(program)).toEqual([200, 'full'])
  expect(await figure(program, 'hawser_disk_state')).toBe(2)
  expect(existsSync(reserve)).toBe(false)
  await program.logged('disk.full')
  const api = program.api({ token })
  const refused = {
    status: 503,
    message: 'The disk of the server is full: only signing in, reading and deleting work.',
  }
  await expect(api.namespaces.create({ body: { name: 'another' } })).rejects.toMatchObject(refused)
  await expect(
    program
      .api()
      .devices.auth({ body: { info: {}, hostname: 'new', public_key: 'new', tenant_id: olga.tenant } }),
  ).rejects.toMatchObject({ status: 503 })
  expect((await api.namespaces.list({})).total).toBe(2)
  await api.namespaces.remove({ params: { tenant: extra } })
  expect((await api.namespaces.list({})).total).toBe(1)

  // When even the reserve is used up nobody can sign in, and the health says so.
  fill(disk, 0, 'more')
  await inTime(async () => expect((await health(program))[0]).toBe(503))

  for (const name of readdirSync(disk))
    if (name === 'filler' || name === 'more') rmSync(path.join(disk, name))
  await inTime(async () => expect(await health(program)).toEqual([200, null]))
  expect(existsSync(reserve)).toBe(true)
  await login()
  await api.namespaces.create({ body: { name: 'another' } })
})

test('the first who signs in on a full disk is let in, because the server makes room and tries again', async () => {
  using folder = temporaryFolder()
  // The write-ahead log of a server that has just started has no room of its own yet.
  const admin = `HAWSER_DATA="$0" "$1" "$2" admin`
  const command = `${admin} migrate >&2 && ${admin} user create olga rope-and-anchor olga@example.com >&2`
  const { program, disk } = await onSmallDisk(folder.path, command)
  await using _ = program
  fill(disk, 5 * megabyte)
  await inTime(async () => expect(await figure(program, 'hawser_disk_state')).toBe(1))
  fill(disk, 0)
  const body = { username: 'olga', password: 'rope-and-anchor' }
  expect((await program.api().users.login({ body })).status).toBe(200)
  expect(await health(program)).toEqual([200, 'full'])
  expect(existsSync(path.join(disk, 'reserve'))).toBe(false)
})

test('a reserve that cannot be written leaves nothing behind, and is not tried again at once', async () => {
  using folder = temporaryFolder()
  const [reserve, draft] = [path.join(folder.path, 'reserve'), path.join(folder.path, 'reserve.new')]
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  using disk = await watchDisk({
    folder: folder.path,
    low_bytes: 0,
    reserve_bytes: megabyte,
    onChange: () => undefined,
    onError,
  })
  rmSync(reserve)
  // There is room, as the file system says, but not for us.
  symlinkSync('/dev/full', draft)
  await disk.look()
  expect(errors).toEqual([expect.objectContaining({ code: 'ENOSPC' })])
  expect(readdirSync(folder.path)).toEqual([])
  await disk.look()
  expect(readdirSync(folder.path)).toEqual([])
})

test('a disk on which a write failed is full for some seconds, whatever the file system says is free', async () => {
  using folder = temporaryFolder()
  const states: string[] = []
  const onChange = (state: string): void => void states.push(state)
  using disk = await watchDisk({
    folder: folder.path,
    low_bytes: 0,
    reserve_bytes: megabyte,
    onChange,
    onError: () => undefined,
  })
  for (let failed = 0; failed < 3; failed += 1) {
    disk.wasFull()
    await disk.look()
  }
  expect([states, readdirSync(folder.path)]).toEqual([['full'], []])
  await inTime(() => expect(disk.state).toBe('ok'))
  expect([states, readdirSync(folder.path)]).toEqual([['full', 'ok'], ['reserve']])
})

// Files, with the real sftp and scp in both of its ways: the same bytes at the other end, an exit status of 0
// when it worked, and nothing that the user could not do with a shell.
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { openSftp, Status, type SftpFailure } from '@hawser/ssh'
import { expect, test, vi } from 'vitest'
import { run } from '../../ssh/test/programs.ts'
import { eventually } from '../../tests/harness/eventually.ts'
import { asUsersOfTheSystem, inBothModes, type Place } from './modes.ts'
import { isRunning, whenGone } from './running.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const bytes = randomBytes(5_000_003)
/** scp and sftp name the port by another letter. */
const args = (place: Place): string[] => place.args().map((arg) => (arg === '-p' ? '-P' : arg))
const sftp = async (place: Place, ...lines: string[]) =>
  run('sftp', [...args(place), '-b', '-', `${place.who.name}@127.0.0.1`], `${lines.join('\n')}\n`)
const scp = async (place: Place, ...rest: string[]) => run('scp', [...args(place), ...rest])
const there = (place: Place, file: string): string => `${place.who.name}@127.0.0.1:${file}`
const at = (place: Place, file: string): string => path.join(place.who.home, file)

inBothModes((place, root) => {
  test('sftp copies up and down, and begins at home', async () => {
    place.where.write('up', bytes)
    const { status, stdout, stderr } = await sftp(
      place,
      'pwd',
      `put ${place.where.file('up')} file`,
      `get file ${place.where.file('down')}`,
    )
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout.toString()).toContain(`Remote working directory: ${place.who.home}`)
    expect(readFileSync(at(place, 'file')).equals(bytes)).toBe(true)
    expect(readFileSync(place.where.file('down')).equals(bytes)).toBe(true)
    const { uid, gid, mode } = statSync(at(place, 'file'))
    expect([uid, gid, mode & 0o777]).toEqual([place.who.uid, place.who.gid, 0o600])
  })

  test.each([
    ['its new way', []],
    ['its old way', ['-O']],
  ])('scp in %s copies a file, a folder and times, and exits with 0', async (_, way) => {
    place.where.write('up', bytes)
    mkdirSync(place.where.file('folder/deep'), { recursive: true })
    place.where.write('folder/deep/one', 'one')
    await run('touch', ['-d', '2001-02-03 04:05:06 UTC', place.where.file('up')])
    const up = await scp(
      place,
      ...way,
      '-p',
      '-r',
      place.where.file('up'),
      place.where.file('folder'),
      there(place, '.'),
    )
    expect([up.status, up.stderr]).toEqual([0, ''])
    expect(readFileSync(at(place, 'up')).equals(bytes)).toBe(true)
    expect(statSync(at(place, 'up')).mtime.toISOString()).toBe('2001-02-03T04:05:06.000Z')
    expect(readFileSync(at(place, 'folder/deep/one'), 'utf8')).toBe('one')
    const down = await scp(place, ...way, there(place, 'up'), place.where.file('down'))
    expect([down.status, down.stderr]).toEqual([0, ''])
    expect(readFileSync(place.where.file('down')).equals(bytes)).toBe(true)
    expect((await scp(place, ...way, there(place, 'nothing'), place.where.file('down'))).status).toBe(1)
  })

  test('sftp makes, lists, renames, links and removes', async () => {
    writeFileSync(at(place, 'one'), 'one')
    if (root) chownSync(at(place, 'one'), place.who.uid, place.who.gid)
    const { status, stdout, stderr } = await sftp(
      place,
      'mkdir many',
      'rename one many/two',
      'ln -s two many/soft',
      'chmod 640 many/two',
      'ls -l many',
      'rm many/soft',
    )
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout.toString()).toMatch(/-rw-r----- .* 3 .* (?:many\/)?two/)
    expect(readdirSync(at(place, 'many'))).toEqual(['two'])
    expect((await sftp(place, 'get nothing')).status).toBe(1)
  })

  test('many files at once over one connection, each session with its own end', async () => {
    await using connection = await place.connect()
    const clients = await Promise.all([1, 2, 3, 4, 5].map(async () => openSftp(connection)))
    await Promise.all(
      clients.map(async (client, n) =>
        client.write(at(place, `parallel-${n}`), [bytes.subarray(0, 500_000)], 0o600),
      ),
    )
    for (const n of clients.keys())
      expect(readFileSync(at(place, `parallel-${n}`)).equals(bytes.subarray(0, 500_000))).toBe(true)
    await Promise.all(clients.map(async (client) => client[Symbol.asyncDispose]()))
  })
})

asUsersOfTheSystem((place) => {
  test('the kernel decides: other people’s files are theirs, those of the user’s groups are open', async () => {
    await using connection = await place.connect()
    const client = await openSftp(connection)
    const refused = async (work: Promise<unknown>): Promise<number | undefined> =>
      work.then(
        () => undefined,
        (error: SftpFailure) => error.code,
      )
    const read = async (file: string): Promise<string> => {
      const parts: Buffer[] = []
      for await (const part of client.read(file)) parts.push(part)
      return Buffer.concat(parts).toString()
    }
    expect(await refused(read('/etc/shadow'))).toBe(Status.permissionDenied)
    expect(await refused(client.write('/etc/hawser-test', [Buffer.from('x')], 0o600))).toBe(
      Status.permissionDenied,
    )
    expect(existsSync('/etc/hawser-test')).toBe(false)
    chmodSync(place.where.path, 0o711)
    const shared = place.where.write('shared', 'for the club')
    chownSync(shared, 0, place.who.groups[1]!)
    chmodSync(shared, 0o640)
    expect(await read(shared)).toBe('for the club')
    chownSync(shared, 0, 0)
    expect(await refused(read(shared))).toBe(Status.permissionDenied)
  })

  test('a child that serves files is the user in every respect, and goes with its connection', async () => {
    const connection = await place.connect()
    await openSftp(connection)
    const child = await eventually(() => {
      const found = readdirSync('/proc').find(
        (pid) => commandLine(pid).includes('sftp-child.ts') && statusOf(pid, 'PPid') === String(process.pid),
      )!
      const field = (name: string): string => statusOf(found, name)
      const { uid, gid, groups } = place.who
      expect([field('Uid'), field('Gid')]).toEqual([uid, gid].map((id) => [id, id, id, id].join('\t')))
      expect(new Set(field('Groups').split(' ').map(Number))).toEqual(new Set(groups))
      expect([field('CapEff'), field('CapPrm')]).toEqual(['0000000000000000', '0000000000000000'])
      return Number(found)
    })
    expect(isRunning(child)).toBe(true)
    await connection.end()
    await whenGone(child)
  })
})

function statusOf(pid: string, field: string): string {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  return new RegExp(`^${field}:\\s+(.*)$`, 'm').exec(status)![1]!.trim()
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}

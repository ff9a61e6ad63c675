// A data folder that cannot be used: read-only, a file, another user's, or with a damaged database. The
// server and the administrator's commands say so in one sentence that names the path and what to do,
// and change nothing.
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { isRoot } from '../../agent/test/device.ts'
import { admin, environmentFor, hawser, run, temporaryFolder } from './program.ts'

vi.setConfig({ testTimeout: 120_000 })

const place = temporaryFolder()
const at = (name: string): string => path.join(place.path, name)
afterAll(() => place[Symbol.dispose]())
// An installation with somebody in it, to be copied.
beforeAll(async () => {
  chmodSync(place.path, 0o755)
  for (const words of [['migrate'], ['user', 'create', 'ann', 'secret-1', 'ann@example.com']]) {
    const { code, stderr } = await admin(at('sound'), words)
    if (code !== 0) throw new Error(stderr)
  }
})

function installation(name: string): string {
  cpSync(at('sound'), at(name), { recursive: true })
  return at(name)
}

const commands = [['serve'], ['admin', 'user', 'list']] as const

/**
 * What each command says: each fails with the same sentence. `before` is put before the program's own words.
 */
async function sentence(
  folder: string,
  before: readonly string[] = [],
  program: readonly string[] = [process.execPath, hawser],
): Promise<string> {
  const said = await Promise.all(
    commands.map(async (words) => {
      const [first = '', ...rest] = [...before, ...program, ...words]
      const outcome = await run([first, ...rest], { env: environmentFor(folder) })
      expect(outcome, words.join(' ')).toMatchObject({ code: 1, signal: null, stdout: '' })
      return outcome.stderr
    }),
  )
  expect(new Set(said).size, said.join('')).toBe(1)
  expect(said[0]).toMatch(/^[^\n]+\n$/)
  return (said[0] ?? '').trim()
}

test('a file in its place, or in the place of a folder above it', async () => {
  writeFileSync(at('file'), 'not a folder')
  const what = `${at('file')} is a file, not a folder: set HAWSER_DATA to a folder, or move the file away.`
  expect(await sentence(at('file'))).toBe(what)
  const below = await run([process.execPath, hawser, 'serve'], { env: environmentFor(at('file/data')) })
  expect(below).toMatchObject({ code: 1, stderr: `${what}\n` })
  expect(readFileSync(at('file'), 'utf8')).toBe('not a folder')
})

describe.runIf(isRoot)('as root, who can mount and be somebody else', () => {
  const readOnly = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
  // The repository may be where only root can look, such as in a folder of mktemp: it is also mounted elsewhere.
  const root = path.dirname(hawser)
  const mounted = at('mounted')
  const asNobody =
    'mount --bind "$0" "$1" && shift && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"'
  const nobody = ['unshare', '--mount', 'sh', '-c', asNobody, root, mounted] as const
  const program = [process.execPath, hawser].map((file) => file.replace(root, mounted))
  beforeAll(() => mkdirSync(mounted))

  test('a read-only file system', async () => {
    const folder = installation('read-only')
    expect(await sentence(folder, ['unshare', '--mount', 'sh', '-c', readOnly, folder])).toBe(
      `${folder} is on a read-only file system: mount it writable, or set HAWSER_DATA to another folder.`,
    )
  })

  test('a folder of another user', async () => {
    const folder = installation('private')
    expect(await sentence(folder, nobody, program)).toBe(
      `${folder} belongs to root, and this process runs as nobody: run it as root, or set HAWSER_DATA to a ` +
        `folder of nobody (chown -R nobody ${folder} makes this one theirs).`,
    )
  })

  test('a folder of another user, for a backup, which only reads', async () => {
    const folder = installation('unreadable')
    const command = [...nobody, ...program, 'admin', 'backup', at('copy')] as const
    const { code, stderr } = await run(command, { env: environmentFor(folder) })
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${folder} belongs to root, and`)])
  })

  test('a file of another user in it, as a start as root leaves it', async () => {
    const folder = installation('mixed')
    chownSync(folder, 65534, 65534)
    expect(await sentence(folder, nobody, program)).toContain(
      `${path.join(folder, 'hawser.db')} belongs to root, and`,
    )
  })

  test('a place in which it cannot be created', async () => {
    mkdirSync(at('of-root'))
    const command = [...nobody, ...program, 'serve'] as const
    const { code, stderr } = await run(command, { env: environmentFor(at('of-root/data')) })
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${at('of-root')} belongs to root, and`)])
  })
})

describe('a damaged database', () => {
  const advice = (folder: string): string =>
    `Stop the server, move ${folder} away, and restore a backup with \`hawser admin restore <folder>\`.`

  test('with another beginning', async () => {
    const folder = installation('garbage')
    const file = path.join(folder, 'hawser.db')
    const bytes = readFileSync(file)
    bytes.write('this is no database at all', 0)
    writeFileSync(file, bytes)
    expect(await sentence(folder)).toBe(`${file} is damaged (file is not a database). ${advice(folder)}`)
  })

  test('that was cut off', async () => {
    const folder = installation('cut')
    const file = path.join(folder, 'hawser.db')
    truncateSync(file, Math.floor(statSync(file).size / 2))
    expect(await sentence(folder)).toBe(
      `${file} is damaged (database disk image is malformed). ${advice(folder)}`,
    )
  })

  test('with pages that were overwritten', async () => {
    const folder = installation('overwritten')
    const file = path.join(folder, 'hawser.db')
    const bytes = readFileSync(file)
    bytes.fill(0xff, 4096)
    writeFileSync(file, bytes)
    expect(await sentence(folder)).toBe(
      `${file} is damaged (database disk image is malformed). ${advice(folder)}`,
    )
  })

  test('that is empty: it is not taken for a new one', async () => {
    const folder = installation('empty')
    const file = path.join(folder, 'hawser.db')
    truncateSync(file, 0)
    expect(await sentence(folder)).toBe(
      `${file} is empty, although ${path.join(folder, 'master.key')} is there. ${advice(folder)}`,
    )
    expect(statSync(file).size).toBe(0)
  })
})

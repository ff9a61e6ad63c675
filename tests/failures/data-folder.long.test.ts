// A data folder that cannot be used: read-only, a file, or another user's. The server and the administrator's
// commands say so in one sentence that names the path and what to do, and change nothing. Damaged databases are in
// damaged-database.long.test.ts.
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { isRoot } from '../../agent/test/device.ts'
import { installations, sentence } from './data-folder.ts'
import { environmentFor, hawser, run } from './program.ts'

vi.setConfig({ testTimeout: 120_000 })

const { at, installation } = installations()

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

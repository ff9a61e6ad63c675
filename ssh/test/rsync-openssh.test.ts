// Programs that speak a protocol of their own through a session: rsync, and scp in its old way. Both are
// started here by our server as commands, and talk both ways at once in their own rhythm; whatever is lost,
// doubled or late breaks them.
import { createHash, randomBytes } from 'node:crypto'
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
} from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { folder, quietArgs, run, type Folder, type Outcome } from './programs.ts'
import { startServer } from './server.ts'

vi.setConfig({ testTimeout: 120_000 })

let where: Folder
beforeEach(() => {
  where = folder()
  // Small files, large ones, an empty one, a link, odd names, times and modes.
  for (const name of ['tree/deep/deeper', 'tree/empty']) mkdirSync(where.file(name), { recursive: true })
  for (let n = 0; n < 200; n += 1) where.write(`tree/deep/f${n}`, randomBytes(n * 7))
  where.write('tree/large', randomBytes(20 * 1024 * 1024))
  where.write('tree/deep/deeper/a name with ünïcode', 'x')
  where.write('tree/nothing', '')
  symlinkSync('large', where.file('tree/link'))
  utimesSync(where.file('tree/nothing'), 1_000_000_000, 1_000_000_000)
})
afterEach(() => where[Symbol.dispose]())

/** Every name below the folder with what it holds. */
function contents(name: string): string[] {
  const root = where.file(name)
  return (readdirSync(root, { recursive: true }) as string[])
    .map((entry) => {
      const stat = statSync(path.join(root, entry))
      if (stat.isDirectory()) return `${entry}/`
      const sum = createHash('sha256')
        .update(readFileSync(path.join(root, entry)))
        .digest('hex')
      return `${entry} ${stat.mode.toString(8)} ${Math.floor(stat.mtimeMs / 1000)} ${sum}`
    })
    .toSorted()
}

describe('rsync', () => {
  const rsync = async (port: number, ...args: string[]): Promise<Outcome> =>
    run('rsync', ['-e', ['ssh', ...quietArgs(port)].join(' '), '-a', '--stats', ...args])

  test('copies a tree there and back, and then only what has changed', async () => {
    await using server = await startServer()
    const there = where.file('there')
    const up = await rsync(server.port, `${where.file('tree')}/`, `olga@127.0.0.1:${there}/`)
    expect([up.status, up.stderr]).toEqual([0, ''])
    expect(contents('there')).toEqual(contents('tree'))
    const down = await rsync(server.port, '-z', `olga@127.0.0.1:${there}/`, `${where.file('back')}/`)
    expect([down.status, down.stderr]).toEqual([0, ''])
    expect(contents('back')).toEqual(contents('tree'))

    appendFileSync(where.file('tree/large'), 'more')
    const again = await rsync(
      server.port,
      '--delete',
      '--checksum',
      `${where.file('tree')}/`,
      `olga@127.0.0.1:${there}/`,
    )
    expect(contents('there')).toEqual(contents('tree'))
    // Twenty megabytes are there already.
    const literal = /Literal data: ([\d,]+) bytes/.exec(again.stdout.toString())?.[1]
    expect(Number(literal?.replaceAll(',', ''))).toBeLessThan(100_000)
    expect(server.failures).toEqual([])
  })

  test('what it cannot do there is told here', async () => {
    await using server = await startServer()
    const { status, stderr } = await rsync(
      server.port,
      `olga@127.0.0.1:${where.file('missing')}/`,
      `${where.file('back')}/`,
    )
    expect(status).toBe(23)
    expect(stderr).toContain('No such file or directory')
  })
})

test('scp in its old way copies a tree there and back', async () => {
  await using server = await startServer()
  const args = quietArgs(server.port).map((arg) => (arg === '-p' ? '-P' : arg))
  const scp = async (from: string, to: string): Promise<Outcome> =>
    run('scp', [...args, '-O', '-r', '-p', from, to])
  const up = await scp(where.file('tree'), `olga@127.0.0.1:${where.file('there')}`)
  expect([up.status, up.stderr]).toEqual([0, ''])
  const down = await scp(`olga@127.0.0.1:${where.file('there')}`, where.file('back'))
  expect([down.status, down.stderr]).toEqual([0, ''])
  expect(contents('there')).toEqual(contents('tree'))
  expect(contents('back')).toEqual(contents('tree'))
  expect((await scp(`olga@127.0.0.1:${where.file('missing')}`, where.file('back'))).status).toBe(1)
})

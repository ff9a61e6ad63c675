// rsync over the real OpenSSH client, through the gateway to a device and back: it speaks its own protocol
// both ways at once, and whatever is lost, doubled or late breaks it.
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
import { beforeAll, describe, expect, test } from 'vitest'
import { run, type Outcome } from '../../ssh/test/programs.ts'
import { sharedOldAgent, sharedWay, type How } from './way.ts'

const way = sharedWay()

beforeAll(() => {
  for (const name of ['tree/deep/deeper', 'tree/empty']) mkdirSync(way.where.file(name), { recursive: true })
  for (let n = 0; n < 100; n += 1) way.where.write(`tree/deep/f${n}`, randomBytes(n * 11))
  way.where.write('tree/large', randomBytes(5 * 1024 * 1024))
  way.where.write('tree/deep/deeper/a name with ünïcode', 'x')
  way.where.write('tree/nothing', '')
  symlinkSync('large', way.where.file('tree/link'))
  utimesSync(way.where.file('tree/nothing'), 1_000_000_000, 1_000_000_000)
})

const rsync = async (words: readonly string[], how?: How): Promise<Outcome> =>
  run('rsync', ['-e', ['ssh', ...way.args(how)].join(' '), '-rlpt', '--stats', ...words])
const at = (name: string, how?: How): string => `${way.sshid(how)}@127.0.0.1:${name}`

/** Every name below the folder with what it holds. */
function contents(root: string): string[] {
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

test('copies a tree there and back, and then only what has changed', async () => {
  const [tree, there, back] = [way.where.file('tree'), way.there('tree'), way.where.file('back')]
  const up = await rsync([`${tree}/`, at(`${there}/`)])
  expect([up.status, up.stderr]).toEqual([0, ''])
  expect(contents(there)).toEqual(contents(tree))
  const down = await rsync(['-z', at(`${there}/`), `${back}/`])
  expect([down.status, down.stderr]).toEqual([0, ''])
  expect(contents(back)).toEqual(contents(tree))

  appendFileSync(`${tree}/large`, 'more')
  const again = await rsync(['--delete', '--checksum', `${tree}/`, at(`${there}/`)])
  expect(contents(there)).toEqual(contents(tree))
  // Five megabytes are there already.
  const literal = /Literal data: ([\d,]+) bytes/.exec(again.stdout.toString())?.[1]
  expect(Number(literal?.replaceAll(',', ''))).toBeLessThan(100_000)
})

test('what it cannot do there is told here', async () => {
  const { status, stderr } = await rsync([at(`${way.there('missing')}/`), `${way.where.file('never')}/`])
  expect(status).toBe(23)
  expect(stderr).toContain('No such file or directory')
})

test('whoever may not log in copies nothing', async () => {
  const { status, stderr } = await rsync([`${way.where.file('tree')}/`, at(way.there('never'))], {
    key: null,
    settings: ['BatchMode=yes'],
  })
  // The client's number, or its own, if it was still sending.
  expect([12, 255]).toContain(status)
  expect(stderr).toContain('Permission denied')
  expect(() => statSync(way.there('never'))).toThrow('ENOENT')
})

describe.each([1, 2] as const)('a device of the field, with a tunnel of version %i', (version) => {
  const old = sharedOldAgent(way, version)
  test('gets a tree and gives it back', async () => {
    const to = { device: old.name }
    const [there, back] = [way.where.file(`old-${version}`), way.where.file(`old-back-${version}`)]
    expect((await rsync([`${way.where.file('tree')}/`, at(`${there}/`, to)])).status).toBe(0)
    expect((await rsync([at(`${there}/`, to), `${back}/`])).status).toBe(0)
    expect(contents(back)).toEqual(contents(way.where.file('tree')))
  })
})

// Files to and from devices with the real scp and sftp, in both of scp's ways, and through the agents of the
// field, which never say how their SFTP server ended.
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { run, type Outcome } from '../../ssh/test/programs.ts'
import { sharedOldAgent, sharedWay, type How } from './way.ts'

const way = sharedWay()
const large = randomBytes(5_000_003)

beforeAll(() => {
  way.where.write('large', large)
  mkdirSync(way.where.file('tree/deep'), { recursive: true })
  way.where.write('tree/deep/a name with ünïcode', 'x')
  way.where.write('tree/nothing', '')
})

/** The programs of the family want another letter for the port. */
const args = (how?: How): string[] => way.args(how).map((word) => (word === '-p' ? '-P' : word))
const scp = async (words: readonly string[], how?: How): Promise<Outcome> =>
  run('scp', [...args(how), '-q', ...words])
const at = (name: string, how?: How): string => `${way.sshid(how)}@127.0.0.1:${name}`
const holds = (file: string): void => expect(readFileSync(file).equals(large)).toBe(true)
const fine = ({ status, stderr }: Outcome): void => expect([status, stderr]).toEqual([0, ''])

describe.each([
  ['as it is now', [] as string[]],
  ['as it was (-O)', ['-O']],
])('scp %s', (_, way_) => {
  const name = (end: string): string => `${way_.join('')}${end}`

  test('copies a file there and back, and ends with 0', async () => {
    fine(await scp([...way_, '-p', way.where.file('large'), at(way.there(name('up')))]))
    holds(way.there(name('up')))
    fine(await scp([...way_, at(way.there(name('up'))), way.where.file(name('down'))]))
    holds(way.where.file(name('down')))
  })

  test('copies a folder with what is in it', async () => {
    fine(await scp([...way_, '-r', way.where.file('tree'), at(way.there(name('tree')))]))
    fine(await scp([...way_, '-r', at(way.there(name('tree'))), way.where.file(name('tree'))]))
    expect(readFileSync(way.where.file(`${name('tree')}/deep/a name with ünïcode`), 'utf8')).toBe('x')
  })

  test('what is not there, and where one may not write, is told with a number', async () => {
    const missing = await scp([...way_, at(way.there('missing')), way.where.file('never')])
    expect(missing.status).toBe(1)
    expect(missing.stderr).toContain('No such file or directory')
    expect((await scp([...way_, way.where.file('large'), at('/proc/never')])).status).toBe(1)
  })

  test('whoever may not log in copies nothing', async () => {
    const { status } = await scp([...way_, way.where.file('large'), at(way.there('never'))], {
      key: null,
      settings: ['BatchMode=yes'],
    })
    expect(status).toBe(way_.length > 0 ? 1 : 255)
    expect(() => statSync(way.there('never'))).toThrow('ENOENT')
  })
})

describe('sftp', () => {
  const sftp = async (lines: readonly string[], how?: How): Promise<Outcome> =>
    run('sftp', [...args(how), '-b', '-', `${way.sshid(how)}@127.0.0.1`], `${lines.join('\n')}\n`)

  test('puts, lists, renames, links, gets and removes', async () => {
    const { status, stdout } = await sftp([
      `cd ${way.there('')}`,
      'mkdir box',
      `put ${way.where.file('large')} box/one`,
      'chmod 640 box/one',
      'rename box/one box/two',
      'ln -s two box/three',
      'ls -l box',
      `get box/three ${way.where.file('three')}`,
      'df box',
      'rm box/two',
      'rm box/three',
      'rmdir box',
    ])
    expect(status).toBe(0)
    expect(stdout.toString()).toMatch(/-rw-r-----.* 5000003 .* two\n/)
    holds(way.where.file('three'))
    expect(() => statSync(way.there('box'))).toThrow('ENOENT')
  })

  test('a part that is there already is not sent again', async () => {
    way.where.write('part', large.subarray(0, 1_000_000))
    fine(await scp([way.where.file('large'), at(way.there('whole'))]))
    fine(await sftp([`reget ${way.there('whole')} ${way.where.file('part')}`]))
    holds(way.where.file('part'))
  })

  test('what cannot be done ends the batch with 1', async () => {
    const { status, stderr } = await sftp([`get ${way.there('missing')}`, `mkdir ${way.there('never')}`])
    expect(status).toBe(1)
    expect(stderr).toContain('not found')
    expect(() => statSync(way.there('never'))).toThrow('ENOENT')
  })

  test('the user’s rights count, not the agent’s', async () => {
    const { status, stderr } = await sftp([`put ${way.where.file('large')} /never`])
    expect(status).toBe(1)
    expect(stderr).toContain('Permission denied')
  })
})

describe.each([1, 2] as const)('a device of the field, with a tunnel of version %i', (version) => {
  const old = sharedOldAgent(way, version)

  test('scp copies there and back in both ways, and ends with 0', async () => {
    const to = { device: old.name }
    for (const words of [[], ['-O']]) {
      const [up, down] = [
        way.where.file(`up-${version}${words.join('')}`),
        way.where.file(`down-${version}${words.join('')}`),
      ]
      fine(await scp([...words, way.where.file('large'), at(up, to)], to))
      fine(await scp([...words, at(up, to), down], to))
      holds(down)
    }
  })

  test('what is not there is told with a number', async () => {
    expect((await scp([at('/missing', { device: old.name }), way.where.file('never')])).status).toBe(1)
  })

  test('scp copies from one device to another, through here', async () => {
    way.where.write(`source-${version}`, large)
    fine(
      await scp([
        '-3',
        at(way.where.file(`source-${version}`), { device: old.name }),
        at(way.there(`three-${version}`)),
      ]),
    )
    holds(way.there(`three-${version}`))
  })
})

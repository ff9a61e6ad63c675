// rsync over the real client: a tree up and down, and again with nothing left to do.
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { run } from '../../ssh/test/programs.ts'
import { inBothModes } from './modes.ts'
import { quoted } from './running.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

inBothModes((place) => {
  test('a tree goes up and comes back, and the second time nothing does', async () => {
    const bytes = randomBytes(2_000_000)
    mkdirSync(place.where.file('tree/deep/er'), { recursive: true })
    place.where.write('tree/large', bytes)
    for (let n = 0; n < 200; n += 1) place.where.write(`tree/deep/er/${n}`, String(n))
    const rsync = async (from: string, to: string) =>
      run('rsync', [
        '-a',
        '--stats',
        '--no-owner',
        '--no-group',
        '-e',
        `ssh ${quoted(place.args())}`,
        from,
        to,
      ])
    const there = `${place.who.name}@127.0.0.1:tree/`
    const up = await rsync(place.where.file('tree/'), there)
    expect([up.status, up.stderr]).toEqual([0, ''])
    expect(readFileSync(path.join(place.who.home, 'tree/large')).equals(bytes)).toBe(true)
    const again = await rsync(place.where.file('tree/'), there)
    expect(again.stdout.toString()).toMatch(/regular files transferred: 0\n/)
    const down = await rsync(there, place.where.file('back/'))
    expect([down.status, down.stderr]).toEqual([0, ''])
    expect(
      (await run('diff', ['-r', place.where.file('tree'), place.where.file('back')])).stdout.toString(),
    ).toBe('')
  })
})

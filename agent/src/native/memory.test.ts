import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { expect, test } from 'vitest'
import { unchangedMappings } from './memory.ts'

const file = path.join(import.meta.dirname, 'memory.ts')

/**
 * Prints how much of the program's unwritten mappings is resident, before and after, and a hash as proof of
 * life.
 */
const script = `
  import { createHash } from 'node:crypto'
  import { readFileSync } from 'node:fs'
  import { dropProgramPages, trimHeap } from ${JSON.stringify(file)}
  const resident_kb = () => readFileSync('/proc/self/smaps', 'latin1')
    .split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)
    .filter((text) => text.includes(process.execPath) && /^\\S+ r-.p/.test(text))
    .reduce((sum, text) => sum + Number(/^Rss: +(\\d+)/m.exec(text)[1]), 0)
  const before = resident_kb()
  trimHeap()
  dropProgramPages()
  console.log(JSON.stringify({
    before, after: resident_kb(), hash: createHash('sha256').update('rope').digest('hex'),
  }))`

function run(...flags: string[]): { before: number; after: number; hash: string } {
  const args = [...flags, '--no-warnings', '--input-type=module', '-e', script]
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as ReturnType<typeof run>
}

test('most of the program’s pages go, and the program goes on', () => {
  const { before, after, hash } = run()
  expect(after).toBeLessThan(before / 2)
  expect(hash).toBe('fe4d55b9ffa53044e44726118058bfa77c7a2156b6db92d8b6954a37d82ae0fd')
})

test('a Node without node:ffi gives nothing back and goes on', () => {
  const { before, after } = run('--no-experimental-ffi')
  expect(after).toBeGreaterThanOrEqual(before)
})

const mapping = (range: string, mode: string, name: string, anonymous = 0, swap = 0): string =>
  `${range} ${mode} 00000000 fe:00 4242                       ${name}\nSize: 4 kB\nRss: 4 kB\n` +
  `Anonymous:   ${String(anonymous).padStart(8)} kB\nSwap:   ${String(swap).padStart(8)} kB\n`

test('only mappings of the file that were never written are taken', () => {
  const node = '/opt/hawser-agent/bin/node'
  const smaps = [
    mapping('00400000-0082e000', 'r--p', node),
    mapping('0082e000-03489000', 'r-xp', node),
    mapping('072a7000-072dc000', 'r--p', node, 24),
    mapping('072dc000-072e0000', 'r--p', node, 0, 8),
    mapping('072e0000-07308000', 'rw-p', node),
    mapping('7f0000000000-7f0000001000', 'r-xp', `${node} (deleted)`),
    mapping('7f0000001000-7f0000002000', 'r-xp', '/usr/lib/libc.so.6'),
    mapping('7f0000002000-7f0000003000', 'r--s', node),
    mapping('7f0000003000-7f0000004000', 'r--p', ''),
    // A kernel without this field.
    `7f0000004000-7f0000005000 r--p 00000000 fe:00 4242     ${node}\nRss: 4 kB\n`,
  ].join('')
  expect(unchangedMappings(smaps, node)).toEqual([
    { start: 0x400000n, end: 0x82e000n },
    { start: 0x82e000n, end: 0x3489000n },
  ])
})

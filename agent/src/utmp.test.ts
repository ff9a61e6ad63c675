// The records of logins, read by the programs that people use.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { isWide, recordLogin, writeRecord, type LoginRecord } from './utmp.ts'

let folder: string
let files: { utmp: string; wtmp: string }
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-utmp-'))
  files = { utmp: path.join(folder, 'utmp'), wtmp: path.join(folder, 'wtmp') }
  for (const file of Object.values(files)) writeFileSync(file, '')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const olga: LoginRecord = { user: 'olga', terminal: '/dev/pts/7', pid: process.pid, address: '198.51.100.7' }
const now_ms = () => Date.UTC(2024, 4, 6, 7, 8, 9, 250)
const who = (file: string): string =>
  execFileSync('who', [file], { encoding: 'utf8', env: { PATH: process.env.PATH ?? '', TZ: 'UTC' } })

test('`who` shows a login, and nobody once it has ended', () => {
  const end = recordLogin(olga, { files, now_ms })
  expect(who(files.utmp)).toMatch(/^olga +pts\/7 +(?:2024-05-06|May +6) 07:08 \(198\.51\.100\.7\)\n$/)
  end()
  expect(who(files.utmp)).toBe('')
  expect(statSync(files.wtmp).size).toBe(2 * statSync(files.utmp).size)
})

test('`who` names the person before the address, and the address of the record stays', () => {
  recordLogin({ ...olga, user: 'root', person: 'olga' }, { files, now_ms })
  expect(who(files.utmp)).toMatch(/^root +pts\/7 .*\(olga@198\.51\.100\.7\)\n$/)
  const address = isWide(os.arch()) ? 360 : 348
  expect([...readFileSync(files.utmp).subarray(address, address + 4)]).toEqual([198, 51, 100, 7])
})

test('a terminal has one place in utmp, however often it is used, and others keep theirs', () => {
  const ends = [
    olga,
    { ...olga, terminal: '/dev/pts/8', user: 'pavel' },
    { ...olga, terminal: '/dev/pts/12345' },
  ].map((login) => recordLogin(login, { files, now_ms }))
  ends[0]!()
  recordLogin({ ...olga, user: 'rosa', address: '2001:db8::7' }, { files, now_ms })
  expect(statSync(files.utmp).size).toBe(3 * writeRecord(7, olga, isWide(os.arch()), 0).length)
  const shown = who(files.utmp)
  expect(shown).toMatch(/^rosa +pts\/7 .*\(2001:db8::7\)$/m)
  expect(shown).toMatch(/^pavel +pts\/8 /m)
  expect(shown).toMatch(/^olga +pts\/12345 /m)
})

test('without the files nothing is written and nothing fails', () => {
  rmSync(files.utmp)
  rmSync(files.wtmp)
  recordLogin(olga, { files })()
  expect(() => statSync(files.utmp)).toThrow(/ENOENT/)
  expect(() => statSync(files.wtmp)).toThrow(/ENOENT/)
})

test('a file that is cut short or of something else is only added to', () => {
  writeFileSync(files.utmp, 'nonsense')
  recordLogin(olga, { files })()
  expect(readFileSync(files.utmp).subarray(0, 8).toString()).toBe('nonsense')
})

test('both layouts have their fields where they belong', () => {
  const [narrow, wide] = [false, true].map((width) => writeRecord(7, olga, width, now_ms())) as [
    Buffer,
    Buffer,
  ]
  expect([narrow.length, wide.length]).toEqual([384, 400])
  for (const record of [narrow, wide]) {
    const text = (at: number, room: number): string =>
      record.toString('utf8', at, at + room).replace(/\0+$/, '')
    expect([record.readInt16LE(0), record.readInt32LE(4), text(8, 32), text(40, 4)]).toEqual([
      7,
      process.pid,
      'pts/7',
      'ts/7',
    ])
    expect([text(44, 32), text(76, 256)]).toEqual(['olga', '198.51.100.7'])
  }
  expect([narrow.readUInt32LE(340), narrow.readInt32LE(344)]).toEqual([now_ms() / 1000 - 0.25, 250_000])
  expect([wide.readBigInt64LE(344), wide.readBigInt64LE(352)]).toEqual([
    BigInt(now_ms() / 1000 - 0.25),
    250_000n,
  ])
  expect([...narrow.subarray(348, 352)]).toEqual([198, 51, 100, 7])
  expect([...wide.subarray(360, 364)]).toEqual([198, 51, 100, 7])
})

test('long names and odd addresses are cut or left out', () => {
  const record = writeRecord(7, { ...olga, user: 'ü'.repeat(50), address: 'h'.repeat(300) }, false, 0)
  expect(record.subarray(348, 364).equals(Buffer.alloc(16))).toBe(true)
  expect(record.subarray(76, 332).toString()).toBe('h'.repeat(256))
  const six = writeRecord(7, { ...olga, address: '2001:db8::a:7' }, false, 0)
  expect(six.subarray(348, 364).toString('hex')).toBe('20010db80000000000000000000a0007')
})

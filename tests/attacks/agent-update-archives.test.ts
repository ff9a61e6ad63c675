// Archives that an agent must not unpack, as root, whoever signed them: paths that lead out of the folder,
// links, devices, files that would be replaced, endless and broken ones. Nothing outside the folder changes.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BadArchive, unpack } from '../../agent/src/update/unpack.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-archive-'))
  mkdirSync(path.join(folder, 'there/inner'), { recursive: true })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

interface Entry {
  readonly name: string
  readonly kind?: string
  readonly link?: string
  readonly body?: Buffer
  /** What the header says, if not the length of the body. */
  readonly size?: string
  readonly prefix?: string
}

/** The bytes of one entry, as the attacker writes them. */
function entry({ name, kind = '0', link = '', body = Buffer.alloc(0), size, prefix = '' }: Entry): Buffer {
  const header = Buffer.alloc(512)
  header.write(name, 0, 100, 'latin1')
  header.write('0000755\0', 100, 'latin1')
  header.write(size ?? `${body.length.toString(8).padStart(11, '0')}\0`, 124, 12, 'latin1')
  header.write('00000000000\0', 136, 'latin1')
  header.write(kind, 156, 'latin1')
  header.write(link, 157, 100, 'latin1')
  header.write('ustar\x0000', 257, 'latin1')
  header.write(prefix, 345, 155, 'latin1')
  header.write('        ', 148, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return Buffer.concat([header, body, Buffer.alloc((512 - (body.length % 512)) % 512)])
}
const end = Buffer.alloc(1024)
const first = entry({ name: 'hawser-agent/BUILD', body: Buffer.from('{}') })

async function unpackBytes(bytes: Buffer, limits?: Parameters<typeof unpack>[2]): Promise<string> {
  const archive = path.join(folder, 'archive')
  writeFileSync(archive, bytes)
  try {
    await unpack(archive, path.join(folder, 'there/inner'), limits)
    return 'unpacked'
  } catch (error) {
    return error instanceof BadArchive ? 'refused' : String((error as NodeJS.ErrnoException).code)
  }
}
const body = Buffer.from('attacker')

test.each<[string, Entry]>([
  ['a path that climbs', { name: 'hawser-agent/../../escaped', body }],
  ['a path that climbs by its prefix', { name: 'escaped', prefix: 'hawser-agent/..', body }],
  ['an absolute path', { name: '/tmp/hawser-escaped', body }],
  ['a path beside the top', { name: 'elsewhere/escaped', body }],
  ['the top itself as a file', { name: 'hawser-agent/', body }],
  ['a name with a line break', { name: 'hawser-agent/a\nb', body }],
  ['a name of dots', { name: 'hawser-agent/./x', body }],
  ['an empty part', { name: 'hawser-agent//x', body }],
  ['a symbolic link', { name: 'hawser-agent/app', kind: '2', link: '/etc' }],
  ['a hard link', { name: 'hawser-agent/shadow', kind: '1', link: '/etc/shadow' }],
  ['a device', { name: 'hawser-agent/disk', kind: '4' }],
  ['a pipe', { name: 'hawser-agent/pipe', kind: '6' }],
  [
    'a header that renames the next one',
    { name: 'hawser-agent/x', kind: 'x', body: Buffer.from('20 path=../../e\n') },
  ],
  ['a long name of GNU tar', { name: 'hawser-agent/x', kind: 'L', body: Buffer.from('../../escaped\0') }],
  ['a size that is no number', { name: 'hawser-agent/x', size: '-0000000001\0', body }],
  ['a size in base 256', { name: 'hawser-agent/x', size: '\x80\0\0\0\0\0\0\x7f\xff\xff\xff\xff', body }],
])('%s', async (_, wrong) => {
  expect(await unpackBytes(gzipSync(Buffer.concat([first, entry(wrong), end])))).toBe('refused')
  expect(readdirSync(path.join(folder, 'there'))).toEqual(['inner'])
  expect(existsSync(path.join(folder, 'escaped'))).toBe(false)
  expect(existsSync('/tmp/hawser-escaped')).toBe(false)
})

test('a second file of the same name replaces nothing', async () => {
  const twice = Buffer.concat([first, entry({ name: 'hawser-agent/BUILD', body }), end])
  expect(await unpackBytes(gzipSync(twice))).toBe('EEXIST')
  expect(readFileSync(path.join(folder, 'there/inner/BUILD'), 'utf8')).toBe('{}')
})

test('more than an agent has', async () => {
  const zeroes = Buffer.alloc(1024 * 1024)
  const bomb = Buffer.concat([first, entry({ name: 'hawser-agent/big', body: zeroes }), end])
  expect(await unpackBytes(gzipSync(bomb), { most_bytes: 1000, mostFiles: 10 })).toBe('refused')
  // Not a byte of it was written.
  expect(readdirSync(path.join(folder, 'there/inner'))).toEqual(['BUILD'])
  const many = Buffer.concat([
    ...Array.from({ length: 11 }, (_, n) => entry({ name: `hawser-agent/${n}` })),
    end,
  ])
  expect(await unpackBytes(gzipSync(many), { most_bytes: 1000, mostFiles: 10 })).toBe('refused')
})

test('what is cut off, anywhere, and what is no archive', async () => {
  const whole = gzipSync(
    Buffer.concat([first, entry({ name: 'hawser-agent/x', body: Buffer.alloc(3000, 7) }), end]),
  )
  for (let length = 0; length < whole.length - 8; length += 7) {
    rmSync(path.join(folder, 'there/inner'), { recursive: true })
    mkdirSync(path.join(folder, 'there/inner'))
    expect(await unpackBytes(whole.subarray(0, length))).not.toBe('unpacked')
  }
  expect(await unpackBytes(Buffer.from('no archive at all'))).not.toBe('unpacked')
  expect(await unpackBytes(gzipSync(end))).toBe('refused')
})

test('what tar itself makes of plain files is unpacked, with the right to run kept and no other', async () => {
  const top = path.join(folder, 'made/hawser-agent')
  mkdirSync(path.join(top, 'bin'), { recursive: true })
  writeFileSync(path.join(top, 'bin/run'), '#!/bin/sh\n', { mode: 0o6777 })
  execFileSync('chmod', ['6777', path.join(top, 'bin/run')])
  writeFileSync(path.join(top, 'long'), Buffer.alloc(200_000, 1))
  execFileSync('tar', [
    '-C',
    path.join(folder, 'made'),
    '--format=ustar',
    '-czf',
    path.join(folder, 'archive'),
    'hawser-agent',
  ])
  await unpack(path.join(folder, 'archive'), path.join(folder, 'there/inner'))
  const modes = execFileSync('stat', ['-c', '%a', 'bin/run', 'long'], {
    cwd: path.join(folder, 'there/inner'),
  })
  expect(modes.toString()).toBe('755\n644\n')
  expect(readFileSync(path.join(folder, 'there/inner/long')).equals(Buffer.alloc(200_000, 1))).toBe(true)
})

// The files of a container over a shell, held against the tools of this machine (the tests with a real engine
// have busybox): what is read and written is the bytes and nothing else, names may be anything, and refusals
// have their codes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Open, type FileSystem } from '@hawser/ssh'
import type { Exec, Output } from '../src/exec.ts'
import { containerFiles } from '../src/files.ts'
import { newMark, containerShell, shellLoop } from '../src/container-shell.ts'

let home: string
let files: FileSystem
const started: Exec[] = []

/** A program of this machine with the face of one in a container. */
function local(script: string, ...words: string[]): Exec {
  const child = spawn(
    '/bin/sh',
    ['-c', `umask 022; LC_ALL=C; export LC_ALL; NL='\n'; ${script}`, 'files', ...words],
    { cwd: home },
  )
  const ended = once(child, 'close').then(([code]) => code as number)
  async function* output(): AsyncGenerator<Output> {
    for await (const bytes of child.stdout as AsyncIterable<Buffer>) yield { stream: 0, bytes }
    for await (const bytes of child.stderr as AsyncIterable<Buffer>) yield { stream: 1, bytes }
  }
  child.stdin.on('error', () => undefined)
  const exec: Exec = {
    output: output(),
    write: async (bytes) =>
      child.stdin.writable && new Promise((resolve) => child.stdin.write(bytes, (error) => resolve(!error))),
    endInput: () => void child.stdin.end(),
    resize: async () => undefined,
    exit: async () => ended,
    close: () => void child.kill('SIGKILL'),
  }
  started.push(exec)
  return exec
}

beforeAll(() => {
  home = mkdtempSync(path.join(os.tmpdir(), 'hawser-files-'))
  const mark = newMark()
  const exec = local(shellLoop, mark)
  files = containerFiles(
    containerShell(exec, exec.output[Symbol.asyncIterator](), mark),
    mark,
    async (script) => local(script),
  )
})
afterAll(() => {
  for (const exec of started) exec.close()
  rmSync(home, { recursive: true, force: true })
})

const at = (name: string): string => path.join(home, name)
const put = async (name: string, bytes: Buffer): Promise<void> => {
  const file = await files.open(name, Open.write | Open.create | Open.truncate, 0o644)
  await file.write(bytes, 0)
  await file.close()
}
const names = [
  'plain',
  'with space',
  "it's",
  '"quoted"',
  '$HOME',
  '`id`',
  '$(id)',
  '-rf',
  'line\nend',
  '\nfirst',
  'ü',
  '*',
  '\\',
  ';id',
  '&',
]

describe('a file', () => {
  test.each([0, 1, 4_095, 65_537, 261_120, 1_000_003])('of %i bytes is written and read', async (size) => {
    const bytes = Buffer.from(Array.from({ length: size }, (_, index) => (index * 31) % 256))
    await put('file', bytes)
    expect(readFileSync(at('file')).equals(bytes)).toBe(true)
    const file = await files.open('file', Open.read, 0)
    const back: Buffer[] = []
    for (let position = 0; ;) {
      const room = Buffer.alloc(100_000)
      const got = await file.read(room, position)
      if (got === 0) break
      back.push(room.subarray(0, got))
      position += got
    }
    expect(Buffer.concat(back).equals(bytes)).toBe(true)
    await file.close()
  })

  test('that looks like scripts and reports is bytes all the same', async () => {
    const bytes = Buffer.from(
      `\ntouch ${at('run')}\n${'0'.repeat(32)} 0 \n${'0'.repeat(32)}\n'; touch ${at('run')}; '\n`,
    )
    await put('tricky', bytes)
    const room = Buffer.alloc(1_000)
    const file = await files.open('tricky', Open.read, 0)
    expect(room.subarray(0, await file.read(room, 0)).equals(bytes)).toBe(true)
    expect(lstatSync(at('run'), { throwIfNoEntry: false })).toBeUndefined()
  })

  test('is written in any order, in the middle, and at its end', async () => {
    const file = await files.open('order', Open.write | Open.create | Open.truncate, 0o600)
    await file.write(Buffer.from('world'), 6)
    await file.write(Buffer.from('hello '), 0)
    await file.write(Buffer.from('W'), 6)
    await file.close()
    expect(readFileSync(at('order'), 'utf8')).toBe('hello World')
    const more = await files.open('order', Open.write | Open.append, 0)
    await more.write(Buffer.from('!'), 0)
    await more.close()
    expect(readFileSync(at('order'), 'utf8')).toBe('hello World!')
    expect(statSync(at('order')).mode & 0o777).toBe(0o600)
  })

  test.each(names)('may be called %j', async (name) => {
    await put(name, Buffer.from(name))
    expect(readFileSync(at(name), 'utf8')).toBe(name)
    expect(await files.stat(name)).toMatchObject({ size: Buffer.byteLength(name) })
    await files.rename(name, `${name}2`, false)
    await files.remove(`${name}2`)
    await expect(files.lstat(name)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('is changed: its size, rights and times', async () => {
    await put('changed', Buffer.from('0123456789'))
    await files.change('changed', { size: 4, mode: 0o640, atime: 1_600_000_000, mtime: 1_700_000_000 }, true)
    expect(statSync(at('changed'))).toMatchObject({
      mode: 0o100640,
      atimeMs: 1_600_000_000_000,
      mtimeMs: 1_700_000_000_000,
    })
    expect(readFileSync(at('changed'), 'utf8')).toBe('0123')
  })

  test('that exists is not made again by whoever wants a new one', async () => {
    await put('there', Buffer.from('x'))
    await expect(files.open('there', Open.write | Open.create | Open.exclusive, 0o644)).rejects.toMatchObject(
      { code: 'EEXIST' },
    )
    await expect(files.open('none', Open.write, 0o644)).rejects.toMatchObject({ code: 'ENOENT' })
    await expect(files.open('none', Open.read, 0)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('is no pipe: nobody would be at its other end', async () => {
    await new Promise((resolve) => spawn('mkfifo', [at('pipe')]).once('close', resolve))
    await expect(files.open('pipe', Open.read, 0)).rejects.toMatchObject({ code: 'EACCES' })
  })

  test('with a NUL in its name is not there', async () => {
    await expect(files.stat('a\0b')).rejects.toMatchObject({ message: 'No such file or directory' })
  })
})

describe('a folder', () => {
  test('is listed with all that is in it, whatever it is called', async () => {
    mkdirSync(at('folder'))
    for (const name of names) writeFileSync(at(`folder/${name}`), '')
    writeFileSync(at('folder/.hidden'), '12345')
    symlinkSync('nowhere', at('folder/link'))
    const found = await Array.fromAsync(files.list('folder'))
    expect(found.map(({ name }) => name).toSorted()).toEqual(
      ['.', '..', '.hidden', 'link', ...names].toSorted(),
    )
    expect(found.find(({ name }) => name === '.hidden')?.attributes.size).toBe(5)
    expect((found.find(({ name }) => name === 'link')?.attributes.mode ?? 0) & 0o170000).toBe(0o120000)
    await expect(Array.fromAsync(files.list('none'))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('is made, moved and removed, and only when it is empty', async () => {
    await files.makeFolder('made', 0o750)
    expect(statSync(at('made')).mode & 0o7777).toBe(0o750)
    await expect(files.makeFolder('made', 0o755)).rejects.toMatchObject({ code: 'EEXIST' })
    await put('made/in', Buffer.from('x'))
    await expect(files.removeFolder('made')).rejects.toMatchObject({ code: 'ENOTEMPTY' })
    await files.rename('made', 'moved', false)
    await files.makeFolder('other', 0o755)
    // Not into it: in its place.
    await files.rename('moved', 'other', true)
    expect(readFileSync(at('other/in'), 'utf8')).toBe('x')
    await expect(files.remove('other')).rejects.toMatchObject({ code: 'EISDIR' })
    await files.remove('other/in')
    await files.removeFolder('other')
  })

  test('that is there is not moved over without being asked to', async () => {
    await put('one', Buffer.from('1'))
    await put('two', Buffer.from('2'))
    await expect(files.rename('one', 'two', false)).rejects.toMatchObject({ code: 'EEXIST' })
    await files.rename('one', 'two', true)
    expect(readFileSync(at('two'), 'utf8')).toBe('1')
  })
})

test('links are made and read, and paths resolved', async () => {
  await put('target', Buffer.from('t'))
  await files.link("tar'get", 'soft', true)
  await files.link('target', 'hard', false)
  expect(readlinkSync(at('soft'))).toBe("tar'get")
  expect(await files.readLink('soft')).toBe("tar'get")
  expect(statSync(at('hard')).nlink).toBe(2)
  await expect(files.link('x', 'soft', true)).rejects.toMatchObject({ code: 'EEXIST' })
  expect(await files.resolve('.')).toBe(home)
  expect(await files.resolve(`../${path.basename(home)}/../y`)).toBe(path.join(path.dirname(home), 'y'))
  expect(await files.space('.')).toMatchObject({ block_bytes: expect.any(Number) as number })
})

test('what the rights of the user forbid is refused, and the line goes on', async () => {
  // Root may everything but these.
  await expect(files.open('/proc/none', Open.write | Open.create, 0o644)).rejects.toMatchObject({
    code: 'ENOENT',
  })
  await expect(files.makeFolder('/proc/none', 0o755)).rejects.toBeInstanceOf(Error)
  const full = await files.open('/dev/full', Open.write, 0)
  await full.write(Buffer.alloc(100_000), 0)
  await expect(full.close()).rejects.toMatchObject({ code: 'ENOSPC' })
  expect(await files.resolve('.')).toBe(home)
})

// Files beside a terminal of a browser, on a real device: they go up whole or not at all, the former file is
// there until the new one is, an upload that was cut off goes on, and what is asked for beside that (folders,
// names, removing) is done or refused in plain words.
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { piece_bytes, type FileNews } from '@hawser/contract/terminals'
import { sample } from '@hawser/contract/examples'
import { eventually } from '../harness/eventually.ts'
import { apiOf, filesBeside, sharedQuarters, terminal, type FilesLine } from './web.ts'

const quarters = sharedQuarters()
const files = async (session: string): Promise<FilesLine> => filesBeside(quarters(), session)

test('a file goes up whole, is listed and comes down again; the session stays a shell', async () => {
  const { user } = quarters()
  const [shell, session] = await terminal(quarters())
  using opened = shell
  void opened
  using line = await files(session)
  const bytes = Buffer.alloc(3_000_000, 'tide ')
  const target = path.join(user.home, 'log book.txt')
  line.say({ kind: 'put', path: target, size: bytes.length, replace: false })
  expect(await line.next()).toEqual({ kind: 'ready', from: 0 })
  for (let at = 0; at < bytes.length; at += piece_bytes) line.send(bytes.subarray(at, at + piece_bytes))
  let taken = 0
  for (;;) {
    const news = await line.next()
    if (news.kind === 'done') break
    expect(news).toMatchObject({ kind: 'taken' })
    taken = (news as { bytes: number }).bytes
  }
  expect(taken).toBe(bytes.length)
  expect(readFileSync(target).equals(bytes)).toBe(true)
  if (process.getuid?.() === 0) expect(statSync(target).uid).not.toBe(0)

  line.say({ kind: 'list', path: '' })
  const folder = (await line.next()) as FileNews & { kind: 'folder' }
  expect(folder.path).toBe(user.home)
  expect(folder.entries).toContainEqual({
    name: 'log book.txt',
    is: 'file',
    size: bytes.length,
    changed_at: expect.any(Number) as number,
  })

  // What is there is not replaced unasked.
  line.say({ kind: 'put', path: target, size: 2, replace: false })
  expect(await line.next()).toEqual({
    kind: 'error',
    message: 'There is a file of this name already.',
    exists: true,
  })
  line.say({ kind: 'put', path: target, size: 2, replace: true })
  expect(await line.next()).toEqual({ kind: 'ready', from: 0 })
  line.send(Buffer.from('ok'))
  expect(await line.next()).toEqual({ kind: 'taken', bytes: 2 })
  expect(await line.next()).toEqual({ kind: 'done' })

  line.say({ kind: 'get', path: target })
  expect(await line.next()).toMatchObject({ kind: 'file', size: 2 })
  expect(await line.next()).toEqual({ kind: 'end' })
  expect(Buffer.concat(line.got).toString()).toBe('ok')
  const api = await apiOf(quarters())
  expect((await api.sessions.get({ params: { uid: session } })).body.type).toBe('shell')
})

test('what cannot be done is said in plain words', async () => {
  const { user } = quarters()
  const [shell, session] = await terminal(quarters())
  using opened = shell
  void opened
  using line = await files(session)
  line.say({ kind: 'list', path: '/no/such' })
  expect(await line.next()).toEqual({ kind: 'error', message: 'There is no such file or folder.' })
  line.say({ kind: 'list', path: user.home })
  expect((await line.next()).kind).toBe('folder')
  for (const [wish, sentence] of [
    [{ kind: 'get', path: '/no/such' }, 'There is no such file or folder.'],
    [{ kind: 'get', path: user.home }, 'This is not a file that can be downloaded.'],
    [
      { kind: 'put', path: '/proc/version-2', size: 1, replace: false },
      /permission denied|The device reports|no such/,
    ],
    [{ kind: 'get', path: 'x'.repeat(5000) }, 'A message of the browser was not understood.'],
    [{ kind: 'dance' }, 'A message of the browser was not understood.'],
  ] as const) {
    using other = await files(session)
    other.say(wish)
    const news = (await other.next()) as { message: string }
    if (typeof sentence === 'string') expect(news.message).toBe(sentence)
    else expect(news.message).toMatch(sentence)
    await other.closed
  }
})

test('are for whoever has the terminal, while it is open', async () => {
  const { user } = quarters()
  writeFileSync(path.join(user.home, 'mine'), 'x')
  const [shell, session] = await terminal(quarters())
  using opened = shell
  const others = await apiOf(quarters(), 'owner')
  await expect(others.terminals.files({ body: { session } })).rejects.toThrow(
    'You have no such terminal open.',
  )
  // Nor for its person, signed in to another namespace.
  const mine = await apiOf(quarters())
  await quarters().service.rooms.namespaces.join(sample.otherTenant, sample.observer.id, 'observer')
  const { token } = (await mine.users.namespaceToken({ params: { tenant: sample.otherTenant } })).body
  await expect(quarters().service.api({ token }).terminals.files({ body: { session } })).rejects.toThrow(
    'You have no such terminal open.',
  )
  using line = await files(session)
  line.say({ kind: 'list', path: user.home })
  expect(await line.next()).toMatchObject({ kind: 'folder' })
  using soon = await files(session)
  opened.type('exit\r')
  await opened.closed
  // One that rests, and one that has just come.
  expect(await line.next()).toEqual({ kind: 'error', message: 'The terminal is closed.' })
  await Promise.all([line.closed, soon.closed])
  const api = await apiOf(quarters())
  await eventually(async () =>
    expect(api.terminals.files({ body: { session } })).rejects.toThrow('You have no such terminal open.'),
  )
})

/** A folder of its own on the device, whose owner is the user. */
function folder(name: string): string {
  const made = path.join(quarters().user.home, name)
  mkdirSync(made)
  chmodSync(made, 0o777)
  return made
}

/** Sends an upload up to a point, and waits until the device has taken that. */
async function begin(line: FilesLine, wish: object, bytes: Uint8Array): Promise<void> {
  line.say({ kind: 'put', replace: true, ...wish })
  expect(await line.next()).toEqual({ kind: 'ready', from: 0 })
  for (let at = 0; at < bytes.length; at += piece_bytes) line.send(bytes.subarray(at, at + piece_bytes))
  for (let taken = 0; taken + piece_bytes * 2 < bytes.length;)
    taken = ((await line.next()) as FileNews & { kind: 'taken' }).bytes
}

test.each([
  ['stopped', true],
  ['given up with the whole terminal', false],
])('an upload that is %s leaves the former file whole, and nothing beside it', async (_, stops) => {
  const place = folder(stops ? 'stopped' : 'left')
  const target = path.join(place, 'tide-table')
  writeFileSync(target, 'former')
  chmodSync(target, 0o666)
  const [shell, session] = await terminal(quarters())
  using opened = shell
  using line = await files(session)
  await begin(line, { path: target, size: 1_000_000, upload: 'an-upload-1' }, Buffer.alloc(400_000))
  expect(readFileSync(target, 'utf8')).toBe('former')
  expect(readdirSync(place)).toHaveLength(2)
  if (stops) {
    line.say({ kind: 'stop' })
    for (;;) if ((await line.next()).kind === 'stopped') break
    expect(readdirSync(place)).toEqual(['tide-table'])
    // The line is good for the next wish.
    line.say({ kind: 'list', path: place })
    expect((await line.next()).kind).toBe('folder')
  } else opened[Symbol.dispose]()
  await eventually(() => expect(readdirSync(place)).toEqual(['tide-table']))
  expect(readFileSync(target, 'utf8')).toBe('former')
})

test('an upload whose connection is cut goes on where it was, and only under its own name', async () => {
  const place = folder('cut')
  const target = path.join(place, 'log')
  const bytes = Buffer.from(Array.from({ length: 9_000_000 }, (_, at) => (at * 7 + (at >> 8)) & 255))
  const [shell, session] = await terminal(quarters())
  using opened = shell
  void opened
  const wish = { path: target, size: bytes.length, upload: 'an-upload-2' }
  {
    using line = await files(session)
    await begin(line, wish, bytes.subarray(0, 8_000_000))
  }
  await eventually(async () => {
    expect(readdirSync(place)).toHaveLength(1)
    using other = await files(session)
    other.say({ kind: 'put', replace: true, ...wish })
    const ready = (await other.next()) as FileNews & { kind: 'ready' }
    if (ready.kind !== 'ready' || ready.from === 0) throw new Error('it is not kept yet')
    expect(ready.from).toBeGreaterThan(3_000_000)
    for (let at = ready.from; at < bytes.length; at += piece_bytes)
      other.send(bytes.subarray(at, at + piece_bytes))
    for (;;) if ((await other.next()).kind === 'done') break
  })
  expect(readFileSync(target).equals(bytes)).toBe(true)
  expect(readdirSync(place)).toEqual(['log'])
})

test('what replaces a file keeps its rights and the link to it, and is not written where the file changed', async () => {
  const place = folder('rights')
  const target = path.join(place, 'secret')
  writeFileSync(target, 'former')
  chmodSync(target, 0o606)
  symlinkSync(target, path.join(place, 'link'))
  const [shell, session] = await terminal(quarters())
  using opened = shell
  void opened
  using line = await files(session)
  const put = async (text: string, more: object): Promise<FileNews> => {
    line.say({ kind: 'put', path: path.join(place, 'link'), size: text.length, replace: true, ...more })
    const ready = await line.next()
    if (ready.kind !== 'ready') return ready
    line.send(Buffer.from(text))
    await line.next()
    return line.next()
  }
  expect(await put('later', {})).toEqual({ kind: 'done' })
  expect(readFileSync(target, 'utf8')).toBe('later')
  expect(statSync(target).mode & 0o777).toBe(0o606)
  expect(readdirSync(place).toSorted()).toEqual(['link', 'secret'])

  line.say({ kind: 'get', path: target })
  const { size, changed_at } = (await line.next()) as FileNews & { kind: 'file' }
  expect(await line.next()).toEqual({ kind: 'end' })
  const expected = { size, changed_at }
  expect(await put('mine!', { expected })).toEqual({ kind: 'done' })
  writeFileSync(target, 'of somebody else')
  expect(await put('mine again', { expected })).toEqual({
    kind: 'error',
    message: 'The file has changed since it was opened.',
    exists: true,
  })
  expect(readFileSync(target, 'utf8')).toBe('of somebody else')
  expect(readdirSync(place).toSorted()).toEqual(['link', 'secret'])
})

test('a folder that takes no files is said to be one, and the file in it stays', async () => {
  const place = folder('closed')
  const target = path.join(place, 'file')
  writeFileSync(target, 'former')
  chmodSync(target, 0o666)
  chmodSync(place, 0o555)
  const [shell, session] = await terminal(quarters())
  using opened = shell
  void opened
  using line = await files(session)
  line.say({ kind: 'put', path: target, size: 3, replace: true })
  expect(await line.next()).toEqual({
    kind: 'error',
    message: 'You do not have permission to create files in this folder.',
  })
  expect(readFileSync(target, 'utf8')).toBe('former')
  // So that it can be tidied away.
  chmodSync(place, 0o777)
})

test('folders are made, things are renamed and removed, and nothing is overwritten or removed through a link', async () => {
  const place = folder('acts')
  const outside = folder('outside')
  writeFileSync(path.join(outside, 'kept'), 'x')
  const [shell, session] = await terminal(quarters())
  using opened = shell
  void opened
  using line = await files(session)
  const ask = async (wish: object): Promise<FileNews> => {
    line.say(wish)
    return line.next()
  }
  const at = (...names: string[]): string => path.join(place, ...names)
  expect(await ask({ kind: 'make', path: at('new') })).toEqual({ kind: 'done' })
  expect(await ask({ kind: 'make', path: at('new') })).toMatchObject({ kind: 'error' })
  expect(await ask({ kind: 'move', path: at('new'), to: at('old') })).toEqual({ kind: 'done' })
  writeFileSync(at('one'), '1')
  writeFileSync(at('two'), '2')
  expect(await ask({ kind: 'move', path: at('one'), to: at('two') })).toEqual({
    kind: 'error',
    message: 'There is something of this name already.',
  })
  expect(readFileSync(at('two'), 'utf8')).toBe('2')
  chmodSync(at('old'), 0o777)
  symlinkSync(outside, at('old', 'door'))
  mkdirSync(at('old', 'deep'), 0o777)
  chmodSync(at('old', 'deep'), 0o777)
  writeFileSync(at('old', 'deep', 'file'), 'x')
  expect(await ask({ kind: 'remove', path: at('old') })).toEqual({ kind: 'done' })
  expect(await ask({ kind: 'remove', path: at('two') })).toEqual({ kind: 'done' })
  expect(readdirSync(place)).toEqual(['one'])
  expect(readdirSync(outside)).toEqual(['kept'])
  expect(await ask({ kind: 'remove', path: at('two') })).toEqual({
    kind: 'error',
    message: 'There is no such file or folder.',
  })
})

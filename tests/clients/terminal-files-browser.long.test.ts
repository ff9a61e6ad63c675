// Files beside a terminal of the console, in a real browser: a tree, several uploads at once, dropped
// files, new folders, renaming, deleting, pictures, and texts that are edited without overwriting what
// somebody else wrote.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { sharedBrowser, violations, visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { startLink } from '../harness/link.ts'
import { enterTerminal } from './browser-terminal.ts'
import { choose, field, fill, press, told } from './console.ts'
import { sharedQuarters } from './web.ts'

const quarters = sharedQuarters()
const browser = sharedBrowser()
const picture =
  'iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEElEQVR4nGO44KAARwzEcQD5QxMB1zrN7gAAAABJRU5ErkJggg=='
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
/** A folder of anybody's, without what an earlier try has left there. */
function makeEmpty(place: string): void {
  rmSync(place, { recursive: true, force: true })
  mkdirSync(place)
  chmodSync(place, 0o777)
}

test('files are looked at, edited, made, renamed, moved up and deleted in a tree', async () => {
  const { service, user } = quarters()
  const place = path.join(user.home, 'locker')
  makeEmpty(place)
  await using person = await visit(browser, service, { viewport: { width: 1280, height: 900 } })
  const { page } = person
  await enterTerminal(page, quarters())
  await press(page, 'Files')
  await press(page, 'Open locker')
  await page.getByRole('list', { name: 'Contents of locker' }).waitFor()

  await choose(page, 'Actions for locker', 'New folder here …')
  await fill(page, { Name: 'charts' })
  await press(page, 'Create the folder')
  await button(page, 'Open charts').waitFor()
  expect(statSync(path.join(place, 'charts')).isDirectory()).toBe(true)

  // Several at once, into the folder that was pressed.
  await choose(page, 'Actions for charts', 'Upload here …')
  await page.getByLabel('Files to upload').setInputFiles([
    { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('tide at six\n') },
    { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from(picture, 'base64') },
    { name: 'evil.html', mimeType: 'text/html', buffer: Buffer.from('<script>alert(1)</script>') },
    { name: 'zeros', mimeType: 'application/octet-stream', buffer: Buffer.alloc(300_000) },
  ])
  await eventually(() =>
    expect(
      ['notes.txt', 'dot.png', 'evil.html', 'zeros'].every((name) =>
        existsSync(path.join(place, 'charts', name)),
      ),
    ).toBe(true),
  )
  await press(page, 'Open charts')
  await press(page, 'View dot.png')
  await page.getByRole('img', { name: 'dot.png' }).waitFor()
  await press(page, 'Close')
  await press(page, 'View zeros')
  await page.getByText('This file cannot be previewed.').waitFor()
  await press(page, 'Close')
  await press(page, 'View evil.html')
  expect(await field(page, 'Text of evil.html').inputValue()).toBe('<script>alert(1)</script>')
  await press(page, 'Close')

  const notes = path.join(place, 'charts', 'notes.txt')
  await press(page, 'View notes.txt')
  await field(page, 'Text of notes.txt').fill('tide at seven\n')
  expect(await violations(page)).toEqual([])
  await press(page, 'Save')
  await told(page, 'notes.txt was saved.')
  expect(readFileSync(notes, 'utf8')).toBe('tide at seven\n')
  // Somebody else changes it meanwhile.
  await eventually(async () => expect(await field(page, 'Text of notes.txt').isEditable()).toBe(true))
  writeFileSync(notes, 'tide at nine, says vera\n')
  utimesSync(notes, 1_000_000, 1_000_000)
  await field(page, 'Text of notes.txt').fill('mine')
  await press(page, 'Save')
  await page.getByText('The file has changed since it was opened.').waitFor()
  expect(readFileSync(notes, 'utf8')).toContain('vera')
  await press(page, 'Reload')
  await eventually(async () =>
    expect(await field(page, 'Text of notes.txt').inputValue()).toBe('tide at nine, says vera\n'),
  )
  await press(page, 'Close')

  await choose(page, 'Actions for notes.txt', 'Rename …')
  await fill(page, { Name: 'dot.png' })
  await press(page, 'Rename it')
  await page.getByText('There is something of this name already.').waitFor()
  await fill(page, { Name: 'tides.txt' })
  await press(page, 'Rename it')
  await button(page, 'View tides.txt').waitFor()
  expect(existsSync(notes)).toBe(false)

  // Dropped on a folder, into that folder.
  const data = await page.evaluateHandle(`(() => {
    const data = new DataTransfer()
    data.items.add(new File(['dropped'], 'drop.txt'))
    return data
  })()`)
  await button(page, 'Open charts').dispatchEvent('drop', { dataTransfer: data })
  await button(page, 'View drop.txt').waitFor()
  expect(readFileSync(path.join(place, 'charts', 'drop.txt'), 'utf8')).toBe('dropped')
  expect(await violations(page)).toEqual([])

  // Two that are there already: each is asked for.
  await choose(page, 'Actions for charts', 'Upload here …')
  await page.getByLabel('Files to upload').setInputFiles([
    { name: 'drop.txt', mimeType: 'text/plain', buffer: Buffer.from('second') },
    { name: 'tides.txt', mimeType: 'text/plain', buffer: Buffer.from('second') },
  ])
  for (let times = 0; times < 2; times += 1) await press(page, 'Replace it')
  await eventually(() => {
    for (const name of ['drop.txt', 'tides.txt'])
      expect(readFileSync(path.join(place, 'charts', name), 'utf8')).toBe('second')
  })
  await page.getByRole('alertdialog').waitFor({ state: 'detached' })

  await choose(page, 'Actions for charts', 'Delete …')
  await press(page, 'Delete it')
  await eventually(() => expect(existsSync(path.join(place, 'charts'))).toBe(false))
  await button(page, 'Open charts').waitFor({ state: 'detached' })
  expect(person.troubles).toEqual([])
})

test('folders are uploaded whole, chosen or dropped, and things are moved in the tree without overwriting', async () => {
  const { service, user } = quarters()
  const place = path.join(user.home, 'hold')
  makeEmpty(place)
  const here = mkdtempSync(path.join(os.tmpdir(), 'hawser-folder-'))
  onTestFinished(() => rmSync(here, { recursive: true, force: true }))
  const cargo = path.join(here, 'cargo')
  mkdirSync(path.join(cargo, 'deep/deeper'), { recursive: true })
  mkdirSync(path.join(cargo, 'empty'))
  for (const name of ['one.txt', 'deep/two.txt', 'deep/deeper/three.txt'])
    writeFileSync(path.join(cargo, name), `first ${name}`)
  await using person = await visit(browser, service, { viewport: { width: 1280, height: 900 } })
  const { page } = person
  await enterTerminal(page, quarters())
  await press(page, 'Files')
  await choose(page, 'Actions for hold', 'Show only this folder')
  await page.getByText('The folder is empty.').waitFor()

  const read = (name: string) => readFileSync(path.join(place, name), 'utf8')
  await page.getByLabel('Folder to upload').setInputFiles(cargo)
  await told(page, 'cargo/ was uploaded.')
  for (const name of ['one.txt', 'deep/two.txt', 'deep/deeper/three.txt'])
    expect(read(`cargo/${name}`)).toBe(`first ${name}`)

  // Dropped, with one file that is new and three that are there: those are asked for, once.
  for (const name of ['one.txt', 'deep/two.txt', 'deep/deeper/three.txt', 'four.txt'])
    writeFileSync(path.join(cargo, name), `second ${name}`)
  const devtools = await page.context().newCDPSession(page)
  const { x, y } = (await page.getByText('Drop files here or on a folder.').boundingBox())!
  const data = { items: [], files: [cargo], dragOperationsMask: 1 }
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
    await devtools.send('Input.dispatchDragEvent', { type, x: x + 5, y: y + 5, data })
  const question = page.getByRole('alertdialog', { name: 'Replace 3 files?' })
  await question.waitFor()
  expect(read('cargo/four.txt')).toBe('second four.txt')
  expect(read('cargo/one.txt')).toBe('first one.txt')
  // A chosen folder has no folders that are empty; a dropped one has.
  expect(existsSync(path.join(place, 'cargo/empty'))).toBe(true)
  expect(await violations(page)).toEqual([])
  await press(page, 'Replace them')
  await eventually(() => expect(read('cargo/deep/deeper/three.txt')).toBe('second deep/deeper/three.txt'))
  expect(read('cargo/one.txt')).toBe('second one.txt')

  // By hand into a folder.
  await press(page, 'Open cargo')
  await button(page, 'View four.txt').dragTo(button(page, 'Open empty'))
  await eventually(() => expect(read('cargo/empty/four.txt')).toBe('second four.txt'))
  await button(page, 'View four.txt').waitFor({ state: 'detached' })
  // A name that is taken there is asked about, and nothing is lost.
  writeFileSync(path.join(place, 'cargo/empty/one.txt'), 'another')
  chmodSync(path.join(place, 'cargo/empty/one.txt'), 0o666)
  await button(page, 'View one.txt').dragTo(button(page, 'Open empty'))
  await page.getByText('already contains one.txt').waitFor()
  expect(await field(page, 'Name').inputValue()).toBe('one.txt-2')
  expect(await violations(page)).toEqual([])
  await press(page, 'Move it')
  await eventually(() => expect(read('cargo/empty/one.txt-2')).toBe('second one.txt'))
  expect(read('cargo/empty/one.txt')).toBe('another')
  // A folder does not fit into itself.
  await button(page, 'Open cargo').dragTo(button(page, 'Open deep'))
  await told(page, 'A folder cannot be moved into itself.')
  // Without a mouse.
  await choose(page, 'Actions for deep', 'Move …')
  await fill(page, { 'Into this folder': place, Name: 'depth' })
  await press(page, 'Move it')
  await eventually(() => expect(read('depth/two.txt')).toBe('second deep/two.txt'))
  expect(person.troubles).toEqual([])
})

test('a text that is edited outlives a connection that was cut', async () => {
  const { service, user } = quarters()
  await using link = await startLink({ port: Number(new URL(service.url).port) })
  const place = path.join(user.home, 'outage')
  makeEmpty(place)
  const log = path.join(place, 'log.txt')
  writeFileSync(log, 'calm')
  chmodSync(log, 0o666)
  await using person = await visit(browser, { ...service, url: `http://${link.host}:${link.port}` })
  const { page } = person
  await enterTerminal(page, quarters())
  await press(page, 'Files')
  await choose(page, 'Actions for outage', 'Show only this folder')
  await page.getByText('log.txt').waitFor()
  const cutAndMend = async () => {
    link.refuse(true)
    link.cut()
    await page.getByText('Continuing the session …').waitFor()
    link.refuse(false)
    await page.getByText('Continuing the session …').waitFor({ state: 'detached' })
  }

  await press(page, 'View log.txt')
  await field(page, 'Text of log.txt').fill('a storm')
  await cutAndMend()
  expect(await field(page, 'Text of log.txt').inputValue()).toBe('a storm')
  await press(page, 'Save')
  await told(page, 'log.txt was saved.')
  expect(readFileSync(log, 'utf8')).toBe('a storm')
})

test('an upload that waits for its turn is stopped at once', async () => {
  const { service, user } = quarters()
  await using link = await startLink({ port: Number(new URL(service.url).port) })
  const place = path.join(user.home, 'queue')
  makeEmpty(place)
  await using person = await visit(browser, { ...service, url: `http://${link.host}:${link.port}` })
  const { page } = person
  await enterTerminal(page, quarters())
  await press(page, 'Files')
  await choose(page, 'Actions for queue', 'Show only this folder')
  // Until it is shown, an upload goes into the folder before.
  await page.getByText('The folder is empty.').waitFor()
  link.shape({ bytesPerSecond: 400_000 })
  await page.getByLabel('Files to upload').setInputFiles(
    ['one', 'two', 'three', 'four'].map((name) => ({
      name,
      mimeType: 'text/plain',
      buffer: Buffer.alloc(6_000_000, name),
    })),
  )
  const going = page.getByLabel('one, transferred')
  await eventually(async () => expect(await going.getAttribute('value')).not.toBe('0'))
  await press(page, 'Stop four')
  await page.getByRole('list', { name: 'Transfers' }).getByText('stopped').waitFor()
  expect(await going.count()).toBe(1)
  link.shape({ bytesPerSecond: Infinity })
  for (const name of ['one', 'two', 'three'])
    await eventually(() => expect(statSync(path.join(place, name)).size).toBe(6_000_000))
  expect(existsSync(path.join(place, 'four'))).toBe(false)
})

test('an upload goes on after the server was out of reach', async () => {
  const { service, user } = quarters()
  await using link = await startLink({ port: Number(new URL(service.url).port) })
  const place = path.join(user.home, 'cargo')
  makeEmpty(place)
  await using person = await visit(browser, { ...service, url: `http://${link.host}:${link.port}` })
  const { page } = person
  await enterTerminal(page, quarters())
  await press(page, 'Files')
  await choose(page, 'Actions for cargo', 'Show only this folder')
  // Until it is shown, an upload goes into the folder before.
  await page.getByText('The folder is empty.').waitFor()
  link.shape({ bytesPerSecond: 400_000 })
  await page
    .getByLabel('Files to upload')
    .setInputFiles({ name: 'load', mimeType: 'text/plain', buffer: Buffer.alloc(6_000_000, 'load') })
  const going = page.getByLabel('load, transferred')
  await eventually(async () => expect(await going.getAttribute('value')).not.toBe('0'))
  link.refuse(true)
  link.cut()
  await page.getByText('Continuing the session …').waitFor()
  link.shape({ bytesPerSecond: Infinity })
  link.refuse(false)
  await told(page, 'load was uploaded.')
  expect(statSync(path.join(place, 'load')).size).toBe(6_000_000)
})

// The terminal of the console in a real browser, where it is easily wrong: at every height of the window the
// last line is whole, and a stopped upload costs nobody a file.
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { startLink } from '../harness/link.ts'
import { enterTerminal, showing, type } from './browser-terminal.ts'
import { choose, press, seen } from './console.ts'
import { sharedQuarters } from './web.ts'

const quarters = sharedQuarters()
const browser = sharedBrowser()
test('the last line, where the prompt is, is whole at every height of the window', async () => {
  await using person = await visit(browser, quarters().service)
  const { page } = person
  await enterTerminal(page, quarters())
  await type(page, 'seq 1 200; PS1="prompt> "')
  await showing(page, /prompt> +$/m)
  for (let height = 600; height <= 1000; height += 20) {
    await page.setViewportSize({ width: 1280, height })
    // The window has its size before the page is laid out for it, and the rows that fit are drawn after that.
    await eventually(async () => {
      const { most, last, room, ...is } = await page.evaluate<
        Record<'inner' | 'rows' | 'most' | 'last' | 'room', number>
      >(`(() => {
        const rows = [...document.querySelectorAll('.xterm-rows > div')]
        const place = (found) => found.getBoundingClientRect()
        return {
          inner: innerHeight,
          rows: rows.length,
          most: Math.floor(document.querySelector('.terminal-fit').clientHeight / place(rows[0]).height),
          last: place(rows.at(-1)).bottom,
          room: place(document.querySelector('.terminal-place')).bottom,
        }
      })()`)
      expect(is).toEqual({ inner: height, rows: most })
      expect(last).toBeLessThanOrEqual(Math.min(room, height))
    })
  }
  await showing(page, /prompt> +$/m)
  expect(person.troubles).toEqual([])
})

test('an upload that is stopped leaves the file that it would have replaced', async () => {
  const { service, user } = quarters()
  const { port } = new URL(service.url)
  await using link = await startLink({ port: Number(port) })
  await using person = await visit(browser, { ...service, url: `http://${link.host}:${link.port}` })
  const { page } = person
  await enterTerminal(page, quarters())
  const place = path.join(user.home, 'uploads')
  mkdirSync(place)
  chmodSync(place, 0o777)
  const target = path.join(place, 'chart.bin')
  writeFileSync(target, 'the only chart')
  chmodSync(target, 0o666)
  await press(page, 'Files')
  await choose(page, 'Actions for uploads', 'Show only this folder')
  await page.getByText('chart.bin').waitFor()
  link.shape({ bytesPerSecond: 500_000 })
  await page
    .getByLabel('Files to upload')
    .setInputFiles({ name: 'chart.bin', mimeType: 'text/plain', buffer: Buffer.alloc(8_000_000, 'new ') })
  await press(page, 'Replace it')
  await eventually(
    async () => expect(await page.getByLabel('chart.bin, transferred').getAttribute('value')).not.toBe('0'),
    60_000,
  )
  expect(readdirSync(place)).toHaveLength(2)
  await press(page, 'Stop chart.bin')
  await seen(page, 'stopped')
  await eventually(() => expect(readdirSync(place)).toEqual(['chart.bin']), 60_000)
  expect(readFileSync(target, 'utf8')).toBe('the only chart')
  expect(person.troubles).toEqual([])
})

// The design system on one page: a build of the console with the page that shows every component in
// its states. All of it passes axe (so every colour keeps its contrast), in light and dark, on a
// desk and on a phone.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildConsole } from '../../console/build.ts'
import { sharedBrowser, violations } from '../harness/browser.ts'
import { press, seen } from './console.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-design-'))
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

const browser = sharedBrowser()
let url: string
const server = http.createServer((request, response) => {
  const file = path.join(folder, path.normalize(request.url ?? '/').split('?')[0]!)
  try {
    const content = readFileSync(file)
    response.setHeader('content-type', types[path.extname(file)] ?? 'application/octet-stream').end(content)
  } catch {
    response.writeHead(404).end()
  }
})
beforeAll(async () => {
  await buildConsole(folder, { design: true })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/design.html`
}, 300_000)
afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

test.each([
  ['light', 1280],
  ['dark', 1280],
  ['light', 360],
  ['dark', 360],
] as const)('every component passes axe and fits, %s and %d pixels wide', async (colorScheme, width) => {
  const context = await browser.newContext({
    colorScheme,
    reducedMotion: 'reduce',
    viewport: { width, height: 800 },
  })
  const page = await context.newPage()
  const troubles: string[] = []
  page.on('pageerror', ({ message }) => troubles.push(message))
  await page.goto(url)
  await page.getByRole('heading', { name: 'Design' }).waitFor()
  await press(page, 'Send')
  await seen(page, 'This is needed.')
  // A busy or a disabled one may be pale: it cannot be pressed.
  expect((await violations(page)).filter((one) => !/busy|disabled/.test(one))).toEqual([])
  expect(
    await page.evaluate('document.documentElement.scrollWidth <= document.documentElement.clientWidth'),
  ).toBe(true)
  await press(page, 'A menu')
  expect(await violations(page)).toEqual([])
  await page.keyboard.press('Escape')
  await press(page, 'A question')
  await page.getByRole('alertdialog').waitFor()
  expect(await violations(page)).toEqual([])
  expect(troubles).toEqual([])
  await context.close()
})

test('the typeface is a file of ours of less than 60 KB, and only a build for tests has the page', async () => {
  const fonts = readdirSync(path.join(folder, 'assets')).filter((file) => file.endsWith('.woff2'))
  expect(fonts).toHaveLength(1)
  expect(readFileSync(path.join(folder, 'assets', fonts[0]!)).length).toBeLessThan(60_000)
  const plain = mkdtempSync(path.join(os.tmpdir(), 'hawser-design-'))
  await buildConsole(plain)
  expect(readdirSync(plain)).not.toContain('design.html')
  rmSync(plain, { recursive: true, force: true })
})

// The field above the list of devices, in a real browser: filters that are typed, taken by keys, by the pointer and by a
// finger, chips that go again, the address that says all of it, and what a screen reader and axe make of it.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { buildOf, offerFakeAgent } from '../harness/agent-release.ts'
import { openBrowser, visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'
import { enrol, query, row } from './console.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const day_ms = 86_400_000

let browser: Browser
let folder: string
let service: Service
let world: World
beforeAll(async () => {
  browser = await openBrowser()
  folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-served-'))
  offerFakeAgent(folder, { build: buildOf('b') }, 'x64')
  service = await startService({ agents: folder })
  world = await buildWorld(service)
  await fleet()
})
afterAll(async () => {
  await browser.close()
  await service[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

// A machine may do other things too: only a step that never happens is to fail.
vi.setConfig({ testTimeout: 240_000 })

/** pump-00 … pump-29: tags by 2 and by 3, two systems, one that was not seen for ten days, and one with an old agent. */
async function fleet(): Promise<void> {
  const { stores } = service.rooms
  const like = (await stores.of(sample.tenant).devices.find(sample.device))!
  const { id: _, tenant_id: _tenant, ...row } = like
  const at = (ago_ms: number) => new Date(service.clock.now() - ago_ms).toISOString()
  for (let n = 0; n < 30; n += 1)
    await stores.of(sample.tenant).devices.insert({
      ...row,
      uid: n.toString(16).padStart(64, '0'),
      name: `pump-${String(n).padStart(2, '0')}`,
      mac: `02:00:00:00:00:${n.toString(16).padStart(2, '0')}`,
      info_pretty_name: n < 15 ? 'Debian GNU/Linux 12 (bookworm)' : 'Alpine Linux v3.20',
      info_version: n === 4 ? 'v0.17.1' : 'v0.16.4',
      info_arch: n % 5 === 0 ? 'arm64' : 'amd64',
      remote_addr: `198.51.100.${n}`,
      tags: JSON.stringify([...(n % 2 === 0 ? ['lock'] : []), ...(n % 3 === 0 ? ['north-wharf'] : [])]),
      last_seen: at(n === 7 ? 10 * day_ms : 0),
      created_at: at(n === 3 ? 0 : 40 * day_ms),
      online: 0,
      ...(n === 9 ? { agent_ability: 'self', agent_build: buildOf('a') } : {}),
    })
}

async function open(address: string, options = {}) {
  const person = await visit(browser, service, { viewport: { width: 1280, height: 900 }, ...options })
  const { page } = person
  await page.addInitScript(`sessionStorage.setItem('hawser.token', '${await world.token('owner')}')`)
  await page.goto(address)
  await page.locator('tbody strong').first().waitFor()
  return person
}
const finder = (page: Page) => page.getByRole('combobox', { name: 'Search', exact: true })
const chips = (page: Page) => page.getByRole('list', { name: 'Filters' }).getByRole('button')
const offers = (page: Page) => page.getByRole('listbox', { name: 'Suggestions' }).getByRole('option')
const names = (page: Page) =>
  page.getByRole('table', { name: 'Devices' }).locator('tbody strong').allTextContents()
const listed = (page: Page, wanted: readonly string[]) =>
  eventually(async () => expect(await names(page)).toEqual(wanted))
const pumps = (fits: (n: number) => boolean): string[] =>
  Array.from({ length: 30 }, (_, n) => n).flatMap((n) =>
    fits(n) ? [`pump-${String(n).padStart(2, '0')}`] : [],
  )
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate<string[]>(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ': ' + target.join(' ') + ' ' + failureSummary)))`)
}

test('filters are typed with a blank after them, narrow the list together, and go by Backspace', async () => {
  await using person = await open('/devices')
  const { page } = person
  await finder(page).pressSequentially('tag:lock tag:north-wharf ')
  await listed(
    page,
    pumps((n) => n % 6 === 0),
  )
  expect(await chips(page).allTextContents()).toEqual(['Tag: lock ', 'Tag: north-wharf '])
  expect(await finder(page).inputValue()).toBe('')
  await finder(page).pressSequentially('os:alpine pump-2')
  await listed(page, ['pump-24'])
  expect(query(page)).toBe('?find=pump-2&tag=%5B%22lock%22%2C%22north-wharf%22%5D&os=alpine')
  await finder(page).press('ControlOrMeta+a')
  await page.keyboard.press('Backspace')
  await listed(page, ['pump-18', 'pump-24'])
  await page.keyboard.press('Backspace')
  await listed(
    page,
    pumps((n) => n % 6 === 0),
  )
  await page.keyboard.press('Backspace')
  await listed(
    page,
    pumps((n) => n % 2 === 0),
  )
  await page.keyboard.press('Backspace')
  await eventually(() => expect(query(page)).toBe(''))
  expect(await chips(page).count()).toBe(0)
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('by keys alone: what is offered is gone through, taken with Enter or Tab, and closed with Escape', async () => {
  await using person = await open('/devices')
  const { page } = person
  const marked = () =>
    page.evaluate(
      `document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.textContent`,
    )
  await finder(page).focus()
  expect(await finder(page).getAttribute('aria-expanded')).toBe('false')
  await page.keyboard.press('ArrowDown')
  await offers(page).first().waitFor()
  expect(await marked()).toBeUndefined()
  await page.keyboard.press('ArrowDown')
  expect(await marked()).toBe('is:online Online')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('ArrowUp')
  expect(await marked()).toBe('added: Added in the last hours or days: 12h, 7d')
  await page.keyboard.press('Escape')
  expect(await offers(page).count()).toBe(0)
  // A name, then one of its values.
  await page.keyboard.type('ta')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  expect(await finder(page).inputValue()).toBe('tag:')
  await eventually(async () =>
    expect(await offers(page).allTextContents()).toContain('tag:lock With this tag'),
  )
  await page.keyboard.type('wha')
  expect(await marked()).toBe('tag:north-wharf With this tag')
  await page.keyboard.press('Tab')
  await listed(
    page,
    pumps((n) => n % 3 === 0),
  )
  expect(await finder(page).inputValue()).toBe('')
  // Without its name, from what the devices have.
  await page.keyboard.type('alpi')
  await eventually(async () =>
    expect(await offers(page).first().textContent()).toBe('os:Alpine Operating system'),
  )
  expect(await marked()).toBeUndefined()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await listed(
    page,
    pumps((n) => n % 3 === 0 && n >= 15),
  )
  expect(query(page)).toBe('?tag=north-wharf&os=Alpine')
  // With nothing marked, Tab goes on, to the next thing on the page.
  await page.keyboard.type('pump')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Tab')
  expect(await page.evaluate(`document.activeElement.getAttribute('aria-label')`)).toBe('Remove all filters')
  await page.keyboard.press('Enter')
  await eventually(() => expect(query(page)).toBe(''))
  expect(await page.evaluate(`document.activeElement.getAttribute('role')`)).toBe('combobox')
  expect(await finder(page).inputValue()).toBe('')
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('the address is all there is: back and forth, an old link, a kept view and a reload have the same chips', async () => {
  await using person = await open('/devices?find=pump&tag=lock&online=false&sort=seen')
  const { page } = person
  const shown = () => chips(page).allTextContents()
  await row(page, 'pump-02').waitFor()
  expect(await shown()).toEqual(['Offline ', 'Tag: lock '])
  expect(await finder(page).inputValue()).toBe('pump')
  await page.getByRole('button', { name: 'Remove the filter Offline' }).click()
  await eventually(() => expect(query(page)).toBe('?sort=seen&find=pump&tag=lock'))
  await finder(page).fill('')
  await eventually(() => expect(query(page)).toBe('?sort=seen&tag=lock'))
  await finder(page).pressSequentially('unseen:7d ', { delay: 5 })
  await finder(page).pressSequentially('pump-0', { delay: 400 })
  await eventually(() => expect(query(page)).toBe('?sort=seen&find=pump-0&tag=lock&unseen=7d'))
  // Words are one step, however slowly they were typed.
  await page.goBack()
  await eventually(() => expect(query(page)).toBe('?sort=seen&tag=lock&unseen=7d'))
  expect(await finder(page).inputValue()).toBe('')
  expect(await shown()).toEqual(['Tag: lock ', 'Not seen for 7 days '])
  await page.goBack()
  await eventually(async () => expect(await shown()).toEqual(['Tag: lock ']))
  await page.goBack()
  await page.goBack()
  await eventually(async () => expect(await shown()).toEqual(['Offline ', 'Tag: lock ']))
  expect(await finder(page).inputValue()).toBe('pump')
  for (let n = 0; n < 4; n += 1) await page.goForward()
  await eventually(async () => expect(await finder(page).inputValue()).toBe('pump-0'))
  await page.reload()
  await eventually(async () => expect(await shown()).toEqual(['Tag: lock ', 'Not seen for 7 days ']))
  expect(person.troubles).toEqual([])
})

test('each filter is one that the server applies', async () => {
  await using person = await open('/devices')
  const { page } = person
  for (const [typed, fits] of [
    ['unseen:7d', (n: number) => n === 7],
    ['added:7d', (n: number) => n === 3],
    ['ip:198.51.100.2', (n: number) => n === 2 || n >= 20],
    ['mac:00:0f', (n: number) => n === 15],
    ['arch:arm64', (n: number) => n % 5 === 0],
    ['name:p-01', (n: number) => n === 1],
    ['os:"Linux v3"', (n: number) => n >= 15],
    ['is:online', () => false],
    ['agent:old', (n: number) => n === 9],
    ['agent:0.17', (n: number) => n === 4],
    ['bookworm -02', (n: number) => n === 2],
    ['"Debian GNU" pump-1', (n: number) => n >= 10 && n < 15],
  ] as const) {
    await finder(page).fill(typed)
    await page.keyboard.press('Enter')
    // crane-1 of the world is no pump, and says what it says.
    await eventually(async () =>
      expect((await names(page)).filter((name) => name.startsWith('pump'))).toEqual(pumps(fits)),
    )
    await page.getByRole('button', { name: 'Remove all filters' }).click()
    await eventually(() => expect(query(page)).toBe(''))
  }
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test.each([
  ['light', 1280],
  ['dark', 390],
] as const)('it passes axe, and nothing moves: %s, %d pixels wide', async (colorScheme, width) => {
  await using person = await open('/devices', {
    colorScheme,
    viewport: { width, height: 900 },
    hasTouch: width < 500,
  })
  const { page } = person
  const top = async () => (await page.getByRole('table', { name: 'Devices' }).boundingBox())?.y
  const fits = () =>
    page.evaluate(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
  const before = await top()
  if (width < 500) await finder(page).tap()
  else await finder(page).click()
  await offers(page).first().waitFor()
  expect(await top()).toBe(before)
  expect(await violations(page)).toEqual([])
  expect(await fits()).toBe(true)
  await offers(page).filter({ hasText: 'tag:' }).click()
  const lock = offers(page).filter({ hasText: 'tag:lock' })
  if (width < 500) await lock.tap()
  else await lock.click()
  await listed(
    page,
    pumps((n) => n % 2 === 0),
  )
  // The focus did not leave the field.
  await finder(page).pressSequentially('is:offline ')
  await eventually(async () => expect(await chips(page).count()).toBe(2))
  if (width > 500) expect(await top()).toBe(before)
  expect(await violations(page)).toEqual([])
  expect(await fits()).toBe(true)
  // Many of them leave room to type in one line.
  await finder(page).pressSequentially('os:debian arch:amd64 name:pump ip:198.51 mac:02:00 added:90d ')
  await eventually(async () => expect(await chips(page).count()).toBe(8))
  if (width > 500) expect(await top()).toBe(before)
  expect((await finder(page).boundingBox())?.width).toBeGreaterThan(80)
  await finder(page).pressSequentially('x')
  expect(await fits()).toBe(true)
  expect(await violations(page)).toEqual([])
  expect(person.troubles).toEqual([])
})

test.each([
  ['beside the page', 1280],
  ['on the button of the navigation', 390],
] as const)('how many devices wait is seen on every page by itself, %s', async (_, width) => {
  await using person = await visit(browser, service, { viewport: { width, height: 800 } })
  const { page } = person
  await page.addInitScript(`sessionStorage.setItem('hawser.token', '${await world.token('owner')}')`)
  await page.goto('/settings')
  const shown =
    width < 500
      ? page.getByRole('button', { name: 'Navigation' })
      : page.getByRole('link', { name: 'Devices', exact: true })
  const before = (await service.api({ token: await world.token('owner') }).system.stats()).body
    .pending_devices
  const said = async () => {
    const id = await shown.getAttribute('aria-describedby')
    return id === null ? '' : page.evaluate<string>(`document.getElementById('${id}').textContent`)
  }
  await eventually(async () => expect(await said()).toBe(before === 0 ? '' : `${before} waiting`))
  await enrol(service, sample.tenant, `new-${width}`, `02:00:00:00:01:${width % 90}`)
  await eventually(async () => expect(await said()).toBe(`${before + 1} waiting`))
  expect(await page.locator('.count[data-tone=wait]:visible').count()).toBe(1)
  expect(person.troubles).toEqual([])
})

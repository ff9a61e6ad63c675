// The table of devices in a real browser, with a fleet: what fits on a laptop, scrolling through all of it, the
// order, the columns, kept views, the keyboard, what is done to many at once, the file, and the map.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { buildOf, offerFakeAgent } from '../harness/agent-release.ts'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import {
  choose,
  complaint,
  field,
  fill,
  heading,
  press,
  row,
  seen,
  signIn,
  told,
  visitAs,
} from './console.ts'

const browser = sharedBrowser()

/** Accepted devices pump-0000, pump-0001 and so on; every second one has the tag `even`. */
async function fleet(service: Service, count: number): Promise<void> {
  const { stores } = service.rooms
  const now = new Date(service.clock.now()).toISOString()
  for (let n = 0; n < count; n += 1)
    await stores.of(sample.tenant).devices.insert({
      uid: n.toString(16).padStart(64, '0'),
      name: `pump-${String(n).padStart(4, '0')}`,
      mac: `02:00:00:00:${(n >> 8).toString(16).padStart(2, '0')}:${(n & 255).toString(16).padStart(2, '0')}`,
      public_key: sample.publicKeyPem,
      info_id: 'debian',
      info_pretty_name: n === 0 ? '=HYPERLINK("http://elsewhere.invalid")' : 'Debian GNU/Linux 12 (bookworm)',
      info_version: 'v0.16.4',
      info_arch: 'amd64',
      info_platform: 'native',
      status: 'accepted',
      status_update_at: now,
      created_at: now,
      remote_addr: '192.0.2.7',
      position: '{"latitude":0,"longitude":0}',
      public_url: 0,
      public_url_address: '',
      tags: JSON.stringify(n % 2 === 0 ? ['even'] : []),
      last_seen: now,
      online: 0,
    })
}

const names = (page: Page) =>
  page.getByRole('table', { name: 'Devices' }).locator('tbody strong').allTextContents()
/** Names that are on the screen as a whole. */
const visible = (page: Page) =>
  page.evaluate<string[]>(`[...document.querySelectorAll('tbody strong')].filter((one) => {
    const { top, bottom } = one.closest('tr').getBoundingClientRect()
    return top >= 0 && bottom <= innerHeight
  }).map((one) => one.textContent)`)

/** The owner's window on the table, once the first pump is in it. */
async function openTable(service: Service, address: string, viewport = { width: 1280, height: 900 }) {
  const person = await visitAs(sample.owner, browser, service, { viewport })
  await person.page.goto(address)
  await row(person.page, 'pump-0000').waitFor()
  return person
}

test('twenty rows fit on a laptop, and all of a fleet is a scroll away, without being in the page', async () => {
  await using service = await startService()
  await buildWorld(service)
  await fleet(service, 1500)
  await using person = await openTable(service, '/devices?find=pump')
  const { page } = person
  expect((await visible(page)).length).toBeGreaterThanOrEqual(20)
  const table = page.getByRole('table', { name: 'Devices' })
  expect(await table.getAttribute('aria-rowcount')).toBe('1501')
  expect((await names(page)).length).toBeLessThan(80)

  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
  await row(page, 'pump-1499').waitFor()
  expect((await names(page)).length).toBeLessThan(80)
  // The head stays, and sorts: the last one comes first.
  const head = table.getByRole('columnheader', { name: 'Name' })
  expect((await head.boundingBox())?.y).toBe(0)
  await head.getByRole('button').click()
  await page.waitForURL(({ searchParams }) => searchParams.get('desc') === 'true')
  expect(await head.getAttribute('aria-sort')).toBe('descending')
  // Another order begins at its top.
  await row(page, 'pump-1480').waitFor()
  expect((await visible(page))[0]).toBe('pump-1499')
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('a view is its address: columns and order are kept by a name, forgotten, and shown to whoever has the address', async () => {
  await using service = await startService()
  await buildWorld(service)
  await fleet(service, 5)
  await using person = await openTable(service, '/devices')
  const { page } = person
  await press(page, 'Columns')
  await page.getByRole('checkbox', { name: 'MAC address' }).check()
  await page.getByRole('checkbox', { name: 'System' }).uncheck()
  await press(page, 'Show these columns')
  const heads = () => page.getByRole('columnheader').allTextContents()
  await page.getByRole('columnheader', { name: 'MAC address' }).waitFor()
  expect(await heads()).toEqual(['', 'Name', 'State', 'Tags', 'Agent', 'Address', 'MAC address', 'Actions'])
  await field(page, 'Search').pressSequentially('tag:even ')
  await row(page, 'pump-0001').waitFor({ state: 'detached' })
  await choose(page, 'Views', 'Save this view …')
  await fill(page, { 'View name': 'even ones' })
  await press(page, 'Save the view')
  await told(page, 'The view even ones was saved in this browser.')
  const address = page.url()
  await choose(page, 'Views', 'All accepted devices')
  await row(page, 'pump-0001').waitFor()
  await choose(page, 'Views', 'even ones')
  await row(page, 'pump-0001').waitFor({ state: 'detached' })
  expect(page.url()).toBe(address)

  // A tag is a link to its devices, and somebody else has the view by its address.
  await using colleague = await visit(browser, service, { viewport: { width: 1280, height: 900 } })
  await colleague.page.goto(address)
  await signIn(colleague.page, sample.observer)
  await colleague.page.getByRole('columnheader', { name: 'MAC address' }).waitFor()
  expect(await names(colleague.page)).toEqual(['pump-0000', 'pump-0002', 'pump-0004'])
  await row(colleague.page, 'pump-0002').getByRole('link', { name: 'Devices with the tag even' }).click()
  await colleague.page.waitForURL('**/devices?tag=even')

  await choose(page, 'Views', 'Delete even ones')
  await press(page, 'Views')
  expect(await page.getByRole('menuitem', { name: 'even ones' }).count()).toBe(0)
  expect([person.troubles, colleague.troubles]).toEqual([[], []])
})

test('by keys alone: down, down, choose, open; and many at once are tagged, renamed and deleted', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  await fleet(service, 6)
  const api = service.api({ token: await world.token('owner') })
  const tagsOf = async (n: number) =>
    (await api.devices.get({ params: { uid: String(n).padStart(64, '0') } })).body.tags
  await using person = await openTable(service, '/devices?find=pump')
  const { page } = person
  for (const key of ['j', 'x', 'j', 'x', 'j', 'k']) await page.keyboard.press(key)
  await seen(page, '2 devices selected')
  expect(await field(page, 'Select pump-0001').isChecked()).toBe(true)
  expect(await page.evaluate('document.activeElement.textContent')).toBe('pump-0001')

  await choose(page, 'More for 2 devices', 'Add a tag …')
  await fill(page, { 'Tag name': 'x' })
  await press(page, 'Add the tag')
  expect(await complaint(page, 'Tag name')).toMatch('3 to 255')
  await fill(page, { 'Tag name': 'pier' })
  await press(page, 'Add the tag')
  await told(page, '2 devices tagged.')
  expect([await tagsOf(0), await tagsOf(1), await tagsOf(2)]).toEqual([['even', 'pier'], ['pier'], ['even']])

  await field(page, 'Select all').check()
  await choose(page, 'More for 6 devices', 'Remove a tag …')
  await fill(page, { 'Tag name': 'even' })
  await press(page, 'Remove the tag')
  await told(page, '6 devices untagged.')
  expect([await tagsOf(0), await tagsOf(2)]).toEqual([['pier'], []])

  for (const name of ['pump-0003', 'pump-0004', 'pump-0005']) await field(page, `Select ${name}`).check()
  await choose(page, 'More for 3 devices', 'Rename with a pattern …')
  await fill(page, { Pattern: 'winch' })
  await press(page, 'Rename them')
  expect(await complaint(page, 'Pattern')).toMatch('the same name')
  await fill(page, { Pattern: 'winch {n}' })
  await press(page, 'Rename them')
  expect(await complaint(page, 'Pattern')).toMatch('is not a valid name')
  await fill(page, { Pattern: 'winch-{n}' })
  await seen(page, 'pump-0003 → winch-1')
  await press(page, 'Rename them')
  await told(page, '3 devices renamed.')

  await fill(page, { Search: 'winch' })
  await row(page, 'winch-3').waitFor()
  await row(page, 'pump-0000').waitFor({ state: 'detached' })
  await field(page, 'Select winch-1').check()
  await field(page, 'Select winch-2').check()
  await choose(page, 'More for 2 devices', 'Delete …')
  await press(page, 'Delete them')
  expect(await complaint(page, 'Type 2 to confirm')).toBe('Type 2 to confirm.')
  await fill(page, { 'Type 2 to confirm': '2' })
  await press(page, 'Delete them')
  await told(page, '2 devices deleted.')
  await row(page, 'winch-1').waitFor({ state: 'detached' })
  expect(await names(page)).toEqual(['winch-3'])

  await page.keyboard.press('Tab')
  await page.evaluate('document.activeElement.blur()')
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await heading(page, 'winch-3')
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('the file has every device and no formula, and the map shows the fleet by tag', async () => {
  await using service = await startService()
  await buildWorld(service)
  await fleet(service, 250)
  await using person = await openTable(service, '/devices?find=pump', { width: 1600, height: 1000 })
  const { page } = person
  const [download] = await Promise.all([page.waitForEvent('download'), press(page, 'Export as CSV')])
  expect(download.suggestedFilename()).toBe('devices.csv')
  const lines = readFileSync(await download.path(), 'utf8').split('\r\n')
  expect(lines).toHaveLength(251)
  expect(lines[0]).toBe('Name,Uid,State,Tags,System,Processor,Agent,Address,MAC address,Last seen,Added')
  expect(lines[1]).toContain(`"'=HYPERLINK(""http://elsewhere.invalid"")"`)
  await told(page, '250 devices are in devices.csv.')

  await press(page, 'Show as a map')
  const even = page.getByRole('region', { name: 'even' })
  await even.getByText('125 offline').waitFor()
  expect(await even.locator('.cell').count()).toBe(125)
  await page.getByRole('region', { name: 'Without a tag' }).locator('.cell').first().click()
  await heading(page, 'pump-0001')
  await page.goBack()
  await even.getByRole('link', { name: 'even' }).click()
  await row(page, 'pump-0002').waitFor()
  expect(new URL(page.url()).search).toBe('?find=pump&tag=even')
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('the mark of an old agent is shown whole, beside the version', async () => {
  const served = mkdtempSync(path.join(os.tmpdir(), 'hawser-served-'))
  using _ = { [Symbol.dispose]: () => rmSync(served, { recursive: true, force: true }) }
  offerFakeAgent(served, { build: buildOf('b') })
  await using service = await startService({ agents: served })
  await buildWorld(service)
  await service.rooms.updates.decide()
  const old = {
    agent_ability: 'self' as const,
    agent_build: buildOf('a'),
    info_arch: 'amd64',
    info_version: 'hawser-0.1.0',
  }
  await service.rooms.stores.of(sample.tenant).devices.save(sample.device, old)
  await using person = await visit(browser, service, { viewport: { width: 1280, height: 800 } })
  const { page } = person
  await page.goto('/login')
  await signIn(page, sample.owner)
  await heading(page, sample.namespace)
  await page.goto('/devices')
  const cell = page.locator('td.agent-cell').filter({ hasText: 'old agent' })
  await cell.waitFor()
  for (const width of [1280, 1180]) {
    await page.setViewportSize({ width, height: 800 })
    const [outer, mark] = [await cell.boundingBox(), await cell.getByText('old agent').boundingBox()]
    expect(mark!.x + mark!.width, String(width)).toBeLessThanOrEqual(outer!.x + outer!.width)
  }
  await page.setViewportSize({ width: 1280, height: 800 })
  const cut = await page.evaluate<number>(
    `[...document.querySelectorAll('td.agent-cell, td.agent-cell *')].filter((one) => one.scrollWidth > one.clientWidth && one.clientWidth > 0).length`,
  )
  expect(cut).toBe(0)
  expect(person.troubles).toEqual([])
})

// A hundred thousand devices in the table of the console, in a real browser: to the end and back by key,
// by wheel and by the scroll bar, in every order and by a search, with few rows in the page and few
// requests on the way.
import type { Page } from 'playwright-core'
import { beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { atRest, eventually } from '../harness/eventually.ts'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()
const browser = sharedBrowser()
vi.setConfig({ testTimeout: 600_000, hookTimeout: 300_000 })
beforeAll(() => plant())

const count = 100_000
const nameOf = (n: number) => `pump-${String(n).padStart(6, '0')}`

/** Straight into the database: each by its own call would take an hour. */
async function plant(): Promise<void> {
  const { stores, database } = place.rooms
  const { id: _, ...like } = (await stores.of(sample.tenant).devices.find(sample.device))!
  const systems = ['Debian GNU/Linux 12 (bookworm)', 'Ubuntu 24.04.1 LTS', 'Alpine Linux v3.20']
  for (let from = 0; from < count; from += 20_000)
    await database.db.transaction().execute(async (trx) => {
      for (let start = from; start < from + 20_000; start += 200)
        await trx
          .insertInto('devices')
          .values(
            Array.from({ length: 200 }, (_row, k) => {
              const n = start + k
              return {
                ...like,
                uid: n.toString(16).padStart(64, '0'),
                name: nameOf(n),
                mac: `02:00:00:0${n.toString(16).padStart(5, '0')}`,
                status: 'accepted' as const,
                tags: JSON.stringify([`site-${n % 50}`]),
                info_pretty_name: systems[n % 3]!,
                remote_addr: `198.51.${n % 100}.${n % 251}`,
                online: 0 as const,
              }
            }),
          )
          .execute()
    })
}

async function open(address: string) {
  const person = await visit(browser, place, { viewport: { width: 1280, height: 800 } })
  const { page } = person
  /** The pages of the list that the browser has asked for. */
  const asked: number[] = []
  await page.addInitScript(`sessionStorage.setItem('hawser.token', '${await place.world.token('owner')}')`)
  page.on('request', (request) => {
    const url = new URL(request.url())
    if (url.pathname === '/api/devices') asked.push(Number(url.searchParams.get('page') ?? '1'))
  })
  await page.goto(address)
  await page.locator('tbody strong').first().waitFor()
  return { ...person, page, asked }
}
const named = (page: Page, name: string) => page.getByRole('link', { name, exact: true })
const rowAt = (page: Page, row: number) => page.locator(`tbody tr[data-row="${row}"]`)
const rowsInPage = (page: Page) => page.locator('tbody tr').count()
const table = (page: Page) => page.getByRole('table', { name: 'Devices' })
const sortBy = (page: Page, name: string) =>
  page.getByRole('columnheader').getByRole('button', { name, exact: true }).click()
/** The row in the middle of the window, once it has come to rest. */
const rowAtRest = async (page: Page): Promise<number> =>
  atRest(async () => page.evaluate<number>(`Math.floor((scrollY + innerHeight / 2) / 32) - 8`), 300)
/** Beyond what is on a screen there are only the rows beside it. */
const mostRows = 80

test('to the end and back, by key, wheel and scroll bar, with few rows and few requests', async () => {
  await using person = await open('/devices')
  const { page, asked } = person
  expect(await table(page).getAttribute('aria-rowcount')).toBe(String(count + 2))
  await page.keyboard.press('End')
  await named(page, nameOf(count - 1)).waitFor()
  expect(await rowsInPage(page)).toBeLessThan(mostRows)
  await page.keyboard.press('Home')
  await named(page, nameOf(0)).waitFor()
  await page.evaluate('scrollTo(0, document.documentElement.scrollHeight / 2)')
  await rowAt(page, count / 2)
    .getByRole('link')
    .first()
    .waitFor()
  expect(await rowsInPage(page)).toBeLessThan(mostRows)
  await page.evaluate('scrollTo(0, 0)')
  await named(page, nameOf(0)).waitFor()
  // Whoever scrolls by three thousand rows is not sent all of them.
  const before = asked.length
  for (let n = 0; n < 50; n += 1) await page.mouse.wheel(0, 2000)
  const row = await rowAtRest(page)
  expect(row).toBeGreaterThan(2900)
  await rowAt(page, row).getByRole('link').first().waitFor()
  expect(asked.length - before).toBeLessThan(31)
  expect(await rowsInPage(page)).toBeLessThan(mostRows)
  // By keys from row to row: the one that is marked stays on the screen.
  await page.evaluate('scrollTo(0, 0)')
  await named(page, nameOf(0)).waitFor()
  for (let n = 0; n < 150; n += 1) await page.keyboard.press('j')
  await page.locator('tr[data-active="true"][data-row="149"]').waitFor()
  expect(await page.evaluate(`document.activeElement.textContent`)).toMatch(/^pump-|^crane/)
  expect(person.troubles).toEqual([])
})

test('in every order, to its end', async () => {
  await using person = await open('/devices')
  const { page } = person
  for (const name of ['Name', 'System', 'Agent', 'Address', 'State']) {
    await sortBy(page, name)
    await page.locator('tbody strong').first().waitFor()
    await page.keyboard.press('End')
    await rowAt(page, count).getByRole('link').first().waitFor()
    expect(await rowsInPage(page)).toBeLessThan(mostRows)
    await page.keyboard.press('Home')
    await rowAt(page, 0).getByRole('link').first().waitFor()
  }
  expect(person.troubles).toEqual([])
})

test('a search finds all that fit, also beyond those that the server counts', async () => {
  await using person = await open('/devices')
  const { page } = person
  await page.getByLabel('Search').fill(nameOf(99_998))
  await page.waitForURL(/find=/)
  await named(page, nameOf(99_998)).waitFor()
  expect(await page.locator('tbody tr[data-row]').count()).toBe(1)
  // A tenth of them, and the server counts a thousand.
  await page.goto('/devices?find=pump-05')
  await named(page, nameOf(50_000)).waitFor()
  // There is room for more once the last row is there, so the end moves on.
  const last = page.locator('tbody tr[data-row]').last()
  await eventually(async () => {
    const row = Number(await last.getAttribute('data-row', { timeout: 5000 }))
    expect(await last.locator('strong').textContent()).toBe(nameOf(50_000 + row))
    if (row < 1200) await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
    expect(row).toBeGreaterThan(1199)
  }, 60_000)
  // One of fifty tags: a count that is known to its end.
  await page.goto('/devices?tag=site-7')
  await named(page, nameOf(7)).waitFor()
  expect(await table(page).getAttribute('aria-rowcount')).toBe('2001')
  expect(person.troubles).toEqual([])
})

test('columns are made wider by hand and by key, stay so, and get their usual width again', async () => {
  await using person = await open('/devices')
  const { page } = person
  const border = (name: string) => page.getByRole('separator', { name: `Width of ${name}` })
  const width = async (name: string) =>
    Math.round((await page.getByRole('columnheader', { name, exact: true }).boundingBox())!.width)
  const [name, state, tags] = [await width('Name'), await width('State'), await width('Tags')]
  const box = (await border('Name').boundingBox())!
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
  await page.mouse.move(x, y)
  await page.mouse.down()
  await page.mouse.move(x + 30, y, { steps: 5 })
  await page.mouse.up()
  const near = (wanted: number) => ({ asymmetricMatch: (got: number) => Math.abs(got - wanted) <= 8 })
  expect([await width('Name'), await width('State'), await width('Tags')]).toEqual([
    near(name + 30),
    near(state - 30),
    near(tags),
  ])
  const dragged = await width('Name')
  await border('Name').focus()
  for (let n = 0; n < 3; n += 1) await page.keyboard.press('ArrowLeft')
  expect(await width('Name')).toBeLessThan(dragged - 20)
  const kept = await width('Name')
  await page.reload()
  await named(page, nameOf(0)).waitFor()
  expect(await width('Name')).toEqual(near(kept))
  // No further than the neighbour can give, and nothing is pushed out of the page.
  for (let n = 0; n < 60; n += 1) await border('Name').press('ArrowRight')
  expect(await width('State')).toBeGreaterThan(30)
  expect(
    await page.evaluate(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`),
  ).toBe(true)
  await border('Name').dblclick()
  expect([await width('Name'), await width('State')]).toEqual([name, state])
  expect(await page.evaluate(`localStorage.getItem('hawser.column-widths')`)).toBe('{}')
  expect(person.troubles).toEqual([])
})

test('the map shows the first ten thousand as one picture', async () => {
  await using person = await visit(browser, place, { viewport: { width: 1280, height: 800 } })
  const { page } = person
  await page.addInitScript(`sessionStorage.setItem('hawser.token', '${await place.world.token('owner')}')`)
  await page.goto('/devices?map=true')
  const group = page.getByRole('region', { name: 'site-7', exact: true })
  await group.getByText('200 offline').waitFor()
  await page.getByText('the first 10000').waitFor()
  // Few elements, and each cell is still a device.
  expect(await page.locator('.fleet *').count()).toBeLessThan(1000)
  const picture = group.locator('svg')
  await picture.scrollIntoViewIfNeeded()
  const { x, y } = (await picture.boundingBox())!
  await page.mouse.move(x + 14, y + 4)
  await eventually(async () =>
    expect(await group.locator('.cells').getAttribute('title')).toBe(`${nameOf(57)}, offline`),
  )
  await page.mouse.click(x + 14, y + 4)
  await page.getByRole('heading', { name: nameOf(57), exact: true }).waitFor()
  expect(person.troubles).toEqual([])
})

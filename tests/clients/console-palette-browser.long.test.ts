// The command palette with the keyboard alone: pages, things and verbs; what cannot be undone asks first;
// what the role does not allow says so; and what the server finds late moves nothing that was there.
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, violations } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { sharedPlace } from '../harness/place.ts'
import { recordSession } from '../harness/recorded.ts'
import { enrol, heading, query, seen, told, visitAs } from './console.ts'

const place = sharedPlace()
const browser = sharedBrowser()

const results = (page: Page) => page.getByRole('menu', { name: 'Results' }).getByRole('menuitem')
const box = (page: Page) => page.getByRole('searchbox', { name: 'Page, item or action' })

async function type(page: Page, text: string): Promise<void> {
  await page.keyboard.press('Control+k')
  await box(page).waitFor()
  await page.keyboard.type(text)
  await page
    .getByRole('status')
    .getByText(/^\d+ results?$/)
    .waitFor({ state: 'attached' })
}

test('verbs act on what they fit, and ask where it matters', async () => {
  const gate = await enrol(place, sample.tenant, 'quay-gate', '00:00:5e:00:53:a1')
  await enrol(place, sample.tenant, 'quay-lamp', '00:00:5e:00:53:a2')
  const stored = await place.rooms.stores.of(sample.tenant).sessions.find(sample.session)
  const { tenant_id: _, ...like } = stored!
  await place.rooms.stores
    .of(sample.tenant)
    .sessions.insert({ ...like, uid: 'c'.repeat(64), username: 'skipper', active: 1 })
  await using person = await visitAs(sample.administrator, browser, place)
  const { page } = person

  // A verb that is begun is completed by Enter, and then narrows to what it fits.
  await type(page, 'acc')
  await page.keyboard.press('Enter')
  expect(await box(page).inputValue()).toBe('accept ')
  await results(page).filter({ hasText: 'Accept quay-gate' }).waitFor()
  expect(await results(page).filter({ hasText: 'crane-1' }).count()).toBe(0)
  expect(await violations(page)).toEqual([])
  await page.keyboard.type('quay-g')
  await eventually(async () => expect(await results(page).count()).toBe(1))
  await page.keyboard.press('Enter')
  await told(page, 'quay-gate was accepted.')
  expect((await place.owner.devices.get({ params: { uid: gate } })).body.status).toBe('accepted')

  // What cannot be undone leads to its question.
  await type(page, 'delete quay-gate')
  await page.keyboard.press('Enter')
  const question = page.getByRole('alertdialog', { name: 'Delete quay-gate?' })
  await question.waitFor()
  expect(await violations(page)).toEqual([])
  await page.keyboard.press('Escape')
  await question.waitFor({ state: 'detached' })
  expect((await place.owner.devices.get({ params: { uid: gate } })).body.status).toBe('accepted')
  // The same again: it asks again.
  await type(page, 'delete quay-gate')
  await page.keyboard.press('Enter')
  await question.waitFor()
  await page.keyboard.press('Tab')
  await question.getByRole('button', { name: 'Delete it' }).press('Enter')
  await told(page, 'quay-gate was deleted.')

  await type(page, 'close session skipper')
  await page.keyboard.press('Enter')
  await page.getByRole('alertdialog', { name: 'Close this session?' }).waitFor()
  await seen(page, 'skipper on crane-1 ends immediately.')
  await page.keyboard.press('Escape')

  // A thing by itself has its verbs; its own page is the first.
  await type(page, 'quay-lamp')
  expect((await results(page).allInnerTexts()).map((text) => text.split('\n')[0])).toEqual([
    'quay-lamp',
    'Accept quay-lamp',
    'Reject quay-lamp',
    'Rename quay-lamp …',
    'Delete quay-lamp …',
    'Search recordings for “quay-lamp”',
  ])
  await page.keyboard.press('Enter')
  await heading(page, 'quay-lamp')

  await type(page, 'sessions of oskar')
  await page.keyboard.press('Enter')
  await heading(page, 'Sessions')
  expect(decodeURIComponent(query(page))).toContain(sample.operator.id)
  await type(page, 'theme dark')
  await page.keyboard.press('Enter')
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
  await type(page, 'settings')
  await page.keyboard.press('Enter')
  await heading(page, 'Settings and members')
  await type(page, 'sign out')
  await page.keyboard.press('Enter')
  await seen(page, 'You are signed out.')
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('recordings are searched from the palette', async () => {
  await recordSession(place.rooms, { lines: ['a heron lands\r\n'] })
  const find = async () => (await place.owner.recordings.find({ query: { text: 'heron' } })).body.hits
  await eventually(async () => expect(await find()).toHaveLength(1))
  await using person = await visitAs(sample.administrator, browser, place)
  const { page } = person
  await type(page, 'search recordings for heron')
  await page.keyboard.press('Enter')
  await heading(page, 'Search')
  await page.getByRole('list', { name: 'Lines that match' }).getByText('a heron lands').waitFor()
  expect(await page.getByLabel('Text in all recordings').inputValue()).toBe('heron')
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('what a role may not do is said, and not done', async () => {
  const uid = await enrol(place, sample.tenant, 'buoy-7', '00:00:5e:00:53:b7')
  await using person = await visitAs(sample.observer, browser, place)
  const { page } = person
  await type(page, 'accept buoy-7')
  await results(page).filter({ hasText: 'needs the role operator' }).waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('status').getByText('Accept buoy-7: needs the role operator.').waitFor()
  expect(await box(page).inputValue()).toBe('accept buoy-7')
  expect(await violations(page)).toEqual([])
  expect((await place.owner.devices.get({ params: { uid } })).body.status).toBe('pending')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await box(page).waitFor({ state: 'detached' })
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('what the server finds late comes below, and moves nothing', async () => {
  await enrol(place, sample.tenant, 'session-box', '00:00:5e:00:53:c7')
  await using person = await visitAs(sample.administrator, browser, place)
  const { page } = person
  let open = (): void => undefined
  const gate = new Promise<void>((resolve) => (open = resolve))
  await page.route('**/api/devices?**', async (route) => {
    await gate
    await route.continue()
  })
  await page.keyboard.press('Control+k')
  await box(page).waitFor()
  await page.keyboard.type('sess')
  await results(page).first().waitFor()
  await page.keyboard.press('ArrowDown')
  const focused = () => box(page).getAttribute('aria-activedescendant')
  await eventually(async () => expect(await focused()).not.toBeNull())
  const before = await results(page).allInnerTexts()
  const at = await focused()
  open()
  await results(page).filter({ hasText: 'session-box' }).first().waitFor()
  expect((await results(page).allInnerTexts()).slice(0, before.length)).toEqual(before)
  expect(await focused()).toBe(at)
  expect(person.troubles).toEqual([])
})

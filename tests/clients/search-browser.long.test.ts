// Search in the console: an administrator finds a line of a recording, sees it with the lines around it, and
// opens the player at that moment. Markup that a device wrote is text, and nothing else.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { sharedPlace } from '../harness/place.ts'
import { recordSession } from '../harness/recorded.ts'
import { fill, goTo, heading, press, seen, visitAs } from './console.ts'

const place = sharedPlace()
const browser = sharedBrowser()

test('a line is found, shown with its context, and opens the player', async () => {
  const uid = await recordSession(place.rooms, {
    lines: ['first line\r\n', 'the pelican <b>&amp;</b> lands\r\n', 'last line\r\n'],
  })
  const find = async () => (await place.owner.recordings.find({ query: { text: 'pelican' } })).body.hits
  await eventually(async () => expect(await find()).toHaveLength(1))
  await using person = await visitAs(sample.administrator, browser, place)
  const { page } = person
  await goTo(page, 'Sessions')
  await page.getByRole('link', { name: 'Search', exact: true }).click()
  await heading(page, 'Search')
  await fill(page, { 'Text in all recordings': 'nothing-like-this' })
  await press(page, 'Search')
  await seen(page, /No results/)
  await fill(page, { 'Text in all recordings': '"the pelican" lan*' })
  await press(page, 'Search')
  const hit = page.getByRole('list', { name: 'Lines that match' }).getByRole('listitem')
  await hit.waitFor()
  expect(await hit.locator('pre').textContent()).toBe('first line\nthe pelican <b>&amp;</b> lands\nlast line')
  expect(await hit.locator('mark').allTextContents()).toEqual(['the pelican', 'lan'])
  await fill(page, { 'Text in all recordings': '"open' })
  await press(page, 'Search')
  await seen(page, /no closing quotation mark/)
  await hit.getByRole('link').click()
  await page.waitForURL(new RegExp(`/sessions/${uid}\\?at=\\d+&channel=0`))
  await seen(page, /the pelican/)
})

test('what was shown while somebody typed in the session of another person is found by their name, and says so', async () => {
  const { username } = sample.operator
  const user = await place.rooms.stores.users.findByUsername(username)
  await recordSession(place.rooms, {
    lines: ['a heron waits\r\n', { type: 'typist', by: username, id: user!.id }, 'the heron dives\r\n'],
    between: () => place.clock.forward(1_000),
  })
  const find = async () => (await place.owner.recordings.find({ query: { text: 'heron' } })).body.hits
  await eventually(async () => expect(await find()).toHaveLength(2))
  await using person = await visitAs(sample.administrator, browser, place)
  const { page } = person
  await goTo(page, 'Sessions')
  await page.getByRole('link', { name: 'Search', exact: true }).click()
  await fill(page, { 'Text in all recordings': 'heron', Person: username })
  await press(page, 'Search')
  const hit = page.getByRole('list', { name: 'Lines that match' }).getByRole('listitem')
  await hit.getByText('the heron dives').waitFor()
  expect(await hit.count()).toBe(1)
  await hit.getByText(`${username} typed`, { exact: true }).waitFor()
})

test('who may not play recordings is told who may search', async () => {
  await using person = await visitAs(sample.operator, browser, place)
  const { page } = person
  await goTo(page, 'Sessions')
  await page.getByRole('link', { name: 'Search', exact: true }).click()
  await seen(page, /Only administrators of the namespace can search/)
})

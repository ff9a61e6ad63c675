// Sessions in the console: filters in the address with chips that remove them, live sessions first, refused logins
// with their reasons, and links to a moment of a recording, also for who has to sign in before.
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, violations, visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { sharedPlace } from '../harness/place.ts'
import {
  field,
  goTo,
  heading,
  press,
  query,
  row,
  seen,
  signedInTo,
  signIn,
  told,
  visitAs,
} from './console.ts'

const place = sharedPlace()
const browser = sharedBrowser()

let sessions = 0
/** A session that began so many hours ago. */
async function session(username: string, hours: number, more: object = {}): Promise<string> {
  const stored = await place.rooms.stores.of(sample.tenant).sessions.find(sample.session)
  const { tenant_id: _, ...like } = stored!
  const at = new Date(Date.now() - hours * 3_600_000).toISOString()
  const uid = (++sessions).toString(16).padStart(64, 'b')
  const row = { ...like, uid, username, started_at: at, last_seen: at, active: 0 as const, ...more }
  await place.rooms.stores.of(sample.tenant).sessions.insert(row)
  return uid
}

/** A recording with a pause in it, made with the server's clock. */
async function recording(lines = ['first words', 'second words', 'third words']): Promise<string> {
  const { recordings } = place.rooms
  const uid = await session('player', 3, { recorded: 1 })
  const about = { tenant_id: sample.tenant, session_uid: uid, device_uid: sample.device, username: 'player' }
  const kept = await recordings.begin({ ...about, term: 'xterm', width: 80, height: 24 })
  kept.mark({ type: 'program', program: 'shell' })
  for (const line of lines) {
    await kept.output(Buffer.from(`${line}\r\n`))
    place.clock.forward(20_000)
  }
  await kept.output(Buffer.from('the end'))
  await kept.finish()
  return uid
}

const names = (page: Page) =>
  page.getByRole('list', { name: 'Sessions', exact: true }).locator('.name strong').allTextContents()

test('a held session says how long it still waits, in the list and on its page, and counts by itself', async () => {
  const held_until = new Date(Date.now() + 90 * 60_000).toISOString()
  const uid = await session('sleeper', 1, { active: 1, held_until })
  await using person = await visit(browser, place)
  const { page } = person
  await page.clock.install()
  await signedInTo(page, place, sample.administrator)
  await page.goto('/sessions')
  const about = row(page, 'sleeper')
  await about.getByText('held', { exact: true }).waitFor()
  await about.getByText(/^(8\d|90) min left$/).waitFor()
  await page.clock.fastForward('30:00')
  await about.getByText(/^(5\d|60) min left$/).waitFor()

  await page.goto(`/sessions/${uid}`)
  const signs = page.locator('.signs')
  await signs.getByText('held', { exact: true }).waitFor()
  await signs.getByText(/^(5\d|60) min left$/).waitFor()
  expect(await signs.getByText('connected').count()).toBe(0)
  await page.clock.fastForward('59:00')
  await signs.getByText(/^\d+ s left$/).waitFor()
  expect(await violations(page)).toEqual([])
})

test('filters by time and recording, live ones first, chips and the address', async () => {
  await session('early', 200)
  await session('taped', 2, { recorded: 1 })
  await session('waiting', 5, { active: 1, held_until: '2030-01-01T00:00:00.000Z' })
  await session('present', 300, { active: 1 })
  await using person = await visitAs(sample.administrator, browser, place)
  const { page } = person
  await goTo(page, 'Sessions')
  await row(page, 'early').waitFor()
  const order = (await names(page)).filter((name) => ['early', 'taped', 'waiting', 'present'].includes(name))
  expect(order).toEqual(['present', 'waiting', 'taped', 'early'])
  await row(page, 'waiting').getByText('held', { exact: true }).waitFor()

  await field(page, 'Time').selectOption('Last 24 hours')
  await row(page, 'early').waitFor({ state: 'detached' })
  await row(page, 'taped').waitFor()
  await field(page, 'Recording').selectOption('Recorded')
  await row(page, 'waiting').waitFor({ state: 'detached' })
  expect(query(page)).toBe('?recorded=true&since=24h')
  expect(await violations(page)).toEqual([])
  // The address is enough.
  await page.reload()
  await row(page, 'taped').waitFor()
  expect(await row(page, 'waiting').count()).toBe(0)
  await press(page, 'Remove the filter Recorded')
  await row(page, 'waiting').waitFor()
  expect(query(page)).toBe('?since=24h')
  await page.getByRole('link', { name: 'Show all' }).click()
  await row(page, 'early').waitFor()
  expect(query(page)).toBe('')

  const local = (hours: number) => {
    const at = Date.now() - hours * 3_600_000
    return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
  }
  await field(page, 'Time').selectOption('From … until …')
  await field(page, 'From').fill(local(210))
  await field(page, 'From').press('Enter')
  await row(page, 'present').waitFor({ state: 'detached' })
  await field(page, 'Until').fill(local(100))
  await field(page, 'Until').press('Enter')
  await row(page, 'taped').waitFor({ state: 'detached' })
  await row(page, 'early').waitFor()
  expect(await violations(page)).toEqual([])
  await page.goto('/sessions?since=tomorrow&from=x&recorded=7&person=nobody')
  await seen(page, 'No sessions match these filters.')
  expect(await page.getByRole('list', { name: 'Filters' }).getByRole('button').count()).toBe(1)
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('refused logins are listed with their reasons, for administrators', async () => {
  const { refusals } = place.rooms.stores.of(sample.tenant)
  const refused = (reference: string, about: object) =>
    refusals.add({
      reference,
      at: new Date().toISOString(),
      last_at: new Date().toISOString(),
      times: 3,
      detail: JSON.stringify({ sshid: 'x@y', source: '192.0.2.77', via: 'ssh', attempts: 1, ...about }),
    })
  await refused('WXYZ-2345', {
    reason: 'firewall',
    device: sample.device,
    name: 'harbour.crane-1',
    username: 'intruder',
  })
  await refused('WXYZ-2346', { reason: 'offline', username: 'sleeper' })
  await using person = await visitAs(sample.administrator, browser, place)
  const { page } = person
  await goTo(page, 'Sessions')
  await page.getByRole('link', { name: 'Refused', exact: true }).click()
  await row(page, 'intruder').getByText('A firewall rule denied the login.').waitFor()
  await row(page, 'intruder').getByText('3 times').waitFor()
  await row(page, 'intruder').getByText('reference WXYZ-2345').waitFor()
  await row(page, 'sleeper').waitFor()
  expect(await violations(page)).toEqual([])
  await field(page, 'Reason').selectOption('The device was offline.')
  await row(page, 'intruder').waitFor({ state: 'detached' })
  expect(query(page)).toBe('?refused=true&reason=offline')
  await press(page, 'Remove the filter The device was offline.')
  await row(page, 'intruder').waitFor()
  expect(person.troubles).toEqual([])

  await using other = await visitAs(sample.observer, browser, place)
  await goTo(other.page, 'Sessions')
  expect(await other.page.getByRole('link', { name: 'Refused', exact: true }).count()).toBe(0)
  await other.page.goto('/sessions?refused=true')
  await seen(other.page, 'Only administrators of the namespace can see refused logins.')
  expect(other.refusals).toEqual([])
})

/** How many colours a picture has. */
const colours = (page: Page, canvas: string) =>
  page.evaluate<number>(`(() => {
    const canvas = document.querySelector('${canvas}')
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    const seen = new Set()
    for (let at = 0; at < data.length; at += 4) seen.add(data[at] + ',' + data[at + 1] + ',' + data[at + 2])
    return seen.size
  })()`)

test('a recording has a filmstrip: its pictures lead to their moments, and the time bar shows them', async () => {
  const uid = await recording()
  await using person = await visit(browser, place)
  const { page } = person
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  await page.goto('/login')
  await signIn(page, sample.administrator)
  await heading(page, sample.namespace)
  await page.goto(`/sessions?person=${encodeURIComponent('"nobody"')}`)
  await seen(page, 'No sessions match these filters.')
  await page.goto('/sessions?recorded=true')
  await row(page, 'player').first().waitFor()
  expect(asked.filter((path) => path.includes('/recording'))).toEqual([])

  // The list asks for the pictures, and for nothing else of the recording.
  await row(page, 'player')
    .first()
    .getByRole('button', { name: /^Preview of/ })
    .click()
  const strip = page.getByRole('list', { name: 'Moments of the session of player on crane-1' })
  await strip.getByRole('link').first().waitFor()
  const paths = asked.filter((path) => path.includes('/recording') || path.includes('/cast'))
  expect(paths.every((path) => path.endsWith('/recording/0/filmstrip'))).toBe(true)
  expect(paths).toHaveLength(1)
  const links = await strip.getByRole('link').all()
  const names = await Promise.all(links.map((link) => link.getAttribute('aria-label')))
  expect(names.at(-1)).toBe('Go to 1:00: the end')
  expect(names).toContain('Go to 0:20: second words')
  expect(await colours(page, '.filmstrip li:last-child canvas')).toBeGreaterThan(2)
  expect(await violations(page)).toEqual([])
  await strip.getByRole('link', { name: 'Go to 0:20: second words' }).press('Enter')
  await page.waitForURL(/\?t=20(\.\d)?$/)
  const shown = page.getByRole('region', { name: 'Terminal output' })
  await shown.getByText('second words').waitFor()
  expect(page.url()).toContain(`/sessions/${uid}?`)

  const moments = page.getByRole('list', { name: 'Moments of the recording' }).getByRole('button')
  await moments.first().waitFor()
  expect(await moments.count()).toBe(names.length)
  await moments.last().focus()
  await moments.last().press('Enter')
  await shown.getByText('the end').waitFor()
  expect(await page.getByTestId('time').textContent()).toBe('1:00')
  // A pointer on the time bar sees what was there.
  await page.getByRole('slider', { name: 'Position in the recording' }).hover()
  const preview = page.locator('.film-preview')
  await preview.waitFor()
  expect(await preview.textContent()).toMatch(/^0:(29|30|31)$/)
  expect(await colours(page, '.film-preview canvas')).toBeGreaterThan(2)
  await page.getByRole('heading', { level: 1 }).hover()
  await preview.waitFor({ state: 'detached' })
  expect(await violations(page)).toEqual([])
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])

  await using other = await visitAs(sample.observer, browser, place)
  await goTo(other.page, 'Sessions')
  await row(other.page, 'player').first().waitFor()
  expect(await other.page.getByRole('button', { name: /^Preview of/ }).count()).toBe(0)
})

test.each([1280, 390])('few pictures stay together, on a window of %s', async (width) => {
  const uid = await recording(['only words'])
  await using person = await visit(browser, place, { viewport: { width, height: 844 } })
  const { page } = person
  await page.goto('/login')
  await signIn(page, sample.administrator)
  await heading(page, sample.namespace)
  await page.goto(`/sessions/${uid}`)
  const strip = page.getByRole('list', { name: 'Moments of the recording' })
  await strip.getByRole('button').first().waitFor()
  const boxes = await Promise.all((await strip.locator('canvas').all()).map((one) => one.boundingBox()))
  expect(boxes).toHaveLength(2)
  const [first, second] = boxes.map((box) => box!)
  expect(first!.x).toBeLessThan((await strip.boundingBox())!.x + 2)
  expect(second!.y).toBe(first!.y)
  expect(second!.x - first!.x - first!.width).toBeLessThan(24)
  expect(first!.width).toBeGreaterThan(100)
})

test('the page of a device says which sessions continue another one', async () => {
  const first = await session('begun', 2)
  await session('again', 1, { resumes: first })
  await using person = await visit(browser, place, {})
  const { page } = person
  await page.goto('/login')
  await signIn(page, sample.administrator)
  await heading(page, sample.namespace)
  await page.goto(`/devices/${sample.device}`)
  const list = page.getByRole('list', { name: 'Sessions on this device' })
  const of = (name: string) => list.getByRole('listitem').filter({ hasText: name })
  await of('again').getByText('continues another session').waitFor()
  expect(await of('begun').getByText('continues').count()).toBe(0)
  await of('again').getByRole('link', { name: 'another session' }).click()
  await page.waitForURL(`**/sessions/${first}`)
  expect(person.troubles).toEqual([])
})

test('a link to a moment opens the player there, after a sign-in as well', async () => {
  const uid = await recording()
  await using person = await visit(browser, place, { permissions: ['clipboard-read', 'clipboard-write'] })
  const { page } = person
  const time = page.getByTestId('time')
  const shown = page.getByRole('region', { name: 'Terminal output' })
  await page.goto(`/sessions/${uid}?t=25.5`)
  await signIn(page, sample.administrator)
  await heading(page, 'player on crane-1')
  await shown.getByText('second words').waitFor()
  expect(await time.textContent()).toBe('0:25')
  expect(await shown.innerText()).not.toContain('third words')
  await page.getByRole('button', { name: 'Play', exact: true }).waitFor()

  const bar = page.getByRole('slider', { name: 'Position in the recording' })
  await bar.fill('41300')
  await shown.getByText('third words').waitFor()
  await press(page, 'Copy link to this moment')
  await told(page, 'Copied.')
  const link = await page.evaluate<string>('navigator.clipboard.readText()')
  expect(link).toBe(`${place.url}/sessions/${uid}?t=41.3`)
  await page.goto(link)
  await shown.getByText('third words').waitFor()
  expect(await time.textContent()).toBe('0:41')

  // Behind the end is the end, before the start the start, and nonsense is no moment.
  await page.goto(`/sessions/${uid}?t=1e999`)
  await shown.getByText('the end').waitFor()
  expect(await time.textContent()).toBe('1:00')
  for (const t of ['-5', 'soon', '%7B%7D']) {
    await page.goto(`/sessions/${uid}?t=${t}`)
    await page.getByRole('button', { name: 'Play', exact: true }).waitFor()
    await eventually(async () => expect(await time.textContent()).toBe('0:00'))
    expect(await shown.innerText()).not.toContain('second words')
  }
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

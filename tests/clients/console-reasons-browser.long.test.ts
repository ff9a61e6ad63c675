// Reasons in the console: a device that is offline says why, its timeline is on its page, and an administrator asks
// who gets in. An observer sees the timeline and is not offered the question.
import { beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { startAgent } from '../harness/agent.ts'
import { until } from '../harness/eventually.ts'
import { sharedPlace } from '../harness/place.ts'
import { fill, goTo, heading, press, seen, visitAs } from './console.ts'

const place = sharedPlace()
const browser = sharedBrowser()
beforeAll(async () => {
  await using agent = await startAgent(place, { hostname: 'davit' })
  agent.kill('SIGTERM')
  await agent.ended
  await until(async () =>
    (await place.observer.devices.get({ params: { uid: agent.uid } })).body.offline_reason?.startsWith(
      'Its agent was stopped at ',
    ),
  )
})

test('an administrator reads why the device is offline, and which rule refuses a login', async () => {
  await place.administrator.firewall.create({
    body: {
      action: 'deny',
      active: true,
      priority: 0,
      source_ip: '^203\\.0\\.113\\.',
      username: '.*',
      filter: { hostname: '.*' },
    },
  })
  await using person = await visitAs(sample.administrator, browser, place)
  const { page } = person
  await goTo(page, 'Devices')
  await page.getByRole('link', { name: 'davit', exact: true }).first().click()
  await heading(page, 'davit')
  await seen(page, /^Its agent was stopped at /)
  await heading(page, 'Timeline')
  for (const text of ['It connected from 127.0.0.1.', 'It is accepted now.']) await seen(page, text)
  await press(page, 'Why?')
  await heading(page, 'Who can log in to davit?')
  await fill(page, { 'Source address': 'nowhere' })
  await press(page, 'Explain')
  await seen(page, /^Not an IP address\.$/)
  await fill(page, { 'Log in as': 'root', 'Source address': '203.0.113.7' })
  await press(page, 'Explain')
  await seen(page, /^davit is offline\. Its agent was stopped at /)
  const steps = page.getByRole('list', { name: 'Steps' }).getByRole('listitem')
  await steps.filter({ hasText: 'priority 0) applies and denies the login.' }).waitFor()
  expect(await steps.count()).toBeGreaterThan(4)
})

test('a German console says the same in German, in the time zone of the browser', async () => {
  await using person = await visit(browser, place, { locale: 'de-DE', timezoneId: 'Europe/Berlin' })
  const { page } = person
  await page.goto('/login')
  await page.getByLabel('Benutzername oder E-Mail').fill(sample.administrator.username)
  await page.getByLabel('Passwort', { exact: true }).fill(sample.administrator.password)
  await press(page, 'Anmelden')
  await page.getByRole('link', { name: 'Geräte', exact: true }).click()
  await page.getByRole('link', { name: 'davit', exact: true }).first().click()
  await seen(page, /^Sein Agent wurde am \d\d\.\d\d\.\d{4}, \d\d:\d\d:\d\d (MEZ|MESZ) beendet\.$/)
  const timeline = page.getByRole('list', { name: 'Verlauf des Geräts' })
  for (const text of ['Es hat sich von 127.0.0.1 verbunden.', 'Es ist jetzt angenommen.'])
    await timeline.getByText(text).waitFor()
  expect(await timeline.getByText(/\b(It|Its|The)\b/).count()).toBe(0)
  await press(page, 'Warum?')
  await page.getByLabel('Quelladresse').fill('nirgends')
  await press(page, 'Erklären')
  await seen(page, 'Das ist keine IP-Adresse.')
  await page.getByLabel('Quelladresse').fill('203.0.113.7')
  await press(page, 'Erklären')
  const steps = page.getByRole('list', { name: 'Schritte' }).getByRole('listitem')
  await steps.filter({ hasText: 'Priorität 0) trifft zu und verbietet die Anmeldung.' }).waitFor()
  expect(await steps.count()).toBeGreaterThan(4)
  expect(await steps.filter({ hasText: /\b(the|The|is|device)\b/ }).allTextContents()).toEqual([])
  await page.goto(`${page.url()}/terminal`)
  await page.getByLabel('Passwort', { exact: true }).fill('not-the-one')
  await press(page, 'Terminal öffnen')
  await seen(page, 'Das Gerät ist offline oder nicht erreichbar.')
})

test('an observer sees the timeline, and is not asked who gets in', async () => {
  await using person = await visitAs(sample.observer, browser, place)
  const { page } = person
  await goTo(page, 'Devices')
  await page.getByRole('link', { name: 'davit', exact: true }).first().click()
  await heading(page, 'Timeline')
  expect(await page.getByRole('button', { name: 'Why?' }).count()).toBe(0)
})

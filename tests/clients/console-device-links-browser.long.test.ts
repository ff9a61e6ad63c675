// What the console shows and takes about the links of devices: how long sessions wait for a device whose
// connection is lost, how often a device pings, what it has used by day, and its data budget.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { mostGrace_s } from '@hawser/contract/tunnel'
import { sharedBrowser } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { field, fill, goTo, press, seen, signIn, signOut, visitAs } from './console.ts'

const browser = sharedBrowser()

const grace = 'Seconds to hold sessions when a device disconnects'

test('an owner says how long sessions wait, and a member who may not change it reads it', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('owner') })
  const stored = async () =>
    (await api.namespaces.get({ params: { tenant: sample.tenant } })).body.settings.reconnect_grace_s
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  await goTo(page, 'Settings and members')
  expect(await field(page, grace).inputValue()).toBe('300')
  // The browser itself holds back what is no such number.
  await fill(page, { [grace]: String(mostGrace_s + 1) })
  await press(page, 'Save the settings')
  expect(await page.locator('input[name="grace"]:invalid').count()).toBe(1)
  expect(await stored()).toBe(300)
  await fill(page, { [grace]: '90' })
  await press(page, 'Save the settings')
  await eventually(async () => expect(await stored()).toBe(90))
  await signOut(page)
  await signIn(page, sample.observer)
  await goTo(page, 'Settings and members')
  await seen(page, 'its sessions are held for 90 seconds')
  await service.rooms.stores.namespaces.save(sample.tenant, { reconnect_grace_s: 0 })
  await page.reload()
  await seen(page, 'sessions end with it')
})

test('the page of a device shows its pings, its bytes by day and its budget', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('owner') })
  const { stores } = service.rooms
  await stores.of(sample.tenant).devices.save(sample.device, { ping_s: 240 })
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  await goTo(page, 'Devices')
  await page.getByRole('link', { name: 'crane-1', exact: true }).click()
  await seen(page, 'every 240 s while nobody is connected')
  const panel = page.getByRole('region', { name: 'Data' })
  await panel.getByText('It used no data in the last 30 days.').waitFor()
  await panel.getByText('0 bytes of 1.0 GB this month').waitFor()

  const day = (ago: number) => new Date(service.clock.now() - ago * 86_400_000).toISOString().slice(0, 10)
  const uid = sample.device
  await stores.trafficSums.add([
    { uid, day: day(3), idle_received: 20_000, idle_sent: 20_000, session_received: 0, session_sent: 0 },
    { uid, day: day(0), idle_received: 5_000, idle_sent: 5_000, session_received: 1e6, session_sent: 1.66e6 },
  ])
  await api.budgets.update({ params: { id: sample.budget }, body: { bytes: 1_000_000 } })
  await page.reload()
  await panel.getByText(/of 1\.0 MB this month/).waitFor()
  await panel.getByText('used up').waitFor()
  await panel.getByText('In the last 30 days 2.7 MB: 2.7 MB in sessions, 50.0 kB idle.').waitFor()
  const bars = panel.getByRole('img', { name: 'Bytes per day; 2.7 MB on the busiest day.' })
  await bars.waitFor()
  expect(await bars.locator('rect').count()).toBe(4)
  await panel.getByText('Day by day').click()
  const words = (ago: number) =>
    new Date(day(ago)).toLocaleDateString('en-US', { dateStyle: 'medium', timeZone: 'UTC' })
  await panel.getByRole('row', { name: `${words(0)} 1.0 MB 1.7 MB 2.7 MB 10.0 kB` }).waitFor()
  await panel.getByRole('row', { name: `${words(3)} 20.0 kB 20.0 kB 0 bytes 40.0 kB` }).waitFor()
})

// The overview, the page of a device and the list of sessions in a real browser: what needs attention, the first
// steps, what a device has behind it and who gets in to it, and sessions by person, method and device.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser } from '../harness/browser.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { choose, field, goTo, heading, press, query, row, seen, visitAs } from './console.ts'

const browser = sharedBrowser()

const day_ms = 86_400_000

test('the overview says what needs attention and what happened, and its first steps leave', async () => {
  await using service = await startService()
  await buildWorld(service)
  const { stores } = service.rooms
  const ago = new Date(service.clock.now() - 9 * day_ms).toISOString()
  await stores.of(sample.tenant).devices.save(sample.device, { last_seen: ago })
  const day = new Date(service.clock.now() - day_ms).toISOString().slice(0, 10)
  const used = { idle_received: 0, idle_sent: 500_000, session_received: 1_000_000, session_sent: 0 }
  await stores.trafficSums.add([{ uid: sample.device, day, ...used }])
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  const attention = page.getByRole('region', { name: 'Needs attention' })
  await attention.getByText('1 login was refused in the last 24 hours').waitFor()
  await page.getByRole('img', { name: '1 sessions in 14 days; 1 on the busiest day.' }).waitFor()
  await page.getByRole('img', { name: 'devices in 14 days; 1 on the busiest day.' }).waitFor()
  await page.getByRole('img', { name: '1.5 MB of data in 14 days; 1.5 MB on the busiest day.' }).waitFor()
  await page.getByRole('img', { name: '1 refused logins in 14 days; 1 on the busiest day.' }).waitFor()
  await page.getByRole('list', { name: 'Activity' }).getByRole('listitem').first().waitFor()

  const steps = page.getByRole('region', { name: 'First steps' })
  await steps.getByText('Connect to it with ssh or in the browser, done').waitFor()
  await steps.getByRole('link', { name: 'Turn on your second factor' }).waitFor()
  await steps.getByRole('button', { name: 'Hide' }).click()
  await steps.waitFor({ state: 'detached' })
  await page.reload()
  await attention.waitFor()
  expect(await steps.count()).toBe(0)

  await attention.getByRole('link', { name: '1 device has not been seen for 7 days' }).click()
  await row(page, 'crane-1').waitFor()
  expect(query(page)).toBe('?sort=seen&online=false&unseen=7d')
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('a device has its history, its sessions and who gets in; what is dangerous is in a menu', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const { stores } = service.rooms
  const now = service.clock.now()
  const moment = (hours: number) => new Date(now - hours * 3_600_000).toISOString()
  await stores.of(sample.tenant).devices.save(sample.device, { last_seen: moment(1) })
  const owner = service.api({ token: await world.token('owner') })
  await owner.firewall.create({
    body: {
      action: 'deny',
      active: true,
      priority: 9,
      source_ip: '^203\\.',
      username: '^guest$',
      filter: { hostname: '^crane' },
    },
  })
  await owner.firewall.create({
    body: {
      action: 'deny',
      active: true,
      priority: 9,
      source_ip: '.*',
      username: '^nobody$',
      filter: { hostname: '^pump' },
    },
  })
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  await goTo(page, 'Devices')
  await page.getByRole('link', { name: 'crane-1', exact: true }).click()
  await heading(page, 'crane-1')
  const terminal = page.getByRole('button', { name: 'Terminal: the device is offline' })
  await terminal.waitFor()
  expect(await terminal.isDisabled()).toBe(true)
  await page.getByRole('list', { name: 'Sessions on this device' }).getByText('root').waitFor()
  const rules = page.getByRole('list', { name: 'Firewall rules for this device' })
  await rules.getByText('^guest$ from ^203\\.').waitFor()
  expect(await rules.getByText('^nobody$').count()).toBe(0)
  await page.getByRole('list', { name: 'Public keys for this device' }).getByText('laptop').first().waitFor()
  await press(page, 'More for crane-1')
  expect(await page.getByRole('menuitem').allTextContents()).toEqual([
    'Rename …',
    'Tags …',
    'Reject …',
    'Delete …',
  ])
  await page.keyboard.press('Escape')
  await choose(page, 'More for crane-1', 'Delete …')
  await press(page, 'Delete it')
  await heading(page, 'Devices')
  expect(person.troubles).toEqual([])
})

test('sessions are found by person, method and device, and the address keeps it', async () => {
  await using service = await startService()
  await buildWorld(service)
  const { stores } = service.rooms
  const stored = await stores.of(sample.tenant).sessions.find(sample.session)
  if (!stored) throw new Error('the world has no session')
  const { tenant_id: _, ...session } = stored
  const oskar = { person_kind: 'user', person_id: sample.operator.id, person_name: 'oskar' } as const
  await stores
    .of(sample.tenant)
    .sessions.insert({ ...session, ...oskar, uid: '4'.repeat(64), username: 'deploy', method: 'publickey' })
  await using person = await visitAs(sample.observer, browser, service)
  const { page } = person
  await goTo(page, 'Sessions')
  await row(page, 'root').waitFor()
  await field(page, 'Method').selectOption('publickey')
  await row(page, 'root').waitFor({ state: 'detached' })
  await row(page, 'deploy').waitFor()
  expect(query(page)).toBe('?method=publickey')
  await page.getByRole('link', { name: 'Show all' }).click()
  await row(page, 'root').waitFor()
  await field(page, 'Person').fill('oskar')
  await field(page, 'Person').press('Enter')
  await row(page, 'root').waitFor({ state: 'detached' })
  await row(page, 'deploy').waitFor()
  await page.goto(`/sessions?device=${'f'.repeat(64)}`)
  await seen(page, 'No sessions match these filters.')
  // In quotation marks, as the console itself writes a text of digits.
  await page.goto(`/sessions?device=%22${sample.device}%22&person=nobody`)
  await page.getByRole('button', { name: 'Remove the filter Person: nobody' }).waitFor()
  await page.getByRole('button', { name: 'Remove the filter Device: crane-1' }).waitFor()
  expect(person.refusals).toEqual([`404 /api/devices/${'f'.repeat(64)}`])
  expect(person.troubles).toEqual([])
})

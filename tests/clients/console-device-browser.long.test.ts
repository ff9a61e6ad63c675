// The page of a device, in a real browser: its notes, which are never lost to somebody else's; the commands
// that open one of its ports; the containers beside it; and which rules and keys reach it, and why.
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, violations } from '../harness/browser.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { choose, fill, heading, press, seen, told, visitAs, type Account } from './console.ts'

const browser = sharedBrowser()

const address = `/devices/${sample.device}`
async function open(service: Service, who: Account) {
  const person = await visitAs(who, browser, service, { reducedMotion: 'reduce' })
  await person.page.goto(address)
  await heading(person.page, 'crane-1')
  return person
}
const notes = (page: Page) => page.getByRole('region', { name: 'Notes' })
const label = 'Markdown: headings, lists, **bold**, `code`, [links](https://…)'

test('notes are written in Markdown, and nothing in them is taken for HTML', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using operator = await open(service, sample.operator)
  const { page } = operator
  await press(page, 'Write notes')
  const text = [
    '# North pier',
    'Behind the *blue* door,',
    'second rack.',
    '',
    '1. Call **0123**',
    '2. Say `ahoy`',
    '',
    '- [Manual](https://example.com/manual)',
    '- [Trap](javascript:alert(1))',
    '',
    '```',
    'systemctl restart pump',
    '',
    '# no heading',
    '```',
    '<img src=x onerror=alert(1)>',
  ].join('\n')
  await fill(page, { [label]: text })
  expect(await violations(page)).toEqual([])
  await press(page, 'Save the notes')
  await told(page, 'The notes were saved.')
  const panel = notes(page)
  await panel.getByRole('heading', { name: 'North pier' }).waitFor()
  expect(await panel.getByText('Behind the blue door, second rack.').count()).toBe(1)
  expect(await panel.getByRole('list').count()).toBe(2)
  expect(await panel.getByRole('link', { name: 'Manual' }).getAttribute('href')).toBe(
    'https://example.com/manual',
  )
  expect(await panel.getByRole('link').count()).toBe(1)
  expect(await panel.locator('pre').textContent()).toBe('systemctl restart pump\n\n# no heading')
  expect(await panel.getByRole('heading').count()).toBe(2)
  expect(await panel.locator('img').count()).toBe(0)
  await panel.getByText('<img src=x onerror=alert(1)>').waitFor()
  expect(await violations(page)).toEqual([])

  // An observer reads them, and is offered nothing to write.
  await using observer = await open(service, sample.observer)
  await notes(observer.page).getByRole('heading', { name: 'North pier' }).waitFor()
  expect(await notes(observer.page).getByRole('button').count()).toBe(0)
  expect([...operator.troubles, ...observer.troubles]).toEqual([])
})

test('whoever saves what somebody else has changed meanwhile sees both texts, and decides', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using one = await open(service, sample.operator)
  await using two = await open(service, sample.administrator)
  await press(one.page, 'Write notes')
  await press(two.page, 'Write notes')
  await fill(one.page, { [label]: 'by the operator' })
  await fill(two.page, { [label]: 'by the administrator' })
  await press(one.page, 'Save the notes')
  await notes(one.page).getByText('by the operator').waitFor()
  await press(two.page, 'Save the notes')
  await seen(two.page, 'oskar has changed the notes since you read them.')
  await two.page.getByRole('region', { name: 'Current notes' }).getByText('by the operator').waitFor()
  expect(await two.page.getByLabel(label).inputValue()).toBe('by the administrator')
  expect(await violations(two.page)).toEqual([])
  // What is typed is not lost by a link either.
  await two.page.getByRole('link', { name: 'Sessions', exact: true }).first().click()
  await press(two.page, 'Stay here')
  await press(two.page, 'Save mine instead')
  await notes(two.page).getByText('by the administrator').waitFor()
  const stored = await service.rooms.stores.of(sample.tenant).deviceNotes.find(sample.device)
  expect(stored).toMatchObject({ text: 'by the administrator', version: 2, changed_by: 'adam' })
  // The page of the first comes to show it by itself.
  await notes(one.page).getByText('by the administrator').waitFor()
})

test('a port is opened with a line for ssh or for hawser, as far as the policy and the device allow', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('owner') })
  await using person = await open(service, sample.owner)
  const { page } = person
  await fill(page, { 'User on the device': 'pi' })
  await page.getByText('Forward a port to your machine').click()
  const line = (start: string) => page.locator('pre', { hasText: start }).textContent()
  expect(await line('ssh -N -L')).toMatch(
    /^ssh -N -L 8080:localhost:80 (-p \d+ )?pi@harbour\.crane-1@[\w.-]+$/,
  )
  expect(await line('hawser forward')).toBe('hawser forward pi@crane-1 8080:80')
  await page.getByRole('link', { name: 'http://localhost:8080/' }).waitFor()
  await page.getByLabel('What', { exact: true }).selectOption('PostgreSQL')
  await fill(page, { 'Host, as seen from the device': '10.0.0.7' })
  expect(await line('ssh -N -L')).toContain('-L 15432:10.0.0.7:5432 ')
  expect(await line('hawser forward')).toBe('hawser forward pi@crane-1 15432:10.0.0.7:5432')
  await fill(page, { 'Host, as seen from the device': 'fd00::7' })
  expect(await line('ssh -N -L')).toContain('-L 15432:[fd00::7]:5432 ')
  expect(await page.getByRole('link', { name: /localhost/ }).count()).toBe(0)
  expect(await violations(page)).toEqual([])
  await fill(page, { 'Port on the device': '70000' })
  await seen(page, 'Enter a port from 1 to 65535 and a host name or address.')
  expect(await page.locator('pre', { hasText: 'hawser forward' }).count()).toBe(0)
  await api.policies.update({ body: { forwards: 'forbid', forward_exceptions: ['localhost:80'] } })
  await page.reload()
  await page.getByText('Forward a port to your machine').click()
  await seen(page, 'The namespace’s policy only allows forwarding to localhost:80.')
  expect(person.troubles).toEqual([])
})

test('the containers from its address, and which rules and keys reach it and why', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('owner') })
  const { devices } = service.rooms.stores.of(sample.tenant)
  const { id: _, tenant_id: __, ...row } = (await devices.find(sample.device))!
  const container = { ...row, tags: '[]', info_platform: 'connector', status: 'accepted' } as const
  const add = (name: string, digit: string, remote_addr = row.remote_addr) =>
    devices.insert({ ...container, uid: digit.repeat(64), name, mac: name, remote_addr })
  await add('web-box', 'a')
  await add('db-box', 'b')
  await add('far-box', 'c', '192.0.2.99')
  for (const { id } of (await api.firewall.list({ query: {} })).body)
    await api.firewall.remove({ params: { id } })
  const rule = (priority: number, username: string, filter: { hostname: string } | { tags: string[] }) =>
    api.firewall.create({
      body: {
        action: priority === 50 ? 'allow' : 'deny',
        active: true,
        priority,
        source_ip: '.*',
        username,
        filter,
      },
    })
  await rule(40, '^guest$', { tags: [sample.tag] })
  await rule(50, '.*', { hostname: '^crane' })
  await rule(60, '^late$', { hostname: '.*' })
  await rule(70, '^nobody$', { hostname: '^pump' })
  await using person = await open(service, sample.owner)
  const { page } = person
  const boxes = page.getByRole('list', { name: 'Containers from the same address' })
  await boxes.getByRole('link', { name: 'web-box' }).waitFor()
  expect(await boxes.getByRole('link').allTextContents()).toEqual(['db-box', 'web-box'])
  const rules = page.getByRole('list', { name: 'Firewall rules for this device' })
  const of = (user: string) => rules.getByRole('listitem').filter({ hasText: user })
  await of('^guest$').getByText(`because it has the tag ${sample.tag}`).waitFor()
  await of('every user').getByText('because its name matches ^crane').waitFor()
  await of('^late$').getByText('never reached: an earlier rule always matches').waitFor()
  expect(await of('^guest$').getByText('never reached').count()).toBe(0)
  expect(await of('^nobody$').count()).toBe(0)
  expect(await violations(page)).toEqual([])
  await boxes.getByRole('link', { name: 'web-box' }).click()
  await heading(page, 'web-box')
  expect(await boxes.getByRole('link').allTextContents()).toEqual(['db-box'])
  await page.getByText('Forward a port to your machine').click()
  await seen(page, 'Ports are not forwarded into containers.')
  await choose(page, 'More for web-box', 'Delete …')
  await press(page, 'Delete it')
  await heading(page, 'Devices')
  expect(person.troubles).toEqual([])
})

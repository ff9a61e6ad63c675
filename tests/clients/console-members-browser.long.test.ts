// Members in the console: the table of roles, handing a namespace over, leaving it, and one's own sign-ins.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser } from '../harness/browser.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { field, fill, goTo, heading, press, row, seen, signOut, told, visitAs } from './console.ts'

const browser = sharedBrowser()

test('an owner looks at the roles, hands the namespace over, and leaves it', async () => {
  await using service = await startService()
  await buildWorld(service)
  const { stores, namespaces } = service.rooms
  await namespaces.create(sample.owner.id, 'dinghy')
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  await goTo(page, 'Settings and members')

  await page.getByRole('link', { name: 'What each role can do' }).click()
  await heading(page, 'Roles')
  const guide = page.getByRole('link', { name: 'Guide', exact: true })
  expect(await guide.getAttribute('href')).toBe('/docs/guides/team#roles')
  const [opened] = await Promise.all([page.waitForEvent('popup'), guide.click()])
  await heading(opened, 'Team')
  await heading(opened, 'Roles')
  await opened.close()
  const removal = page.getByRole('row').filter({ hasText: 'Delete namespace' })
  expect((await removal.getByRole('cell').allTextContents()).map((text) => text.includes('yes'))).toEqual([
    false,
    false,
    false,
    true,
    false,
  ])
  await field(page, 'Search for an action').fill('firewall')
  await page.getByRole('table', { name: 'Firewall' }).first().waitFor()
  expect(await removal.count()).toBe(0)

  await goTo(page, 'Settings and members')
  expect(await page.getByRole('button', { name: 'Leave the namespace' }).count()).toBe(0)
  await press(page, 'Transfer it')
  const dialog = page.getByRole('dialog')
  await field(page, 'New owner').selectOption(sample.administrator.id)
  await fill(page, { 'Your password': 'not-my-rope' })
  await dialog.getByRole('button', { name: 'Transfer it' }).click()
  await seen(page, 'This is not your password.')
  await fill(page, { 'Your password': sample.owner.password })
  await dialog.getByRole('button', { name: 'Transfer it' }).click()
  await told(page, 'Ownership was transferred; you are now an administrator.')
  await row(page, 'adam').getByText('owner: ').waitFor()
  expect((await stores.namespaces.find(sample.tenant))?.owner).toBe(sample.administrator.id)

  await press(page, 'Leave the namespace')
  const ask = page.getByRole('alertdialog')
  await ask.getByRole('button', { name: 'Leave it' }).click()
  await seen(page, 'Type harbour to confirm.')
  await fill(page, { 'Type harbour to confirm': 'harbour' })
  await ask.getByRole('button', { name: 'Leave it' }).click()
  await told(page, 'You have left harbour. You are now in dinghy.')
  expect(await stores.namespaces.member(sample.tenant, sample.owner.id)).toBe(undefined)
  await signOut(page)
  await heading(page, 'Sign in')
})

test('somebody ends a sign-in that they do not know, all others, and their own', async () => {
  await using service = await startService()
  await buildWorld(service)
  const { stores } = service.rooms
  await using person = await visitAs(sample.observer, browser, service)
  await using other = await visitAs(sample.observer, browser, service)
  const { page } = person
  await page.goto('/profile')
  const list = page.getByRole('list', { name: 'Where you are signed in' })
  await list.getByText('(this one)').waitFor()
  expect(await list.getByRole('listitem').count()).toBe(3)
  await row(page, 'hawser on laptop').getByText('from 192.0.2.9').waitFor()
  await press(page, 'End the sign-in of hawser on laptop from 192.0.2.9')
  await told(page, 'The sign-in of hawser on laptop has ended.')
  await expect.poll(() => list.getByRole('listitem').count()).toBe(2)

  await press(page, 'End all others')
  await page.getByRole('alertdialog').getByRole('button', { name: 'End them' }).click()
  await told(page, 'One sign-in has ended.')
  await heading(other.page, 'Sign in')
  await seen(other.page, 'Your sign-in has expired. Sign in again.')

  await signOut(page)
  await heading(page, 'Sign in')
  expect(await stores.signIns.of(sample.observer.id, '')).toEqual([])
})

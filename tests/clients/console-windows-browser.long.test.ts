// Two windows of one person in a real browser: neither changes what the other one shows, works on or keeps.
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { choose, field, fill, goTo, heading, lookAgain, press, seen, signOut, told } from './console.ts'

const browser = sharedBrowser()

/** Signs in for all windows of the browser, also for those that are opened later. */
async function staySignedIn(page: Page): Promise<void> {
  await page.goto('/login')
  await fill(page, { 'Username or e-mail': sample.owner.username, Password: sample.owner.password })
  await page.getByLabel('Keep me signed in on this device').check()
  await press(page, 'Sign in')
  await heading(page, sample.namespace)
}

test('a window stays in its namespace, with its forms, while another one goes elsewhere', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('owner') })
  const { body: jetty } = await api.namespaces.create({ body: { name: 'jetty' } })
  const there = service.api({
    token: (await api.users.namespaceToken({ params: { tenant: jetty.tenant_id } })).body.token,
  })
  await api.users.namespaceToken({ params: { tenant: sample.tenant } })
  await using person = await visit(browser, service)
  const { page } = person
  await staySignedIn(page)
  const other = await page.context().newPage()
  await other.goto('/')
  await heading(other, 'harbour')

  await goTo(page, 'Public keys')
  await press(page, 'Add a public key')
  await fill(page, { Name: 'for harbour' })
  await choose(other, 'Namespace harbour', 'jetty')
  await heading(other, 'jetty')
  await goTo(other, 'Devices')
  await seen(other, 'No accepted devices yet.')
  // Coming back asks who is signed in.
  const renewed = page.waitForResponse(/\/api\/auth\/user\?/)
  await lookAgain(page)
  await renewed
  expect(await field(page, 'Name').inputValue()).toBe('for harbour')
  await press(page, 'Cancel')
  await press(page, 'Namespace harbour')
  await page.keyboard.press('Escape')
  await goTo(page, 'Devices')
  await seen(page, 'crane-1')
  await page.reload()
  await seen(page, 'crane-1')
  await other.reload()
  await seen(other, 'No accepted devices yet.')

  // Each one changes its own.
  for (const [one, name] of [
    [page, 'in-harbour'],
    [other, 'in-jetty'],
  ] as const) {
    await goTo(one, 'API keys')
    await press(one, 'Create an API key')
    await fill(one, { Name: name })
    await press(one, 'Create the key')
    await press(one, 'I have copied it')
  }
  const names = async (client: typeof api) => (await client.apiKeys.list()).body.map(({ name }) => name)
  expect(await names(api)).toContain('in-harbour')
  expect(await names(there)).toEqual(['in-jetty'])
  expect(person.troubles).toEqual([])
})

test('a window whose namespace is gone goes to that of the other one and says so; signing out is for both', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('owner') })
  await api.namespaces.create({ body: { name: 'jetty' } })
  await using person = await visit(browser, service)
  const { page } = person
  await staySignedIn(page)
  const other = await page.context().newPage()
  await other.goto('/')
  await choose(other, 'Namespace harbour', 'jetty')
  await heading(other, 'jetty')
  await api.namespaces.remove({ params: { tenant: sample.tenant } })
  await lookAgain(page)
  await told(
    page,
    'This window switched to the namespace of your other window, because you are no longer signed in to its own.',
  )
  await heading(page, 'jetty')
  await signOut(other)
  await other.waitForURL('**/login')
  await page.waitForURL('**/login')
  for (const one of [page, other])
    expect(
      await one.evaluate(`[...Object.values(sessionStorage), ...Object.values(localStorage)].join()`),
    ).not.toMatch(/eyJ/)
  expect(person.troubles).toEqual([])
})

test('views of the list that are saved in one window are not lost by saving in another', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visit(browser, service)
  const { page } = person
  await staySignedIn(page)
  const other = await page.context().newPage()
  for (const one of [page, other]) {
    await one.goto('/devices')
    await seen(one, 'crane-1')
  }
  const save = async (one: Page, name: string) => {
    await choose(one, 'Views', 'Save this view …')
    await fill(one, { 'View name': name })
    await press(one, 'Save the view')
    await told(one, `The view ${name} was saved in this browser.`)
  }
  await save(page, 'of the first')
  await save(other, 'of the second')
  await page.reload()
  await press(page, 'Views')
  const items = page.getByRole('menuitem')
  await items.first().waitFor()
  const names = (await items.allTextContents()).map((text) => text.replace(', selected', ''))
  expect(names).toEqual(expect.arrayContaining(['of the first', 'of the second']))
  expect(person.troubles).toEqual([])
})

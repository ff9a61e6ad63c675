// The steps that the tests of the console are told in: what a person reads, fills in and presses, found by
// the names that a screen reader would say. What runs inside of the page is text: the project's own types
// know no browser.
import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { visit, type Visit, type Windows } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import type { Service } from '../harness/service.ts'

export const tokenOf = (page: Page) => page.evaluate<string>(`sessionStorage.getItem('hawser.token')`)
/** Comes back to the tab, which asks the server at once. */
export const lookAgain = (page: Page) =>
  page.evaluate(`document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`)

export const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: typeof name === 'string' }).click()
export const field = (page: Page, label: string) =>
  // The head of a column may have the same name.
  page.getByLabel(label, { exact: true }).and(page.locator(':not(th)')).filter({ visible: true })
export const heading = (page: Page, name: string) =>
  page.getByRole('heading', { name, exact: true }).waitFor()
export const seen = (page: Page, text: string | RegExp) =>
  page.getByText(text).filter({ visible: true }).first().waitFor()
/** The row of a list or of a table whose name this is. */
export const row = (within: Page | Locator, name: string) =>
  within
    .getByRole('listitem')
    .or(within.getByRole('row'))
    .filter({ has: within.locator(`strong:text-is("${name}")`) })
/** Opens a menu by the name of its button and takes a thing out of it. */
export async function choose(page: Page, menu: string | RegExp, item: string | RegExp): Promise<void> {
  await press(page, menu)
  await page.getByRole('menuitem', { name: item, exact: typeof item === 'string' }).click()
}
export const signOut = (page: Page) => choose(page, /: profile and more$/, 'Sign out')
/** By the navigation. */
export const goTo = async (page: Page, name: string) => {
  await page
    .getByRole('navigation', { name: 'Pages of the console' })
    .getByRole('link', { name, exact: true })
    .click()
  await heading(page, name)
}
/** The short news of what was just done. */
export const told = (page: Page, text: string | RegExp) => page.getByRole('status').getByText(text).waitFor()
export const query = (page: Page) => new URL(page.url()).search

/** What stands beside the field, as the field itself refers to it. */
export async function complaint(page: Page, label: string): Promise<string> {
  const input = field(page, label)
  await eventually(async () => expect(await input.getAttribute('aria-invalid')).toBe('true'))
  const ids = (await input.getAttribute('aria-describedby')) ?? ''
  return (await page.locator(`#${ids.split(' ').at(-1)}`).textContent()) ?? ''
}

export async function fill(page: Page, values: Record<string, string>): Promise<void> {
  for (const [label, value] of Object.entries(values)) await field(page, label).fill(value)
}

export interface Account {
  readonly username: string
  readonly password: string
}

export async function signIn(page: Page, who: Account): Promise<void> {
  await fill(page, { 'Username or e-mail': who.username, Password: who.password })
  await press(page, 'Sign in')
}

/** The window of somebody who has signed in and sees the overview of the namespace. */
export async function visitAs(
  who: Account,
  browser: Windows,
  service: Service,
  options?: BrowserContextOptions,
): Promise<Visit> {
  const person = await visit(browser, service, options)
  await person.page.goto('/login')
  await signIn(person.page, who)
  await heading(person.page, sample.namespace)
  return person
}

/** Signs in without the form, so quicker. The sign-in is the page's own, and the page may end it. */
export async function signedInTo(
  page: Page,
  service: Pick<Service, 'api'>,
  { username, password }: Account = sample.owner,
): Promise<void> {
  const { token } = (await service.api().users.login({ body: { username, password } })).body
  await page.goto('/login')
  await page.evaluate(`sessionStorage.setItem('hawser.token', '${token}')`)
}

/** The link in the newest e-mail, on the service's real address. */
export async function linkTo(service: Service, to: string, after = 0): Promise<string> {
  const { text = '' } = await service.newestEmail(to, after)
  return /http:\/\/hawser\.test\/\S+/.exec(text)![0].replace('http://hawser.test', service.url)
}

export async function enrol(
  service: Service,
  tenant_id: string,
  hostname: string,
  mac: string,
  pretty_name = 'Debian GNU/Linux 12 (bookworm)',
) {
  const info = { id: 'debian', pretty_name, version: 'v0.16.4', arch: 'arm64', platform: 'native' }
  const { body } = await service
    .api()
    .devices.auth({ body: { info, hostname, identity: { mac }, public_key: sample.publicKeyPem, tenant_id } })
  return body.uid
}

// The steps that the tests of the console are told in: what a person reads, fills in and presses, found by the names that
// a screen reader would say. What runs inside of the page is text: the project's own types know no browser.
import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Service } from '../harness/service.ts'

export const tokenOf = (page: Page) => page.evaluate<string>(`sessionStorage.getItem('hawser.token')`)
/** Comes back to the tab, which asks the server at once. */
export const lookAgain = (page: Page) => page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)

export const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: typeof name === 'string' }).click()
export const field = (page: Page, label: string) => page.getByLabel(label, { exact: true }).filter({ visible: true })
export const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true }).waitFor()
export const seen = (page: Page, text: string | RegExp) => page.getByText(text).filter({ visible: true }).first().waitFor()
/** The row of a device. */
export const row = (region: Locator, name: string) =>
  region.getByRole('listitem').filter({ has: region.page().locator(`strong:text-is("${name}")`) })
export const query = (page: Page) => new URL(page.url()).search

/** What stands beside the field, as the field itself refers to it. */
export async function complaint(page: Page, label: string): Promise<string> {
  const input = field(page, label)
  expect(await input.getAttribute('aria-invalid')).toBe('true')
  const ids = (await input.getAttribute('aria-describedby')) ?? ''
  return (await page.locator(`#${ids.split(' ').at(-1)}`).textContent()) ?? ''
}

export async function fill(page: Page, values: Record<string, string>): Promise<void> {
  for (const [label, value] of Object.entries(values)) await field(page, label).fill(value)
}

export async function signIn(page: Page, who: { username: string; password: string }): Promise<void> {
  await fill(page, { 'Username or e-mail': who.username, Password: who.password })
  await press(page, 'Sign in')
}

/** The link in the newest letter, on the service's real address. */
export async function linkTo(service: Service, to: string, after = 0): Promise<string> {
  const { text = '' } = await service.letter(to, after)
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

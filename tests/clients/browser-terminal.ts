// A terminal of the console in a real browser, as a test works in it: what it shows, and what is typed.
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { eventually } from '../harness/eventually.ts'
import { fill, press, signedInTo } from './console.ts'
import type { Quarters } from './web.ts'

/** What the terminal in front shows, line by line. */
export const shown = async (page: Page): Promise<string> =>
  (await page.locator('.terminal-panel:not([data-inert]) .xterm-rows > div').allTextContents())
    .join('\n')
    .replaceAll('\u00a0', ' ')
export const showing = async (page: Page, pattern: RegExp): Promise<void> =>
  eventually(async () => expect(await shown(page)).toMatch(pattern), 60_000)
export const type = async (page: Page, line: string): Promise<void> => {
  await page.locator('.terminal-panel:not([data-inert]) .xterm-screen').click()
  await page.keyboard.type(`${line}\n`)
}

export async function logInOn(page: Page, { user }: Quarters): Promise<void> {
  await fill(page, { 'User on the device': user.name, Password: user.password })
  await press(page, 'Open the terminal')
  await page.locator('.terminal-panel:not([data-inert]) .xterm-rows').waitFor()
  await showing(page, /[$#] /)
}

/** Signs in as the owner, opens the terminal of the device and logs in on it. */
export async function enterTerminal(page: Page, quarters: Quarters): Promise<void> {
  await signedInTo(page, quarters.service)
  await page.goto(`/devices/${quarters.agent.uid}/terminal`)
  await logInOn(page, quarters)
}

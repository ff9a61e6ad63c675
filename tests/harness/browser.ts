// A real browser for a test: Debian's Chromium, found on the path, driven by playwright. A `visit` is one
// person's window; whatever goes wrong in it (an error of a script, something the content security policy has
// stopped, a request to anyone but the server) is written down, so that a test can end with "and nothing
// did".
import { accessSync, constants, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { afterAll, beforeAll, vi } from 'vitest'
import type { Service } from './service.ts'

export async function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: programOnPath('chromium'),
    // Its sandbox needs rights that a container lacks; the pages are our own.
    args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
  })
}

function programOnPath(name: string): string {
  const files = (process.env.PATH ?? '').split(path.delimiter).map((folder) => path.join(folder, name))
  const found = files.find((file) => {
    try {
      accessSync(file, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
  if (!found) throw new Error(`${name} is not on the path`)
  return found
}

/** The part of a browser for visits. */
export type Windows = Pick<Browser, 'newContext'>

/**
 * One browser for all tests of a file. A busy machine gets minutes: only a step that never happens should
 * fail.
 */
export function sharedBrowser(): Windows {
  vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })
  let opened: Browser | undefined
  beforeAll(async () => void (opened = await openBrowser()))
  afterAll(() => opened?.close())
  return { newContext: (options) => opened!.newContext(options) }
}

export interface Visit extends AsyncDisposable {
  readonly page: Page
  /** Errors so far, without refusals of the server. */
  readonly troubles: readonly string[]
  /** Refusals as `status path`, in order: the browser logs each as an error. */
  readonly refusals: readonly string[]
}

export async function visit(
  browser: Windows,
  service: Pick<Service, 'url'>,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({ baseURL: service.url, ...options })
  context.setDefaultTimeout(60_000)
  const troubles: string[] = []
  const refusals: string[] = []
  // The browser would log a violation too, but in its own words.
  await context.addInitScript(
    `document.addEventListener('securitypolicyviolation', (event) => console.error('stopped by the policy: ' + event.effectiveDirective))`,
  )
  const page = await context.newPage()
  page.on('pageerror', (error) => troubles.push(`script: ${error.message}`))
  page.on('crash', () => troubles.push('the page crashed'))
  page.on('request', (request) => {
    if (!request.url().startsWith(`${service.url}/`)) troubles.push(`asked elsewhere: ${request.url()}`)
  })
  page.on('response', (response) => {
    if (response.status() >= 400) refusals.push(`${response.status()} ${new URL(response.url()).pathname}`)
  })
  page.on('console', (message) => {
    if (!['error', 'warning'].includes(message.type())) return
    // A refused call is an error to the browser. It is in `refusals`; a lost file stays an error.
    const refused =
      message.text().startsWith('Failed to load resource') &&
      new URL(message.location().url).pathname.startsWith('/api/')
    if (!refused) troubles.push(`${message.type()}: ${message.text()}`)
  })
  return { page, troubles, refusals, [Symbol.asyncDispose]: () => context.close() }
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Violated rules of axe, each with its element. Animations would be caught half-way. */
export async function violations(page: Page): Promise<string[]> {
  // react-aria reads out the name of a busy button for some seconds, even when the button is gone by then.
  await page.locator('[role=log] [role=img]').first().waitFor({ state: 'detached' })
  await page.evaluate(axe)
  return page.evaluate<string[]>(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ': ' + target.join(' ') + ' ' + failureSummary)))`)
}

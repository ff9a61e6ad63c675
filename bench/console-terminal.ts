// For bench/console.ts: whether a terminal of the console leaves the page usable while it prints as fast as
// it can. The length of a task counts by the processor time of its thread, which other work on the machine
// does not make longer.
import type { Browser } from 'playwright-core'
import path from 'node:path'
import { client } from '@hawser/contract/client'
import { buildWorld } from './access-world.ts'
import { below, single, type Row } from './kit.ts'
import { user } from './openssh.ts'

interface TraceEvent {
  readonly name: string
  readonly ph: string
  readonly pid: number
  readonly tid: number
  readonly tdur?: number
  readonly args?: { readonly name?: string }
}

const categories = ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline']

export async function terminalRows(browser: Browser, folder: string, lines: number): Promise<Row[]> {
  await using world = await buildWorld({ folder, before: [], profiles: undefined })
  await world.startAgent('quay')
  const url = `http://127.0.0.1:${world.server.port}`
  const [device] = (await client({ url, token: world.token }).devices.list({ query: { status: 'accepted' } }))
    .body
  if (!device) throw new Error('there is no device')
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  try {
    await context.addInitScript(`sessionStorage.setItem('hawser.token', '${world.token}')`)
    const page = await context.newPage()
    await page.goto(`${url}/devices/${device.uid}/terminal`)
    await page.getByLabel('User on the device').fill(user)
    await page.getByLabel('Log in with').selectOption('key')
    await page.getByLabel('Private key file').setInputFiles(path.join(folder, 'client_key'))
    await page.locator('textarea[name="key"]').filter({ hasText: 'BEGIN' }).waitFor()
    await page.getByRole('button', { name: 'Open the terminal' }).click()
    const rows = page.locator('.xterm-rows')
    await rows.getByText(/[$#]/).first().waitFor()
    await page.locator('.xterm-screen').click()
    await browser.startTracing(page, { categories })
    const before = performance.now()
    await page.keyboard.type(`seq 1 ${lines}; echo over-$((1+1))\n`)
    await rows.getByText('over-2').first().waitFor({ timeout: 300_000 })
    const whole_ms = performance.now() - before
    const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as {
      traceEvents: readonly TraceEvent[]
    }
    // Only threads that run pages count; others, such as the one that draws without a graphics card, delay
    // nobody.
    const placeOf = ({ pid, tid }: TraceEvent): string => `${pid} ${tid}`
    const pages = new Set(traceEvents.filter(({ args }) => args?.name === 'CrRendererMain').map(placeOf))
    const longest_us = traceEvents
      .filter((event) => event.name.includes('RunTask') && pages.has(placeOf(event)))
      .reduce((most, { tdur = 0 }) => Math.max(most, tdur), 0)
    return [
      single(`terminal, seq 1 ${lines}: until the end is shown`, 'ms', whole_ms),
      single(
        `terminal, seq 1 ${lines}: longest task, processor time`,
        'ms',
        longest_us / 1000,
        below(100, longest_us / 1000, 'ms'),
      ),
    ]
  } finally {
    await context.close()
  }
}

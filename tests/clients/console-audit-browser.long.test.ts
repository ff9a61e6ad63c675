// The audit log in the console: filters that are in the address, an entry that opens to what changed, older pages, and
// downloads of what the filters leave.
import { readFileSync } from 'node:fs'
import { sample } from '@hawser/contract/examples'
import { expect, test } from 'vitest'
import { sharedBrowser, violations } from '../harness/browser.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { choose, query, visitAs } from './console.ts'

const browser = sharedBrowser()

test('an administrator finds out who changed what', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const owner = service.api({ token: await world.token('owner') })
  const params = { id: sample.firewallRule }
  const { body: rule } = await owner.firewall.get({ params })
  const { action, priority, source_ip, username, active } = rule
  await owner.firewall.update({
    params,
    body: { action, priority: priority + 41, source_ip, username, active, filter: { hostname: '.*' } },
  })
  for (let n = 0; n < 60; n += 1)
    await owner.devices.setTags({ params: { uid: sample.device }, body: { tags: [`berth-${n}`] } })

  await using person = await visitAs(sample.administrator, browser, service)
  const { page } = person
  await page.goto('/audit')
  const log = page.getByRole('table', { name: 'Audit log' })
  const entries = log.getByRole('button', { name: /^Details of entry/ })
  await expect.poll(() => entries.count()).toBe(50)

  await page.getByLabel('Action').selectOption('firewall.')
  await expect.poll(() => entries.count()).toBe(1)
  expect(query(page)).toBe('?action=firewall.')
  await page.reload()
  await expect.poll(() => entries.count()).toBe(1)
  await entries.press('Enter')
  const changed = log.getByRole('table', { name: 'Changes' }).getByRole('row', { name: /priority/ })
  await expect.poll(() => changed.textContent()).toBe(`priority${priority}${priority + 41}`)
  await log.getByText('firewall.rule.updated').waitFor()
  expect(await violations(page)).toEqual([])

  const downloading = page.waitForEvent('download')
  await choose(page, 'Download', 'As CSV, for spreadsheets')
  const file = await downloading
  expect(file.suggestedFilename()).toBe('audit.csv')
  const csv = readFileSync(await file.path(), 'utf8')
    .trim()
    .split('\r\n')
  expect(csv).toHaveLength(2)
  expect(csv[1]).toContain('"firewall.rule.updated"')

  // What can be verified is the log with its signed head.
  await page.getByRole('link', { name: 'Show all' }).click()
  const verifiable = page.waitForEvent('download')
  await choose(page, 'Download', 'As JSON, which can be verified')
  const lines = readFileSync(await (await verifiable).path(), 'utf8')
    .trim()
    .split('\n')
  expect(JSON.parse(lines.at(-1)!)).toHaveProperty('head.signature')

  await page.getByRole('link', { name: 'Older' }).click()
  await page.getByRole('link', { name: 'To the newest' }).waitFor()
  await log.getByText('A namespace was created').waitFor()
  await page.goBack()
  await expect.poll(() => entries.count()).toBe(50)

  await page.getByLabel('Who', { exact: true }).fill('nobody of that name')
  await page.keyboard.press('Enter')
  await page.getByText('No matching entries.').waitFor()
  expect(person.troubles).toEqual([])
})

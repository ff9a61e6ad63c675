// Audit streams in the console: somebody adds a webhook, sees its secret once, tries it, sees why it fails
// and that it works again, and deletes it.
import { sample } from '@hawser/contract/examples'
import { expect, test } from 'vitest'
import { sharedBrowser } from '../harness/browser.ts'
import { receiverCa, startWebhook } from '../harness/receivers.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { choose, fill, press, row, told, visitAs } from './console.ts'

const browser = sharedBrowser()

test('an administrator sends the audit log to a webhook', async () => {
  let secret = ''
  await using webhook = await startWebhook({ secret: () => secret })
  await using service = await startService({ env: { HAWSER_STREAM_ALLOW: '127.0.0.1' } })
  await buildWorld(service)
  await using person = await visitAs(sample.administrator, browser, service)
  const { page } = person
  await page.goto('/audit')
  const act = (item: string) => choose(page, 'More for archive', item)

  await press(page, 'Add a stream')
  await fill(page, { Name: 'archive', 'URL of the receiver': 'https://10.0.0.1/' })
  await press(page, 'Add the stream')
  await page.getByText('is private or the server', { exact: false }).waitFor()
  await fill(page, { 'URL of the receiver': webhook.url, 'CA certificate (PEM)': receiverCa })
  await press(page, 'Add the stream')
  const shown = page.getByRole('dialog', { name: 'The secret of archive' })
  secret = (await shown.locator('code').textContent()) ?? ''
  expect(secret).toMatch(/^hws_/)
  await press(page, 'I have copied it')

  await act('Send a test')
  await told(page, 'archive accepted a test message.')
  expect(webhook.taken.some((body) => body.test)).toBe(true)
  await expect.poll(() => webhook.seqs().length).toBeGreaterThan(0)

  webhook.answer = (_, response) => response.writeHead(503).end()
  await act('Send a test')
  await told(page, 'The receiver answered with status 503.')
  await act('Disable')
  await row(page, 'archive').getByText('off', { exact: true }).waitFor()
  webhook.answer = undefined
  await act('Enable')
  await row(page, 'archive').getByText('sending', { exact: true }).waitFor()
  // The secret is nowhere any more.
  expect(await page.content()).not.toContain(secret)

  await act('Delete …')
  await press(page, 'Delete it')
  await told(page, 'The stream was deleted.')
  await row(page, 'archive').waitFor({ state: 'detached' })
})

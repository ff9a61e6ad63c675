// Policies in the console: an administrator reads what happened in a session and forbids some of it; a
// destination that is none is refused with the server's sentence. An observer is offered neither.
import { beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser } from '../harness/browser.ts'
import { sharedPlace } from '../harness/place.ts'
import { sessionEvent } from '../storage/databases.ts'
import { fill, heading, press, seen, visitAs } from './console.ts'

const place = sharedPlace()
const browser = sharedBrowser()
beforeAll(async () => {
  await place.rooms.stores.sessionEventBatches.save([
    sessionEvent(sample.session, { subject: '/srv/<b>cargo' }),
    sessionEvent(sample.session, {
      seq: 2,
      kind: 'forward',
      subject: 'db:5432',
      outcome: 'open',
      received: 7,
    }),
    sessionEvent(sample.session, {
      seq: 3,
      kind: 'exec',
      subject: 'scp -t /',
      outcome: 'refused',
      why: 'No.',
    }),
  ])
})

test('an administrator reads what happened, and forbids it', async () => {
  await using person = await visitAs(sample.administrator, browser, place)
  const { page } = person
  await page.goto(`/sessions/${sample.session}`)
  await heading(page, 'Files, commands and forwards')
  const rows = page.getByRole('list', { name: 'Events' }).getByRole('listitem')
  await rows.filter({ hasText: 'wrote /srv/<b>cargo' }).filter({ hasText: '5,000.0 MB' }).waitFor()
  await rows.filter({ hasText: 'connected to db:5432' }).filter({ hasText: 'open' }).waitFor()
  await rows.filter({ hasText: 'refused' }).filter({ hasText: 'No.' }).waitFor()
  await page.goto('/settings')
  await heading(page, 'Policy')
  await page.getByLabel('Forbid uploads').check()
  await fill(page, { Destinations: 'db:5432\n10.0.*:8000-8999', 'Subsystem names': 'netconf' })
  await press(page, 'Save the policy')
  await seen(page, 'The policy was saved.')
  expect((await place.owner.policies.get()).body).toEqual({
    uploads: false,
    downloads: true,
    forwards: 'allow',
    forward_exceptions: ['db:5432', '10.0.*:8000-8999'],
    subsystems: 'allow',
    subsystem_exceptions: ['netconf'],
    services: 'allow',
  })
  await fill(page, { Destinations: 'db:9-1' })
  await press(page, 'Save the policy')
  await seen(page, /destination db:9-1 names no ports/)
})

test('an observer is offered neither', async () => {
  await using person = await visitAs(sample.observer, browser, place)
  const { page } = person
  await page.goto(`/sessions/${sample.session}`)
  await heading(page, 'Details')
  expect(await page.getByRole('heading', { name: 'Files, commands and forwards' }).count()).toBe(0)
  await page.goto('/settings')
  await heading(page, 'Members')
  expect(await page.getByRole('heading', { name: 'Policy' }).count()).toBe(0)
})

// People in the console: whose key a key is, who opened which session, one's own keys on the profile page,
// and the setting that only known people reach devices.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser } from '../harness/browser.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { field, fill, goTo, heading, press, row, seen, told, visitAs } from './console.ts'

const browser = sharedBrowser()

test('an owner says whose key a key is, sees who it was, and demands known people', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('owner') })
  const { stores } = service.rooms
  const stored = await stores.of(sample.tenant).sessions.find(sample.session)
  if (!stored) throw new Error('the world has no session')
  const { tenant_id: _, ...session } = stored
  const oskar = { person_kind: 'user', person_id: sample.operator.id, person_name: 'oskar' } as const
  await stores.of(sample.tenant).sessions.insert({
    ...session,
    ...oskar,
    uid: '4'.repeat(64),
    username: 'deploy',
    via: 'cli',
    method: 'publickey',
    key_fingerprint: 'SHA256:abcdef',
    key_name: 'laptop of oskar',
    client: 'SSH-2.0-OpenSSH_10.0',
  })
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person

  await goTo(page, 'Public keys')
  await press(page, 'Add a public key')
  await fill(page, { 'Public key': atob(sample.publicKeyLine), Name: 'my laptop' })
  await field(page, 'Owner').selectOption('oskar')
  await press(page, 'Add the key')
  await row(page, 'my laptop').getByText('of oskar').waitFor()
  await press(page, 'Edit my laptop')
  await page.getByRole('dialog').getByText('oskar').first().waitFor({ state: 'attached' })
  expect(await field(page, 'Owner').inputValue()).toBe(sample.operator.id)
  await field(page, 'Owner').selectOption(sample.owner.username)
  await press(page, 'Save')
  await row(page, 'my laptop').getByText('of olga').waitFor()
  const { body: keys } = await api.publicKeys.list({ query: { per_page: 100 } })
  expect(keys.find(({ name }) => name === 'my laptop')).toMatchObject({ owner: sample.owner.id })

  await page.goto('/profile')
  await heading(page, 'Your public keys')
  await row(page, 'my laptop').waitFor()
  expect(await page.getByRole('list', { name: 'Your public keys' }).getByRole('listitem').count()).toBe(1)

  await goTo(page, 'Sessions')
  await row(page, 'deploy').getByText('oskar').waitFor()
  await row(page, 'root').getByText('an unknown person').waitFor()
  await page.getByRole('link', { name: 'Session of deploy on crane-1' }).click()
  await seen(page, 'the hawser command')
  await seen(page, 'laptop of oskar')
  await seen(page, 'SSH-2.0-OpenSSH_10.0')
  await page.getByRole('link', { name: 'Sessions of oskar' }).click()
  await page.getByRole('button', { name: 'Remove the filter Person: oskar' }).waitFor()
  await seen(page, 'No past sessions yet.')
  await page.getByRole('link', { name: 'Live', exact: true }).click()
  await row(page, 'deploy').waitFor()
  expect(await row(page, 'root').count()).toBe(0)
  await page.getByRole('link', { name: 'Show all' }).click()
  await row(page, 'root').waitFor()

  await goTo(page, 'Settings and members')
  await page.getByLabel('Require identified users').check()
  await page.getByLabel('Hold terminals of unidentified users').check()
  await page.getByLabel('Make recordings searchable').uncheck()
  await page.getByLabel('Also mask what follows these texts').fill('ticket#\n\n  internal-id= \n')
  await press(page, 'Save the settings')
  await told(page, 'The settings were saved.')
  const { body } = await api.namespaces.get({ params: { tenant: sample.tenant } })
  expect(body.settings).toMatchObject({
    require_person: true,
    hold_unknown: true,
    search: false,
    mask_secrets: true,
    mask_after: ['ticket#', 'internal-id='],
  })
  expect(person.refusals).toEqual([])
})

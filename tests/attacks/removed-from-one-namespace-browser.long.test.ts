// An administrator of one namespace removes somebody who has windows in others, too. The tokens and windows of
// that namespace end, and those of the others stay: nobody signs a person out of a namespace of somebody else.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { choose, fill, heading, lookAgain, press } from '../clients/console.ts'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'

const browser = sharedBrowser()

test('a person who is removed from one namespace stays signed in to the other', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const owner = service.api({ token: await world.token('owner') })
  const { tenant_id: jetty } = (await owner.namespaces.create({ body: { name: 'jetty' } })).body
  await service.rooms.namespaces.join(jetty, sample.operator.id, 'operator')
  const here = service.api({ token: await world.token('operator') })
  const { token } = (await here.users.namespaceToken({ params: { tenant: jetty } })).body
  const there = service.api({ token })
  await here.users.namespaceToken({ params: { tenant: sample.tenant } })

  await using person = await visit(browser, service)
  const { page } = person
  await page.goto('/login')
  await fill(page, { 'Username or e-mail': sample.operator.username, Password: sample.operator.password })
  await page.getByLabel('Keep me signed in on this device').check()
  await press(page, 'Sign in')
  await heading(page, sample.namespace)
  const other = await page.context().newPage()
  await other.goto('/')
  await choose(other, 'Namespace harbour', 'jetty')
  await heading(other, 'jetty')
  // The window that is to lose its namespace has saved its token last.
  const renewed = page.waitForResponse(/\/api\/auth\/user\?/)
  await page.reload()
  await renewed
  await heading(page, sample.namespace)

  await owner.namespaces.removeMember({ params: { tenant: sample.tenant, uid: sample.operator.id } })
  await expect(here.devices.list()).rejects.toMatchObject({ status: 401 })
  expect((await there.devices.list()).body).toEqual([])
  // The page may have noticed by itself, and be on its way already.
  await Promise.all([page.waitForURL('**/login'), lookAgain(page).catch(() => undefined)])
  const asked = other.waitForResponse(/\/api\/auth\/user\?/)
  await other.reload()
  expect((await asked).status()).toBe(200)
  await heading(other, 'jetty')
  expect(new URL(other.url()).pathname).not.toBe('/login')
})

// The console's way in for devices without an agent: the lines that they run, enrolment keys added and
// deleted by an administrator and only seen by an observer, and the login key.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { generatePrivateKey, publicKeyLine } from '@hawser/ssh'
import { sharedBrowser } from '../harness/browser.ts'
import { sharedPlace } from '../harness/place.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { complaint, field, fill, goTo, press, row, seen, told, visitAs, type Account } from './console.ts'

const place = sharedPlace()
const browser = sharedBrowser()

/** The window of somebody who wants to add a device. */
async function visitToAdd(who: Account, at: Service = place) {
  const person = await visitAs(who, browser, at)
  await goTo(person.page, 'Add a device')
  return person
}

test('an administrator adds an enrolment key, reads the lines, and deletes it again; an observer only reads', async () => {
  await using person = await visitToAdd(sample.administrator)
  const { page } = person
  await seen(page, `ssh -N -R 0:localhost:22 -p 2222 -i <enrolment key> ${sample.tenant}.<name>@hawser.test`)
  // The page says for which machines there is no agent, and what works there, as install.sh does.
  await seen(page, /The agent does not run on 32-bit systems .* musl \(Alpine, OpenWrt\)/)
  await seen(
    page,
    `SHELLHUB_SERVER_ADDRESS=http://hawser.test SHELLHUB_TENANT_ID=${sample.tenant} SHELLHUB_PRIVATE_KEY=/etc/shellhub.key ./shellhub-agent`,
  )
  const { body: login } = await place.observer.enrolmentKeys.loginKey()
  await seen(page, login.public_key)

  await press(page, 'Add an enrolment key')
  await fill(page, { Name: 'boilers', 'Public key': 'rope' })
  await press(page, 'Add the key')
  // At the field, without the name that the API has for it.
  await field(page, 'Public key').and(page.locator('[aria-invalid]')).waitFor()
  expect(await complaint(page, 'Public key')).not.toMatch(/public_key/)
  const { type, blob } = generatePrivateKey()
  await fill(page, { 'Public key': publicKeyLine(type, blob) })
  await press(page, 'Add the key')
  await told(page, 'The enrolment key boilers was added.')
  await row(page, 'boilers').waitFor()

  await using other = await visitToAdd(sample.observer)
  await row(other.page, 'boilers').waitFor()
  expect(await other.page.getByRole('button', { name: 'Add an enrolment key' }).count()).toBe(0)
  expect(await other.page.getByRole('button', { name: 'Delete boilers' }).count()).toBe(0)

  await press(page, 'Delete boilers')
  await press(page, 'Delete it')
  await told(page, 'The enrolment key boilers was deleted.')
  await row(page, 'boilers').waitFor({ state: 'detached' })
})

test('a person who opened the console as localhost is told that other machines cannot use the lines', async () => {
  const hint = /which only works on this machine/
  await using known = await visitToAdd(sample.administrator)
  await seen(known.page, `curl -fsSL 'http://hawser.test/install.sh' | sh`)
  expect(await known.page.getByText(hint).count()).toBe(0)

  await using local = await startService({ env: { HAWSER_URL: '' } })
  await buildWorld(local)
  await using person = await visitToAdd(sample.administrator, local)
  await seen(person.page, `curl -fsSL '${local.url}/install.sh' | sh`)
  await seen(person.page, hint)
})

// The console's part of joining: the link of an installer leads through the sign-in to the page with the
// device, which shows what asks, warns, takes it in or refuses it; and an administrator creates, uses and
// revokes an enrolment token and writes accept rules.
import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { sharedPlace } from '../harness/place.ts'
import { fill, goTo, heading, press, row, seen, signIn, told, visitAs } from './console.ts'

const place = sharedPlace()
const browser = sharedBrowser()

async function ask(hostname: string) {
  const { publicKey } = generateKeyPairSync('ed25519')
  const public_key = publicKey.export({ type: 'spki', format: 'pem' })
  const info = {
    id: 'raspbian',
    pretty_name: 'Raspberry Pi OS',
    arch: 'arm64',
    platform: 'native',
    version: 'v1',
  }
  const identity = { mac: 'b8:27:eb:00:00:01' }
  return (await place.nobody.pairings.create({ body: { info, hostname, identity, public_key } })).body
}

test('a person follows the link of the installer, signs in, sees what asks, and takes it in', async () => {
  const { code, url, secret } = await ask('garden')
  await using person = await visit(browser, place)
  const { page } = person
  await page.goto(url.replace('http://hawser.test', ''))
  await heading(page, 'Sign in')
  // The code is in no address from here on.
  expect(page.url()).not.toContain(code)
  await signIn(page, sample.operator)
  await heading(page, 'garden wants to join')
  for (const text of [
    'Raspberry Pi OS (arm64)',
    'b8:27:eb:00:00:01',
    '127.0.0.1',
    /^SHA256:/,
    'Is this your machine?',
  ])
    await seen(page, text)
  await fill(page, { Name: 'crane-1' })
  await press(page, 'Pair it')
  await seen(page, /accepted device of the namespace has this name/)
  await fill(page, { Name: 'garden-pi' })
  await press(page, 'Pair it')
  await seen(page, /is now an accepted device in harbour/)
  expect((await place.nobody.pairings.outcome({ body: { secret } })).body.status).toBe('confirmed')
  await page.getByRole('link', { name: 'garden-pi' }).click()
  await heading(page, 'garden-pi')
})

test('a code is typed in on the page Add a device, however it is spelt, and a strange device is refused', async () => {
  const { code, secret } = await ask('stranger')
  await using person = await visitAs(sample.operator, browser, place)
  const { page } = person
  await goTo(page, 'Add a device')
  await seen(page, "curl -fsSL 'http://hawser.test/install.sh' | sh")
  await fill(page, { Code: 'rope' })
  await press(page, 'Find the device')
  await seen(page, /A code has eight letters and digits/)
  await fill(page, { Code: code.toLowerCase().replace('-', ' ') })
  await press(page, 'Find the device')
  await heading(page, 'stranger wants to join')
  await press(page, 'Reject')
  await told(page, 'The device was rejected.')
  expect((await place.nobody.pairings.outcome({ body: { secret } })).body.status).toBe('refused')
  await fill(page, { Code: code })
  await press(page, 'Find the device')
  await seen(page, /This code is wrong, already used or expired/)
})

test('an administrator creates a token, which is shown once, and revokes it; and writes accept rules', async () => {
  await using person = await visitAs(sample.administrator, browser, place)
  const { page } = person
  await goTo(page, 'Enrolment')
  await press(page, 'Create a token')
  await fill(page, { Name: 'shops', Devices: '2', Tags: 'shop north', Names: 'shop-{nn}' })
  await page.getByLabel('Accept devices automatically').check()
  await press(page, 'Create the token')
  const line = page.getByText(/install\.sh' \| ENROLMENT_TOKEN=hwe_/).first()
  await line.waitFor()
  const token = /hwe_[a-z2-7]{32}/.exec((await line.textContent()) ?? '')?.[0] ?? ''
  await press(page, 'I have copied it')
  const { body } = await place.nobody.devices.auth({
    body: { info: {}, hostname: 'till', public_key: sample.publicKeyPem, enrolment_token: token },
  })
  expect(body).toMatchObject({ name: 'shop-01', status: 'accepted' })
  await row(page, 'shops').getByText('1 of 2 devices').waitFor()
  expect(await page.getByText(token).count()).toBe(0)
  await press(page, 'Revoke shops')
  await press(page, 'Revoke it')
  await told(page, 'The token shops was revoked.')

  await press(page, 'Add a rule')
  await fill(page, { 'Source network': '192.0.2.0/24', 'Host name': '^till-' })
  await press(page, 'Add the rule')
  await told(page, 'The rule was added.')
  const rules = page.getByRole('list', { name: 'Accept rules' }).getByRole('listitem')
  await rules.filter({ hasText: 'Devices from 192.0.2.0/24, named ^till-' }).waitFor()
  await press(page, 'Add a rule')
  await fill(page, { 'MAC address prefix': 'b8:27:eb' })
  await press(page, 'Add the rule')
  await told(page, /everybody who knows the id of the namespace/)
  await rules.filter({ hasText: 'Devices with MAC address b8:27:eb…' }).getByText('any network').waitFor()
})

// The console's page of connectors in a real browser, with a real engine behind it: an engine is added, its
// container appears among the devices and is let in, and what goes wrong is told in a sentence.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, violations } from '../harness/browser.ts'
import { choose, complaint, field, fill, goTo, heading, press, row, seen, told, visitAs } from './console.ts'
import { sharedDock } from './dock.ts'

const dock = sharedDock({ tcp: true })
const browser = sharedBrowser()

test('an administrator adds an engine, lets its container in, and manages the connector', async () => {
  await dock.docker.container('deck')
  await using person = await visitAs(sample.administrator, browser, dock.service, { reducedMotion: 'reduce' })
  const { page } = person
  const where = `127.0.0.1:${dock.docker.port}`
  await goTo(page, 'Connectors')
  await row(page, 'engine.invalid:2375').getByText('off', { exact: true }).waitFor()

  await press(page, 'Add a connector')
  await press(page, 'Add the connector')
  expect(await complaint(page, 'Address of the engine')).toBe('Enter an address.')
  await fill(page, { 'Address of the engine': '127.0.0.1', Port: '70000' })
  await press(page, 'Add the connector')
  expect(await complaint(page, 'Port')).toBe('A port is a number up to 65535.')
  await fill(page, { Port: String(dock.docker.port) })
  await field(page, 'With TLS').check()
  await press(page, 'Add the connector')
  expect(await complaint(page, 'Client private key (PEM)')).toBe('Fill in all three fields.')
  await field(page, 'With TLS').uncheck()
  await press(page, 'Add the connector')
  await told(page, 'The connector was added.')
  await row(page, where).getByText('connected', { exact: true }).waitFor()

  await choose(page, `More for ${where}`, 'Engine details …')
  const says = page.getByRole('dialog', { name: where })
  await says.getByText('1 running, 0 paused, 0 stopped').waitFor()
  await says.getByLabel('Engine details').getByText('"Driver"').waitFor()
  await page.keyboard.press('Escape')
  await says.waitFor({ state: 'detached' })

  // Its container waits, is let in, and says what it is.
  await row(page, where).getByRole('link', { name: 'Waiting containers' }).click()
  await heading(page, 'Devices')
  await page.getByRole('link', { name: 'deck', exact: true }).click()
  await seen(page, 'It waits to be accepted.')
  await page.goBack()
  await row(page, 'deck').waitFor()
  await press(page, 'Accept deck')
  await told(page, 'deck was accepted.')
  await page.getByRole('link', { name: 'Accepted' }).click()
  await page.getByRole('link', { name: 'deck', exact: true }).click()
  await heading(page, 'deck')
  await seen(page, 'local/busybox:1')
  expect((await dock.ssh('deck', 'echo in')).stdout.toString()).toBe('in\n')

  await goTo(page, 'Connectors')
  await choose(page, `More for ${where}`, 'Disable')
  await told(page, `${where} was disabled.`)
  await row(page, where).getByText('off', { exact: true }).waitFor()
  await dock.device('deck', { online: false })
  await choose(page, `More for ${where}`, 'Enable')
  await row(page, where).getByText('connected', { exact: true }).waitFor()
  await dock.device('deck', { online: true })

  // Its container is removed: it is found among the removed ones, and its page says what became of it.
  await dock.docker.docker('rm', '-f', 'deck')
  await dock.device('deck', { status: 'removed' })
  await goTo(page, 'Devices')
  await page.getByRole('link', { name: 'Removed' }).click()
  await field(page, 'Select deck').check()
  await page.getByRole('button', { name: 'Reject 1 device' }).waitFor()
  expect(await page.getByRole('button', { name: /^Accept/ }).count()).toBe(0)
  await page.getByRole('link', { name: 'deck', exact: true }).click()
  await seen(page, 'Its container was removed.')
  expect(await page.getByRole('button', { name: 'Accept', exact: true }).count()).toBe(0)
  await goTo(page, 'Connectors')

  // What is wrong is said: nobody listens there, and the server's own door.
  await choose(page, `More for ${where}`, 'Edit …')
  await fill(page, { Port: '1' })
  await field(page, 'Accept its containers automatically').check()
  await press(page, 'Save')
  await told(page, 'The connector was changed.')
  await row(page, '127.0.0.1:1').getByText('The engine cannot be reached (ECONNREFUSED).').waitFor()
  await row(page, '127.0.0.1:1').getByText('containers are accepted automatically').waitFor()
  await choose(page, 'More for 127.0.0.1:1', 'Engine details …')
  await page.getByRole('dialog').getByRole('alert').getByText('The engine cannot be reached').waitFor()
  await page.keyboard.press('Escape')
  await press(page, 'Add a connector')
  await fill(page, { 'Address of the engine': 'unix:///run/secret.sock' })
  await press(page, 'Add the connector')
  await row(page, 'unix:///run/secret.sock').getByText('the administrator has not allowed it').waitFor()
  await row(page, 'unix:///run/secret.sock').getByText('failed', { exact: true }).waitFor()

  await choose(page, 'More for unix:///run/secret.sock', 'Delete …')
  await press(page, 'Delete it')
  await told(page, 'The connector was deleted.')
  await row(page, 'unix:///run/secret.sock').waitFor({ state: 'detached' })
  expect(person.refusals).toEqual([expect.stringMatching(/^424 \/api\/connector\/[0-9a-f-]{36}\/info$/)])
  expect(person.troubles).toEqual([])
})

test.each([
  ['light', 1280],
  ['dark', 360],
] as const)(
  'connectors that fare well and badly pass axe and fit the screen, %s and %d pixels wide',
  async (colorScheme, width) => {
    const good = await dock.connect({ accept: true })
    const bad = await dock.connect({ port: 1 }, 'failed')
    await using person = await visitAs(sample.administrator, browser, dock.service, {
      viewport: { width, height: 800 },
      colorScheme,
      reducedMotion: 'reduce',
    })
    const { page } = person
    await page.goto('/connectors')
    await row(page, `127.0.0.1:${dock.docker.port}`).first().getByText('connected', { exact: true }).waitFor()
    await row(page, '127.0.0.1:1').first().getByText('failed', { exact: true }).waitFor()
    expect(await violations(page)).toEqual([])
    expect(
      await page.evaluate('document.documentElement.scrollWidth <= document.documentElement.clientWidth'),
    ).toBe(true)
    await press(page, 'Add a connector')
    await field(page, 'With TLS').check()
    expect(await violations(page)).toEqual([])
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await choose(page, `More for 127.0.0.1:${dock.docker.port}`, 'Engine details …')
    await page.getByLabel('Engine details').waitFor()
    expect(await violations(page)).toEqual([])
    for (const { uid } of [good, bad]) await dock.owner.connectors.remove({ params: { uid } })
    expect(person.troubles).toEqual([])
  },
)

// The console in a real browser: the first start and the overview, as people use them. Every test ends with the list of
// what the server refused, which it provoked itself, and with no trouble: no error in a script, nothing stopped by the
// policy, no request to anybody else.
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openBrowser, visit } from '../harness/browser.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { complaint, enrol, field, fill, heading, lookAgain, press, query, row, seen, signIn, tokenOf } from './console.ts'

let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser.close())

// A machine may do other things too: only a step that never happens is to fail.
vi.setConfig({ testTimeout: 180_000 })

test('the first person sets the server up, lets a device in, signs out and comes back', async () => {
  await using service = await startService()
  const code = await service.rooms.setupCode()
  await using person = await visit(browser, service)
  const { page } = person

  // Nobody is signed in, and nobody could be.
  await page.goto('/')
  await page.waitForURL('**/login')
  await seen(page, 'This server has no user yet.')

  await page.goto(`/setup?code=${code}`)
  await heading(page, 'Welcome aboard')
  expect(query(page), 'the code is no longer in the address').toBe('')
  await page.reload()

  await press(page, 'Set up this server')
  expect(await complaint(page, 'Username')).toMatch('3 to 30 letters')
  expect(await page.evaluate('document.activeElement.name')).toBe('name')
  expect(person.refusals).toEqual([])

  // The browser would take this address, the server does not.
  await fill(page, { 'Your name': 'Sam', Username: 'sam', 'E-mail': 'sam@lagoon', Password: 'lighthouse', Namespace: 'lagoon' })
  await press(page, 'Set up this server')
  await seen(page, 'This does not look like an e-mail address.')
  expect(await complaint(page, 'E-mail')).toBe('This does not look like an e-mail address.')
  expect(await field(page, 'Username').getAttribute('aria-invalid')).toBeNull()

  await fill(page, { 'E-mail': 'sam@example.com' })
  await field(page, 'E-mail').press('Enter')
  await page.waitForURL(`${service.url}/`)
  await heading(page, 'lagoon')
  await seen(page, 'Signed in as sam, owner of this namespace')
  await seen(page, 'No device yet.')

  const token = await tokenOf(page)
  const { tenant } = (await service.api({ token }).users.refresh({})).body
  await seen(page, `curl -fsSL 'http://hawser.test/install.sh?tenant_id=${tenant}' | sh`)

  // It appears by itself. What a device says about itself is text, whatever it looks like.
  const uid = await enrol(service, tenant, 'buoy', '00:00:5e:00:53:21', '<img src=x onerror="document.title=1">Linux')
  const waiting = page.getByRole('region', { name: 'Waiting to be let in' })
  await row(waiting, 'buoy').waitFor()
  expect(await waiting.textContent()).toContain('<img src=x onerror="document.title=1">Linux')
  await press(page, 'Accept buoy')
  const devices = page.getByRole('region', { name: 'Devices' })
  await row(devices, 'buoy').waitFor()
  await waiting.waitFor({ state: 'hidden' })
  await page.getByRole('status').getByText('buoy is accepted.').waitFor()
  expect((await service.api({ token }).devices.get({ params: { uid } })).body.status).toBe('accepted')
  await seen(page, 'ssh -p 2222 root@lagoon.buoy@hawser.test')
  expect(await devices.textContent()).toContain('online')

  await press(page, 'Sign out')
  await page.waitForURL('**/login')
  await seen(page, 'You are signed out.')
  expect(await page.evaluate('sessionStorage.length')).toBe(0)
  await page.goto('/')
  await page.waitForURL('**/login')

  await signIn(page, { username: 'sam', password: 'lightship' })
  await page.getByRole('alert').getByText('The username or the password is wrong.').waitFor()
  await signIn(page, { username: 'sam@example.com', password: 'lighthouse' })
  await heading(page, 'lagoon')

  // The link has done its work.
  await page.goto(`/setup?code=${code}`)
  await seen(page, 'This server is set up already.')

  expect(person.refusals).toEqual(['400 /api/setup', '401 /api/login'])
  expect(person.troubles).toEqual([])
})

test('a set-up code that is not the newest is told, and can be typed instead', async () => {
  await using service = await startService()
  const old = await service.rooms.setupCode()
  const code = await service.rooms.setupCode()
  await using person = await visit(browser, service)
  const { page } = person
  await page.goto(`/setup?code=${old}`)
  await fill(page, { 'Your name': 'Sam', Username: 'Sam.Sailor', 'E-mail': 'sam@example.com', Password: 'lighthouse' })
  await press(page, 'Set up this server')
  await page.getByRole('alert').getByText('This set-up code is wrong, or not the newest').waitFor()
  await fill(page, { 'Set-up code': code! })
  await press(page, 'Set up this server')
  await heading(page, 'sam-sailor')
  expect(person.refusals).toEqual(['401 /api/setup'])
  expect(person.troubles).toEqual([])
})

test('an operator rejects a device after a question, and gives a new one its own name', async () => {
  await using service = await startService()
  await buildWorld(service)
  await enrol(service, sample.tenant, 'crane-1', '00:00:5e:00:53:31')
  await using person = await visit(browser, service)
  const { page } = person
  await page.goto('/login')
  await signIn(page, sample.operator)
  const waiting = page.getByRole('region', { name: 'Waiting to be let in' })
  const devices = page.getByRole('region', { name: 'Devices' })

  await waiting.getByRole('button', { name: 'Accept crane-1' }).click()
  await page.getByRole('dialog', { name: 'This name is in use' }).waitFor()
  expect(await field(page, 'Name of the device').inputValue()).toBe('crane-1-2')
  await fill(page, { 'Name of the device': 'crane-2' })
  await press(page, 'Rename and accept')
  await row(devices, 'crane-2').waitFor()

  await devices.getByRole('button', { name: 'Reject crane-1' }).click()
  const question = page.getByRole('dialog', { name: 'Reject crane-1?' })
  await question.getByRole('button', { name: 'Keep it' }).click()
  await question.waitFor({ state: 'hidden' })
  const api = service.api({ token: await tokenOf(page) })
  expect((await api.devices.get({ params: { uid: sample.device } })).body.status).toBe('accepted')
  await devices.getByRole('button', { name: 'Reject crane-1' }).click()
  await question.getByRole('button', { name: 'Reject it' }).click()
  await row(devices, 'crane-1').waitFor({ state: 'detached' })
  await field(page, 'Show').selectOption('rejected')
  await row(devices, 'crane-1').waitFor()
  expect((await api.devices.get({ params: { uid: sample.device } })).body.status).toBe('rejected')
  expect(person.refusals).toEqual([expect.stringMatching(/^409 \/api\/devices\/[0-9a-f]{64}\/accept$/)])
  expect(person.troubles).toEqual([])
})

test('an operator who becomes an observer while looking loses the buttons, and a removed one the namespace', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  await using person = await visit(browser, service)
  const { page } = person
  await page.goto('/login')
  await signIn(page, sample.operator)
  const accept = page.getByRole('button', { name: 'Accept buoy' })
  await accept.waitFor()
  const owner = service.api({ token: await world.token('owner') })
  const params = { tenant: sample.tenant, uid: sample.operator.id }
  await owner.namespaces.updateMember({ params, body: { role: 'observer' } })
  await lookAgain(page)
  await seen(page, 'Signed in as oskar, observer of this namespace')
  await seen(page, 'buoy')
  expect(await accept.count()).toBe(0)
  await owner.namespaces.removeMember({ params })
  await lookAgain(page)
  await page.waitForURL('**/login')
  await seen(page, 'Your sign-in has ended.')
  await signIn(page, sample.operator)
  await heading(page, 'Welcome, oskar')
  expect(person.troubles).toEqual([])
})

test('a member of two namespaces changes between them and turns the pages of a long list', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const stranger = service.api({ token: await world.token('stranger') })
  await stranger.namespaces.addMember({
    params: { tenant: sample.otherTenant },
    body: { identifier: sample.owner.username, role: 'observer' },
  })
  for (let n = 10; n < 33; n += 1) await enrol(service, sample.otherTenant, `pump-${n}`, `00:00:5e:00:53:${n}`)
  await using person = await visit(browser, service)
  const { page } = person
  await page.goto('/login')
  await signIn(page, sample.owner)
  await heading(page, sample.namespace)
  await field(page, 'Namespace').selectOption({ label: 'elsewhere' })
  await heading(page, 'elsewhere')
  await seen(page, 'Signed in as olga, observer of this namespace')
  const waiting = page.getByRole('region', { name: 'Waiting to be let in' })
  await waiting.getByText('1 to 20 of 23').waitFor()
  expect(await waiting.getByRole('listitem').count()).toBe(20)
  await press(page, 'Next')
  await waiting.getByText('21 to 23 of 23').waitFor()
  expect(await waiting.locator('strong').allTextContents()).toEqual(['pump-30', 'pump-31', 'pump-32'])
  expect(await waiting.getByRole('button', { name: /^(Accept|Reject)/ }).count()).toBe(0)
  await page.getByRole('link', { name: 'API docs' }).click()
  await page.getByRole('heading', { level: 1 }).waitFor()
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test.each([
  ['with the clipboard of a secure address', ''],
  ['the old way, where the address is not secure', 'Object.defineProperty(navigator, "clipboard", { value: undefined })'],
])('a line to connect with is copied, %s', async (_, before) => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visit(browser, service)
  const { page } = person
  await page.context().grantPermissions(['clipboard-write'])
  await page.addInitScript(before)
  await page.goto('/login')
  await signIn(page, sample.observer)
  await press(page, 'Copy SSH line crane-1')
  await page.getByRole('status').getByText('Copied. Paste it into a terminal.').waitFor()
  await press(page, 'Sign out')
  await page.waitForURL('**/login')
  await field(page, 'Username or e-mail').press('ControlOrMeta+v')
  expect(await field(page, 'Username or e-mail').inputValue()).toBe('ssh -p 2222 root@harbour.crane-1@hawser.test')
  expect(person.troubles).toEqual([])
})

test('every page fits a screen of 360 pixels, names its fields, and shows itself light and dark', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const token = await world.token('owner')
  const grounds = new Set<string>()
  for (const colorScheme of ['light', 'dark'] as const) {
    await using person = await visit(browser, service, { viewport: { width: 360, height: 740 }, colorScheme })
    const { page } = person
    const pages = [
      '/login',
      '/login#forgot-password',
      '/login#recovery-code',
      '/login#lost-codes',
      '/sign-up',
      '/setup',
      '/confirm-account',
    ]
    for (const address of [...pages, '/validation-account?email=a@b.c&token=x', '/update-password?id=1&token=x', '/reset-mfa?id=1', '/']) {
      if (address === '/') await page.evaluate(`sessionStorage.setItem('hawser.token', '${token}')`)
      await page.goto(address)
      await page.getByRole('heading', { level: 1 }).waitFor()
      const facts = await page.evaluate<{ tooWide: boolean; nameless: number; ground: string }>(`({
        tooWide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
        nameless: [...document.querySelectorAll('input, select')].filter((one) => one.labels.length !== 1).length,
        ground: getComputedStyle(document.body).backgroundColor,
      })`)
      expect({ address, ...facts }).toMatchObject({ address, tooWide: false, nameless: 0 })
      grounds.add(`${colorScheme} ${facts.ground}`)
    }
    expect(person.troubles).toEqual([])
  }
  expect(grounds.size, 'one ground for light and one for dark').toBe(2)
})

test('the policy stops a script that is not a file of ours, and the tests notice', async () => {
  await using service = await startService()
  await using person = await visit(browser, service)
  const { page } = person
  await page.goto('/login')
  await page.evaluate(`{
    const script = document.createElement('script')
    script.textContent = 'document.title = "taken"'
    document.head.append(script)
  }`)
  await page.evaluate(`fetch('http://elsewhere.invalid/').catch(() => undefined)`)
  expect(await page.title()).toBe('Sign in · Hawser')
  expect(person.troubles).toContain('error: stopped by the policy: script-src-elem')
  expect(person.troubles).toContain('error: stopped by the policy: connect-src')
})

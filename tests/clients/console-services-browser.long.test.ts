// Services in the console, in a real browser and in front of a real agent: an operator makes one, opens it,
// makes it public and deletes it; whoever follows its address signs in first, or is refused.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { freePort } from '../../ssh/test/programs.ts'
import { sharedBrowser, violations, visit } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { startProgram, startServices, type ServicesPlace } from '../harness/services.ts'
import {
  choose,
  field,
  fill,
  goTo,
  heading,
  press,
  row,
  seen,
  signIn,
  told,
  type Account,
} from './console.ts'

const browser = sharedBrowser()
let place: ServicesPlace
let program: Awaited<ReturnType<typeof startPumps>>
/** As browsers on this machine have it; services are below the same name. */
let url: string

beforeAll(async () => {
  const port = await freePort()
  url = `http://localhost:${port}`
  const env = { HAWSER_HTTP: `127.0.0.1:${port}`, HAWSER_URL: '', HAWSER_SERVICES_DOMAIN: '' }
  place = await startServices({ env })
  program = await startPumps()
})
afterAll(async () => {
  await program?.[Symbol.asyncDispose]()
  await place?.[Symbol.asyncDispose]()
})

const startPumps = () =>
  startProgram((request, response) => {
    response.setHeader('content-type', 'text/html')
    response.end(`<title>Pumps</title><h1>Pump control</h1><p>at ${request.url}</p>`)
  })

async function visitAs(who: Account) {
  const person = await visit(browser, { url })
  await person.page.goto('/login')
  await signIn(person.page, who)
  await heading(person.page, sample.namespace)
  return person
}

const devicePage = () => `/devices/${place.agent.uid}`
/** On the page of the device, whose sessions have the same names. */
const service = (page: Page, name: string) =>
  page
    .getByRole('list', { name: 'Services of this device' })
    .getByRole('listitem')
    .filter({ has: page.locator(`strong:text-is("${name}")`) })
const mark = (page: Page) => page.locator('.heading').getByText('public', { exact: true })

/** What the press opens, in a tab of its own. */
async function opened(page: Page, act: () => Promise<unknown>): Promise<Page> {
  const [tab] = await Promise.all([page.context().waitForEvent('page'), act()])
  await heading(tab, 'Pump control')
  expect(new URL(tab.url()).host).toMatch(/^[0-9a-f]{32}\.localhost:\d+$/)
  return tab
}

test('an operator adds a service, opens it, makes it public and deletes it', async () => {
  await using person = await visitAs(sample.operator)
  const { page } = person
  await page.goto(devicePage())
  await seen(page, 'No services yet. A service opens a web page of the device in your browser.')
  await press(page, 'Add a service')
  await field(page, 'Protocol').selectOption('https')
  await seen(page, 'Certificate of the device')
  await field(page, 'Protocol').selectOption('http')
  await fill(page, { Name: 'Pumps', 'Port on the device': String(program.port) })
  expect(await violations(page)).toEqual([])
  await press(page, 'Add the service')
  await told(page, 'The service was added.')
  const pumps = service(page, 'Pumps')
  await pumps.filter({ hasText: `http://127.0.0.1:${program.port} · members from operator up` }).waitFor()
  expect(await mark(page).count()).toBe(0)

  // This tab alone is signed in, and the new one need not sign in again; nor does it reach this one.
  const tab = await opened(page, () => pumps.getByRole('link', { name: 'Open Pumps' }).click())
  expect(await tab.evaluate('window.opener')).toBe(null)
  await tab.close()
  await goTo(page, 'Sessions')
  await row(page, 'Pumps')
    .filter({ hasText: /\d requests?/ })
    .waitFor()
  await page.getByRole('link', { name: 'Session of Pumps on gantry' }).click()
  await seen(page, `127.0.0.1:${program.port}`)
  await seen(page, 'sign-in')
  expect(await page.getByRole('heading', { name: 'Recording' }).count()).toBe(0)

  await page.goto(devicePage())
  await choose(page, 'More for Pumps', 'Edit …')
  await field(page, 'Who may open it').selectOption('people')
  await press(page, 'Save')
  await seen(page, 'Choose at least one person who may open it.')
  await field(page, 'Who may open it').selectOption('public')
  await seen(page, /^Anyone on the Internet who has its address can open it/)
  await press(page, 'Save')
  await told(page, 'The service was changed.')
  await pumps.filter({ hasText: 'anyone, without signing in' }).waitFor()
  await mark(page).waitFor()
  expect(await violations(page)).toEqual([])
  await page.goto('/devices')
  await row(page, 'gantry').getByText('public', { exact: true }).waitFor()
  await goTo(page, 'Services')
  await row(page, 'Pumps').getByText('public', { exact: true }).waitFor()
  expect(await violations(page)).toEqual([])

  await using observer = await visitAs(sample.observer)
  await goTo(observer.page, 'Services')
  await seen(observer.page, /operator can add, change and delete services/)
  const link = row(observer.page, 'Pumps').getByRole('link', { name: 'Open Pumps' })
  const address = (await link.getAttribute('href')) ?? ''
  expect(await observer.page.getByRole('button', { name: /^More for/ }).count()).toBe(0)
  await using stranger = await visit(browser, { url: address })
  await stranger.page.goto('/any?page=1')
  await seen(stranger.page, 'at /any?page=1')

  await row(page, 'Pumps').getByRole('link', { name: 'gantry' }).click()
  await choose(page, 'More for Pumps', 'Delete …')
  await press(page, 'Delete it')
  await told(page, 'Pumps was deleted.')
  await pumps.waitFor({ state: 'detached' })
  await mark(page).waitFor({ state: 'detached' })
  expect([...person.troubles, ...observer.troubles, ...stranger.troubles]).toEqual([])
})

test('the address of a service leads by the sign-in to where it was meant to go', async () => {
  const { id, address } = await place.serve(program.port)
  const given = (await place.operator.services.get({ params: { id } })).body
  await using person = await visit(browser, { url })
  const { page } = person
  await page.goto(`${given.url}/deep?page=2`)
  await heading(page, 'Sign in')
  await signIn(page, sample.stranger)
  await heading(page, 'The service could not be opened')
  await seen(page, 'There is no such service, or you may not open it.')
  await seen(page, `You are signed in as ${sample.stranger.username}.`)
  expect(await violations(page)).toEqual([])
  await press(page, 'Sign in as someone else')
  await heading(page, 'Sign in')
  await signIn(page, sample.operator)
  await heading(page, 'Pump control')
  await seen(page, 'at /deep?page=2')

  // In another namespace the same works.
  const elsewhere = (await place.operator.namespaces.create({ body: { name: 'far-away' } })).body.tenant_id
  const { token } = (await place.operator.users.namespaceToken({ params: { tenant: elsewhere } })).body
  await using other = await visit(browser, { url })
  await other.page.goto('/login')
  await other.page.evaluate(`sessionStorage.setItem('hawser.token', '${token}')`)
  await other.page.goto(`${given.url}/deep?page=3`)
  await seen(other.page, 'at /deep?page=3')

  await other.page.goto(`/open/${address}`)
  await heading(other.page, 'This link is not complete')
  expect(await violations(other.page)).toEqual([])
})

test('what listens is opened with one press, and a link lets others in until the policy forbids it', async () => {
  await using person = await visitAs(sample.administrator)
  const { page } = person
  await using another = await startPumps()
  const name = `node ${another.port}`
  await page.goto(devicePage())
  await press(page, 'What listens here?')
  const open = page.getByRole('button', { name: `Open ${another.port}` })
  await open.waitFor()
  expect(await violations(page)).toEqual([])
  await (await opened(page, () => open.click())).close()
  await service(page, name).waitFor()
  await page.getByRole('dialog').waitFor({ state: 'detached' })

  await choose(page, `More for ${name}`, 'Edit …')
  await field(page, 'Who may open it').selectOption('link')
  await press(page, 'Save')
  await told(page, 'The service was changed.')
  await press(page, `Create link to ${name}`)
  await press(page, 'Create a link')
  const link = await page.getByRole('dialog').locator('code').textContent()
  await using guest = await visit(browser, { url })
  await guest.page.goto(link ?? '')
  await heading(guest.page, 'Pump control')
  await press(page, 'I have copied it')

  await page.goto('/settings')
  await page.getByLabel('Forbid services').check()
  await press(page, 'Save the policy')
  await told(page, 'The policy was saved.')
  await goTo(page, 'Services')
  await seen(page, 'The namespace’s policy forbids services, so none can be opened.')
  await eventually(async () => {
    await guest.page.reload()
    expect(await guest.page.getByRole('heading', { name: 'Pump control' }).count()).toBe(0)
  })
  // The only way left; a window that closes on the way there may hang.
  await heading(guest.page, 'Sign in')
  expect(person.troubles).toEqual([])
})

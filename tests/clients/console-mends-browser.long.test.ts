// What the console must not do to people, in a real browser: lose their address, their changes or a key that
// is shown once, propose a rule that locks everybody out, replace a device unsaid, delete a namespace by one
// press, or answer in words of the program.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import {
  complaint,
  enrol,
  field,
  fill,
  goTo,
  heading,
  lookAgain,
  press,
  row,
  seen,
  signIn,
  signOut,
  tokenOf,
  told,
  visitAs,
} from './console.ts'

const browser = sharedBrowser()

const pathOf = (url: string) => url.replace(/^https?:\/\/[^/]+/, '')

test('a new rule is no trap: nothing is chosen, and its effect is told before it is saved', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('owner') })
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  await goTo(page, 'Firewall rules')
  await press(page, 'Add a rule')
  const before = (await api.firewall.list({})).total
  expect(await field(page, 'Action').inputValue()).toBe('')
  await press(page, 'Add the rule')
  expect(await complaint(page, 'Action')).toBe('Choose an action for the rule.')
  expect((await api.firewall.list({})).total).toBe(before)

  await field(page, 'Action').selectOption('deny')
  const effect = page.getByRole('status', { name: 'Effect of the rule' })
  await effect.getByText('This rule locks everybody out of every device.').waitFor()
  await effect.getByText('Applies to 1 device: crane-1').waitFor()
  await effect.getByText('Of the last 1 sessions, it would have refused 1: someone as root.').waitFor()
  await fill(page, { 'Users on the device': '^deploy$' })
  await effect.getByText('None of the last 1 sessions matches it.').waitFor()
  expect(await effect.getByText('This rule locks everybody out').count()).toBe(0)
  await field(page, 'Devices').selectOption('hostname')
  await fill(page, { 'Name pattern': '^pump' })
  await effect.getByText('No accepted device matches it now.').waitFor()
  // A pattern that could stall the browser is not tried there.
  await fill(page, { 'Name pattern': '(a+)+$' })
  await seen(page, 'is not known until it is saved')
  await fill(page, { 'Name pattern': '(' })
  await press(page, 'Add the rule')
  expect(await complaint(page, 'Name pattern')).not.toMatch(/hostname|filter/)
  expect(person.refusals).toEqual(['400 /api/firewall/rules'])
  expect(person.troubles).toEqual([])
})

test('a rule tells of every device that its pattern fits, and how far it looked', async () => {
  await using service = await startService()
  await buildWorld(service)
  const { stores } = service.rooms
  const { id: _, ...crane } = (await stores.of(sample.tenant).devices.find(sample.device))!
  const add = (from: number, to: number) =>
    stores.transaction(async (inside) => {
      for (let n = from; n < to; n += 1)
        await inside.of(sample.tenant).devices.insert({
          ...crane,
          uid: n.toString(16).padStart(64, 'd'),
          name: `pump-${n}`,
          mac: `00:00:5e:01:${n >> 8}:${n & 255}`,
        })
    })
  await add(1000, 1005)
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  const effect = page.getByRole('status', { name: 'Effect of the rule' })
  const write = async () => {
    await goTo(page, 'Firewall rules')
    await press(page, 'Add a rule')
    await field(page, 'Action').selectOption('deny')
  }
  await write()
  await effect.getByText('Applies to 6 devices: crane-1, pump-1000, pump-1001, …').waitFor()
  await field(page, 'Devices').selectOption('hostname')
  await fill(page, { 'Name pattern': '^pump-100[34]$' })
  await effect.getByText('Applies to 2 devices: pump-1003, pump-1004').waitFor()
  expect(await effect.getByText('were checked').count()).toBe(0)

  await add(1005, 2000)
  await page.goto('/')
  await write()
  await effect.getByText('Applies to 1,001 devices: crane-1, pump-1000, pump-1001, …').waitFor()
  await field(page, 'Devices').selectOption('hostname')
  await fill(page, { 'Name pattern': '^pump-100[34]$' })
  await effect.getByText('Applies to 2 devices: pump-1003, pump-1004').waitFor()
  await effect.getByText('Only the first 1,000 devices were checked.').waitFor()
  expect(person.troubles).toEqual([])
})

test('the page that adds a device shows those that asked before it was opened', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visitAs(sample.operator, browser, service)
  const { page } = person
  await goTo(page, 'Add a device')
  const before = page.getByRole('list', { name: 'Earlier requests' })
  await before.getByRole('button', { name: 'Accept buoy' }).waitFor()
  await page.waitForLoadState('networkidle')
  await enrol(service, sample.tenant, 'raft', '00:00:5e:00:53:61')
  const now = page.getByRole('list', { name: 'Connected devices' })
  await now.getByRole('button', { name: 'Accept raft' }).waitFor()
  expect(await before.getByRole('button', { name: 'Accept raft' }).count()).toBe(0)
  await before.getByRole('button', { name: 'Accept buoy' }).click()
  await told(page, 'buoy was accepted.')
  await before.waitFor({ state: 'detached' })
  expect(person.troubles).toEqual([])
})

test('also a device that got another name first is said to replace one', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('owner') })
  // Its name is in use, and it has the MAC address of a third one that is accepted while the page is open.
  await enrol(service, sample.tenant, 'crane-1', '00:00:5e:00:53:71')
  const other = await service.api().devices.auth({
    body: {
      info: {},
      hostname: 'twin',
      identity: { mac: '00:00:5e:00:53:71' },
      public_key: 'another',
      tenant_id: sample.tenant,
    },
  })
  await using person = await visitAs(sample.operator, browser, service)
  const { page } = person
  const waiting = page.getByRole('region', { name: 'Waiting to be accepted' })
  await waiting.getByRole('button', { name: 'Accept crane-1' }).click()
  await page.getByRole('dialog', { name: 'This name is already in use' }).waitFor()
  await api.devices.accept({ params: { uid: other.body.uid } })
  await fill(page, { 'Device name': 'crane-2' })
  await press(page, 'Rename and accept')
  await told(page, 'crane-2 was accepted and replaced twin.')
  expect(person.troubles).toEqual([])
})

test('the address outlasts the sign-in, also one that ends during the work, and no link leads elsewhere', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  await using person = await visit(browser, service)
  const { page } = person
  await page.goto('/devices?find=crane&status=accepted')
  await page.waitForURL('**/login')
  await signIn(page, sample.operator)
  await heading(page, 'Devices')
  expect(pathOf(page.url())).toBe('/devices?find=crane&status=accepted')
  expect(await field(page, 'Search').inputValue()).toBe('crane')

  // It ends while they work: the same page again, after the second sign-in, and no more than once.
  await page.goto('/sessions?past=true')
  await heading(page, 'Sessions')
  const owner = service.api({ token: await world.token('owner') })
  const params = { tenant: sample.tenant, uid: sample.operator.id }
  await owner.namespaces.removeMember({ params })
  await lookAgain(page)
  await page.waitForURL('**/login')
  await seen(page, 'Your sign-in has expired.')
  await owner.namespaces.addMember({
    params: { tenant: sample.tenant },
    body: { identifier: sample.operator.username, role: 'operator' },
  })
  await signIn(page, sample.operator)
  await heading(page, 'Sessions')
  expect(pathOf(page.url())).toBe('/sessions?past=true')

  // Who signs out on purpose begins anew.
  await signOut(page)
  await page.waitForURL('**/login')
  await signIn(page, sample.operator)
  await heading(page, sample.namespace)
  expect(pathOf(page.url())).toBe('/')
  // A link that the pointer crosses on the way out is no address that was asked for.
  await page.evaluate(`sessionStorage.removeItem('hawser.token')`)
  await page.getByRole('link', { name: 'Public keys' }).hover()
  // The router looks at a link when the pointer has been on it for 50 ms, and nothing says that it has.
  await page.evaluate(`new Promise((resolve) => setTimeout(resolve, 500))`)
  expect(await page.evaluate(`sessionStorage.getItem('hawser.place')`)).toBeNull()
  await page.goto('/login')
  await page.evaluate(`sessionStorage.setItem('hawser.place', '//elsewhere.invalid/')`)
  await signIn(page, sample.operator)
  await heading(page, sample.namespace)
  expect(page.url().startsWith(service.url)).toBe(true)
  expect(person.troubles).toEqual([])
})

test('a namespace is deleted by its typed name, and its owner stays signed in to the others', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('owner') })
  const { body: second } = await api.namespaces.create({ body: { name: 'jetty' } })
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  await goTo(page, 'Settings and members')
  await press(page, 'Delete the namespace')
  const question = page.getByRole('alertdialog', { name: 'Delete harbour?' })
  await question.getByRole('button', { name: 'Delete it for good' }).click()
  expect(await complaint(page, 'Type harbour to confirm')).toBe('Type harbour to confirm.')
  await fill(page, { 'Type harbour to confirm': 'harbor' })
  await question.getByRole('button', { name: 'Delete it for good' }).click()
  expect(await complaint(page, 'Type harbour to confirm')).toBe('Type harbour to confirm.')
  expect(person.refusals).toEqual([])
  await fill(page, { 'Type harbour to confirm': 'harbour' })
  await question.getByRole('button', { name: 'Delete it for good' }).click()
  await heading(page, 'jetty')
  await told(page, 'The namespace harbour was deleted. You are now in jetty.')
  expect((await service.api({ token: await tokenOf(page) }).users.refresh()).body.tenant).toBe(
    second.tenant_id,
  )

  // The last one: nothing is left to be in.
  await goTo(page, 'Settings and members')
  await press(page, 'Delete the namespace')
  await fill(page, { 'Type jetty to confirm': 'jetty' })
  await press(page, 'Delete it for good')
  await page.waitForURL('**/login')
  await seen(page, 'The namespace jetty was deleted.')
  await signIn(page, sample.owner)
  await heading(page, 'Welcome, olga')
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('a wrong address is a page with a way back, and a page that is not there is no empty list', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visit(browser, service)
  const { page } = person
  await page.goto('/nope')
  await heading(page, 'Page not found')
  await page.getByRole('link', { name: 'To the overview' }).click()
  await signIn(page, sample.observer)
  await heading(page, sample.namespace)
  await page.goto('/devices?page=99')
  await seen(page, 'crane-1')
  expect(await page.getByText('No accepted devices yet.').count()).toBe(0)
  expect(person.refusals).toEqual(['404 /nope'])
})

test('a key that is shown once stays until it was copied, and unsaved settings are asked about', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('owner') })
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  await goTo(page, 'API keys')
  await press(page, 'Create an API key')
  await fill(page, { Name: 'nightly' })
  await press(page, 'Create the key')
  const shown = page.getByRole('dialog', { name: 'The key nightly' })
  await shown.waitFor()
  await page.keyboard.press('Escape')
  await page.mouse.click(5, 5)
  expect(await shown.locator('pre').textContent()).toMatch(/./)
  await press(page, 'I have copied it')
  await shown.waitFor({ state: 'detached' })

  await goTo(page, 'Settings and members')
  await fill(page, { 'Announcement at connection': 'Mind the gap.' })
  const navigation = page.getByRole('navigation', { name: 'Pages of the console' })
  await navigation.getByRole('link', { name: 'Sessions' }).click()
  const question = page.getByRole('alertdialog', { name: 'Leave without saving?' })
  await question.getByRole('button', { name: 'Stay here' }).click()
  expect(await field(page, 'Announcement at connection').inputValue()).toBe('Mind the gap.')
  await fill(page, { 'Seconds to hold terminals when a client disconnects': '60' })
  await press(page, 'Save the settings')
  await told(page, 'The settings were saved.')
  await goTo(page, 'Sessions')
  const { settings } = (await api.namespaces.get({ params: { tenant: sample.tenant } })).body
  expect(settings).toMatchObject({ connection_announcement: 'Mind the gap.', hold_sessions: 60 })
  await goTo(page, 'Settings and members')
  await fill(page, { 'Announcement at connection': 'Never kept.' })
  await navigation.getByRole('link', { name: 'Sessions' }).click()
  await question.getByRole('button', { name: 'Leave without saving' }).click()
  await heading(page, 'Sessions')
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('a mistake is told at its field in words of the page, and the observer learns who may do the rest', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visitAs(sample.observer, browser, service)
  const { page } = person
  await page.goto('/profile')
  await fill(page, { 'Recovery e-mail': sample.observer.email })
  await press(page, 'Save the profile')
  expect(await complaint(page, 'Recovery e-mail')).toBe('It must be another address than your main one.')
  expect(await field(page, 'E-mail').getAttribute('aria-invalid')).toBeNull()
  await page.goto('/devices')
  await seen(page, 'Your role here is observer: an operator can accept, reject, name and tag devices.')
  await goTo(page, 'Firewall rules')
  await seen(page, 'Your role here is observer: an administrator can add, change and delete rules.')
  await goTo(page, 'Settings and members')
  await row(page, 'vera').getByText('observer: sees devices and sessions, and connects to devices').waitFor()

  // The navigation stays where it is, whatever page is beside it.
  const places = page.getByRole('navigation', { name: 'Pages of the console' })
  const boxes = new Set<string>()
  for (const name of [
    'Devices',
    'Add a device',
    'Sessions',
    'API keys',
    'Settings and members',
    'Overview',
  ]) {
    await places.getByRole('link', { name, exact: true }).click()
    await page.waitForLoadState('networkidle')
    const box = await places.getByRole('link', { name: 'Overview' }).boundingBox()
    boxes.add(`${box?.x} ${box?.y}`)
  }
  expect([...boxes]).toHaveLength(1)
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('a press beside a form that was filled in leaves it open, an empty one is closed by it', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  await goTo(page, 'Public keys')
  const dialog = page.getByRole('dialog', { name: 'Add a public key' })
  await press(page, 'Add a public key')
  await dialog.waitFor()
  await page.mouse.click(5, 5)
  await dialog.waitFor({ state: 'detached' })
  await press(page, 'Add a public key')
  await fill(page, { Name: 'a long name' })
  await page.mouse.click(5, 5)
  expect(await field(page, 'Name').inputValue()).toBe('a long name')
  await field(page, 'Name').press('Escape')
  await dialog.waitFor({ state: 'detached' })
  expect(person.troubles).toEqual([])
})

// The console in a real browser: from the empty server to the daily work, as people do it. Every test ends
// with the list of what the server refused, which it provoked itself, and with no trouble: no error in a
// script, nothing stopped by the policy, no request to anybody else. How every page looks and reads is in
// console-look-browser.long.test.ts.
import { expect, test } from 'vitest'
import { ApiError } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import {
  choose,
  complaint,
  enrol,
  field,
  fill,
  goTo,
  heading,
  lookAgain,
  press,
  query,
  row,
  seen,
  signIn,
  signOut,
  tokenOf,
  told,
  visitAs,
} from './console.ts'

const browser = sharedBrowser()

test('the first person sets the server up, sees a device arrive, lets it in, signs out and comes back', async () => {
  await using service = await startService()
  const code = await service.rooms.setupCode()
  await using person = await visit(browser, service)
  const { page } = person

  // Nobody is signed in, and nobody could be.
  await page.goto('/')
  await page.waitForURL('**/login')
  await seen(page, 'This server has no users yet.')

  await page.goto(`/setup?code=${code}`)
  await heading(page, 'Welcome aboard')
  expect(query(page), 'the code is no longer in the address').toBe('')
  await page.reload()

  await press(page, 'Set up this server')
  expect(await complaint(page, 'Username')).toMatch('3 to 30 letters')
  expect(await page.evaluate('document.activeElement.name')).toBe('name')
  expect(person.refusals).toEqual([])

  // The browser would take this address, the server does not.
  await fill(page, {
    'Your name': 'Sam',
    Username: 'sam',
    'E-mail': 'sam@lagoon',
    Password: 'lighthouse',
    Namespace: 'lagoon',
  })
  await press(page, 'Set up this server')
  await seen(page, 'This does not look like an e-mail address.')
  expect(await complaint(page, 'E-mail')).toBe('This does not look like an e-mail address.')
  expect(await field(page, 'Username').getAttribute('aria-invalid')).toBeNull()

  await fill(page, { 'E-mail': 'sam@example.com' })
  await field(page, 'E-mail').press('Enter')
  await page.waitForURL(`${service.url}/`)
  await heading(page, 'lagoon')
  await seen(page, 'Signed in as sam, owner of this namespace')
  await heading(page, 'Add your first device')

  const token = await tokenOf(page)
  const { tenant } = (await service.api({ token }).users.refresh({})).body
  await goTo(page, 'Add a device')
  await seen(page, `curl -fsSL 'http://hawser.test/install.sh?tenant_id=${tenant}' | sh`)
  await seen(page, 'Waiting for the device to connect')
  // What is there already is no arrival, so the page must have looked once.
  await page.waitForLoadState('networkidle')

  // It appears by itself. What a device says about itself is text, whatever it looks like.
  const uid = await enrol(
    service,
    tenant,
    'buoy',
    '00:00:5e:00:53:21',
    '<img src=x onerror="document.title=1">Linux',
  )
  await seen(page, 'The device has connected.')
  await seen(page, '<img src=x onerror="document.title=1">Linux')
  await press(page, 'Accept buoy')
  await told(page, 'buoy was accepted.')
  expect((await service.api({ token }).devices.get({ params: { uid } })).body.status).toBe('accepted')

  await page.getByRole('link', { name: 'buoy', exact: true }).click()
  await heading(page, 'buoy')
  await seen(page, 'ssh -p 2222 root@lagoon.buoy@hawser.test')
  await fill(page, { 'User on the device': 'pilot' })
  await seen(page, 'ssh -p 2222 pilot@lagoon.buoy@hawser.test')
  await page.getByText('pilot@lagoon.buoy', { exact: true }).waitFor()

  await signOut(page)
  await page.waitForURL('**/login')
  await seen(page, 'You are signed out.')
  expect(await page.evaluate('sessionStorage.length + localStorage.length')).toBe(0)
  await page.goto('/devices')
  await page.waitForURL('**/login')

  await signIn(page, { username: 'sam', password: 'lightship' })
  await page.getByRole('alert').getByText('The username or the password is wrong.').waitFor()
  await signIn(page, { username: 'sam@example.com', password: 'lighthouse' })
  await heading(page, 'Devices')

  // The link has done its work.
  await page.goto(`/setup?code=${code}`)
  await seen(page, 'This server is already set up.')

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
  await fill(page, {
    'Your name': 'Sam',
    Username: 'Sam.Sailor',
    'E-mail': 'sam@example.com',
    Password: 'lighthouse',
  })
  await press(page, 'Set up this server')
  await page.getByRole('alert').getByText('This set-up code is wrong or outdated').waitFor()
  await fill(page, { 'Set-up code': code! })
  await press(page, 'Set up this server')
  await heading(page, 'sam-sailor')
  expect(person.refusals).toEqual(['401 /api/setup'])
  expect(person.troubles).toEqual([])
})

test('an owner names and tags a device, and gives access with a public key, a rule, an API key and a membership', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('owner') })
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person

  await goTo(page, 'Devices')
  await choose(page, 'More for crane-1', 'Rename …')
  await fill(page, { 'Device name': 'no spaces' })
  await press(page, 'Rename')
  expect(await complaint(page, 'Device name')).toMatch('letters, digits, dashes')
  await fill(page, { 'Device name': 'gantry' })
  await press(page, 'Rename')
  await row(page, 'gantry').waitFor()
  await choose(page, 'More for gantry', 'Tags …')
  await fill(page, { Tags: 'north tall' })
  await press(page, 'Save the tags')
  await told(page, 'The tags of gantry were changed.')
  expect((await api.devices.get({ params: { uid: sample.device } })).body).toMatchObject({
    name: 'gantry',
    tags: ['north', 'tall'],
  })
  // By the tag one finds it, and by another nothing.
  await field(page, 'Search').pressSequentially('tag:tall ')
  await page.waitForURL('**/devices?tag=tall')
  await row(page, 'gantry').waitFor()
  await field(page, 'Search').fill('winch')
  await seen(page, 'No devices match your search.')
  await press(page, 'Show all')
  await row(page, 'gantry').waitFor()

  await goTo(page, 'Public keys')
  await press(page, 'Add a public key')
  await fill(page, { 'Public key': 'nonsense', Name: 'olga at home' })
  await press(page, 'Add the key')
  await page.getByRole('dialog').getByLabel('Public key').and(page.locator('[aria-invalid]')).waitFor()
  expect(await complaint(page, 'Public key')).toMatch(/^[A-Z].*\.$/)
  await fill(page, { 'Public key': atob(sample.publicKeyLine), 'Users on the device': '^root$' })
  await field(page, 'Devices').selectOption('tags')
  await fill(page, { Tags: 'tall' })
  await press(page, 'Add the key')
  await row(page, 'olga at home').waitFor()
  const { body: keys } = await api.publicKeys.list({ query: { per_page: 100 } })
  expect(keys.find(({ name }) => name === 'olga at home')).toMatchObject({
    username: '^root$',
    filter: { tags: ['tall'] },
  })

  await goTo(page, 'Firewall rules')
  await press(page, 'Add a rule')
  await field(page, 'Action').selectOption('deny')
  await fill(page, { Priority: '7', 'Source address': '^192\\.0\\.2\\.' })
  await press(page, 'Add the rule')
  await told(page, 'The rule was added.')
  await seen(page, 'from ^192\\.0\\.2\\. · priority 7')
  const { body: rules } = await api.firewall.list({ query: { per_page: 100 } })
  const rule = rules.find(({ priority }) => priority === 7)
  expect(rule).toMatchObject({ action: 'deny', active: true, filter: { hostname: '.*' }, username: '.*' })
  await choose(page, `More for rule ${rule!.id}`, 'Disable')
  await told(page, 'The rule was disabled.')
  expect((await api.firewall.get({ params: { id: rule!.id } })).body.active).toBe(false)

  await goTo(page, 'Audit log')
  await page.getByLabel('Action').selectOption('firewall.')
  await seen(page, 'A firewall rule was created')
  await seen(page, 'A firewall rule changed')

  await goTo(page, 'API keys')
  await press(page, 'Create an API key')
  await fill(page, { Name: sample.apiKeyName })
  await press(page, 'Create the key')
  await page.getByRole('alert').getByText('A key with this name already exists.').waitFor()
  await fill(page, { Name: 'nightly' })
  await press(page, 'Create the key')
  const shown = page.getByRole('dialog', { name: 'The key nightly' })
  const key = (await shown.locator('pre').textContent()) ?? ''
  expect((await service.api({ apiKey: key }).devices.list({})).total).toBe(2)
  await press(page, 'I have copied it')
  await row(page, 'nightly').waitFor()
  await page.getByText(key).waitFor({ state: 'detached' })
  await press(page, 'Delete nightly')
  await press(page, 'Delete it')
  await row(page, 'nightly').waitFor({ state: 'detached' })
  await expect(service.api({ apiKey: key }).devices.list({})).rejects.toThrow(ApiError)

  await goTo(page, 'Settings and members')
  await press(page, 'Add a member')
  await fill(page, { 'Username or e-mail': 'nobody-here' })
  await press(page, 'Add the member')
  await page.getByRole('alert').getByText('No confirmed account with this name exists').waitFor()
  await fill(page, { 'Username or e-mail': sample.stranger.username })
  await field(page, 'Role').selectOption('operator')
  await press(page, 'Add the member')
  await row(page, 'stan').waitFor()
  await field(page, 'Role of stan').selectOption('administrator')
  await told(page, 'stan is now administrator.')
  const { body: namespace } = await api.namespaces.get({ params: { tenant: sample.tenant } })
  expect(namespace.members.find(({ username }) => username === 'stan')?.role).toBe('administrator')
  expect(await page.getByLabel('Role of olga').count(), 'nobody manages an owner').toBe(0)

  await goTo(page, 'Sessions')
  await press(page, 'Close the session of root on gantry')
  await press(page, 'Close it')
  await told(page, 'The session was closed.')
  expect((await api.sessions.get({ params: { uid: sample.session } })).body.active).toBe(false)

  expect(person.refusals).toEqual([
    '400 /api/sshkeys/public-keys',
    '409 /api/namespaces/api-key',
    `404 /api/namespaces/${sample.tenant}/members`,
  ])
  expect(person.troubles).toEqual([])
})

test('a person switches the second factor on, signs in with it, and off again with a recovery code', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  await using person = await visitAs(sample.observer, browser, service)
  const { page } = person
  await choose(page, /: profile and more$/, 'Profile and second factor')
  await heading(page, 'Profile')
  await seen(page, 'It requires a recovery e-mail')
  expect(await page.getByRole('button', { name: 'Turn it on' }).count()).toBe(0)
  await fill(page, { 'Recovery e-mail': 'vera@example.org', 'Your name': 'Vera' })
  await press(page, 'Save the profile')
  await told(page, 'Your profile was saved.')

  await press(page, 'Turn it on')
  await page.getByRole('img', { name: 'QR code with the secret' }).waitFor()
  const secret = (await page.locator('pre').first().textContent()) ?? ''
  const codes = await page
    .getByRole('list', { name: 'Recovery codes' })
    .getByRole('listitem')
    .allTextContents()
  expect(codes).toHaveLength(6)
  const right = world.totp(secret)
  await fill(page, { Code: right === '000000' ? '000001' : '000000' })
  await press(page, 'Turn it on')
  await page.getByRole('alert').getByText('The code is wrong, used or expired.').waitFor()
  await fill(page, { Code: world.totp(secret) })
  await press(page, 'Turn it on')
  await told(page, 'The second factor was turned on.')

  await signOut(page)
  await signIn(page, sample.observer)
  await heading(page, 'Second factor')
  service.clock.forward(60_000)
  await fill(page, { Code: world.totp(secret) })
  await press(page, 'Continue')
  await heading(page, sample.namespace)

  await page.goto('/profile')
  await fill(page, { 'Code or recovery code': codes[0]! })
  await press(page, 'Turn it off')
  await told(page, 'The second factor was turned off.')
  expect((await service.api({ token: await tokenOf(page) }).users.refresh({})).body).toMatchObject({
    mfa: false,
    name: 'Vera',
  })

  await fill(page, { 'Current password': 'wrong-one', 'New password': 'a-new-rope' })
  await press(page, 'Change the password')
  await seen(page, 'This is not your current password.')
  await fill(page, { 'Current password': sample.observer.password })
  await press(page, 'Change the password')
  await told(
    page,
    'Your password was changed. All other sign-ins have ended; this one stays valid for at most 72 hours.',
  )
  await page.goto('/')
  await heading(page, sample.namespace)
  await signOut(page)
  await signIn(page, { username: 'vera', password: 'a-new-rope' })
  await heading(page, sample.namespace)
  expect(person.refusals).toEqual(['401 /api/user/mfa/enable', '401 /api/login', '400 /api/users'])
  expect(person.troubles).toEqual([])
})

test('an operator rejects a device after a question, and gives a new one its own name', async () => {
  await using service = await startService()
  await buildWorld(service)
  await enrol(service, sample.tenant, 'crane-1', '00:00:5e:00:53:31')
  await using person = await visitAs(sample.operator, browser, service)
  const { page } = person
  const waiting = page.getByRole('region', { name: 'Waiting to be accepted' })
  await waiting.getByRole('button', { name: 'Accept crane-1' }).click()
  await page.getByRole('dialog', { name: 'This name is already in use' }).waitFor()
  expect(await field(page, 'Device name').inputValue()).toBe('crane-1-2')
  await fill(page, { 'Device name': 'crane-2' })
  await press(page, 'Rename and accept')
  await goTo(page, 'Devices')
  await row(page, 'crane-2').waitFor()

  await choose(page, 'More for crane-1', 'Reject …')
  const question = page.getByRole('alertdialog', { name: 'Reject crane-1?' })
  await question.getByRole('button', { name: 'Keep it' }).click()
  await question.waitFor({ state: 'hidden' })
  const api = service.api({ token: await tokenOf(page) })
  expect((await api.devices.get({ params: { uid: sample.device } })).body.status).toBe('accepted')
  await choose(page, 'More for crane-1', 'Reject …')
  await question.getByRole('button', { name: 'Reject it' }).click()
  await row(page, 'crane-1').waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'Rejected' }).click()
  await row(page, 'crane-1').waitFor()
  expect((await api.devices.get({ params: { uid: sample.device } })).body.status).toBe('rejected')
  // To delete is for administrators.
  await press(page, 'More for crane-1')
  expect(await page.getByRole('menuitem').allTextContents()).toEqual(['Rename …', 'Tags …'])
  expect(person.refusals).toEqual([expect.stringMatching(/^409 \/api\/devices\/[0-9a-f]{64}\/accept$/)])
  expect(person.troubles).toEqual([])
})

test('whoever accepts a device is told before and afterwards which one it replaces', async () => {
  await using service = await startService()
  await buildWorld(service)
  await enrol(service, sample.tenant, 'anew', '00:00:5e:00:53:aa')
  for (const hostname of ['agent-1', 'agent-2'])
    await service.api().devices.auth({
      body: {
        info: {},
        hostname,
        identity: { mac: '00:00:5e:00:53:41' },
        public_key: hostname,
        tenant_id: sample.tenant,
      },
    })
  await using person = await visitAs(sample.operator, browser, service)
  const { page } = person
  await page.goto('/devices?status=pending')
  await row(page, 'anew').getByText('would replace crane-1').waitFor()
  await field(page, 'Select all').check()
  await press(page, 'Accept 4 devices')
  await told(page, /^3 of 4 could not be accepted: /)
  for (const name of ['anew', 'agent-1', 'agent-2'])
    expect(await field(page, `Select ${name}`).isChecked()).toBe(true)

  await press(page, 'Accept anew')
  const question = page.getByRole('alertdialog', { name: 'Replace crane-1?' })
  await question.getByRole('button', { name: 'Let it wait' }).click()
  await question.waitFor({ state: 'hidden' })
  const api = service.api({ token: await tokenOf(page) })
  expect((await api.devices.get({ params: { uid: sample.device } })).body.status).toBe('accepted')
  await press(page, 'Accept anew')
  await question.getByRole('button', { name: 'Replace crane-1' }).click()
  await told(page, 'anew was accepted and replaced crane-1.')
  await expect(api.devices.get({ params: { uid: sample.device } })).rejects.toMatchObject({ status: 404 })
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('many devices are let in at once, and the one that is refused stays chosen with the reason', async () => {
  await using service = await startService()
  await buildWorld(service)
  for (let n = 10; n < 32; n += 1)
    await enrol(service, sample.tenant, n === 10 ? 'crane-1' : `pump-${n}`, `00:00:5e:00:53:${n}`)
  await using person = await visitAs(sample.operator, browser, service)
  const { page } = person
  await page.goto('/devices?status=pending')
  const table = page.getByRole('table', { name: 'Devices' })
  await table.waitFor()
  expect(await table.getAttribute('aria-rowcount'), 'with the head').toBe('24')
  expect((await table.locator('strong').allTextContents()).slice(0, 3)).toEqual([
    'buoy',
    'crane-1',
    'pump-11',
  ])
  await field(page, 'Select all').check()
  await field(page, 'Select buoy').uncheck()
  await press(page, 'Accept 22 devices')
  await told(page, /^1 of 22 could not be accepted: crane-1: /)
  expect(await field(page, 'Select crane-1').isChecked()).toBe(true)
  expect(await field(page, 'Select buoy').isChecked()).toBe(false)
  const { total } = await service
    .api({ token: await tokenOf(page) })
    .devices.list({ query: { status: 'accepted' } })
  expect(total).toBe(22)
  expect(person.refusals).toEqual([expect.stringMatching(/^409 .*\/accept$/)])
  expect(person.troubles).toEqual([])
})

test('an observer sees everything and finds nothing to change it with', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visitAs(sample.observer, browser, service)
  const { page } = person
  for (const [address, sign] of [
    ['/', 'buoy'],
    ['/devices', 'crane-1'],
    [`/devices/${sample.device}`, 'root@harbour.crane-1'],
    ['/sessions', 'root'],
    ['/public-keys', 'laptop'],
    ['/firewall', 'every user on all devices'],
    ['/api-keys', sample.apiKeyName],
    ['/connectors', 'engine.invalid:2375'],
    ['/settings', 'olga'],
    ['/audit', 'Only administrators of the namespace can see the audit log.'],
  ] as const) {
    await page.goto(address)
    await page.getByRole('main').getByText(sign).first().waitFor()
    const buttons = await page.getByRole('main').getByRole('button').allTextContents()
    const allowed = [
      'Copy',
      'Copy SSH command',
      // Of a device that is offline.
      ' Terminal',
      // The menu of a row.
      ...(address === '/connectors' ? [''] : []),
      ...(address === '/settings' ? ['Leave the namespace'] : []),
      // To look at them in another way.
      ...(address === '/devices' ? ['Name', 'State', 'System', 'Agent', 'Address', ' Views ', ''] : []),
    ]
    expect({ address, others: buttons.filter((text) => !allowed.includes(text)) }).toEqual({
      address,
      others: [],
    })
  }
  await goTo(page, 'Devices')
  await press(page, 'More for crane-1')
  expect(await page.getByRole('menuitem').allTextContents()).toEqual(['Copy SSH command'])
  expect(await page.getByRole('checkbox').count()).toBe(0)
  await page.keyboard.press('Escape')
  await goTo(page, 'Connectors')
  await press(page, 'More for engine.invalid:2375')
  expect(await page.getByRole('menuitem').allTextContents()).toEqual(['Engine details …'])
  expect(await page.getByRole('link', { name: 'Billing' }).count()).toBe(0)
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('an operator who becomes an observer while looking loses the buttons, and a removed one the namespace', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  await using person = await visitAs(sample.operator, browser, service)
  const { page } = person
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
  await seen(page, 'Your sign-in has expired.')
  await signIn(page, sample.operator)
  await heading(page, 'Welcome, oskar')
  expect(person.troubles).toEqual([])
})

test('a member of two namespaces changes between them, and goes to a device by the keyboard alone', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const stranger = service.api({ token: await world.token('stranger') })
  await stranger.namespaces.addMember({
    params: { tenant: sample.otherTenant },
    body: { identifier: sample.owner.username, role: 'observer' },
  })
  await enrol(service, sample.otherTenant, 'pump-77', '00:00:5e:00:53:77')
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  await choose(page, 'Namespace harbour', 'elsewhere')
  await heading(page, 'elsewhere')
  await seen(page, 'Signed in as olga, observer of this namespace')
  await page.keyboard.press('Control+k')
  await page.getByRole('searchbox', { name: 'Page, item or action' }).waitFor()
  await page.keyboard.type('ump-7')
  await page.getByRole('menuitem', { name: /^pump-77/ }).waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await heading(page, 'pump-77')
  await page.getByRole('link', { name: 'API docs' }).click()
  await page.getByRole('heading', { level: 1 }).waitFor()
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test.each([
  ['with the clipboard of a secure address', ''],
  [
    'the old way, where the address is not secure',
    'Object.defineProperty(navigator, "clipboard", { value: undefined })',
  ],
])('a line to connect with is copied, %s', async (_, before) => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visit(browser, service)
  const { page } = person
  await page.context().grantPermissions(['clipboard-write'])
  await page.addInitScript(before)
  await page.goto('/login')
  await signIn(page, sample.observer)
  await press(page, 'Copy SSH command for crane-1')
  await told(page, 'Copied.')
  await signOut(page)
  await page.waitForURL('**/login')
  await field(page, 'Username or e-mail').press('ControlOrMeta+v')
  expect(await field(page, 'Username or e-mail').inputValue()).toBe(
    'ssh -p 2222 root@harbour.crane-1@hawser.test',
  )
  expect(person.troubles).toEqual([])
})

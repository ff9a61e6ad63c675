// The console in a real browser: the ways in, with everything that can go wrong, and the links of e-mails.
// Every test ends with the list of what the server refused, which it provoked itself, and with no trouble: no
// error in a script, nothing stopped by the policy, no request to anybody else.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import {
  complaint,
  field,
  fill,
  heading,
  linkTo,
  lookAgain,
  press,
  query,
  seen,
  signIn,
  signOut,
  told,
  visitAs,
} from './console.ts'

const browser = sharedBrowser()

/** No mail server answers there, so e-mails are kept in the outbox, as when one is away. */
const mailing = { HAWSER_SMTP: 'smtp://127.0.0.1:1' }

test('after three wrong passwords the page says how long the lock lasts', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visit(browser, service)
  const { page } = person
  await page.goto('/login')
  const [wrong, locked] = ['The username or the password is wrong.', 'Too many wrong attempts']
  for (const sentence of [wrong, wrong, locked, locked]) {
    await signIn(page, { username: 'vera', password: 'nonsense' })
    await page.locator('form[aria-busy=false]').getByRole('alert').getByText(sentence).waitFor()
  }
  await page
    .getByRole('timer')
    .filter({ hasText: /^You can try again in (1:00|0:\d\d)$/ })
    .waitFor()
  service.clock.forward(61_000)
  await signIn(page, sample.observer)
  await heading(page, sample.namespace)
  expect(person.refusals).toEqual(['401 /api/login', '401 /api/login', '429 /api/login', '429 /api/login'])
  expect(person.troubles).toEqual([])
})

test('a second press while the first is under way sends nothing', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visit(browser, service)
  const { page } = person
  let calls = 0
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  await page.route('**/api/login', async (route) => {
    calls += 1
    await held
    await route.continue()
  })
  await page.goto('/login')
  await fill(page, { 'Username or e-mail': 'vera', Password: sample.observer.password })
  const button = page.getByRole('button', { name: 'Sign in' })
  await button.dblclick({ force: true })
  await field(page, 'Password').press('Enter')
  expect(await page.locator('form[aria-busy=true]').count()).toBe(1)
  release()
  await heading(page, sample.namespace)
  expect(calls).toBe(1)
  expect(person.troubles).toEqual([])
})

test('a person registers, follows the link of the e-mail and creates a namespace', async () => {
  await using service = await startService({ env: mailing })
  await buildWorld(service)
  await using person = await visit(browser, service)
  const { page } = person
  await page.goto('/login')
  await page.getByRole('link', { name: 'Create an account' }).click()
  await fill(page, {
    'Your name': 'Nora',
    Username: 'vera',
    'E-mail': 'nora@example.com',
    Password: 'lighthouse',
  })
  await press(page, 'Create the account')
  await seen(page, 'This username is taken.')
  await fill(page, { Username: 'nora' })
  await press(page, 'Create the account')
  await page.waitForURL('**/confirm-account')
  await heading(page, 'Check your inbox')

  // Not yet.
  await page.getByRole('link', { name: 'Sign in' }).click()
  await signIn(page, { username: 'nora', password: 'lighthouse' })
  await page.getByRole('alert').getByText('The account is not confirmed yet').waitFor()
  await page.getByRole('link', { name: 'Send the confirmation e-mail again' }).click()
  expect(await field(page, 'Username or e-mail').inputValue()).toBe('nora')
  const first = await linkTo(service, 'nora@example.com')
  await press(page, 'Send it again')
  await page.getByRole('status').getByText('a new e-mail is on its way').waitFor()

  // The newer e-mail has ended the older one.
  await page.goto(first)
  await press(page, 'Confirm the account')
  await heading(page, 'This link does not work')
  const link = await linkTo(service, 'nora@example.com', 1)
  await page.goto(link)
  expect(query(page), 'the token is no longer in the address').toBe('')
  await seen(page, 'nora@example.com')
  await press(page, 'Confirm the account')
  await heading(page, 'Your account is confirmed')
  await page.getByRole('link', { name: 'Sign in' }).click()
  await signIn(page, { username: 'nora', password: 'lighthouse' })

  await heading(page, 'Welcome, Nora')
  await fill(page, { Name: sample.namespace })
  await press(page, 'Create the namespace')
  await page.getByRole('alert').getByText('A namespace with this name exists already.').waitFor()
  await fill(page, { Name: 'boathouse' })
  await press(page, 'Create the namespace')
  await heading(page, 'boathouse')
  await heading(page, 'Add your first device')
  expect(person.refusals).toEqual([
    '409 /api/register',
    '403 /api/login',
    '401 /api/user/validation_account',
    '409 /api/namespaces',
  ])
  expect(person.troubles).toEqual([])
})

test('the link of an address that two accounts claim asks for the password of its own account', async () => {
  await using service = await startService({ env: mailing })
  await buildWorld(service)
  const claim = { name: 'Victoria', email: 'victoria@corp.example', password: 'lighthouse' }
  const nobody = service.api()
  await nobody.users.register({ body: { ...claim, username: 'squatter', password: 'not-your-rope' } })
  const squatted = await linkTo(service, claim.email)
  await nobody.users.register({ body: { ...claim, username: 'victoria' } })
  const own = await linkTo(service, claim.email, 1)
  await using person = await visit(browser, service)
  const { page } = person
  for (const link of [squatted, own]) {
    await page.goto(link)
    await press(page, 'Confirm the account')
    await seen(page, 'Several accounts claim this address')
    await fill(page, { Password: claim.password })
    await press(page, 'Confirm the account')
    if (link === squatted)
      await page.getByRole('alert').getByText('This is not the password of the account').waitFor()
  }
  await heading(page, 'Your account is confirmed')
  await page.getByRole('link', { name: 'Sign in' }).click()
  await signIn(page, { username: claim.email, password: claim.password })
  await heading(page, 'Welcome, Victoria')
  expect(person.refusals).toEqual([
    '401 /api/user/validation_account',
    '401 /api/user/confirm_email',
    '401 /api/user/validation_account',
  ])
  expect(person.troubles).toEqual([])
})

test('where the server sends no e-mails, the pages say so, and who has them', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visit(browser, service)
  const { page } = person
  const stored =
    'This server does not send e-mail. It stores each message as a file in the outbox folder of its data folder'
  await page.goto('/sign-up')
  await fill(page, {
    'Your name': 'Nora',
    Username: 'nora',
    'E-mail': 'nora@example.com',
    Password: 'lighthouse',
  })
  await press(page, 'Create the account')
  await heading(page, 'Your account is waiting for confirmation')
  await seen(page, stored)
  const first = await linkTo(service, 'nora@example.com')
  await press(page, 'Store a new one')
  await page
    .getByRole('status')
    .getByText('If an account is waiting for confirmation, a new e-mail was stored.')
    .waitFor()
  expect(await linkTo(service, 'nora@example.com', 1)).not.toBe(first)

  await page.goto('/login#forgot-password')
  await seen(page, stored)
  await fill(page, { 'Username or e-mail': 'vera' })
  await press(page, 'Store the e-mail')
  await page
    .getByRole('status')
    .getByText('If this account exists, an e-mail with a link was stored.')
    .waitFor()
  await linkTo(service, sample.observer.email)

  await page.goto('/login#lost-codes')
  await seen(page, stored)
  await fill(page, { 'Username or e-mail': sample.careful.username })
  await press(page, 'Store the e-mails')
  await page.getByRole('status').getByText('two e-mails were stored').waitFor()
  await page.goto(await linkTo(service, sample.careful.email))
  await seen(page, 'You need the codes from two e-mails')

  await page.goto('/login')
  await signIn(page, sample.observer)
  await heading(page, sample.namespace)
  await page.goto('/profile')
  await fill(page, { 'E-mail': 'vera@corp.example' })
  await press(page, 'Save the profile')
  await told(page, 'The new address takes effect once you follow the link in an e-mail')
  expect(await page.getByText(/inbox|on (its|their) way|spam/).count()).toBe(0)
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('a forgotten password is replaced with the link of an e-mail', async () => {
  await using service = await startService({ env: mailing })
  await buildWorld(service)
  await using person = await visit(browser, service)
  const { page } = person
  await page.goto('/login')
  await fill(page, { 'Username or e-mail': 'vera' })
  await page.getByRole('link', { name: 'I forgot my password' }).click()
  await heading(page, 'Forgotten password')
  expect(await field(page, 'Username or e-mail').inputValue()).toBe('vera')
  await press(page, 'Send the e-mail')
  await page
    .getByRole('status')
    .getByText('If this account exists, an e-mail with a link is on its way')
    .waitFor()

  const link = await linkTo(service, sample.observer.email)
  await page.goto(link)
  await heading(page, 'Choose a new password')
  expect(query(page), 'the token is no longer in the address').toBe('')
  await fill(page, { 'New password': 'rope' })
  await press(page, 'Save the password')
  expect(await complaint(page, 'New password')).toBe('A password has 5 to 30 characters.')
  await fill(page, { 'New password': 'a-new-rope' })
  await press(page, 'Show the password')
  expect(await field(page, 'New password').getAttribute('type')).toBe('text')
  await press(page, 'Save the password')
  await heading(page, 'Your password was changed')

  await page.goto(link)
  await fill(page, { 'New password': 'another-rope' })
  await press(page, 'Save the password')
  await heading(page, 'This link does not work')

  await page.goto('/login')
  await signIn(page, sample.observer)
  await page.getByRole('alert').getByText('The username or the password is wrong.').waitFor()
  await signIn(page, { username: 'vera', password: 'a-new-rope' })
  await heading(page, sample.namespace)
  expect(person.refusals).toEqual([`401 /api/user/${sample.observer.id}/update_password`, '401 /api/login'])
  expect(person.troubles).toEqual([])
})

test('the second factor: a code, a recovery code, and the way out by two e-mails', async () => {
  await using service = await startService({ env: mailing })
  const world = await buildWorld(service)
  await using person = await visit(browser, service)
  const { page } = person

  await page.goto('/login')
  await signIn(page, sample.careful)
  await heading(page, 'Second factor')
  await fill(page, { Code: '12345' })
  await press(page, 'Continue')
  expect(await complaint(page, 'Code')).toBe('The code has six digits.')
  const right = world.totp(sample.mfaSecret)
  await fill(page, { Code: right === '000000' ? '000001' : '000000' })
  await press(page, 'Continue')
  await page.getByRole('alert').getByText('The code is wrong, used or expired.').waitFor()
  await fill(page, { Code: world.totp(sample.mfaSecret).replace(/^.../, '$& ') })
  await press(page, 'Continue')
  await heading(page, sample.namespace)

  await signOut(page)
  await signIn(page, sample.careful)
  await page.getByRole('link', { name: 'Use a recovery code instead' }).click()
  await fill(page, { 'Recovery code': sample.recoveryCode.toLowerCase() })
  await press(page, 'Sign in with this code')
  await heading(page, sample.namespace)

  await signOut(page)
  await signIn(page, sample.careful)
  await page.getByRole('link', { name: 'Use a recovery code instead' }).click()
  await page.getByRole('link', { name: 'I have no recovery codes left' }).click()
  await press(page, 'Send the e-mails')
  await page.getByRole('status').getByText('two e-mails are on their way').waitFor()
  const codeIn = async (to: string) => /^[A-Z0-9]{8}$/m.exec((await service.newestEmail(to)).text ?? '')![0]
  const [main, recovery] = [await codeIn(sample.careful.email), await codeIn('cara@example.org')]
  await page.goto(await linkTo(service, sample.careful.email))
  await heading(page, 'Turn off the second factor')
  await fill(page, { 'Code from your main address': recovery, 'Code from your recovery address': main })
  await press(page, 'Turn it off and sign in')
  await page.getByRole('alert').getByText('These codes do not match').waitFor()
  await fill(page, { 'Code from your main address': main, 'Code from your recovery address': recovery })
  await press(page, 'Turn it off and sign in')
  await heading(page, sample.namespace)

  await signOut(page)
  await signIn(page, sample.careful)
  await heading(page, sample.namespace)
  expect(person.refusals).toEqual([
    '401 /api/login',
    '401 /api/mfa/auth',
    '401 /api/login',
    '401 /api/login',
    `401 /api/user/mfa/reset/${sample.careful.id}`,
  ])
  expect(person.troubles).toEqual([])
})

test('a sign-in that has ended leads back to the sign-in page', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visitAs(sample.observer, browser, service)
  const { page } = person
  service.clock.forward(73 * 3_600_000)
  // The page may find out by itself before, and is on its way then.
  await lookAgain(page).catch(() => undefined)
  await page.waitForURL('**/login')
  await seen(page, 'Your sign-in has expired. Sign in again.')
  expect(person.troubles).toEqual([])
})

// Invitations in the console: somebody without an account signs up through the link of the e-mail, somebody
// with one signs in and accepts, a stolen link is refused in another account, and without a mail server the
// link is shown once.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { sharedBrowser, visit } from '../harness/browser.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import { field, fill, goTo, heading, linkTo, press, row, seen, signIn, told, visitAs } from './console.ts'

const browser = sharedBrowser()

test('an administrator invites two people by e-mail, who come in', async () => {
  await using service = await startService({
    env: { HAWSER_SMTP: 'smtp://127.0.0.1:1', HAWSER_REGISTRATION: 'invited' },
  })
  await buildWorld(service)
  const { stores } = service.rooms
  await using person = await visitAs(sample.administrator, browser, service)
  const { page } = person
  await goTo(page, 'Settings and members')
  await row(page, sample.memberInvitation.email).getByText('observer, invited by adam').waitFor()
  for (const [email, role] of [
    ['nadia@corp.example', 'operator'],
    [sample.stranger.email, 'observer'],
  ] as const) {
    await press(page, 'Invite by e-mail')
    await fill(page, { 'E-mail': email })
    await field(page, 'Role').selectOption(role)
    await press(page, 'Invite')
    await told(page, `An invitation is on its way to ${email}.`)
    await row(page, email).getByText(`${role}, invited by adam, until`).waitFor()
  }
  const link = await linkTo(service, 'nadia@corp.example')
  await press(page, 'Resend the invitation for nadia@corp.example')
  const fresh = await linkTo(service, 'nadia@corp.example', 1)

  await using newcomer = await visit(browser, service)
  await newcomer.page.goto(link)
  await heading(newcomer.page, 'This link does not work')
  await newcomer.page.goto('/login')
  await newcomer.page.goto(fresh)
  await heading(newcomer.page, 'You are invited to harbour')
  // The token is in no address that the browser keeps.
  expect(newcomer.page.url()).toBe(`${service.url}/invitation`)
  await fill(newcomer.page, { 'Your name': 'Nadia', Username: 'nadia', Password: 'lighthouse' })
  await press(newcomer.page, 'Create the account and accept')
  await heading(newcomer.page, sample.namespace)
  const members = await stores.namespaces.members(sample.tenant)
  expect(members.find(({ username }) => username === 'nadia')?.role).toBe('operator')

  // Somebody else opens the link of stan, who then signs in himself.
  const stans = await linkTo(service, sample.stranger.email)
  await newcomer.page.goto(stans)
  await seen(newcomer.page, 'You are signed in as nadia, with another address.')
  expect(await newcomer.page.getByRole('button', { name: 'Accept the invitation' }).count()).toBe(0)
  await press(newcomer.page, 'Sign in as someone else')
  await signIn(newcomer.page, sample.stranger)
  await heading(newcomer.page, 'You are invited to harbour')
  await press(newcomer.page, 'Accept the invitation')
  await heading(newcomer.page, sample.namespace)
  expect((await stores.namespaces.member(sample.tenant, sample.stranger.id))?.role).toBe('observer')

  await press(page, `Withdraw the invitation for ${sample.memberInvitation.email}`)
  await told(page, `The invitation for ${sample.memberInvitation.email} was withdrawn.`)
  await seen(page, 'No open invitations.')
})

test('without a mail server the link is shown once, to be passed on', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  await goTo(page, 'Settings and members')
  await press(page, 'Invite by e-mail')
  await fill(page, { 'E-mail': sample.stranger.email })
  await press(page, 'Invite')
  await heading(page, `The link for ${sample.stranger.email}`)
  const link = (await page.getByRole('dialog').locator('code').textContent()) ?? ''
  expect(link).toMatch(new RegExp(`^${service.url}/invitation#hwn_`))
  await press(page, 'I have copied it')
  await using invited = await visit(browser, service)
  await invited.page.goto(link)
  // The page does not know whether there is an account with this address, and offers both ways.
  await seen(invited.page, 'Create an account for this address:')
  await press(invited.page, 'I have an account')
  await signIn(invited.page, sample.stranger)
  await press(invited.page, 'Accept the invitation')
  await heading(invited.page, sample.namespace)
})

test('without a mail server somebody new confirms the address first, and comes back to accept', async () => {
  await using service = await startService()
  await buildWorld(service)
  await using person = await visitAs(sample.owner, browser, service)
  const { page } = person
  await goTo(page, 'Settings and members')
  await press(page, 'Invite by e-mail')
  await fill(page, { 'E-mail': 'nadia@corp.example' })
  await press(page, 'Invite')
  await heading(page, 'The link for nadia@corp.example')
  const link = (await page.getByRole('dialog').locator('code').textContent()) ?? ''
  await using newcomer = await visit(browser, service)
  await newcomer.page.goto(link)
  await fill(newcomer.page, { 'Your name': 'Nadia', Username: 'nadia', Password: 'lighthouse' })
  await press(newcomer.page, 'Create the account and accept')
  await seen(newcomer.page, 'Then open the link of your invitation again, and accept it.')
  await newcomer.page.goto(await linkTo(service, 'nadia@corp.example'))
  await press(newcomer.page, 'Confirm the account')
  await newcomer.page.getByRole('link', { name: 'Sign in' }).click()
  await signIn(newcomer.page, { username: 'nadia', password: 'lighthouse' })
  await press(newcomer.page, 'Accept the invitation')
  await heading(newcomer.page, sample.namespace)
})

// Double clicks and a second Enter, in a real browser with a slow server: a button or a form that creates or
// sends something makes one call, and can be used again once that has its answer.
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startBilled } from '../harness/billed.ts'
import { sharedBrowser } from '../harness/browser.ts'
import { eventually } from '../harness/eventually.ts'
import { field, fill, goTo, lookAgain, press, told, visitAs } from './console.ts'

const browser = sharedBrowser()

/**
 * Holds back whatever the page sends while somebody acts, until the first call is there. The function gives
 * the calls that were sent by then.
 */
async function slowServer(page: Page): Promise<(act: () => Promise<void>) => Promise<string[]>> {
  let calls: string[] = []
  let open = Promise.withResolvers<void>()
  open.resolve()
  await page.route('**/api/**', async (route) => {
    const request = route.request()
    if (request.method() !== 'GET') {
      calls.push(`${request.method()} ${new URL(request.url()).pathname}`)
      await open.promise
    }
    await route.continue()
  })
  return async (act) => {
    calls = []
    open = Promise.withResolvers()
    await act()
    await eventually(() => expect(calls).not.toEqual([]))
    open.resolve()
    return calls
  }
}

/** Twice with the mouse, and once more with the keyboard while the button has the focus. */
async function pressOften(page: Page, name: string): Promise<void> {
  const button = page.getByRole('button', { name, exact: true })
  await button.dblclick()
  await button.press('Enter')
}

test('every press of a button that waits for its answer is one call', async () => {
  await using place = await startBilled({ env: { HAWSER_SMTP: 'smtp://127.0.0.1:1' } })
  await using person = await visitAs(sample.owner, browser, place, { reducedMotion: 'reduce' })
  const { page } = person
  const { stripe } = place
  const during = await slowServer(page)

  await goTo(page, 'Billing')
  const begun = await during(() => pressOften(page, 'Begin'))
  await told(page, 'The namespace is now registered with the payment provider.')
  expect(begun).toEqual(['POST /api/billing/customer'])

  for (const id of [stripe.card('good'), stripe.card('poor')])
    await place.owner.billing.attachPaymentMethod({ body: { id } })
  await page.reload()
  const poor = await during(() => pressOften(page, 'Make default: Visa ending in 9995'))
  await told(page, 'Visa ending in 9995 is now the default card.')
  expect(poor).toHaveLength(1)

  // A refused one can be tried again.
  const refused = await during(() => pressOften(page, 'Subscribe'))
  await told(page, 'Your card has insufficient funds.')
  expect(refused).toEqual(['POST /api/billing/subscription'])
  await press(page, 'Make default: Visa ending in 4242')
  await told(page, 'Visa ending in 4242 is now the default card.')
  const subscribed = await during(() => pressOften(page, 'Subscribe'))
  await told(page, 'The subscription has started.')
  expect(subscribed).toEqual(['POST /api/billing/subscription'])
  expect(stripe.kept.subscription.size).toBe(1)

  await page.goto('/devices?status=pending')
  const accepted = await during(() => pressOften(page, 'Accept buoy'))
  await told(page, 'buoy was accepted.')
  expect(accepted).toEqual([`PATCH /api/devices/${sample.pendingDevice}/accept`])

  await goTo(page, 'Settings and members')
  await press(page, 'Invite by e-mail')
  await fill(page, { 'E-mail': 'nadia@corp.example' })
  const invited = await during(() => pressOften(page, 'Invite'))
  await told(page, 'An invitation is on its way to nadia@corp.example.')
  expect(invited).toHaveLength(1)
  const again = await during(() => pressOften(page, 'Resend the invitation for nadia@corp.example'))
  await lookAgain(page)
  expect(again).toHaveLength(1)
  expect(person.troubles).toEqual([])
})

test('Enter twice in a form is one call', async () => {
  await using place = await startBilled()
  await using person = await visitAs(sample.owner, browser, place, { reducedMotion: 'reduce' })
  const { page } = person
  const during = await slowServer(page)
  const enterTwice = async (label: string): Promise<void> => {
    for (let count = 0; count < 2; count += 1) await field(page, label).press('Enter')
  }

  await goTo(page, 'API keys')
  await press(page, 'Create an API key')
  await fill(page, { Name: 'once' })
  const made = await during(() => enterTwice('Name'))
  await told(page, 'The key once was created.')
  expect(made).toEqual(['POST /api/namespaces/api-key'])
  await press(page, 'I have copied it')

  await press(page, `Namespace ${sample.namespace}`)
  await page.getByRole('menuitem', { name: 'New namespace …' }).click()
  await fill(page, { Name: 'single' })
  const created = await during(() => enterTwice('Name'))
  await told(page, 'You are now in single.')
  expect(created).toEqual(['POST /api/namespaces'])
  expect(person.troubles).toEqual([])
})

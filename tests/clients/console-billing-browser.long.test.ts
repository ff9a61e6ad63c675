// Billing in the console, in a real browser: an owner becomes a customer, adds a card on the provider's own
// pages (which here are a stand-in), subscribes, manages cards, and, when the subscription has ended, chooses
// the devices that stay. Every state of the page passes axe and fits its screen, light on a desk and dark on
// a phone.
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startBilled, type Billed } from '../harness/billed.ts'
import { sharedBrowser, violations } from '../harness/browser.ts'
import { goTo, heading, lookAgain, press, row, seen, told, visitAs } from './console.ts'

const browser = sharedBrowser()

/** Nothing that axe finds wrong, and nothing wider than the screen. */
async function wellMade(page: Page, what: string): Promise<void> {
  const wrong = await violations(page)
  const tooWide = await page.evaluate<boolean>(
    'document.documentElement.scrollWidth > document.documentElement.clientWidth',
  )
  expect({ what, wrong, tooWide }).toEqual({ what, wrong: [], tooWide: false })
}

async function lapse(place: Billed): Promise<void> {
  const { stripe } = place
  const [subscription] = stripe.kept.subscription.values()
  subscription!['status'] = 'canceled'
  await stripe.send(place.url, stripe.event('customer.subscription.deleted', structuredClone(subscription!)))
}

test.each([
  ['light', 1280],
  ['dark', 360],
] as const)(
  'an owner subscribes, and everything on the way is well made: %s, %d pixels wide',
  async (colorScheme, width) => {
    await using place = await startBilled()
    const { stripe } = place
    await using person = await visitAs(sample.owner, browser, place, {
      viewport: { width, height: 800 },
      colorScheme,
      reducedMotion: 'reduce',
    })
    const { page } = person
    await page.goto('/billing')
    await seen(page, 'accepted, 3 are free.')
    await seen(page, 'There is no subscription yet.')
    await wellMade(page, 'no customer')

    await press(page, 'Begin')
    await told(page, 'The namespace is now registered with the payment provider.')
    await seen(page, 'No cards yet.')
    await seen(page, 'A valid card is required first')
    await wellMade(page, 'no card')

    // The provider's own pages, where two cards are added.
    const [customer] = stripe.kept.customer.values()
    await page.route('https://billing.stripe.test/**', (route) =>
      route.fulfill({ contentType: 'text/html', body: '<title>Portal</title>' }),
    )
    await press(page, 'Add a card')
    await page.waitForURL(`https://billing.stripe.test/p/session/${customer!.id}`)
    const [poor, good] = [stripe.card('poor'), stripe.card('good')]
    for (const id of [poor, good]) await place.owner.billing.attachPaymentMethod({ body: { id } })
    await page.goto('/billing')

    await page.getByRole('button', { name: 'Make default: Visa ending in 9995' }).click()
    await told(page, 'Visa ending in 9995 is now the default card.')
    await wellMade(page, 'cards')
    await press(page, 'Subscribe')
    await told(page, 'Your card has insufficient funds.')
    await page.getByRole('button', { name: 'Make default: Visa ending in 4242' }).click()
    await told(page, 'Visa ending in 4242 is now the default card.')
    await page.getByRole('button', { name: 'Remove Visa ending in 9995' }).click()
    await wellMade(page, 'a question')
    await press(page, 'Remove it')
    await told(page, 'Visa ending in 9995 was removed.')
    await press(page, 'Subscribe')
    await told(page, 'The subscription has started.')
    await seen(page, 'accepted device, no limit.')
    await seen(page, /paid until \w+ \d+, \d+/)
    await row(page, '$5.00').getByText('paid', { exact: true }).waitFor()
    await wellMade(page, 'subscribed')

    for (const [status, words] of [
      ['past_due', 'payment overdue'],
      ['paused', 'paused'],
      ['unpaid', 'An invoice is unpaid.'],
    ] as const) {
      const [subscription] = stripe.kept.subscription.values()
      subscription!['status'] = status
      await page.reload()
      await seen(page, words)
      await wellMade(page, status)
    }

    stripe.trouble('error', /GET (customers|subscriptions)/)
    await page.reload()
    await page
      .getByRole('alert')
      .getByText('The payment provider cannot be reached at the moment')
      .first()
      .waitFor()
    await wellMade(page, 'away')
    stripe.well()
    await press(page, 'Try again')
    await seen(page, 'An invoice is unpaid.')

    expect(new Set(person.refusals)).toEqual(
      new Set([
        '404 /api/billing/customer',
        '404 /api/billing/subscription',
        '424 /api/billing/subscription',
        '402 /api/billing/subscription',
        '424 /api/billing/customer',
      ]),
    )
    expect(person.troubles).toEqual([
      `asked elsewhere: https://billing.stripe.test/p/session/${customer!.id}`,
    ])
  },
)

test('when a subscription has ended the owner chooses which devices stay; others are told to wait for that', async () => {
  await using place = await startBilled()
  await place.subscribed()
  for (const name of ['tug', 'ferry', 'pilot-boat', 'dredger']) await place.accepted(name)
  await lapse(place)
  await using person = await visitAs(sample.owner, browser, place, {
    viewport: { width: 360, height: 740 },
    reducedMotion: 'reduce',
  })
  const { page } = person
  await page.getByRole('alert').getByText('The namespace has 5 devices, but only 3 are free').waitFor()
  await wellMade(page, 'overview')
  await page.getByRole('link', { name: 'Choose which devices stay, or subscribe' }).click()
  await heading(page, 'Over the free device limit')
  await seen(page, 'ended')
  await wellMade(page, 'over the limit')

  await press(page, 'Choose devices …')
  const dialog = page.getByRole('dialog', { name: 'Choose the devices that stay' })
  const box = (name: string) => dialog.getByRole('checkbox', { name: new RegExp(`^${name} `) })
  await seen(page, '1 of 3 selected: crane-1')
  expect(await box('crane-1').isChecked(), 'the most used is proposed').toBe(true)
  await box('tug').check()
  await box('ferry').check()
  expect([await box('dredger').isDisabled(), await box('tug').isDisabled()]).toEqual([true, false])
  await wellMade(page, 'the choice')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  expect((await place.namespace()).device_count, 'nothing happens by looking').toBe(5)

  await press(page, 'Choose devices …')
  await box('crane-1').uncheck()
  for (const name of ['tug', 'dredger']) await box(name).check()
  await press(page, 'Keep 2 devices')
  await told(page, 'The other devices are now waiting.')
  await seen(page, 'accepted, 3 are free.')
  const kept = (await place.owner.devices.list({ query: { status: 'accepted' } })).body
  expect(kept.map(({ name }) => name).toSorted()).toEqual(['dredger', 'tug'])

  // Paying again lifts the limit.
  await press(page, 'Subscribe')
  await told(page, 'The subscription has started.')
  await seen(page, 'accepted devices, no limit.')
  expect(person.refusals).toEqual([])
  expect(person.troubles).toEqual([])
})

test('a member who is not the owner reads why nobody gets in, and has no page for it', async () => {
  await using place = await startBilled()
  await place.subscribed()
  for (const name of ['tug', 'ferry', 'pilot-boat']) await place.accepted(name)
  await lapse(place)
  await using person = await visitAs(sample.operator, browser, place)
  const { page } = person
  await page.getByRole('alert').getByText('Its owner must choose which devices stay, or subscribe.').waitFor()
  expect(await page.getByRole('link', { name: 'Billing' }).count()).toBe(0)
  await goTo(page, 'Devices')
  await page.getByRole('link', { name: 'Waiting' }).click()
  await press(page, 'Accept buoy')
  await told(page, 'Without a subscription a namespace has 3 devices.')
  await lookAgain(page)
  expect(person.refusals).toEqual([`402 /api/devices/${sample.pendingDevice}/accept`])
  expect(person.troubles).toEqual([])
})

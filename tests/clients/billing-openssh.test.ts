// What billing means at the SSH door, with the real client: while the payment provider is away devices are
// reached as ever; when a subscription has ended and there are more devices than the free ones, nobody gets
// in, and is told why, until the owner has chosen some.
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startStripe } from '../harness/stripe.ts'
import { enrol } from './console.ts'
import { openWay } from './way.ts'

vi.setConfig({ testTimeout: 120_000 })

const outcome = ({ status, stdout }: { status: number | null; stdout: Buffer }) => [status, String(stdout)]

test('access goes on without Stripe, ends above the limit, and comes back with the choice of devices', async () => {
  await using stripe = await startStripe()
  await using way = await openWay(stripe.env)
  const { owner, service, agent } = way
  const { id: customer } = (await owner.billing.createCustomer()).body
  const card = stripe.card()
  await owner.billing.attachPaymentMethod({ body: { id: card } })
  await owner.billing.setDefaultPaymentMethod({ body: { id: card } })
  await owner.billing.createSubscription()
  for (const number of [1, 2, 3]) {
    const uid = await enrol(service, sample.tenant, `tug-${number}`, `00:00:5e:00:53:3${number}`)
    await owner.devices.accept({ params: { uid } })
  }
  stripe.trouble('reset')
  expect(outcome(await way.ssh('echo here'))).toEqual([0, 'here\n'])

  stripe.well()
  const [subscription] = stripe.kept.subscription.values()
  subscription!['status'] = 'canceled'
  const ended = stripe.event('customer.subscription.deleted', {
    id: subscription!.id,
    object: 'subscription',
    customer,
  })
  expect((await stripe.send(service.url, ended)).status).toBe(200)
  const refused = await way.ssh('echo here')
  expect(outcome(refused)).toEqual([255, ''])
  expect(refused.stderr).toContain(
    'this namespace is over its device limit; its owner must remove devices or upgrade',
  )

  // No provider is needed for that.
  stripe.trouble('reset')
  await owner.devices.choose({ body: { choices: [agent.uid, sample.device] } })
  expect(outcome(await way.ssh('echo here'))).toEqual([0, 'here\n'])
})

// Two nodes and one customer: calls that reach different nodes at the same time make one subscription and one
// invoice, however slowly and in whatever order the payment provider answers.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startStripe } from '../harness/stripe.ts'
import { times } from '../harness/tier.ts'
import { startCluster } from './cluster.ts'

test('two to twenty calls at two nodes charge once', async () => {
  await using stripe = await startStripe()
  await using cluster = await startCluster(2, { env: stripe.env })
  const token = await cluster.world.token('owner')
  const owners = cluster.nodes.map((node) => node.api({ token }))
  const [owner] = owners as [(typeof owners)[0]]
  await Promise.allSettled(owners.map((each) => each.billing.createCustomer()))
  expect(stripe.kept.customer.size).toBe(1)
  const id = stripe.card()
  await owner.billing.attachPaymentMethod({ body: { id } })
  await owner.billing.setDefaultPaymentMethod({ body: { id } })

  for (let round = 1; round <= times(3, 12); round++) {
    const before = stripe.kept.invoice.size
    stripe.meet(async () => sleep(Math.random() * 60))
    const outcomes = await Promise.allSettled(
      Array.from({ length: 2 + Math.floor(Math.random() * 19) }, async (_, at) => {
        await sleep(Math.random() * 200)
        await owners[at % 2]!.billing.createSubscription()
      }),
    )
    stripe.well()
    expect(outcomes.some(({ status }) => status === 'fulfilled')).toBe(true)
    expect([stripe.kept.subscription.size, stripe.kept.invoice.size - before]).toEqual([round, 1])
    await owner.billing.report({ query: { action: 'namespace_delete' } })
    stripe.kept.invoice.clear()
  }
})

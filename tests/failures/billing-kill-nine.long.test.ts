// kill -9 while a namespace subscribes, before and after every single call to the payment provider. Whoever asks
// again after the next start has one subscription and one invoice, always.
import { expect, test, vi } from 'vitest'
import { startStripe } from '../harness/stripe.ts'
import { setUp, startProgram, temporaryFolder } from './program.ts'

vi.setConfig({ testTimeout: 240_000 })

test('a server that is killed between any two calls charges once', async () => {
  const moments = new Set<string>()
  for (let kill = 0; ; kill++) {
    using home = temporaryFolder()
    await using stripe = await startStripe()
    const at = { folder: home.path, env: stripe.env }
    await using program = await startProgram(at)
    const { token } = await setUp(program)
    const owner = program.api({ token })
    await owner.billing.createCustomer()
    const id = stripe.card()
    await owner.billing.attachPaymentMethod({ body: { id } })
    await owner.billing.setDefaultPaymentMethod({ body: { id } })

    let meetings = 0
    let killed = false
    stripe.meet(async (when, { method, path }) => {
      if (meetings++ !== kill) return
      moments.add(`${when} ${method} ${path.replace(/(cus|sub)_\w+/, '$1')}`)
      killed = true
      await program.kill()
    })
    await owner.billing.createSubscription().catch(() => undefined)
    if (!killed) break
    stripe.well()

    await using again = await startProgram(at)
    await again
      .api({ token })
      .billing.createSubscription()
      .catch((error: unknown) => expect(error).toMatchObject({ body: { code: 'subscription_exists' } }))
    const { body } = await again.api({ token }).billing.getSubscription()
    expect([kill, body.active, body.invoices.length]).toEqual([kill, true, 1])
    expect([stripe.kept.subscription.size, stripe.kept.invoice.size]).toEqual([1, 1])
  }
  expect([...moments]).toEqual(
    expect.arrayContaining([
      'asked GET subscriptions',
      'done GET subscriptions',
      'asked POST subscriptions',
      'done POST subscriptions',
    ]),
  )
})

// Billing on a server without a payment provider: nothing is limited, and every billing operation says why it
// cannot be done, with a code that a program can read. What needs no provider works.
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()
const none = {
  status: 424,
  body: { message: expect.stringMatching(/\w/) as unknown, code: 'provider_not_configured' },
}

const ofOwner: Record<string, (client: Client) => Promise<unknown>> = {
  'get customer': (client) => client.billing.getCustomer(),
  'create customer': (client) => client.billing.createCustomer(),
  'get subscription': (client) => client.billing.getSubscription(),
  'create subscription': (client) => client.billing.createSubscription(),
  attach: (client) => client.billing.attachPaymentMethod({ body: { id: 'pm_1' } }),
  detach: (client) => client.billing.detachPaymentMethod({ body: { id: 'pm_1' } }),
  default: (client) => client.billing.setDefaultPaymentMethod({ body: { id: 'pm_1' } }),
  portal: (client) => client.billing.portal(),
  report: (client) => client.billing.report({ query: { action: 'device_accept' } }),
}

describe('without a provider', () => {
  test.each(Object.keys(ofOwner))(
    '%s: the owner, also by a key, is told that there is none',
    async (name) => {
      await expect(ofOwner[name]!(place.owner)).rejects.toMatchObject(none)
      const { id } = (
        await place.owner.apiKeys.create({
          body: { name: `bill-${name.replaceAll(' ', '-')}`.slice(0, 20), expires_at: -1 },
        })
      ).body
      await expect(ofOwner[name]!(place.api({ apiKey: id }))).rejects.toMatchObject(none)
    },
  )

  test.each(Object.keys(ofOwner))('%s: everyone else is refused first, with a code too', async (name) => {
    for (const client of [place.administrator, place.operator, place.observer, place.key, place.device])
      await expect(ofOwner[name]!(client)).rejects.toMatchObject({
        status: 403,
        body: { message: expect.any(String) as unknown, code: expect.stringMatching(/^[a-z_]+$/) as unknown },
      })
    await expect(ofOwner[name]!(place.nobody)).rejects.toMatchObject({
      status: 401,
      body: { message: expect.any(String) as unknown, code: expect.any(String) as unknown },
    })
  })

  test('evaluate is for every member, the webhook for the provider', async () => {
    for (const client of [place.observer, place.owner, place.key])
      await expect(client.billing.evaluate()).rejects.toMatchObject(none)
    await expect(place.nobody.billing.webhook({ body: { type: 'invoice.paid' } })).rejects.toMatchObject(none)
  })

  test.each(['attachPaymentMethod', 'detachPaymentMethod', 'setDefaultPaymentMethod'] as const)(
    '%s: bad input is 400 first',
    async (name) => {
      for (const body of [{}, { id: '' }, { id: 5 }, { id: 'x'.repeat(256) }, { id: null }]) {
        const call = place.owner.billing[name]({ body: body as { id: string } })
        await expect(call).rejects.toMatchObject({
          status: 400,
          body: { message: expect.stringContaining('id') as unknown, code: expect.any(String) as unknown },
        })
      }
    },
  )

  test('report: an unknown action is 400 first', async () => {
    for (const action of ['device_remove', '', undefined])
      await expect(
        place.owner.billing.report({ query: { action: action as 'device_accept' } }),
      ).rejects.toMatchObject({ status: 400 })
  })

  test('a namespace has no limit and no billing, and accepting asks nobody', async () => {
    const { body } = await place.owner.namespaces.get({ params: { tenant: sample.tenant } })
    expect([body.max_devices, body.billing]).toEqual([-1, null])
    for (let number = 0; number < 5; number++) await place.accepted(`tug-${number}`)
  })

  test('nor does a limit that was set by hand close the door to devices that are accepted', async () => {
    const { stores, logins } = place.rooms
    await stores.namespaces.save(sample.tenant, { max_devices: 1 })
    await place.rooms.stores.of(sample.tenant).devices.save(sample.pendingDevice, { status: 'accepted' })
    const reachable = await logins.find(sample.device)
    expect(await logins.withinLimit(reachable!)).toBe(true)
    await place.rooms.stores.of(sample.tenant).devices.save(sample.pendingDevice, { status: 'pending' })
    await stores.namespaces.save(sample.tenant, { max_devices: -1 })
  })

  test('the most used devices are listed', async () => {
    expect((await place.owner.devices.mostUsed()).status).toBe(200)
  })

  test('choosing devices is refused and makes nobody wait; bad input and a lower role are refused first', async () => {
    await place.accepted('ferry')
    const statuses = async () =>
      (await place.owner.devices.list({ query: { status: 'accepted', per_page: 100 } })).total
    const before = await statuses()
    for (const body of [{ choices: [] }, { choices: [sample.device] }, { devices: [{ uid: sample.device }] }])
      await expect(place.owner.devices.choose({ body })).rejects.toMatchObject(none)
    await expect(place.owner.devices.choose({ body: {} })).rejects.toMatchObject({ status: 400 })
    await expect(place.administrator.devices.choose({ body: { choices: [] } })).rejects.toMatchObject({
      status: 403,
    })
    expect(await statuses()).toBe(before)
  })
})

// Data budgets of devices and tags: what is used of them in a month, who hears of it and how often, what a
// budget stops, and that a month begins anew. Devices use bytes through the sums that tunnels fill; real
// tunnels are in tests/clients.
import { describe, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { startPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

type Wanted = Parameters<Client['budgets']['create']>[0]['body']
const minute_ms = 60_000
const create = async (place: Place, body: Wanted) => (await place.administrator.budgets.create({ body })).body
const remove = (place: Place, id: string) => place.administrator.budgets.remove({ params: { id } })
const find = async (place: Place, id: string) =>
  (await place.observer.budgets.list({ query: { per_page: 100 } })).body.find((one) => one.id === id)
const deviceOf = async (place: Place, uid: string) =>
  (await place.observer.devices.get({ params: { uid } })).body

/** A tunnel of the device has carried so much, and the sums are written. */
async function uses(place: Place, uid: string, sent: number): Promise<void> {
  const idle = { received: 0, sent: 0 }
  let sessions = { received: 0, sent }
  const take = () => {
    const taken = { idle, sessions }
    sessions = idle
    return taken
  }
  const ended = Promise.resolve()
  place.rooms.traffic.follow(uid, { take }, ended)
  await ended
  await place.rooms.traffic.flush(true)
  // E-mails that were sent at the same moment may be stored in either order.
  await place.rooms.background.settled()
}

const subjects = async (place: Place, to: string) =>
  (await place.emails()).filter((email) => email.to?.[0]?.address === to).map(({ subject }) => subject)

describe.each(oneDatabase)('on %s', (_, options) => {
  test('an e-mail that a crash kept from being sent is sent later, once', async () => {
    await using place = await startPlace(await options())
    const { uid } = await place.accepted('crane')
    const { id } = await create(place, { device: uid, bytes: 1_000 })
    const { budgetJudgements: store } = place.rooms.stores
    const [row] = await store.findMany([Number(id)])
    const month = new Date(place.clock.now()).toISOString().slice(0, 7)
    const found = { month, used: 900, state: 'warned', told: 'warned', isNews: true } as const
    // What a server leaves that ends right after it has written the state.
    await store.save([{ row: row!, ...found }], new Date(place.clock.now()).toISOString())
    const judge = async (): Promise<string[]> => {
      await place.rooms.budgets.judge()
      await place.rooms.background.settled()
      return (await subjects(place, sample.owner.email)) as string[]
    }
    expect(await judge()).toEqual([])
    place.clock.forward(31 * minute_ms)
    expect(await judge()).toHaveLength(1)
    place.clock.forward(31 * minute_ms)
    expect(await judge()).toHaveLength(1)
    const late = new Date(place.clock.now()).toISOString()
    expect(await store.takeUnsent(late, late, 10)).toEqual([])
  })

  test('one that failed to be sent is sent later, too', async () => {
    await using place = await startPlace(await options())
    const { uid } = await place.accepted('crane')
    await create(place, { device: uid, bytes: 1_000 })
    const { budgetJudgements: store } = place.rooms.stores
    const recipients = vi.spyOn(store, 'recipients').mockRejectedValueOnce(new Error('the database is away'))
    await uses(place, uid, 2_000)
    expect(recipients).toHaveBeenCalledOnce()
    expect(await subjects(place, sample.owner.email)).toEqual([])
    place.clock.forward(31 * minute_ms)
    await place.rooms.budgets.judge()
    await place.rooms.background.settled()
    expect(await subjects(place, sample.owner.email)).toHaveLength(1)
  })

  test('a device comes to 80 per cent of its budget and over it, and people hear of each once', async () => {
    await using place = await startPlace(await options())
    const { uid } = await place.accepted('crane')
    const budget = await create(place, { device: uid, bytes: 1_000_000 })
    const month = new Date(place.clock.now()).toISOString().slice(0, 7)
    expect(budget).toMatchObject({ device: uid, device_name: 'crane', month, used: 0, state: 'under' })
    expect(budget).not.toHaveProperty('tag')
    await uses(place, uid, 700_000)
    expect(await find(place, budget.id)).toMatchObject({ used: 700_000, state: 'under' })
    await uses(place, uid, 100_000)
    expect(await find(place, budget.id)).toMatchObject({ used: 800_000, state: 'warned' })
    expect((await deviceOf(place, uid)).data_budget).toEqual({
      id: budget.id,
      used: 800_000,
      bytes: 1_000_000,
      state: 'warned',
    })
    await uses(place, uid, 1_000)
    await uses(place, uid, 300_000)
    await uses(place, uid, 1_000)
    expect(await find(place, budget.id)).toMatchObject({ used: 1_102_000, state: 'over' })
    const expected = [
      `A data budget of ${sample.namespace} is 80 per cent used`,
      `A data budget of ${sample.namespace} is used up`,
    ]
    for (const { email } of [sample.owner, sample.administrator])
      expect(await subjects(place, email)).toEqual(expected)
    for (const { email } of [sample.operator, sample.observer, sample.stranger])
      expect(await subjects(place, email)).toEqual([])
    expect((await place.newestEmail(sample.owner.email)).text).toContain(
      'The device crane: 1.1 MB of 1.0 MB (110 %) this month.',
    )
    expect(place.log()).toMatch(/"budget\.warned"/)
    expect(place.log()).toMatch(/"budget\.over"/)
    expect([...place.rooms.budgets.changes]).toEqual([
      ['under', 0],
      ['warned', 1],
      ['over', 1],
    ])
    // More bytes, and less again: the state follows, and nobody hears of the same state twice in a month.
    const params = { id: budget.id }
    const change = (body: { bytes: number }) => place.administrator.budgets.update({ params, body })
    expect((await change({ bytes: 10_000_000 })).body).toMatchObject({ used: 1_102_000, state: 'under' })
    expect((await change({ bytes: 1_000_000 })).body).toMatchObject({ state: 'over' })
    expect(await subjects(place, sample.owner.email)).toEqual(expected)
  })

  test('a month begins anew', async () => {
    await using place = await startPlace(await options())
    const { uid } = await place.accepted('crane')
    const budget = await create(place, { device: uid, bytes: 1_000 })
    await uses(place, uid, 1_000)
    expect((await deviceOf(place, uid)).data_budget).toMatchObject({ used: 1_000, state: 'over' })
    place.clock.forward(32 * 24 * 60 * minute_ms)
    // The tokens of people have ended by then.
    const now = async () =>
      (await place.key.budgets.list({ query: {} })).body.find(({ id }) => id === budget.id)
    expect(await now()).toMatchObject({ used: 0, state: 'under' })
    await uses(place, uid, 850)
    expect(await now()).toMatchObject({ used: 850, state: 'warned' })
    expect(await subjects(place, sample.owner.email)).toHaveLength(2)
  })

  test('the budget of a tag is that of all its devices together, at most every five minutes', async () => {
    await using place = await startPlace(await options())
    const [one, other] = [await place.accepted('till-1'), await place.accepted('till-2')]
    await uses(place, one.uid, 300)
    await place.operator.devices.setTags({ params: { uid: one.uid }, body: { tags: ['shop'] } })
    const budget = await create(place, { tag: 'shop', bytes: 1_000 })
    expect(budget).toMatchObject({ tag: 'shop', device_name: '', used: 300, state: 'under' })
    await place.operator.devices.setTags({ params: { uid: other.uid }, body: { tags: ['shop', 'north'] } })
    await uses(place, other.uid, 600)
    expect(await find(place, budget.id)).toMatchObject({ used: 300 })
    const { usedByTag } = place.rooms.stores.budgetJudgements
    const month = `${new Date(place.clock.now()).toISOString().slice(0, 7)}-01`
    for (const step of [1, 2, 1_000]) expect(await usedByTag(sample.tenant, 'shop', month, step)).toBe(900)
    place.clock.forward(5 * minute_ms)
    // Nothing new was counted, and what waited is judged.
    await place.rooms.traffic.flush()
    expect(await find(place, budget.id)).toMatchObject({ used: 900, state: 'warned' })
    // A device shows of all its budgets the one that is used up most.
    await create(place, { device: other.uid, bytes: 100_000 })
    expect((await deviceOf(place, other.uid)).data_budget).toMatchObject({ tag: 'shop', state: 'warned' })
    await place.operator.tags.rename({ params: { tag: 'shop' }, body: { tag: 'store' } })
    expect(await find(place, budget.id)).toMatchObject({ tag: 'store' })
    const { body } = await place.observer.devices.list({ query: { per_page: 100 } })
    expect(
      body
        .filter(({ data_budget: its }) => its?.tag === 'store')
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(['till-1', 'till-2'])
  })

  test('a device has one budget, and it goes with the device or to its replacement', async () => {
    await using place = await startPlace(await options())
    const mac = '02:99:00:00:00:07'
    const { uid } = await place.enrol({ hostname: 'crane', mac })
    await place.owner.devices.accept({ params: { uid } })
    const budget = await create(place, { device: uid, bytes: 5 })
    await expect(create(place, { device: uid, bytes: 6 })).rejects.toMatchObject({ status: 409 })
    const next = await place.enrol({ hostname: 'crane-new', mac })
    await place.owner.devices.accept({ params: { uid: next.uid } })
    expect(await find(place, budget.id)).toMatchObject({ device: next.uid })
    await place.owner.devices.remove({ params: { uid: next.uid } })
    expect(await find(place, budget.id)).toBeUndefined()
    await expect(remove(place, budget.id)).rejects.toMatchObject({ status: 404 })
  })

  test('a device or a tag, but not both; a number of bytes that can be', async () => {
    await using place = await startPlace(await options())
    const device = sample.pendingDevice
    const refused: unknown[] = [
      { bytes: 5 },
      { device, tag: 'shop', bytes: 5 },
      { device, bytes: 0 },
      { device, bytes: -1 },
      { device, bytes: 1.5 },
      { device, bytes: 1e15 + 1 },
      { device, bytes: 1e300 },
      { device, bytes: '5' },
      { device },
      { tag: 'a b', bytes: 5 },
      { tag: 'x'.repeat(256), bytes: 5 },
    ]
    for (const body of refused)
      await expect(create(place, body as Wanted)).rejects.toMatchObject({ status: 400 })
    await expect(create(place, { device: 'f'.repeat(64), bytes: 5 })).rejects.toMatchObject({ status: 404 })
    expect(await create(place, { device, bytes: 1e15 })).toMatchObject({ bytes: 1e15, state: 'under' })
    const params = { id: sample.budget }
    for (const bytes of [0, 2e15])
      await expect(place.administrator.budgets.update({ params, body: { bytes } })).rejects.toMatchObject({
        status: 400,
      })
  })

  test('agents are not asked to update themselves above a budget that says so', async () => {
    await using place = await startPlace(await options())
    const { stores } = place.rooms
    const { uid } = await place.accepted('crane')
    const now = new Date(place.clock.now()).toISOString()
    const offer = { build: 'b'.repeat(16), arches: ['amd64'] }
    await stores.of(sample.tenant).devices.save(uid, { agent_ability: 'self', agent_build: 'a', online: 1 })
    const budget = await create(place, { device: uid, bytes: 5, stop_updates: true })
    const candidates = () => stores.agentUpdates.candidates(sample.tenant, offer, 10, now)
    expect(await candidates()).toEqual([uid])
    await uses(place, uid, 5)
    expect(await candidates()).toEqual([])
    // A member who asks for the update is heard, and the device waits.
    expect(await stores.agentUpdates.want(sample.tenant, offer, [uid], now)).toBe(1)
    expect(await stores.agentUpdates.ask(10, now)).toEqual([])
    // In a namespace that updates by itself it leaves the wave instead.
    await stores.agentUpdates.postpone(sample.otherTenant, now)
    expect((await stores.of(sample.tenant).devices.find(uid))?.update_build).toBe(offer.build)
    await stores.agentUpdates.postpone(sample.tenant, now)
    expect((await stores.of(sample.tenant).devices.find(uid))?.update_build).toBe('')
    await stores.agentUpdates.want(sample.tenant, offer, [uid], now)
    await place.administrator.budgets.update({ params: { id: budget.id }, body: { stop_updates: false } })
    expect(await stores.agentUpdates.ask(10, now)).toEqual([{ tenant_id: sample.tenant, uid }])
  })
})

// Data budgets in the hands of others: a namespace that names the devices and budgets of another one, a
// device that connects and disconnects without end, budgets by the thousand over many devices, a key that
// makes budgets in order to send e-mails, and devices and tags whose names would be links in them. Work is
// counted where the database does it.
import { afterEach, expect, test, vi } from 'vitest'
import { mostBudgets } from '@hawser/contract/budgets'
import { sample } from '@hawser/contract/examples'
import { sharedPlace, startPlace, type Place } from '../harness/place.ts'
import { times } from '../harness/tier.ts'

const place = sharedPlace()
afterEach(() => void vi.restoreAllMocks())

const today = () => new Date(place.clock.now()).toISOString().slice(0, 10)
const nothing = { idle_received: 0, idle_sent: 0, session_received: 0 }

/** How often each statement about budgets ran. */
function statements({ rooms }: Place) {
  const { budgetJudgements: store, trafficSums } = rooms.stores
  const spies = {
    add: vi.spyOn(trafficSums, 'add'),
    ofDevices: vi.spyOn(store, 'ofDevices'),
    ofTags: vi.spyOn(store, 'ofTags'),
    usedByDevices: vi.spyOn(store, 'usedByDevices'),
    usedByTag: vi.spyOn(store, 'usedByTag'),
    save: vi.spyOn(store, 'save'),
  }
  return () => {
    const counts = Object.entries(spies).map(([name, spy]) => [name, spy.mock.calls.length] as const)
    for (const spy of Object.values(spies)) spy.mockClear()
    return Object.fromEntries(counts)
  }
}

const meter = (sent: number) => {
  const none = { received: 0, sent: 0 }
  let sessions = { received: 0, sent }
  return {
    take() {
      const taken = { idle: none, sessions }
      sessions = none
      return taken
    },
  }
}

test('another namespace neither sees, changes nor names what is here', async () => {
  const { stranger } = place
  const params = { id: sample.budget }
  expect((await stranger.budgets.list({ query: {} })).body).toEqual([])
  const calls = [
    () => stranger.budgets.update({ params, body: { bytes: 1, stop_recordings: true } }),
    () => stranger.budgets.remove({ params }),
    () => stranger.budgets.create({ body: { device: sample.device, bytes: 1 } }),
  ]
  for (const call of calls) await expect(call()).rejects.toMatchObject({ status: 404 })
  // A tag of the same name is another tag.
  const { body: theirs } = await stranger.budgets.create({
    body: { tag: sample.tag, bytes: 1, stop_recordings: true, stop_updates: true },
  })
  await place.rooms.stores.trafficSums.add([
    { uid: sample.device, day: today(), ...nothing, session_sent: 50 },
  ])
  place.rooms.budgets.note([sample.device])
  await place.rooms.budgets.judge()
  const [seen] = (await stranger.budgets.list({ query: {} })).body
  expect(seen).toMatchObject({ id: theirs.id, used: 0, state: 'under' })
  expect(await place.rooms.budgets.stopsRecordings(sample.tenant, sample.device)).toBe(false)
  expect((await place.observer.budgets.list({ query: {} })).body.map(({ id }) => id)).toEqual([sample.budget])
  for (const id of ['0', '-1', '1e3', '1 or 1=1', '9'.repeat(16)])
    await expect(stranger.budgets.remove({ params: { id } })).rejects.toMatchObject({ status: 404 })
})

test('a device that reconnects a thousand times costs one sum and one look at its budget', async () => {
  const counted = statements(place)
  for (let n = 0; n < 1_000; n++) {
    const ended = Promise.resolve()
    place.rooms.traffic.follow(sample.device, meter(10), ended)
    await ended
  }
  await place.rooms.traffic.flush(true)
  expect(counted()).toEqual({ add: 1, ofDevices: 1, ofTags: 1, usedByDevices: 1, usedByTag: 0, save: 1 })
})

test('a namespace has a thousand budgets at most, and they cost no more than its devices', async () => {
  await using own = await startPlace()
  const counted = statements(own)
  const here = own.rooms.stores.of(sample.tenant)
  const row = { bytes: 1_000, stop_recordings: 0, stop_updates: 0, created_at: today() } as const
  const tags = Array.from({ length: mostBudgets - 1 }, (_, n) => `tag-${n}`)
  await own.rooms.stores.transaction(async (inside) => {
    for (const tag of tags) await inside.of(sample.tenant).budgets.insert({ ...row, device: null, tag })
  })
  expect(await here.budgets.count()).toBe(mostBudgets)
  await expect(
    own.administrator.budgets.create({ body: { tag: 'one-more', bytes: 1 } }),
  ).rejects.toMatchObject({ status: 403, kind: 'budgetLimit' })

  const crowd = times(1_000, 10_000)
  const model = await here.devices.find(sample.device)
  if (!model) throw new Error('there is no device to copy')
  const { id: _, ...copied } = model
  const uids = Array.from({ length: crowd }, (_unused, n) => `${n}`.padStart(64, '0'))
  await own.rooms.stores.transaction(async (inside) => {
    for (const [n, uid] of uids.entries()) {
      const its = [0, 1, 2].map((k) => tags[(n * 3 + k) % tags.length])
      const change = { uid, name: `crowd-${n}`, mac: `crowd-${n}`, tags: JSON.stringify(its) }
      await inside.of(sample.tenant).devices.insert({ ...copied, ...change })
    }
  })
  for (const uid of uids) own.rooms.traffic.follow(uid, meter(400), new Promise(() => undefined))
  counted()
  await own.rooms.traffic.flush(true)
  // All of them within one round on most machines; what a round leaves is judged by the next ones.
  for (let rounds = 0; rounds < 60 && (await undecided(own)) > 0; rounds++) await own.rooms.traffic.flush()
  const first = counted()
  expect(first).toMatchObject({ add: crowd / 1_000, ofDevices: crowd / 1_000, ofTags: crowd / 1_000 })
  expect(first['usedByTag']).toBe(tags.length)
  expect(await undecided(own)).toBe(0)
  // The devices go on using bytes, and no tag is walked over again for five minutes.
  for (const uid of uids) own.rooms.traffic.follow(uid, meter(400), new Promise(() => undefined))
  await own.rooms.traffic.flush(true)
  expect(counted()['usedByTag']).toBe(0)
  // One e-mail for all that was found together.
  const emails = (await own.emails()).filter(({ to }) => to?.[0]?.address === sample.owner.email)
  expect(emails.length).toBeLessThanOrEqual(20)
  expect(emails[0]?.text?.length).toBeLessThan(5_000)
})

/** Budgets that were never judged. */
async function undecided({ rooms }: Place): Promise<number> {
  const rows = await rooms.database.db
    .selectFrom('data_budgets')
    .select('id')
    .where('judged_at', '=', '')
    .execute()
  return rows.length - 1
}

test('whoever makes budgets again and again cannot send e-mails without end', async () => {
  await using own = await startPlace()
  const { uid } = await own.accepted('crane')
  await own.rooms.stores.trafficSums.add([{ uid, day: today(), ...nothing, session_sent: 50 }])
  for (let n = 0; n < 30; n++) {
    const { body } = await own.key.budgets.create({ body: { device: uid, bytes: 1 } })
    expect(body.state).toBe('over')
    await own.key.budgets.remove({ params: { id: body.id } })
  }
  const emails = (await own.emails()).filter(({ to }) => to?.[0]?.address === sample.owner.email)
  expect(emails).toHaveLength(20)
  expect(own.log()).toContain('"budget.unsent"')
})

test('a tag that a mail program would turn into a link is not in the e-mail', async () => {
  const tag = 'free-data.example.com'
  await place.operator.devices.addTag({ params: { uid: sample.device }, body: { tag } })
  await place.rooms.stores.trafficSums.add([
    { uid: sample.device, day: today(), ...nothing, session_sent: 50 },
  ])
  await place.key.budgets.create({ body: { tag, bytes: 50 } })
  const { text, html, subject } = await place.newestEmail(sample.owner.email)
  expect(`${text} ${html} ${subject}`).not.toContain('free-data')
  expect(text).toContain('The devices with the tag that looks like a link:')
})

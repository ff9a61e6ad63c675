// A member makes changes as fast as the server takes them, each with an entry that is as large as entries may be, and
// the audit log fills the disk: 4.5 GB in an hour. What one user and the user's API keys may write in an hour is
// bounded; beyond it one change a second passes. Others still make their changes, such as removing that member. The
// owner of a stolen token can still end what the thief has, and what has happened is written in any case.
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import type { Caller, KeyCaller, UserCaller } from '../../server/src/domain/callers/callers.ts'
import { startPlace, type Place } from '../harness/place.ts'
import { statusOf } from '../contract/people.ts'

const params = { tenant: sample.tenant }
const elsewhere = '00000000-0000-4000-8000-00000000000f'
const hour_ms = 3_600_000
const origin = { source: '127.0.0.1', host: '', secure: false, tenant_id: sample.tenant }
const oskar: UserCaller = {
  ...origin,
  kind: 'user',
  id: sample.operator.id,
  username: sample.operator.username,
  token_id: 'a.b',
  epoch: 0,
  exp: 0,
  role: 'operator',
}
const key: KeyCaller = {
  ...origin,
  kind: 'key',
  name: 'any of them',
  created_by: sample.administrator.id,
  exp: undefined,
  role: 'administrator',
}

/** Writes large entries until the server refuses; gives the bytes of their details. */
async function fill({ rooms }: Place, by: Caller): Promise<number> {
  const detail = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`field ${i}`, 'x'.repeat(1_000)]))
  const entries_bytes = 1_000 * 16_000
  const most = 20
  for (let written = 0; written < most; written++) {
    const change = rooms.audit.change(by, async (_, record) => {
      for (let entry = 0; entry < 1_000; entry++)
        record({ action: 'device.updated', target: { kind: 'device', id: '', name: '' }, detail })
    })
    if (
      await change.then(
        () => false,
        () => true,
      )
    )
      return written * entries_bytes
  }
  return most * entries_bytes
}

test('one who fills the audit log is stopped, and nobody else', async () => {
  await using place = await startPlace()
  expect(await fill(place, oskar)).toBeLessThan(160 * 1024 * 1024)
  const [one, other] = [await place.enrol(), await place.enrol()].map(({ uid }) => ({ params: { uid } }))
  place.clock.forward(hour_ms / 2)
  await place.operator.devices.accept(one!)
  await expect(place.operator.devices.accept(other!)).rejects.toMatchObject({
    status: 429,
    message:
      'You have made very many changes in this hour. Until it is over, one change a second is accepted.',
  })
  // It has happened: nobody who watches a session leaves it unseen.
  await place.rooms.audit.event(oskar, {
    action: 'session.unwatched',
    target: { kind: 'session', id: 'a session', name: '' },
  })
  // The owner of a token that somebody else fills the log with can still end it.
  const { id, password } = sample.operator
  const body = { current_password: password, new_password: 'another-rope' }
  await place.operator.users.updatePassword({ params: { id }, body })
  await place.administrator.namespaces.edit({ params, body: { name: 'quay' } })
  place.clock.forward(1_000)
  await place.operator.devices.accept(other!)
})

test('more API keys do not write more, nor do those of other namespaces', async () => {
  await using place = await startPlace()
  expect(await fill(place, key)).toBeLessThan(160 * 1024 * 1024)
  expect(await fill(place, { ...key, name: 'another', tenant_id: elsewhere })).toBe(0)
})

test('members who are added and removed for ever count', async () => {
  await using place = await startPlace()
  const { audit, namespaces } = place.rooms
  await fill(place, oskar)
  const join = async () => namespaces.join(sample.tenant, sample.observer.id, 'observer', oskar)
  const leave = async () => namespaces.leave(sample.tenant, sample.observer.id, oskar)
  await leave()
  await audit.event(oskar, { action: 'user.signed-in', target: { kind: 'user', id: oskar.id, name: '' } })
  await expect(join()).rejects.toThrow('one change a second')
})

test('exports count, too, and wait like any change', async () => {
  await using place = await startPlace()
  const owner: UserCaller = { ...oskar, ...sample.owner, role: 'owner' }
  const token = await place.world.token('owner')
  await fill(place, owner)
  const exported = async (): Promise<number> => {
    const address = `${place.url}/api/audit/export?from=2099-01-01T00:00:00Z`
    const answer = await fetch(address, { headers: { authorization: `Bearer ${token}` } })
    await answer.text()
    return answer.status
  }
  place.clock.forward(hour_ms / 2)
  expect([await exported(), await exported(), await exported()]).toEqual([200, 429, 429])
  place.clock.forward(1_000)
  expect(await exported()).toBe(200)
})

test('a thief takes no turn of the owner, and changes that write nothing take none at all', async () => {
  await using place = await startPlace()
  const { username, password } = sample.owner
  const own = place.api((await place.nobody.users.login({ body: { username, password } })).body)
  const body = { name: 'stolen', expires_at: 30, role: 'administrator' } as const
  const apiKey = (await place.owner.apiKeys.create({ body })).body.id
  const device = { params: { uid: (await place.enrol()).uid } }
  await fill(place, { ...oskar, ...sample.owner, role: 'owner' })
  using _ = place.clock.stop()
  const rule = (client: Client) =>
    statusOf(
      client.firewall.create({
        body: {
          priority: 1,
          action: 'deny',
          active: true,
          source_ip: '^192',
          username: 'root',
          filter: { hostname: 'crane' },
        },
      }),
    )
  for (const thief of [place.owner, place.api({ apiKey })]) {
    for (let n = 0; n < 3; n += 1) expect(await statusOf(thief.policies.update({ body: {} }))).toBe(200)
    expect([await rule(thief), await rule(thief)]).toEqual([200, 429])
  }
  expect([await rule(own), await rule(own)]).toEqual([200, 429])
  // Taking rights away has no turn.
  expect(await statusOf(own.devices.setStatus({ params: { ...device.params, status: 'reject' } }))).toBe(200)
  place.clock.forward(1_000)
  expect([await rule(own), await rule(own)]).toEqual([200, 429])
})

test('more sign-ins of one person write hardly more', async () => {
  await using place = await startPlace()
  await fill(place, oskar)
  using _ = place.clock.stop()
  const large = { detail: Object.fromEntries(Array.from({ length: 15 }, (__, i) => [i, 'x'.repeat(1_000)])) }
  let taken = 0
  for (let second = 0; second < 60; second += 1) {
    for (let n = 0; n < 50; n += 1)
      await place.rooms.audit
        .change({ ...oskar, token_id: `sign-in ${n}.b` }, async (__, record) =>
          record({ action: 'device.updated', target: { kind: 'device', id: '', name: '' }, ...large }),
        )
        .then(() => (taken += 1))
        .catch(() => undefined)
    place.clock.forward(1_000)
  }
  // One a second, and a first one of each of the few that have a turn of their own.
  expect(taken).toBeLessThan(80)
})

describe('what is written once in a few minutes', () => {
  const entriesOf = async ({ owner }: Place) =>
    (await owner.audit.list({ query: { action: 'user.signed-in', limit: 500 } })).body.entries.length
  /** A member with a token of another namespace, who comes from this address. */
  async function come(place: Place, addresses: readonly string[]): Promise<void> {
    const token = await place.world.token('stranger')
    for (const address of addresses) {
      const api = place.api({ token, headers: { 'x-forwarded-for': address } })
      await api.users.namespaceToken({ params })
    }
  }
  const numbers = Array.from({ length: 60 }, (_, n) => n + 1)

  test('is one entry for a network, and few for many networks', async () => {
    await using place = await startPlace()
    await place.rooms.namespaces.join(sample.tenant, sample.stranger.id, 'observer')
    const before = await entriesOf(place)
    await come(
      place,
      numbers.map((n) => `2001:db8::${n.toString(16)}`),
    )
    expect((await entriesOf(place)) - before).toBe(1)
    await come(
      place,
      numbers.map((n) => `2001:db8:0:${n.toString(16)}::1`),
    )
    expect((await entriesOf(place)) - before).toBe(16)
  })

  test('is one entry for all networks of a person who has written too much', async () => {
    await using place = await startPlace()
    await place.rooms.namespaces.join(sample.tenant, sample.stranger.id, 'observer')
    await fill(place, { ...oskar, ...sample.stranger })
    const before = await entriesOf(place)
    await come(
      place,
      numbers.map((n) => `192.0.2.${n}`),
    )
    expect((await entriesOf(place)) - before).toBe(1)
    place.clock.forward(10 * 60_000)
    await come(place, ['192.0.2.1', '192.0.2.2'])
    expect((await entriesOf(place)) - before).toBe(2)
  })
})

// A member makes changes as fast as the server takes them, each with an entry that is as large as entries may be, and
// the audit log fills the disk: 4.5 GB in an hour. What one user and the user's API keys may write in an hour is
// bounded; beyond it one change a second passes. Others still make their changes, such as removing that member. The
// owner of a stolen token can still end what the thief has, and what has happened is written in any case.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Caller, KeyCaller, UserCaller } from '../../server/src/domain/callers/callers.ts'
import { startPlace, type Place } from '../harness/place.ts'

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

// Sessions by person, device, method, time and recording: each filter alone and all of them together, with
// the number of all that fit. A user is found by name and by id, whatever the name was when the session
// began; nobody of another namespace is.
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { SessionPerson } from '@hawser/contract/sessions'
import type { SessionRow } from '../../server/src/storage/sessions.ts'
import { bothDatabases, sharedPlace, type Place } from '../harness/place.ts'

const oskar: SessionPerson = { kind: 'user', id: sample.operator.id, name: sample.operator.username }
const backup: SessionPerson = { kind: 'api-key', id: 'backup', name: 'backup', created_by: 'adam' }
const petra: SessionPerson = { kind: 'certificate', id: 'petra@example.com', name: 'petra@example.com' }

type More = 'tenant_id' | 'device_uid' | 'method' | 'active' | 'recorded' | 'held_until' | 'started_at'

let sessions = 0
async function session(
  place: Place,
  person: SessionPerson,
  more: Partial<Pick<SessionRow, More>> = {},
): Promise<string> {
  const { tenant_id = sample.tenant, device_uid = sample.device, method = 'publickey', active = 0 } = more
  const { recorded = 0, held_until = '' } = more
  const uid = `a${(++sessions).toString(16).padStart(63, '0')}`
  const { started_at: at = new Date(Date.parse('2026-01-01') + sessions * 1_000).toISOString() } = more
  await place.rooms.stores.of(tenant_id).sessions.insert({
    uid,
    device_uid,
    username: 'root',
    ip_address: '192.0.2.9',
    started_at: at,
    last_seen: at,
    active,
    authenticated: 1,
    recorded,
    held_until,
    type: 'shell',
    term: 'xterm',
    position: '{"latitude":0,"longitude":0}',
    person_kind: person.kind,
    person_id: person.id,
    person_name: person.name,
    person_created_by: person.created_by ?? '',
    via: 'ssh',
    method,
  })
  return uid
}

describe.each(bothDatabases)('on %s', (_, options) => {
  const place = sharedPlace(options)
  const ask = async (query: object) => {
    const { body, total } = await place.observer.sessions.list({ query })
    return { uids: body.map(({ uid }) => uid), total, body }
  }

  test('a person is found by every name that they have, newest first, in pages', async () => {
    const mine = [await session(place, oskar), await session(place, { ...oskar, name: 'oskar-of-old' })]
    const keys = await session(place, backup)
    const hers = await session(place, petra)
    for (const person of [oskar.id, 'oskar', 'Oskar'])
      expect(await ask({ person })).toMatchObject({ uids: mine.toReversed(), total: 2 })
    expect(await ask({ person: 'oskar', per_page: 1, page: 2 })).toMatchObject({ uids: [mine[0]], total: 2 })
    const { body, total } = await ask({ person: 'backup' })
    expect([body.map(({ uid, person }) => ({ uid, person })), total]).toEqual([
      [{ uid: keys, person: backup }],
      1,
    ])
    expect(await ask({ person: 'petra@example.com' })).toMatchObject({ uids: [hers], total: 1 })
    for (const person of ['nobody', 'oskar-of-old', '%', '*', "' or 1=1 --"])
      expect(await ask({ person }), person).toMatchObject({ uids: [], total: 0 })
  })

  test('a device and a method, alone and together with a person and with what is live', async () => {
    const { uid: device_uid } = await place.accepted('tug')
    const typed = await session(place, oskar, { device_uid, method: 'password', active: 1 })
    const keyed = await session(place, oskar, { device_uid })
    const other = await session(place, backup, { device_uid, method: 'password' })
    expect(await ask({ device_uid })).toMatchObject({ uids: [other, keyed, typed], total: 3 })
    expect(await ask({ device_uid, method: 'password' })).toMatchObject({ uids: [other, typed], total: 2 })
    expect(await ask({ device_uid, method: 'password', person: 'oskar' })).toMatchObject({ uids: [typed] })
    expect(await ask({ device_uid, person: 'oskar', active: 'false' })).toMatchObject({
      uids: [keyed],
      total: 1,
    })
    expect(await ask({ device_uid, method: 'certificate' })).toMatchObject({ uids: [], total: 0 })
  })

  test('sessions of another namespace are not found, by whatever filter', async () => {
    const stan: SessionPerson = { kind: 'user', id: sample.stranger.id, name: sample.stranger.username }
    const { uid: device_uid } = await place.enrol({ tenant_id: sample.otherTenant })
    await session(place, stan, { tenant_id: sample.otherTenant, device_uid })
    for (const query of [{ person: 'stan' }, { person: stan.id }, { device_uid }])
      expect(await ask(query)).toMatchObject({ uids: [], total: 0 })
  })

  test('a span of time has both its ends, and a day counts whole', async () => {
    const { uid: device_uid } = await place.accepted('lighter')
    const at = (started_at: string) => session(place, oskar, { device_uid, started_at })
    const first = await at('2025-03-01T00:00:00.000Z')
    const second = await at('2025-03-01T23:59:59.999Z')
    const third = await at('2025-03-02T08:30:00.000Z')
    expect(await ask({ device_uid, from: '2025-03-01', to: '2025-03-01' })).toMatchObject({
      uids: [second, first],
      total: 2,
    })
    expect(await ask({ device_uid, from: '2025-03-02T09:30:00+01:00' })).toMatchObject({ uids: [third] })
    expect(await ask({ device_uid, from: '2025-03-02T08:30:00.001Z' })).toMatchObject({ uids: [], total: 0 })
    expect(await ask({ device_uid, to: '2025-03-01T00:00:00Z' })).toMatchObject({ uids: [first], total: 1 })
    expect(await ask({ from: '2025-03-01', to: '2025-03-02', per_page: 1, page: 2 })).toMatchObject({
      uids: [second],
      total: 3,
    })
  })

  test('those with a recording, and those without', async () => {
    const { uid: device_uid } = await place.accepted('hopper')
    const kept = await session(place, oskar, { device_uid, recorded: 1 })
    const lost = await session(place, backup, { device_uid })
    expect(await ask({ device_uid, recorded: 'true' })).toMatchObject({ uids: [kept], total: 1 })
    expect(await ask({ device_uid, recorded: 'false' })).toMatchObject({ uids: [lost], total: 1 })
    const { total } = await ask({ recorded: 'true' })
    expect(await ask({ recorded: 'true', from: '2020-01-01' })).toMatchObject({ total })
  })

  test('live sessions first, held ones behind them, in pages of every size', async () => {
    const { uid: device_uid } = await place.accepted('dredger')
    const of = (more: Partial<Pick<SessionRow, More>>) => session(place, oskar, { device_uid, ...more })
    const live = await of({ active: 1 })
    const over = await of({})
    const held = await of({ active: 1, held_until: '2026-12-01T00:00:00.000Z' })
    const newer = await of({ active: 1 })
    // It was held when it ended.
    const newest = await of({ held_until: '2026-12-01T00:00:00.000Z' })
    const all = [newer, live, held, newest, over]
    const query = { device_uid, live_first: 'true' }
    expect(await ask(query)).toMatchObject({ uids: all, total: 5 })
    for (const per_page of [1, 2, 3, 4]) {
      const pages: string[] = []
      for (let page = 1; pages.length < 5; page++) {
        const { uids, total } = await ask({ ...query, per_page, page })
        expect([uids.length, total]).toEqual([Math.min(per_page, 5 - pages.length), 5])
        pages.push(...uids)
      }
      expect(pages).toEqual(all)
    }
    expect(await ask({ ...query, page: 2 })).toMatchObject({ uids: [], total: 5 })
    expect(await ask({ ...query, active: 'true' })).toMatchObject({ uids: [newer, live, held], total: 3 })
    expect(await ask({ ...query, active: 'false' })).toMatchObject({ uids: [newest, over], total: 2 })
    expect(await ask({ device_uid }), 'without it, as ever').toMatchObject({
      uids: [newest, newer, held, over, live],
    })
    const every = await ask({ live_first: 'true', per_page: 100 })
    const plain = await ask({ per_page: 100 })
    expect(every.total).toBe(plain.total)
    expect(new Set(every.uids)).toEqual(new Set(plain.uids))
  })

  test('refused logins by device, reason and time', async () => {
    const { refusals } = place.rooms.stores.of(sample.tenant)
    const refused = (reference: string, at: string, last_at: string, about: object) =>
      refusals.add({
        reference,
        at,
        last_at,
        times: 1,
        detail: JSON.stringify({ sshid: 'x', source: '192.0.2.9', via: 'ssh', attempts: 1, ...about }),
      })
    await refused('AAAA-2222', '2025-05-01T10:00:00.000Z', '2025-05-01T11:00:00.000Z', {
      reason: 'firewall',
      device: sample.device,
    })
    await refused('BBBB-2222', '2025-05-02T10:00:00.000Z', '2025-05-02T10:00:00.000Z', { reason: 'password' })
    await refused('CCCC-2222', '2025-05-03T10:00:00.000Z', '2025-05-03T10:00:00.000Z', {
      reason: 'password',
      device: sample.device,
    })
    const look = async (query: object) => {
      const { body, total } = await place.administrator.logins.refusals({ query })
      return [body.map(({ reference }) => reference.slice(0, 4)), total]
    }
    const within = { from: '2025-05-01', to: '2025-05-03' }
    expect(await look(within)).toEqual([['CCCC', 'BBBB', 'AAAA'], 3])
    expect(await look({ ...within, per_page: 1, page: 2 })).toEqual([['BBBB'], 3])
    expect(await look({ ...within, device_uid: sample.device })).toEqual([['CCCC', 'AAAA'], 2])
    expect(await look({ ...within, device_uid: sample.device, per_page: 1, page: 2 })).toEqual([['AAAA'], 2])
    expect(await look({ ...within, reason: 'password' })).toEqual([['CCCC', 'BBBB'], 2])
    expect(await look({ ...within, reason: 'password', device_uid: sample.device })).toEqual([['CCCC'], 1])
    // It went on for an hour.
    expect(await look({ from: '2025-05-01T10:30:00Z', to: '2025-05-01T10:31:00Z' })).toEqual([['AAAA'], 1])
    for (const query of [{ reason: 'telepathy' }, { from: 'yesterday' }, { device_uid: 'crane-1' }])
      await expect(look(query), JSON.stringify(query)).rejects.toMatchObject({ status: 400 })
  })

  test.each([
    { person: '' },
    { method: 'telepathy' },
    { device_uid: 'tug' },
    { person: 'x'.repeat(256) },
    { from: '2026' },
    { from: 'yesterday, at noon' },
    { from: '2026-02-30T10:00' },
    { to: '2026-13-01' },
    { to: '17.11.2026 10:00' },
    { recorded: 'perhaps' },
    { live_first: '2' },
  ])('%j is refused', async (query) => {
    await expect(place.observer.sessions.list({ query: query as object })).rejects.toMatchObject({
      status: 400,
    })
  })
})

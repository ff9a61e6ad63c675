// A flood of refusals must not fill the audit log, and must not be dropped in silence. Attackers try logins
// and sign-ins by the thousand, from one address, from many, and with names of namespaces that do not exist.
// The test counts entries and what they say, and what the server holds meanwhile.
import { sample } from '@hawser/contract/examples'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { stranger } from '../../server/src/domain/audit/audit.ts'
import { auditRefusals } from '../../server/src/domain/audit/refusals.ts'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()
const minute_ms = 60_000

function opened() {
  const { stores, audit } = place.rooms
  const errors: unknown[] = []
  const refusals = auditRefusals({
    stores,
    audit,
    clock: place.clock,
    onError: (error) => errors.push(error),
  })
  const knock = (source: string, reason = 'password', scope: object = { tenant_id: sample.tenant }) =>
    refusals.add({
      scope: scope as { tenant_id: string },
      by: stranger(source),
      action: 'login.refused',
      target: { kind: 'device', id: sample.device, name: 'crane-1' },
      reason,
    })
  const entries = async (since: number) =>
    (await place.owner.audit.list({ query: { action: 'login.refused', after: since, limit: 500 } })).body
      .entries
  const seq = async () => (await place.owner.audit.head({})).body.seq
  return { refusals, knock, entries, seq, errors }
}

const sum = (numbers: readonly unknown[]): number =>
  numbers.reduce<number>((total, number) => total + (typeof number === 'number' ? number : 0), 0)

describe('a flood of refused logins', () => {
  test('from one address is two entries a minute, which count all of them', async () => {
    const { refusals, knock, entries, seq } = opened()
    const before = await seq()
    for (let n = 0; n < 5000; n++) knock('192.0.2.66')
    await refusals.settled()
    expect(await entries(before)).toHaveLength(1)
    place.clock.forward(minute_ms + 1)
    await refusals.settled()
    const all = await entries(before)
    expect(all).toHaveLength(2)
    expect(all[1]).toMatchObject({ source: '192.0.2.66', detail: { repeated: 4999, reason: 'password' } })
    await refusals[Symbol.asyncDispose]()
  })

  test('that goes on when the minute is over loses no count', async () => {
    const { refusals, knock, entries, seq } = opened()
    const before = await seq()
    for (let n = 0; n < 10; n++) knock('192.0.2.73')
    place.clock.forward(minute_ms + 1)
    for (let n = 0; n < 5; n++) knock('192.0.2.73')
    await refusals[Symbol.asyncDispose]()
    expect((await entries(before)).map(({ detail }) => detail['repeated'])).toEqual([
      undefined,
      9,
      undefined,
      4,
    ])
  })

  test('from ten thousand addresses is a few dozen entries, which count all of them', async () => {
    const { refusals, knock, entries, seq } = opened()
    const before = await seq()
    for (let n = 0; n < 10_000; n++) knock(`2001:db8:${(n >> 8).toString(16)}:${(n & 255).toString(16)}::1`)
    place.clock.forward(minute_ms + 1)
    await refusals.settled()
    const all = await entries(before)
    expect(all.length).toBeLessThanOrEqual(64)
    const counted = all.filter(({ detail }) => detail['repeated'] !== undefined)
    const firsts = all.length - counted.length
    expect(firsts + sum(counted.map(({ detail }) => detail['repeated']))).toBe(10_000)
    expect(all.some(({ detail }) => detail['many_sources'] === true)).toBe(true)
    await refusals[Symbol.asyncDispose]()
  })

  test('at namespaces that do not exist leaves nothing', async () => {
    const { refusals, knock, errors } = opened()
    const heads = async () =>
      (await place.rooms.database.db.selectFrom('audit_heads').select('tenant_id').execute()).length
    const before = await heads()
    for (let n = 0; n < 500; n++) knock('192.0.2.67', 'unknown-device', { namespace: `nowhere-${n}` })
    knock('192.0.2.67', 'unknown-device', { tenant_id: 'gone' })
    await refusals.settled()
    expect(await heads()).toBe(before)
    expect(errors).toEqual([])
    await refusals[Symbol.asyncDispose]()
  })

  test('at more namespaces than are told apart is counted in the server’s own log, in one place', async () => {
    const { refusals, knock } = opened()
    const own = async () =>
      (await place.rooms.auditLog.entries('', { action: 'login.refused', limit: 100 })).toReversed()
    const before = (await own()).length
    for (let n = 0; n < 10_000; n++) knock('192.0.2.69', 'unknown-device', { namespace: `crowd-${n}` })
    for (let n = 0; n < 700; n++) knock(`192.0.2.${n % 200}`, 'unknown-device', { namespace: `more-${n}` })
    await refusals[Symbol.asyncDispose]()
    expect((await own()).slice(before)).toMatchObject([
      { source: '', detail: { reason: 'too-many', many_sources: true } },
      { source: '', detail: { reason: 'too-many', repeated: 699 } },
    ])
  })

  test('is counted to the end when the server stops', async () => {
    const { refusals, knock, entries, seq } = opened()
    const before = await seq()
    for (let n = 0; n < 10; n++) knock('192.0.2.68', 'firewall')
    await refusals[Symbol.asyncDispose]()
    expect((await entries(before)).map(({ detail }) => detail['repeated'])).toEqual([undefined, 9])
  })
})

describe('while the audit log cannot be written', () => {
  /** The database takes no entries, as if its disk was full. */
  async function full() {
    const { db } = place.rooms.database
    const refuses = sql`begin select raise(abort, 'full'); end`
    await sql`create trigger full before insert on audit_entries ${refuses}`.execute(db)
    return { [Symbol.asyncDispose]: async () => void (await sql`drop trigger if exists full`.execute(db)) }
  }

  test('refused logins wait, and their entries say when they were', async () => {
    const { refusals, knock, entries, seq, errors } = opened()
    const before = await seq()
    const at = new Date(place.clock.now()).toISOString()
    let later: string
    {
      await using _ = await full()
      knock('192.0.2.70')
      knock('192.0.2.70')
      later = new Date(place.clock.now()).toISOString()
      await refusals.settled()
      place.clock.forward(minute_ms + 1)
      await refusals.settled()
      knock('192.0.2.71')
      await refusals.settled()
    }
    expect(errors.length).toBeGreaterThan(0)
    expect(await seq()).toBe(before)
    await refusals.settled()
    const all = await entries(before)
    expect(all).toMatchObject([
      { source: '192.0.2.70', detail: {} },
      { source: '192.0.2.70', detail: { repeated: 1 } },
      { source: '192.0.2.71', detail: { reason: 'password' } },
    ])
    for (const moment of [all[0]?.detail['refused_at'], all[1]?.detail['last_at']].map(String))
      expect([at, moment, later]).toEqual([at, moment, later].toSorted())
    await refusals.settled()
    expect(await entries(before)).toHaveLength(3)
    await refusals[Symbol.asyncDispose]()
  })

  test('so many wait, and the server’s own log says how many are missing', async () => {
    const { refusals, knock } = opened()
    const own = async () =>
      (await place.rooms.auditLog.entries('', { action: 'login.refused', limit: 100 })).toReversed()
    const before = (await own()).length
    {
      await using _ = await full()
      // Each is written into a log that is there, or the database would not be asked for an entry.
      knock('192.0.2.72')
      for (let minute = 0; minute < 3; minute++) {
        for (let n = 0; n < 9_000; n++) {
          knock('192.0.2.72', 'unknown-device', { namespace: `full-${minute}-${n}` })
          if (minute === 2) knock('192.0.2.72', 'unknown-device', { namespace: `full-${minute}-${n}` })
        }
        await refusals.settled()
        place.clock.forward(minute_ms + 1)
        await refusals.settled()
      }
    }
    await refusals[Symbol.asyncDispose]()
    // Of the third minute 1,999 fit, and the second attempts at all 9,000 do not.
    expect((await own()).slice(before)).toMatchObject([
      { actor: { kind: 'anonymous' }, detail: { reason: 'too-many', missing: 27_001 - 20_000 + 9_000 } },
    ])
  })
})

test('whoever makes somebody a member learns nothing about the account', async () => {
  await place.stranger.namespaces.addMember({
    params: { tenant: sample.otherTenant },
    body: { identifier: sample.operator.username, role: 'observer' },
  })
  const body = { username: sample.operator.username, password: 'wrong-again' }
  await expect(place.api().users.login({ body })).rejects.toThrow()
  await place.operator.users.updatePassword({
    params: { id: sample.operator.id },
    body: { current_password: sample.operator.password, new_password: 'rope-and-anchor-2' },
  })
  await place.rooms.auditedRefusals.settled()
  const about = async (client: typeof place.owner) =>
    (await client.audit.list({ query: { target: sample.operator.id } })).body.entries.map(
      ({ action }) => action,
    )
  expect(await about(place.stranger)).toEqual(['member.added'])
  expect(await about(place.owner)).toEqual(
    expect.arrayContaining(['user.password.changed', 'user.sign-in.refused']),
  )
})

test('a hundred wrong passwords leave a handful of entries', async () => {
  const { seq } = opened()
  const before = await seq()
  for (let n = 0; n < 100; n++)
    await place
      .api()
      .users.login({ body: { username: sample.observer.username, password: `wrong-${n}` } })
      .catch(() => undefined)
  await place.rooms.auditedRefusals.settled()
  const { entries } = (
    await place.owner.audit.list({ query: { action: 'user.sign-in.refused', after: before } })
  ).body
  expect(entries.length).toBeLessThanOrEqual(3)
  expect(JSON.stringify(entries)).not.toContain('wrong-')
})

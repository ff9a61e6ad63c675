// Where one is signed in: what the list says, that an ended sign-in is refused at the next request with all of its
// tokens, that a new password leaves one, and that there are never more than fifty.
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { UserClaims } from '../../server/src/domain/callers/tokens.ts'
import { day_ms, hour_ms, iso, minute_ms } from '../../server/src/kit/clock.ts'
import { startPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'
import { from, refused, statusOf } from './people.ts'

const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'
const { username, password } = sample.operator

/** Signs in as this client from this address. */
async function signIn(
  place: Place,
  agent: string,
  address: string,
  who: { username: string; password: string } = sample.operator,
) {
  const { headers } = from(address)
  const { body } = await place
    .api({ headers: { ...headers, 'user-agent': agent } })
    .users.login({ body: { username: who.username, password: who.password } })
  return {
    token: body.token,
    client: place.api({ token: body.token, headers: { ...headers, 'user-agent': agent } }),
  }
}

describe.each(oneDatabase)('on %s', (_, options) => {
  test('the list says which client, from where, since when, and which is this one', async () => {
    await using place = await startPlace(await options())
    await place.operator.signIns.endOthers()
    const browser = await signIn(place, firefox, '192.0.2.1')
    place.clock.forward(minute_ms)
    const shell = await signIn(place, 'hawser/0.1.0 (laptop)', '192.0.2.2')
    const { body } = await browser.client.signIns.list()
    expect(body.map(({ client, source, current }) => [client, source, current])).toEqual([
      ['hawser on laptop', '192.0.2.2', false],
      ['Firefox on Linux', '192.0.2.1', true],
      [expect.any(String), '127.0.0.1', false],
    ])
    const used = body[1]!.used_at
    // The last use is noted every few minutes, with the address that it came from.
    place.clock.forward(6 * minute_ms)
    await place.api({ token: browser.token, ...from('192.0.2.77') }).devices.list()
    await place.rooms.background.settled()
    const latest = (await shell.client.signIns.list()).body.find(({ source }) => source === '192.0.2.1')
    expect(latest).toMatchObject({ client: 'Firefox on Linux', source: '192.0.2.1', used_from: '192.0.2.77' })
    expect(latest!.used_at > used).toBe(true)
    expect((await place.observer.signIns.list()).body.map(({ source }) => source)).not.toContain('192.0.2.1')
  })

  test('an ended one is refused at the next request, with every token that came from it', async () => {
    await using place = await startPlace(await options())
    const lost = await signIn(place, firefox, '192.0.2.1')
    const fresh = (await lost.client.users.refresh()).body.token
    const there = (await lost.client.users.namespaceToken({ params: { tenant: sample.tenant } })).body.token
    const [row] = (await place.operator.signIns.list()).body.filter(({ source }) => source === '192.0.2.1')
    await place.operator.signIns.end({ params: { id: row!.id } })
    for (const token of [lost.token, fresh, there]) {
      expect(await statusOf(place.api({ token }).devices.list())).toBe(401)
      expect(await statusOf(place.api({ token }).users.refresh())).toBe(401)
    }
    expect((await place.operator.devices.list()).status).toBe(200)
    expect(await statusOf(place.operator.signIns.end({ params: { id: row!.id } }))).toBe(404)
    const { entries } = (await place.owner.audit.list()).body
    expect(entries.find(({ action }) => action === 'user.signed-out')).toMatchObject({
      actor: { name: username },
      detail: { sign_ins: 1 },
    })
  })

  test('signing out ends one’s own; all others end at once, and API keys go on', async () => {
    await using place = await startPlace(await options())
    const own = await signIn(place, firefox, '192.0.2.1')
    await own.client.signIns.end({ params: { id: 'current' } })
    expect(await statusOf(own.client.devices.list())).toBe(401)

    const others = await Promise.all(
      [1, 2, 3].map((n) => signIn(place, firefox, `192.0.2.${n}`, sample.administrator)),
    )
    const { body } = await place.administrator.signIns.endOthers()
    // These three, and one of the examples.
    expect(body.ended).toBe(4)
    for (const { client } of others) expect(await statusOf(client.devices.list())).toBe(401)
    expect((await place.administrator.signIns.list()).body).toHaveLength(1)
    expect((await place.administrator.signIns.endOthers()).body.ended).toBe(0)
    expect((await place.key.namespaces.get({ params: { tenant: sample.tenant } })).status).toBe(200)
  })

  test('a new password leaves the one that set it, a link by e-mail none', async () => {
    await using place = await startPlace(await options())
    const other = await signIn(place, firefox, '192.0.2.1')
    await place.operator.users.update({ body: { password: 'another-rope', current_password: password } })
    expect(await statusOf(other.client.devices.list())).toBe(401)
    expect((await place.operator.signIns.list()).body.map(({ current }) => current)).toEqual([true])
    expect((await place.observer.signIns.list()).body.length).toBeGreaterThan(0)
    await place.api().users.resetPassword({
      params: { uid: sample.observer.id },
      body: { password: 'another-rope', token: sample.recoveryToken },
    })
    expect(await place.rooms.stores.signIns.of(sample.observer.id, '')).toEqual([])
  })

  test('the fifty-first ends the one that was not used for longest', async () => {
    await using place = await startPlace(await options())
    const first = await signIn(place, firefox, '192.0.2.1')
    await place.rooms.stores.signIns.endOthers(sample.operator.id, '')
    const kept = await signIn(place, firefox, '192.0.2.2')
    place.clock.forward(minute_ms)
    for (let n = 0; n < 50; n += 1) await signIn(place, firefox, '192.0.2.3')
    expect(await statusOf(kept.client.devices.list())).toBe(401)
    expect(await statusOf(first.client.devices.list())).toBe(401)
    expect(await place.rooms.stores.signIns.of(sample.operator.id, '')).toHaveLength(50)
  })

  test('one that is used goes on, one that is not is swept away after its last token', async () => {
    await using place = await startPlace(await options())
    const { stores } = place.rooms
    let { token } = await signIn(place, firefox, '192.0.2.1')
    for (let days = 0; days < 6; days += 2) {
      place.clock.forward(2 * day_ms)
      token = (await place.api({ token }).users.refresh()).body.token
      await stores.signIns.sweep(new Date(place.clock.now()).toISOString())
    }
    expect((await place.api({ token }).signIns.list()).body).toHaveLength(1)
    place.clock.forward(72 * hour_ms - 1000)
    await stores.signIns.sweep(new Date(place.clock.now()).toISOString())
    expect((await place.api({ token }).devices.list()).status).toBe(200)
    place.clock.forward(13 * hour_ms)
    await stores.signIns.sweep(new Date(place.clock.now()).toISOString())
    expect(await stores.signIns.of(sample.operator.id, '')).toEqual([])
  })
})

test.each([
  ['it', 90],
  ['one of an older server, whose tokens say nothing of an end,', 92],
] as const)('however often it is prolonged, %s ends %i days after it began', async (which, days) => {
  await using place = await startPlace()
  const { tokens, stores } = place.rooms
  let { token } = await signIn(place, firefox, '192.0.2.1')
  if (which !== 'it') {
    const { sid, id, tenant, name, mfa, ver } = (await tokens.verify(token)) as UserClaims
    token = await tokens.forUser({ sid, id, tenant, name, mfa, ver })
  }
  const prolong = async (ms: number) => {
    place.clock.forward(ms)
    token = (await place.api({ token }).users.refresh()).body.token
  }
  for (let day = 2; day < days; day += 2) await prolong(2 * day_ms)
  await prolong(2 * day_ms - minute_ms)
  await expect(prolong(2 * minute_ms)).rejects.toMatchObject({ kind: 'unauthenticated' })
  place.clock.forward(day_ms / 2)
  expect(await stores.signIns.of(sample.operator.id, iso(place.clock.now()))).toEqual([])
})

test('a sign-in of somebody else is not there to be ended, and an API key has none', async () => {
  await using place = await startPlace()
  const refusal = await refused(place.owner.signIns.end({ params: { id: sample.signIn } }))
  expect(refusal.kind).toBe('notFound')
  expect(await place.rooms.stores.signIns.of(sample.observer.id, '')).not.toEqual([])
  expect((await refused(place.key.signIns.list())).kind).toBe('apiKeyRefused')
  expect(await statusOf(place.owner.signIns.end({ params: { id: 'everybody' } }))).toBe(404)
})

test('a token without a sign-in, as older servers made them, is refused', async () => {
  await using place = await startPlace()
  const { tokens, stores } = place.rooms
  const user = (await stores.users.find(sample.owner.id))!
  const member = (await stores.namespaces.member(sample.tenant, user.id))!
  const claims = { id: user.id, tenant: sample.tenant, name: 'olga', mfa: false, ver: `1.${member.epoch}` }
  for (const sign_in of ['', sample.signIn])
    expect(
      await statusOf(place.api({ token: await tokens.forUser({ ...claims, sid: sign_in }) }).devices.list()),
    ).toBe(401)
})

test('what a client says it is, is one short line', async () => {
  await using place = await startPlace()
  const { token } = await signIn(place, `x/1 ${'y'.repeat(5000)}`, '192.0.2.1')
  const [row] = (await place.api({ token }).signIns.list()).body.filter(({ current }) => current)
  expect([row!.agent.length, row!.client]).toEqual([256, 'x'])
})

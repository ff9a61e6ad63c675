// Sessions as members see them and as agents report on them: lists, the embedded device, closing, recording,
// replay.
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { recordingSweep } from '../../server/src/domain/sessions/recording-sweep.ts'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent, type OldAgent } from '../harness/old-agent.ts'
import { bothDatabases, sharedPlace, startPlace, type Place } from '../harness/place.ts'

const refused = (status: number) => ({ status })
const params = { uid: sample.session }
const elsewhere = 'f'.repeat(64)
const frame = { uid: sample.session, message: 'login: ', width: 80, height: 24 }

let sessions = 0
/** A live session of a device, as the gateway will make it. */
async function session(
  place: Place,
  device_uid: string,
  more: { tenant_id?: string; started_at?: string } = {},
): Promise<string> {
  const { tenant_id = sample.tenant, started_at = new Date(place.clock.now()).toISOString() } = more
  const uid = (++sessions).toString(16).padStart(64, '0')
  await place.rooms.stores.of(tenant_id).sessions.insert({
    uid,
    device_uid,
    username: 'root',
    ip_address: '192.0.2.9',
    started_at,
    last_seen: started_at,
    active: 1,
    authenticated: 0,
    recorded: 0,
    type: 'none',
    term: 'xterm',
    position: '{"latitude":1.5,"longitude":-2}',
  })
  return uid
}

/** An accepted device whose tunnel has proved its key, so that its calls count. */
async function connected(place: Place, hostname: string): Promise<OldAgent> {
  const agent = await startOldAgent(place, { version: 2, tenant_id: sample.tenant, hostname })
  await place.owner.devices.accept({ params: { uid: agent.uid } })
  await eventually(async () => {
    const row = await place.rooms.stores.of(sample.tenant).devices.find(agent.uid)
    expect(row?.proved_token).toMatch(/./)
  })
  return agent
}

const get = async (place: Place, uid: string) => (await place.observer.sessions.get({ params: { uid } })).body

describe('one session', () => {
  const place = sharedPlace()

  test('shows everything of itself and its device as it is now', async () => {
    const device = await place.accepted('tug')
    const uid = await session(place, device.uid)
    const shown = await get(place, uid)
    expect(shown).toEqual({
      uid,
      device_uid: device.uid,
      device: (await place.observer.devices.get({ params: { uid: device.uid } })).body,
      tenant_id: sample.tenant,
      username: 'root',
      ip_address: '192.0.2.9',
      started_at: shown.started_at,
      last_seen: shown.started_at,
      active: true,
      authenticated: false,
      recorded: false,
      secrets_masked: 0,
      held: false,
      unrecorded: false,
      type: 'none',
      term: 'xterm',
      position: { latitude: 1.5, longitude: -2 },
      person: { kind: 'unknown', id: '', name: '' },
      via: '',
      method: '',
      client: '',
    })
    await place.operator.devices.update({ params: { uid: device.uid }, body: { name: 'barge' } })
    expect((await get(place, uid)).device.name).toBe('barge')
  })

  test('is authenticated, or not, by the device or an administrator, with either method', async () => {
    await using device = await connected(place, 'scow')
    const uid = await session(place, device.uid)
    const own = place.api({ token: device.token })
    for (const client of [own, place.administrator, place.key]) {
      expect(
        (await client.sessions.setAuthenticated({ params: { uid }, body: { authenticated: true } })).body,
      ).toBeUndefined()
      expect((await get(place, uid)).authenticated).toBe(true)
      await client.sessions.setAuthenticated({ params: { uid }, body: {} })
      expect((await get(place, uid)).authenticated).toBe(true)
      await client.sessions.setAuthenticated({ params: { uid }, body: { authenticated: false } })
      expect((await get(place, uid)).authenticated).toBe(false)
    }
    const response = await fetch(`${place.url}/api/sessions/${uid}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${device.token}`, 'content-type': 'application/json' },
      body: '{"authenticated":true}',
    })
    expect(response.status).toBe(200)
    expect((await get(place, uid)).authenticated).toBe(true)
    for (const authenticated of ['true', 1, null]) {
      const body = { authenticated: authenticated as unknown as boolean }
      await expect(own.sessions.setAuthenticated({ params: { uid }, body })).rejects.toMatchObject(
        refused(400),
      )
    }
  })
})

describe('another’s session', () => {
  const place = sharedPlace()
  const calls: Record<string, (client: Client, uid: string) => Promise<unknown>> = {
    get: (client, uid) => client.sessions.get({ params: { uid } }),
    setAuthenticated: (client, uid) =>
      client.sessions.setAuthenticated({ params: { uid }, body: { authenticated: true } }),
    events: (client, uid) => client.sessions.events({ params: { uid } }),
    play: (client, uid) => client.sessions.play({ params: { uid } }),
    close: (client, uid) => client.sessions.close({ params: { uid }, body: { device: sample.device } }),
    record: (client, uid) => client.sessions.record({ params: { uid }, body: { ...frame, uid } }),
    cast: (client, uid) => client.sessions.cast({ params: { uid } }),
    removeRecording: (client, uid) => client.sessions.removeRecording({ params: { uid } }),
  }

  test.each(Object.keys(calls))(
    '%s: one of another namespace, and one that does not exist, are 404',
    async (name) => {
      const before = await get(place, sample.session)
      for (const uid of [sample.session, elsewhere])
        await expect(calls[name]!(place.stranger, uid)).rejects.toMatchObject(refused(404))
      expect(await get(place, sample.session)).toEqual(before)
    },
  )

  test.each(Object.keys(calls).filter((name) => name !== 'record'))(
    '%s: a malformed uid is 404',
    async (name) => {
      for (const uid of ['one', 'F'.repeat(64), '3'.repeat(63)])
        await expect(calls[name]!(place.owner, uid)).rejects.toMatchObject(refused(404))
    },
  )

  test.each(['setAuthenticated', 'record'])(
    '%s: a device reaches its own sessions and no others',
    async (name) => {
      await using one = await connected(place, `punt-${name.toLowerCase()}`)
      await using two = await connected(place, `raft-${name.toLowerCase()}`)
      const uid = await session(place, one.uid)
      await expect(calls[name]!(place.api({ token: two.token }), uid)).rejects.toMatchObject(refused(404))
      expect(await get(place, uid)).toMatchObject({ authenticated: false, recorded: false })
      await calls[name]!(place.api({ token: one.token }), uid)
    },
  )

  test.each(['get', 'play', 'cast', 'close', 'removeRecording'])(
    '%s: is not for devices, not even of their own sessions',
    async (name) => {
      await expect(calls[name]!(place.device, sample.session)).rejects.toMatchObject(refused(403))
    },
  )

  test.each(['setAuthenticated', 'play', 'cast', 'close', 'record', 'removeRecording'])(
    '%s: an operator gets 403',
    async (name) => {
      const before = await get(place, sample.session)
      for (const client of [place.operator, place.observer])
        await expect(calls[name]!(client, sample.session)).rejects.toMatchObject(refused(403))
      expect(await get(place, sample.session)).toEqual(before)
    },
  )
})

describe('closing', () => {
  const place = sharedPlace()
  const close = (uid: string, device: string, client = place.administrator) =>
    client.sessions.close({ params: { uid }, body: { device } })

  test('ends the session in the records, once and for all, and nothing else of it', async () => {
    const uid = await session(place, sample.device)
    const before = await get(place, uid)
    const active = async () => (await place.observer.system.stats()).body.active_sessions
    const count = await active()
    place.clock.forward(1000)
    expect((await close(uid, sample.device)).body).toBeUndefined()
    const after = await get(place, uid)
    expect(after).toEqual({ ...before, active: false, last_seen: after.last_seen })
    expect(await active()).toBe(count - 1)
    place.clock.forward(1000)
    await close(uid, sample.device, place.key)
    expect(await get(place, uid)).toEqual(after)
    expect(await active()).toBe(count - 1)
  })

  test('needs the session’s own device: another one is 404, none or half a one is 400', async () => {
    const uid = await session(place, sample.device)
    await expect(close(uid, sample.pendingDevice)).rejects.toMatchObject(refused(404))
    await expect(close(uid, elsewhere)).rejects.toMatchObject(refused(404))
    for (const device of ['', 'crane-1', sample.device.slice(1), undefined as unknown as string])
      await expect(close(uid, device)).rejects.toMatchObject(refused(400))
    expect((await get(place, uid)).active).toBe(true)
  })

  test('a session that was handed to a device that took another’s place is closed with the new device', async () => {
    const old = await place.enrol({ mac: 'same', hostname: 'winch' })
    await place.operator.devices.accept({ params: { uid: old.uid } })
    const uid = await session(place, old.uid)
    const next = await place.enrol({ mac: 'same' })
    await place.operator.devices.accept({ params: { uid: next.uid } })
    await expect(close(uid, old.uid)).rejects.toMatchObject(refused(404))
    await close(uid, next.uid)
  })
})

describe('recording', () => {
  const place = sharedPlace()

  test('adds frames that are played in the order in which they came', async () => {
    await using device = await connected(place, 'tug')
    const uid = await session(place, device.uid)
    const own = place.api({ token: device.token })
    const messages = ['login: ', 'root\r\n', '\u001b[31mred\u001b[0m é 🚢', '', 'x'.repeat(100_000)]
    expect((await place.administrator.sessions.play({ params: { uid } })).body).toEqual([])
    for (const [index, message] of messages.entries()) {
      place.clock.forward(10)
      const body = { uid, message, width: 80 + index, height: 24, namespace: sample.namespace }
      expect(
        (await (index % 2 === 0 ? own : place.administrator).sessions.record({ params: { uid }, body })).body,
      ).toBeUndefined()
    }
    expect((await get(place, uid)).recorded).toBe(true)
    const { body } = await place.administrator.sessions.play({ params: { uid } })
    expect(body.map(({ message }) => message)).toEqual(messages)
    expect(body[0]).toEqual({
      uid,
      message: 'login: ',
      tenant_id: sample.tenant,
      time: body[0]!.time,
      width: 80,
      height: 24,
    })
    expect(body.map(({ width }) => width)).toEqual([80, 81, 82, 83, 84])
    expect(body.map(({ time }) => time)).toEqual(body.map(({ time }) => time).toSorted())
    expect(Math.abs(Date.parse(body[0]!.time) - place.clock.now())).toBeLessThan(60_000)
  })

  test('while the namespace does not record, stores nothing and answers 200', async () => {
    const uid = await session(place, sample.device)
    const record = () => place.administrator.sessions.record({ params: { uid }, body: { ...frame, uid } })
    const set = (session_record: boolean) =>
      place.owner.namespaces.setSessionRecord({ params: { tenant: sample.tenant }, body: { session_record } })
    const frames = async () => (await place.owner.sessions.play({ params: { uid } })).body.length
    await set(false)
    await record()
    expect([(await get(place, uid)).recorded, await frames()]).toEqual([false, 0])
    await set(true)
    await record()
    expect([(await get(place, uid)).recorded, await frames()]).toEqual([true, 1])
    // What was recorded stays when recording is switched off.
    await set(false)
    await record()
    expect([(await get(place, uid)).recorded, await frames()]).toEqual([true, 1])
    await set(true)
  })

  test('of one session is not shown as another’s', async () => {
    const [one, two] = [await session(place, sample.device), await session(place, sample.device)]
    await place.administrator.sessions.record({ params: { uid: one }, body: { ...frame, uid: one } })
    expect((await place.owner.sessions.play({ params: { uid: two } })).body).toEqual([])
  })

  test.each<[string, object]>([
    ['the uid of another session', { uid: elsewhere }],
    ['no uid', { uid: undefined }],
    ['half a uid', { uid: 'one' }],
    ['no message', { message: undefined }],
    ['a message that is no text', { message: 5 }],
    ['no width', { width: undefined }],
    ['a width as text', { width: '80' }],
    ['half a width', { width: 80.5 }],
    ['a width below nought', { width: -1 }],
    ['no height', { height: undefined }],
    ['a height as text', { height: '24' }],
  ])('with %s is refused with 422 and a message', async (_, more) => {
    const body = { ...frame, ...more }
    for (const client of [place.device, place.administrator]) {
      const call = client.sessions.record({ params, body })
      await expect(call).rejects.toMatchObject({
        status: 422,
        body: { message: expect.stringMatching(/\w/) as unknown },
      })
    }
  })

  test('with a body that is no JSON is refused with 422', async () => {
    const response = await fetch(`${place.url}/api/sessions/${sample.session}/record`, {
      method: 'POST',
      headers: { 'x-api-key': sample.apiKey, 'content-type': 'application/json' },
      body: '{"uid":',
    })
    expect([response.status, Object.keys((await response.json()) as object)]).toEqual([422, ['message']])
  })

  test('is deleted without its session', async () => {
    const uid = await session(place, sample.device)
    const before = await get(place, uid)
    await place.administrator.sessions.record({ params: { uid }, body: { ...frame, uid } })
    expect((await place.administrator.sessions.removeRecording({ params: { uid } })).body).toBeUndefined()
    expect(await get(place, uid)).toEqual(before)
    expect((await place.administrator.sessions.play({ params: { uid } })).body).toEqual([])
    // Once more changes nothing, and what is recorded afterwards is there.
    await place.administrator.sessions.removeRecording({ params: { uid } })
    await place.administrator.sessions.record({ params: { uid }, body: { ...frame, uid } })
    expect((await place.administrator.sessions.play({ params: { uid } })).body).toHaveLength(1)
  })
})

const removals = async (place: Place) =>
  (
    await place.rooms.auditLog.entries(sample.tenant, { action: 'recording.removed', limit: 100 })
  ).toReversed()

test('a recording is kept for as many days as the installation says, counted from the end of its session', async () => {
  await using place = await startPlace()
  const { stores, audit, recordings } = place.rooms
  const [ended, going] = [await session(place, sample.device), await session(place, sample.device)]
  for (const uid of [ended, going])
    await place.administrator.sessions.record({ params: { uid }, body: { ...frame, uid } })
  await place.administrator.sessions.close({ params: { uid: ended }, body: { device: sample.device } })
  const sweep = (days: number) => recordingSweep({ stores, audit, recordings, clock: place.clock, days })()
  const kept = async (uid: string) => (await recordings.channels(sample.tenant, uid)).length
  place.clock.forward(29 * 86_400_000)
  await sweep(30)
  place.clock.forward(2 * 86_400_000)
  await sweep(0)
  expect([await kept(ended), await kept(going)]).toEqual([1, 1])
  await sweep(30)
  expect([await kept(ended), await kept(going)]).toEqual([0, 1])
  expect(await stores.of(sample.tenant).sessions.find(ended)).toMatchObject({ recorded: 0 })
  expect(await removals(place)).toMatchObject([
    {
      actor: { kind: 'server' },
      target: { kind: 'namespace', id: sample.tenant },
      detail: { days: 30, count: 1, sessions: [ended] },
    },
  ])
})

test('old recordings do not go without their entry, and one that could not be removed goes with the next sweep', async () => {
  await using place = await startPlace()
  const { stores, audit, recordings } = place.rooms
  const { clock } = place
  const uids: string[] = []
  for (let n = 0; n < 230; n++) {
    const uid = await session(place, sample.device)
    await stores.of(sample.tenant).sessions.save(uid, { recorded: 1, active: 0 })
    uids.push(uid)
  }
  const last = uids.at(-1) ?? ''
  await place.administrator.sessions.record({ params: { uid: last }, body: { ...frame, uid: last } })
  clock.forward(31 * 86_400_000)
  const store = { isAway: true }
  const remove: typeof recordings.remove = async (tenant_id, uid) => {
    // All that is gone has its entry already, also for somebody who looks now.
    const told = (await removals(place)).flatMap(({ detail }) => detail['sessions'])
    expect(told).toContain(uid)
    if (store.isAway && uid === last) throw new Error('the store is away')
    await recordings.remove(tenant_id, uid)
  }
  const sweep = recordingSweep({ stores, audit, recordings: { remove }, clock, days: 30 })
  await expect(sweep()).rejects.toThrow('the store is away')
  expect(await recordings.channels(sample.tenant, last)).toHaveLength(1)
  store.isAway = false
  await Promise.all([sweep(), sweep()])
  expect(await recordings.channels(sample.tenant, last)).toEqual([])
  const all = await removals(place)
  expect(all.map(({ detail }) => detail['count'])).toEqual([100, 100, 30])
  expect(all.flatMap(({ detail }) => detail['sessions'] as string[]).toSorted()).toEqual(uids.toSorted())
})

describe.each(bothDatabases)('the list, on %s', (_, options) => {
  const place = sharedPlace(options)

  test('is newest first, in pages, with the device of each, and of the own namespace only', async () => {
    const devices = [await place.accepted('tug'), await place.accepted('barge')]
    const foreign = await place.enrol({ tenant_id: sample.otherTenant })
    await session(place, foreign.uid, { tenant_id: sample.otherTenant })
    const now = place.clock.now()
    for (let number = 0; number < 12; number++)
      await session(place, devices[number % 2]!.uid, {
        started_at: new Date(now - ((number * 5) % 12) * 60_000 - 1000).toISOString(),
      })
    const { body, total } = await place.observer.sessions.list({ query: { per_page: 100 } })
    expect([body.length, total]).toEqual([13, 13])
    const starts = body.map(({ started_at }) => started_at)
    expect(starts).toEqual(starts.toSorted().toReversed())
    for (const each of body) expect(each.device.uid).toBe(each.device_uid)
    expect((await place.observer.sessions.list()).body).toEqual(body.slice(0, 10))
    const paged = []
    for (const page of [1, 2, 3, 4]) {
      const { body: part, total: all } = await place.key.sessions.list({ query: { page, per_page: 4 } })
      expect(all).toBe(13)
      paged.push(...part)
    }
    expect(paged).toEqual(body)
    expect((await place.stranger.sessions.list()).body.map(({ device_uid }) => device_uid)).toEqual([
      foreign.uid,
    ])
    expect(await place.observer.sessions.list({ query: { page: 9 } })).toMatchObject({ body: [], total: 13 })
  })

  test.each([{ page: 0 }, { page: 1.5 }, { per_page: 0 }, { per_page: 101 }])('refuses %j', async (query) => {
    await expect(place.observer.sessions.list({ query })).rejects.toMatchObject(refused(400))
  })
})

test('a rejected device reports nothing more, and what it had open is closed', async () => {
  await using place = await startPlace()
  const device = await place.accepted('tug')
  const uid = await session(place, device.uid)
  await place.operator.devices.setStatus({ params: { uid: device.uid, status: 'reject' } })
  const own = place.api({ token: device.token })
  await expect(own.sessions.record({ params: { uid }, body: { ...frame, uid } })).rejects.toMatchObject(
    refused(401),
  )
  await expect(
    own.sessions.setAuthenticated({ params: { uid }, body: { authenticated: true } }),
  ).rejects.toMatchObject(refused(401))
  expect(await get(place, uid)).toMatchObject({ active: false, authenticated: false, recorded: false })
})

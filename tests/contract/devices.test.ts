// Devices as members see and change them: presence, status, names, the place of an older device, limits and
// choice. Enrolment is in enrolment.test.ts, lists are in device-lists.test.ts, tags in tags.test.ts.
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { deviceStatuses, statusChanges, type StatusChange } from '@hawser/contract/devices'
import { sample } from '@hawser/contract/examples'
import { startBilled } from '../harness/billed.ts'
import { eventually } from '../harness/eventually.ts'
import { bothDatabases, sharedPlace, startPlace, type Place } from '../harness/place.ts'
import { startService } from '../harness/service.ts'

const refused = (status: number) => ({ status })
const elsewhere = 'f'.repeat(64)
/** What comes within a second by the server's own timer. */

const get = async (place: Place, uid: string) => (await place.observer.devices.get({ params: { uid } })).body
const stored = (place: Place) => place.rooms.stores.of(sample.tenant)

async function session(place: Place, device_uid: string, uid: string): Promise<string> {
  const row = (await stored(place).sessions.find(sample.session))!
  await stored(place).sessions.insert({ ...row, uid: uid.repeat(64).slice(0, 64), device_uid, active: 1 })
  return uid.repeat(64).slice(0, 64)
}

describe('online', () => {
  const place = sharedPlace()

  test('a device is online from its call on, in every answer', async () => {
    const device = await place.accepted('tug')
    await session(place, device.uid, '0a')
    expect((await get(place, device.uid)).online).toBe(true)
    const { body } = await place.observer.devices.list({ query: { per_page: 100 } })
    expect(body.find(({ uid }) => uid === device.uid)?.online).toBe(true)
    expect((await place.observer.sessions.get({ params: { uid: '0a'.repeat(32) } })).body.device.online).toBe(
      true,
    )
  })

  test('the offline call makes it false at once, and so it stays until the device is heard from again', async () => {
    const device = await place.enrol()
    const before = await get(place, device.uid)
    await place.operator.devices.offline({ params: { uid: device.uid } })
    expect(await get(place, device.uid)).toEqual({ ...before, online: false })
    await place.operator.devices.offline({ params: { uid: device.uid } })
    expect((await get(place, device.uid)).online).toBe(false)
    await place.nobody.devices.auth({ body: device.body })
    expect((await get(place, device.uid)).online).toBe(true)
  })

  test('the device itself, operators and keys may make the offline call, at both addresses', async () => {
    const device = await place.enrol()
    const own = place.api({ token: device.token })
    for (const client of [own, place.operator, place.administrator, place.owner, place.key]) {
      await place.nobody.devices.auth({ body: device.body })
      await client.devices.offline({ params: { uid: device.uid } })
      expect((await get(place, device.uid)).online).toBe(false)
    }
    await place.nobody.devices.auth({ body: device.body })
    const response = await fetch(`${place.url}/internal/devices/${device.uid}/offline`, {
      method: 'POST',
      headers: { authorization: `Bearer ${device.token}` },
    })
    expect([response.status, await response.text()]).toEqual([200, ''])
    expect((await get(place, device.uid)).online).toBe(false)
  })

  test('an observer, another device, a stranger and nobody may not', async () => {
    const device = await place.enrol()
    const other = await place.enrol()
    const foreign = await place.enrol({ tenant_id: sample.otherTenant })
    const params = { uid: device.uid }
    await expect(place.observer.devices.offline({ params })).rejects.toMatchObject(refused(403))
    await expect(place.api({ token: other.token }).devices.offline({ params })).rejects.toMatchObject(
      refused(404),
    )
    await expect(place.api({ token: foreign.token }).devices.offline({ params })).rejects.toMatchObject(
      refused(404),
    )
    await expect(place.stranger.devices.offline({ params })).rejects.toMatchObject(refused(404))
    await expect(place.nobody.devices.offline({ params })).rejects.toMatchObject(refused(401))
    await expect(place.operator.devices.offline({ params: { uid: elsewhere } })).rejects.toMatchObject(
      refused(404),
    )
    expect((await get(place, device.uid)).online).toBe(true)
  })

  test('two minutes after its last call a device is offline, in answers, lists and figures', async () => {
    await using own = await startPlace()
    const [tug, barge] = [await own.accepted('tug'), await own.accepted('barge')]
    own.clock.forward(60_000)
    await own.nobody.devices.auth({ body: barge.body })
    own.clock.forward(60_000)
    await eventually(async () => expect((await get(own, tug.uid)).online).toBe(false))
    expect((await get(own, barge.uid)).online).toBe(true)
    await eventually(async () => expect((await own.observer.system.stats()).body.online_devices).toBe(1))
    await own.nobody.devices.auth({ body: tug.body })
    expect((await get(own, tug.uid)).online).toBe(true)
  })

  test('a restart does not make devices offline, and their time still runs out', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-restart-'))
    try {
      const first = await startPlace({ folder })
      const { uid } = await first.accepted('tug')
      const before = await get(first, uid)
      await first[Symbol.asyncDispose]()
      await using second = await startService({ folder })
      const { body } = await second.api().users.login({ body: sample.observer })
      const observer = second.api({ token: body.token })
      expect((await observer.devices.get({ params: { uid } })).body).toEqual(before)
      second.clock.forward(120_000)
      await eventually(async () =>
        expect((await observer.devices.get({ params: { uid } })).body.online).toBe(false),
      )
      await eventually(async () => expect((await observer.system.stats()).body.online_devices).toBe(0))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe('status', () => {
  const place = sharedPlace()
  const wishes = Object.keys(statusChanges) as StatusChange[]

  test.each(deviceStatuses.flatMap((from) => wishes.map((wish) => [from, wish] as const)))(
    '%s: %s',
    async (from, wish) => {
      const { uid } = await place.enrol()
      await stored(place).devices.save(uid, { status: from })
      const before = await get(place, uid)
      place.clock.forward(1)
      expect((await place.operator.devices.setStatus({ params: { uid, status: wish } })).body).toBeUndefined()
      const after = await get(place, uid)
      const moment = after.status_update_at
      expect(after).toEqual({
        ...before,
        status: statusChanges[wish],
        status_update_at: moment,
        status_updated_at: moment,
        acceptable: wish !== 'accept',
      })
      expect(moment > before.status_update_at).toBe(true)
    },
  )

  test('accept has an operation of its own, and both forms are one', async () => {
    const { uid } = await place.enrol()
    await place.operator.devices.accept({ params: { uid } })
    const first = await get(place, uid)
    place.clock.forward(1)
    await place.key.devices.accept({ params: { uid } })
    expect((await get(place, uid)).status_update_at > first.status_update_at).toBe(true)
  })

  test.each(['accepted', 'removed', 'ACCEPT', 'unknown', 'constructor', '%20'])(
    'the status %s is refused with 400',
    async (status) => {
      const { uid } = await place.enrol()
      await expect(place.operator.devices.setStatus({ params: { uid, status } })).rejects.toMatchObject(
        refused(400),
      )
      expect((await get(place, uid)).status).toBe('pending')
    },
  )

  test('leaving accepted ends the live sessions of that device only', async () => {
    for (const [number, wish] of (['reject', 'pending', 'unused'] as const).entries()) {
      const device = await place.accepted(`lighter-${number}`)
      const live = await session(place, device.uid, `b${number}`)
      const active = async (uid: string) =>
        (await place.observer.sessions.get({ params: { uid } })).body.active
      await place.operator.devices.accept({ params: { uid: device.uid } })
      expect(await active(live)).toBe(true)
      await place.operator.devices.setStatus({ params: { uid: device.uid, status: wish } })
      expect(await active(live)).toBe(false)
      expect(await active(sample.session)).toBe(true)
    }
  })
})

describe('names', () => {
  const place = sharedPlace()

  test('are stored in lower case, by both forms', async () => {
    const { uid } = await place.enrol()
    await place.operator.devices.update({ params: { uid }, body: { name: 'Gantry_1' } })
    expect((await get(place, uid)).name).toBe('gantry_1')
    await place.operator.devices.rename({ params: { uid }, body: { name: 'GANTRY-2' } })
    expect((await get(place, uid)).name).toBe('gantry-2')
  })

  test.each(['', ' ', 'a b', 'a.b', 'a/b', 'é', 'x'.repeat(65)])(
    'the name %j is refused with 400',
    async (name) => {
      await expect(
        place.operator.devices.update({ params: { uid: sample.device }, body: { name } }),
      ).rejects.toMatchObject(refused(400))
      await expect(
        place.operator.devices.rename({ params: { uid: sample.device }, body: { name } }),
      ).rejects.toMatchObject(refused(400))
    },
  )

  test('a name set to itself and an empty change are 200 and change nothing', async () => {
    const before = await get(place, sample.device)
    for (const body of [
      {},
      { name: before.name },
      { name: before.name.toUpperCase() },
      { public_url: before.public_url },
    ])
      await place.operator.devices.update({ params: { uid: sample.device }, body })
    expect(await get(place, sample.device)).toEqual(before)
  })

  test('waiting devices may share a name; of accepted ones each has its own', async () => {
    const [one, two] = [await place.enrol({ hostname: 'ferry' }), await place.enrol({ hostname: 'Ferry' })]
    expect([one.name, two.name]).toEqual(['ferry', 'ferry'])
    await place.operator.devices.accept({ params: { uid: one.uid } })
    await expect(place.operator.devices.accept({ params: { uid: two.uid } })).rejects.toMatchObject(
      refused(409),
    )
    await expect(
      place.operator.devices.setStatus({ params: { uid: two.uid, status: 'accept' } }),
    ).rejects.toMatchObject(refused(409))
    expect((await get(place, two.uid)).status).toBe('pending')
    await place.operator.devices.setStatus({ params: { uid: one.uid, status: 'reject' } })
    await place.operator.devices.accept({ params: { uid: two.uid } })
    await expect(place.operator.devices.accept({ params: { uid: one.uid } })).rejects.toMatchObject(
      refused(409),
    )
  })

  test('a device cannot take the name of an accepted one, whatever its own status', async () => {
    await place.accepted('pilot')
    const waiting = await place.enrol({ hostname: 'dinghy' })
    const accepted = await place.accepted('punt')
    for (const { uid, name } of [waiting, accepted]) {
      await expect(
        place.operator.devices.update({ params: { uid }, body: { name: 'Pilot' } }),
      ).rejects.toMatchObject(refused(409))
      await expect(
        place.operator.devices.rename({ params: { uid }, body: { name: 'pilot' } }),
      ).rejects.toMatchObject(refused(409))
      expect((await get(place, uid)).name).toBe(name)
    }
  })

  test('a name of another namespace is free', async () => {
    await place.accepted('skiff')
    const foreign = await place.enrol({ tenant_id: sample.otherTenant, hostname: 'skiff' })
    expect((await place.stranger.devices.accept({ params: { uid: foreign.uid } })).status).toBe(200)
  })

  test('the first public URL gives an address, which stays', async () => {
    const { uid } = await place.enrol()
    const public_url_address = createHash('md5').update(uid).digest('hex')
    await place.operator.devices.update({ params: { uid }, body: { public_url: true } })
    expect(await get(place, uid)).toMatchObject({ public_url: true, public_url_address })
    await place.operator.devices.update({ params: { uid }, body: { public_url: false } })
    expect(await get(place, uid)).toMatchObject({ public_url: false, public_url_address })
  })
})

describe.each(bothDatabases)('calls at the same time, on %s', (_, options) => {
  const place = sharedPlace(options)
  const statuses = async (calls: Promise<unknown>[]) =>
    (await Promise.allSettled(calls))
      .map((call) => (call.status === 'fulfilled' ? 200 : (call.reason as { status: number }).status))
      .toSorted((a, b) => a - b)

  test('one of several devices with a name is accepted, the others are refused with 409', async () => {
    for (let round = 0; round < 5; round++) {
      const same = await Promise.all(
        Array.from({ length: 4 }, () => place.enrol({ hostname: `raft-${round}` })),
      )
      const calls = same.map(({ uid }) => place.operator.devices.accept({ params: { uid } }))
      expect(await statuses(calls)).toEqual([200, 409, 409, 409])
    }
  })

  test('one of several accepted devices gets a new name, the others are refused with 409', async () => {
    const devices = await Promise.all(
      ['one', 'two', 'three', 'four'].map((name) => place.accepted(`canoe-${name}`)),
    )
    const calls = devices.map(({ uid }, index) =>
      index % 2 === 0
        ? place.operator.devices.update({ params: { uid }, body: { name: 'kayak' } })
        : place.operator.devices.rename({ params: { uid }, body: { name: 'kayak' } }),
    )
    expect(await statuses(calls)).toEqual([200, 409, 409, 409])
  })

  test('no more devices are accepted than there is room for', async () => {
    const waiting = await Promise.all(Array.from({ length: 6 }, () => place.enrol()))
    const accepted = (await place.owner.namespaces.get({ params: { tenant: sample.tenant } })).body
      .device_count
    await place.rooms.stores.namespaces.save(sample.tenant, { max_devices: accepted + 2 })
    const calls = waiting.map(({ uid }) => place.operator.devices.accept({ params: { uid } }))
    expect(await statuses(calls)).toEqual([200, 200, 403, 403, 403, 403])
    await place.rooms.stores.namespaces.save(sample.tenant, { max_devices: -1 })
  })
})

describe('a machine that was installed anew', () => {
  const place = sharedPlace()
  const mac = '00:00:5e:00:55:01'

  test('takes the place of the accepted device with its MAC: name, tags and history', async () => {
    const old = await place.enrol({ mac, hostname: 'winch' })
    await place.operator.devices.accept({ params: { uid: old.uid } })
    await place.operator.devices.setTags({ params: { uid: old.uid }, body: { tags: ['pier', 'north'] } })
    const live = await session(place, old.uid, 'c1')
    const next = await place.enrol({ mac, hostname: 'fresh' })
    expect(next.uid).not.toBe(old.uid)
    await place.operator.devices.accept({ params: { uid: next.uid } })
    expect(await get(place, next.uid)).toMatchObject({
      name: 'winch',
      tags: ['pier', 'north'],
      status: 'accepted',
      identity: { mac },
    })
    await expect(get(place, old.uid)).rejects.toMatchObject(refused(404))
    const moved = (await place.observer.sessions.get({ params: { uid: live } })).body
    expect(moved).toMatchObject({ device_uid: next.uid, active: false, device: { uid: next.uid } })
    await expect(
      place.api({ token: old.token }).devices.offline({ params: { uid: old.uid } }),
    ).rejects.toMatchObject(refused(401))
    expect((await place.nobody.devices.auth({ body: next.body })).body.name).toBe('winch')
    // The old agent, should it still run, waits like any new device.
    await place.nobody.devices.auth({ body: old.body })
    expect((await get(place, old.uid)).status).toBe('pending')
  })

  test('needs no room, and does not get past a name that a third device has', async () => {
    const old = await place.enrol({ mac: 'aa', hostname: 'hoist' })
    await place.operator.devices.accept({ params: { uid: old.uid } })
    await place.accepted('boom')
    const taken = await place.enrol({ mac: 'aa', hostname: 'boom' })
    await expect(place.operator.devices.accept({ params: { uid: taken.uid } })).rejects.toMatchObject(
      refused(409),
    )
    expect((await get(place, old.uid)).status).toBe('accepted')
    await place.rooms.stores.namespaces.save(sample.tenant, { max_devices: 1 })
    const next = await place.enrol({ mac: 'aa', hostname: 'other' })
    await place.operator.devices.accept({ params: { uid: next.uid } })
    expect((await get(place, next.uid)).name).toBe('hoist')
    await place.rooms.stores.namespaces.save(sample.tenant, { max_devices: -1 })
  })

  test('a MAC in other letters, of a waiting device, of another namespace, or none, is another machine', async () => {
    const old = await place.enrol({ mac: 'bb:cc', hostname: 'jib' })
    await place.operator.devices.accept({ params: { uid: old.uid } })
    await place.enrol({ mac: 'dd', hostname: 'davit' })
    const foreign = await place.enrol({ mac: 'ee', tenant_id: sample.otherTenant })
    await place.stranger.devices.accept({ params: { uid: foreign.uid } })
    for (const [index, other] of ['BB:CC', 'dd', 'ee'].entries()) {
      const device = await place.enrol({ mac: other, hostname: `mast-${index}` })
      await place.operator.devices.accept({ params: { uid: device.uid } })
      expect((await get(place, device.uid)).name).toBe(`mast-${index}`)
    }
    for (const name of ['spar-1', 'spar-2']) {
      const body = { info: {}, hostname: name, public_key: name, tenant_id: sample.tenant }
      const { uid } = (await place.nobody.devices.auth({ body })).body
      await place.operator.devices.accept({ params: { uid } })
      expect((await get(place, uid)).name).toBe(name)
    }
    expect((await get(place, old.uid)).status).toBe('accepted')
    expect((await place.stranger.devices.get({ params: { uid: foreign.uid } })).body.status).toBe('accepted')
  })
})

describe('limits and choice', () => {
  test('a full namespace accepts nothing more and says so beforehand', async () => {
    await using place = await startPlace()
    const waiting = await place.enrol()
    const acceptable = async () => {
      const { body } = await place.observer.devices.list()
      const shown = Object.fromEntries(body.map((device) => [device.uid, device.acceptable]))
      expect((await get(place, waiting.uid)).acceptable).toBe(shown[waiting.uid])
      return [shown[sample.device], shown[waiting.uid]]
    }
    expect(await acceptable()).toEqual([false, true])
    await place.rooms.stores.namespaces.save(sample.tenant, { max_devices: 1 })
    expect(await acceptable()).toEqual([false, false])
    await expect(place.owner.devices.accept({ params: { uid: waiting.uid } })).rejects.toMatchObject(
      refused(403),
    )
    await place.operator.devices.accept({ params: { uid: sample.device } })
    await place.owner.devices.remove({ params: { uid: sample.device } })
    expect(await acceptable()).toEqual([undefined, true])
    await place.owner.devices.accept({ params: { uid: waiting.uid } })
    await place.rooms.stores.namespaces.save(sample.tenant, { max_devices: 0 })
    expect((await get(place, sample.pendingDevice)).acceptable).toBe(true)
  })

  test('choosing keeps the chosen devices and makes the others wait', async () => {
    await using place = await startBilled()
    const limit = (max_devices: number) => place.rooms.stores.namespaces.save(sample.tenant, { max_devices })
    await limit(-1)
    const [tug, barge, scow] = [
      await place.accepted('tug'),
      await place.accepted('barge'),
      await place.accepted('scow'),
    ]
    const rejected = await place.enrol()
    await place.owner.devices.setStatus({ params: { uid: rejected.uid, status: 'reject' } })
    const live = await session(place, scow.uid, 'd1')
    const before = await get(place, scow.uid)
    place.clock.forward(1)
    await limit(3)
    await place.owner.devices.choose({ body: { choices: [tug.uid, barge.uid] } })
    const statuses = async () =>
      Promise.all(
        [tug, barge, scow, rejected, { uid: sample.device }].map(
          async ({ uid }) => (await get(place, uid)).status,
        ),
      )
    expect(await statuses()).toEqual(['accepted', 'accepted', 'pending', 'rejected', 'pending'])
    expect((await get(place, scow.uid)).status_update_at > before.status_update_at).toBe(true)
    expect((await place.observer.sessions.get({ params: { uid: live } })).body.active).toBe(false)
    // As an older client spells it.
    await limit(1)
    await place.owner.devices.choose({ body: { devices: [{ uid: tug.uid }] } })
    expect(await statuses()).toEqual(['accepted', 'pending', 'pending', 'rejected', 'pending'])
    await limit(-1)
    await place.owner.devices.accept({ params: { uid: scow.uid } })
    await limit(1)
    await place.owner.devices.choose({ body: { choices: [] } })
    expect(await statuses()).toEqual(['pending', 'pending', 'pending', 'rejected', 'pending'])
  })

  test('a choice that cannot be made changes nothing', async () => {
    await using place = await startBilled()
    const foreign = await place.enrol({ tenant_id: sample.otherTenant })
    await place.stranger.devices.accept({ params: { uid: foreign.uid } })
    const refuses = async (choices: string[], how: object) =>
      expect(place.owner.devices.choose({ body: { choices } })).rejects.toMatchObject(how)
    for (const [uid, ...others] of [
      [elsewhere],
      [sample.pendingDevice],
      [foreign.uid, sample.device],
      ['y'.repeat(100)],
    ] as const)
      await refuses([...others, uid], {
        status: 404,
        body: { message: `choices: no accepted device has the uid ${uid.slice(0, 64)}` },
      })
    await refuses(
      Array.from({ length: 4 }, () => sample.device),
      refused(400),
    )
    // One is accepted, and three may be.
    for (const choices of [[], [sample.device]])
      await refuses(choices, { status: 409, body: { code: 'within_limit' } })
    await expect(place.owner.devices.choose({ body: {} })).rejects.toMatchObject(refused(400))
    await expect(place.administrator.devices.choose({ body: { choices: [] } })).rejects.toMatchObject(
      refused(403),
    )
    expect((await get(place, sample.device)).status).toBe('accepted')
    expect((await place.stranger.devices.get({ params: { uid: foreign.uid } })).body.status).toBe('accepted')
  })

  test('the most used devices are the three with the most sessions, most first', async () => {
    await using place = await startPlace()
    expect((await place.owner.devices.mostUsed()).body.map(({ uid }) => uid)).toEqual([sample.device])
    const devices = [await place.accepted('a1'), await place.accepted('b2'), await place.accepted('c3')]
    for (const [index, times] of [3, 1, 2].entries())
      for (let time = 0; time < times; time++) await session(place, devices[index]!.uid, `e${index}${time}`)
    await session(place, devices[1]!.uid, 'ef')
    await session(place, devices[1]!.uid, 'fe')
    await session(place, devices[1]!.uid, 'fd')
    const { body, total } = await place.owner.devices.mostUsed()
    expect(body.map(({ uid }) => uid)).toEqual([devices[1]!.uid, devices[0]!.uid, devices[2]!.uid])
    expect(total).toBe(3)
    await expect(place.administrator.devices.mostUsed()).rejects.toMatchObject(refused(403))
    expect((await place.stranger.devices.mostUsed()).body).toEqual([])
  })
})

describe('deleting and other people’s devices', () => {
  const place = sharedPlace()

  test('a deleted device takes its sessions and their recordings along', async () => {
    const device = await place.accepted('trawler')
    const live = await session(place, device.uid, 'a7')
    await place.owner.sessions.record({
      params: { uid: live },
      body: { uid: live, message: 'login: ', width: 80, height: 24 },
    })
    expect(await place.rooms.recordings.channels(sample.tenant, live)).toHaveLength(1)
    const before = (await place.observer.sessions.list()).total
    await expect(place.operator.devices.remove({ params: { uid: device.uid } })).rejects.toMatchObject(
      refused(403),
    )
    await place.administrator.devices.remove({ params: { uid: device.uid } })
    await expect(place.observer.sessions.get({ params: { uid: live } })).rejects.toMatchObject(refused(404))
    await place.rooms.background.settled()
    expect(await place.rooms.recordings.channels(sample.tenant, live)).toEqual([])
    expect((await place.observer.sessions.list()).total).toBe(before - 1)
    await expect(place.administrator.devices.remove({ params: { uid: device.uid } })).rejects.toMatchObject(
      refused(404),
    )
  })

  const calls: Record<string, (client: Client, uid: string) => Promise<unknown>> = {
    get: (client, uid) => client.devices.get({ params: { uid } }),
    update: (client, uid) => client.devices.update({ params: { uid }, body: { name: 'stolen' } }),
    rename: (client, uid) => client.devices.rename({ params: { uid }, body: { name: 'stolen' } }),
    accept: (client, uid) => client.devices.accept({ params: { uid } }),
    reject: (client, uid) => client.devices.setStatus({ params: { uid, status: 'reject' } }),
    offline: (client, uid) => client.devices.offline({ params: { uid } }),
    addTag: (client, uid) => client.devices.addTag({ params: { uid }, body: { tag: 'stolen' } }),
    setTags: (client, uid) => client.devices.setTags({ params: { uid }, body: { tags: ['stolen'] } }),
    removeTag: (client, uid) => client.devices.removeTag({ params: { uid, tag: sample.tag } }),
    remove: (client, uid) => client.devices.remove({ params: { uid } }),
  }

  test.each(Object.keys(calls))(
    '%s: a uid of another namespace, an unknown and a malformed one are all 404',
    async (name) => {
      const before = await get(place, sample.device)
      for (const uid of [sample.device, elsewhere, 'harbour', 'F'.repeat(64)])
        await expect(calls[name]!(place.stranger, uid)).rejects.toMatchObject(refused(404))
      expect(await get(place, sample.device)).toEqual(before)
    },
  )

  test('a uid in the body does not stand in for the one in the path', async () => {
    const [one, two] = [await place.enrol(), await place.enrol()]
    const body = { uid: two.uid, tenant_id: sample.otherTenant, name: 'switched' }
    await place.operator.devices.update({ params: { uid: one.uid }, body })
    expect([(await get(place, one.uid)).name, (await get(place, two.uid)).name]).toEqual([
      'switched',
      two.name,
    ])
    expect((await get(place, one.uid)).tenant_id).toBe(sample.tenant)
  })
})

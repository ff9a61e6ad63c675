// Engines and agents choose the names of containers, and change them as often as they like. A rogue engine lists
// thousands of them, swaps their names all the time, shows two with one short id, or removes and renames without
// an end. A rogue agent says that it is a container that is gone, and there again. None of them gets work for
// free, fills tables, pushes out what people did, shares a few slots among many devices, or leaves no trace.
import { describe, expect, test } from 'vitest'
import type { Device } from '@hawser/contract/devices'
import { sample } from '@hawser/contract/examples'
import type { DeviceReport } from '@hawser/contract/reports'
import { namesToTake } from '../../server/src/domain/devices/containers.ts'
import { containerId, startEngine, type TestContainer } from '../harness/engine.ts'
import { eventually } from '../harness/eventually.ts'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace(async () => ({ env: { HAWSER_CONNECTOR_ALLOW: '127.0.0.1' } }))
const mine = () => place.rooms.stores.of(sample.tenant)
const box = (word: string, name: string): TestContainer => ({ id: containerId(word), name })

async function connected(...containers: TestContainer[]) {
  const engine = await startEngine()
  engine.show(containers)
  const body = { enable: true, accept: true, address: '127.0.0.1', port: engine.port }
  const { uid } = (await place.administrator.connectors.create({ body })).body
  return {
    ...engine,
    connector: uid,
    async [Symbol.asyncDispose]() {
      await place.administrator.connectors.remove({ params: { uid } })
      await engine[Symbol.asyncDispose]()
    },
  }
}
const living = async (connector: string) =>
  (await mine().devices.ofConnector(connector)).map(({ name }) => name)

test('a chain of a hundred thousand wishes that cannot come true is read once', () => {
  const count = 100_000
  const wanting = Array.from({ length: count }, (_, n) => ({
    uid: `u${n}`,
    name: `c${n}`,
    container: `c${n + 1}`,
  }))
  const keeper = { uid: 'keeper', name: `c${count}` }
  expect(namesToTake(wanting, [...wanting, keeper])).toEqual([])
  expect(namesToTake(wanting, wanting)).toHaveLength(count)
})

describe('a rogue engine', () => {
  test('that removes containers under ever new spellings of one name leaves one device', async () => {
    await using engine = await connected()
    for (const name of ['Web', 'wEb', 'weB', 'WEB', 'web']) {
      engine.show([box(name, name)])
      await eventually(async () => expect(await living(engine.connector)).toEqual(['web']))
      engine.show([])
      await eventually(async () => expect(await living(engine.connector)).toEqual([]))
    }
    expect(await mine().devices.goneOfConnector(engine.connector)).toHaveLength(1)
  })

  test('leaves a bounded number of devices behind that nobody used', async () => {
    await using engine = await connected(
      box('hull 0', 'hull-0'),
      box('hull 1', 'hull-1'),
      box('hull 2', 'hull-2'),
    )
    await eventually(async () => expect(await living(engine.connector)).toHaveLength(3))
    engine.show([])
    await eventually(async () =>
      expect(await mine().devices.goneOfConnector(engine.connector)).toHaveLength(3),
    )
    await mine().devices.forgetGone(engine.connector, 2)
    expect(await mine().devices.goneOfConnector(engine.connector)).toHaveLength(2)
  })

  test('with two containers of one short id has one device, and no list after another', async () => {
    const id = containerId('twice')
    const twin = `${id.slice(0, 12)}${containerId('other').slice(12)}`
    await using engine = await connected({ id, name: 'one' }, { id: twin, name: 'two' })
    await eventually(async () => expect(await living(engine.connector)).toEqual(['one']))
    const entries = async () =>
      (await place.owner.audit.list({ query: { action: 'device.updated' } })).body.entries.length
    const before = await entries()
    for (let turn = 0; turn < 3; turn++) {
      const asked = engine.asked.length
      engine.show([
        { id, name: 'one' },
        { id: twin, name: 'two' },
      ])
      await eventually(() => expect(engine.asked.length).toBeGreaterThan(asked))
    }
    expect([await entries(), await living(engine.connector)]).toEqual([before, ['one']])
  })

  test('cannot block swaps by a device that is called like the uid of another', async () => {
    await using engine = await connected(box('port', 'port'), box('starboard', 'starboard'))
    await eventually(async () => expect(await living(engine.connector)).toHaveLength(2))
    const [one] = await mine().devices.ofConnector(engine.connector)
    const { uid } = await place.accepted('blocker')
    await place.operator.devices.rename({ params: { uid }, body: { name: one!.uid } })
    engine.show([box('port', 'starboard'), box('starboard', 'port')])
    await eventually(async () => {
      const names = new Map(
        (await mine().devices.ofConnector(engine.connector)).map((row) => [row.mac, row.name]),
      )
      expect(names.get(containerId('port').slice(0, 12))).toBe('starboard')
    })
    await place.administrator.devices.remove({ params: { uid } })
  })
})

test('a container that was elsewhere for a while and was renamed there is the device that it was', async () => {
  await using engine = await connected(box('tramp', 'tramp'))
  await eventually(async () => expect(await living(engine.connector)).toEqual(['tramp']))
  const { uid } = (await mine().devices.ofConnector(engine.connector))[0]!
  engine.show([])
  await eventually(async () => expect(await living(engine.connector)).toEqual([]))
  engine.show([box('tramp', 'liner')])
  await eventually(async () => expect(await living(engine.connector)).toEqual(['liner']))
  expect((await mine().devices.find(uid))?.status).toBe('accepted')
})

test('a stranger who knows the id of a container and the key of its connector keeps it from nothing', async () => {
  await using engine = await connected(box('first', 'first'))
  await eventually(async () => expect(await living(engine.connector)).toEqual(['first']))
  const { public_key } = (await mine().devices.ofConnector(engine.connector))[0]!
  const info = { id: 'debian', pretty_name: 'x', version: 'v0.16.4', arch: 'amd64', platform: 'native' }
  const identity = { mac: containerId('second').slice(0, 12) }
  await place.nobody.devices.auth({
    body: { info, identity, public_key, hostname: 'squatter', tenant_id: sample.tenant },
  })
  engine.show([box('first', 'first'), box('second', 'second')])
  await eventually(async () =>
    expect((await living(engine.connector)).toSorted()).toEqual(['first', 'second']),
  )
})

describe('a rogue agent in the connector mode', () => {
  let count = 0
  async function rogue(hostname: string) {
    const number = ++count
    const body = {
      info: { id: 'docker', pretty_name: 'x', version: 'v0.16.4', arch: 'amd64', platform: 'connector' },
      hostname,
      identity: { mac: containerId(`rogue ${number}`).slice(0, 12) },
      public_key: `-----BEGIN RSA PUBLIC KEY-----\nrogue ${number}\n-----END RSA PUBLIC KEY-----\n`,
      tenant_id: sample.tenant,
    }
    const { uid } = (await place.nobody.devices.auth({ body })).body
    await place.operator.devices.accept({ params: { uid } })
    return {
      uid,
      reports: (report: DeviceReport) =>
        place.rooms.reports.take({ uid, tenant_id: sample.tenant }, report, undefined),
    }
  }
  const get = async (uid: string): Promise<Device> =>
    (await place.observer.devices.get({ params: { uid } })).body

  test('cannot share a slot with others by coming and going', async () => {
    const { uid, reports } = await rogue('hermit')
    await place.rooms.stores.namespaces.save(sample.tenant, {
      max_devices: await mine().devices.countWithStatus('accepted'),
    })
    try {
      await reports({ leaving: 'gone' })
      const { uid: other } = await place.enrol({ hostname: 'lodger' })
      await expect(place.operator.devices.accept({ params: { uid: other } })).rejects.toMatchObject({
        status: 403,
      })
      await reports({ leaving: 'stopped' })
      expect(await get(uid)).toMatchObject({ status: 'accepted' })
    } finally {
      await place.rooms.stores.namespaces.save(sample.tenant, { max_devices: -1 })
    }
  })

  test('that changes its name all the time is followed for a while, and every change has an entry of its own', async () => {
    const { uid, reports } = await rogue('chameleon')
    for (let turn = 0; turn < 100; turn++) await reports({ hostname: `chameleon-${turn}` })
    const { entries } = (await place.owner.audit.list({ query: { target: uid, limit: 100 } })).body
    const named = entries.filter(({ action }) => action === 'device.updated')
    expect(named.length).toBeGreaterThan(5)
    expect(named.length).toBeLessThanOrEqual(30)
  })

  test('leaves a trace when it takes a name while it is gone, and says who did it', async () => {
    const { uid, reports } = await rogue('kiosk-7')
    await reports({ leaving: 'gone' })
    await reports({ leaving: 'stopped', hostname: 'vault' })
    expect(await get(uid)).toMatchObject({ name: 'vault', status: 'accepted' })
    const { entries } = (await place.owner.audit.list({ query: { target: uid, limit: 100 } })).body
    expect(entries.find(({ action }) => action === 'device.updated')).toMatchObject({
      actor: { kind: 'device', id: uid },
      detail: { before: { name: 'kiosk-7' }, after: { name: 'vault' } },
    })
    expect(entries.find(({ action }) => action === 'device.removed')).toMatchObject({
      actor: { kind: 'device' },
    })
  })

  test('does not push out what members did', async () => {
    const { uid, reports } = await rogue('parrot')
    await place.operator.devices.rename({ params: { uid }, body: { name: 'cockatoo' } })
    for (let turn = 0; turn < 60; turn++) await reports({ leaving: turn % 2 === 0 ? 'gone' : 'stopped' })
    await place.rooms.timeline.flush()
    const { events } = (await place.observer.devices.timeline({ params: { uid }, query: { limit: 500 } }))
      .body
    expect(events.filter(({ kind }) => kind === 'renamed')).toHaveLength(1)
    expect(events.filter(({ kind }) => kind === 'status').length).toBeLessThan(20)
  })
})

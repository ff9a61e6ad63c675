// Containers are followed by their names: what becomes of a device when its container is replaced, renamed or
// removed, which names and places it holds, and what its page says while it waits. The engine is the small one
// of tests/harness/engine.ts, which lists what a test shows; a real one is in tests/clients.
import { describe, expect, test } from 'vitest'
import type { Device } from '@hawser/contract/devices'
import { sample } from '@hawser/contract/examples'
import type { DeviceReport } from '@hawser/contract/reports'
import { containerId, startEngine, type TestContainer } from '../harness/engine.ts'
import { eventually } from '../harness/eventually.ts'
import { sharedPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

const refused = (status: number) => ({ status })
const short = (word: string): string => containerId(word).slice(0, 12)
/** A container by the word that its id is made of. */
const box = (word: string, name: string, running = true): TestContainer => ({
  id: containerId(word),
  name,
  running,
})

describe.each(oneDatabase)('containers on %s', (_, options) => {
  const place = sharedPlace(async () => ({
    ...(await options()),
    env: { HAWSER_CONNECTOR_ALLOW: '127.0.0.1' },
  }))
  const mine = () => place.rooms.stores.of(sample.tenant)
  const get = async (uid: string): Promise<Device> =>
    (await place.observer.devices.get({ params: { uid } })).body
  const set = (uid: string, status: string) => place.operator.devices.setStatus({ params: { uid, status } })
  const rename = (uid: string, name: string) =>
    place.operator.devices.rename({ params: { uid }, body: { name } })

  /** The devices of the containers with these ids, by word, once they fit. */
  async function settled(
    fits: Readonly<Record<string, Partial<Device>>>,
  ): Promise<Readonly<Record<string, Device>>> {
    return eventually(async () => {
      const { body } = await place.observer.devices.list({ query: { per_page: 100 } })
      const found = Object.keys(fits).map((word) => [
        word,
        body.find(({ identity }) => identity.mac === short(word)),
      ])
      const devices = Object.fromEntries(found) as Record<string, Device>
      expect(devices).toMatchObject(fits)
      return devices
    })
  }

  async function connected(accept: boolean, ...containers: TestContainer[]) {
    const engine = await startEngine()
    engine.show(containers)
    const body = { enable: true, accept, address: '127.0.0.1', port: engine.port }
    const { uid } = (await place.administrator.connectors.create({ body })).body
    return {
      connector: uid,
      show: engine.show,
      async [Symbol.asyncDispose]() {
        await place.administrator.connectors.remove({ params: { uid } })
        await engine[Symbol.asyncDispose]()
      },
    }
  }

  /** A session on the device, over since. */
  async function used(device: string, uid: string): Promise<void> {
    const at = new Date().toISOString()
    await mine().sessions.insert({
      uid: containerId(uid),
      device_uid: device,
      username: 'root',
      ip_address: '192.0.2.1',
      started_at: at,
      last_seen: at,
      active: 0,
      authenticated: 1,
      recorded: 0,
      type: 'shell',
      term: 'xterm',
      position: '{"latitude":0,"longitude":0}',
    })
  }

  describe('a container that is replaced', () => {
    test('in one moment keeps its device, with status, tags, notes and sessions', async () => {
      await using engine = await connected(false, box('kite 1', 'kite'))
      const { uid } = (await settled({ 'kite 1': { status: 'pending', online: true } }))['kite 1']!
      await set(uid, 'accept')
      await place.operator.devices.setTags({ params: { uid }, body: { tags: ['pier'] } })
      await used(uid, 'kite')
      engine.show([box('kite 2', 'kite')])
      const after = await settled({ 'kite 2': { name: 'kite', status: 'accepted', online: true } })
      expect(after['kite 2']).toMatchObject({ uid, tags: ['pier'] })
      const { body } = await place.owner.sessions.get({ params: { uid: containerId('kite') } })
      expect(body.device).toMatchObject({ uid, name: 'kite' })
    })

    test.each([true, false])(
      'after a while gives up its name and its place in between (a session: %s)',
      async (hasSession) => {
        const name = `wharf-${hasSession}`
        await using engine = await connected(false, box(`${name} 1`, name))
        const { uid } = (await settled({ [`${name} 1`]: { status: 'pending' } }))[`${name} 1`]!
        await set(uid, 'accept')
        if (hasSession) await used(uid, name)
        const before = await mine().devices.countWithStatus('accepted')
        engine.show([])
        await settled({ [`${name} 1`]: { uid, status: 'removed', online: false } })
        expect(await mine().devices.countWithStatus('accepted')).toBe(before - 1)
        expect((await get(uid)).waiting_reason).toMatch(/^Its container was removed\./)
        await expect(set(uid, 'accept')).rejects.toMatchObject(refused(409))
        engine.show([box(`${name} 2`, name)])
        await settled({ [`${name} 2`]: { uid, name, status: 'accepted', online: true } })
      },
    )

    test('fifty times at once leaves fifty devices, and none is left when all are gone', async () => {
      const all = (round: number) =>
        Array.from({ length: 50 }, (__, number) => box(`barge ${number} ${round}`, `barge-${number}`))
      await using engine = await connected(true, ...all(1))
      const fits = (round: number, status: Device['status']) =>
        Object.fromEntries(Array.from({ length: 50 }, (__, n) => [`barge ${n} ${round}`, { status }]))
      const first = await settled(fits(1, 'accepted'))
      const before = await mine().devices.countWithStatus('accepted')
      engine.show(all(2))
      const second = await settled(fits(2, 'accepted'))
      expect(Object.values(second).map(({ uid }) => uid)).toEqual(Object.values(first).map(({ uid }) => uid))
      expect(await mine().devices.countWithStatus('accepted')).toBe(before)
      engine.show([])
      await eventually(async () => expect(await mine().devices.countWithStatus('accepted')).toBe(before - 50))
    }, 60_000)

    test('and was rejected or set back stays so, also where containers are accepted at once', async () => {
      await using engine = await connected(true, box('buoy 1', 'buoy'), box('raft 1', 'raft'))
      const first = await settled({ 'buoy 1': { status: 'accepted' }, 'raft 1': { status: 'accepted' } })
      await set(first['buoy 1']!.uid, 'reject')
      await set(first['raft 1']!.uid, 'pending')
      engine.show([])
      engine.show([box('buoy 2', 'buoy'), box('raft 2', 'raft')])
      const after = await settled({ 'buoy 2': { status: 'rejected' }, 'raft 2': { status: 'pending' } })
      expect((await get(after['raft 2']!.uid)).waiting_reason).toMatch(/^A member set it back to pending/)
    })

    test('and was stopped before keeps name and place until it is removed', async () => {
      await using engine = await connected(true, box('skiff 1', 'skiff'))
      const { uid } = (await settled({ 'skiff 1': { status: 'accepted', online: true } }))['skiff 1']!
      engine.show([box('skiff 1', 'skiff', false)])
      await settled({ 'skiff 1': { uid, name: 'skiff', status: 'accepted', online: false } })
    })
  })

  describe('a container that is renamed', () => {
    test('takes its device along, unless a person named that', async () => {
      await using engine = await connected(true, box('tug', 'tug'), box('mast', 'mast'))
      const first = await settled({ tug: { status: 'accepted' }, mast: { status: 'accepted' } })
      await rename(first['mast']!.uid, 'figurehead')
      engine.show([box('tug', 'Tug.2'), box('mast', 'spar')])
      await settled({ tug: { name: 'tug_2', uid: first['tug']!.uid }, mast: { name: 'figurehead' } })
      // With the name of its container it follows again.
      await rename(first['mast']!.uid, 'spar')
      engine.show([box('tug', 'tug'), box('mast', 'boom')])
      await settled({ tug: { name: 'tug' }, mast: { name: 'boom' } })
    })

    test('swaps names with another one, as in a blue/green deployment', async () => {
      await using engine = await connected(true, box('blue', 'web'), box('green', 'web-new'))
      const first = await settled({ blue: { status: 'accepted' }, green: { status: 'accepted' } })
      engine.show([box('blue', 'web-old'), box('green', 'web')])
      await settled({
        blue: { name: 'web-old', status: 'accepted', uid: first['blue']!.uid },
        green: { name: 'web', status: 'accepted', uid: first['green']!.uid },
      })
      engine.show([box('blue', 'web'), box('green', 'web-old')])
      await settled({ blue: { name: 'web' }, green: { name: 'web-old' } })
    })

    test('rotates names with two others', async () => {
      const rotated = (shift: number) =>
        [0, 1, 2].map((number) => box(`rota ${number}`, `rota-${(number + shift) % 3}`))
      await using engine = await connected(true, ...rotated(0))
      const words = ['rota 0', 'rota 1', 'rota 2']
      await settled(Object.fromEntries(words.map((word) => [word, { status: 'accepted' }])))
      engine.show(rotated(1))
      await settled(Object.fromEntries(words.map((word, n) => [word, { name: `rota-${(n + 1) % 3}` }])))
    })

    test('to a name that another device has keeps its own, says so, and gets it when it is free', async () => {
      const holder = await place.accepted('lighthouse')
      await using engine = await connected(true, box('lamp', 'lamp'))
      const { uid } = (await settled({ lamp: { status: 'accepted' } }))['lamp']!
      engine.show([box('lamp', 'lighthouse')])
      await eventually(async () =>
        expect(await get(uid)).toMatchObject({
          name: 'lamp',
          waiting_reason: expect.stringMatching(/^Its container is called lighthouse/) as unknown,
        }),
      )
      await rename(holder.uid, 'beacon')
      await settled({ lamp: { name: 'lighthouse', status: 'accepted' } })
      expect((await get(uid)).waiting_reason).toBeUndefined()
    })
  })

  describe('accepting at once', () => {
    test('is tried again until the name is free; until then the page says what it waits for', async () => {
      const holder = await place.accepted('harbour_master')
      await using _ = await connected(true, box('master', 'harbour.master'))
      const { uid } = (await settled({ master: { status: 'pending', name: 'harbour_master' } }))['master']!
      expect((await get(uid)).waiting_reason).toMatch(
        /cannot accept this one yet\. The name harbour_master is taken/,
      )
      await place.administrator.devices.remove({ params: { uid: holder.uid } })
      await settled({ master: { uid, status: 'accepted' } })
    })

    test('is tried again until there is room', async () => {
      const limit = (max_devices: number) =>
        place.rooms.stores.namespaces.save(sample.tenant, { max_devices })
      await limit(await mine().devices.countWithStatus('accepted'))
      try {
        await using engine = await connected(true, box('late', 'late'))
        const { uid } = (await settled({ late: { status: 'pending' } }))['late']!
        expect((await get(uid)).waiting_reason).toMatch(/has reached its device limit\.$/)
        await limit(-1)
        engine.show([box('late', 'late')])
        await settled({ late: { uid, status: 'accepted' } })
      } finally {
        await limit(-1)
      }
    })

    test('also takes those that waited when it is switched on', async () => {
      await using engine = await connected(false, box('early', 'early'))
      const { uid } = (await settled({ early: { status: 'pending' } }))['early']!
      expect((await get(uid)).waiting_reason).toBe('It waits to be accepted.')
      const why = await place.administrator.logins.explain({ body: { device: 'early', username: 'root' } })
      expect(why.body.sentence).toBe('early is pending: it must be accepted before people can reach it.')
      const params = { uid: engine.connector }
      await place.administrator.connectors.update({ params, body: { accept: true } })
      await settled({ early: { uid, status: 'accepted' } })
    })

    test('does not take a container twice, and a person learns why', async () => {
      await using engines = new AsyncDisposableStack()
      engines.use(await connected(true, box('twin', 'twin')))
      const { uid: first } = (await settled({ twin: { status: 'accepted' } }))['twin']!
      engines.use(await connected(true, box('twin', 'twin')))
      const second = await eventually(async () => {
        const { body } = await place.observer.devices.list({ query: { status: 'pending', per_page: 100 } })
        const found = body.find(({ identity }) => identity.mac === short('twin'))
        expect(found).toMatchObject({ online: true })
        return found!
      })
      expect((await get(second.uid)).waiting_reason).toMatch(/It is the same container as twin/)
      await expect(set(second.uid, 'accept')).rejects.toMatchObject({
        status: 409,
        body: { message: expect.stringMatching(/^twin is the same container/) as unknown },
      })
      expect((await get(first)).status).toBe('accepted')
    })
  })

  test('beyond the end of a list that was cut a container keeps its name and its place', async () => {
    await using engine = await connected(true, box('deep', 'anchor'))
    const { uid } = (await settled({ deep: { status: 'accepted', online: true } }))['deep']!
    const others = Array.from({ length: 999 }, (__, n) => box(`shoal ${n}`, `shoal-${n}`, false))
    engine.show([box('shallow', 'anchor'), ...others, box('deep', 'anchor-old')])
    const after = await settled({ shallow: { status: 'pending' }, deep: { uid, status: 'accepted' } })
    expect(after['deep']!.name).toBe('anchor')
    expect((await get(after['shallow']!.uid)).waiting_reason).toMatch(/The name anchor is taken/)
    engine.show([box('shallow', 'anchor'), box('deep', 'anchor-old')])
    await settled({ shallow: { name: 'anchor', status: 'accepted' }, deep: { name: 'anchor-old' } })
  })

  test('with its connector a container that was used gives up name and place, and the others go', async () => {
    const engine = await connected(true, box('relic', 'relic'), box('wreck', 'wreck'))
    const { relic, wreck } = await settled({ relic: { status: 'accepted' }, wreck: { status: 'accepted' } })
    await used(relic!.uid, 'relic')
    await engine[Symbol.asyncDispose]()
    await settled({ relic: { uid: relic!.uid, status: 'removed' } })
    await expect(get(wreck!.uid)).rejects.toMatchObject(refused(404))
  })

  test('a device from before names were followed keeps a name that does not fit: a person gave it', async () => {
    await using engine = await connected(true, box('old', 'hulk'), box('older', 'keel'))
    const { old, older } = await settled({ old: { status: 'accepted' }, older: { status: 'accepted' } })
    await mine().devices.save(old!.uid, { container: '', name: 'frigate' })
    await mine().devices.save(older!.uid, { container: '' })
    engine.show([box('old', 'hulk'), box('older', 'keel')])
    await eventually(async () =>
      expect(await mine().devices.find(older!.uid)).toMatchObject({ container: 'keel', named: 0 }),
    )
    engine.show([box('old', 'hulk'), box('older', 'stern')])
    await settled({ old: { name: 'frigate' }, older: { name: 'stern' } })
  })

  test('a month later a removed device is forgotten, unless there were sessions on it', async () => {
    await using engine = await connected(true, box('myth', 'myth'), box('saga', 'saga'))
    const { myth, saga } = await settled({ myth: { status: 'accepted' }, saga: { status: 'accepted' } })
    await used(saga!.uid, 'saga')
    engine.show([])
    await settled({ myth: { status: 'removed' }, saga: { status: 'removed' } })
    await place.rooms.stores.goneDevices.sweep(new Date(Date.now() - 60_000).toISOString())
    expect((await get(myth!.uid)).status).toBe('removed')
    await place.rooms.stores.goneDevices.sweep(new Date(Date.now() + 60_000).toISOString())
    await expect(get(myth!.uid)).rejects.toMatchObject(refused(404))
    expect((await get(saga!.uid)).status).toBe('removed')
  })

  test('`why` says that a connector accepts no passwords, and that a container was removed', async () => {
    await using engine = await connected(true, box('vault', 'vault'))
    const { uid } = (await settled({ vault: { status: 'accepted', online: true } }))['vault']!
    const why = async () =>
      (await place.administrator.logins.explain({ body: { device: 'vault', username: 'root' } })).body
    const { steps, sentence } = await why()
    expect(sentence).toBe(
      'vault is a container behind a connector, which does not accept passwords; log in with a public key of the namespace.',
    )
    expect(steps.map((step) => step.sentence).join(' ')).not.toContain('checks the password')
    await used(uid, 'vault')
    engine.show([])
    await settled({ vault: { status: 'removed' } })
    expect((await why()).sentence).toBe('The container of vault was removed.')
  })

  describe('a container of an agent', () => {
    const agent = agentOf(place)

    test('is renamed with what its agent reports, swaps included, unless a person named it', async () => {
      const [blue, green] = [await agent.enrol('site'), await agent.enrol('site-new')]
      for (const { uid } of [blue, green]) await set(uid, 'accept')
      // The other one still has the name, which is free as soon as that reports, too.
      expect(await agent.reports(green, { hostname: 'site' })).toMatchObject({ name: 'site-new' })
      expect(await agent.reports(blue, { hostname: 'site-old' })).toMatchObject({ name: 'site-old' })
      expect(await get(green.uid)).toMatchObject({ name: 'site', status: 'accepted' })
      await rename(blue.uid, 'museum')
      expect(await agent.reports(blue, { hostname: 'site-older' })).toMatchObject({ name: 'museum' })
    })

    test('that is gone gives up name and place, and has them again when it comes back', async () => {
      const device = await agent.enrol('pontoon')
      await set(device.uid, 'accept')
      await agent.reports(device, { leaving: 'gone' })
      expect(await get(device.uid)).toMatchObject({ status: 'removed' })
      const holder = await place.accepted('pontoon')
      // The name was taken since: it gets one of its own until that is free.
      expect(await agent.reports(device, { hostname: 'pontoon' })).toMatchObject({
        status: 'accepted',
        name: `pontoon-${device.uid.slice(0, 6)}`,
      })
      await rename(holder.uid, 'gangway')
      await eventually(async () => expect(await get(device.uid)).toMatchObject({ name: 'pontoon' }))
    })

    test('that nobody accepted goes with its container', async () => {
      const device = await agent.enrol('jetsam')
      expect(await agent.reports(device, { leaving: 'gone' })).toBeUndefined()
      await expect(get(device.uid)).rejects.toMatchObject(refused(404))
    })

    test('is followed by its tunnel alone: whoever knows its identity renames nothing with Auth device', async () => {
      const device = await agent.enrol('krill')
      await set(device.uid, 'accept')
      await place.nobody.devices.auth({ body: { ...device.body, hostname: 'whale' } })
      expect(await get(device.uid)).toMatchObject({ name: 'krill', status: 'accepted' })
    })

    test('other devices neither rename themselves nor give up their names, whatever they claim', async () => {
      const plain = await place.accepted('crab')
      const info = { ...plain.body.info, platform: 'connector' }
      await place.nobody.devices.auth({ body: { ...plain.body, info, hostname: 'lobster' } })
      await agent.reports(plain, { info, hostname: 'lobster' })
      await agent.reports(plain, { info, hostname: 'lobster', leaving: 'gone' })
      expect(await get(plain.uid)).toMatchObject({ name: 'crab', status: 'accepted' })
    })
  })
})

/** An agent in its connector mode, as the server knows it: Auth device, and reports in a tunnel. */
function agentOf(place: Place) {
  let count = 0
  return {
    async enrol(hostname: string) {
      const number = ++count
      const body = {
        info: { id: 'docker', pretty_name: 'x', version: 'v0.16.4', arch: 'amd64', platform: 'connector' },
        hostname,
        identity: { mac: short(`agent ${number}`) },
        public_key: `-----BEGIN RSA PUBLIC KEY-----\nagent ${number}\n-----END RSA PUBLIC KEY-----\n`,
        tenant_id: sample.tenant,
      }
      return { body, uid: (await place.nobody.devices.auth({ body })).body.uid }
    },
    reports: ({ uid }: { uid: string }, report: DeviceReport) =>
      place.rooms.reports.take({ uid, tenant_id: sample.tenant }, report, undefined),
  }
}

// What the database knows of updates of agents, the same on both: who is behind, whose turn it is, in which
// namespace, and keys and releases that several nodes make at the same time.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  databases,
  device,
  earlier,
  later,
  namespace,
  now,
  openFresh,
  unique,
  type Storage,
} from './databases.ts'

const [old, offered] = ['a'.repeat(16), 'b'.repeat(16)]
const offer = { build: offered, arches: ['amd64'] }

describe.each(databases)('$name', (database) => {
  let storage: Storage
  beforeAll(async () => {
    storage = await openFresh(database)
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  const agent = (change: Parameters<typeof device>[0] = {}) =>
    device({ status: 'accepted', online: 1, agent_build: old, agent_ability: 'self', ...change })
  async function fleet(...changes: Parameters<typeof device>[0][]) {
    const { tenant_id, here } = await namespace(storage)
    const rows = changes.map((change) => agent(change))
    for (const row of rows) await here.devices.insert(row)
    return { tenant_id, here, uids: rows.map(({ uid }) => uid) }
  }

  test('those that could install it are asked for, in their namespace alone', async () => {
    const { agentUpdates: store } = storage.stores
    const { tenant_id, here, uids } = await fleet(
      {},
      { agent_build: offered },
      { agent_ability: 'package' },
      { status: 'pending' },
      { info_arch: 'arm64' },
      { update_failed: offered, update_reason: 'full' },
    )
    const other = await fleet({})
    expect(await store.isBehind(tenant_id, offer)).toBe(true)
    expect(await store.counts(tenant_id, offer)).toEqual({
      total: 3,
      current: 1,
      online: 1,
      updating: 0,
      failed: 1,
    })
    expect(await store.candidates(tenant_id, offer, 10, now)).toEqual([uids[0]])
    expect(await store.want(tenant_id, offer, other.uids, now)).toBe(0)
    expect(await store.want(tenant_id, offer, uids.slice(0, 2), now)).toBe(1)
    expect(await store.want(tenant_id, offer, 'all', now)).toBe(1)
    expect(await store.want(tenant_id, offer, 'all', now)).toBe(0)
    expect(await store.counts(tenant_id, offer)).toEqual({
      total: 3,
      current: 1,
      online: 1,
      updating: 2,
      failed: 0,
    })
    expect((await other.here.devices.find(other.uids[0] ?? ''))?.update_build).toBe('')
    await store.cancel(tenant_id)
    expect((await here.devices.find(uids[0] ?? ''))?.update_build).toBe('')
  })

  test('a namespace in which all run it is not behind, whatever the build sorts before or after', async () => {
    const { tenant_id } = await fleet({ agent_build: offered }, { agent_build: '', agent_ability: '' })
    expect(await storage.stores.agentUpdates.isBehind(tenant_id, offer)).toBe(false)
    for (const build of ['0'.repeat(16), 'f'.repeat(16)]) {
      const one = await fleet({ agent_build: build })
      expect(await storage.stores.agentUpdates.isBehind(one.tenant_id, offer)).toBe(true)
    }
  })

  test('turns go to those who have waited longest and are online; who is silent leaves its place', async () => {
    const { agentUpdates: store } = storage.stores
    const waits = (at: string) => ({ update_build: offered, update_wanted_at: at })
    const { tenant_id, uids } = await fleet(waits(later), waits(earlier), { ...waits(earlier), online: 0 })
    expect(await store.ask(0, now)).toEqual([])
    expect(await store.ask(1, now)).toEqual([{ tenant_id, uid: uids[1] }])
    expect(await store.fetching(earlier)).toEqual([tenant_id])
    expect(await store.fetching(later)).toEqual([])
    expect(await store.ask(5, now, [tenant_id])).toEqual([])
    expect(await store.ask(5, now)).toEqual([{ tenant_id, uid: uids[0] }])
    expect(await store.ask(5, now)).toEqual([])
    expect(await store.giveUp(earlier, 'silent')).toEqual([])
    expect(new Set((await store.giveUp(later, 'silent')).map(({ uid }) => uid))).toEqual(
      new Set(uids.slice(0, 2)),
    )
    expect(await store.renew('c'.repeat(16))).toEqual([{ tenant_id, uid: uids[2] }])
    await store.cancel(tenant_id)
  })

  test('a wave is kept for each namespace, and goes with it', async () => {
    const { agentUpdates: store, namespaces } = storage.stores
    const { tenant_id } = await fleet()
    await namespaces.save(tenant_id, { agent_updates: 'automatic' })
    expect(await store.automatic()).toContain(tenant_id)
    const wave = { tenant_id, build: offered, wave: 0, opened_at: now, stopped: '' }
    await store.saveWave(wave)
    await store.saveWave({ ...wave, wave: 1, stopped: 'why' })
    expect(await store.wave(tenant_id)).toEqual({ ...wave, wave: 1, stopped: 'why' })
    await namespaces.remove(tenant_id)
    expect(await store.wave(tenant_id)).toBeUndefined()
    expect(await store.automatic()).not.toContain(tenant_id)
  })

  test('of keys and releases that two nodes make at once, one stays', async () => {
    const { updateKeys, agentReleases } = storage.stores
    const key = (previous: string) => ({
      public_key: unique('key'),
      previous,
      private_key: 'sealed',
      endorsement: '',
      created_at: now,
    })
    await Promise.all([updateKeys.insert(key('')), updateKeys.insert(key(''))])
    expect(await updateKeys.list()).toHaveLength(1)
    const release = { build: offered, version: '0.1.0', released_at: now }
    await Promise.all([
      agentReleases.insert(release),
      agentReleases.insert({ ...release, released_at: later }),
      agentReleases.insert({ ...release, build: old }),
    ])
    const moments = (await agentReleases.list()).map(({ released_at }) => released_at)
    expect(new Set(moments).size).toBe(moments.length)
    expect(moments).toEqual(moments.toSorted().toReversed())
  })
})

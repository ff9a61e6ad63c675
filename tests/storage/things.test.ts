// Storage of what is in a namespace, the same on both databases: devices and their presence, sessions and
// recordings, public keys, firewall rules, API keys, connectors, and what is left when the namespace goes.
// Lists of devices, which are planned with care, have a file of their own (device-lists.test.ts); so has what
// separates namespaces (scope.test.ts).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Stores } from '../../server/src/storage/stores.ts'
import {
  apiKey,
  auditStream,
  connector,
  deadLetter,
  databases,
  device,
  earlier,
  firewallRule,
  later,
  namespace,
  now,
  openFresh,
  page,
  publicKey,
  refusal,
  session,
  unique,
  user,
  type Storage,
} from './databases.ts'

describe.each(databases)('$name', (database) => {
  let storage: Storage
  let stores: Stores
  beforeAll(async () => {
    storage = await openFresh(database)
    stores = storage.stores
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  test('a device comes back as it was inserted, by uid, by name and by MAC', async () => {
    const { tenant_id, here } = await namespace(storage)
    const row = device({ status: 'accepted', mac: unique('mac'), tags: '["pier"]', online: 1 })
    await here.devices.insert(row)
    const found = await here.devices.find(row.uid)
    expect(found).toEqual({ ...row, tenant_id, id: expect.any(Number) as number })
    expect(await here.devices.findAcceptedByName(row.name)).toEqual(found)
    expect(await here.devices.findAcceptedByMac(row.mac)).toEqual(found)
    expect(await here.devices.findMany([row.uid, 'unknown'])).toEqual([found])
    expect(await here.devices.findMany([])).toEqual([])
    expect(await here.devices.find('unknown')).toBeUndefined()
  })

  test('by name and by MAC only accepted devices are found', async () => {
    const { here } = await namespace(storage)
    const row = device({ status: 'rejected', mac: unique('mac') })
    await here.devices.insert(row)
    expect(await here.devices.findAcceptedByName(row.name)).toBeUndefined()
    expect(await here.devices.findAcceptedByMac(row.mac)).toBeUndefined()
  })

  test('a uid is there once on the whole server', async () => {
    const [one, other] = [await namespace(storage), await namespace(storage)]
    const row = device()
    await one.here.devices.insert(row)
    expect(stores.isDuplicate(await refusal(one.here.devices.insert(row)))).toBe(true)
    expect(stores.isDuplicate(await refusal(other.here.devices.insert(row)))).toBe(true)
  })

  test('two accepted devices of a namespace cannot share a name; pending ones can, and other namespaces can', async () => {
    const [one, other] = [await namespace(storage), await namespace(storage)]
    const accepted = device({ name: 'crane', status: 'accepted' })
    await one.here.devices.insert(accepted)
    await other.here.devices.insert(device({ name: 'crane', status: 'accepted' }))
    const pending = device({ name: 'crane' })
    await one.here.devices.insert(pending)
    const promotion = await refusal(one.here.devices.save(pending.uid, { status: 'accepted' }))
    expect(stores.isDuplicate(promotion)).toBe(true)
    expect((await one.here.devices.find(pending.uid))?.status).toBe('pending')
  })

  test('saving and removing a device leave the others as they were', async () => {
    const { here } = await namespace(storage)
    const [one, other] = [device(), device()]
    await here.devices.insert(one)
    await here.devices.insert(other)
    await here.devices.save(one.uid, { name: 'new', public_url: 1 })
    expect(await here.devices.find(one.uid)).toMatchObject({ ...one, name: 'new', public_url: 1 })
    expect(await here.devices.remove(one.uid)).toBe(true)
    expect(await here.devices.remove(one.uid)).toBe(false)
    expect(await here.devices.find(other.uid)).toMatchObject(other)
  })

  test('those that were not chosen become pending', async () => {
    const { here } = await namespace(storage)
    const [kept, lost, rejected] = [
      device({ status: 'accepted' }),
      device({ status: 'accepted' }),
      device({ status: 'rejected' }),
    ]
    for (const row of [kept, lost, rejected]) await here.devices.insert(row)
    expect(await here.devices.keepAccepted([kept.uid], later)).toEqual([lost.uid])
    expect(await here.devices.find(kept.uid)).toMatchObject(kept)
    expect(await here.devices.find(lost.uid)).toMatchObject({ status: 'pending', status_update_at: later })
    expect(await here.devices.find(rejected.uid)).toMatchObject(rejected)
    expect(await here.devices.keepAccepted([], later)).toEqual([kept.uid])
  })

  test('the most used devices come first, and only those that are still there', async () => {
    const { here } = await namespace(storage)
    const rows = [device(), device(), device()]
    for (const row of rows) await here.devices.insert(row)
    const [a, b, c] = rows.map((row) => row.uid) as [string, string, string]
    for (const uid of [b, b, b, a, a, 'gone', 'gone', 'gone', 'gone', c])
      await here.sessions.insert(session(uid))
    expect((await here.devices.mostUsed(2)).map((row) => row.uid)).toEqual([b, a])
  })

  test('tags are known by the devices that carry them', async () => {
    const { here } = await namespace(storage)
    const [one, other] = [
      device({ tags: '["pier","quay"]' }),
      device({ tags: '["quay"]', status: 'rejected' }),
    ]
    await here.devices.insert(one)
    await here.devices.insert(other)
    expect((await here.devices.tags()).toSorted()).toEqual(['pier', 'quay'])
    expect(await here.devices.withTag('pier')).toEqual([{ uid: one.uid, tags: one.tags }])
    expect((await here.devices.withTag('quay')).map((row) => row.uid).toSorted()).toEqual(
      [one.uid, other.uid].toSorted(),
    )
    await here.devices.save(one.uid, { tags: '["mole"]' })
    expect((await here.devices.tags()).toSorted()).toEqual(['mole', 'quay'])
    await here.devices.remove(other.uid)
    expect(await here.devices.tags()).toEqual(['mole'])
  })

  test('counters follow the devices', async () => {
    const { tenant_id, here } = await namespace(storage)
    expect([
      await here.devices.countWithStatus('accepted'),
      await stores.namespaces.deviceCount(tenant_id),
    ]).toEqual([0, 0])
    await here.devices.insert(device({ status: 'accepted', online: 1, tags: '["pier"]' }))
    await here.devices.insert(device())
    expect(await here.devices.countWithStatus('accepted')).toBe(1)
    expect(await stores.namespaces.deviceCount(tenant_id)).toBe(1)
    const counts = await stores.namespaces.deviceCounts([tenant_id, 'nowhere'])
    expect([counts.get(tenant_id), counts.get('nowhere')]).toEqual([1, undefined])
    expect(await stores.namespaces.deviceCounts([])).toEqual(new Map())
    expect(Object.fromEntries(await here.devices.tallies())).toMatchObject({
      'devices.accepted': 1,
      'devices.pending': 1,
      'online.accepted': 1,
    })
  })

  test('the time that the end of a tunnel gives counts, though it is earlier than what was written', async () => {
    const { here } = await namespace(storage)
    const row = device({ tunnel: 7 })
    await here.devices.insert(row)
    const seen = { uid: row.uid, tunnel: true, number: 7 }
    await stores.presence.write([{ ...seen, last_seen: later, online: true }], 'node-1')
    await stores.presence.write([{ ...seen, last_seen: earlier, online: false }], 'node-1')
    expect(await here.devices.find(row.uid)).toMatchObject({ last_seen: earlier, online: 0, node: '' })
  })

  test('presence is written in batches, for the named devices alone', async () => {
    const [one, other] = [await namespace(storage), await namespace(storage)]
    const [a, b, c] = [device(), device({ last_seen: earlier }), device({ online: 1, last_seen: earlier })]
    await one.here.devices.insert(a)
    await other.here.devices.insert(b)
    await one.here.devices.insert(c)
    await stores.presence.write([
      { uid: a.uid, last_seen: later, online: true },
      { uid: b.uid, last_seen: earlier, online: true },
      { uid: 'unknown', last_seen: now, online: true },
    ])
    await stores.presence.write([])
    expect(await one.here.devices.find(a.uid)).toMatchObject({ last_seen: later, online: 1 })
    expect(await other.here.devices.find(b.uid)).toMatchObject({ last_seen: earlier, online: 1 })
    expect(await one.here.devices.find(c.uid)).toMatchObject({ last_seen: earlier, online: 1 })
    const known = [a.uid, b.uid, c.uid]
    const online = (await stores.presence.online()).filter((row) => known.includes(row.uid))
    expect(online.at(-1)).toEqual({ uid: a.uid, last_seen: later })
    await stores.presence.forgetOlderThan(now)
    expect(await Promise.all([one.here.devices.find(a.uid), other.here.devices.find(b.uid)])).toMatchObject([
      { online: 1 },
      { online: 0 },
    ])
    await stores.presence.markOffline(a.uid)
    expect(await one.here.devices.find(a.uid)).toMatchObject({ online: 0, last_seen: later })
  })

  test('sessions are found, saved, and listed from the newest on', async () => {
    const { tenant_id, here } = await namespace(storage)
    const rows = [
      session('d', { started_at: earlier }),
      session('d', { started_at: later }),
      session('d', { started_at: now }),
    ]
    for (const row of rows) await here.sessions.insert(row)
    const [oldest, newest, middle] = rows.map((row) => ({ ...row, tenant_id }))
    expect(await here.sessions.find(oldest!.uid)).toEqual(oldest)
    expect(await here.sessions.list(page(2))).toEqual({ items: [newest, middle], total: 3 })
    expect(await here.sessions.list(page(2, 2))).toEqual({ items: [oldest], total: 3 })
    await here.sessions.save(oldest!.uid, { authenticated: 1, type: 'exec' })
    expect(await here.sessions.find(oldest!.uid)).toEqual({ ...oldest, authenticated: 1, type: 'exec' })
    expect(await here.sessions.find(middle!.uid)).toEqual(middle)
    expect(stores.isDuplicate(await refusal(here.sessions.insert(rows[0]!)))).toBe(true)
  })

  test('the sessions of a device are touched, closed, moved and removed together', async () => {
    const { here } = await namespace(storage)
    const [live, ended, other] = [session('a'), session('a', { active: 0 }), session('b')]
    for (const row of [live, ended, other]) await here.sessions.insert(row)
    await here.sessions.touch('a', [live.uid, ended.uid, other.uid], later)
    const seen = async () =>
      Promise.all([live, ended, other].map(async ({ uid }) => (await here.sessions.find(uid))?.last_seen))
    expect(await seen()).toEqual([later, now, now])
    await here.sessions.closeOfDevice('a')
    expect((await here.devices.tallies()).get('sessions.active')).toBe(1)
    await here.sessions.moveToDevice('a', 'c')
    expect((await here.sessions.find(live.uid))?.device_uid).toBe('c')
    await here.sessions.removeOfDevice('c')
    expect((await here.sessions.list(page())).items.map((row) => row.uid)).toEqual([other.uid])
  })

  test('a session that goes leaves a note if there may be a recording of it, however it goes', async () => {
    const [one, other] = [await namespace(storage), await namespace(storage)]
    const [recorded, live, plain] = [
      session('a', { recorded: 1, active: 0 }),
      session('a', { active: 1 }),
      session('a', { active: 0 }),
    ]
    for (const row of [recorded, live, plain]) await one.here.sessions.insert(row)
    const elsewhere = session('b', { recorded: 1 })
    await other.here.sessions.insert(elsewhere)
    const unwanted = async () =>
      (await stores.recordings.unwanted(1000))
        .filter(({ tenant_id }) => [one.tenant_id, other.tenant_id].includes(tenant_id))
        .map((row) => `${row.session_uid} ${row.exists === null ? 'gone' : 'there'}`)
        .toSorted()
    expect(await unwanted()).toEqual([])
    await one.here.sessions.removeOfDevice('a')
    expect(await unwanted()).toEqual([`${recorded.uid} gone`, `${live.uid} gone`].toSorted())
    await stores.transaction((inside) => inside.namespaces.remove(other.tenant_id))
    expect(await unwanted()).toHaveLength(3)
    // One that is there again is told apart.
    await one.here.sessions.insert(recorded)
    expect(await unwanted()).toContain(`${recorded.uid} there`)
    for (const uid of [recorded.uid, live.uid, elsewhere.uid]) await stores.recordings.forget(uid)
    expect(await unwanted()).toEqual([])
  })

  test('recordings run out when their session ended long ago, the oldest first, and not while it goes on', async () => {
    const { tenant_id, here } = await namespace(storage)
    const ended = (last_seen: string, more = {}) =>
      session('a', { recorded: 1, active: 0, last_seen, ...more })
    const [old, older, recent] = [
      ended('2001-02-01T00:00:00.000Z'),
      ended('2001-01-01T00:00:00.000Z'),
      ended(now),
    ]
    const [going, plain] = [
      ended('2001-01-01T00:00:00.000Z', { active: 1 }),
      ended('2001-01-01T00:00:00.000Z', { recorded: 0 }),
    ]
    for (const row of [old, older, recent, going, plain]) await here.sessions.insert(row)
    const expired = async (limit: number) =>
      (await stores.transaction((inside) => inside.recordings.expire('2002-01-01T00:00:00.000Z', limit)))
        .filter((row) => row.tenant_id === tenant_id)
        .map((row) => row.uid)
    expect([await expired(1), await expired(10), await expired(10)]).toEqual([[older.uid], [old.uid], []])
    expect(await here.sessions.find(old.uid)).toMatchObject({ recorded: 0, index_at: null })
    const unwanted = (await stores.recordings.unwanted(1000)).filter((row) => row.tenant_id === tenant_id)
    expect(Object.fromEntries(unwanted.map((row) => [row.session_uid, row.exists]))).toEqual({
      [old.uid]: null,
      [older.uid]: null,
    })
  })

  test('public keys are found, saved, removed, and listed by age', async () => {
    const { tenant_id, here } = await namespace(storage)
    const [young, old] = [publicKey('1', { created_at: later }), publicKey('2', { created_at: earlier })]
    await here.publicKeys.insert(young)
    await here.publicKeys.insert(old)
    expect(await here.publicKeys.find('1')).toEqual({ ...young, tenant_id })
    expect((await here.publicKeys.list([], page())).items.map((row) => row.fingerprint)).toEqual(['2', '1'])
    expect((await here.publicKeys.all()).length).toBe(2)
    expect(stores.isDuplicate(await refusal(here.publicKeys.insert(young)))).toBe(true)
    await here.publicKeys.save('1', { name: 'new' })
    expect(await here.publicKeys.find('2')).toEqual({ ...old, tenant_id })
    expect(await here.publicKeys.find('1')).toEqual({ ...young, tenant_id, name: 'new' })
    expect([await here.publicKeys.remove('1'), await here.publicKeys.remove('1')]).toEqual([true, false])
  })

  test('firewall rules are numbered, and asked in the order of their priority', async () => {
    const { tenant_id, here } = await namespace(storage)
    const last = await here.firewall.insert(firewallRule({ priority: 9 }))
    const first = await here.firewall.insert(firewallRule({ priority: 2, action: 'deny', active: 0 }))
    const second = await here.firewall.insert(firewallRule({ priority: 2 }))
    expect(await here.firewall.find(first)).toEqual({
      ...firewallRule({ priority: 2, action: 'deny', active: 0 }),
      id: first,
      tenant_id,
    })
    expect((await here.firewall.all()).map((row) => row.id)).toEqual([first, second, last])
    expect((await here.firewall.list(page(1, 2))).items.map((row) => row.id)).toEqual([second])
    await here.firewall.save(last, { priority: 1 })
    expect((await here.firewall.all()).map((row) => row.id)).toEqual([last, first, second])
    expect([await here.firewall.remove(last), await here.firewall.remove(last)]).toEqual([true, false])
    expect(await here.firewall.list(page())).toMatchObject({ total: 2 })
  })

  test('a number of a removed firewall rule is not given again', async () => {
    const { here } = await namespace(storage)
    const id = await here.firewall.insert(firewallRule())
    await here.firewall.remove(id)
    expect(await here.firewall.insert(firewallRule())).toBeGreaterThan(id)
  })

  test('API keys are found, renamed, removed with their maker, and sorted by what was asked', async () => {
    const { tenant_id, owner, here } = await namespace(storage)
    const [a, b] = [
      apiKey(owner.id, { name: 'a', expires_in: 9 }),
      apiKey('other', { name: 'b', expires_in: 1, hash: unique('hash') }),
    ]
    await here.apiKeys.insert(a)
    await here.apiKeys.insert(b)
    const names = async (...by: ['name' | 'expires_in', 'asc' | 'desc']) =>
      (await here.apiKeys.list(page(), ...by)).items.map((row) => row.name)
    expect(await here.apiKeys.find('a')).toEqual({ ...a, tenant_id })
    expect([await names('name', 'desc'), await names('expires_in', 'asc')]).toEqual([
      ['b', 'a'],
      ['b', 'a'],
    ])
    expect(await here.apiKeys.list(page(1, 2), 'name', 'asc')).toEqual({
      items: [{ ...b, tenant_id }],
      total: 2,
    })
    expect(stores.isDuplicate(await refusal(here.apiKeys.insert(apiKey(owner.id, { name: 'a' }))))).toBe(true)
    expect(stores.isDuplicate(await refusal(here.apiKeys.save('a', { name: 'b' })))).toBe(true)
    await here.apiKeys.save('a', { name: 'c' })
    await here.apiKeys.removeOf(owner.id)
    expect(await names('name', 'asc')).toEqual(['b'])
    expect([await here.apiKeys.remove('b'), await here.apiKeys.remove('b')]).toEqual([true, false])
  })

  test('connectors are found, saved, removed, and listed on or off', async () => {
    const { tenant_id, here } = await namespace(storage)
    const [on, off] = [connector({ enable: 1, tls: 'sealed' }), connector({ created_at: earlier })]
    await here.connectors.insert(on)
    await here.connectors.insert(off)
    expect(await here.connectors.find(on.uid)).toEqual({ ...on, tenant_id })
    const uids = async (enable?: boolean) =>
      (await here.connectors.list(page(), enable)).items.map((row) => row.uid)
    expect([await uids(), await uids(true), await uids(false)]).toEqual([
      [off.uid, on.uid],
      [on.uid],
      [off.uid],
    ])
    await here.connectors.save(on.uid, { state: 'connected', message: 'well' })
    expect(await here.connectors.find(off.uid)).toEqual({ ...off, tenant_id })
    expect(stores.isDuplicate(await refusal(here.connectors.insert(on)))).toBe(true)
    expect([await here.connectors.remove(on.uid), await here.connectors.remove(on.uid)]).toEqual([
      true,
      false,
    ])
  })

  test('namespaces are listed for a member, for a key, and by filter', async () => {
    const [one, other] = [await namespace(storage), await namespace(storage)]
    const member = user()
    await stores.users.insert(member)
    for (const { tenant_id } of [one, other])
      await stores.namespaces.addMember({
        tenant_id,
        user_id: member.id,
        role: 'observer',
        epoch: 'e',
        created_at: now,
      })
    await other.here.devices.insert(device({ status: 'accepted' }))
    const names = async (
      whose: { user_id: string } | { tenant_id: string },
      property?: string,
      value: string | number = '',
    ) => {
      const groups = property
        ? [{ join: 'and', conditions: [{ property, operator: 'eq', value }] } as const]
        : []
      return (await stores.namespaces.list(whose, groups, page())).items.map((row) => row.name)
    }
    expect(await names({ user_id: member.id })).toEqual([one.name, other.name])
    expect(await names({ user_id: one.owner.id })).toEqual([one.name])
    expect(await names({ tenant_id: other.tenant_id })).toEqual([other.name])
    expect(await names({ user_id: member.id }, 'name', other.name)).toEqual([other.name])
    expect(await names({ user_id: member.id }, 'device_count', 1)).toEqual([other.name])
    expect((await stores.namespaces.list({ user_id: member.id }, [], page(1, 2))).total).toBe(2)
  })

  test('a namespace that goes takes everything along, and leaves the others whole', async () => {
    const [one, other] = [await namespace(storage), await namespace(storage)]
    for (const { here, owner } of [one, other]) {
      const row = device({ status: 'accepted', tags: '["pier"]', online: 1 })
      await here.devices.insert(row)
      const live = session(row.uid)
      await here.sessions.insert(live)
      await here.publicKeys.insert(publicKey('1'))
      await here.firewall.insert(firewallRule())
      await here.apiKeys.insert(apiKey(owner.id))
      await here.connectors.insert(connector())
      const stream = auditStream()
      await here.auditStreams.insert(stream)
      await here.auditStreams.addLetter(deadLetter(stream.uid), 1)
      await stores.users.save(owner.id, {
        preferred_tenant: here === one.here ? one.tenant_id : other.tenant_id,
      })
    }
    const tables = [
      'members',
      'devices',
      'device_tags',
      'sessions',
      'public_keys',
      'firewall_rules',
      'api_keys',
    ] as const
    const rows = async (tenant_id: string) => {
      const found: unknown[] = []
      const others = ['connectors', 'audit_streams', 'audit_dead_letters', 'tallies', 'namespaces'] as const
      for (const table of [...tables, ...others])
        found.push(
          await storage.opened.db.selectFrom(table).selectAll().where('tenant_id', '=', tenant_id).execute(),
        )
      return found
    }
    const before = await rows(other.tenant_id)
    await stores.transaction((inside) => inside.namespaces.remove(one.tenant_id))
    expect((await rows(one.tenant_id)).flat()).toEqual([])
    expect(await rows(other.tenant_id)).toEqual(before)
    expect((await stores.users.find(one.owner.id))?.preferred_tenant).toBeNull()
    expect((await stores.users.find(other.owner.id))?.preferred_tenant).toBe(other.tenant_id)
  })
})

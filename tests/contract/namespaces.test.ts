// Namespaces: making, naming, settings, who sees which, and that deleting one leaves nothing of it behind.
// Members are in members.test.ts.
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { encodeFilter } from '@hawser/contract/filters'
import { sharedPlace, startPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

const refused = (status: number) => ({ status })
const params = { tenant: sample.tenant }
let made = 0
const newName = (): string => `basin-${++made}`
const create = async (place: Place, name = newName()) =>
  (await place.owner.namespaces.create({ body: { name } })).body

describe('a new namespace', () => {
  const place = sharedPlace()

  test('has its maker as owner and only member, records sessions and has no limit', async () => {
    const before = place.clock.now()
    const namespace = await create(place, 'Dry-Dock')
    expect(namespace).toEqual({
      name: 'dry-dock',
      owner: sample.owner.id,
      tenant_id: expect.stringMatching(
        /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      ) as unknown,
      members: [{ id: sample.owner.id, username: sample.owner.username, role: 'owner' }],
      settings: {
        session_record: true,
        connection_announcement: '',
        continue_unrecorded: false,
        accept_env: [],
        agent_updates: 'manual',
        reconnect_grace_s: 300,
        audit_retention_days: 365,
        require_person: false,
        hold_sessions: 1800,
        hold_unknown: false,
        join_without_consent: false,
        invite_outsiders: false,
        mask_secrets: true,
        mask_after: [],
        search: true,
        log_web_requests: false,
      },
      max_devices: -1,
      device_count: 0,
      devices_count: 0,
      created_at: expect.any(String) as unknown,
      billing: null,
    })
    expect(Date.parse(namespace.created_at)).toBeGreaterThanOrEqual(before)
    const tenant = namespace.tenant_id
    expect((await place.owner.namespaces.get({ params: { tenant } })).body).toEqual(namespace)
    // The token is not switched by it.
    expect((await place.owner.devices.list()).total).toBe(2)
  })

  test('does not take its id from the request', async () => {
    const tenant = '00000000-0000-4000-8000-0000000000aa'
    const body = { name: newName(), tenant, tenant_id: tenant, owner: sample.stranger.id, max_devices: 999 }
    expect((await place.owner.namespaces.create({ body })).body).toMatchObject({
      owner: sample.owner.id,
      max_devices: -1,
    })
    await expect(place.owner.namespaces.get({ params: { tenant } })).rejects.toMatchObject(refused(404))
  })

  test.each(['a', '1', 'a-b-c', 'x'.repeat(63), 'a-', '0-0'])('may be called %s', async (name) => {
    expect((await create(place, name)).name).toBe(name)
  })

  test.each(['', '-a', 'a.b', 'a b', 'a_b', 'é', 'a/b', 'x'.repeat(64), 'a\n', ' a'])(
    'may not be called %j, new or renamed',
    async (name) => {
      await expect(place.owner.namespaces.create({ body: { name } })).rejects.toMatchObject(refused(400))
      await expect(place.owner.namespaces.edit({ params, body: { name } })).rejects.toMatchObject(
        refused(400),
      )
    },
  )

  test('needs a name that no other one has on this server, whatever its letters', async () => {
    for (const name of [sample.namespace, sample.namespace.toUpperCase(), 'elsewhere'])
      await expect(place.owner.namespaces.create({ body: { name } })).rejects.toMatchObject(refused(409))
    const parallel = await Promise.allSettled(Array.from({ length: 4 }, () => create(place, 'at-once')))
    expect(
      parallel
        .map((call) => (call.status === 'fulfilled' ? 200 : (call.reason as { status: number }).status))
        .toSorted((a, b) => a - b),
    ).toEqual([200, 409, 409, 409])
  })

  test('can be made by someone without any, and not by a key or a device', async () => {
    await place.rooms.namespaces.leave(sample.tenant, sample.observer.id)
    const { body } = await place.api().users.login({ body: sample.observer })
    expect(body.tenant).toBe('')
    const lonely = place.api({ token: body.token })
    await expect(lonely.devices.list()).rejects.toMatchObject(refused(403))
    expect((await lonely.namespaces.list()).body).toEqual([])
    expect((await lonely.namespaces.create({ body: { name: newName() } })).body.owner).toBe(
      sample.observer.id,
    )
    for (const client of [place.key, place.device])
      await expect(client.namespaces.create({ body: { name: newName() } })).rejects.toMatchObject(
        refused(403),
      )
    await expect(place.nobody.namespaces.create({ body: { name: newName() } })).rejects.toMatchObject(
      refused(401),
    )
  })

  test('is refused to someone who owns as many as they may', async () => {
    await using own = await startPlace()
    await own.rooms.stores.users.save(sample.owner.id, { max_namespaces: 2 })
    await create(own)
    await expect(create(own)).rejects.toMatchObject(refused(403))
    await own.rooms.stores.users.save(sample.owner.id, { max_namespaces: -1 })
    await create(own)
  })
})

describe('an edited namespace', () => {
  const place = sharedPlace()
  const edit = (tenant: string, body: object) => place.owner.namespaces.edit({ params: { tenant }, body })

  test('changes only what was given', async () => {
    const before = await create(place)
    const tenant = before.tenant_id
    expect((await edit(tenant, {})).body).toEqual(before)
    expect((await edit(tenant, { settings: {} })).body).toEqual(before)
    expect((await edit(tenant, { settings: { session_record: false } })).body.settings).toEqual({
      session_record: false,
      connection_announcement: '',
      continue_unrecorded: false,
      accept_env: [],
      agent_updates: 'manual',
      reconnect_grace_s: 300,
      audit_retention_days: 365,
      require_person: false,
      hold_sessions: 1800,
      hold_unknown: false,
      join_without_consent: false,
      invite_outsiders: false,
      mask_secrets: true,
      mask_after: [],
      search: true,
      log_web_requests: false,
    })
    const settings = {
      session_record: false,
      connection_announcement: 'Mind the gap.\nAnd the tide: ⚓',
      continue_unrecorded: false,
      accept_env: [],
      agent_updates: 'manual',
      reconnect_grace_s: 300,
      audit_retention_days: 365,
      require_person: false,
      hold_sessions: 1800,
      hold_unknown: false,
      join_without_consent: false,
      invite_outsiders: false,
      mask_secrets: true,
      mask_after: [],
      search: true,
      log_web_requests: false,
    }
    expect(
      (await edit(tenant, { settings: { connection_announcement: settings.connection_announcement } })).body
        .settings,
    ).toEqual(settings)
    const renamed = newName()
    expect((await edit(tenant, { name: renamed.toUpperCase() })).body).toEqual({
      ...before,
      name: renamed,
      settings,
    })
    expect(
      (await edit(tenant, { settings: { connection_announcement: '' } })).body.settings
        .connection_announcement,
    ).toBe('')
    expect(
      (
        await edit(tenant, {
          owner: sample.stranger.id,
          max_devices: 1,
          tenant_id: sample.otherTenant,
          billing: {},
        })
      ).body,
    ).toMatchObject({
      owner: sample.owner.id,
      max_devices: -1,
      tenant_id: tenant,
      billing: null,
    })
  })

  test('keeps its own name without complaint, and does not get another’s', async () => {
    const { tenant_id, name } = await create(place)
    await edit(tenant_id, { name })
    await edit(tenant_id, { name: name.toUpperCase() })
    await expect(edit(tenant_id, { name: sample.namespace })).rejects.toMatchObject(refused(409))
    await expect(
      edit(tenant_id, { name: 'Elsewhere', settings: { session_record: false } }),
    ).rejects.toMatchObject(refused(409))
    expect((await place.owner.namespaces.get({ params: { tenant: tenant_id } })).body).toMatchObject({
      name,
      settings: { session_record: true },
    })
  })

  test('takes an announcement of 4096 characters and not of one more', async () => {
    const longest = 'é'.repeat(4096)
    expect(
      (await edit(sample.tenant, { settings: { connection_announcement: longest } })).body.settings
        .connection_announcement,
    ).toBe(longest)
    await expect(
      edit(sample.tenant, { settings: { connection_announcement: `${longest}x` } }),
    ).rejects.toMatchObject(refused(400))
    for (const settings of [
      null,
      'on',
      { session_record: 'true' },
      { session_record: 1 },
      { connection_announcement: 5 },
    ])
      await expect(edit(sample.tenant, { settings })).rejects.toMatchObject(refused(400))
  })

  test('session recording is switched and asked for by its own operations too', async () => {
    const set = (body: object) =>
      place.administrator.namespaces.setSessionRecord({ params, body: body as { session_record: boolean } })
    const recorded = async () => [
      (await place.observer.namespaces.getSessionRecord()).body,
      (await place.observer.namespaces.get({ params })).body.settings.session_record,
    ]
    expect((await set({ session_record: false })).body).toBeUndefined()
    expect(await recorded()).toEqual([false, false])
    await set({ session_record: true })
    expect(await recorded()).toEqual([true, true])
    // Left out it means false.
    await set({})
    expect(await recorded()).toEqual([false, false])
    await expect(set({ session_record: 'true' })).rejects.toMatchObject(refused(400))
    await expect(
      place.operator.namespaces.setSessionRecord({ params, body: { session_record: true } }),
    ).rejects.toMatchObject(refused(403))
    expect((await place.key.namespaces.getSessionRecord()).body).toBe(false)
  })
})

describe('who sees what', () => {
  const place = sharedPlace()
  const names = async (client: Place['owner']) =>
    (await client.namespaces.list()).body.map(({ name }) => name)

  test('a user sees the namespaces of which they are a member, oldest first', async () => {
    place.clock.forward(1000)
    await create(place, 'second')
    expect(await names(place.owner)).toEqual([sample.namespace, 'second'])
    expect(await names(place.observer)).toEqual([sample.namespace])
    expect(await names(place.stranger)).toEqual(['elsewhere'])
    const { body, total } = await place.owner.namespaces.list({ query: { page: 2, per_page: 1 } })
    expect([body.map(({ name }) => name), total]).toEqual([['second'], 2])
  })

  test('a key sees its own namespace, whatever its maker is a member of', async () => {
    const other = await create(place)
    const { id } = (await place.owner.apiKeys.create({ body: { name: 'of-owner', expires_at: -1 } })).body
    const key = place.api({ apiKey: id })
    expect(await names(key)).toEqual([sample.namespace])
    expect((await key.namespaces.get({ params })).body.tenant_id).toBe(sample.tenant)
    for (const tenant of [other.tenant_id, sample.otherTenant]) {
      await expect(key.namespaces.get({ params: { tenant } })).rejects.toMatchObject(refused(404))
      await expect(
        key.namespaces.edit({ params: { tenant }, body: { name: 'stolen' } }),
      ).rejects.toMatchObject(refused(404))
      await expect(
        key.namespaces.setSessionRecord({ params: { tenant }, body: { session_record: false } }),
      ).rejects.toMatchObject(refused(404))
    }
    await expect(key.namespaces.remove({ params })).rejects.toMatchObject(refused(403))
  })

  test('a namespace of others, an unknown one and a malformed id are all 404', async () => {
    for (const tenant of [
      sample.otherTenant,
      '00000000-0000-4000-8000-0000000000ff',
      'harbour',
      sample.tenant.replace('1', 'A'),
    ]) {
      await expect(place.owner.namespaces.get({ params: { tenant } })).rejects.toMatchObject(refused(404))
      await expect(
        place.owner.namespaces.edit({ params: { tenant }, body: { name: 'stolen' } }),
      ).rejects.toMatchObject(refused(404))
      await expect(place.owner.namespaces.remove({ params: { tenant } })).rejects.toMatchObject(refused(404))
      await expect(
        place.owner.namespaces.setSessionRecord({ params: { tenant }, body: { session_record: false } }),
      ).rejects.toMatchObject(refused(404))
    }
    expect(
      (await place.stranger.namespaces.get({ params: { tenant: sample.otherTenant } })).body,
    ).toMatchObject({
      name: 'elsewhere',
      settings: { session_record: true },
    })
  })

  test('the role in the namespace of the path counts, not the one in the token’s', async () => {
    // The stranger owns one namespace and is an observer in the other; the owner the other way round.
    await place.rooms.namespaces.join(sample.tenant, sample.stranger.id, 'observer')
    await place.rooms.namespaces.join(sample.otherTenant, sample.owner.id, 'observer')
    const tenant = sample.otherTenant
    for (const [client, foreign] of [
      [place.stranger, sample.tenant],
      [place.owner, tenant],
    ] as const) {
      expect((await client.namespaces.get({ params: { tenant: foreign } })).status).toBe(200)
      await expect(
        client.namespaces.edit({ params: { tenant: foreign }, body: { name: 'stolen' } }),
      ).rejects.toMatchObject(refused(403))
      await expect(
        client.namespaces.setSessionRecord({ params: { tenant: foreign }, body: { session_record: false } }),
      ).rejects.toMatchObject(refused(403))
      await expect(client.namespaces.remove({ params: { tenant: foreign } })).rejects.toMatchObject(
        refused(403),
      )
    }
    // And where the role is enough, the token's namespace does not stand in the way.
    expect((await place.owner.namespaces.list()).total).toBeGreaterThan(1)
    const { tenant_id } = await create(place)
    expect(
      (await place.owner.namespaces.edit({ params: { tenant: tenant_id }, body: { name: 'own-one' } })).body
        .name,
    ).toBe('own-one')
  })
})

describe.each(oneDatabase)('on %s', (_, options) => {
  const place = sharedPlace(options)

  test('lists can be filtered', async () => {
    for (const name of ['crane-yard', 'crane-park']) await create(place, name)
    await place.owner.namespaces.edit({
      params,
      body: { settings: { session_record: false, connection_announcement: '100% water' } },
    })
    const found = async (
      name: string,
      operator: 'contains' | 'eq' | 'ne' | 'gt' | 'lt' | 'bool',
      value: unknown,
    ) => {
      const filter = encodeFilter([{ type: 'property', params: { name, operator, value } }])
      return (await place.owner.namespaces.list({ query: { filter } })).body
        .map((namespace) => namespace.name)
        .toSorted()
    }
    const all = ['crane-park', 'crane-yard', sample.namespace]
    expect(await found('name', 'contains', 'CRANE')).toEqual(['crane-park', 'crane-yard'])
    expect(await found('name', 'eq', 'harbour')).toEqual([sample.namespace])
    expect(await found('owner', 'eq', sample.owner.id)).toEqual(all)
    expect(await found('owner', 'eq', sample.stranger.id)).toEqual([])
    expect(await found('tenant_id', 'ne', sample.tenant)).toEqual(['crane-park', 'crane-yard'])
    expect(await found('max_devices', 'lt', 0)).toEqual(all)
    expect(await found('max_devices', 'gt', -1.5)).toEqual(all)
    expect(await found('max_devices', 'eq', 1e12)).toEqual([])
    expect(await found('device_count', 'gt', 0)).toEqual([sample.namespace])
    expect(await found('device_count', 'lt', '0.5')).toEqual(['crane-park', 'crane-yard'])
    expect(await found('settings.session_record', 'bool', 'false')).toEqual([sample.namespace])
    expect(await found('settings.connection_announcement', 'contains', '0% w')).toEqual([sample.namespace])
    expect(await found('created_at', 'gt', '2000-01-01')).toEqual(all)
    for (const name of ['password', 'members', 'settings'])
      await expect(found(name, 'eq', 'x')).rejects.toMatchObject(refused(400))
  })

  test('only the owner may shorten how long the audit log is kept', async () => {
    const days = (client: typeof place.owner, audit_retention_days: number) =>
      client.namespaces.edit({ params, body: { settings: { audit_retention_days } } })
    await expect(days(place.administrator, 364)).rejects.toMatchObject(refused(403))
    expect((await days(place.administrator, 0)).body.settings.audit_retention_days).toBe(0)
    await expect(days(place.administrator, 36_500)).rejects.toMatchObject(refused(403))
    expect((await days(place.owner, 30)).body.settings.audit_retention_days).toBe(30)
    expect((await days(place.administrator, 31)).body.settings.audit_retention_days).toBe(31)
  })

  test('deleting a namespace removes everything in it, and nothing else', async () => {
    const { background } = place.rooms
    const kept = await place.enrol({ tenant_id: sample.otherTenant })
    await place.owner.namespaces.setSessionRecord({ params, body: { session_record: true } })
    await place.owner.sessions.record({
      params: { uid: sample.session },
      body: { uid: sample.session, message: 'x', width: 80, height: 24 },
    })
    const { id } = (await place.owner.apiKeys.create({ body: { name: 'doomed', expires_at: -1 } })).body
    for (const client of [place.administrator, place.key])
      await expect(client.namespaces.remove({ params })).rejects.toMatchObject(refused(403))
    await place.rooms.stores.of(sample.tenant).removedDevices.keep('f'.repeat(64), '2024-01-01T00:00:00.000Z')
    await place.rooms.stores.billing.attempt(sample.tenant, 'customer', 'key')
    await place.owner.enrolmentKeys.loginKey()
    await place.rooms.stores.agentUpdates.saveWave({
      tenant_id: sample.tenant,
      build: 'b'.repeat(16),
      wave: 0,
      opened_at: '2024-01-01T00:00:00.000Z',
      stopped: '',
    })
    await place.rooms.stores.shellHubKeys.add({
      tenant_id: sample.tenant,
      fingerprint: 'f',
      public_key: 'key',
      added_at: '2024-01-01T00:00:00.000Z',
    })
    await place.rooms.stores.deviceEvents.add(
      [{ uid: sample.device, at: '2024-01-01T00:00:00.000Z', kind: 'up', detail: '{}' }],
      { own: ['up'], own_most: 10, own_eachEndOfHour: 10, kind_most: 10 },
    )
    await place.rooms.stores.sessionEventBatches.save([
      {
        session_uid: sample.session,
        seq: 1,
        at: '2024-01-01T00:00:00.000Z',
        kind: 'exec',
        subject: 'id',
        target: '',
        outcome: 'done',
        received: 0,
        sent: 0,
        sha256: '',
        why: '',
      },
    ])
    await place.rooms.stores.trafficSums.add([
      {
        uid: sample.device,
        day: '2024-01-01',
        idle_received: 1,
        idle_sent: 1,
        session_received: 1,
        session_sent: 1,
      },
    ])
    await place.owner.devices.addTag({ params: { uid: sample.device }, body: { tag: 'doomed' } })
    await place.owner.notes.set({ params: { uid: sample.device }, body: { text: 'x', version: 0 } })
    const before = await rowsOf(place, sample.tenant)
    // Every kind of thing that a namespace can hold is there; a new kind must be put there first.
    const tables = (await place.rooms.database.db.introspection.getTables()).filter(
      // What is still to be erased, or told to the payment provider, is noted there afterwards, for a moment;
      // and which node has a recording that goes on is forgotten with the recording. The index of the search
      // goes with its sessions (tests/storage/search-index.test.ts).
      ({ name, columns }) =>
        !['unwanted_recordings', 'usage_reports', 'unfinished_recordings', 'search_recordings'].includes(
          name,
        ) && columns.some((column) => column.name === 'tenant_id'),
    )
    expect(Object.keys(before).toSorted()).toEqual(tables.map(({ name }) => name).toSorted())
    const others = await rowsOf(place, sample.otherTenant)

    expect((await place.owner.namespaces.remove({ params })).body).toBeUndefined()
    await background.settled()
    // As the sweep of audit logs does; the head that shows its entries is gone.
    expect(await place.rooms.stores.of(sample.tenant).audit.head()).toBeUndefined()
    while (await place.rooms.stores.auditLogs.removeOld(sample.tenant, 5_000));
    expect(await rowsOf(place, sample.tenant)).toEqual({})
    expect(await rowsOf(place, sample.otherTenant)).toEqual(others)
    expect((await place.stranger.devices.get({ params: { uid: kept.uid } })).status).toBe(200)

    for (const client of [place.owner, place.observer, place.key, place.device, place.api({ apiKey: id })])
      await expect(client.devices.list()).rejects.toMatchObject(refused(401))
    // The people stay, and the next sign-in finds them another namespace, or none.
    const { body } = await place.api().users.login({ body: sample.observer })
    expect([body.tenant, body.role]).toEqual(['', ''])
    // Its name is free again.
    const fresh = (
      await place.api({ token: body.token }).namespaces.create({ body: { name: sample.namespace } })
    ).body
    expect([fresh.device_count, fresh.members.length]).toEqual([0, 1])
  })
})

/** How many rows of each table that has a tenant_id are of the namespace, tables without any left out. */
async function rowsOf(place: Place, tenant_id: string): Promise<Record<string, number>> {
  const { db } = place.rooms.database
  const counts: Record<string, number> = {}
  for (const { name, columns } of await db.introspection.getTables()) {
    if (!columns.some((column) => column.name === 'tenant_id')) continue
    const { rows } = await sql<{
      n: number
    }>`select count(*) as n from ${sql.table(name)} where tenant_id = ${tenant_id}`.execute(db)
    if (rows[0]!.n > 0) counts[name] = rows[0]!.n
  }
  return counts
}

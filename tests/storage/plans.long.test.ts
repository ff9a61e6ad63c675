// How SQLite comes by its rows. The stores run here on a connection that keeps every statement, and each is
// then explained (https://www.sqlite.org/eqp.html): no statement reads a whole table unless it is in the list
// of those that may, and the walks through lists sort nothing. It is asked twice: of a database without
// figures about itself, which is what a server has that was never restarted, and of one that was analysed,
// where SQLite believes it knows better.
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import path from 'node:path'
import {
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type CompiledQuery,
  type QueryResult,
} from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Condition, Group } from '@hawser/contract/filters'
import { searched_columns } from '../../server/src/storage/device-columns.ts'
import { sorted_columns, type DeviceQuery } from '../../server/src/storage/device-list.ts'
import { stores as storesOf, type Stores } from '../../server/src/storage/stores.ts'
import type { Tables } from '../../server/src/storage/tables.ts'
import {
  apiKey,
  databases,
  device,
  later,
  namespace,
  now,
  openAt,
  page,
  session,
  unique,
} from './databases.ts'

interface Recorder extends Disposable {
  readonly stores: Stores
  /** The plans of the statements that the work ran, by their text. */
  plansOf(work: () => Promise<unknown>): Promise<Map<string, string[]>>
  exec(sql: string): void
}

/** Stores on one connection that remembers what it was asked. */
function recorder(file: string): Recorder {
  const database = new DatabaseSync(file)
  const asked = new Map<string, readonly unknown[]>()
  const connection = {
    async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
      asked.set(sql, parameters)
      const statement = database.prepare(sql)
      const values = parameters as SQLInputValue[]
      if (statement.columns().length > 0) return { rows: statement.all(...values) as R[] }
      return { rows: [], numAffectedRows: BigInt(statement.run(...values).changes) }
    },
    streamQuery(): never {
      throw new Error('not used')
    },
  }
  const nothing = async (): Promise<void> => undefined
  const db = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createDriver: () => ({
        init: nothing,
        destroy: nothing,
        acquireConnection: async () => connection,
        releaseConnection: nothing,
        beginTransaction: nothing,
        commitTransaction: nothing,
        rollbackTransaction: nothing,
      }),
    },
  })
  const opened = {
    name: 'sqlite',
    db,
    reader: db,
    exclusively: (work: () => unknown) => work(),
    again: (work: () => unknown) => work(),
  }
  return {
    stores: storesOf({ ...opened, isDuplicate: () => false, [Symbol.asyncDispose]: nothing } as never),
    async plansOf(work) {
      asked.clear()
      await work()
      return new Map(
        [...asked].map(([sql, parameters]) => [
          sql,
          database
            .prepare(`explain query plan ${sql}`)
            .all(...(parameters as SQLInputValue[]))
            .map((row) => String(row.detail)),
        ]),
      )
    },
    exec: (sql) => database.exec(sql),
    [Symbol.dispose]: () => database.close(),
  }
}

const scans = (plan: readonly string[]): string[] =>
  // A virtual table (the trigrams, a JSON list) is asked with its own index, a subquery is what the lines
  // below it say, and one index holds nothing but the devices that are online.
  plan.filter(
    (line) =>
      line.startsWith('SCAN') &&
      !/VIRTUAL TABLE INDEX|^SCAN \(subquery|^SCAN fitting$|USING INDEX devices_online$/.test(line),
  )
const sorts = (plan: readonly string[]): string[] => plan.filter((line) => line.includes('TEMP B-TREE'))

const every = { groups: [], sort: 'last_seen', order: 'desc', ...page(10) } as const satisfies DeviceQuery
const where = (...conditions: Condition[]): Group[] => [{ join: 'and', conditions }]
const either = (...conditions: Condition[]): Group[] => [{ join: 'or', conditions }]
const tag = (value: string): Condition => ({ property: 'tags', operator: 'eq', value })
const contains = (property: string, value: string): Condition => ({ property, operator: 'contains', value })

const propertyOf = (column: string): string =>
  column === 'mac' ? 'identity.mac' : column.replace('info_', 'info.')

describe.each(['without figures', 'with figures'] as const)('%s', (figures) => {
  let place: Awaited<ReturnType<(typeof databases)[0]['migrated']>>
  let recorded: Recorder
  let tenant_id: string
  let owner: string
  let uid: string

  beforeAll(async () => {
    place = await databases[0]!.migrated()
    {
      await using storage = await openAt(place)
      const [one, other] = [await namespace(storage), await namespace(storage)]
      // Of a table with two rows even the best index is no help.
      for (let number = 0; number < 100; number++) await namespace(storage)
      tenant_id = one.tenant_id
      owner = one.owner.id
      await storage.stores.transaction(async (inside) => {
        // More than a filter gathers have the common tag, so that lists by it are walked.
        for (let number = 0; number < 2400; number++) {
          const { devices, sessions } = inside.of(number % 12 === 0 ? other.tenant_id : tenant_id)
          const row = device({
            name: `name-${number}`,
            status: number % 10 === 0 ? 'pending' : 'accepted',
            tags: number % 100 === 1 ? '["rare","common"]' : '["common"]',
            last_seen: new Date(1e12 + number).toISOString(),
            agent_ability: 'self',
            agent_build: number % 50 === 1 ? 'a'.repeat(16) : 'b'.repeat(16),
          })
          await devices.insert(row)
          if (number % 5 === 1) await sessions.insert(session(row.uid))
          if (number === 1) uid = row.uid
        }
      })
    }
    recorded = recorder(path.join(place.folder, 'hawser.db'))
    recorded.exec(
      figures === 'with figures'
        ? 'analyze'
        : 'drop table if exists sqlite_stat1; drop table if exists sqlite_stat4',
    )
  })
  // A connection keeps the figures that it found; only a new one is without them.
  beforeAll(() => {
    recorded[Symbol.dispose]()
    recorded = recorder(path.join(place.folder, 'hawser.db'))
  })
  afterAll(() => {
    recorded[Symbol.dispose]()
    place[Symbol.dispose]()
  })

  const list = (query: Partial<DeviceQuery>) =>
    recorded.plansOf(() => recorded.stores.of(tenant_id).devices.list({ ...every, ...query }))

  for (const sort of [...sorted_columns, 'status'] as const)
    test.each([
      { what: 'all', query: {} },
      { what: 'one status', query: { status: 'accepted' } },
      { what: 'a frequent tag', query: { groups: where(tag('common')) } },
      { what: 'a frequent tag and one status', query: { groups: where(tag('common')), status: 'accepted' } },
      { what: 'a frequent text', query: { groups: where(contains('name', 'name')) } },
      {
        what: 'a frequent value',
        query: { groups: where({ property: 'info.arch', operator: 'eq', value: 'amd64' }) },
      },
      {
        what: 'two groups',
        query: {
          groups: [...where(tag('common')), ...either(contains('name', 'nam'), contains('info.id', 'de'))],
        },
      },
    ] as const)(
      `devices by ${sort}, $what: every index is walked in order and nothing is sorted`,
      async ({ query }) => {
        for (const order of ['asc', 'desc'] as const) {
          const plans = await list({ ...query, sort, order, page: 3 })
          const [walk] = [...plans.keys()].filter((sql) => sql.includes('order by'))
          const column = sort === 'status' ? 'last_seen' : sort
          expect(
            plans
              .get(walk!)!
              .filter((line) => line.startsWith('SEARCH devices'))
              .every((line) => line.includes(`INDEX devices_by_${column} (`)),
            plans.get(walk!)!.join('\n'),
          ).toBe(true)
          for (const [sql, plan] of plans) {
            expect(scans(plan), `${sql}\n${plan.join('\n')}`).toEqual([])
            expect(sorts(plan), `${sql}\n${plan.join('\n')}`).toEqual([])
          }
        }
      },
    )

  test.each([
    { what: 'a rare tag', groups: where(tag('rare')) },
    {
      what: 'two tags',
      groups: where({ property: 'tags', operator: 'contains', value: ['rare', 'common'] }),
    },
    {
      what: 'a rare tag among other conditions',
      groups: where(tag('rare'), { property: 'info.arch', operator: 'ne', value: 'arm' }),
    },
    { what: 'a tag or a text', groups: either(tag('rare'), contains('name', 'me-12')) },
    ...searched_columns.map((column) => ({
      what: `a text in ${column}`,
      groups: where(contains(propertyOf(column), 'xyz')),
    })),
    { what: 'a text of exactly three letters', groups: where(contains('name', '-77')) },
  ] as const)(
    'devices with $what are found by their ids, not by a look at the namespace',
    async ({ groups }) => {
      const found = await recorded.stores.of(tenant_id).devices.list({ ...every, groups })
      for (const status of [undefined, 'accepted'] as const) {
        const plans = await list({ groups, status })
        for (const [sql, plan] of plans) {
          expect(scans(plan), `${sql}\n${plan.join('\n')}`).toEqual([])
          if (!sql.includes('from "devices"')) continue
          const searches = plan.filter((line) => line.startsWith('SEARCH devices'))
          expect(new Set(searches), `${sql}\n${plan.join('\n')}`).toEqual(
            new Set(['SEARCH devices USING INTEGER PRIMARY KEY (rowid=?)']),
          )
        }
      }
      expect(found.total).toBeLessThan(1000)
    },
  )

  test('of several words the longest is asked of the index, and the others only of what it finds', async () => {
    const word = (text: string) => either(contains('name', text), contains('info.pretty_name', text))
    for (const groups of [
      [...word('name'), ...word('name-1234')],
      [...word('name-1234'), ...where(tag('common'))],
    ]) {
      const plans = await list({ groups, status: 'accepted' })
      const gathers = [...plans].filter(([sql]) => sql.includes('device_search'))
      expect(gathers.length).toBeGreaterThan(0)
      for (const [sql] of gathers) {
        expect(sql.match(/device_search match/g)).toHaveLength(2)
        expect(sql).not.toContain('select device_id from device_tags')
      }
    }
  })

  test('of many conditions one is asked of the index where all must hold, and none where any will do', async () => {
    const texts = Array.from({ length: 16 }, (_, n) => contains('name', `name-${n}`))
    const longest = contains('info.pretty_name', 'name-1234')
    const asked = async (join: 'and' | 'or') => {
      const plans = await list({ groups: [{ join, conditions: [...texts, longest] }], status: 'accepted' })
      return Math.max(...[...plans.keys()].map((sql) => sql.split('device_search match').length - 1))
    }
    expect(await asked('and')).toBe(1)
    expect(await asked('or')).toBe(0)
  })

  test('devices with an outdated agent are found by the index of builds, and walked where they are many', async () => {
    const groups = where({ property: 'agent.outdated', operator: 'eq', value: true })
    const offer = { build: 'b'.repeat(16), arches: ['amd64'], version: '1', newer: [] }
    for (const status of [undefined, 'accepted'] as const) {
      const found = await recorded.stores.of(tenant_id).devices.list({ ...every, groups, offer, status })
      expect(found.total).toBe(48)
      for (const [sql, plan] of await list({ groups, offer, status })) {
        expect(scans(plan), `${sql}\n${plan.join('\n')}`).toEqual([])
        if (!sql.includes('from "devices"')) continue
        const searches = plan.filter((line) => line.startsWith('SEARCH devices'))
        expect(new Set(searches), `${sql}\n${plan.join('\n')}`).toEqual(
          new Set([
            'SEARCH devices USING INDEX devices_by_build (tenant_id=? AND agent_build<?)',
            'SEARCH devices USING INDEX devices_by_build (tenant_id=? AND agent_build>?)',
          ]),
        )
      }
    }
    const newest = { ...offer, build: 'c'.repeat(16) }
    const plans = await list({ groups, offer: newest, status: 'accepted', sort: 'name' })
    const [walk] = [...plans].find(([sql]) => /case when.*order by/s.test(sql)) ?? []
    expect(plans.get(walk!)).toEqual([
      'SEARCH devices USING INDEX devices_by_name (tenant_id=? AND status=?)',
    ])
  })

  test('a total without a filter, or with one tag, is read from the counters', async () => {
    for (const groups of [[], where(tag('common'))]) {
      const plans = await list({ groups })
      const totals = [...plans.keys()].filter((sql) => !sql.includes('order by') && !sql.includes('"id" in'))
      expect(totals).toHaveLength(1)
      expect(plans.get(totals[0]!)).toEqual(['SEARCH tallies USING PRIMARY KEY (tenant_id=? AND subject=?)'])
    }
  })

  test('sessions are walked from the newest on', async () => {
    const plans = await recorded.plansOf(() => recorded.stores.of(tenant_id).sessions.list(page(10, 2)))
    expect([...plans.values()]).toEqual([
      ['SEARCH sessions USING INDEX sessions_by_start (tenant_id=?)'],
      ['SEARCH tallies USING PRIMARY KEY (tenant_id=? AND subject=?)'],
    ])
    const live = await recorded.plansOf(() =>
      recorded.stores.of(tenant_id).sessions.list({ ...page(10, 2), active: true }),
    )
    expect([...live.values()][0]).toEqual([
      'SEARCH sessions USING INDEX sessions_live_by_start (tenant_id=?)',
    ])
  })

  test.each([
    ['a person with one name', { persons: ['a'] }, 'sessions_by_person (tenant_id=? AND person_id=?)'],
    ['a person with two', { persons: ['a', 'b'] }, 'sessions_by_person (tenant_id=? AND person_id=?)'],
    ['a device', { device_uid: 'a' }, 'sessions_by_device (tenant_id=? AND device_uid=?)'],
    ['a method', { method: 'a' }, 'sessions_by_method (tenant_id=? AND method=?)'],
    ['a time', { from: 'a', to: 'b' }, 'sessions_by_start (tenant_id=? AND started_at>? AND started_at<?)'],
    ['a recording', { recorded: true }, 'sessions_recorded_by_start (tenant_id=?)'],
  ])('sessions of %s are found by their index, also to count them', async (_, filter, index) => {
    const plans = await recorded.plansOf(() =>
      recorded.stores.of(tenant_id).sessions.list({ ...page(10, 2), ...filter }),
    )
    expect(plans.size).toBe(2)
    for (const [sql, plan] of plans) expect(plan[0], sql).toContain(index)
  })

  test('live sessions first: those are sorted, the others walked from the newest on', async () => {
    const plans = await recorded.plansOf(() =>
      recorded.stores.of(tenant_id).sessions.list({ ...page(10), live_first: true }),
    )
    const walks = [...plans].filter(([sql]) => sql.includes('order by'))
    for (const [sql, plan] of walks)
      if (sql.includes('active = 1')) expect(plan[0]).toMatch(/INDEX sessions_(live_by_start|by_active) /)
      else expect(plan).toEqual(['SEARCH sessions USING INDEX sessions_by_start (tenant_id=?)'])
    // Without one that is live there is nothing to sort.
    expect(walks.length).toBeGreaterThan(0)
  })

  test('figures by day are read from indexes alone', async () => {
    const { sessions, traffic } = recorded.stores.of(tenant_id)
    const plans = await recorded.plansOf(async () => {
      await sessions.countsByDay('2026-01-01')
      await traffic.allByDay('2026-01-01')
    })
    expect([...plans.values()].map(([first]) => first)).toEqual([
      expect.stringMatching(/USING COVERING INDEX sessions_by_start \(tenant_id=\? AND started_at>\?\)/),
      expect.stringMatching(/USING COVERING INDEX device_traffic_of_namespace \(tenant_id=\? AND day>\?\)/),
    ])
  })

  test('the gate’s two questions, and the one for a key by its name, are point look-ups', async () => {
    await recorded.stores.of(tenant_id).apiKeys.insert(apiKey(owner, { hash: unique('gate') }))
    const plans = await recorded.plansOf(async () => {
      await recorded.stores.callers.user(owner, tenant_id, 'a sign-in')
      await recorded.stores.callers.key('gate')
      await recorded.stores.callers.keyNamed(tenant_id, 'gate')
    })
    expect(
      [...plans.values()]
        .flat()
        .filter((line) => !/^SEARCH \w+ USING (INDEX|PRIMARY KEY|COVERING INDEX)/.test(line)),
    ).toEqual([])
    expect([...plans.values()].map((plan) => plan.length)).toEqual([3, 2, 2])
  })

  test('firewall rules, announcements, connectors and addresses of services are listed without sorting', async () => {
    const plans = await recorded.plansOf(async () => {
      const { firewall, connectors } = recorded.stores.of(tenant_id)
      await firewall.all()
      await firewall.active(10)
      await firewall.list(page())
      await connectors.list(page(), undefined)
      await recorded.stores.announcements.list(page(), 'desc')
      await recorded.stores.presentedServices.addresses(now, 10)
    })
    for (const [sql, plan] of plans)
      if (sql.includes('order by')) expect(sorts(plan), `${sql}\n${plan.join('\n')}`).toEqual([])
  })

  test('no other statement reads a whole table, those of administrators aside', async () => {
    const { stores } = recorded
    const {
      devices,
      sessions,
      publicKeys,
      apiKeys,
      connectors,
      budgets,
      auditStreams,
      deviceNotes,
      services,
    } = stores.of(tenant_id)
    const offer = { build: 'b'.repeat(16), arches: ['amd64'] }
    const plans = await recorded.plansOf(async () => {
      await devices.find(uid)
      await devices.findMany([uid])
      await devices.findAcceptedByName('x')
      await devices.findAcceptedByMac('x')
      await devices.save(uid, { name: 'x' })
      await devices.keepAccepted([uid], now)
      await devices.mostUsed(3)
      await devices.tallies()
      await devices.tags()
      await devices.withTag('rare')
      await devices.countWithStatus('accepted')
      await devices.remove(uid)
      await services.find('x')
      await services.findByAddress('x')
      await services.publicUrlOf(uid)
      await services.list(page(), { device_uid: uid })
      await services.list(page(), { audience: 'public' })
      await services.count()
      await services.pin({ id: 'x', host: 'x', port: 80, scheme: 'https' }, 'x')
      await services.moveToDevice('x', 'y')
      await stores.presentedServices.find('x')
      await sessions.save('x', { active: 0 })
      await sessions.removeOfDevice('x')
      await sessions.moveToDevice('x', 'y')
      await sessions.closeOfDevice('x')
      await sessions.touch('x', ['y'], now)
      await publicKeys.list(where(contains('name', 'xyz')), page())
      await publicKeys.all()
      await apiKeys.list(page(), 'expires_in', 'asc')
      await apiKeys.removeOf('x')
      await devices.ofConnector('x')
      await devices.goneOfConnector('x')
      await devices.goneOfConnector('x', [{ mac: 'y', name: 'z' }])
      await devices.acceptedByNames(['y', 'z'])
      await devices.toRename('x')
      await devices.toRename(null)
      await devices.forgetGone('x', 1)
      await stores.goneDevices.sweep(now)
      await sessions.anyOfDevice('x')
      await connectors.list(page(), true)
      await connectors.saveState('x', 'failed', '')
      await connectors.keepIdentity('x', 'y')
      await stores.enabledConnectors.list()
      await stores.agentUpdates.isBehind(tenant_id, offer)
      await stores.agentUpdates.counts(tenant_id, offer)
      await stores.agentUpdates.candidates(tenant_id, offer, 10, now)
      await stores.agentUpdates.want(tenant_id, offer, [uid], now)
      await stores.agentUpdates.want(tenant_id, offer, 'all', now)
      await stores.agentUpdates.fetching(now)
      await stores.agentUpdates.postpone(tenant_id, now)
      await stores.agentUpdates.ask(10, now)
      await stores.agentUpdates.ask(10, now, [tenant_id])
      await stores.agentUpdates.renew(offer.build)
      await stores.agentUpdates.giveUp(now, 'silent')
      await stores.agentUpdates.cancel(tenant_id)
      await stores.agentUpdates.wave(tenant_id)
      await auditStreams.find('x')
      await auditStreams.count()
      await auditStreams.list(page())
      await auditStreams.letterCounts(['x'])
      await auditStreams.letters('x', page())
      await auditStreams.queueLetters('x', undefined)
      await auditStreams.queuedLetter('x')
      await auditStreams.newestLetter('x')
      await stores.auditStreamQueue.due('', now, ['x'], 64)
      await stores.auditStreamQueue.claim('x', '', now)
      await stores.auditStreamQueue.release('x')
      await deviceNotes.find(uid)
      await deviceNotes.save({ uid, text: 'a', version: 1, changed_at: now, changed_by: 'x' })
      await deviceNotes.moveToDevice(uid, 'x', 10)
      await budgets.find(1)
      await budgets.count()
      await budgets.list(page())
      await budgets.save(1, { bytes: 1 })
      await budgets.concerning([uid], ['rare'])
      await budgets.stopsRecordings(uid, now.slice(0, 7))
      await budgets.renameTag('rare', 'common')
      await budgets.moveToDevice(uid, 'x')
      await budgets.remove(1)
      const judgements = stores.budgetJudgements
      await judgements.ofDevices([uid])
      await judgements.ofTags([uid])
      await judgements.findMany([1])
      await judgements.usedByDevices([1], now.slice(0, 10))
      await judgements.usedByTag(tenant_id, 'rare', now.slice(0, 10))
      await judgements.save([], now)
      await judgements.emailed([1], now)
      await judgements.takeUnsent(now, now, 10)
      await judgements.recipients(tenant_id, 10)
      await stores.presence.write([{ uid, last_seen: later, online: true }])
      await stores.presence.markOffline(uid)
      await stores.presence.online()
      await stores.presence.forgetOlderThan(now)
      await stores.users.findByIdentifier('x')
      await stores.users.findByUsername('x')
      await stores.users.findByConfirmedEmail('x')
      await stores.users.taken({ username: 'x', email: 'y' })
      await stores.addressClaims.of('x', 5)
      await stores.addressClaims.hold('x')
      await stores.addressClaims.end('x', 'y')
      await stores.addressClaims.sweep(now)
      await stores.knownSources.note('x', now)
      await stores.knownSources.list(now, 10)
      await stores.knownSources.sweep(now, 10)
      await stores.users.anyFounder()
      await stores.users.spendStep('x', 1)
      await stores.users.spendRecoveryCode('x', 'y')
      await stores.users.remove('x')
      await stores.tokens.find('setup', 'x', now)
      await stores.tokens.spend('setup', 'x', now)
      await stores.tokens.removeOf('x', 'setup')
      await stores.tokens.removeKind('setup')
      await stores.tokens.sweep(now)
      await stores.attempts.find('x', now)
      await stores.attempts.sweep(now)
      await stores.namespaces.findByName('x')
      await stores.namespaces.ownedBy(owner, 10)
      await stores.namespaces.countOwnedBy(owner)
      await stores.namespaces.members(tenant_id)
      await stores.namespaces.membersOf([tenant_id, 'elsewhere'])
      await stores.namespaces.memberships(owner, 1)
      await stores.namespaces.memberships(owner, 50, 'signed-in')
      await stores.namespaces.deviceCount(tenant_id)
      await stores.namespaces.deviceCounts([tenant_id, 'elsewhere'])
      await stores.namespaces.list({ user_id: owner }, where(contains('name', 'x')), page())
      await stores.namespaces.list({ tenant_id }, [], page())
      await stores.namespaces.decideRecordingQuota(tenant_id, 1)
      await stores.namespaces.remove('nowhere')
    })
    for (const [sql, plan] of plans) {
      // Whether there is any user at all: the first one found is the answer.
      if (sql.includes('limit') && sql.startsWith('select "id" from "users"')) continue
      expect(scans(plan), `${sql}\n${plan.join('\n')}`).toEqual([])
    }
  })
})

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
import { searched_columns, sorted_columns, type DeviceQuery } from '../../server/src/storage/device-list.ts'
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
  let place: Awaited<ReturnType<(typeof databases)[0]['fresh']>>
  let recorded: Recorder
  let tenant_id: string
  let owner: string
  let uid: string

  beforeAll(async () => {
    place = await databases[0]!.fresh()
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

  test('the gate’s two questions are point look-ups', async () => {
    await recorded.stores.of(tenant_id).apiKeys.insert(apiKey(owner, { hash: unique('gate') }))
    const plans = await recorded.plansOf(async () => {
      await recorded.stores.callers.user(owner, tenant_id)
      await recorded.stores.callers.key('gate')
    })
    expect(
      [...plans.values()]
        .flat()
        .filter((line) => !/^SEARCH \w+ USING (INDEX|PRIMARY KEY|COVERING INDEX)/.test(line)),
    ).toEqual([])
    expect([...plans.values()].map((plan) => plan.length)).toEqual([2, 2])
  })

  test('firewall rules, announcements and connectors are listed without sorting', async () => {
    const plans = await recorded.plansOf(async () => {
      const { firewall, connectors } = recorded.stores.of(tenant_id)
      await firewall.all()
      await firewall.active(10)
      await firewall.list(page())
      await connectors.list(page(), undefined)
      await recorded.stores.announcements.list(page(), 'desc')
    })
    for (const [sql, plan] of plans)
      if (sql.includes('order by')) expect(sorts(plan), `${sql}\n${plan.join('\n')}`).toEqual([])
  })

  test('no other statement reads a whole table, those of administrators aside', async () => {
    const { stores } = recorded
    const { devices, sessions, publicKeys, apiKeys, connectors } = stores.of(tenant_id)
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
      await sessions.anyOfDevice('x')
      await connectors.list(page(), true)
      await connectors.saveState('x', 'failed', '')
      await connectors.keepIdentity('x', 'y')
      await stores.enabledConnectors.list()
      await stores.agentUpdates.isBehind(tenant_id, offer)
      await stores.agentUpdates.counts(tenant_id, offer)
      await stores.agentUpdates.candidates(tenant_id, offer, 10)
      await stores.agentUpdates.want(tenant_id, offer, [uid], now)
      await stores.agentUpdates.want(tenant_id, offer, 'all', now)
      await stores.agentUpdates.fetching(now)
      await stores.agentUpdates.ask(10, now)
      await stores.agentUpdates.ask(10, now, [tenant_id])
      await stores.agentUpdates.renew(offer.build)
      await stores.agentUpdates.giveUp(now, 'silent')
      await stores.agentUpdates.cancel(tenant_id)
      await stores.agentUpdates.wave(tenant_id)
      await stores.presence.write([{ uid, last_seen: later, online: true }])
      await stores.presence.markOffline(uid)
      await stores.presence.online()
      await stores.presence.forgetOlderThan(now)
      await stores.users.findByIdentifier('x')
      await stores.users.findByUsername('x')
      await stores.users.findByConfirmedEmail('x')
      await stores.users.taken({ username: 'x', email: 'y' })
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
      await stores.namespaces.ownedBy(owner)
      await stores.namespaces.members(tenant_id)
      await stores.namespaces.memberships(owner)
      await stores.namespaces.deviceCount(tenant_id)
      await stores.namespaces.list({ user_id: owner }, where(contains('name', 'x')), page())
      await stores.namespaces.list({ tenant_id }, [], page())
      await stores.namespaces.remove('nowhere')
    })
    for (const [sql, plan] of plans) {
      // Whether there is any user at all: the first one found is the answer.
      if (sql.includes('limit') && sql.startsWith('select "id" from "users"')) continue
      expect(scans(plan), `${sql}\n${plan.join('\n')}`).toEqual([])
    }
  })
})

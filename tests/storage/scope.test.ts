// No method of a namespaced store reads or changes another namespace's rows, on either database. The table
// below has a call for every method of every such store, made with the names of somebody else's things; the
// compiler refuses it when a method is missing. Each call must come out as it would if those things did not
// exist, and must leave them untouched. Before that: what the compiler refuses, and that only the stores
// which see several namespaces name tables of namespaces in SQL of their own.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NamespaceContext, ServerContext } from '../../server/src/storage/context.ts'
import type { Stores } from '../../server/src/storage/stores.ts'
import {
  acceptRule,
  apiKey,
  connector,
  databases,
  device,
  enrolmentKey,
  enrolmentToken,
  firewallRule,
  later,
  namespace,
  openFresh,
  page,
  publicKey,
  session,
  unique,
  type Storage,
} from './databases.ts'

type Within = ReturnType<Stores['of']>

/** The names by which a namespace's things are asked for. */
interface Names {
  readonly tenant_id: string
  readonly owner: string
  readonly device: string
  readonly name: string
  readonly mac: string
  readonly tag: string
  readonly session: string
  readonly fingerprint: string
  readonly rule: number
  readonly key: string
  readonly connector: string
  readonly removed: string
  readonly token: string
  readonly acceptRule: number
}

type Calls = {
  readonly [S in keyof Within]: {
    readonly [M in keyof Within[S]]: (store: Within[S], theirs: Names) => Promise<unknown>
  }
}

const everything = { groups: [], sort: 'name', order: 'asc', ...page() } as const

const calls: Calls = {
  devices: {
    find: (store, theirs) => store.find(theirs.device),
    findMany: (store, theirs) => store.findMany([theirs.device]),
    findAcceptedByName: (store, theirs) => store.findAcceptedByName(theirs.name),
    findAcceptedByMac: (store, theirs) => store.findAcceptedByMac(theirs.mac),
    acceptedByMacs: (store, theirs) => store.acceptedByMacs([theirs.mac]),
    ofConnector: (store, theirs) => store.ofConnector(theirs.connector),
    insert: (store, theirs) =>
      store.insert(
        device({ name: theirs.name, mac: theirs.mac, status: 'accepted', tags: `["${theirs.tag}"]` }),
      ),
    save: (store, theirs) =>
      store.save(theirs.device, { name: 'taken over', status: 'rejected', tags: '[]', online: 0 }),
    claimTunnel: (store, theirs) => store.claimTunnel(theirs.device),
    remove: (store, theirs) => store.remove(theirs.device),
    keepAccepted: (store) => store.keepAccepted([], later),
    list: (store, theirs) =>
      store.list({
        ...everything,
        groups: [
          {
            join: 'or',
            conditions: [
              { property: 'name', operator: 'contains', value: theirs.name },
              { property: 'uid', operator: 'eq', value: theirs.device },
              { property: 'tags', operator: 'eq', value: theirs.tag },
              { property: 'tenant_id', operator: 'eq', value: theirs.tenant_id },
              { property: 'status', operator: 'ne', value: 'unused' },
            ],
          },
        ],
      }),
    mostUsed: (store) => store.mostUsed(10),
    tallies: (store) => store.tallies(),
    tags: (store) => store.tags(),
    withTag: (store, theirs) => store.withTag(theirs.tag),
    countWithStatus: (store) => store.countWithStatus('accepted'),
  },
  removedDevices: {
    list: (store) => store.list(''),
    keep: (store, theirs) => store.keep(theirs.removed, later),
    remove: (store, theirs) => store.remove(theirs.removed),
  },
  publicKeys: {
    find: (store, theirs) => store.find(theirs.fingerprint),
    all: (store) => store.all(),
    insert: (store, theirs) => store.insert(publicKey(theirs.fingerprint)),
    save: (store, theirs) => store.save(theirs.fingerprint, { name: 'taken over' }),
    remove: (store, theirs) => store.remove(theirs.fingerprint),
    list: (store, theirs) =>
      store.list(
        [
          {
            join: 'or',
            conditions: [{ property: 'fingerprint', operator: 'contains', value: theirs.fingerprint }],
          },
        ],
        page(),
      ),
  },
  enrolmentKeys: {
    find: (store, theirs) => store.find(theirs.fingerprint),
    insert: (store, theirs) => store.insert(enrolmentKey(theirs.fingerprint)),
    remove: (store, theirs) => store.remove(theirs.fingerprint),
    list: (store) => store.list(page()),
  },
  enrolmentTokens: {
    insert: (store, theirs) => store.insert(enrolmentToken(theirs.owner)),
    spend: (store, theirs) => store.spend(theirs.token, later),
    saveTags: (store, theirs) => store.saveTags(theirs.token, '["taken-over"]'),
    remove: (store, theirs) => store.remove(theirs.token),
    removeOf: (store, theirs) => store.removeOf(theirs.owner),
    all: (store) => store.all(),
    list: (store) => store.list(page()),
  },
  acceptRules: {
    all: (store) => store.all(),
    // The number that it gives is another each time, and not theirs.
    insert: async (store, theirs) => (await store.insert(acceptRule())) === theirs.acceptRule,
    saveTags: (store, theirs) => store.saveTags(theirs.acceptRule, '["taken-over"]'),
    remove: (store, theirs) => store.remove(theirs.acceptRule),
    list: (store) => store.list(page()),
  },
  loginKeys: {
    find: (store) => store.find(),
    keep: (store) => store.keep('taken over', later),
  },
  firewall: {
    find: (store, theirs) => store.find(theirs.rule),
    all: (store) => store.all(),
    active: (store) => store.active(10),
    // The number that it gives is another each time, and not theirs.
    insert: async (store, theirs) => (await store.insert(firewallRule())) === theirs.rule,
    save: (store, theirs) => store.save(theirs.rule, { priority: 99 }),
    remove: (store, theirs) => store.remove(theirs.rule),
    list: (store) => store.list(page()),
  },
  apiKeys: {
    find: (store, theirs) => store.find(theirs.key),
    insert: (store, theirs) => store.insert(apiKey(theirs.owner, { name: theirs.key })),
    save: (store, theirs) => store.save(theirs.key, { role: 'owner' }),
    remove: (store, theirs) => store.remove(theirs.key),
    removeOf: (store, theirs) => store.removeOf(theirs.owner),
    list: (store) => store.list(page(), 'name', 'asc'),
  },
  sessions: {
    find: (store, theirs) => store.find(theirs.session),
    insert: (store, theirs) => store.insert(session(theirs.device)),
    save: (store, theirs) => store.save(theirs.session, { active: 0, recorded: 0 }),
    anyOfDevice: (store, theirs) => store.anyOfDevice(theirs.device),
    removeOfDevice: (store, theirs) => store.removeOfDevice(theirs.device),
    moveToDevice: (store, theirs) => store.moveToDevice(theirs.device, 'mine'),
    closeOfDevice: (store, theirs) => store.closeOfDevice(theirs.device),
    touch: (store, theirs) => store.touch(theirs.device, [theirs.session], later),
    list: (store) => store.list(page()),
  },
  connectors: {
    find: (store, theirs) => store.find(theirs.connector),
    insert: (store) => store.insert(connector()),
    save: (store, theirs) => store.save(theirs.connector, { address: 'taken.over' }),
    remove: (store, theirs) => store.remove(theirs.connector),
    saveState: (store, theirs) => store.saveState(theirs.connector, 'failed', 'taken over'),
    keepIdentity: (store, theirs) => store.keepIdentity(theirs.connector, 'taken over'),
    list: (store) => store.list(page(), undefined),
  },
}

/** A namespace with one of everything. */
async function furnished(storage: Storage): Promise<Names> {
  const { tenant_id, owner, here } = await namespace(storage)
  const [name, mac, tag, fingerprint] = ['name', 'mac', 'tag', 'fingerprint'].map(unique) as [
    string,
    string,
    string,
    string,
  ]
  const one = device({ name, mac, status: 'accepted', online: 1, tags: JSON.stringify([tag]) })
  await here.devices.insert(one)
  const live = session(one.uid, { recorded: 1 })
  await here.sessions.insert(live)
  await here.publicKeys.insert(publicKey(fingerprint))
  await here.enrolmentKeys.insert(enrolmentKey(fingerprint))
  await here.loginKeys.keep('sealed', later)
  const rule = await here.firewall.insert(firewallRule())
  const token = enrolmentToken(owner.id, { most_devices: 0 })
  await here.enrolmentTokens.insert(token)
  const accepting = await here.acceptRules.insert(acceptRule())
  const key = apiKey(owner.id)
  await here.apiKeys.insert(key)
  const engine = connector({ enable: 1 })
  await here.connectors.insert(engine)
  const removed = unique('removed')
  await here.removedDevices.keep(removed, later)
  await here.devices.insert(device({ connector: engine.uid }))
  const names = {
    device: one.uid,
    name,
    mac,
    tag,
    session: live.uid,
    fingerprint,
    rule,
    key: key.name,
    connector: engine.uid,
    token: token.id,
    acceptRule: accepting,
  }
  return { tenant_id, owner: owner.id, removed, ...names }
}

const nothing: Names = {
  tenant_id: 'no-tenant',
  owner: 'no-owner',
  device: 'no-device',
  name: 'no-name',
  mac: 'no-mac',
  tag: 'no-tag',
  session: 'no-session',
  fingerprint: 'no-fingerprint',
  rule: 987_654_321,
  key: 'no-key',
  connector: 'no-connector',
  removed: 'no-removed',
  token: 'no-token',
  acceptRule: 987_654_321,
}

const tables = [
  'devices',
  'device_tags',
  'tallies',
  'sessions',
  'public_keys',
  'enrolment_keys',
  'enrolment_tokens',
  'accept_rules',
  'login_keys',
  'firewall_rules',
  'api_keys',
  'connectors',
  'removed_devices',
] as const

async function rowsOf({ opened }: Storage, tenant_id: string): Promise<string[]> {
  const found: string[] = []
  for (const table of tables) {
    const rows = await opened.db.selectFrom(table).selectAll().where('tenant_id', '=', tenant_id).execute()
    found.push(...rows.map((row) => `${table} ${JSON.stringify(row)}`).toSorted())
  }
  return found
}

/** Queries that do not compile. `npm run check` fails when one of them does. */
export const refused = (server: ServerContext, mine: NamespaceContext) => [
  // @ts-expect-error a store of the server knows no table of a namespace
  () => server.db.selectFrom('devices'),
  // @ts-expect-error nor the reverse
  () => mine.select('users'),
  // @ts-expect-error a join would bring in rows of other namespaces
  () => mine.select('sessions').innerJoin('devices', 'devices.uid', 'sessions.device_uid'),
  // @ts-expect-error a row stays where it is
  () => mine.update('devices').set({ tenant_id: 'another' }),
  // @ts-expect-error a row is made in the namespace of the store
  () => mine.insert('removed_devices', { uid: 'uid', removed_at: later, tenant_id: 'another' }),
]

test('only stores that see several namespaces name tables of namespaces in SQL', () => {
  const folder = path.join(import.meta.dirname, '../../server/src/storage')
  // The types do not reach into SQL that is written out.
  const named = new RegExp(`(from|join|into|update) (${[...tables, 'members', 'namespaces'].join('|')})\\b`)
  const naming = globSync('*.ts', { cwd: folder }).filter((file) =>
    [...readFileSync(path.join(folder, file), 'utf8').matchAll(/sql(<[^`]*>)?`([^`]*)`/g)].some(
      ([, , text]) => named.test(text ?? ''),
    ),
  )
  expect(naming.toSorted()).toEqual([
    'callers.ts',
    'device-list.ts',
    'namespaces.ts',
    'nodes.ts',
    'presence.ts',
  ])
})

describe.each(databases)('$name', (database) => {
  let storage: Storage
  let theirs: Names
  beforeAll(async () => {
    storage = await openFresh(database)
    theirs = await furnished(storage)
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  test('the namespace that is left alone has a row in every table', async () => {
    const rows = await rowsOf(storage, theirs.tenant_id)
    for (const table of tables) expect(rows.some((row) => row.startsWith(`${table} `))).toBe(true)
  })

  for (const [noun, methods] of Object.entries(calls) as [keyof Within, Record<string, Call>][]) {
    describe(`${noun} store`, () => {
      test('every method has its call', async () => {
        expect(Object.keys(methods).toSorted()).toEqual(
          Object.keys((await namespace(storage)).here[noun]).toSorted(),
        )
      })

      for (const [method, call] of Object.entries(methods))
        test(`${method} neither sees nor changes what another namespace has`, async () => {
          const before = await rowsOf(storage, theirs.tenant_id)
          const [alone, beside] = [await namespace(storage), await namespace(storage)]
          const expected = await call(alone.here[noun], nothing)
          expect(await call(beside.here[noun], theirs)).toEqual(expected)
          expect(await rowsOf(storage, theirs.tenant_id)).toEqual(before)
        })
    })
  }
})

type Call = (store: Within[keyof Within], names: Names) => Promise<unknown>

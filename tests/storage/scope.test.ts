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
  auditStream,
  budget,
  connector,
  databases,
  deadLetter,
  device,
  enrolmentKey,
  enrolmentToken,
  firewallRule,
  later,
  namespace,
  openFresh,
  page,
  publicKey,
  service,
  session,
  sessionEvent,
  memberInvitation,
  sessionInvitation,
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
  readonly service: string
  readonly fingerprint: string
  readonly rule: number
  readonly key: string
  readonly connector: string
  readonly removed: string
  readonly token: string
  readonly invitation: string
  readonly membership: { readonly id: string; readonly hash: string }
  readonly acceptRule: number
  readonly budget: number
  readonly refusal: string
  readonly stream: string
  readonly letter: number
}

type Calls = {
  readonly [S in keyof Within]: {
    readonly [M in keyof Within[S]]: (store: Within[S], theirs: Names) => Promise<unknown>
  }
}

const notes = { text: 'on the pier', version: 1, changed_at: later, changed_by: 'olga' }
const everything = { groups: [], sort: 'name', order: 'asc', ...page() } as const

const calls: Calls = {
  devices: {
    find: (store, theirs) => store.find(theirs.device),
    findMany: (store, theirs) => store.findMany([theirs.device]),
    findAcceptedByName: (store, theirs) => store.findAcceptedByName(theirs.name),
    findAcceptedByMac: (store, theirs) => store.findAcceptedByMac(theirs.mac),
    acceptedByMacs: (store, theirs) => store.acceptedByMacs([theirs.mac]),
    acceptedByNames: (store, theirs) => store.acceptedByNames([theirs.name]),
    ofConnector: (store, theirs) => store.ofConnector(theirs.connector),
    goneOfConnector: (store, theirs) => store.goneOfConnector(theirs.connector),
    toRename: (store, theirs) => store.toRename(theirs.connector),
    forgetGone: (store, theirs) => store.forgetGone(theirs.connector, 0),
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
  deviceNotes: {
    find: (store, theirs) => store.find(theirs.device),
    save: (store, theirs) => store.save({ ...notes, uid: theirs.device, text: 'taken over' }),
    moveToDevice: (store, theirs) => store.moveToDevice(theirs.device, theirs.device, 10),
  },
  services: {
    find: (store, theirs) => store.find(theirs.service),
    findByAddress: (store, theirs) => store.findByAddress(theirs.service),
    publicUrlOf: (store, theirs) => store.publicUrlOf(theirs.device),
    list: (store, theirs) => store.list(page(), { device_uid: theirs.device }),
    count: (store) => store.count(),
    insert: (store, theirs) =>
      store.insert(service(theirs.device)).then(
        () => undefined,
        () => undefined,
      ),
    save: (store, theirs) => store.save(theirs.service, { name: 'taken over' }),
    pin: async (store, theirs) =>
      store.pin({ id: theirs.service, host: '127.0.0.1', port: 3000, scheme: 'http' }, 'taken over'),
    remove: (store, theirs) => store.remove(theirs.service),
    moveToDevice: (store, theirs) => store.moveToDevice(theirs.device, theirs.device),
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
    removeOf: (store, theirs) => store.removeOf(theirs.owner),
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
  sessionInvitations: {
    async insert(store, theirs) {
      // A row of another namespace cannot be named at all where there is none.
      return store.insert(sessionInvitation(theirs.session, theirs.owner)).then(
        () => undefined,
        () => undefined,
      )
    },
    find: (store, theirs) => store.find(theirs.invitation),
    open: (store, theirs) => store.open(theirs.session, '2000-01-01'),
    claim: (store, theirs) => store.claim(theirs.invitation, theirs.owner, '2000-01-01'),
    remove: (store, theirs) => store.remove(theirs.invitation),
    removeOf: (store, theirs) => store.removeOf(theirs.owner),
  },
  memberInvitations: {
    async insert(store, theirs) {
      return store.insert(memberInvitation(theirs.owner)).then(
        () => undefined,
        () => undefined,
      )
    },
    find: (store, theirs) => store.find(theirs.membership.id),
    renew: (store, { membership, owner }) =>
      store.renew(membership.id, {
        hash: 'taken-over',
        by_mail: 0,
        invited_by: owner,
        sent_at: later,
        expires_at: later,
      }),
    spend: (store, { membership }) => store.spend(membership.id, membership.hash),
    remove: (store, theirs) => store.remove(theirs.membership.id),
    removeOf: (store, theirs) => store.removeOf(theirs.owner),
    removeExpired: (store) => store.removeExpired('2999-01-01'),
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
    findMany: (store, theirs) => store.findMany([theirs.session]),
    insert: (store, theirs) => store.insert(session(theirs.device)),
    save: (store, theirs) => store.save(theirs.session, { active: 0, recorded: 0 }),
    saveOn: (store, theirs) => store.saveOn('', theirs.session, { active: 0, recorded: 0 }),
    take: (store, theirs) => store.take({ uid: theirs.session, node: '' }, { active: 0, recorded: 0 }),
    detachedOfDevice: (store, theirs) => store.detachedOfDevice(theirs.device),
    anyOfDevice: (store, theirs) => store.anyOfDevice(theirs.device),
    detachedElsewhere: (store, theirs) => {
      const account = {
        device_uid: theirs.device,
        username: 'root',
        person_kind: 'unknown',
        person_id: '',
      } as const
      return store.detachedElsewhere(account, 'another', 10)
    },
    removeOfDevice: (store, theirs) => store.removeOfDevice(theirs.device),
    moveToDevice: (store, theirs) => store.moveToDevice(theirs.device, 'mine'),
    closeOfDevice: (store, theirs) => store.closeOfDevice(theirs.device),
    touch: (store, theirs) => store.touch(theirs.device, [theirs.session], later),
    countsByDay: (store) => store.countsByDay('2000-01-01'),
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
  budgets: {
    find: (store, theirs) => store.find(theirs.budget),
    count: (store) => store.count(),
    list: (store) => store.list(page()),
    // The number that it gives is another each time, and not theirs.
    insert: async (store, theirs) => (await store.insert(budget({ tag: theirs.tag }))) === theirs.budget,
    save: (store, theirs) => store.save(theirs.budget, { bytes: 99 }),
    remove: (store, theirs) => store.remove(theirs.budget),
    concerning: (store, theirs) => store.concerning([theirs.device], [theirs.tag]),
    stopsRecordings: (store, theirs) => store.stopsRecordings(theirs.device, later.slice(0, 7)),
    renameTag: (store, theirs) => store.renameTag(theirs.tag, 'taken-over'),
    moveToDevice: (store, theirs) => store.moveToDevice(theirs.device, 'mine'),
  },
  auditStreams: {
    find: (store, theirs) => store.find(theirs.stream),
    count: (store) => store.count(),
    list: (store) => store.list(page()),
    insert: (store) => store.insert(auditStream()),
    save: (store, theirs) => store.save(theirs.stream, { name: 'taken-over' }),
    remove: (store, theirs) => store.remove(theirs.stream),
    saveAttempt: (store, theirs) =>
      store.saveAttempt({ uid: theirs.stream, node: '', receiver: 'sealed' }, { sent_seq: 99 }),
    letterCounts: (store, theirs) => store.letterCounts([theirs.stream]),
    letters: (store, theirs) => store.letters(theirs.stream, page()),
    queueLetters: (store, theirs) => store.queueLetters(theirs.stream, undefined),
    queuedLetter: (store, theirs) => store.queuedLetter(theirs.stream),
    newestLetter: (store, theirs) => store.newestLetter(theirs.stream),
    async addLetter(store) {
      const own = auditStream()
      await store.insert(own)
      return store.addLetter(deadLetter(own.uid), 1)
    },
    saveLetter: (store, theirs) => store.saveLetter(theirs.letter, { error: 'taken over' }),
    removeLetter: (store, theirs) => store.removeLetter(theirs.letter),
  },
  refusals: {
    add: (store, theirs) =>
      store.add({
        reference: theirs.refusal,
        at: later,
        last_at: later,
        times: 9,
        detail: '{"taken":"over"}',
      }),
    find: (store, theirs) => store.find(theirs.refusal),
    list: (store) => store.list(),
    trim: (store) => store.trim(0),
  },
  sessionEvents: {
    last: (store, theirs) => store.last(theirs.session),
    list: (store, theirs) => store.list(theirs.session, 0, 10),
  },
  timeline: {
    newest: (store, theirs) => store.newest(theirs.device, 10),
  },
  traffic: {
    days: (store, theirs) => store.days(theirs.device, '2000-01-01'),
    allByDay: (store) => store.allByDay('2000-01-01'),
  },
  audit: {
    head: (store) => store.head(),
    holdHead: (store) => store.holdHead(),
    begin: (store) => store.begin(auditHead),
    append: (store) => store.append(auditHead, [{ ...auditEntry, seq: 3 }]),
    saveHead: (store) => store.saveHead({ seq: 99 }),
    list: (store) => store.list({ oldest: 1, limit: 10, window: 100 }),
  },
}

const auditHead = { seq: 1, hash: 'hash', at: later, first_seq: 1, first_hash: 'before' }
const auditEntry = {
  seq: 1,
  at: later,
  action: 'device.accepted',
  actor_kind: 'user',
  actor_id: 'olga',
  actor_name: 'olga',
  source: '',
  request_id: '',
  target_kind: 'device',
  target_id: 'uid',
  target_name: 'name',
  detail: '{}',
  hash: 'hash',
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
  await here.deviceNotes.save({ ...notes, uid: one.uid })
  const page80 = service(one.uid, { public_url: 1 })
  await here.services.insert(page80)
  const live = session(one.uid, { recorded: 1 })
  await here.sessions.insert(live)
  await here.publicKeys.insert(publicKey(fingerprint, { owner: owner.id }))
  await here.enrolmentKeys.insert(enrolmentKey(fingerprint))
  await here.loginKeys.keep('sealed', later)
  const rule = await here.firewall.insert(firewallRule())
  const token = enrolmentToken(owner.id, { most_devices: 0 })
  await here.enrolmentTokens.insert(token)
  const invitation = sessionInvitation(live.uid, owner.id)
  await here.sessionInvitations.insert(invitation)
  const membership = memberInvitation(owner.id)
  await here.memberInvitations.insert(membership)
  const accepting = await here.acceptRules.insert(acceptRule())
  const usedUp = { month: later.slice(0, 7), used: 9, state: 'over', stop_recordings: 1 } as const
  const limited = await here.budgets.insert(budget({ device: one.uid, ...usedUp }))
  await here.budgets.insert(budget({ tag, ...usedUp }))
  const key = apiKey(owner.id)
  await here.apiKeys.insert(key)
  const engine = connector({ enable: 1 })
  await here.connectors.insert(engine)
  const stream = auditStream()
  await here.auditStreams.insert(stream)
  await here.auditStreams.addLetter(deadLetter(stream.uid, { queued: 1 }), 9)
  const letter = (await here.auditStreams.newestLetter(stream.uid))?.id ?? 0
  const removed = unique('removed')
  await here.removedDevices.keep(removed, later)
  await here.devices.insert(device({ connector: engine.uid }))
  const used = { idle_received: 1, idle_sent: 2, session_received: 3, session_sent: 4 }
  const reference = unique('refusal')
  await here.refusals.add({ reference, at: later, last_at: later, times: 1, detail: '{}' })
  await storage.stores.sessionEventBatches.save([sessionEvent(live.uid)])
  await storage.stores.deviceEvents.add([{ uid: one.uid, at: later, kind: 'up', detail: '{}' }], {
    own: ['up'],
    own_most: 10,
    own_eachEndOfHour: 10,
    kind_most: 10,
  })
  await storage.stores.trafficSums.add([{ uid: one.uid, day: later.slice(0, 10), ...used }])
  await here.audit.begin(auditHead)
  await here.audit.append({ seq: 1, hash: 'hash' }, [{ ...auditEntry, seq: 2 }])
  const names = {
    device: one.uid,
    name,
    mac,
    tag,
    session: live.uid,
    service: page80.id,
    fingerprint,
    rule,
    key: key.name,
    connector: engine.uid,
    token: token.id,
    invitation: invitation.id,
    membership,
    acceptRule: accepting,
    budget: limited,
    refusal: reference,
    stream: stream.uid,
    letter,
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
  service: 'no-service',
  fingerprint: 'no-fingerprint',
  rule: 987_654_321,
  key: 'no-key',
  connector: 'no-connector',
  removed: 'no-removed',
  token: 'no-token',
  invitation: 'no-invitation',
  membership: { id: 'no-invitation', hash: 'no-hash' },
  acceptRule: 987_654_321,
  budget: 987_654_321,
  refusal: 'no-refusal',
  stream: 'no-stream',
  letter: 987_654_321,
}

const tables = [
  'devices',
  'device_tags',
  'tallies',
  'sessions',
  'session_events',
  'services',
  'session_invitations',
  'member_invitations',
  'public_keys',
  'enrolment_keys',
  'enrolment_tokens',
  'accept_rules',
  'login_keys',
  'firewall_rules',
  'api_keys',
  'connectors',
  'removed_devices',
  'device_traffic',
  'audit_entries',
  'audit_heads',
  'audit_streams',
  'audit_dead_letters',
  'data_budgets',
  'device_events',
  'device_notes',
  'login_refusals',
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
    'audit.ts',
    'budgets.ts',
    'callers.ts',
    'device-columns.ts',
    'device-events.ts',
    'device-list.ts',
    'namespaces.ts',
    'nodes.ts',
    'presence.ts',
    'session-events.ts',
    'traffic.ts',
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

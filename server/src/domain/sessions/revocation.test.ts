// The table of news and effects, on a real database and a real bus; what is open is a list that writes down
// what is asked of it.
import { unknownPerson, type SessionPerson } from '@hawser/contract/sessions'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { eventually } from '../../../../tests/harness/eventually.ts'
import {
  databases,
  device,
  namespace,
  openFresh,
  publicKey,
  session,
  unique,
  user as userRow,
  type Storage,
} from '../../../../tests/storage/databases.ts'
import type { Bus } from '../../bus/bus.ts'
import { localBus } from '../../bus/local.ts'
import { lifetime } from '../../kit/lifetime.ts'
import { fingerprintSha256 } from '../access/public-keys.ts'
import {
  reasons,
  revocation,
  type Connections,
  type SessionLogin,
  type OpenSession,
  type Person,
  type RevocationParts,
} from './revocation.ts'

let storage: Storage
beforeAll(async () => {
  storage = await openFresh(databases[0]!)
})
afterAll(() => storage[Symbol.asyncDispose]())

const loginOn = (device_uid: string) =>
  ({ device_uid, username: 'root', via: 'ssh', shown: undefined }) as const

/** Everything open belongs to one namespace with an accepted and a rejected device. */
async function start(recheck?: RevocationParts['recheck']) {
  const { stores } = storage
  const { tenant_id, here } = await namespace(storage)
  const [accepted, rejected] = [device({ status: 'accepted', tunnel: 7 }), device({ status: 'rejected' })]
  for (const row of [accepted, rejected]) await here.devices.insert(row)
  const record = session(accepted.uid, { active: 1 })
  await here.sessions.insert(record)

  /** Who opened the sessions that are open. */
  const opener: { person: SessionPerson } = { person: unknownPerson }
  const sessions = new Map<string, OpenSession>()
  const done: unknown[][] = []
  const failed: unknown[] = []
  const background = lifetime((_, error) => void failed.push(error))
  const away = { is: false }
  /** When the terminals of people have their answers. */
  const answered = { by: Promise.resolve() }
  let missed = (): void => undefined
  const bus: Bus = { ...localBus(), missed: (hearer) => ((missed = hearer), { [Symbol.dispose]() {} }) }
  const openSession = (uid: string, device_uid: string): [string, OpenSession] => [
    uid,
    {
      uid,
      tenant_id,
      device_uid,
      get person() {
        return opener.person
      },
      end: (why) => void done.push(['end', uid, why]),
      record: (wish) => void done.push(['record', uid, wish]),
      restrict: (policy) => void (policy.files.writes && done.push(['restrict', uid, policy.files])),
    },
  ]
  for (const one of [openSession(record.uid, accepted.uid), openSession('b', rejected.uid)])
    sessions.set(...one)
  const login = loginOn(accepted.uid)
  /** Opens a session that is held for this person, or for this key. */
  function hold(uid: string, person: SessionPerson, key?: string): void {
    const held: SessionLogin = { ...login, tenant_id, person, key }
    sessions.set(uid, { ...openSession(uid, accepted.uid)[1], person, heldFor: () => held })
  }
  const people: readonly Person[] = [
    { user_id: 'olga', tenant_id },
    { user_id: 'paul', tenant_id },
    { user_id: 'olga', tenant_id: 'another' },
  ]
  const open: Connections = {
    sessions,
    tunnels: {
      all: () => [accepted, rejected].map(({ uid }) => ({ device: { uid, tenant_id } })),
      drop: (uid, why) => void done.push(['drop', uid, why]),
      hangUp: (uid) => void done.push(['hang up', uid]),
      yield: (uid, number) => void done.push(['yield', uid, number]),
    },
    joined: {
      removed: (...about) => void done.push(['joined removed', ...about]),
      async recheck() {
        if (away.is) throw new Error('The database is away.')
        done.push(['joined recheck'])
      },
    },
    connectors: {
      deviceChanged: (...about) => void done.push(['connectors', ...about]),
      changed: (...about) => void done.push(['connector changed', ...about]),
      namespaceRemoved: (...about) => void done.push(['connectors removed', ...about]),
    },
    async recheckPeople(whose) {
      done.push(['recheck', ...people.filter(whose).map((one) => people.indexOf(one))])
      await answered.by
    },
  }
  /** The device whose data budget is used up. */
  const budget = { usedUp: '' }
  const rules = revocation({
    bus,
    stores,
    clock: { now: () => Date.now() },
    later: background.later,
    sweepRecordings: async () => void done.push(['sweep']),
    stopsRecordings: async (_, uid) => budget.usedUp === uid,
    recheck,
  })
  const applying = rules.apply(open)
  /** What was done since the last time. */
  async function effects(): Promise<unknown[][]> {
    await background.settled()
    expect(failed).toEqual([])
    return done.splice(0)
  }
  return {
    stores,
    bus,
    rules,
    applying,
    effects,
    hold,
    ends: async () => (await effects()).filter(([what]) => what === 'end').map(([, ...about]) => about),
    tenant_id,
    accepted: accepted.uid,
    rejected: rejected.uid,
    session: record.uid,
    missed: () => missed(),
    opener,
    budget,
    done,
    answered,
    away,
    failed,
    background,
  }
}

test('a session that is closed ends, and no other', async () => {
  const { bus, effects, tenant_id, session } = await start()
  bus.tell('session.closed', { tenant_id, uid: session })
  bus.tell('session.closed', { tenant_id, uid: 'elsewhere' })
  expect(await effects()).toEqual([['end', session, reasons.closed]])
})

test.each([
  ['accepted', { ends: false, tunnel: [], sweeps: false }],
  ['pending', { ends: true, tunnel: ['hang up'], sweeps: false }],
  ['rejected', { ends: true, tunnel: ['drop', reasons.refused], sweeps: false }],
  ['gone', { ends: true, tunnel: ['drop', reasons.refused], sweeps: true }],
] as const)('a device that is %s: %j', async (status, { ends, tunnel: [does, ...why], sweeps }) => {
  const { bus, effects, tenant_id, accepted, session } = await start()
  bus.tell('device.changed', { tenant_id, uid: accepted, status })
  expect(await effects()).toEqual(
    expect.arrayContaining([
      ...(ends ? [['end', session, reasons.unavailable]] : []),
      ...(does ? [[does, accepted, ...why]] : []),
      ...(sweeps ? [['sweep']] : []),
      ['connectors', tenant_id],
    ]),
  )
  bus.tell('device.changed', { tenant_id, uid: accepted, status })
  expect(await effects()).toHaveLength(1 + Number(ends) + Number(does !== undefined) + Number(sweeps))
})

test('who loses a role, a sign-in or an API key is asked again, and nobody else', async () => {
  const { bus, effects, tenant_id } = await start()
  bus.tell('member.changed', { tenant_id, user_id: 'olga' })
  expect(await effects()).toEqual([['recheck', 0]])
  bus.tell('user.changed', { user_id: 'olga' })
  expect(await effects()).toEqual([['recheck', 0, 2]])
  bus.tell('apiKey.changed', { tenant_id, name: 'nightly' })
  expect(await effects()).toEqual([['recheck', 0, 1]])
})

test('tunnels, enrolment keys and connectors hear of what concerns them', async () => {
  const { bus, effects, tenant_id } = await start()
  bus.tell('tunnel.taken', { uid: 'u', number: 3 })
  bus.tell('enrolmentKey.removed', { tenant_id, fingerprint: 'f' })
  bus.tell('connector.changed', { tenant_id, uid: 'c' })
  expect(await effects()).toEqual([
    ['yield', 'u', 3],
    ['joined removed', tenant_id, 'f'],
    ['connector changed', tenant_id, 'c'],
  ])
})

test('a namespace that changes its wish switches the recording of its sessions', async () => {
  const { stores, rules, bus, effects, tenant_id, session } = await start()
  await stores.namespaces.save(tenant_id, { session_record: 0, continue_unrecorded: 1 })
  const wish = { record: false, continueUnrecorded: true, mask: [] }
  expect(await rules.recordingOf(tenant_id, 'b')).toEqual(wish)
  bus.tell('namespace.changed', { tenant_id })
  expect(await effects()).toEqual(
    expect.arrayContaining([['record', session, wish], ['record', 'b', wish], ['sweep']]),
  )
})

test('a device whose data budget is used up is not recorded, and others are', async () => {
  const { rules, bus, effects, tenant_id, accepted, session, budget } = await start()
  budget.usedUp = accepted
  bus.tell('namespace.changed', { tenant_id })
  const stopped = { record: false, overBudget: true, continueUnrecorded: false, mask: [] }
  expect(await rules.recordingOf(tenant_id, accepted)).toEqual(stopped)
  expect(await rules.recordingOf(tenant_id, 'another')).toEqual({
    record: true,
    continueUnrecorded: false,
    mask: [],
  })
  expect(await effects()).toContainEqual(['record', session, stopped])
})

test('a namespace that is gone takes tunnels, sessions, connectors, viewers and recordings along', async () => {
  const { stores, bus, effects, tenant_id, accepted, rejected, session } = await start()
  await stores.transaction((inside) => inside.namespaces.remove(tenant_id))
  bus.tell('namespace.changed', { tenant_id })
  const found = await effects()
  expect(found).toHaveLength(7)
  expect(found).toEqual(
    expect.arrayContaining([
      ['connectors removed', tenant_id],
      ['end', session, reasons.unavailable],
      ['drop', accepted, reasons.refused],
      ['end', 'b', reasons.unavailable],
      ['drop', rejected, reasons.refused],
      ['recheck', 0, 1],
      ['sweep'],
    ]),
  )
})

test('after news were missed everything is held against the database', async () => {
  const { stores, missed, effects, tenant_id, accepted, rejected, session } = await start()
  missed()
  expect(await effects()).toEqual([
    ['recheck', 0, 1, 2],
    ['joined recheck'],
    ['yield', accepted, 7],
    ['end', 'b', reasons.unavailable],
    ['drop', rejected, reasons.refused],
    ['end', 'b', reasons.unavailable],
  ])
  await stores.of(tenant_id).sessions.save(session, { active: 0, node: 'n' })
  missed()
  expect(await effects()).toContainEqual(['end', session, reasons.closed])
})

test('a check finds each session, also of more than it asks for at once', async () => {
  const { stores, tenant_id, accepted, missed, hold, ends } = await start()
  const { owner } = (await stores.namespaces.find(tenant_id))!
  const rows = Array.from({ length: 501 }, () => session(accepted, { active: 1 }))
  const last = rows.at(-1)!.uid
  await stores.transaction(async (inside) => {
    for (const row of rows) await inside.of(tenant_id).sessions.insert(row)
    await inside.of(tenant_id).sessions.save(last, { active: 0, node: 'n' })
  })
  for (const { uid } of rows) hold(uid, user(owner))
  missed()
  expect((await ends()).filter(([uid]) => uid !== 'b')).toEqual([[last, reasons.closed]])
})

test('while the database is away people ask for themselves, and the rest is checked when it is back', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const { missed, effects, away, failed, background, applying, rejected } = await start()
    away.is = true
    missed()
    await background.settled()
    expect(failed.splice(0)).toHaveLength(1)
    expect(await effects()).toEqual([['recheck', 0, 1, 2]])
    vi.advanceTimersByTime(5_000)
    await background.settled()
    expect(failed.splice(0)).toHaveLength(1)
    away.is = false
    vi.advanceTimersByTime(5_000)
    expect(await effects()).toContainEqual(['drop', rejected, reasons.refused])
    vi.advanceTimersByTime(60_000)
    expect(await effects()).toEqual([])

    away.is = true
    missed()
    await background.settled()
    expect(failed.splice(0)).toHaveLength(1)
    applying[Symbol.dispose]()
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

test('where nobody can tell news, everything is held against the database again and again', async () => {
  const { applying, effects } = await start({ every_ms: 10, what: () => 'all' })
  const found: unknown[][] = []
  await eventually(async () => {
    found.push(...(await effects()))
    expect(found.filter(([what]) => what === 'joined recheck').length).toBeGreaterThan(1)
  })
  applying[Symbol.dispose]()
})

test('while news cannot be heard, open sessions are checked again and again, without the tunnels', async () => {
  const unheard = { is: false }
  const {
    applying,
    stores,
    effects,
    tenant_id,
    session: uid,
  } = await start({
    every_ms: 10,
    what: () => (unheard.is ? 'sessions' : undefined),
  })
  await stores.of(tenant_id).sessions.save(uid, { active: 0, node: 'n' })
  expect(await effects()).toEqual([])
  unheard.is = true
  const found: unknown[][] = []
  await eventually(async () => {
    found.push(...(await effects()))
    expect(found.filter(([one, about]) => one === 'end' && about === uid).length).toBeGreaterThan(1)
  })
  expect(found).toContainEqual(['end', uid, reasons.closed])
  expect(found.filter(([one]) => one === 'yield' || one === 'joined recheck')).toEqual([])
  applying[Symbol.dispose]()
})

test('no check begins while terminals of people still wait for the answers of the one before', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    let begun = 0
    const { applying, answered, done, effects } = await start({
      every_ms: 10,
      what: () => ((begun += 1), 'sessions'),
    })
    const { promise, resolve } = Promise.withResolvers<void>()
    answered.by = promise
    vi.advanceTimersByTime(10)
    await eventually(() => expect(done).toContainEqual(['end', 'b', reasons.unavailable]))
    vi.advanceTimersByTime(100)
    expect(begun).toBe(1)
    resolve()
    await effects()
    vi.advanceTimersByTime(10)
    expect(begun).toBe(2)
    applying[Symbol.dispose]()
  } finally {
    vi.useRealTimers()
  }
})

test('nothing takes effect any more once it was disposed; recordings are swept until the end', async () => {
  const { bus, applying, rules, effects, tenant_id, accepted } = await start()
  applying[Symbol.dispose]()
  bus.tell('device.changed', { tenant_id, uid: accepted, status: 'gone' })
  expect(await effects()).toEqual([['sweep']])
  rules[Symbol.dispose]()
  bus.tell('device.changed', { tenant_id, uid: accepted, status: 'gone' })
  expect(await effects()).toEqual([])
})

test('sessions end when their person is no member any more, or their API key is gone, in whatever client', async () => {
  const { bus, stores, tenant_id, effects, opener, session: uid, missed } = await start()
  const created_at = new Date().toISOString()
  const id = unique('user')
  await stores.users.insert({
    id,
    username: id,
    email: `${id}@example.com`,
    name: '',
    password: '',
    confirmed: 1,
    epoch: 1,
    email_marketing: 0,
    max_namespaces: -1,
    mfa_step: 0,
    created_at,
  })
  await stores.namespaces.addMember({ tenant_id, user_id: id, role: 'operator', epoch: 'first', created_at })
  opener.person = { kind: 'user', id, name: id }
  const ends = async () => (await effects()).filter(([what]) => what === 'end')
  bus.tell('member.changed', { tenant_id, user_id: id })
  bus.tell('user.changed', { user_id: id })
  expect(await ends()).toEqual([])
  await stores.namespaces.removeMember(tenant_id, id)
  bus.tell('member.changed', { tenant_id, user_id: 'another' })
  bus.tell('member.changed', { tenant_id: 'another', user_id: id })
  expect(await ends()).toEqual([])
  bus.tell('member.changed', { tenant_id, user_id: id })
  const both = (why: string) => [uid, 'b'].map((one) => ['end', one, why])
  expect(await ends()).toEqual(both(reasons.notMember))
  missed()
  expect(await ends()).toEqual(expect.arrayContaining(both(reasons.notMember)))
  opener.person = { kind: 'api-key', id: 'nightly', name: 'nightly' }
  bus.tell('apiKey.changed', { tenant_id, name: 'nightly' })
  expect(await ends()).toEqual(both(reasons.noKey))
})

const apiKey = (name: string): SessionPerson => ({ kind: 'api-key', id: name, name })
const user = (id: string): SessionPerson => ({ kind: 'user', id, name: id })

async function addKeys(tenant_id: string, ...names: string[]): Promise<void> {
  const { stores } = storage
  const { owner } = (await stores.namespaces.find(tenant_id))!
  const at = new Date().toISOString()
  const rest = {
    role: 'operator',
    created_by: owner,
    expires_in: -1,
    created_at: at,
    updated_at: at,
  } as const
  for (const name of names) await stores.of(tenant_id).apiKeys.insert({ name, hash: unique('hash'), ...rest })
}

test('an API key that changes ends what is held for it, and nothing that is held for others', async () => {
  const { bus, tenant_id, hold, ends } = await start()
  await addKeys(tenant_id, 'nightly', 'weekly')
  hold('night', apiKey('nightly'))
  hold('week', apiKey('weekly'))
  hold('unknown', unknownPerson, 'fingerprint')
  bus.tell('apiKey.changed', { tenant_id, name: 'nightly' })
  expect(await ends()).toEqual([['night', reasons.notHeld]])
})

test('sign-ins that are ended leave what is held for their user; a new password does not', async () => {
  const { bus, tenant_id, hold, effects } = await start()
  const { owner } = (await storage.stores.namespaces.find(tenant_id))!
  hold('hers', user(owner))
  bus.tell('user.changed', { user_id: owner, only: 'sign-ins' })
  expect(await effects()).toEqual([['recheck']])
  bus.tell('user.changed', { user_id: owner })
  expect(await effects()).toEqual([['recheck'], ['end', 'hers', reasons.notHeld]])
})

test('a member whose role is lowered loses what is held in that namespace, and nobody else does', async () => {
  const { bus, stores, tenant_id, hold, ends } = await start()
  const [olga, paul] = [userRow(), userRow()]
  for (const row of [olga, paul]) {
    await stores.users.insert(row)
    const member = { tenant_id, user_id: row.id, role: 'operator', epoch: 'first' } as const
    await stores.namespaces.addMember({ ...member, created_at: row.created_at })
  }
  hold('olgas', user(olga.id))
  hold('pauls', user(paul.id))
  hold('anybodys', unknownPerson, 'fingerprint')
  bus.tell('member.changed', { tenant_id: 'another', user_id: olga.id })
  expect(await ends()).toEqual([])
  bus.tell('member.changed', { tenant_id, user_id: olga.id })
  expect(await ends()).toEqual([['olgas', reasons.notHeld]])
  await stores.namespaces.removeMember(tenant_id, paul.id)
  bus.tell('member.changed', { tenant_id, user_id: paul.id })
  expect(await ends()).toEqual([
    ['pauls', reasons.notHeld],
    ['pauls', reasons.notMember],
  ])
})

test('a public key that is for others now ends what is held for it, and nothing that is held for others', async () => {
  const { bus, tenant_id, hold, ends } = await start()
  hold('first', unknownPerson, 'one')
  hold('second', unknownPerson, 'another')
  hold('password', unknownPerson)
  bus.tell('publicKey.changed', { tenant_id: 'another', fingerprint: 'one' })
  bus.tell('publicKey.changed', { tenant_id, fingerprint: 'one' })
  expect(await ends()).toEqual([['first', reasons.notHeld]])
})

test('an API key that is removed ends its own sessions, held or not', async () => {
  const { bus, stores, tenant_id, hold, ends, opener, session: uid } = await start()
  await addKeys(tenant_id, 'nightly', 'weekly')
  opener.person = apiKey('nightly')
  hold('night', apiKey('nightly'))
  hold('week', apiKey('weekly'))
  await stores.of(tenant_id).apiKeys.remove('nightly')
  bus.tell('apiKey.changed', { tenant_id, name: 'nightly' })
  expect(await ends()).toEqual([
    ['night', reasons.notHeld],
    [uid, reasons.noKey],
    ['b', reasons.noKey],
    ['night', reasons.noKey],
  ])
})

test('a key that is given to a member, or taken away, brings back nobody who was somebody else with it', async () => {
  const { rules, stores, tenant_id, accepted } = await start()
  const { owner } = (await stores.namespaces.find(tenant_id))!
  const [line, key] = ['ssh-ed25519 AAAA', unique('fingerprint')]
  const { publicKeys } = stores.of(tenant_id)
  await publicKeys.insert(publicKey(key, { data: Buffer.from(line).toString('base64') }))
  const held = { ...loginOn(accepted), tenant_id, key, shown: fingerprintSha256(line) }
  const mayBeHeld = async () =>
    Promise.all([unknownPerson, user(owner)].map((person) => rules.mayBeHeld({ ...held, person })))
  expect(await mayBeHeld()).toEqual([true, false])
  await publicKeys.save(key, { owner })
  expect(await mayBeHeld()).toEqual([false, true])
})

test('after news were missed, what is held ends for whoever may not come back any more', async () => {
  const { stores, tenant_id, missed, hold, ends } = await start()
  const { owner } = (await stores.namespaces.find(tenant_id))!
  await addKeys(tenant_id, 'nightly')
  hold('owners', user(owner))
  hold('gone', user('gone'))
  hold('night', apiKey('nightly'))
  hold('week', apiKey('weekly'))
  hold('key', unknownPerson, 'unregistered')
  hold('password', unknownPerson)
  missed()
  const notHeld = (await ends()).filter(([, why]) => why === reasons.notHeld)
  expect(notHeld.map(([uid]) => uid)).toEqual(['gone', 'week', 'key', 'password'])
})

test('a maker whose role changes ends what is held for their keys, and nothing that is held for others', async () => {
  const { bus, stores, tenant_id, hold, ends } = await start()
  const { owner } = (await stores.namespaces.find(tenant_id))!
  await addKeys(tenant_id, 'nightly')
  hold('night', apiKey('nightly'))
  hold('unknown', unknownPerson, 'fingerprint')
  bus.tell('member.changed', { tenant_id: 'another', user_id: owner })
  bus.tell('member.changed', { tenant_id, user_id: 'another' })
  expect(await ends()).toEqual([])
  bus.tell('member.changed', { tenant_id, user_id: owner })
  expect(await ends()).toEqual([['night', reasons.notHeld]])
})

test('a key that has expired lets nobody wait, and its standing follows the role of its maker', async () => {
  const { rules, stores, tenant_id } = await start()
  const maker = userRow()
  await stores.users.insert(maker)
  const member = { tenant_id, user_id: maker.id, role: 'operator', epoch: 'first' } as const
  await stores.namespaces.addMember({ ...member, created_at: maker.created_at })
  await addKeys(tenant_id, 'nightly')
  await stores.of(tenant_id).apiKeys.save('nightly', { created_by: maker.id })
  const held = { ...loginOn(''), tenant_id, person: apiKey('nightly'), key: undefined }
  const before = await rules.standing(held)
  expect(await rules.mayBeHeld({ ...held, standing: before })).toBe(true)
  await stores.namespaces.saveMember(tenant_id, maker.id, 'operator', { role: 'observer', epoch: 'second' })
  expect(await rules.mayBeHeld({ ...held, standing: before })).toBe(false)
  expect(await rules.mayBeHeld(held)).toBe(true)
  await stores.of(tenant_id).apiKeys.save('nightly', { expires_in: Math.floor(Date.now() / 1_000) - 1 })
  expect(await rules.mayBeHeld(held)).toBe(false)
})

test('who was removed and added again, or has another password, is another than the one who was held', async () => {
  const { rules, stores, tenant_id } = await start()
  const olga = userRow()
  await stores.users.insert(olga)
  const member = { tenant_id, user_id: olga.id, role: 'operator', created_at: olga.created_at } as const
  await stores.namespaces.addMember({ ...member, epoch: 'first' })
  const held = { ...loginOn(''), tenant_id, person: user(olga.id), key: undefined }
  const first = await rules.standing(held)
  expect(await rules.mayBeHeld({ ...held, standing: first })).toBe(true)
  await stores.namespaces.removeMember(tenant_id, olga.id)
  await stores.namespaces.addMember({ ...member, epoch: 'second' })
  expect(await rules.mayBeHeld({ ...held, standing: first })).toBe(false)
  const second = await rules.standing(held)
  expect(await rules.mayBeHeld({ ...held, standing: second })).toBe(true)
  await stores.users.save(olga.id, { epoch: olga.epoch + 1 })
  expect(await rules.mayBeHeld({ ...held, standing: second })).toBe(false)
})

test('a key whose pattern is too large to be run ends no session, and brings nobody back', async () => {
  const { rules, stores, tenant_id, accepted } = await start()
  const [line, key] = ['ssh-ed25519 AAAA', unique('fingerprint')]
  const { publicKeys } = stores.of(tenant_id)
  await publicKeys.insert(publicKey(key, { data: Buffer.from(line).toString('base64') }))
  const shown = fingerprintSha256(line)
  const login = { ...loginOn(accepted), tenant_id, person: unknownPerson, key, shown }
  expect(await rules.mayBeHeld(login)).toBe(true)
  await publicKeys.save(key, { username: String.raw`\p{L}{0,450}` })
  expect(await rules.mayBeHeld(login)).toBe(false)
  expect(await rules.lostRight(login)).toBeUndefined()
})

test('keys that go with the membership of their maker end their sessions', async () => {
  const { bus, stores, tenant_id, hold, ends } = await start()
  await addKeys(tenant_id, 'nightly', 'weekly')
  hold('night', apiKey('nightly'))
  hold('week', apiKey('weekly'))
  bus.tell('member.changed', { tenant_id, user_id: 'another' })
  expect(await ends()).toEqual([])
  await stores.of(tenant_id).apiKeys.remove('nightly')
  bus.tell('member.changed', { tenant_id, user_id: 'another' })
  expect(await ends()).toEqual([['night', reasons.noKey]])
})

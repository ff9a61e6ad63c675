// Sessions that a lost server left behind: of several nodes that want to continue one, a single one gets it.
import { describe, expect, test } from 'vitest'
import { audit } from '../../server/src/domain/audit/audit.ts'
import { detachedSessions } from '../../server/src/domain/sessions/detached-sessions.ts'
import {
  cleanUpAfter,
  closeLost,
  liveSessions,
  type LiveSession,
} from '../../server/src/domain/sessions/live-sessions.ts'
import { databases, device, later, namespace, now, openFresh, session } from './databases.ts'

describe.each(databases)('$name', (database) => {
  test.each([
    ['in time', later, ['elsewhere', 'left'], 0],
    ['too late', now, ['elsewhere', 'over'], 1],
  ])('two nodes claim a session %s, and one has it', async (_, held_until, states, written) => {
    await using storage = await openFresh(database)
    const { stores } = storage
    const { here, tenant_id } = await namespace(storage)
    const one = device({ status: 'accepted' })
    await here.devices.insert(one)
    const kept_for = JSON.stringify({ standing: '' })
    const row = session(one.uid, {
      active: 1,
      node: 'lost',
      kept_s: 60,
      kept_for,
      held_until,
      participants: '[{}]',
    })
    await here.sessions.insert(row)
    const clock = { now: () => Date.parse(now) }
    // Each asks whether the other has the session before either has it.
    const asked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const log = audit({ stores, clock })
    const claim = async (node: string, at: number) => {
      using detached = detachedSessions({
        stores,
        audit: log,
        live: { adopt: () => ({}) as LiveSession },
        clock,
        node,
        async isElsewhere() {
          asked[at]!.resolve()
          await Promise.all(asked.map(({ promise }) => promise))
          return false
        },
        onError: (error) => expect.unreachable(String(error)),
      })
      return await detached.claim({ uid: one.uid, tenant_id }, row.uid)
    }
    const answers = await Promise.all([claim('first', 0), claim('second', 1)])
    const found = answers.map((answer) => String(answer?.state))
    expect(new Set(found)).toEqual(new Set(states))
    const { db } = storage.opened
    expect(await db.selectFrom('audit_entries').select('seq').execute()).toHaveLength(written)
    const after = await here.sessions.find(row.uid)
    const winner = ['first', 'second'][found.indexOf('left')]
    expect(after).toMatchObject(
      written === 0 ? { active: 1, node: winner, participants: '[]' } : { active: 0, node: 'lost' },
    )
  })

  test('no other device gets a session, and one that was closed meanwhile is over', async () => {
    await using storage = await openFresh(database)
    const { stores } = storage
    const { here, tenant_id } = await namespace(storage)
    const [own, other] = [device({ status: 'accepted' }), device({ status: 'accepted' })]
    for (const one of [own, other]) await here.devices.insert(one)
    const kept_for = JSON.stringify({ standing: '' })
    const row = session(own.uid, { active: 1, node: 'lost', kept_s: 60, kept_for, held_until: later })
    await here.sessions.insert(row)
    const clock = { now: () => Date.parse(now) }
    using detached = detachedSessions({
      stores,
      audit: audit({ stores, clock }),
      live: { adopt: () => expect.unreachable() },
      clock,
      node: 'first',
      isElsewhere: async () => false,
      onError: (error) => expect.unreachable(String(error)),
    })
    const before = await here.sessions.find(row.uid)
    for (const ask of [detached.claim, detached.take])
      expect(await ask({ uid: other.uid, tenant_id }, row.uid)).toBeUndefined()
    expect(await here.sessions.find(row.uid)).toEqual(before)
    await here.sessions.save(row.uid, { active: 0 })
    for (const ask of [detached.claim, detached.take])
      expect(await ask({ uid: own.uid, tenant_id }, row.uid)).toMatchObject({ state: 'over' })
    expect(await here.sessions.find(row.uid)).toMatchObject({ active: 0, node: 'lost' })
  })

  test('of a lost node, sessions whose terminals are kept wait until their time is over, and others are closed', async () => {
    await using storage = await openFresh(database)
    const { stores } = storage
    const { here } = await namespace(storage)
    const one = device({ status: 'accepted' })
    await here.devices.insert(one)
    const lost = (change: object) => session(one.uid, { active: 1, node: 'lost', last_seen: now, ...change })
    const rows = [lost({ kept_s: 60 }), lost({ kept_s: 60, held_until: later }), lost({})]
    for (const row of rows) await here.sessions.insert(row)
    const log = audit({ stores, clock: { now: () => Date.parse(now) } })
    await cleanUpAfter({ stores, audit: log }, 'lost')
    expect(await Promise.all(rows.map(({ uid }) => here.sessions.find(uid)))).toMatchObject([
      { active: 1, node: '', held_until: '2026-05-01T12:01:00.000Z' },
      { active: 1, node: '', held_until: later },
      { active: 0, node: '', held_until: '' },
    ])
  })

  test('however many sessions a crash leaves open, all are closed, with an entry for each', async () => {
    await using storage = await openFresh(database)
    const { stores } = storage
    const { here, tenant_id } = await namespace(storage)
    const one = device({ status: 'accepted' })
    await here.devices.insert(one)
    await stores.transaction(async (inside) => {
      for (let count = 0; count < 501; count += 1)
        for (const kept_s of [0, 60])
          await inside.of(tenant_id).sessions.insert(session(one.uid, { active: 1, last_seen: now, kept_s }))
    })
    const log = audit({ stores, clock: { now: () => Date.parse(later) } })
    await closeLost({ stores, audit: log }, { last_seen: later, now: later })
    const { db } = storage.opened
    expect(await db.selectFrom('sessions').select('uid').where('active', '=', 1).execute()).toEqual([])
    expect(await db.selectFrom('audit_entries').select('seq').execute()).toHaveLength(2 * 501)
  })

  test('a session that a server lets go is shared with nobody', async () => {
    await using storage = await openFresh(database)
    const { stores } = storage
    const { here } = await namespace(storage)
    const one = device({ status: 'accepted' })
    await here.devices.insert(one)
    const row = session(one.uid, { active: 1, kept_s: 60, participants: '[{}]' })
    await here.sessions.insert(row)
    const clock = { now: () => Date.parse(now) }
    const live = liveSessions({
      stores,
      audit: audit({ stores, clock }),
      events: { of: () => ({ add: () => () => undefined, end: () => undefined }) },
      clock,
      node: row.node ?? '',
      register: () => ({ [Symbol.dispose]: () => undefined }),
      onError: (error) => expect.unreachable(String(error)),
    })
    live.adopt((await here.sessions.find(row.uid))!, 0).leave(later)
    await live[Symbol.asyncDispose]()
    expect(await here.sessions.find(row.uid)).toMatchObject({ held_until: later, participants: '[]' })
  })
  test.each([
    ['is closed once', undefined, { active: 0, node: 'lost' }, 1],
    ['stays with the node that took it meanwhile', 'third', { active: 1, node: 'third' }, 0],
  ])('a session whose terminal is lost %s', async (_, taker, expected, written) => {
    await using storage = await openFresh(database)
    const { stores } = storage
    const { here, tenant_id } = await namespace(storage)
    const one = device({ status: 'accepted' })
    await here.devices.insert(one)
    const row = session(one.uid, { active: 1, node: 'lost', kept_s: 60, held_until: later })
    await here.sessions.insert(row)
    const clock = { now: () => Date.parse(now) }
    const log = audit({ stores, clock })
    // Both have read the record before either writes.
    const asked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const meanwhile = Promise.all(asked.map(({ promise }) => promise)).then(async () => {
      if (taker !== undefined) await here.sessions.take(row, { node: taker })
    })
    const arrive = async (node: string, at: number) => {
      using detached = detachedSessions({
        stores,
        audit: log,
        live: { adopt: () => expect.unreachable() },
        clock,
        node,
        async isElsewhere() {
          asked[at]!.resolve()
          await meanwhile
          return false
        },
        onError: (error) => expect.unreachable(String(error)),
      })
      await detached.arrived({ uid: one.uid, tenant_id }, () => false)
    }
    await Promise.all([arrive('first', 0), arrive('second', 1)])
    expect(await here.sessions.find(row.uid)).toMatchObject(expected)
    const { db } = storage.opened
    expect(await db.selectFrom('audit_entries').select('seq').execute()).toHaveLength(written)
  })
})

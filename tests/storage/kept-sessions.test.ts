// Sessions that a lost server left behind: of several nodes that want to continue one, a single one gets it.
import { describe, expect, test } from 'vitest'
import { audit } from '../../server/src/domain/audit/audit.ts'
import { keptSessions } from '../../server/src/domain/sessions/kept-sessions.ts'
import { liveSessions, type LiveSession } from '../../server/src/domain/sessions/live-sessions.ts'
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
      using kept = keptSessions({
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
      return await kept.claim({ uid: one.uid, tenant_id }, row.uid)
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
      using kept = keptSessions({
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
      await kept.arrived({ uid: one.uid, tenant_id }, () => false)
    }
    await Promise.all([arrive('first', 0), arrive('second', 1)])
    expect(await here.sessions.find(row.uid)).toMatchObject(expected)
    const { db } = storage.opened
    expect(await db.selectFrom('audit_entries').select('seq').execute()).toHaveLength(written)
  })
})

// Every operation leaves in the audit log exactly what its stanza declares. Generated from the contract: the
// example of each operation is played, and the new entries are compared with the declaration. An operation
// that changes something and declares nothing fails here.
import { operations } from '@hawser/contract'
import { auditActions, declaredActions } from '@hawser/contract/audit-actions'
import { firstHash } from '@hawser/contract/audit-chain'
import { describe, expect, test } from 'vitest'
import { chainHash } from '../../server/src/domain/audit/audit.ts'
import { oneDatabase } from '../harness/tier.ts'
import { cases, humblest, outcomeOf, request } from './cases.ts'
import { onStage, openStage, type Stage } from './stage.ts'

/** Reading these shows what somebody did in a session, or changes something in spite of the method. */
const consequential = new Set([
  'sessions.play',
  'sessions.cast',
  'recordings.window',
  'recordings.filmstrip',
  'recordings.search',
  'users.activate',
  'mfa.generate',
])

/** Examples that change nothing in the world of the tests. */
const idle: Readonly<Record<string, string>> = {
  'agents.update': 'the server of the tests offers no agent',
  'sessions.play': 'nothing was recorded of the session',
  'sessions.cast': 'nothing was recorded of the session',
  'sessions.removeRecording': 'nothing was recorded of the session',
  'users.namespaceToken': 'the caller is signed in there already',
  'users.token': 'the caller is signed in there already',
}

/** Examples that fail after they have done something. */
const tried: Readonly<Record<string, string>> = {
  'auditStreams.test': 'the server looked for the receiver',
}

/** The addresses of an operation share everything else, so its own is enough. */
const one = cases.filter(({ method, path, op }) => method === op.method && path === op.path)

const entriesOf = ({ service }: Stage) =>
  service.rooms.database.db
    .selectFrom('audit_entries')
    .selectAll()
    .orderBy('tenant_id')
    .orderBy('seq')
    .execute()

type Entry = Awaited<ReturnType<typeof entriesOf>>[number]

const asChained = (row: Entry) => ({
  ...row,
  actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
  target: { kind: row.target_kind, id: row.target_id, name: row.target_name },
  detail: JSON.parse(row.detail) as Record<string, unknown>,
})

test('whatever changes something, or reads a recording, declares what it leaves', () => {
  const silent = operations
    .filter(({ id, op }) => (op.method !== 'GET' || consequential.has(id)) && op.audit === undefined)
    .map(({ id }) => id)
  expect(silent).toEqual([])
})

test('a declaration of nothing gives a reason', () => {
  for (const { id, op } of operations)
    if (typeof op.audit === 'object' && 'none' in op.audit) expect(op.audit.none, id).toMatch(/\w{3}/)
    else for (const action of declaredActions(op.audit)) expect(auditActions[action], id).toMatch(/\.$/)
})

describe.each(oneDatabase)('on %s', (_, options) => {
  const stage = onStage(async () => openStage(await options()))

  test.each(one)('the example of $id leaves exactly what it declares', async (played) => {
    if (played.id === 'system.setup') await stage().empty()
    const before = new Set((await entriesOf(stage())).map(({ hash }) => hash))
    const got = await stage().send({ ...request(played, stage()), by: humblest(played, stage().cast) })
    await stage().service.rooms.background.settled()
    const entries = (await entriesOf(stage())).filter(({ hash }) => !before.has(hash))
    for (const entry of entries) expect(entry.request_id).toBe(got.headers.get('x-request-id'))
    const declared = declaredActions(played.op.audit)
    const isRefused = got.status !== 200 || outcomeOf(played.id).status !== 200
    if (declared.length === 0 || played.id in idle || (isRefused && !(played.id in tried))) {
      expect(entries).toEqual([])
      return
    }
    expect(entries.map(({ action }) => action)).not.toEqual([])
    for (const { action, source } of entries) {
      expect(declared).toContain(action)
      expect(source).toBe('127.0.0.1')
    }
    const said = entries.map(({ tenant_id, action }) => `${tenant_id} ${action}`)
    expect(new Set(said).size, 'nothing is said twice in one log').toBe(said.length)
  })

  test('the entries are a chain', async () => {
    for (const played of one.filter(({ id, op }) => id !== 'system.setup' && op.audit !== undefined))
      await stage().send({ ...request(played, stage()), by: humblest(played, stage().cast) })
    // What is left of a removed namespace.
    await stage().service.rooms.auditLog.trim()
    const entries = await entriesOf(stage())
    expect(entries.length).toBeGreaterThan(5)
    const heads = await stage().service.rooms.database.db.selectFrom('audit_heads').selectAll().execute()
    for (const [tenant_id, log] of Map.groupBy(entries, (entry) => entry.tenant_id)) {
      let previous = firstHash
      for (const [index, entry] of log.entries()) {
        expect(entry.seq).toBe(index + 1)
        previous = chainHash(previous, asChained(entry))
        expect(entry.hash).toBe(previous)
      }
      expect(heads.find((head) => head.tenant_id === tenant_id)).toMatchObject({
        seq: log.length,
        hash: previous,
      })
    }
  })
})

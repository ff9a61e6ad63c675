// Canaries: every secret that any operation takes is replaced, one at a time, by a text that stands nowhere
// else, and then it is looked for: in the files of SQLite, in all tables of PostgreSQL, in the log and in the
// exports of the audit log. It may be found nowhere in the clear, whether the call succeeded or was refused;
// nor may a secret that the server gave out. What people type when they sign in or search stays out of the
// audit log and of the server's. Generated from the contract: an operation that is added is played, and a
// field that sounds like a secret has to be listed.
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { operations } from '@hawser/contract'
import { sample } from '@hawser/contract/examples'
import type { Operation } from '@hawser/contract/operation'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { clientTls } from '../harness/engine.ts'
import { bothDatabases } from '../harness/place.ts'
import { cases, exampleBody, humblest, request, type Case } from './cases.ts'
import { onStage, openStage, type Stage } from './stage.ts'

interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly pattern?: string
}

/** Fields, by their names, that take or give a secret in every operation. */
const secretNames = new Set([
  'password',
  'current_password',
  'new_password',
  'code',
  'main_email_code',
  'recovery_email_code',
  'recovery_code',
  'recovery_codes',
  'secret',
  'token',
  'enrolment_token',
  'signature',
])
/** Others that do, by operation. */
const secretFields = new Set(['apiKeys.create.key', 'connectors.create.tls.key', 'connectors.update.tls.key'])
/** No secrets, although they sound so. */
const noSecrets = new Set([
  // The name of an API key, an older one's path.
  'apiKeys.update/key',
  'apiKeys.remove/key',
  // Fingerprints and public keys.
  'devices.auth.agent.key',
  'logins.explain.key',
])
/**
 * Texts of people that no log may have: passwords are typed into the wrong field, and secrets are looked for.
 */
const unlogged = new Set([
  'users.login.username',
  'users.auth.username',
  'recordings.find?text',
  'recordings.search?text',
])

const soundsSecret = /pass|secret|token|code|signature|private|credential|(^|\.|(?<!public)_)key$/

const isSecret = (field: string): boolean =>
  !noSecrets.has(field) &&
  (secretFields.has(field) || secretNames.has(field.replace(/\[\]$/, '').split(/[./?]/).at(-1) ?? ''))

/** Where texts stand in a schema: `tls.key`, `recovery_codes[]`. */
function textsOf(schema: Schema | undefined, at: readonly string[] = []): string[][] {
  if (!schema) return []
  if (schema.anyOf) return schema.anyOf.flatMap((one) => textsOf(one, at))
  if (schema.type === 'string') return schema.enum ? [] : [[...at]]
  if (schema.items) return textsOf(schema.items, [...at, '[]'])
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => textsOf(inner, [...at, name]))
}

/** The value with this text at that place. */
function planted(value: unknown, [name, ...rest]: readonly string[], text: string): unknown {
  if (name === undefined) return text
  if (name === '[]') return [planted(Array.isArray(value) ? value[0] : undefined, rest, text)]
  const object = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  return { ...object, [name]: planted(object[name], rest, text) }
}

const nameOf = (at: readonly string[]): string => at.join('.').replaceAll('.[]', '[]')

/** `devices.auth.info.arch`, `recordings.find?text`, `apiKeys.remove/key` */
function fieldsOf({
  id,
  op,
}: {
  id: string
  op: Operation
}): { field: string; place: string; at: string[] }[] {
  const of = (place: string, schema: unknown) =>
    textsOf(schema as Schema | undefined).map((at) => ({ field: `${id}${place}${nameOf(at)}`, place, at }))
  return [...of('.', op.body), ...of('?', op.query), ...of('/', op.params)]
}

interface Canary {
  readonly field: string
  /** What is sent. */
  readonly text: string
  /** What is looked for; a part of it that stands nowhere else. */
  readonly mark: string
  /** The server took it. */
  readonly accepted?: boolean
}

let last = 0
function canaryFor(field: string): Canary {
  const number = String(++last).padStart(6, '0')
  if (field.endsWith('tls.key')) return { field, text: clientTls.key, mark: clientTls.key.split('\n')[1]! }
  if (field === 'apiKeys.create.key') {
    const text = `ca9a7e00-0000-4000-8000-000000${number}`
    return { field, text, mark: text }
  }
  const mark = `canary${number}`
  return { field, text: /email/.test(field) ? `${mark}@example.com` : `${mark}-Xq9`, mark }
}

/** Secrets in an answer that the server has made. */
function givenOut(id: string, body: unknown, at = id): Canary[] {
  if (Array.isArray(body)) return body.flatMap((one) => givenOut(id, one, `${at}[]`))
  if (typeof body === 'object' && body !== null)
    return Object.entries(body).flatMap(([name, inner]) => givenOut(id, inner, `${at}.${name}`))
  return typeof body === 'string' && body.length >= 16 && isSecret(at)
    ? [{ field: `answer of ${at}`, text: body, mark: body }]
    : []
}

const latin = (file: string): string => readFileSync(file, 'latin1')

/** Everything that the database holds, by where it stands: the files of SQLite, the tables of PostgreSQL. */
async function everything({ service }: Stage): Promise<Map<string, string>> {
  const { db, name } = service.rooms.database
  if (name === 'sqlite') {
    const files = readdirSync(service.folder).filter((file) => /\.db(-wal)?$/.test(file))
    return new Map(files.map((file) => [file, latin(path.join(service.folder, file))]))
  }
  const listed = await sql<{ name: string }>`select tablename as name from pg_tables
    where schemaname = 'public'`.execute(db)
  const tables = new Map<string, string>()
  for (const table of listed.rows) {
    // As text: bytes are hexadecimal there, so they are looked for as such, too.
    const { rows } = await sql<{ line: string }>`select one::text as line
      from ${sql.table(table.name)} as one`.execute(db)
    tables.set(table.name, rows.map(({ line }) => line).join('\n'))
  }
  return tables
}

const forms = (mark: string): string[] => [mark, Buffer.from(mark).toString('hex')]

/** Plays the example with a canary in each field that must not be kept; gives the canaries. */
async function play(stage: Stage, played: Case): Promise<Canary[]> {
  const sown: Canary[] = []
  const fields = fieldsOf(played).filter(({ field }) => isSecret(field) || unlogged.has(field))
  for (const { field, place, at } of [...fields, undefined].map(
    (one) => one ?? { field: '', place: '', at: [] },
  )) {
    await stage.reset()
    if (played.id === 'system.setup') await stage.empty()
    const canary = canaryFor(field)
    const example = exampleBody(played.id, played.op, stage.world)
    // A key is taken with its certificate alone.
    const body = at[0] === 'tls' ? { ...(example as object), secure: true, tls: clientTls } : example
    const named = { [at[0] ?? '']: canary.text }
    const change =
      place === '.'
        ? { body: planted(body, at, canary.text) }
        : place === '?'
          ? { query: named }
          : place === '/'
            ? { params: named }
            : {}
    const got = await stage.send({ ...request(played, stage, change), by: humblest(played, stage.cast) })
    expect(got.status, `${field}: ${got.text}`).toBeLessThan(500)
    await stage.service.rooms.background.settled()
    const mine = [
      ...(field === '' ? [] : [{ ...canary, accepted: got.status === 200 }]),
      ...(got.status === 200 ? givenOut(played.id, got.body) : []),
    ]
    sown.push(...mine)
    const kept = mine.length === 0 ? [] : [...(await everything(stage))]
    const { rows } = await sql`select * from audit_entries`.execute(stage.service.rooms.database.db)
    const audited = JSON.stringify(rows)
    for (const { field: from, mark } of mine) {
      const holders = unlogged.has(from)
        ? audited.includes(mark)
          ? ['audit_entries']
          : []
        : kept.flatMap(([where, text]) => (forms(mark).some((form) => text.includes(form)) ? [where] : []))
      expect(holders, `${from} stands in the clear`).toEqual([])
    }
  }
  return sown
}

test('a field that sounds like a secret is listed as one, or said to be none', () => {
  const unclear = operations.flatMap((named) =>
    fieldsOf(named)
      .map(({ field }) => field)
      .filter((field) => soundsSecret.test(field.replace(/^\w+\.\w+[./?]/, '')))
      .filter((field) => !isSecret(field) && !noSecrets.has(field)),
  )
  expect(unclear).toEqual([])
})

/** Secrets that the server takes as they are planted, so that they have every chance to be kept. */
const taken = [
  'users.register.password',
  'users.updatePassword.new_password',
  'apiKeys.create.key',
  'connectors.create.tls.key',
  'auditStreams.create.secret',
]

/** The addresses of an operation share everything else, so its own is enough. */
const one = cases.filter(({ method, path: at, op }) => method === op.method && at === op.path)

describe.each(bothDatabases)('on %s', (_, options) => {
  const stage = onStage(async () => openStage({ ...(await options()), env: { HAWSER_LOG: 'debug' } }))
  const sown: Canary[] = []

  test('a text that is kept is found', async () => {
    const settings = { connection_announcement: 'canary of the control' }
    const json = { settings }
    const { status } = await stage().send({
      method: 'PUT',
      path: `/api/namespaces/${sample.tenant}`,
      json,
      by: stage().cast.owner,
    })
    expect(status).toBe(200)
    const kept = await everything(stage())
    expect([...kept.values()].some((text) => text.includes(settings.connection_announcement))).toBe(true)
  })

  test.each(one)('secrets of $id are nowhere in the clear', async (played) => {
    sown.push(...(await play(stage(), played)))
  })

  test('the server’s log and the exports of the audit log have none of them', async () => {
    const accepted = sown.filter((canary) => canary.accepted).map(({ field }) => field)
    for (const field of taken) expect(accepted).toContain(field)
    const log = stage().service.log()
    expect(log).toContain('"event"')
    for (const { field, mark } of sown) expect(log.includes(mark), `${field} stands in the log`).toBe(false)
    for (const at of ['/api/audit/export', '/api/audit/export.csv']) {
      const { status, text } = await stage().send({ method: 'GET', path: at, by: stage().cast.owner })
      expect(status).toBe(200)
      for (const { field, mark } of sown) expect(text.includes(mark), field).toBe(false)
    }
  })
})

// The search index on both databases: what is found, in which order, whose it is, and that what is removed
// leaves nothing behind.
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import pg from 'pg'
import { linesOf, PassageMaker, wordsOfBody } from '../../server/src/search/passages.ts'
import { postgresIndex } from '../../server/src/storage/search/postgres.ts'
import { adopt, isAdopted, sqliteIndex } from '../../server/src/storage/search/sqlite.ts'
import type { IndexedRecording, SearchIndex } from '../../server/src/storage/search/search-index.ts'
import { databases, device, namespace, openAt, session, unique } from './databases.ts'

interface Place extends AsyncDisposable {
  readonly index: SearchIndex
  /** A session that exists. */
  recording(started_at?: string, change?: Partial<IndexedRecording>): Promise<IndexedRecording>
  readonly tenants: readonly [string, string]
  removeSession(uid: string): Promise<void>
  /** Every word that the index still has. */
  words(): Promise<string[]>
}

async function open(database: (typeof databases)[number]): Promise<Place> {
  const at = await database.migrated()
  const storage = await openAt(at)
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-search-'))
  const file = path.join(folder, 'search.db')
  const [mine, theirs] = [await namespace(storage), await namespace(storage)]
  const devices = new Map<string, string>()
  for (const { tenant_id, here } of [mine, theirs]) {
    const one = device({ status: 'accepted' })
    await here.devices.insert(one)
    devices.set(tenant_id, one.uid)
  }
  const index = at.url ? postgresIndex(at.url, () => undefined) : sqliteIndex(file, { wordsOf: wordsOfBody })
  return {
    index,
    tenants: [mine.tenant_id, theirs.tenant_id],
    async recording(started_at = '2026-05-01T12:00:00.000Z', change = {}) {
      const tenant_id = change.tenant_id ?? mine.tenant_id
      const device_uid = devices.get(tenant_id) ?? ''
      const row = session(device_uid, { recorded: 1, active: 0, uid: unique('session') })
      await storage.stores.of(tenant_id).sessions.insert(row)
      return {
        tenant_id,
        session_uid: row.uid,
        channel: 0,
        device_uid,
        username: 'root',
        person_id: '',
        started_ms: Date.parse(started_at),
        ...change,
      }
    },
    async removeSession(uid) {
      await storage.opened.db.deleteFrom('sessions').where('uid', '=', uid).execute()
      if (!at.url) for (const tenant of [mine, theirs]) await index.remove(tenant.tenant_id, uid)
    },
    async words() {
      if (at.url) {
        const client = new pg.Client({ connectionString: at.url })
        await client.connect()
        const { rows } = await client.query<{ word: string }>(
          'select word from ts_stat($$select words from search_passages$$)',
        )
        await client.end()
        return rows.map(({ word }) => word)
      }
      const database = new DatabaseSync(file)
      database.exec('create virtual table temp.vocabulary using fts5vocab (main, words, row)')
      const rows = database.prepare('select term from temp.vocabulary').all() as { term: string }[]
      database.close()
      return rows.map(({ term }) => term)
    },
    async [Symbol.asyncDispose]() {
      await index[Symbol.asyncDispose]()
      await storage[Symbol.asyncDispose]()
      at[Symbol.dispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function fill(
  index: SearchIndex,
  recording: IndexedRecording,
  lines: readonly string[],
  step_ms = 1_000,
) {
  const id = await index.begin(recording)
  if (id === undefined) throw new Error('the session is gone')
  const maker = new PassageMaker()
  const passages = [
    ...lines.map((text, line) => maker.add({ time_ms: line * step_ms, text, command: undefined })),
    maker.take(),
  ].filter((one) => one !== undefined)
  expect(await index.add(id, passages)).toBe(true)
  await index.finish(id)
  return id
}

describe.each(databases)('$name', (database) => {
  test('passages are found by all of their words and prefixes, newest first, page by page', async () => {
    await using place = await open(database)
    const { index } = place
    const days = Array.from({ length: 30 }, (_, day) => `2026-05-${String(day + 1).padStart(2, '0')}`)
    for (const day of days.toSorted((a, b) => a.localeCompare(b.split('').toReversed().join(''))))
      await fill(index, await place.recording(`${day}T12:00:00.000Z`), [`anchor of ${day}`, 'chain', '灯台'])
    const [tenant_id] = place.tenants
    const seen: string[] = []
    let below: number | undefined
    for (;;) {
      const found = await index.find({
        tenant_id,
        words: ['anchor', 'chain', '台'],
        prefixes: ['anc'],
        below,
        limit: 7,
      })
      seen.push(...found.map(({ body }) => linesOf(body)[0]?.text ?? ''))
      below = found.at(-1)?.id
      if (found.length < 7) break
    }
    expect(seen).toEqual(days.toReversed().map((day) => `anchor of ${day}`))
    const none = { tenant_id, prefixes: [], limit: 10 }
    expect(await index.find({ ...none, words: ['anchor', 'rope'] })).toEqual([])
    expect(await index.find({ ...none, words: ['anc'] })).toEqual([])
  })

  test('a query is limited to times, a device, a user, and always to its namespace', async () => {
    await using place = await open(database)
    const { index } = place
    const [mine, theirs] = place.tenants
    const at = (day: number) => `2026-05-0${day}T12:00:00.000Z`
    const one = await place.recording(at(1))
    await fill(index, one, ['secret word'])
    const olga = { username: 'o\'brien \\ "x"', person_id: "olga | 'x' \"" }
    await fill(index, await place.recording(at(3), olga), ['secret word'])
    await fill(index, await place.recording(at(5), { tenant_id: theirs }), ['secret word'])
    const ask = async (change: object) => {
      const found = await index.find({
        tenant_id: mine,
        words: ['secret'],
        prefixes: [],
        limit: 10,
        ...change,
      })
      return found.map(({ started_ms }) => new Date(started_ms).getUTCDate())
    }
    expect(await ask({})).toEqual([3, 1])
    expect(await ask({ tenant_id: theirs })).toEqual([5])
    expect(await ask({ tenant_id: 'no-tenant' })).toEqual([])
    expect(await ask({ from_ms: Date.parse(at(2)) })).toEqual([3])
    expect(await ask({ to_ms: Date.parse(at(2)) })).toEqual([1])
    expect(await ask({ username: 'o\'brien \\ "x"' })).toEqual([3])
    expect(await ask({ username: "o'brien" })).toEqual([])
    expect(await ask({ persons: ['nobody', olga.person_id] })).toEqual([3])
    expect(await ask({ persons: ['nobody', ''] })).toEqual([])
    expect(await ask({ device_uid: one.device_uid })).toEqual([3, 1])
    expect(await ask({ device_uid: 'another' })).toEqual([])
    // Words that are no words of ours are looked for as they are.
    for (const word of [`"' OR tenant:*`, "x' | 'secret", '\\', '(', 'AND', 'secret:*'])
      expect(await ask({ words: [word] })).toEqual([])
  })

  test('what is removed, or replaced, leaves no word behind', async () => {
    await using place = await open(database)
    const { index } = place
    const [tenant_id, other] = place.tenants
    const [one, two, three] = [
      await place.recording(),
      await place.recording(),
      await place.recording(undefined, { tenant_id: other }),
    ]
    const many = Array.from({ length: 2_000 }, (_, line) => `canaryone number${line}`)
    await fill(index, one, many)
    await fill(index, two, ['canarytwo'])
    await fill(index, three, ['canarythree'])
    await fill(index, one, ['canaryfour'])
    expect(await place.words()).not.toContain('canaryone')
    // Another namespace cannot remove it.
    await index.remove(other, one.session_uid)
    expect(await place.words()).toEqual(expect.arrayContaining(['canarytwo', 'canarythree', 'canaryfour']))
    await index.remove(tenant_id, one.session_uid)
    await place.removeSession(two.session_uid)
    const left = await place.words()
    expect(left.filter((word) => word.startsWith('canary'))).toEqual(['canarythree'])
    await index.remove(other)
    expect(await place.words()).toEqual([])
  })

  test('a recording that is removed while it is indexed takes no more', async () => {
    await using place = await open(database)
    const { index } = place
    const recording = await place.recording()
    const id = await index.begin(recording)
    await index.remove(recording.tenant_id, recording.session_uid)
    expect(await index.add(id ?? 0, [{ time_ms: 0, words: ['late'], body: new Uint8Array() }])).toBe(false)
    expect(await place.words()).toEqual([])
  })

  test('what was indexed by half is not known, nor what has expired', async () => {
    await using place = await open(database)
    const { index } = place
    const recording = await place.recording()
    const known = () => index.known(recording.tenant_id, recording.session_uid)
    await index.begin(recording)
    expect(await known()).toEqual([])
    await fill(index, recording, ['whole'])
    expect(await known()).toEqual([{ channel: 0, device_uid: recording.device_uid }])
    await index.expire(place.tenants[1])
    expect(await known()).toHaveLength(1)
    await index.expire()
    expect(await known()).toEqual([])
    const found = await index.find({
      tenant_id: recording.tenant_id,
      words: ['whole'],
      prefixes: [],
      limit: 1,
    })
    expect(found).toHaveLength(1)
  })
})

test('a file that is missing, torn or something else is made anew', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-search-'))
  try {
    const file = path.join(folder, 'search.db')
    expect(isAdopted(file)).toBe(false)
    adopt(file)
    expect(isAdopted(file)).toBe(true)
    const { writeFileSync } = await import('node:fs')
    writeFileSync(file, Buffer.alloc(8_192, 'x'))
    expect(isAdopted(file)).toBe(false)
    adopt(file)
    await using index = sqliteIndex(file, { wordsOf: wordsOfBody })
    expect(await index.find({ tenant_id: 'none', words: ['x'], prefixes: [], limit: 1 })).toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

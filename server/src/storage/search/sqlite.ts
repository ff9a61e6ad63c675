// The search index in a SQLite file of its own: indexing writes much, and the database's only writer must not
// wait for it. An FTS5 table holds words, without texts or positions; it forgets a passage only when given
// its words again, and then wholly (`secure-delete`). A deleted file is rebuilt from the recordings.
import { rmSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import {
  alternativeWords,
  idRange,
  indexVersion,
  longest_passage_ms,
  ownWords,
  passageIds,
  requiredWords,
  type FoundPassage,
  type IndexedRecording,
  type KnownRecording,
  type SearchIndex,
  type SearchIndexParts,
} from './search-index.ts'

const isWord = /^[\p{L}\p{N}\p{M}_]+$/u

/** `user_version` of a file that is filled, or whose list of recordings is in the database. */
const adopted = indexVersion

const schema = `
  create table if not exists recordings (id integer primary key, tenant_id text not null,
    session_uid text not null, channel integer not null, device_uid text not null, username text not null,
    person_id text not null, started_ms integer not null, version integer not null, unique (session_uid, channel));
  create index if not exists recordings_by_namespace on recordings (tenant_id);
  create table if not exists passages (id integer primary key, recording integer not null, body blob not null);
  create index if not exists passages_by_recording on passages (recording);
  create virtual table if not exists words using fts5 (terms, content = '', detail = none, columnsize = 0,
    tokenize = "ascii tokenchars '_'");
  insert into words (words, rank) values ('secure-delete', 1);`

/** Whether the file is usable; else all recordings are to be indexed. */
export function isAdopted(file: string): boolean {
  try {
    const database = new DatabaseSync(file, { readOnly: true })
    try {
      const [row] = database.prepare('pragma user_version').all() as { user_version: number }[]
      return row?.user_version === adopted
    } finally {
      database.close()
    }
  } catch {
    return false
  }
}

/** Makes a new file where none is usable; its recordings are to be indexed. */
export function adopt(file: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
  // Recordings are private to the server's user. SQLite gives its other files the same mode.
  writeFileSync(file, '', { mode: 0o600 })
  const database = opened(file)
  database.exec(`pragma user_version = ${adopted}`)
  database.close()
}

function opened(file: string): DatabaseSync {
  const database = new DatabaseSync(file)
  database.exec(`pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 10000;
    pragma cache_size = -16384; pragma temp_store = memory; pragma secure_delete = on;`)
  database.exec(schema)
  return database
}

export function sqliteIndex(file: string, { wordsOf }: SearchIndexParts): SearchIndex {
  const database = opened(file)
  const statements = {
    known: database.prepare(
      `select channel, device_uid from recordings where tenant_id = ? and session_uid = ? and version = ${indexVersion}`,
    ),
    ofSession: database.prepare('select * from recordings where tenant_id = ? and session_uid = ?'),
    ofNamespace: database.prepare('select * from recordings where tenant_id = ?'),
    one: database.prepare('select * from recordings where id = ? and version = 0'),
    insert: database.prepare(
      `insert into recordings (tenant_id, session_uid, channel, device_uid, username, person_id, started_ms, version)
       values (?, ?, ?, ?, ?, ?, ?, 0)`,
    ),
    forget: database.prepare('delete from recordings where id = ?'),
    isTaken: database.prepare('select 1 from passages where id = ?'),
    add: database.prepare('insert into passages (id, recording, body) values (?, ?, ?)'),
    addWords: database.prepare('insert into words (rowid, terms) values (?, ?)'),
    some: database.prepare('select id, body from passages where recording = ? limit 50'),
    removeWords: database.prepare(`insert into words (words, rowid, terms) values ('delete', ?, ?)`),
    remove: database.prepare('delete from passages where id = ?'),
    finish: database.prepare(`update recordings set version = ${indexVersion} where id = ? and version = 0`),
    expireAll: database.prepare('update recordings set version = -1 where version > 0'),
    expire: database.prepare('update recordings set version = -1 where version > 0 and tenant_id = ?'),
    find: database.prepare(
      `select passages.id, passages.body, recordings.tenant_id, session_uid, channel, device_uid, username,
         person_id, started_ms
       from words join passages on passages.id = words.rowid
         join recordings on recordings.id = passages.recording
       where words match ? and words.rowid >= ? and words.rowid < ? and recordings.tenant_id = ?
       order by words.rowid desc limit ?`,
    ),
  }
  type Row = IndexedRecording & { readonly id: number }

  function inTransaction<T>(work: () => T): T {
    database.exec('begin immediate')
    try {
      const value = work()
      database.exec('commit')
      return value
    } catch (error) {
      if (database.isTransaction) database.exec('rollback')
      throw error
    }
  }

  /** In steps, so that a reader never waits long; another thread may take a turn between two. */
  async function removeRecording(row: Row): Promise<void> {
    const own = ownWords(row)
    for (;;) {
      const left = inTransaction(() => {
        const some = statements.some.all(row.id) as { id: number; body: Uint8Array }[]
        for (const { id, body } of some) {
          statements.removeWords.run(id, [...own, ...wordsOf(body)].join(' '))
          statements.remove.run(id)
        }
        if (some.length === 0) statements.forget.run(row.id)
        return some.length
      })
      if (left === 0) return
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  const ids = passageIds()
  return {
    known: async (tenant_id, session_uid) =>
      statements.known.all(tenant_id, session_uid) as unknown as KnownRecording[],
    async begin(recording) {
      const { tenant_id, session_uid, channel, device_uid, username, person_id, started_ms } = recording
      const before = statements.ofSession.all(tenant_id, session_uid) as unknown as Row[]
      for (const row of before) if (row.channel === channel) await removeRecording(row)
      const { lastInsertRowid } = statements.insert.run(
        tenant_id,
        session_uid,
        channel,
        device_uid,
        username,
        person_id,
        started_ms,
      )
      return Number(lastInsertRowid)
    },
    add: async (recording, passages) =>
      inTransaction(() => {
        const row = statements.one.get(recording) as Row | undefined
        if (!row) return false
        const own = ownWords(row)
        for (const { time_ms, words, body } of passages) {
          const at_ms = row.started_ms + time_ms
          let id = ids.next(at_ms, 0)
          for (let taken = 1; statements.isTaken.get(id); taken++) id = ids.next(at_ms, taken)
          statements.add.run(id, recording, body)
          statements.addWords.run(id, [...own, ...words].join(' '))
        }
        return true
      }),
    finish: async (recording) => void statements.finish.run(recording),
    async remove(tenant_id, session_uid) {
      const rows = (session_uid === undefined
        ? statements.ofNamespace.all(tenant_id)
        : statements.ofSession.all(tenant_id, session_uid)) as unknown as Row[]
      for (const row of rows) await removeRecording(row)
    },
    async expire(tenant_id) {
      if (tenant_id === undefined) statements.expireAll.run()
      else statements.expire.run(tenant_id)
    },
    async find(query) {
      const [from, end] = idRange(query, longest_passage_ms)
      // Anything else would be read as a phrase or an operator.
      if (![...query.words, ...query.prefixes].every((word) => isWord.test(word))) return []
      const quoted = [
        ...requiredWords(query).map((word) => `"${word}"`),
        ...query.prefixes.map((word) => `"${word}"*`),
      ]
      const oneOf = alternativeWords(query).map((word) => `"${word}"`)
      if (oneOf.length > 0) quoted.push(`(${oneOf.join(' OR ')})`)
      const rows = statements.find.all(quoted.join(' AND '), from, end, query.tenant_id, query.limit)
      return rows as unknown as FoundPassage[]
    },
    async [Symbol.asyncDispose]() {
      database.close()
    },
  }
}

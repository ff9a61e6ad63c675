// The search index in PostgreSQL: the words of a passage are a tsvector without positions, made from our own
// words, with a GIN index. Deleting a session deletes what is indexed of it. It runs in a thread of its own
// with few connections.
import pg from 'pg'
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
} from './search-index.ts'

const statement_ms = 10_000
const connections = 3

export function postgresIndex(url: string, onError: (error: Error) => void): SearchIndex {
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    // The planner ignores the cost of reading a passage's words, and would read them all.
    options: `-c timezone=UTC -c statement_timeout=${statement_ms} -c enable_seqscan=off`,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 30_000,
    application_name: 'hawser search',
  })
  pool.on('error', onError)

  async function inTransaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect()
    let broken: unknown
    try {
      await client.query('begin')
      const value = await work(client)
      await client.query('commit')
      return value
    } catch (error) {
      broken = await client.query('rollback').then(
        () => undefined,
        (failure: unknown) => failure,
      )
      throw error
    } finally {
      client.release(broken !== undefined)
    }
  }

  const ids = passageIds()
  return {
    async known(tenant_id, session_uid) {
      const { rows } = await pool.query<KnownRecording>(
        `select channel, device_uid from search_recordings
         where tenant_id = $1 and session_uid = $2 and version = ${indexVersion}`,
        [tenant_id, session_uid],
      )
      return rows
    },
    begin: (recording) =>
      inTransaction(async (client) => {
        const { tenant_id, session_uid, channel, device_uid, username, person_id, started_ms } = recording
        await client.query('delete from search_recordings where session_uid = $1 and channel = $2', [
          session_uid,
          channel,
        ])
        const { rows } = await client.query<{ id: string }>(
          `insert into search_recordings (tenant_id, session_uid, channel, device_uid, username, person_id, started_ms, version)
           select tenant_id, uid, $3, $4, $5, $6, $7, 0 from sessions where tenant_id = $1 and uid = $2
           on conflict (session_uid, channel) do update set version = 0 returning id`,
          [tenant_id, session_uid, channel, device_uid, storable(username), storable(person_id), started_ms],
        )
        return rows[0] && Number(rows[0].id)
      }),
    add: (recording, passages) =>
      inTransaction(async (client) => {
        // Locks the recording until its passages are there.
        const { rows } = await client.query<IndexedRecording & { started_ms: string }>(
          'select * from search_recordings where id = $1 and version = 0 for share',
          [recording],
        )
        const [row] = rows
        if (!row) return false
        const own = ownWords(row)
        for (const { time_ms, words, body } of passages) {
          for (let taken = 0; ; taken++) {
            const id = ids.next(Number(row.started_ms) + time_ms, taken)
            const { rowCount } = await client.query({
              name: 'search-add',
              text: `insert into search_passages (id, recording, body, words)
                values ($1, $2, $3, array_to_tsvector($4::text[])) on conflict (id) do nothing`,
              values: [id, recording, body, [...own, ...words].map(storable)],
            })
            if (rowCount === 1) break
          }
        }
        return true
      }),
    async finish(recording) {
      await pool.query(
        `update search_recordings set version = ${indexVersion} where id = $1 and version = 0`,
        [recording],
      )
    },
    async remove(tenant_id, session_uid) {
      if (session_uid === undefined)
        await pool.query('delete from search_recordings where tenant_id = $1', [tenant_id])
      else
        await pool.query('delete from search_recordings where tenant_id = $1 and session_uid = $2', [
          tenant_id,
          session_uid,
        ])
    },
    async expire(tenant_id) {
      await pool.query(
        `update search_recordings set version = -1 where version > 0 and ($1::text is null or tenant_id = $1)`,
        [tenant_id ?? null],
      )
    },
    async find(query) {
      const [from, end] = idRange(query, longest_passage_ms)
      const lexemes = [
        ...requiredWords(query).map((word) => quoted(word)),
        ...query.prefixes.map((word) => `${quoted(word)}:*`),
      ]
      const oneOf = alternativeWords(query).map(quoted)
      if (oneOf.length > 0) lexemes.push(`(${oneOf.join(' | ')})`)
      // Without `materialized` the planner may walk all passages, newest first, for a rare word.
      const { rows } = await pool.query<FoundPassage & { id: string; started_ms: string }>({
        name: 'search-find',
        text: `with matching as materialized (
            select id from search_passages where words @@ $1::tsquery),
          newest as (select id from matching where id >= $2 and id < $3 order by id desc limit $5)
          select search_passages.id, body, tenant_id, session_uid, channel, device_uid, username,
            person_id, started_ms
          from newest join search_passages using (id)
            join search_recordings on search_recordings.id = search_passages.recording
          where tenant_id = $4 order by search_passages.id desc`,
        values: [lexemes.join(' & '), from, end, query.tenant_id, query.limit],
      })
      return rows.map((row) => ({ ...row, id: Number(row.id), started_ms: Number(row.started_ms) }))
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

const storable = (text: string): string => text.replaceAll('\0', '\ufffd')

const quoted = (word: string): string => `'${storable(word).replaceAll(/['\\]/g, '$&$&')}'`

// The cost of the search over recordings: indexing an hour of a busy session, the size of the index, and
// queries over a thousand hours, next to grep over the same text. Words choose a part:
//   npm run bench -- search indexing queries                parts, both unless stated
//   … hours=1000 kib=250 times=40 postgres                  sessions of an hour, KiB of text of each, tries of a query, on PostgreSQL
// The busy hour is a real journal of 12 MB (a build, logs, listings, an editor, figures that are
// refreshed), read, checked and played as the server does. The thousand hours are lines of this
// repository, of logs and of listings, given to the index as transcripts: playing them would only repeat
// the first part a thousand times.
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { appendFileSync, globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { keyFrom } from '../server/src/recording/key.ts'
import { recordings } from '../server/src/recording/recordings.ts'
import { diskStorage } from '../server/src/recording/storage/disk.ts'
import type { TranscriptLine } from '../server/src/recording/transcript.ts'
import { findLines, type FoundLines, type LineQuery } from '../server/src/search/finding.ts'
import { indexRecording } from '../server/src/search/indexing.ts'
import { PassageMaker, wordsOfBody } from '../server/src/search/passages.ts'
import { parseQuery } from '../server/src/search/query.ts'
import { openDatabase } from '../server/src/storage/database.ts'
import { postgresIndex } from '../server/src/storage/search/postgres.ts'
import type { NewPassage, SearchIndex } from '../server/src/storage/search/search-index.ts'
import { adopt, sqliteIndex } from '../server/src/storage/search/sqlite.ts'
import { below, compare, inTurns, line, median, percentile, single, table, type Row } from './kit.ts'

const parts = ['indexing', 'queries', 'postgres'] as const
const root = path.join(import.meta.dirname, '..')
const say = (text: string): void => void process.stderr.write(`${text}\n`)
const tenant_id = '00000000-0000-4000-8000-00000000000a'
const hour_ms = 3_600_000

export default async function search(...words: string[]): Promise<void> {
  table(await searchRows(...words))
}

export async function searchRows(...words: string[]): Promise<Row[]> {
  const number = (name: string, usual: number): number =>
    Number(words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) ?? usual) || usual
  const named = words.filter((word) => !word.includes('='))
  const unknown = named.find((word) => !(parts as readonly string[]).includes(word))
  if (unknown !== undefined) throw new Error(`search: "${unknown}" is not a part (${parts.join(', ')})`)
  const chosen = named.filter((word) => word !== 'postgres')
  const wants = (part: (typeof parts)[number]): boolean => chosen.length === 0 || chosen.includes(part)
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  await using place = await openIndex(folder, named.includes('postgres'))
  const rows: Row[] = []
  if (wants('indexing')) rows.push(...(await busyHour(folder, place)))
  if (wants('queries'))
    rows.push(
      ...(await queries(folder, place, number('hours', 1_000), number('kib', 250), number('times', 40))),
    )
  return rows
}

interface IndexUnderTest extends AsyncDisposable {
  readonly index: SearchIndex
  size_bytes(): Promise<number>
  /** A session must exist before it is indexed. */
  session(uid: string): Promise<void>
}

async function openIndex(folder: string, onPostgres: boolean): Promise<IndexUnderTest> {
  if (!onPostgres) {
    const file = path.join(folder, 'search.db')
    adopt(file)
    const index = sqliteIndex(file, { wordsOf: wordsOfBody })
    return {
      index,
      size_bytes: async () =>
        ['', '-wal'].reduce(
          (sum, end) => sum + (statSync(`${file}${end}`, { throwIfNoEntry: false })?.size ?? 0),
          0,
        ),
      session: async () => undefined,
      [Symbol.asyncDispose]: () => index[Symbol.asyncDispose](),
    }
  }
  const { startPostgres } = await import('../tests/harness/postgres.ts')
  const postgres = await startPostgres()
  const url = await postgres.url('bench')
  const now = new Date().toISOString()
  await using _ = await openDatabase({ url, folder, now: () => now, onError: (error) => say(error.message) })
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  // Sessions without a device and a namespace are enough: no constraint is checked.
  await client.query('set session_replication_role = replica')
  const index = postgresIndex(url, (error) => say(error.message))
  return {
    index,
    async size_bytes() {
      await client.query('vacuum (analyze) search_passages')
      const { rows } = await client.query<{ size: string }>(
        `select pg_total_relation_size('search_passages') as size`,
      )
      return Number(rows[0]?.size)
    },
    async session(uid) {
      await client.query(
        `insert into sessions (uid, tenant_id, device_uid, username, ip_address, started_at, last_seen, active,
           authenticated, recorded, type, term, position)
         values ($1, $2, 'd', 'root', '', $3, $3, 0, 1, 1, 'shell', 'xterm', '{}')`,
        [uid, tenant_id, now],
      )
    },
    async [Symbol.asyncDispose]() {
      await index[Symbol.asyncDispose]()
      await client.end()
      await postgres[Symbol.asyncDispose]()
    },
  }
}

/** The same numbers in each run. */
function randomly(seed: number): (most: number) => number {
  let state = seed
  return (most) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * most)
  }
}

const sources = globSync('{server,ssh,docs,agent}/**/*.{ts,md}', {
  cwd: root,
  exclude: (name) => name === 'node_modules',
})
const corpus = sources
  .flatMap((file) => readFileSync(path.join(root, file), 'utf8').split('\n'))
  .filter((text) => text.trim() !== '')

function logLine(random: (most: number) => number, at: number): string {
  const units = ['sshd', 'systemd', 'kernel', 'cron', 'dockerd', 'postgres', 'nginx', 'harbourd']
  const hex = (): string =>
    random(2 ** 31)
      .toString(16)
      .padStart(8, '0')
  const time = new Date(Date.UTC(2026, 4, 1) + at).toISOString().slice(0, 19)
  const about = [
    `Accepted publickey for deploy from 10.${random(256)}.${random(256)}.${random(256)} port ${random(65_536)}`,
    `Started session ${random(99_999)} of user root.`,
    `request ${hex()}${hex()} GET /api/devices/${hex()} 200 ${random(900)} ms`,
    `connection ${hex()} closed by peer: reason ${random(20)}`,
    `checkpoint complete: wrote ${random(9_999)} buffers; sync=0.${random(999)} s`,
  ]
  return `${time} gantry ${units[random(units.length)]}[${random(32_768)}]: ${about[random(about.length)]}`
}

function listing(random: (most: number) => number): string {
  const file = sources[random(sources.length)] ?? ''
  return `-rw-r--r-- 1 root root ${String(random(999_999)).padStart(7)} Nov ${1 + random(28)} 0${random(9)}:${10 + random(49)} ${path.basename(file)}`
}

function textLine(random: (most: number) => number, at: number): string {
  const kind = random(10)
  if (kind < 4) return corpus[random(corpus.length)] ?? ''
  return kind < 8 ? logLine(random, at) : listing(random)
}

/** An hour of uninterrupted work: 12 MB of output. */
async function busyHour(folder: string, { index, session }: IndexUnderTest): Promise<Row[]> {
  const clock = { time: Date.UTC(2026, 4, 1), now: () => clock.time }
  const key = keyFrom(generateKeyPairSync('ed25519').privateKey)
  const storage = diskStorage(path.join(folder, 'recordings'))
  const recorded = recordings({ storage, key, clock, onFailed: (error) => say(error.message) })
  const random = randomly(1)
  const session_uid = 'a'.repeat(64)
  const about = {
    tenant_id,
    session_uid,
    device_uid: 'd'.repeat(64),
    username: 'root',
    person_id: '',
    term: 'xterm',
  }
  const recording = await recorded.begin({ ...about, width: 120, height: 40 })
  let output_bytes = 0
  const show = async (text: string, pause_ms: number): Promise<void> => {
    const bytes = Buffer.from(text)
    output_bytes += bytes.length
    await recording.output(bytes)
    clock.time += pause_ms
  }
  const start = clock.time
  for (let turn = 0; clock.time - start < hour_ms; turn++) {
    await show('\u001b[32mroot@gantry\u001b[0m:~# ', 700)
    for (const letter of `make step${turn} && journalctl -n 400`) await show(letter, 90)
    await show('\r\n', 30)
    // A flood, as of a build or of a log.
    for (let count = 0; count < 1_000; count++)
      await show(`\u001b[${31 + random(6)}m${textLine(random, clock.time - start)}\u001b[0m\r\n`, 4)
    for (let percent = 0; percent <= 100; percent += 2)
      await show(`\r[${'#'.repeat(percent / 5).padEnd(20)}] ${percent}%`, 40)
    await show('\r\n', 500)
    // An editor that is scrolled, and refreshed figures.
    await show('\u001b[?1049h\u001b[2J', 100)
    const from = random(corpus.length - 300)
    for (let page = 0; page < 12; page++) {
      const rows = corpus.slice(from + page * 20, from + page * 20 + 39)
      await show(`\u001b[H${rows.map((row) => `${row.slice(0, 118)}\u001b[K`).join('\r\n')}`, 600)
    }
    for (let second = 0; second < 10; second++)
      await show(
        `\u001b[H${Array.from({ length: 38 }, () => `${random(32_768)} root 20 0 ${random(99_999)} S ${random(99)}.${random(9)} harbourd\u001b[K`).join('\r\n')}`,
        1_000,
      )
    await show('\u001b[?1049l', 200)
  }
  await recording.finish()
  await session(session_uid)
  await using file = await storage.read(recording.name)
  const before = process.cpuUsage()
  const indexed = await indexRecording(index, { ...about, channel: 0, started_ms: start }, file)
  const { user, system } = process.cpuUsage(before)
  const seconds = (user + system) / 1e6
  await recorded[Symbol.asyncDispose]()
  say(
    `a busy hour: ${(output_bytes / 1e6).toFixed(1)} MB of output, ${indexed.lines} lines, ${(indexed.chars / 1e6).toFixed(1)} MB of text`,
  )
  return [single('indexing a busy hour, processor time', 's', seconds, below(5, seconds, 's'))]
}

async function queries(
  folder: string,
  { index, session, size_bytes }: IndexUnderTest,
  hours: number,
  kib: number,
  times: number,
): Promise<Row[]> {
  const before_bytes = await size_bytes()
  const plain = path.join(folder, 'plain.txt')
  let chars = 0
  const started = performance.now()
  for (let hour = 0; hour < hours; hour++) {
    const random = randomly(hour + 17)
    const session_uid = `1${hour.toString(16).padStart(63, '0')}`
    await session(session_uid)
    const started_ms = Date.UTC(2026, 0, 1) + hour * 2 * hour_ms
    const id = await index.begin({
      tenant_id,
      session_uid,
      channel: 0,
      device_uid: (hour % 50).toString(16).padStart(64, '0'),
      username: hour % 3 ? 'root' : 'deploy',
      person_id: '',
      started_ms,
    })
    if (id === undefined) throw new Error('the session is gone')
    const lines = hourOfLines(random, kib * 1024, hour)
    const text = lines.map((one) => one.text).join('\n')
    chars += text.length
    appendFileSync(plain, `${text}\n`)
    const maker = new PassageMaker()
    const passages: NewPassage[] = lines.flatMap((one) => maker.add(one) ?? [])
    const last = maker.take()
    await index.add(id, last ? [...passages, last] : passages)
    await index.finish(id)
    if (hour % 100 === 99)
      say(
        `${hour + 1} hours, ${(chars / 1e6).toFixed(0)} MB, ${((performance.now() - started) / 1000).toFixed(0)} s`,
      )
  }
  const size = (await size_bytes()) - before_bytes
  const rows: Row[] = [
    single('size of the index, of the text', '×', size / chars, below(0.6, size / chars, '×')),
  ]
  const asked = {
    'a word that is rare': (turn: number) => ({ text: `needle${(turn * 37) % hours}` }),
    'a word that is everywhere': () => ({ text: 'root' }),
    'two common words': () => ({ text: 'session root' }),
    'common words, never in one line': () => ({ text: 'checkpoint publickey' }),
    'a phrase': (turn: number) => ({ text: `"accepted publickey" 10.${turn % 256}.*` }),
    'a prefix': (turn: number) => ({ text: `${['conn', 'sess', 'dev', 'publ'][turn % 4]}*` }),
    'one device, one day': (turn: number) => ({
      text: 'closed',
      device_uid: (turn % 50).toString(16).padStart(64, '0'),
      from_ms: Date.UTC(2026, 1, 1 + (turn % 20)),
      to_ms: Date.UTC(2026, 1, 3 + (turn % 20)),
    }),
    'a word that is nowhere': (turn: number) => ({ text: `nowhere${turn}` }),
  }
  const all: number[] = []
  for (const [name, make] of Object.entries(asked)) {
    const durations: number[] = []
    let [hits, calls, cut] = [0, 0, 0]
    for (let turn = 0; turn < times; turn++) {
      const { text, ...filters }: { text: string } & Partial<LineQuery> = make(turn)
      const before = performance.now()
      const found: FoundLines = await findLines(index, {
        tenant_id,
        commands: false,
        limit: 20,
        ...filters,
        query: parseQuery(text),
      })
      durations.push(performance.now() - before)
      hits += found.hits.length
      if (found.next && found.hits.length < 20) cut++
      calls++
    }
    all.push(...durations)
    const sorted = Float64Array.from(durations).toSorted()
    say(
      `${name}: ${(hits / calls).toFixed(1)} hits a call, ${cut} of ${calls} calls end before all passages are looked at`,
    )
    rows.push(
      single(`${name}, p50`, 'ms', percentile(sorted, 50)),
      single(`${name}, p95`, 'ms', percentile(sorted, 95)),
    )
  }
  const p95 = percentile(Float64Array.from(all).toSorted(), 95)
  rows.push(single('all queries, p95', 'ms', p95, below(200, p95, 'ms')))
  // A rare word, by the index and by grep in turns.
  const needle = (turn: number): string => `needle${(turn * 37) % hours}`
  let [asking, reading] = [0, 0]
  const rare = await inTurns(
    {
      index: () =>
        timed(() =>
          findLines(index, { tenant_id, commands: false, limit: 20, query: parseQuery(needle(asking++)) }),
        ),
      grep: () =>
        timed(() =>
          spawnSync('grep', ['-n', '-i', '-w', needle(reading++), plain], { env: { LC_ALL: 'C' } }),
        ),
    },
    9,
  )
  const text = `grep over the plain text (${(chars / 1e6).toFixed(0)} MB, in memory)`
  rows.push(
    line(`a word that is rare / ${text}`, 'ms', compare(rare.index, rare.grep)),
    line(`all queries, p95 / ${text}`, 'ms', compare([p95], [median(rare.grep)])),
  )
  return rows
}

async function timed(work: () => unknown): Promise<number> {
  const before = performance.now()
  await work()
  return performance.now() - before
}

function hourOfLines(random: (most: number) => number, most_chars: number, hour: number): TranscriptLine[] {
  const lines: TranscriptLine[] = []
  for (let chars = 0; chars < most_chars;) {
    const time_ms = Math.floor((chars / most_chars) * hour_ms)
    const isCommand = lines.length % 40 === 0
    const text = isCommand ? `root@gantry:~# grep -rn ${random(9_999)} /var/log` : textLine(random, time_ms)
    lines.push({
      time_ms,
      text: lines.length === 100 ? `the needle${hour} in the hay` : text,
      command: isCommand ? { at: 15, source: 'prompt' } : undefined,
    })
    chars += text.length
  }
  return lines
}

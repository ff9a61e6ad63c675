// Input that is broken, too large, missing or something else altogether: each is refused with its file and
// line and without showing what it says, and nothing is written. So it is when the command is killed in the
// middle.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { documents } from '../../server/src/import/documents.ts'
import { environmentFor, hawser, temporaryFolder } from '../failures/program.ts'
import { freshDatabase } from '../harness/postgres.ts'
import { rowsOf, shellHub, target } from './fixture.ts'

async function read(text: string): Promise<unknown[]> {
  using folder = temporaryFolder()
  const file = path.join(folder.path, 'users.json')
  writeFileSync(file, text)
  const found: unknown[] = []
  for await (const { where, fields } of documents(file)) found.push([where, fields])
  return found
}

describe('a file of documents', () => {
  test.each([
    ['a line each', '{"a":1}\n{"a":2}\n', [1, 2]],
    ['a line each, without an end of the last', '{"a":1}\r\n{"a":2}', [1, 2]],
    ['an array', '[{"a":1},\n{"a":2}]\n', [1, 2]],
    ['an array on one line', '[{"a":1},{"a":2}]', [1, 1]],
    ['spread over lines', '{\n  "a": 1\n}\n{\n  "a": [\n    {}\n  ]\n}\n', [1, 4]],
    ['with a byte order mark and blank lines', '\ufeff\n\n{"a":1}\n\n{"a":2}\n', [3, 5]],
    ['with brackets and quotes in texts', '{"a":"}\\"]{"}\n{"a":"\\\\"}\n', [1, 2]],
    ['nothing', '', []],
    ['an empty array', '[]\n', []],
  ])('%s', async (_, text, lines) => {
    const found = (await read(text)) as [string, object][]
    expect(found.map(([where]) => where)).toEqual(lines.map((line) => `users.json, line ${line}`))
    for (const [, fields] of found) expect(fields).toHaveProperty('a')
  })

  test('is read whole across the pieces in which it comes', async () => {
    const texts = Array.from({ length: 2000 }, (_, i) => `${i} ` + 'ä"\\}{'.repeat(i % 90))
    const found = (await read(texts.map((a) => `${JSON.stringify({ a })}\n`).join(''))) as [
      string,
      { a: string },
    ][]
    expect(found.map(([, { a }]) => a)).toEqual(texts)
  })

  test.each([
    [
      'broken off',
      '{"a":1}\n{"a":',
      'users.json, line 2: the file ends in the middle of the document that begins here.',
    ],
    [
      'not JSON',
      '{"a":1}\n\n{a:1}\n',
      'users.json, line 3: the document that begins here is not valid JSON.',
    ],
    ['something else', '_id,username\n', 'users.json, line 1: here should begin a document, with {.'],
    ['an array of others', '[{"a":1},2]', 'users.json, line 1: here should begin a document, with {.'],
    [
      'too large',
      `{"a":1}\n{"a":"${'x'.repeat(17 * 1024 * 1024)}"}`,
      'users.json, line 2: the document that begins here has more than 16 MiB.',
    ],
  ])('%s is refused', async (_, text, sentence) => {
    await expect(read(text)).rejects.toMatchObject({ message: sentence })
  })
})

test.each([
  [
    'a field of another type',
    'devices.json',
    (text: string) => text.replace('"name":"buoy"', '"name":7'),
    'devices.json, line 2: "name" is not a text.',
  ],
  [
    'a date that is none',
    'users.json',
    (text: string) => text.replace('2024-03-01T08:00:00Z', 'soon'),
    'users.json, line 1: "created_at" is not a date.',
  ],
  [
    'half a file',
    'api_keys.json',
    (text: string) => text.slice(0, 100),
    'api_keys.json, line 1: the file ends in the middle',
  ],
])('%s late in a dump leaves nothing of what came before', async (_, name, change, sentence) => {
  using shellhub = await shellHub('relaxed')
  using here = await target('sqlite')
  shellhub.edit(name, change)
  for (const options of [[], ['--leave-out']]) {
    const { code, stderr } = await here.import(shellhub.from, ...options)
    expect([code, stderr]).toEqual([1, expect.stringContaining(sentence)])
    expect(stderr).not.toMatch(/\$2a|at .*\.ts/)
  }
  expect((await rowsOf(here))['users']).toEqual([])
})

test('a folder that is none, is empty, or has BSON is told apart', async () => {
  using here = await target('sqlite')
  const place = path.join(os.tmpdir(), `hawser-nowhere-${process.pid}`)
  expect((await here.import(place)).stderr).toContain('is not a folder.')
  mkdirSync(place)
  try {
    expect((await here.import(place)).stderr).toContain(
      'has no users.json and namespaces.json: export each collection with mongoexport',
    )
    writeFileSync(path.join(place, 'users.bson'), '')
    writeFileSync(path.join(place, 'users.metadata.json'), '{}')
    expect((await here.import(place)).stderr).toContain('turn each into JSON with `bsondump')
  } finally {
    rmSync(place, { recursive: true })
  }
  expect(existsSync(path.join(here.folder, 'hawser.db'))).toBe(false)
})

test('a database that is none of ShellHub, does not answer, or keeps what is not known is told apart', async () => {
  using here = await target('sqlite')
  const empty = await here.import(await freshDatabase())
  expect([empty.code, empty.stderr]).toEqual([
    1,
    expect.stringContaining('This is not the database of a ShellHub: it has no table users'),
  ])
  const away = await here.import('postgres://root:sekret@127.0.0.1:1/main')
  expect([away.code, away.stderr]).toEqual([
    1,
    expect.stringContaining('The database of ShellHub cannot be read: '),
  ])
  expect(away.stderr).not.toMatch(/sekret|HAWSER_DATABASE/)

  using shellhub = await shellHub('postgres')
  const client = new pg.Client({ connectionString: shellhub.from })
  await client.connect()
  await client.query(`create table user_mfa (user_id uuid); insert into user_mfa values (null);
    create table firewall_rules (id integer, namespace_id uuid, action text, active boolean, priority integer, source_ip text, username text, filter jsonb);
    insert into firewall_rules values (1, '${sample.tenant}', 'deny', true, 1, '.*', '.*', '{"tags":["pier"]}');
    create table jetties (id integer); insert into jetties values (1)`)
  await client.end()
  const odd = await here.import(shellhub.from)
  expect(odd.code).toBe(1)
  expect(odd.stdout).toContain('"user_mfa": second factors are kept there in a form that is not known')
  expect(odd.stdout).toContain('firewall_rules 1: the form of the firewall rule is unknown; create it again.')
  expect(odd.stdout).toContain('"jetties" is not known here and stays behind')
})

test.each(['sqlite', 'postgres'] as const)(
  'killed in the middle it leaves nothing in %s, and can be run again',
  async (database) => {
    using shellhub = await shellHub('relaxed')
    using here = await target(database)
    // The SHA-256 of many people takes a while to be wrapped: long enough to be killed in.
    const person = (i: number) => ({
      _id: { $oid: i.toString(16).padStart(24, '0') },
      username: `sailor-${i}`,
      email: `sailor-${i}@example.com`,
      password: 'ab'.repeat(32),
      confirmed: true,
    })
    shellhub.edit(
      'users.json',
      (text) => text + Array.from({ length: 400 }, (_, i) => `${JSON.stringify(person(i))}\n`).join(''),
    )
    expect((await here.import(shellhub.from, '--namespace', 'elsewhere')).code).toBe(0)
    const before = await rowsOf(here)
    const env = environmentFor(here.folder, { HAWSER_DATABASE: here.url })
    const child = spawn(process.execPath, [hawser, 'import', 'shellhub', shellhub.from], {
      env,
      stdio: 'ignore',
    })
    const ended = once(child, 'exit')
    await begun()
    child.kill('SIGKILL')
    expect(await ended).toEqual([null, 'SIGKILL'])
    expect(await rowsOf(here)).toEqual(before)
    expect((await here.import(shellhub.from, '--namespace', 'harbour')).code).toBe(0)
    expect((await rowsOf(here))['devices']).toHaveLength(2)

    /**
     * Resolves when it is writing, and has been for some time: opening a database writes for a moment, too.
     */
    async function begun(): Promise<void> {
      for (let seen = 0; ;) {
        expect(child.exitCode).toBe(null)
        seen = (database === 'sqlite' ? isHeld() : await isWriting()) ? seen + 1 : 0
        if (seen === 10) return
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    /** Somebody else has the file for writing. */
    function isHeld(): boolean {
      const file = new DatabaseSync(path.join(here.folder, 'hawser.db'), { timeout: 0 })
      try {
        file.exec('begin immediate; rollback')
        return false
      } catch {
        return true
      } finally {
        file.close()
      }
    }
    async function isWriting(): Promise<boolean> {
      const client = new pg.Client({ connectionString: here.url })
      await client.connect()
      const { rowCount } = await client.query(
        `select from pg_stat_activity where datname = current_database() and application_name = 'hawser' and backend_xid is not null`,
      )
      await client.end()
      return rowCount !== 0
    }
  },
)

// The PostgreSQL of the tests is itself tested: it is real, it is shared, and it leaves nothing behind.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { eventually } from './eventually.ts'
import { canEnter, freshDatabase, startPostgres } from './postgres.ts'

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

async function folderOf(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ data: string }>("select current_setting('data_directory') as data")
  return path.dirname(rows[0]!.data)
}

test('a fresh database takes tables and the extensions we use', async () => {
  await withClient(await freshDatabase(), async (client) => {
    await client.query('create table devices (uid text primary key, name text)')
    await client.query('create extension pg_trgm')
    await client.query('create index on devices using gin (name gin_trgm_ops)')
    await client.query("insert into devices values ('1', 'pier'), ('2', 'quay')")
    const { rows } = await client.query("select uid from devices where name like '%ie%'")
    expect(rows).toEqual([{ uid: '1' }])
  })
})

test('every fresh database is another one, and empty', async () => {
  const urls = await Promise.all([freshDatabase(), freshDatabase()])
  expect(urls[0]).not.toBe(urls[1])
  await withClient(urls[0], (client) => client.query('create table mine (id text)'))
  const { rows } = await withClient(urls[1], (client) => client.query("select to_regclass('mine') as found"))
  expect(rows).toEqual([{ found: null }])
})

test('it sorts as people’s servers do, not by bytes', async () => {
  const sql = "select name from (values ('B'), ('a'), ('C')) as names (name) order by name"
  const { rows } = await withClient(await freshDatabase(), (client) => client.query<{ name: string }>(sql))
  expect(rows.map((row) => row.name)).toEqual(['a', 'B', 'C'])
})

test('a cluster of one’s own stops with its clients and without a trace', async () => {
  const cluster = await startPostgres()
  const client = new pg.Client(await cluster.url('mine'))
  const cut = new Promise((resolve) => client.on('error', resolve))
  await client.connect()
  const folder = await folderOf(client)
  expect(existsSync(folder)).toBe(true)
  await cluster.stop()
  await cut
  expect(existsSync(folder)).toBe(false)
})

test('a cluster does not outlive whoever started it, even after kill -9', async () => {
  const program = `const { startPostgres } = await import(${JSON.stringify(import.meta.resolve('./postgres.ts'))})
    console.log(await (await startPostgres()).url('mine'))
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const url = line.toString().trim()
  const folder = await withClient(url, folderOf)
  child.kill('SIGKILL')
  await eventually(() => expect(existsSync(folder)).toBe(false))
  await expect(withClient(url, (client) => client.query('select 1'))).rejects.toThrow('ECONNREFUSED')
})

test('a folder that others may not enter is recognised from anywhere below it', async () => {
  const closed = mkdtempSync(path.join(tmpdir(), 'hawser-closed-'))
  try {
    await mkdir(path.join(closed, 'open', 'deeper'), { recursive: true, mode: 0o755 })
    const owner = { uid: process.getuid!(), gid: process.getgid!() }
    expect(canEnter(owner, path.join(closed, 'open', 'deeper'))).toBe(true)
    expect(canEnter({ uid: owner.uid + 1, gid: owner.gid + 1 }, path.join(closed, 'open', 'deeper'))).toBe(
      false,
    )
    expect(canEnter({ uid: owner.uid + 1, gid: owner.gid + 1 }, path.dirname(closed))).toBe(true)
  } finally {
    rmSync(closed, { recursive: true })
  }
})

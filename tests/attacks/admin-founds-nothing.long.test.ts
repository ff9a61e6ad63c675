// `hawser admin` where there is no installation: a mistyped HAWSER_DATA, another folder, an empty database.
// Each command says that there is none, names where it looked, and makes nothing, so that nobody believes to
// have changed the server that runs.
import { mkdirSync, readdirSync, rmSync, existsSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { admin, environmentFor, hawser, run, temporaryFolder } from '../failures/program.ts'
import { freshDatabase } from '../harness/postgres.ts'
import { shellHub } from '../import/fixture.ts'

vi.setConfig({ testTimeout: 180_000 })

const commands = [
  ['user', 'list'],
  ['user', 'create', 'ann', 'secret-1', 'ann@example.com'],
  ['recording', 'key'],
] as const

test('a folder that is not there, or is empty, stays so, and is named', async () => {
  using place = temporaryFolder()
  const empty = path.join(place.path, 'empty')
  mkdirSync(empty)
  for (const folder of [path.join(place.path, 'tyop'), empty])
    for (const command of commands) {
      const outcome = await admin(folder, command)
      expect(outcome).toMatchObject({ code: 1, stdout: '' })
      expect(outcome.stderr).toContain(
        `There is no database in ${folder}, so there is no installation of Hawser here. Set HAWSER_DATA`,
      )
      expect(outcome.stderr).toContain('`hawser admin migrate`')
    }
  const backup = await admin(empty, ['backup', path.join(place.path, 'copy')])
  expect(backup).toMatchObject({ code: 1, stderr: expect.stringContaining(empty) as string })
  expect(readdirSync(place.path)).toEqual(['empty'])
  expect(readdirSync(empty)).toEqual([])
})

test('a database without its master key gets no new one, which could open nothing', async () => {
  using place = temporaryFolder()
  expect(await admin(place.path, ['migrate'])).toMatchObject({ code: 0 })
  const key = path.join(place.path, 'master.key')
  rmSync(key)
  for (const command of [['user', 'list'], ['migrate'], ['backup', path.join(place.path, 'copy')]])
    expect(await admin(place.path, command)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no master key in') as string,
    })
  expect(existsSync(key)).toBe(false)
  expect(existsSync(path.join(place.path, 'copy'))).toBe(false)
})

test('an empty PostgreSQL stays empty, and a folder without the master key of a full one too', async () => {
  using place = temporaryFolder()
  const url = await freshDatabase()
  const [empty, right] = [path.join(place.path, 'empty'), path.join(place.path, 'right')]
  const wrong = await admin(empty, ['user', 'list'], { HAWSER_DATABASE: url, HAWSER_SECRET: 'ab'.repeat(32) })
  expect(wrong).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('There is nothing of Hawser in the database') as string,
  })
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(`select 1 from information_schema.tables where table_schema = 'public'`)
  await client.end()
  expect(rows).toEqual([])

  expect(await admin(right, ['migrate'], { HAWSER_DATABASE: url })).toMatchObject({ code: 0 })
  expect(await admin(right, ['user', 'list'], { HAWSER_DATABASE: url })).toMatchObject({ code: 0 })
  const lost = await admin(empty, ['user', 'list'], { HAWSER_DATABASE: url })
  expect(lost).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`There is no master key in ${empty}`) as string,
  })
  expect(existsSync(empty)).toBe(false)
})

test('an import, which may make a new installation, says where, and whether it does', async () => {
  using place = temporaryFolder()
  using shellhub = await shellHub('relaxed')
  const folder = path.join(place.path, 'data')
  const into = (...options: string[]) =>
    run([process.execPath, hawser, 'import', 'shellhub', shellhub.from, ...options], {
      env: environmentFor(folder),
    })
  expect((await into('--dry-run')).stdout).toContain(`, into ${folder}, a new installation:\n`)
  expect(existsSync(folder)).toBe(false)
  expect((await into()).stdout).toContain(`, into ${folder}, a new installation:\n`)
  expect((await into('--dry-run')).stdout).toContain(`, into ${folder}:\n`)
})

// docs/guides/moving-from-shellhub.md as whoever moves follows it: its commands for our side are run from the
// top to the end, on a dump and a database as ShellHub has them, and at the end the server serves who has
// moved. What is for ShellHub's own machine (a fence that says not-run) is at least a script.
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { environmentFor, hawser, run, temporaryFolder } from '../failures/program.ts'
import { startService } from '../harness/service.ts'
import { shellHub, type ShellHub } from './fixture.ts'

const guide = readFileSync(
  path.join(import.meta.dirname, '../../docs/guides/moving-from-shellhub.md'),
  'utf8',
)
const blocks = [...guide.matchAll(/^```sh( not-run: .*)?\n([^]*?)^```$/gm)].map(([, notRun, text], i) => ({
  i,
  kind: notRun ? 'not run' : 'run',
  text: text!,
}))

const desk = temporaryFolder()
const data = path.join(desk.path, 'data')
const bin = path.join(desk.path, 'bin')
let dump: ShellHub
let database: ShellHub
beforeAll(async () => {
  dump = await shellHub('relaxed')
  database = await shellHub('postgres')
  const { publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  writeFileSync(path.join(dump.from, 'api_public_key'), publicKey)
  symlinkSync(dump.from, path.join(desk.path, 'shellhub-dump'))
  mkdirSync(bin)
  writeFileSync(path.join(bin, 'hawser'), `#!/bin/sh\nexec '${process.execPath}' '${hawser}' "$@"\n`, {
    mode: 0o755,
  })
})
afterAll(() => {
  dump[Symbol.dispose]()
  database[Symbol.dispose]()
  desk[Symbol.dispose]()
})

/** The database's own address, and its password where the guide has it. */
function here(text: string): string {
  const url = new URL(database.from)
  const { password } = url
  url.password = ''
  return text
    .replace('PGPASSWORD=…', `PGPASSWORD=${password}`)
    .replace('postgres://admin@127.0.0.1:5432/main', url.href)
}

test('the guide has commands for both sides', () => {
  expect(blocks.map(({ kind }) => kind)).toEqual([
    'not run',
    'not run',
    'run',
    'run',
    'run',
    'run',
    'run',
    'run',
    'run',
  ])
})

test.each(blocks)('block $i works: $text', async ({ kind, text }) => {
  const env = { ...environmentFor(data), PATH: `${bin}:${process.env['PATH']}` }
  const flags = kind === 'not run' ? '-n' : '-e'
  const { code, stdout, stderr } = await run(['/bin/bash', '--norc', flags, '-c', here(text)], {
    cwd: desk.path,
    env,
  })
  expect(code, `${stdout}\n${stderr}`).toBe(0)
})

test('and then everybody is there', async () => {
  await using service = await startService({ folder: data })
  const { body } = await service.api().users.login({ body: sample.owner })
  expect(body).toMatchObject({ id: sample.owner.id, tenant: sample.tenant, role: 'owner' })
  const vera = await service.api().users.login({ body: { username: 'vera', password: 'a-new-rope' } })
  expect(vera.body.role).toBe('observer')
  const { body: device } = await service.api({ token: body.token }).devices.get({ params: { uid: dump.uid } })
  expect(device.status).toBe('accepted')
})

test('the guide names every option that the command has, and no other', async () => {
  const { stdout } = await run([process.execPath, hawser, 'import', '--help'], { env: environmentFor(data) })
  const options = (text: string) => new Set(text.match(/(?<![\w-])--[a-z][a-z-]+/g))
  const ofOthers = ['--quiet', '--db', '--collection']
  const named = [...options(guide)].filter(
    (option) => !ofOthers.includes(option) && !['--json', '--out'].some((other) => option.startsWith(other)),
  )
  expect(new Set(named)).toEqual(options(stdout))
})

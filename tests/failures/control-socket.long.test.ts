// The administrator's commands, as a person types them: through the control socket of a running server, or on
// the data folder when none runs; what they print is the same. And who may use the socket, where it may lie,
// and what it outlives.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { client } from '@hawser/contract/client'
import {
  admin,
  environmentFor,
  hawser,
  run,
  setUp,
  startProgram,
  temporaryFolder,
  type Outcome,
} from './program.ts'

const tenant = '00000000-0000-4000-8000-00000000abcd'
const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'

/** Commands in the order in which they are given, with the lines that they print, as patterns. */
const conversation: readonly [args: readonly string[], lines: readonly string[]][] = [
  [
    ['user', 'create', 'Ann', 'secret-1', 'Ann@Example.com'],
    ['User created successfully', 'Username: ann', 'Email: ann@example\\.com'],
  ],
  [
    ['user', 'create', 'bob', 'secret-2', 'bob@example.com'],
    ['User created successfully', 'Username: bob', 'Email: bob@example\\.com'],
  ],
  [
    ['user', 'list'],
    ['ann\\tann@example\\.com\\tconfirmed', 'bob\\tbob@example\\.com\\tconfirmed'],
  ],
  [
    ['namespace', 'create', 'Pier', 'ann', tenant],
    ['Namespace created successfully', 'Namespace: pier', `Tenant: ${tenant}`, 'Owner: [0-9a-f]{24}'],
  ],
  [
    ['namespace', 'create', 'quay', 'ann'],
    ['Namespace created successfully', 'Namespace: quay', `Tenant: ${uuid}`, 'Owner: [0-9a-f]{24}'],
  ],
  [
    ['namespace', 'list'],
    [`pier\\t${tenant}\\tann`, `quay\\t${uuid}\\tann`],
  ],
  [
    ['namespace', 'member', 'add', 'bob', 'pier', 'operator'],
    ['Member added successfully', 'Namespace: pier', `Tenant: ${tenant}`, 'Member: bob', 'Role: operator'],
  ],
  [
    ['namespace', 'member', 'remove', 'bob', 'pier'],
    ['Member removed successfully', 'Namespace: pier', `Tenant: ${tenant}`, 'Member: bob'],
  ],
  [
    ['user', 'password', 'bob', 'secret-3'],
    ['User password changed successfully', 'Username: bob'],
  ],
  [
    ['announcement', 'create', 'High tide', 'tide.md'],
    ['Announcement created successfully', `UUID: ${uuid}`, 'Title: High tide'],
  ],
  [['announcement', 'list'], [`${uuid}\\t\\d{4}-\\S+Z\\tHigh tide`]],
  [
    ['namespace', 'delete', 'quay'],
    ['Namespace deleted successfully', 'Namespace: quay'],
  ],
  [
    ['user', 'delete', 'ann'],
    ['User deleted successfully', 'Username: ann'],
  ],
  [['namespace', 'list'], []],
  [['user', 'list'], ['bob\\tbob@example\\.com\\tconfirmed']],
]

/** What they are refused with, on a folder with the user bob and nothing else. */
const refusals: readonly [args: readonly string[], sentence: string][] = [
  [['user', 'create', 'bob', 'secret-2', 'other@example.com'], 'These fields are in use already. username'],
  [
    ['user', 'create', 'x', 'secret-2', 'x@example.com'],
    'The username needs 3 to 30 letters, digits or - _ . @',
  ],
  [['user', 'create', 'carl', 'no', 'carl@example.com'], 'The password needs 5 to 30 characters.'],
  [['user', 'create', 'carl', 'secret-4', 'nowhere'], 'The e-mail address is not valid.'],
  [['user', 'password', 'nobody', 'secret-4'], 'There is no user nobody.'],
  [['user', 'delete', 'nobody'], 'There is no user nobody.'],
  [['namespace', 'create', 'mole', 'nobody'], 'There is no user nobody.'],
  [['namespace', 'create', 'no dots.', 'bob'], 'The name needs letters, digits and hyphens, at most 63.'],
  [['namespace', 'create', 'mole', 'bob', 'no-uuid'], 'The tenant must be a UUID in lower case.'],
  [['namespace', 'delete', 'nowhere'], 'There is no namespace nowhere.'],
  [['namespace', 'member', 'add', 'bob', 'nowhere', 'operator'], 'There is no namespace nowhere.'],
  [
    ['namespace', 'member', 'add', 'bob', 'nowhere', 'owner'],
    'The role is one of observer, operator, administrator.',
  ],
  [['announcement', 'delete', tenant], `There is no announcement ${tenant}.`],
]

const linesOf = ({ stdout }: Outcome): string[] =>
  stdout === '' ? [] : stdout.replace(/\n$/, '').split('\n')

test.each(['while a server runs', 'while none runs'])(
  '%s, every command does and prints what it should',
  { timeout: 400_000 },
  async (when) => {
    using folder = temporaryFolder()
    await using parts = new AsyncDisposableStack()
    if (when === 'while a server runs') parts.use(await startProgram({ folder: folder.path }))
    else await admin(folder.path, ['migrate'])
    const letter = path.join(folder.path, 'tide.md')
    writeFileSync(letter, 'At **noon**.')
    const given = (args: readonly string[]) => args.map((word) => (word === 'tide.md' ? letter : word))
    for (const [args, lines] of conversation) {
      const outcome = await admin(folder.path, given(args))
      expect(outcome, args.join(' ')).toMatchObject({ code: 0, stderr: '' })
      const printed = linesOf(outcome)
      expect(printed, args.join(' ')).toHaveLength(lines.length)
      for (const [index, line] of lines.entries()) expect(printed[index]).toMatch(new RegExp(`^${line}$`))
    }
    const [announcement] = linesOf(await admin(folder.path, ['announcement', 'list']))
    const deleted = await admin(folder.path, ['announcement', 'delete', announcement!.split('\t')[0]!])
    expect(linesOf(deleted)).toEqual(['Announcement deleted successfully'])
    // Half of them here and half of them there: they are refused by the same code.
    for (const [args, sentence] of refusals.filter(
      (_, index) => (index % 2 === 0) === (when === 'while a server runs'),
    )) {
      const outcome = await admin(folder.path, args)
      expect([args.join(' '), outcome]).toEqual([
        args.join(' '),
        { code: 1, signal: null, stdout: '', stderr: `${sentence}\n` },
      ])
    }
  },
)

test(
  'wrong arguments give the usage and exit code 1; being asked for it gives exit code 0',
  { timeout: 120_000 },
  async () => {
    using folder = temporaryFolder()
    const asked = await admin(folder.path, ['--help'])
    expect(asked).toMatchObject({ code: 0, stderr: '' })
    expect(asked.stdout).toMatch(/^Usage: hawser admin <command>\n/)
    expect(asked.stdout).toContain('namespace member add <username> <namespace> <role>')
    expect((await admin(folder.path, [])).stdout).toBe(asked.stdout)
    const unknown = await admin(folder.path, ['user', 'promote', 'ann'])
    expect(unknown).toEqual({
      code: 1,
      signal: null,
      stdout: '',
      stderr: `There is no such command.\n\n${asked.stdout}`,
    })
    const short = await admin(folder.path, ['user', 'create', 'ann'])
    expect(short).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'Usage: hawser admin user create <username> <password> <email>\n',
    })
    const long = await admin(folder.path, ['namespace', 'create', 'a', 'b', 'c', 'd'])
    expect(long).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'Usage: hawser admin namespace create <name> <owner> [tenant]\n',
    })
    for (const [verb, word] of [
      ['serve', '--port'],
      ['recording', 'veryfy'],
    ] as const) {
      const help = await run([process.execPath, hawser, verb, '--help'], { env: environmentFor(folder.path) })
      expect(help).toMatchObject({ code: 0, stderr: '' })
      expect(help.stdout).toMatch(`Usage: hawser ${verb}`)
      const wrong = await run([process.execPath, hawser, verb, word], { env: environmentFor(folder.path) })
      expect(wrong).toMatchObject({ code: 1, stdout: '', stderr: help.stdout })
    }
    const missing = path.join(folder.path, 'missing.md')
    expect(await admin(folder.path, ['announcement', 'create', 'Tide', missing])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `The file ${missing} cannot be read.\n`,
    })
  },
)

test(
  'a user who was just created signs in to the running server, and no longer once deleted',
  { timeout: 120_000 },
  async () => {
    using folder = temporaryFolder()
    await using program = await startProgram({ folder: folder.path })
    const login = () =>
      client({ url: program.url }).users.login({ body: { username: 'ann', password: 'secret-1' } })
    await admin(folder.path, ['user', 'create', 'ann', 'secret-1', 'ann@example.com'])
    await admin(folder.path, ['namespace', 'create', 'pier', 'ann', tenant])
    const { body } = await login()
    expect(body).toMatchObject({ user: 'ann', tenant, role: 'owner' })
    const api = program.api({ token: body.token })
    expect((await api.devices.list({})).status).toBe(200)
    // A new password ends the tokens from before, at once.
    await admin(folder.path, ['user', 'password', 'ann', 'secret-2'])
    await expect(api.devices.list({})).rejects.toMatchObject({ status: 401 })
    await admin(folder.path, ['user', 'delete', 'ann'])
    await expect(login()).rejects.toMatchObject({ status: 401 })
    expect(program.printed.filter((line) => line.includes('"event":"admin.ran"'))).toHaveLength(4)
    expect(program.printed.join('\n')).not.toContain('secret-')
  },
)

test('the socket is its owner’s alone', { timeout: 120_000 }, async () => {
  using folder = temporaryFolder()
  await using program = await startProgram({ folder: folder.path })
  const socket = path.join(folder.path, 'control.sock')
  expect(statSync(socket).mode & 0o777).toBe(0o600)
  for (const file of ['hawser.db', 'master.key'])
    expect([file, statSync(path.join(folder.path, file)).mode & 0o077]).toEqual([file, 0])
  // Even in a folder that is open to everybody. Only root can become somebody else; for others the mode must
  // do.
  chmodSync(folder.path, 0o755)
  if (process.getuid?.() === 0) {
    const stranger = `process.setgroups([]); process.setgid(65534); process.setuid(65534)
      require('node:net').connect(${JSON.stringify(socket)}).on('connect', () => console.log('connected')).on('error', (error) => console.log(error.code))
      setTimeout(() => process.exit(), 20_000).unref()`
    const child = spawn(process.execPath, ['-e', stranger], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [said] = await Promise.all([text(child.stdout), once(child, 'close')])
    expect(said).toBe('EACCES\n')
  }
  expect((await fetch(`${program.url}/healthcheck`)).status).toBe(200)
})

test('a data folder may lie deeper than a socket’s name may be long', { timeout: 120_000 }, async () => {
  using folder = temporaryFolder()
  const deep = path.join(folder.path, 'a-rather-long-name-for-a-folder/'.repeat(5), 'data')
  expect(deep.length).toBeGreaterThan(108)
  mkdirSync(deep, { recursive: true })
  await using program = await startProgram({ folder: deep })
  expect(linesOf(await admin(deep, ['user', 'create', 'ann', 'secret-1', 'ann@example.com']))[0]).toBe(
    'User created successfully',
  )
  // It was the server that did it.
  await program.logged('admin.ran')
})

test('the socket of a killed server does no harm', { timeout: 180_000 }, async () => {
  using folder = temporaryFolder()
  const socket = path.join(folder.path, 'control.sock')
  {
    await using program = await startProgram({ folder: folder.path })
    await setUp(program)
    await program.kill()
  }
  expect(existsSync(socket)).toBe(true)
  expect(linesOf(await admin(folder.path, ['user', 'list']))).toEqual(['olga\tolga@example.com\tconfirmed'])
  await using program = await startProgram({ folder: folder.path })
  expect(linesOf(await admin(folder.path, ['user', 'list']))).toEqual(['olga\tolga@example.com\tconfirmed'])
  await program.logged('admin.ran')
})

test(
  'a second server on the same folder is refused, and the first goes on',
  { timeout: 120_000 },
  async () => {
    using folder = temporaryFolder()
    await using program = await startProgram({ folder: folder.path })
    await expect(startProgram({ folder: folder.path })).rejects.toThrow(
      `Another server runs on ${folder.path}`,
    )
    expect((await fetch(`${program.url}/healthcheck`)).status).toBe(200)
    await admin(folder.path, ['user', 'list'])
    await program.logged('admin.ran')
  },
)

test(
  'what is not a command is answered with a sentence, and the socket lives on',
  { timeout: 120_000 },
  async () => {
    using folder = temporaryFolder()
    await using program = await startProgram({ folder: folder.path })
    const socket = path.join(folder.path, 'control.sock')
    const say = async (words: string): Promise<string> => {
      const child = spawn(process.execPath, [
        '-e',
        `const socket = require('node:net').connect(process.argv[1]); socket.pipe(process.stdout); socket.on('error', () => {}); socket.end(process.argv[2])`,
        socket,
        words,
      ])
      return text(child.stdout)
    }
    expect(JSON.parse(await say('not json\n'))).toHaveProperty('failure')
    expect(JSON.parse(await say('{"words":"user promote","given":[]}\n'))).toEqual({
      failure: 'There is no such command.',
    })
    expect(JSON.parse(await say('{"words":"user create","given":[]}\n'))).toHaveProperty('failure')
    expect(JSON.parse(await say('null\n'))).toHaveProperty('failure')
    await say('no end of line')
    expect((await admin(folder.path, ['user', 'list'])).code).toBe(0)
    await program.logged('admin.ran')
  },
)

test(
  'the settings in force are printed without their secrets, and wrong ones are listed together',
  { timeout: 120_000 },
  async () => {
    using folder = temporaryFolder()
    const secrets = {
      HAWSER_DATABASE: 'postgres://hawser:hidden-1@db.invalid/hawser',
      HAWSER_SMTP: 'smtp://hawser:hidden-2@mail.invalid',
      HAWSER_METRICS_TOKEN: 'hidden-3',
    }
    const printed = await admin(folder.path, ['config', 'print'], { ...secrets, HAWSER_LOG: 'debug' })
    expect(printed).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^No server that this user can ask runs on .*\n$/) as string,
    })
    expect(linesOf(printed)).toContain('HAWSER_LOG=debug')
    expect(linesOf(printed)).toContain(`HAWSER_DATA=${folder.path}`)
    for (const name of Object.keys(secrets)) expect(linesOf(printed)).toContain(`${name}=[secret]`)
    expect(printed.stdout).not.toContain('hidden')
    const wrong = await admin(folder.path, ['user', 'list'], {
      HAWSER_HTTP: 'nowhere',
      HAWSER_LOG: 'loud',
      HAWSER_TYPO: '1',
      HAWSER_SMTP: 'hidden-4',
    })
    expect(wrong).toMatchObject({ code: 1, stdout: '' })
    for (const name of ['HAWSER_HTTP', 'HAWSER_LOG', 'HAWSER_TYPO', 'HAWSER_SMTP'])
      expect(wrong.stderr).toContain(`  ${name}: `)
    expect(wrong.stderr).not.toContain('hidden')
    expect(existsSync(path.join(folder.path, 'hawser.db'))).toBe(false)
  },
)

test('a reader who leaves early is no failure', { timeout: 120_000 }, async () => {
  using folder = temporaryFolder()
  // `true` has gone long before anything is printed.
  const line = '{ "$@"; echo "status $?" >&2; } | true'
  const { stderr } = await run(
    ['/bin/sh', '-c', line, 'sh', process.execPath, hawser, 'admin', 'config', 'print'],
    {
      env: environmentFor(folder.path),
    },
  )
  expect(stderr).toMatch(/^No server that this user can ask runs on .*\nstatus 0\n$/)
})

test('migrate makes the schema and says so, however often', { timeout: 120_000 }, async () => {
  using folder = temporaryFolder()
  for (const made of [`There was no database in ${folder.path}: a new installation was created.\n`, ''])
    expect(await admin(folder.path, ['migrate'])).toEqual({
      code: 0,
      signal: null,
      stdout: `${made}The schema is up to date.\n`,
      stderr: '',
    })
  expect(readFileSync(path.join(folder.path, 'hawser.db')).subarray(0, 15).toString()).toBe('SQLite format 3')
  await using program = await startProgram({ folder: folder.path })
  expect((await admin(folder.path, ['migrate'])).code).toBe(0)
  expect((await fetch(`${program.url}/healthcheck`)).status).toBe(200)
})

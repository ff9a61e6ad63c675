// Our server, used by the real OpenSSH client: programs with their input, output, status and signals, and
// everything that a person's configuration may ask of a session.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { eventually } from '../../tests/harness/eventually.ts'
import { generatePrivateKey } from '../src/keys/private-key.ts'
import { publicKeyLine } from '../src/keys/public-key.ts'
import { folder, quietArgs, run } from './programs.ts'
import { hostKey, startServer } from './server.ts'

vi.setConfig({ testTimeout: 60_000 })

test('a command runs, and its output, errors and status arrive', async () => {
  await using server = await startServer()
  const { status, stdout, stderr } = await run('ssh', [
    ...quietArgs(server.port),
    'olga@127.0.0.1',
    'echo out; echo err >&2; exit 3',
  ])
  expect(stderr).toBe('err\n')
  expect(stdout.toString()).toBe('out\n')
  expect(status).toBe(3)
  expect(server.connections.map((connection) => connection.user)).toEqual(['olga'])
  expect(server.failures).toEqual([])
})

test('what is piped in comes back, byte by byte', async () => {
  await using server = await startServer()
  const bytes = randomBytes(20 * 1024 * 1024)
  const { status, stdout } = await run('ssh', [...quietArgs(server.port), 'olga@127.0.0.1', 'cat'], bytes)
  expect(status).toBe(0)
  expect(stdout.equals(bytes)).toBe(true)
})

test('a program killed by a signal is reported as such', async () => {
  await using server = await startServer()
  const { status } = await run('ssh', [...quietArgs(server.port), 'olga@127.0.0.1', 'kill -TERM $$'])
  // The client has no better way to say it.
  expect(status).toBe(255)
})

test('a shell without a terminal reads its commands from the input', async () => {
  await using server = await startServer()
  const { status, stdout } = await run(
    'ssh',
    [...quietArgs(server.port), 'olga@127.0.0.1'],
    'echo one\necho two\nexit 7\n',
  )
  expect(stdout.toString()).toBe('one\ntwo\n')
  expect(status).toBe(7)
})

test('variables and a terminal are asked for before the program', async () => {
  await using server = await startServer({
    async onSession(session) {
      const { pty, env, program } = session
      const modes = pty && [...pty.modes.keys()].length > 10
      await session.channel.write(
        Buffer.from(
          JSON.stringify({ terminal: pty?.terminal, rows: pty?.rows, modes, env: [...env], program }),
        ),
      )
      await session.exit(0)
    },
  })
  const args = [...quietArgs(server.port, 'SetEnv=LC_PLACE=quay'), '-tt', 'olga@127.0.0.1', 'stty']
  const { stdout, status } = await run('ssh', args, undefined, { TERM: 'xterm-256color' })
  expect(status).toBe(0)
  expect(JSON.parse(stdout.toString())).toEqual({
    terminal: 'xterm-256color',
    rows: 0,
    modes: false,
    env: [['LC_PLACE', 'quay']],
    program: { type: 'exec', command: 'stty' },
  })
})

test('many commands share one connection', async () => {
  using where = folder()
  await using server = await startServer()
  const control = `ControlPath=${where.file('control')}`
  const master = run('ssh', [...quietArgs(server.port, control, 'ControlMaster=yes'), '-N', 'olga@127.0.0.1'])
  await eventually(() => expect(existsSync(where.file('control'))).toBe(true))
  const outcomes = await Promise.all(
    Array.from({ length: 8 }, async (_, n) =>
      run('ssh', [...quietArgs(server.port, control), 'olga@127.0.0.1', `echo ${n}; exit ${n}`]),
    ),
  )
  expect(outcomes.map(({ status, stdout }) => [status, stdout.toString()])).toEqual(
    outcomes.map((_, n) => [n, `${n}\n`]),
  )
  await run('ssh', [...quietArgs(server.port, control), '-O', 'exit', 'olga@127.0.0.1'])
  await master
  expect(server.connections.length).toBe(1)
})

test('the client learns the other host keys and has them proved', async () => {
  using where = folder()
  const known = where.write('known_hosts', `[127.0.0.1]:* ${publicKeyLine(hostKey.type, hostKey.blob)}\n`)
  const rsa = generatePrivateKey('rsa')
  await using server = await startServer({ hostKeys: [hostKey, rsa] })
  where.write('known_hosts', `[127.0.0.1]:${server.port} ${publicKeyLine(hostKey.type, hostKey.blob)}\n`)
  const settings = [
    `UserKnownHostsFile=${known}`,
    'UpdateHostKeys=yes',
    'StrictHostKeyChecking=yes',
    'HashKnownHosts=no',
    'LogLevel=DEBUG3',
  ]
  const { stderr, status } = await run('ssh', [
    ...quietArgs(server.port, ...settings),
    'olga@127.0.0.1',
    'true',
  ])
  expect(status).toBe(0)
  expect(stderr).toContain('will use strict KEX ordering')
  expect(where.read('known_hosts')).toContain(publicKeyLine(rsa.type, rsa.blob))
})

test('a refused session says so and leaves the connection alive', async () => {
  await using server = await startServer({ channelTypes: ['direct-tcpip'] })
  const { stderr, status } = await run('ssh', [
    ...quietArgs(server.port, 'LogLevel=INFO'),
    'olga@127.0.0.1',
    'true',
  ])
  expect(stderr).toContain('Channels of this type are not opened here.')
  expect(status).not.toBe(0)
})

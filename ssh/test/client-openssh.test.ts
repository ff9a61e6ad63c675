// Our client against the real sshd: logging in with every kind of proof that needs no PAM, programs, and
// refusals.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { eventually } from '../../tests/harness/eventually.ts'
import type { Proof } from '../src/auth/client.ts'
import { connect, openClient } from '../src/client.ts'
import { startSession } from '../src/connection/session.ts'
import { AuthenticationFailed } from '../src/errors.ts'
import { agentKeys } from '../src/keys/agent.ts'
import { parsePrivateKey } from '../src/keys/private-key.ts'
import { parsePublicKeyLine } from '../src/keys/public-key.ts'
import { withCertificate } from '../src/keys/signer.ts'
import { all, outputOf } from './reading.ts'
import { folder, keygen, run, startSshd, type Sshd } from './programs.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const where = folder()
const types = {
  ed25519: ['-t', 'ed25519'],
  ecdsa256: ['-t', 'ecdsa'],
  ecdsa521: ['-t', 'ecdsa', '-b', '521'],
  rsa: ['-t', 'rsa', '-b', '2048'],
}
let sshd: Sshd
beforeAll(async () => {
  for (const [name, args] of Object.entries(types)) await keygen(where, name, ...args)
  await keygen(where, 'stranger', '-t', 'ed25519')
  await keygen(where, 'authority', '-t', 'ed25519')
  sshd = await startSshd(
    where,
    Object.keys(types)
      .map((name) => where.read(`${name}.pub`))
      .join(''),
    `TrustedUserCAKeys ${where.file('authority.pub')}`,
    'Banner none',
  )
})
afterAll(async () => {
  await sshd[Symbol.asyncDispose]()
  where[Symbol.dispose]()
})

const keyProof = (name: string): Proof => ({ method: 'publickey', key: parsePrivateKey(where.read(name)) })
const login = async (...proofs: Proof[]) =>
  connect(sshd.connect(), {
    user: sshd.user,
    proofs,
    checkHostKey: (key) => key.equals(hostKeyOf('ed25519')),
  })
const hostKeyOf = (type: string): Buffer => parsePublicKeyLine(where.read(`host_${type}.pub`)).blob

test.each(Object.keys(types))('a key of type %s gets in', async (name) => {
  await using connection = await login(keyProof(name))
  const { stdout, exit } = await outputOf(connection, 'echo hello')
  expect(stdout.toString()).toBe('hello\n')
  expect(exit).toEqual({ type: 'exit-status', status: 0 })
})

test('output, errors and status of a command', async () => {
  await using connection = await login(keyProof('ed25519'))
  const { stdout, stderr, exit } = await outputOf(connection, 'cat; echo err >&2; exit 9', 'some input')
  expect([stdout.toString(), stderr.toString(), exit]).toEqual([
    'some input',
    'err\n',
    { type: 'exit-status', status: 9 },
  ])
})

test('a program that a signal ended is reported as such', async () => {
  await using connection = await login(keyProof('ed25519'))
  expect((await outputOf(connection, 'kill -TERM $$')).exit).toMatchObject({
    type: 'exit-signal',
    signal: 'TERM',
    coreDumped: false,
  })
})

test('a terminal has the size that was asked for, and then another', async () => {
  await using connection = await login(keyProof('ed25519'))
  const size = { columns: 91, rows: 17, width: 0, height: 0 }
  const session = await startSession(connection, {
    program: { type: 'exec', command: 'stty size; read line; stty size; echo $HAWSER_PLACE' },
    pty: { terminal: 'xterm', ...size, modes: new Map([[53, 0]]) },
    env: { HAWSER_PLACE: 'quay' },
  })
  expect((await session.channel.read())?.bytes.toString()).toBe('17 91\r\n')
  await session.resize({ ...size, rows: 18 })
  await session.channel.write(Buffer.from('\n'))
  expect((await all(session.channel)).stdout.toString()).toBe('18 91\r\nquay\r\n')
})

test('forty megabytes go up and come back', async () => {
  await using connection = await login(keyProof('ed25519'))
  const bytes = randomBytes(40 * 1024 * 1024)
  const { stdout } = await outputOf(connection, 'cat', bytes)
  expect(stdout.equals(bytes)).toBe(true)
})

test('twenty commands at once on one connection', async () => {
  await using connection = await login(keyProof('ed25519'))
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, async (_, n) => outputOf(connection, `echo ${n}; exit ${n}`)),
  )
  expect(outcomes.map(({ stdout, exit }) => [stdout.toString(), exit])).toEqual(
    outcomes.map((_, n) => [`${n}\n`, { type: 'exit-status', status: n }]),
  )
})

test('a key that the server does not know is refused, and the next one is tried', async () => {
  await using connection = await login(keyProof('stranger'), keyProof('rsa'))
  expect((await outputOf(connection, 'echo in')).stdout.toString()).toBe('in\n')
  const refusal = await login(keyProof('stranger')).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(AuthenticationFailed)
  expect((refusal as AuthenticationFailed).methods).toContain('publickey')
})

test('attempts can be made one by one while the connection stands', async () => {
  const client = await openClient(sshd.connect(), { checkHostKey: () => true })
  expect(await client.attempt(sshd.user, { method: 'none' })).toMatchObject({ accepted: false })
  expect(await client.attempt(sshd.user, { method: 'password', password: 'wrong' })).toMatchObject({
    accepted: false,
  })
  expect(() => client.connection()).toThrow('has not accepted')
  expect(await client.attempt(sshd.user, keyProof('ed25519'))).toEqual({ accepted: true })
  await using connection = client.connection()
  expect((await outputOf(connection, 'echo in')).stdout.toString()).toBe('in\n')
})

test('nothing is told to a server with another host key', async () => {
  const connecting = connect(sshd.connect(), {
    user: sshd.user,
    proofs: [keyProof('ed25519')],
    checkHostKey: () => false,
  })
  await expect(connecting).rejects.toThrow('The host key is not the one that was expected.')
})

test('a certificate of a trusted authority gets in', async () => {
  await keygen(where, 'olga', '-t', 'ed25519')
  await run('ssh-keygen', [
    '-q',
    '-s',
    where.file('authority'),
    '-I',
    'olga',
    '-n',
    sshd.user,
    where.file('olga.pub'),
  ])
  const key = withCertificate(parsePrivateKey(where.read('olga')), where.read('olga-cert.pub'))
  await using connection = await login({ method: 'publickey', key })
  expect((await outputOf(connection, 'echo in')).stdout.toString()).toBe('in\n')
})

test('keys in an agent sign', async () => {
  const socket = where.file('agent')
  const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' })
  try {
    await eventually(async () => {
      const { status } = await run('ssh-add', ['-q', where.file('rsa'), where.file('ecdsa256')], '', {
        SSH_AUTH_SOCK: socket,
      })
      expect(status).toBe(0)
    })
    const keys = await agentKeys(socket)
    expect(keys.map((key) => key.comment)).toEqual(['rsa', 'ecdsa256'])
    for (const key of keys) {
      await using connection = await login({ method: 'publickey', key })
      expect((await outputOf(connection, 'echo in')).stdout.toString()).toBe('in\n')
    }
  } finally {
    agent.kill()
  }
})

test('what is not a session is refused honestly', async () => {
  await using connection = await login(keyProof('ed25519'))
  await expect(connection.open('no-such-type@example.com')).rejects.toMatchObject({ name: 'ChannelRefused' })
  expect(await connection.request('no-such-request@example.com')).toBeUndefined()
  const session = await startSession(connection, { program: { type: 'exec', command: 'cat' } })
  expect(await session.channel.request('no-such-request@example.com', Buffer.alloc(0), true)).toBe(false)
})

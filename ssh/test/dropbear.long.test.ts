// Dropbear, the SSH of small devices, on the other side in both roles. It guesses the key exchange before it
// knows ours, has small windows, and knows no authenticated encryption but ChaCha20-Poly1305 (its MACs are
// over the plain text, which we do not speak), so that cipher carries every pair here. Its server reads keys
// and passwords where the system's list of users points; nss_wrapper gives it a list of our own.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import net from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { eventually } from '../../tests/harness/eventually.ts'
import { allAlgorithms } from '../src/algorithms.ts'
import type { Proof } from '../src/auth/client.ts'
import type { Attempt, Decision } from '../src/auth/server.ts'
import { connect, type ConnectOptions } from '../src/client.ts'
import type { Connection } from '../src/connection/connection.ts'
import { joinSocket, writeListen, writeTcpForward } from '../src/connection/forwarding.ts'
import { parsePrivateKey } from '../src/keys/private-key.ts'
import { parsePublicKeyLine, publicKeyLine } from '../src/keys/public-key.ts'
import {
  agreed,
  everyKey,
  oneByOne,
  oneUser,
  roundTrip,
  startDaemon,
  startEcho,
  whenListening,
  type Daemon,
} from './peers.ts'
import { folder, freePort, run, type Outcome } from './programs.ts'
import { all, outputOf } from './reading.ts'
import { startServer, type TestServer, type TestServerOptions } from './server.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

/** Every key that dropbearkey makes; each is a user's and a host's. */
const keys = {
  ed25519: ['-t', 'ed25519'],
  rsa: ['-t', 'rsa', '-s', '2048'],
  p256: ['-t', 'ecdsa', '-s', '256'],
  p384: ['-t', 'ecdsa', '-s', '384'],
  p521: ['-t', 'ecdsa', '-s', '521'],
}
const types = Object.keys(keys)
const shared = oneByOne({
  kex: [
    'curve25519-sha256',
    'curve25519-sha256@libssh.org',
    'ecdh-sha2-nistp256',
    'ecdh-sha2-nistp384',
    'ecdh-sha2-nistp521',
    'diffie-hellman-group14-sha256',
  ],
  ciphers: ['chacha20-poly1305@openssh.com'],
  hostKey: [
    'ssh-ed25519',
    'ecdsa-sha2-nistp256',
    'ecdsa-sha2-nistp384',
    'ecdsa-sha2-nistp521',
    'rsa-sha2-256',
  ],
})
const bytes = randomBytes(32 * 1024 * 1024)
/** More than a packet, and not a multiple of one. */
const script = 'head -c 100001 /dev/zero | tr "\\0" x; exit 5'
const password = 'sesame'
/** crypt(3) of the password, by SHA-512. */
const hashed =
  '$6$hawsertests$WJ1ktEKU5Rfrj6Kl5XkkcwE7RIpWF/Mxf8JyY/g11S8Dm3NReZzK4VIgSRwpD3PzapS7YqjELT9PDLaAMFLrd0'

const where = folder()
const publicLines = new Map<string, string>()
const ourHostKeys = everyKey()
const inKeyFile = (name: string): Buffer => parsePublicKeyLine(publicLines.get(name)!).blob

beforeAll(async () => {
  mkdirSync(where.file('.ssh'), { mode: 0o700 })
  for (const [name, args] of Object.entries(keys)) {
    const { stdout } = await run('dropbearkey', [...args, '-f', where.file(name)])
    publicLines.set(name, /^\S+ AAAA\S+/m.exec(stdout.toString())![0])
    // For our own client, which does not read Dropbear's format.
    await run('dropbearconvert', ['dropbear', 'openssh', where.file(name), where.file(`${name}.openssh`)])
  }
  where.write('.ssh/authorized_keys', [...publicLines.values(), ''].join('\n'))
  // It looks hosts up by their address alone, whatever the port is.
  where.write(
    '.ssh/known_hosts',
    ourHostKeys.map(({ type, blob }) => `127.0.0.1 ${publicKeyLine(type, blob)}\n`).join(''),
  )
})
afterAll(() => where[Symbol.dispose]())

describe('dbclient with our server', () => {
  const rules = async (attempt: Attempt): Promise<Decision> => {
    if (attempt.method === 'password') return attempt.password === password ? 'accept' : 'refuse'
    if (attempt.method !== 'publickey' && attempt.method !== 'publickey-offer') return 'refuse'
    return types.some((name) => attempt.key.blob.equals(inKeyFile(name))) ? 'accept' : 'refuse'
  }
  const serve = async (options: TestServerOptions = {}): Promise<TestServer> =>
    startServer({
      hostKeys: ourHostKeys,
      methods: ['publickey', 'password'],
      authenticate: rules,
      ...options,
    })
  const args = (port: number, ...more: string[]): string[] => ['-p', String(port), ...more, 'olga@127.0.0.1']
  const withKey = (name = 'ed25519'): string[] => ['-i', where.file(name)]
  const dbclient = async (words: string[], input?: Buffer, secret = ''): Promise<Outcome> =>
    run('dbclient', words, input, { HOME: where.path, DROPBEAR_PASSWORD: secret })

  test.each(types)('a key of type %s gets in, and a command runs', async (name) => {
    await using server = await serve()
    const { stdout, stderr, status } = await dbclient([
      ...args(server.port, ...withKey(name)),
      'echo out; echo err >&2; exit 3',
    ])
    expect([stdout.toString(), stderr, status]).toEqual(['out\n', 'err\n', 3])
    expect(server.failures).toEqual([])
  })

  test('a right password gets in, a wrong one does not', async () => {
    await using server = await serve()
    expect((await dbclient([...args(server.port), 'echo in'], undefined, password)).stdout.toString()).toBe(
      'in\n',
    )
    const wrong = await dbclient([...args(server.port), 'echo in'], undefined, 'other')
    // It tries the same again until it is told to go, and then ends as if all were well.
    expect([wrong.stdout.toString(), server.endings.at(-1)]).toEqual([
      '',
      'Too many authentication failures.',
    ])
  })

  test.each(shared)('%s', async (name, algorithms) => {
    await using server = await serve({ algorithms })
    const { stdout, stderr, status } = await dbclient([...args(server.port, ...withKey()), script])
    expect([stderr, stdout.length, status]).toEqual(['', 100_001, 5])
    expect(agreed(server.connections[0]!)).toContain(name)
  })

  test('what is piped in comes back, byte by byte', async () => {
    await using server = await serve()
    const { stdout, status } = await dbclient([...args(server.port, ...withKey()), 'cat'], bytes)
    expect(status).toBe(0)
    expect(stdout.equals(bytes)).toBe(true)
  })

  test('-L and -R: ports lead to the other side', async () => {
    await using server = await serve()
    using echo = await startEcho()
    const [left, right] = [await freePort(), await freePort()]
    const forwards = [
      '-N',
      '-L',
      `127.0.0.1:${left}:127.0.0.1:${echo.port}`,
      '-R',
      `127.0.0.1:${right}:127.0.0.1:${echo.port}`,
    ]
    const child = spawn('dbclient', args(server.port, ...withKey(), ...forwards), {
      stdio: 'ignore',
      env: { ...process.env, HOME: where.path },
    })
    try {
      const sent = bytes.subarray(0, 3_000_003)
      for (const port of [left, right]) {
        await eventually(async () => whenListening({ port, host: '127.0.0.1' }))
        expect((await roundTrip(port, sent)).equals(sent)).toBe(true)
      }
    } finally {
      child.kill()
    }
  })
})

describe('our client with dropbear', () => {
  let daemon: Daemon
  let daemon521: Daemon
  beforeAll(async () => {
    const users = oneUser(where, hashed)
    const start = async (names: readonly string[]): Promise<Daemon> => {
      const port = await freePort()
      const host = names.flatMap((name) => ['-r', where.file(name)])
      return startDaemon(
        '/usr/sbin/dropbear',
        ['-F', '-E', '-m', '-P', '', '-p', `127.0.0.1:${port}`, ...host],
        port,
        users,
      )
    }
    // Four host keys are the most that it takes.
    daemon = await start(types.slice(0, 4))
    daemon521 = await start(['p521'])
  })
  afterAll(async () => {
    await daemon[Symbol.asyncDispose]()
    await daemon521[Symbol.asyncDispose]()
  })

  const keyProof = (name = 'ed25519'): Proof => ({
    method: 'publickey',
    key: parsePrivateKey(readFileSync(where.file(`${name}.openssh`), 'utf8')),
  })
  const login = async (
    proof: Proof,
    options: Partial<ConnectOptions> = {},
    to = daemon,
  ): Promise<Connection> =>
    connect(to.connect(), {
      user: 'olga',
      proofs: [proof],
      checkHostKey: (blob) => types.some((name) => blob.equals(inKeyFile(name))),
      ...options,
    })

  test.each(types)('a key of type %s gets in, and a command runs', async (name) => {
    await using connection = await login(keyProof(name))
    const { stdout, stderr, exit } = await outputOf(connection, 'cat; echo err >&2; exit 9', 'some input')
    expect([stdout.toString(), stderr.toString(), exit]).toEqual([
      'some input',
      'err\n',
      { type: 'exit-status', status: 9 },
    ])
  })

  test('a right password gets in, a wrong one does not', async () => {
    await using connection = await login({ method: 'password', password })
    expect((await outputOf(connection, 'echo in')).stdout.toString()).toBe('in\n')
    await expect(login({ method: 'password', password: 'other' })).rejects.toMatchObject({
      name: 'AuthenticationFailed',
    })
  })

  test.each(shared)('%s', async (name, algorithms) => {
    await using connection = await login(
      keyProof(),
      { algorithms },
      name === 'ecdsa-sha2-nistp521' ? daemon521 : daemon,
    )
    const { stdout, exit } = await outputOf(connection, script)
    expect([stdout.length, exit]).toEqual([100_001, { type: 'exit-status', status: 5 }])
    expect(agreed(connection)).toContain(name)
  })

  test('what is sent comes back, byte by byte', async () => {
    await using connection = await login(keyProof(), { algorithms: allAlgorithms })
    const { stdout } = await outputOf(connection, 'cat', bytes)
    expect(stdout.equals(bytes)).toBe(true)
  })

  test('a program that a signal ended is reported as such', async () => {
    await using connection = await login(keyProof())
    expect((await outputOf(connection, 'kill -TERM $$')).exit).toMatchObject({
      type: 'exit-signal',
      signal: 'TERM',
    })
  })

  test('ports are forwarded both ways', async () => {
    using echo = await startEcho()
    await using connection = await login(keyProof(), { channelTypes: ['forwarded-tcpip'] })
    const sent = bytes.subarray(0, 3_000_003)
    const direct = await connection.open(
      'direct-tcpip',
      writeTcpForward({ host: '127.0.0.1', port: echo.port, origin: '127.0.0.1', originPort: 1 }),
    )
    const [{ stdout }] = await Promise.all([all(direct), direct.write(sent).then(async () => direct.end())])
    expect(stdout.equals(sent)).toBe(true)

    const wanted = await freePort()
    expect(await connection.request('tcpip-forward', writeListen('127.0.0.1', wanted))).toBeDefined()
    const joining = (async () => {
      const opening = (await connection.channels.next())!
      await joinSocket(
        opening.accept(),
        net.connect({ port: echo.port, host: '127.0.0.1', allowHalfOpen: true }),
      )
    })()
    expect((await roundTrip(wanted, sent)).equals(sent)).toBe(true)
    await joining
  })
})

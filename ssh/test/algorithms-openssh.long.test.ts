// Every algorithm with the real OpenSSH on the other side, in both roles. The client of this machine may be
// too old for some; those run between our own two ends, so that each name in our lists is exercised.
import { execFileSync } from 'node:child_process'
import net from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { allAlgorithms, serverAlgorithms, type Algorithms } from '../src/algorithms.ts'
import { connect } from '../src/client.ts'
import { generatePrivateKey, parsePrivateKey, type PrivateKey } from '../src/keys/private-key.ts'
import { folder, keygen, quietArgs, run, startSshd, type Sshd } from './programs.ts'
import { outputOf } from './reading.ts'
import { startServer, type TestServer } from './server.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const where = folder()
let sshd: Sshd
let server: TestServer
let key: PrivateKey
/** The algorithms that the programs of this machine know. */
const known = new Set(
  ['kex', 'cipher', 'mac', 'key', 'sig'].flatMap((what) =>
    execFileSync('ssh', ['-Q', what], { encoding: 'utf8' }).split('\n'),
  ),
)

beforeAll(async () => {
  await keygen(where, 'olga', '-t', 'ed25519')
  key = parsePrivateKey(where.read('olga'))
  sshd = await startSshd(
    where,
    where.read('olga.pub'),
    `KexAlgorithms ${allAlgorithms.kex.filter((name) => known.has(name)).join(',')}`,
    `Ciphers ${allAlgorithms.ciphers.join(',')}`,
    `MACs ${allAlgorithms.macs.join(',')}`,
    // Primes of its own are refused (tests/attacks/group-exchange-primes-openssh.long.test.ts); without them it
    // has RFC 3526's.
    `ModuliFile ${where.file('none')}`,
  )
  const ecdsa = await Promise.all(
    [256, 384, 521].map(async (bits) => {
      await keygen(where, `p${bits}`, '-t', 'ecdsa', '-b', String(bits))
      return parsePrivateKey(where.read(`p${bits}`))
    }),
  )
  server = await startServer({
    algorithms: allAlgorithms,
    hostKeys: [generatePrivateKey('ed25519'), generatePrivateKey('rsa'), ...ecdsa],
  })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await sshd[Symbol.asyncDispose]()
  where[Symbol.dispose]()
})

// With AES-GCM no MAC is negotiated; a MAC needs a cipher without a tag of its own.
const cases: [string, Partial<Algorithms>, string[]][] = [
  ...allAlgorithms.kex.map((name): [string, Partial<Algorithms>, string[]] => [
    name,
    { kex: [name] },
    [`KexAlgorithms=${name}`],
  ]),
  ...allAlgorithms.ciphers.map((name): [string, Partial<Algorithms>, string[]] => [
    name,
    { ciphers: [name] },
    [`Ciphers=${name}`],
  ]),
  ...allAlgorithms.macs.map((name): [string, Partial<Algorithms>, string[]] => [
    name,
    { ciphers: ['aes128-ctr'], macs: [name] },
    ['Ciphers=aes128-ctr', `MACs=${name}`],
  ]),
  ...allAlgorithms.hostKey.map((name): [string, Partial<Algorithms>, string[]] => [
    name,
    { hostKey: [name] },
    [`HostKeyAlgorithms=${name}`],
  ]),
]
/** More than a packet, and not a multiple of one. */
const script = 'head -c 100001 /dev/zero | tr "\\0" x; exit 5'

describe('our server', () => {
  test.each(cases)('%s', async (name, only, settings) => {
    if (known.has(name)) {
      const { status, stdout, stderr } = await run('ssh', [
        ...quietArgs(server.port, ...settings),
        'olga@127.0.0.1',
        script,
      ])
      expect(stderr).toBe('')
      expect([status, stdout.length]).toEqual([5, 100_001])
    } else {
      const algorithms = { ...allAlgorithms, ...only }
      const options = {
        user: 'olga',
        proofs: [{ method: 'none' }],
        checkHostKey: () => true,
        algorithms,
      } as const
      await using connection = await connect(net.connect(server.port, '127.0.0.1'), options)
      expect(connection.transport.negotiated.kex.name).toBe(name)
      expect((await outputOf(connection, script)).stdout.length).toBe(100_001)
    }
  })
})

describe('our client', () => {
  // sshd of the test has one ECDSA key, of the curve that ssh-keygen takes by itself.
  test.each(cases.filter(([name]) => known.has(name) && !/ecdsa-sha2-nistp(?:384|521)/.test(name)))(
    '%s',
    async (name, only) => {
      const algorithms = { ...allAlgorithms, ...only }
      await using connection = await connect(sshd.connect(), {
        user: sshd.user,
        proofs: [{ method: 'publickey', key }],
        checkHostKey: () => true,
        algorithms,
      })
      const { negotiated } = connection.transport
      const names = [
        negotiated.kex.name,
        negotiated.hostKey,
        negotiated.toServer.cipher.name,
        negotiated.toClient.mac?.name,
      ]
      expect(names).toContain(name)
      const { stdout, exit } = await outputOf(connection, script)
      expect([stdout.length, exit]).toEqual([100_001, { type: 'exit-status', status: 5 }])
    },
  )
})

test('the lists of a server hold nothing that an audit objects to', () => {
  const names = Object.values(serverAlgorithms).flat() as string[]
  // NIST curves, SHA-1, CBC, groups of 2048 bits or of unknown origin, MACs over the plain text.
  expect(
    names.filter((name) =>
      /nistp|sha1|ssh-rsa|ssh-dss|cbc|group14|group-exchange|umac-64|^hmac-sha2-\d+$/.test(name),
    ),
  ).toEqual([])
  expect(serverAlgorithms.kex[0]).toBe('mlkem768x25519-sha256')
})

test('a server of the default lists takes what this client likes best', async () => {
  await using plain = await startServer()
  const { stderr, status } = await run('ssh', [
    ...quietArgs(plain.port, 'LogLevel=INFO'),
    'olga@127.0.0.1',
    'true',
  ])
  expect(status).toBe(0)
  expect(stderr.replace(/^Warning: Permanently added.*\r?\n/, '')).toBe('')
})

test('two sides without a common algorithm part with a reason', async () => {
  await using plain = await startServer()
  const { stderr, status } = await run('ssh', [
    ...quietArgs(plain.port, 'KexAlgorithms=ecdh-sha2-nistp256', 'LogLevel=INFO'),
    'olga@127.0.0.1',
  ])
  expect(status).toBe(255)
  expect(stderr).toContain('no matching key exchange method')
})

// PuTTY's programs (plink, pscp, psftp) with our server: keys of its own format, passwords, every algorithm
// that both know, files in both of its ways, forwarded ports, and new keys while data flows. It has no server
// for people, so this is one role only. It prefers AES-CTR with encrypt-then-MAC, and tells the size of the
// group that it wants exactly.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { eventually } from '../../tests/harness/eventually.ts'
import type { Attempt, Decision } from '../src/auth/server.ts'
import { generatePrivateKey } from '../src/keys/private-key.ts'
import { fingerprintSha256, parsePublicKeyLine } from '../src/keys/public-key.ts'
import { localFiles } from '../src/sftp/files.ts'
import { serveSftp } from '../src/sftp/server.ts'
import { agreed, everyKey, oneByOne, roundTrip, startEcho, whenListening } from './peers.ts'
import { folder, freePort, run, type Outcome } from './programs.ts'
import { runProgram, startServer, type TestServer, type TestServerOptions } from './server.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const keys = {
  ed25519: ['-t', 'ed25519'],
  rsa: ['-t', 'rsa', '-b', '2048'],
  p256: ['-t', 'ecdsa', '-b', '256'],
  p384: ['-t', 'ecdsa', '-b', '384'],
  p521: ['-t', 'ecdsa', '-b', '521'],
}
const types = Object.keys(keys)
const shared = oneByOne({
  kex: [
    'curve25519-sha256',
    'curve25519-sha256@libssh.org',
    'ecdh-sha2-nistp256',
    'ecdh-sha2-nistp384',
    'ecdh-sha2-nistp521',
    'diffie-hellman-group-exchange-sha256',
    'diffie-hellman-group16-sha512',
    'diffie-hellman-group14-sha256',
  ],
  ciphers: [
    'aes128-gcm@openssh.com',
    'aes256-gcm@openssh.com',
    'chacha20-poly1305@openssh.com',
    'aes256-ctr',
    'aes192-ctr',
    'aes128-ctr',
  ],
  macs: ['hmac-sha2-256-etm@openssh.com'],
  hostKey: [
    'ssh-ed25519',
    'ecdsa-sha2-nistp256',
    'ecdsa-sha2-nistp384',
    'ecdsa-sha2-nistp521',
    'rsa-sha2-512',
    'rsa-sha2-256',
  ],
})
const bytes = randomBytes(8 * 1024 * 1024)
const password = 'sesame'

const where = folder()
const hostKeys = everyKey()
const blobs = new Map<string, Buffer>()

beforeAll(async () => {
  for (const [name, args] of Object.entries(keys)) {
    await run('puttygen', ['-q', ...args, '--new-passphrase', '/dev/null', '-o', where.file(`${name}.ppk`)])
    const { stdout } = await run('puttygen', [where.file(`${name}.ppk`), '-L'])
    blobs.set(name, parsePublicKeyLine(stdout.toString()).blob)
  }
  where.write('right', password)
  where.write('wrong', 'other')
  where.write('up', bytes)
  // A saved session of hers that wants new keys after every megabyte.
  mkdirSync(where.file('.putty/sessions'), { recursive: true })
  where.write('.putty/sessions/often', 'PresentVersion=1\nRekeyBytes=1M\nRekeyTime=0\n')
})
afterAll(() => where[Symbol.dispose]())

const rules = async (attempt: Attempt): Promise<Decision> => {
  if (attempt.method === 'password') return attempt.password === password ? 'accept' : 'refuse'
  if (attempt.method !== 'publickey' && attempt.method !== 'publickey-offer') return 'refuse'
  return [...blobs.values()].some((blob) => blob.equals(attempt.key.blob)) ? 'accept' : 'refuse'
}
const serve = async (options: TestServerOptions = {}): Promise<TestServer> =>
  startServer({
    hostKeys,
    methods: ['publickey', 'password'],
    authenticate: rules,
    async onSession(session) {
      if (session.program.type !== 'subsystem') return runProgram(session)
      await serveSftp(session.channel, localFiles(where.path))
      return session.exit(0)
    },
    ...options,
  })

/** It takes no other host keys than these, and never asks anybody. */
const args = (server: TestServer, ...more: string[]): string[] => {
  const known = hostKeys.flatMap(({ blob }) => ['-hostkey', fingerprintSha256(blob)])
  return ['-batch', '-noagent', '-P', String(server.port), ...known, ...more]
}
const withKey = (name = 'ed25519'): string[] => ['-i', where.file(`${name}.ppk`)]
const env = { HOME: where.path }
const plink = async (words: string[], input?: Buffer): Promise<Outcome> => run('plink', words, input, env)

describe('plink', () => {
  test.each(types)('a key of type %s gets in, and a command runs', async (name) => {
    await using server = await serve()
    const { stdout, stderr, status } = await plink([
      ...args(server, ...withKey(name)),
      'olga@127.0.0.1',
      'echo out; echo err >&2; exit 3',
    ])
    expect([stdout.toString(), stderr, status]).toEqual(['out\n', 'err\n', 3])
    expect(server.failures).toEqual([])
  })

  test('a right password gets in, a wrong one does not', async () => {
    await using server = await serve()
    const right = await plink([...args(server, '-pwfile', where.file('right')), 'olga@127.0.0.1', 'echo in'])
    expect(right.stdout.toString()).toBe('in\n')
    const wrong = await plink([...args(server, '-pwfile', where.file('wrong')), 'olga@127.0.0.1', 'echo in'])
    expect([wrong.stdout.toString(), wrong.status]).toEqual(['', 1])
  })

  test('questions are asked and answered', async () => {
    await using server = await serve({
      methods: ['keyboard-interactive'],
      authenticate: async (attempt) => {
        attempt.banner('Welcome to the quay.\n')
        if (attempt.method !== 'keyboard-interactive') return 'refuse'
        const [answer] = await attempt.ask([{ text: 'Password: ', echo: false }], 'Door', 'Say it.')
        return answer === password ? 'accept' : 'refuse'
      },
    })
    const { stdout, stderr } = await plink([
      ...args(server, '-v', '-pwfile', where.file('right')),
      'olga@127.0.0.1',
      'echo in',
    ])
    expect(stdout.toString()).toBe('in\n')
    expect(stderr).toContain('Welcome to the quay.')
  })

  test('a server with another host key is not talked to', async () => {
    await using server = await serve({ hostKeys: [generatePrivateKey()] })
    const { stdout, stderr } = await plink([...args(server, ...withKey()), 'olga@127.0.0.1', 'echo in'])
    expect(stdout.toString()).toBe('')
    expect(stderr).toContain('Host key not in manually configured list')
  })

  test.each(shared)('%s', async (name, algorithms) => {
    await using server = await serve({ algorithms })
    const script = 'head -c 100001 /dev/zero | tr "\\0" x; exit 5'
    const { stdout, stderr, status } = await plink([...args(server, ...withKey()), 'olga@127.0.0.1', script])
    expect([stderr, stdout.length, status]).toEqual(['', 100_001, 5])
    expect(agreed(server.connections[0]!)).toContain(name)
  })

  test('what is piped in comes back, byte by byte', async () => {
    await using server = await serve()
    const four = Buffer.concat([bytes, bytes, bytes, bytes])
    const { stdout, status } = await plink([...args(server, ...withKey()), 'olga@127.0.0.1', 'cat'], four)
    expect(status).toBe(0)
    expect(stdout.equals(four)).toBe(true)
  })

  test.each([
    ['it wants new keys', ['-load', 'often'], {}, 'Initiating key re-exchange (too much data sent)'],
    ['our server does', [], { rekey_bytes: 1_000_000 }, 'Remote side initiated key re-exchange'],
  ])('and so it does while %s every megabyte', async (_, words, options, said) => {
    await using server = await serve(options)
    const { stdout, stderr, status } = await plink(
      [...args(server, ...withKey(), '-v', ...words), 'olga@127.0.0.1', 'cat'],
      bytes,
    )
    expect(status).toBe(0)
    expect(stdout.equals(bytes)).toBe(true)
    // Eight megabytes; what is under way while keys are made may count towards none of them.
    expect(stderr.split(said).length).toBeGreaterThan(3)
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
    const words = [...args(server, ...withKey(), ...forwards), 'olga@127.0.0.1']
    const child = spawn('plink', words, { stdio: 'ignore', env: { ...process.env, ...env } })
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

describe('files', () => {
  const same = (name: string): boolean => readFileSync(where.file(name)).equals(bytes)

  test('psftp puts, lists, renames, gets and removes', async () => {
    await using server = await serve()
    const lines = [
      `put ${where.file('up')} there`,
      'mkdir folder',
      'mv there folder/moved',
      'chmod 640 folder/moved',
      'ls folder',
      `get folder/moved ${where.file('down')}`,
      'rm folder/moved',
      'rmdir folder',
      'get folder/moved nowhere',
    ]
    const script = where.write('script', `${lines.join('\n')}\n`)
    const { stdout, status } = await run(
      'psftp',
      [...args(server, ...withKey(), '-b', script, '-be'), 'olga@127.0.0.1'],
      undefined,
      env,
    )
    expect(status).toBe(0)
    expect(stdout.toString()).toMatch(/-rw-r-----.* 8388608 .* moved/)
    expect(stdout.toString()).toContain('no such file')
    expect(same('down')).toBe(true)
  })

  test.each(['-sftp', '-scp'])('pscp %s copies up and down', async (way) => {
    await using server = await serve()
    const there = where.file(`there${way}`)
    const up = await run(
      'pscp',
      [...args(server, ...withKey(), way, '-q'), where.file('up'), `olga@127.0.0.1:${there}`],
      undefined,
      env,
    )
    expect([up.stderr, up.status, same(`there${way}`)]).toEqual(['', 0, true])
    const down = await run(
      'pscp',
      [...args(server, ...withKey(), way, '-q'), `olga@127.0.0.1:${there}`, where.file(`back${way}`)],
      undefined,
      env,
    )
    expect([down.stderr, down.status, same(`back${way}`)]).toEqual(['', 0, true])
  })
})

// Compression with the real OpenSSH in either role: `ssh -C` to our server, and our client to a real sshd;
// with new keys every megabyte, sftp, text and data that does not get smaller. The method `zlib`, which
// compresses before the login, is never used.
import { randomBytes } from 'node:crypto'
import net from 'node:net'
import { expect, test, vi } from 'vitest'
import { eventually } from '../../tests/harness/eventually.ts'
import { allAlgorithms } from '../src/algorithms.ts'
import { connect } from '../src/client.ts'
import { contextMemory } from '../src/compression/zlib-context.ts'
import { parsePrivateKey } from '../src/keys/private-key.ts'
import { localFiles } from '../src/sftp/files.ts'
import { serveSftp } from '../src/sftp/server.ts'
import { folder, keygen, quietArgs, run, startSshd } from './programs.ts'
import { outputOf } from './reading.ts'
import { startServer } from './server.ts'

vi.setConfig({ testTimeout: 60_000 })

/** Text that is not all the same. */
const text = Buffer.from(
  Array.from({ length: 60_000 }, (_, at) => `${at} ropes of ${(at * 7_919) % 997} fathoms each\n`).join(''),
)
const mixed = Buffer.concat([text, randomBytes(2_000_000), text])

/** The client's counts of bytes, without and with compression. */
const counted = (stderr: string): { sent: number; received: number } => {
  const [, sent, received] = /Transferred: sent (\d+), received (\d+) bytes/.exec(stderr) ?? []
  return { sent: Number(sent), received: Number(received) }
}

test('ssh -C: text takes a fraction of its bytes in both directions, and nothing stays behind', async () => {
  await using server = await startServer()
  const before_bytes = contextMemory.held_bytes
  const { stdout, stderr, status } = await run(
    'ssh',
    ['-C', ...quietArgs(server.port, 'LogLevel=DEBUG1'), 'olga@127.0.0.1', 'cat'],
    text,
  )
  expect(status).toBe(0)
  expect(stdout.equals(text)).toBe(true)
  expect(stderr).toContain('compression: zlib@openssh.com')
  expect(stderr).toContain('Enabling compression at level')
  expect(counted(stderr).sent).toBeLessThan(text.length / 3)
  expect(counted(stderr).received).toBeLessThan(text.length / 3)
  await eventually(() => expect(contextMemory.held_bytes).toBe(before_bytes))
})

test('without -C nothing is compressed', async () => {
  await using server = await startServer()
  const { stdout, stderr } = await run(
    'ssh',
    [...quietArgs(server.port, 'LogLevel=DEBUG1'), 'olga@127.0.0.1', 'cat'],
    text,
  )
  expect(stdout.equals(text)).toBe(true)
  expect(stderr).toContain('compression: none')
  expect(counted(stderr).received).toBeGreaterThan(text.length)
})

test.each([
  ['the client renews its keys every megabyte', {}, ['RekeyLimit=1M']],
  ['our server does', { rekey_bytes: 1024 * 1024 }, []],
])('ssh -C with text and random data: %s', async (_, options, settings) => {
  await using server = await startServer(options)
  const { stdout, stderr, status } = await run(
    'ssh',
    ['-C', ...quietArgs(server.port, 'LogLevel=DEBUG1', ...settings), 'olga@127.0.0.1', 'cat'],
    mixed,
  )
  expect(status).toBe(0)
  expect(stdout.equals(mixed)).toBe(true)
  expect(stderr.split('SSH2_MSG_NEWKEYS received').length).toBeGreaterThan(3)
})

test('sftp -C puts and gets', async () => {
  using where = folder()
  where.write('mixed', mixed)
  await using server = await startServer({
    async onSession(session) {
      await serveSftp(session.channel, localFiles(where.path))
      await session.exit(0)
    },
  })
  const { port } = server
  const lines = `put ${where.file('mixed')} ${where.file('there')}\nget ${where.file('there')} ${where.file('back')}\n`
  const args = quietArgs(port).map((word) => (word === '-p' ? '-P' : word))
  const { status, stderr } = await run('sftp', ['-C', ...args, '-b', '-', 'olga@127.0.0.1'], lines)
  expect([status, stderr]).toEqual([0, ''])
  expect((await run('cmp', [where.file('mixed'), where.file('back')])).status).toBe(0)
})

test('a client that knows nothing but `zlib` is refused', async () => {
  await using server = await startServer()
  const socket = net.connect(server.port, '127.0.0.1')
  const algorithms = { ...allAlgorithms, compression: ['zlib'] }
  await expect(
    connect(socket, { user: 'olga', proofs: [{ method: 'none' }], checkHostKey: () => true, algorithms }),
  ).rejects.toThrow('There is no compression that both sides know.')
})

test('our client compresses to sshd, and both want new keys all the time', async () => {
  using where = folder()
  await keygen(where, 'olga', '-t', 'ed25519')
  await using sshd = await startSshd(where, where.read('olga.pub'), 'RekeyLimit 1M')
  await using connection = await connect(sshd.connect(), {
    user: sshd.user,
    proofs: [{ method: 'publickey', key: parsePrivateKey(where.read('olga')) }],
    checkHostKey: () => true,
    algorithms: { ...allAlgorithms, compression: ['zlib@openssh.com'] },
    rekey_bytes: 1_500_000,
  })
  const { stdout } = await outputOf(connection, 'cat', mixed)
  expect(stdout.equals(mixed)).toBe(true)
  expect(connection.transport.negotiated.toServer.compression?.name).toBe('zlib@openssh.com')
})

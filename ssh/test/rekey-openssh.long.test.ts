// New keys while data flows, asked for by either side, in either role, with the real OpenSSH.
import net from 'node:net'
import { randomBytes } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { eventually } from '../../tests/harness/eventually.ts'
import { connect } from '../src/client.ts'
import { startSession } from '../src/connection/session.ts'
import { parsePrivateKey } from '../src/keys/private-key.ts'
import { folder, keygen, quietArgs, run, startSshd } from './programs.ts'
import { all, outputOf } from './reading.ts'
import { startServer } from './server.ts'

vi.setConfig({ testTimeout: 120_000 })
const bytes = randomBytes(12 * 1024 * 1024)
const ciphers = ['aes128-gcm@openssh.com', 'chacha20-poly1305@openssh.com', 'aes256-ctr']

test.each(ciphers)('the OpenSSH client renews its keys every megabyte, over %s', async (cipher) => {
  await using server = await startServer()
  const settings = ['RekeyLimit=1M', `Ciphers=${cipher}`, 'LogLevel=DEBUG1']
  const { stdout, stderr, status } = await run(
    'ssh',
    [...quietArgs(server.port, ...settings), 'olga@127.0.0.1', 'cat'],
    bytes,
  )
  expect(status).toBe(0)
  expect(stdout.equals(bytes)).toBe(true)
  expect(stderr.split('SSH2_MSG_NEWKEYS received').length).toBeGreaterThan(5)
})

test.each(ciphers)('our server renews its keys every megabyte, over %s', async (cipher) => {
  await using server = await startServer({ rekey_bytes: 1024 * 1024 })
  const settings = [`Ciphers=${cipher}`, 'LogLevel=DEBUG1']
  const { stdout, stderr, status } = await run(
    'ssh',
    [...quietArgs(server.port, ...settings), 'olga@127.0.0.1', 'cat'],
    bytes,
  )
  expect(status).toBe(0)
  expect(stdout.equals(bytes)).toBe(true)
  expect(stderr.split('SSH2_MSG_NEWKEYS received').length).toBeGreaterThan(5)
})

test('a client that asks for another cipher first is moved to a quick one when it moves much, and not before', async () => {
  await using server = await startServer()
  const settings = [
    'Ciphers=chacha20-poly1305@openssh.com,aes256-ctr,aes256-gcm@openssh.com',
    'LogLevel=DEBUG1',
  ]
  const little = await run(
    'ssh',
    [...quietArgs(server.port, ...settings), 'olga@127.0.0.1', 'cat'],
    bytes.subarray(0, 1000),
  )
  expect(little.stderr).not.toContain('cipher: aes256-gcm@openssh.com')
  const much = await run('ssh', [...quietArgs(server.port, ...settings), 'olga@127.0.0.1', 'cat'], bytes)
  expect(much.stdout.equals(bytes)).toBe(true)
  const used = [...much.stderr.matchAll(/server->client cipher: (\S+)/g)].map(([, name]) => name)
  expect(used).toEqual(['chacha20-poly1305@openssh.com', 'aes256-gcm@openssh.com'])
})

test('our client and sshd both renew their keys all the time', async () => {
  using where = folder()
  await keygen(where, 'olga', '-t', 'ed25519')
  await using sshd = await startSshd(where, where.read('olga.pub'), 'RekeyLimit 1M')
  await using connection = await connect(sshd.connect(), {
    user: sshd.user,
    proofs: [{ method: 'publickey', key: parsePrivateKey(where.read('olga')) }],
    checkHostKey: () => true,
    rekey_bytes: 1_500_000,
  })
  const { stdout } = await outputOf(connection, 'cat', bytes)
  expect(stdout.equals(bytes)).toBe(true)
})

test('keys are renewed after a time, too, and on demand, and the session goes on', async () => {
  await using server = await startServer({ rekey_ms: 50 })
  const options = { user: 'olga', proofs: [{ method: 'none' }], checkHostKey: () => true } as const
  await using connection = await connect(net.connect(server.port, '127.0.0.1'), options)
  const session = await startSession(connection, { program: { type: 'exec', command: 'cat' } })
  const before = connection.transport.received
  for (let turn = 0; turn < 20; turn += 1) {
    await session.channel.write(Buffer.from(`turn ${turn}`))
    if (turn % 5 === 0) connection.rekey()
    expect((await session.channel.read())?.bytes.toString()).toBe(`turn ${turn}`)
  }
  // Each exchange is three packets from the server.
  await eventually(() => expect(connection.transport.received).toBeGreaterThan(before + 20 + 3 * 6))
  await session.channel.end()
  expect((await all(session.channel)).stdout.length).toBe(0)
  expect(await session.exit).toEqual({ type: 'exit-status', status: 0 })
})

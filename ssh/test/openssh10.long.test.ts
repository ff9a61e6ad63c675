// The key exchange that withstands quantum computers (ML-KEM with X25519), with programs of others that know
// it: OpenSSH 10 and Dropbear of the same year in both roles, PuTTY as a client. They come from a newer
// Debian than this machine may have, see tests/harness/openssh10.ts. With our default lists all of them
// choose it by themselves.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { userInfo } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { newerPrograms } from '../../tests/harness/openssh10.ts'
import { connect, type ConnectOptions } from '../src/client.ts'
import type { Connection } from '../src/connection/connection.ts'
import { generatePrivateKey, privateKeyFile } from '../src/keys/private-key.ts'
import { fingerprintSha256, publicKeyLine } from '../src/keys/public-key.ts'
import { agreed, oneUser, startDaemon, type Daemon } from './peers.ts'
import { folder, freePort, quietArgs, run } from './programs.ts'
import { outputOf } from './reading.ts'
import { hostKey, startServer } from './server.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 600_000 })

const method = 'mlkem768x25519-sha256'
const bytes = randomBytes(8 * 1024 * 1024)
const where = folder()
const key = generatePrivateKey('ed25519', 'olga')
const otherHostKey = generatePrivateKey('ed25519', 'host')
let bin: string
const program = (name: string): string => path.join(bin, name)

beforeAll(async () => {
  bin = await newerPrograms()
  where.write('host', privateKeyFile(otherHostKey))
  mkdirSync(where.file('.ssh'), { mode: 0o700 })
  where.write('.ssh/authorized_keys', `${publicKeyLine(key.type, key.blob)}\n`)
  where.write('.ssh/known_hosts', `127.0.0.1 ${publicKeyLine(hostKey.type, hostKey.blob)}\n`)
})
afterAll(() => where[Symbol.dispose]())

describe('with our server', () => {
  test('ssh of OpenSSH 10 chooses it, and has nothing to warn of', async () => {
    await using server = await startServer()
    where.write('known_hosts', `[127.0.0.1]:${server.port} ${publicKeyLine(hostKey.type, hostKey.blob)}\n`)
    const settings = [
      `UserKnownHostsFile=${where.file('known_hosts')}`,
      'StrictHostKeyChecking=yes',
      'LogLevel=INFO',
      // It has this setting since 10.1.
      'IgnoreUnknown=WarnWeakCrypto',
      'WarnWeakCrypto=yes',
    ]
    const { stdout, stderr, status } = await run(
      program('ssh'),
      [...quietArgs(server.port, ...settings), 'olga@127.0.0.1', 'cat; exit 3'],
      bytes,
    )
    expect([stdout.equals(bytes), stderr, status]).toEqual([true, '', 3])
    expect(agreed(server.connections[0]!)).toContain(method)
    expect(server.connections[0]!.transport.peerIdent).toContain('OpenSSH_10')
  })

  test.each([
    ['ssh wants new keys', ['RekeyLimit=1M'], {}],
    ['our server does', [], { rekey_bytes: 1024 * 1024 }],
  ])('it is used again and again when %s', async (_, settings, options) => {
    await using server = await startServer(options)
    const words = quietArgs(server.port, `KexAlgorithms=${method}`, 'LogLevel=DEBUG1', ...settings)
    const { stdout, stderr, status } = await run(program('ssh'), [...words, 'olga@127.0.0.1', 'cat'], bytes)
    expect([stdout.equals(bytes), status]).toEqual([true, 0])
    expect(stderr.split(`kex: algorithm: ${method}`).length).toBeGreaterThan(5)
  })

  test('dbclient of Dropbear chooses it', async () => {
    await using server = await startServer()
    const args = ['-p', String(server.port), 'olga@127.0.0.1', 'cat; exit 3']
    const { stdout, stderr, status } = await run(program('dbclient'), args, bytes, { HOME: where.path })
    expect([stdout.equals(bytes), stderr, status]).toEqual([true, '', 3])
    expect(agreed(server.connections[0]!)).toContain(method)
  })

  test('plink of PuTTY chooses it', async () => {
    await using server = await startServer()
    const args = [
      '-batch',
      '-noagent',
      '-P',
      String(server.port),
      '-hostkey',
      fingerprintSha256(hostKey.blob),
      'olga@127.0.0.1',
      'cat; exit 3',
    ]
    const { stdout, stderr, status } = await run(program('plink'), args, bytes, { HOME: where.path })
    expect([stdout.equals(bytes), stderr, status]).toEqual([true, '', 3])
    expect(agreed(server.connections[0]!)).toContain(method)
  })
})

describe('with our client', () => {
  const login = async (
    daemon: Pick<Daemon, 'connect'>,
    options: Partial<ConnectOptions> = {},
  ): Promise<Connection> =>
    connect(daemon.connect(), {
      user: userInfo().username,
      proofs: [{ method: 'publickey', key }],
      checkHostKey: (blob) => blob.equals(otherHostKey.blob),
      ...options,
    })
  const startSshd = async (...settings: string[]): Promise<Daemon> => {
    const port = await freePort()
    if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
    const config = [
      `ListenAddress 127.0.0.1:${port}`,
      `HostKey ${where.file('host')}`,
      `AuthorizedKeysFile ${where.file('.ssh/authorized_keys')}`,
      // Its parts are programs of their own.
      `SshdSessionPath ${program('sshd-session')}`,
      `SshdAuthPath ${program('sshd-auth')}`,
      'StrictModes no',
      'UsePAM no',
      'PidFile none',
      'PermitRootLogin yes',
      ...settings,
    ]
    return startDaemon(
      program('sshd'),
      ['-D', '-e', '-f', where.write('sshd_config', `${config.join('\n')}\n`)],
      port,
    )
  }

  test.each([
    ['', [], {}],
    [', again and again when sshd wants new keys', ['RekeyLimit 1M'], {}],
    [', again and again when our client does', [], { rekey_bytes: 1024 * 1024 }],
  ])('it is used with sshd of OpenSSH 10%s', async (when, settings, options) => {
    await using daemon = await startSshd(...settings)
    await using connection = await login(daemon, options)
    expect(agreed(connection)).toContain(method)
    expect(connection.transport.peerIdent).toContain('OpenSSH_10')
    const first = connection.transport.negotiated
    const { stdout, exit } = await outputOf(connection, 'cat; exit 3', bytes)
    expect([stdout.equals(bytes), exit]).toEqual([true, { type: 'exit-status', status: 3 }])
    expect(connection.transport.negotiated === first).toBe(when === '')
    expect(agreed(connection)).toContain(method)
  })

  test('it is used with Dropbear', async () => {
    await run(program('dropbearkey'), ['-t', 'ed25519', '-f', where.file('dropbear')])
    // A process for the connection, as inetd would start it: by itself it would look for its own program, and
    // find the loader.
    const args = ['-i', '-E', '-m', '-r', where.file('dropbear')]
    const env = { ...process.env, ...oneUser(where) }
    const ended = Promise.withResolvers<void>()
    const listener = net.createServer({ pauseOnConnect: true }, (socket) => {
      const child = spawn(program('dropbear'), args, { stdio: [socket, socket, 'ignore'], env })
      child.on('close', () => ended.resolve())
      socket.destroy()
    })
    await new Promise<void>((resolve) => void listener.listen(0, '127.0.0.1', resolve))
    const { port } = listener.address() as AddressInfo
    {
      await using connection = await login(
        { connect: () => net.connect(port, '127.0.0.1') },
        { user: 'olga', checkHostKey: () => true },
      )
      expect(agreed(connection)).toContain(method)
      const { stdout, exit } = await outputOf(connection, 'cat; exit 3', bytes)
      expect([stdout.equals(bytes), exit]).toEqual([true, { type: 'exit-status', status: 3 }])
    }
    await ended.promise
    listener.close()
  })
})

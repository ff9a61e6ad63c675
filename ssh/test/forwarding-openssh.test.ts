// Forwarding through our server with the real OpenSSH client, and by our client through the real sshd: to the
// server's side, from it, by a SOCKS proxy, by socket files, and of the agent.
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { eventually } from '../../tests/harness/eventually.ts'
import { connect } from '../src/client.ts'
import {
  joinSocket,
  readPort,
  readTcpForward,
  writeDirectPath,
  writeListen,
  writePath,
  writeTcpForward,
} from '../src/connection/forwarding.ts'
import { parsePrivateKey } from '../src/keys/private-key.ts'
import { folder, freePort, keygen, quietArgs, run, startSshd, type Folder } from './programs.ts'
import { all, outputOf } from './reading.ts'
import { startServer } from './server.ts'

vi.setConfig({ testTimeout: 60_000 })

let where: Folder
let echo: net.Server
let echoPort: number
const children: ChildProcess[] = []
beforeEach(async () => {
  where = folder()
  echo = net.createServer(
    { allowHalfOpen: true },
    (socket) => void socket.on('error', () => undefined).pipe(socket),
  )
  await new Promise<void>((resolve) => void echo.listen(0, '127.0.0.1', resolve))
  echoPort = (echo.address() as AddressInfo).port
})
afterEach(() => {
  for (const child of children.splice(0)) child.kill()
  echo.close()
  where[Symbol.dispose]()
})

const bytes = randomBytes(3 * 1024 * 1024)

/** Sends all and ends; returns what comes back. */
async function roundTrip(to: net.NetConnectOpts, sent = bytes): Promise<Buffer> {
  const socket = net.connect({ ...to, allowHalfOpen: true })
  const parts: Buffer[] = []
  socket.end(sent)
  for await (const chunk of socket as AsyncIterable<Buffer>) parts.push(chunk)
  return Buffer.concat(parts)
}

/** A client that only forwards, until the test ends. */
async function forwarder(port: number, ...args: string[]): Promise<void> {
  const child = spawn(
    'ssh',
    [...quietArgs(port, 'ExitOnForwardFailure=yes'), '-N', ...args, 'olga@127.0.0.1'],
    { stdio: 'ignore' },
  )
  children.push(child)
}
const whenListening = async (to: net.NetConnectOpts): Promise<void> =>
  eventually(
    async () =>
      new Promise<void>((resolve, reject) => {
        const socket = net.connect(to, () => resolve(void socket.destroy()))
        socket.on('error', reject)
      }),
  )

test('-L: a port here leads to a port there', async () => {
  await using server = await startServer()
  const port = await freePort()
  await forwarder(server.port, '-L', `127.0.0.1:${port}:127.0.0.1:${echoPort}`)
  await whenListening({ port, host: '127.0.0.1' })
  const back = await Promise.all([
    roundTrip({ port, host: '127.0.0.1' }),
    roundTrip({ port, host: '127.0.0.1' }),
  ])
  expect(back.every((one) => one.equals(bytes))).toBe(true)
})

test('-L to a port that nobody listens on is refused, and the connection goes on', async () => {
  await using server = await startServer()
  const [port, nobody] = [await freePort(), await freePort()]
  await forwarder(server.port, '-L', `127.0.0.1:${port}:127.0.0.1:${nobody}`)
  await whenListening({ port, host: '127.0.0.1' })
  expect(
    (await roundTrip({ port, host: '127.0.0.1' }, Buffer.from('x')).catch(() => Buffer.alloc(0))).length,
  ).toBe(0)
  expect(server.endings).toEqual([])
})

test('-R: a port there leads to a port here', async () => {
  await using server = await startServer()
  const port = await freePort()
  await forwarder(server.port, '-R', `127.0.0.1:${port}:127.0.0.1:${echoPort}`)
  await whenListening({ port, host: '127.0.0.1' })
  expect((await roundTrip({ port, host: '127.0.0.1' })).equals(bytes)).toBe(true)
})

test('-D: a SOCKS proxy', async () => {
  await using server = await startServer()
  const port = await freePort()
  await forwarder(server.port, '-D', `127.0.0.1:${port}`)
  await whenListening({ port, host: '127.0.0.1' })
  const socket = net.connect(port, '127.0.0.1')
  // SOCKS 5 (RFC 1928): no authentication, connect to an IPv4 address.
  socket.write(Buffer.of(5, 1, 0))
  await new Promise((resolve) => void socket.once('data', resolve))
  socket.write(Buffer.of(5, 1, 0, 1, 127, 0, 0, 1, echoPort >> 8, echoPort & 0xff))
  await new Promise((resolve) => void socket.once('data', resolve))
  socket.write('through the proxy')
  const answer = await new Promise<Buffer>((resolve) => void socket.once('data', resolve))
  socket.destroy()
  expect(answer.toString()).toBe('through the proxy')
})

test('-L and -R between socket files', async () => {
  await using server = await startServer()
  const file = net.createServer(
    { allowHalfOpen: true },
    (socket) => void socket.on('error', () => undefined).pipe(socket),
  )
  await new Promise<void>((resolve) => void file.listen(where.file('echo'), resolve))
  await forwarder(
    server.port,
    '-L',
    `${where.file('left')}:${where.file('echo')}`,
    '-R',
    `${where.file('right')}:${where.file('echo')}`,
  )
  for (const name of ['left', 'right']) {
    await whenListening({ path: where.file(name) })
    expect((await roundTrip({ path: where.file(name) })).equals(bytes)).toBe(true)
  }
  file.close()
})

test('-A: programs there use the agent here', async () => {
  await using server = await startServer()
  const socket = where.file('agent')
  children.push(spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' }))
  await keygen(where, 'olga', '-t', 'ed25519')
  await eventually(() => expect(existsSync(socket)).toBe(true))
  await run('ssh-add', ['-q', where.file('olga')], '', { SSH_AUTH_SOCK: socket })
  const { stdout } = await run('ssh', [...quietArgs(server.port), '-A', 'olga@127.0.0.1', 'ssh-add -L'], '', {
    SSH_AUTH_SOCK: socket,
  })
  expect(stdout.toString()).toBe(where.read('olga.pub'))
})

test('our client through sshd: to a port, to a file, and back from both', async () => {
  await keygen(where, 'olga', '-t', 'ed25519')
  await using sshd = await startSshd(where, where.read('olga.pub'))
  await using connection = await connect(sshd.connect(), {
    user: sshd.user,
    proofs: [{ method: 'publickey', key: parsePrivateKey(where.read('olga')) }],
    checkHostKey: () => true,
    channelTypes: ['forwarded-tcpip', 'forwarded-streamlocal@openssh.com'],
  })
  const seen: string[] = []
  const serve = async (): Promise<void> => {
    for await (const opening of connection.channels) {
      if (opening.type === 'forwarded-tcpip') seen.push(readTcpForward(opening.payload).host)
      void joinSocket(
        opening.accept(),
        net.connect({ port: echoPort, host: '127.0.0.1', allowHalfOpen: true }),
      )
    }
  }
  const serving = serve()

  const direct = await connection.open(
    'direct-tcpip',
    writeTcpForward({ host: '127.0.0.1', port: echoPort, origin: '127.0.0.1', originPort: 1 }),
  )
  const [{ stdout }] = await Promise.all([all(direct), direct.write(bytes).then(async () => direct.end())])
  expect(stdout.equals(bytes)).toBe(true)

  const port = readPort((await connection.request('tcpip-forward', writeListen('127.0.0.1', 0)))!)
  expect((await roundTrip({ port, host: '127.0.0.1' })).equals(bytes)).toBe(true)
  expect(seen).toEqual(['127.0.0.1'])
  expect(await connection.request('cancel-tcpip-forward', writeListen('127.0.0.1', port))).toBeDefined()

  expect(
    await connection.request('streamlocal-forward@openssh.com', writePath(where.file('back'))),
  ).toBeDefined()
  const through = await connection.open('direct-streamlocal@openssh.com', writeDirectPath(where.file('back')))
  const [looped] = await Promise.all([all(through), through.write(bytes).then(async () => through.end())])
  expect(looped.stdout.equals(bytes)).toBe(true)
  expect((await outputOf(connection, 'echo still here')).stdout.toString()).toBe('still here\n')

  await connection.end()
  await serving
})

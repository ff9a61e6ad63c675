// Forwarding with the real client: to ports and socket files of the device, from them, by a SOCKS proxy,
// through the device to another one, and of the client's keys. As a user of the system, with that user's
// rights and no others.
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, statSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import path from 'node:path'
import {
  startSession,
  writeDirectPath,
  writeListen,
  writePath,
  writeTcpForward,
  type ChannelRefused,
} from '@hawser/ssh'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { freePort, keygen, run } from '../../ssh/test/programs.ts'
import { all } from '../../ssh/test/reading.ts'
import { eventually } from '../../tests/harness/eventually.ts'
import { ownAccount } from '../src/users.ts'
import { startDevice } from './device.ts'
import { asUsersOfTheSystem, inBothModes, type Place } from './modes.ts'
import { onTerminal, quoted } from './running.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const bytes = randomBytes(3 * 1024 * 1024)
const children: ChildProcess[] = []
let echo: net.Server
let port: number

const answering = (): net.Server =>
  net.createServer({ allowHalfOpen: true }, (socket) => void socket.on('error', () => undefined).pipe(socket))
const listening = async (server: net.Server, where: net.ListenOptions): Promise<void> => {
  await new Promise<void>((resolve, reject) => void server.once('error', reject).listen(where, resolve))
}

beforeEach(async () => {
  echo = answering()
  await listening(echo, { port: 0, host: '127.0.0.1' })
  port = (echo.address() as AddressInfo).port
})
afterEach(async () => {
  for (const child of children.splice(0)) {
    const gone = new Promise((resolve) => void child.once('close', resolve))
    if (child.kill()) await gone
  }
  echo.close()
})

async function roundTrip(to: net.NetConnectOpts, sent = bytes): Promise<Buffer> {
  const socket = net.connect({ ...to, allowHalfOpen: true })
  const parts: Buffer[] = []
  socket.end(sent)
  for await (const chunk of socket as AsyncIterable<Buffer>) parts.push(chunk)
  return Buffer.concat(parts)
}

/** A client that only forwards, until the test ends. */
function forwarder(place: Place, ...options: string[]): ChildProcess {
  const child = spawn(
    'ssh',
    [...place.args('ExitOnForwardFailure=yes'), '-N', ...options, `${place.who.name}@127.0.0.1`],
    {
      stdio: 'ignore',
    },
  )
  children.push(child)
  return child
}

async function isListening(to: net.NetConnectOpts): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(to, () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

const whenListening = async (to: net.NetConnectOpts): Promise<void> =>
  eventually(async () => expect(await isListening(to)).toBe(true))

inBothModes((place, root) => {
  test('-L: a port here leads to a port there, several times at once', async () => {
    const here = await freePort()
    forwarder(place, '-L', `127.0.0.1:${here}:127.0.0.1:${port}`)
    await whenListening({ port: here, host: '127.0.0.1' })
    const back = await Promise.all([1, 2, 3].map(async () => roundTrip({ port: here, host: '127.0.0.1' })))
    expect(back.every((one) => one.equals(bytes))).toBe(true)
  })

  test('-L to where nobody listens or nothing is: refused with a reason, and the connection goes on', async () => {
    await using connection = await place.connect()
    const nobody = await freePort()
    const to = (host: string, to: number): Buffer =>
      writeTcpForward({ host, port: to, origin: '127.0.0.1', originPort: 1 })
    const refusal = async (payload: Buffer): Promise<ChannelRefused> =>
      connection.open('direct-tcpip', payload).then(
        () => Promise.reject(new Error('It was opened.')),
        (error: ChannelRefused) => error,
      )
    expect(await refusal(to('127.0.0.1', nobody))).toMatchObject({ reason: 2, message: 'Connection refused' })
    expect(await refusal(to('no-such-host.invalid', 80))).toMatchObject({
      reason: 2,
      message: 'Name or service not known',
    })
    expect(await refusal(to('127.0.0.1', 70_000))).toMatchObject({ reason: 2, message: 'Bad port' })
    expect(await refusal(Buffer.from('nonsense'))).toMatchObject({ reason: 2 })
    const channel = await connection.open('direct-tcpip', to('127.0.0.1', port))
    const [{ stdout }] = await Promise.all([
      all(channel),
      channel.write(bytes).then(async () => channel.end()),
    ])
    expect(stdout.equals(bytes)).toBe(true)
  })

  test('-R: a port there leads to a port here, on the loopback only, and is gone with the client', async () => {
    const there = await freePort()
    const child = forwarder(place, '-R', `*:${there}:127.0.0.1:${port}`)
    await whenListening({ port: there, host: '127.0.0.1' })
    expect((await roundTrip({ port: there, host: '127.0.0.1' })).equals(bytes)).toBe(true)
    const listeners = (await run('cat', ['/proc/net/tcp', '/proc/net/tcp6'])).stdout.toString().split('\n')
    const hex = there.toString(16).toUpperCase().padStart(4, '0')
    const bound = listeners.flatMap(
      (line) => new RegExp(`([0-9A-F]+):${hex} 0+:0000 0A`).exec(line)?.[1] ?? [],
    )
    expect(
      bound.filter((address) => !['0100007F', '00000000000000000000000001000000'].includes(address)),
    ).toEqual([])
    child.kill()
    await eventually(async () => expect(await isListening({ port: there, host: '127.0.0.1' })).toBe(false))
  })

  test('-R with a port of the device’s choice, and its end', async () => {
    await using connection = await place.connect({ channelTypes: ['forwarded-tcpip'] })
    const chosen = await connection.request('tcpip-forward', writeListen('localhost', 0))
    const there = chosen!.readUInt32BE(0)
    expect(there).toBeGreaterThanOrEqual(1_024)
    expect(await isListening({ port: there, host: '127.0.0.1' })).toBe(true)
    // The port is taken.
    expect(await connection.request('tcpip-forward', writeListen('localhost', there))).toBeUndefined()
    expect(await connection.request('cancel-tcpip-forward', writeListen('localhost', there))).toBeDefined()
    expect(await isListening({ port: there, host: '127.0.0.1' })).toBe(false)
    expect(await connection.request('cancel-tcpip-forward', writeListen('localhost', there))).toBeUndefined()
  })

  test('no more than so many ports are listened on', async () => {
    await using connection = await place.connect()
    const answers = await Promise.all(
      Array.from({ length: 40 }, async () => connection.request('tcpip-forward', writeListen('', 0))),
    )
    expect(answers.filter((answer) => answer !== undefined).length).toBe(32)
  })

  test('-D: a SOCKS proxy', async () => {
    const here = await freePort()
    forwarder(place, '-D', `127.0.0.1:${here}`)
    await whenListening({ port: here, host: '127.0.0.1' })
    const socket = net.connect(here, '127.0.0.1')
    const next = async (): Promise<Buffer> => new Promise((resolve) => void socket.once('data', resolve))
    // SOCKS 5 (RFC 1928): no authentication, connect to an IPv4 address.
    socket.write(Buffer.of(5, 1, 0))
    await next()
    socket.write(Buffer.of(5, 1, 0, 1, 127, 0, 0, 1, port >> 8, port & 0xff))
    await next()
    socket.write('through the proxy')
    expect((await next()).toString()).toBe('through the proxy')
    socket.destroy()
  })

  test('-J: through this device to another', async () => {
    await using other = await startDevice()
    const settings = (file: string): string[] => [
      'StrictHostKeyChecking no',
      'UserKnownHostsFile /dev/null',
      'LogLevel ERROR',
      `IdentityFile ${file}`,
    ]
    const near = [
      'Host near',
      'HostName 127.0.0.1',
      `Port ${place.port}`,
      `User ${place.who.name}`,
      ...settings(place.where.file('vouched')),
    ]
    const far = [
      'Host far',
      'HostName 127.0.0.1',
      `Port ${other.port}`,
      `User ${ownAccount().name}`,
      ...settings(other.where.file('vouched')),
    ]
    const config = place.where.write('config', [...near, ...far].join('\n'))
    const { status, stdout } = await run('ssh', ['-F', config, '-J', 'near', 'far', 'echo far away; exit 6'])
    expect([status, stdout.toString()]).toEqual([6, 'far away\n'])
  })

  test('-L and -R between socket files, which belong to the user and are taken away', async () => {
    const inside = path.join(place.who.home, 'sockets')
    mkdirSync(inside, { recursive: true, mode: 0o700 })
    if (root) chownSync(inside, place.who.uid, place.who.gid)
    const file = answering()
    const target = path.join(inside, 'echo')
    await listening(file, { path: target })
    if (root) chownSync(target, place.who.uid, place.who.gid)
    const [here, back, there] = [
      place.where.file('left'),
      place.where.file('echo'),
      path.join(inside, 'right'),
    ]
    const backing = answering()
    await listening(backing, { path: back })
    const child = forwarder(place, '-L', `${here}:${target}`, '-R', `${there}:${back}`)
    for (const socketPath of [here, there]) {
      await whenListening({ path: socketPath })
      expect((await roundTrip({ path: socketPath })).equals(bytes)).toBe(true)
    }
    expect(statSync(there).uid).toBe(place.who.uid)
    child.kill()
    await eventually(() => expect(existsSync(there)).toBe(false))
    file.close()
    backing.close()
  })

  test('a server that speaks first on a socket file is heard', async () => {
    const inside = path.join(place.who.home, 'greeting')
    const greeting = net.createServer((socket) => void socket.end('welcome'))
    await listening(greeting, { path: inside })
    if (root) chownSync(inside, place.who.uid, place.who.gid)
    await using connection = await place.connect()
    const channel = await connection.open('direct-streamlocal@openssh.com', writeDirectPath(inside))
    expect((await all(channel)).stdout.toString()).toBe('welcome')
    greeting.close()
  })

  test('socket files that are not there, or are there already, are refused', async () => {
    await using connection = await place.connect()
    const open = connection.open(
      'direct-streamlocal@openssh.com',
      writeDirectPath(path.join(place.who.home, 'nothing')),
    )
    await expect(open).rejects.toMatchObject({ reason: 2, message: 'No such file or directory' })
    const taken = path.join(place.who.home, 'taken')
    expect(await connection.request('streamlocal-forward@openssh.com', writePath(taken))).toBeDefined()
    expect(await connection.request('streamlocal-forward@openssh.com', writePath(taken))).toBeUndefined()
    expect(await connection.request('cancel-streamlocal-forward@openssh.com', writePath(taken))).toBeDefined()
    expect(existsSync(taken)).toBe(false)
    expect(
      await connection.request('cancel-streamlocal-forward@openssh.com', writePath(taken)),
    ).toBeUndefined()
  })

  test('-A: commands and shells use the keys of the client, and nobody else can', async () => {
    const socket = place.where.file('agent')
    children.push(spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' }))
    await keygen(place.where, 'olga', '-t', 'ed25519')
    await eventually(() => expect(existsSync(socket)).toBe(true))
    const env = { SSH_AUTH_SOCK: socket }
    await run('ssh-add', ['-q', place.where.file('olga')], '', env)
    const command =
      'echo $SSH_AUTH_SOCK; stat -c "%u %a" $SSH_AUTH_SOCK $(dirname $SSH_AUTH_SOCK); ssh-add -L'
    const { stdout } = await place.ssh(command, { options: ['-A'], env })
    const [file, ofSocket, ofFolder, key] = stdout.toString().split('\n')
    expect(`${key}\n`).toBe(place.where.read('olga.pub'))
    expect([ofSocket!.split(' ')[0], ofFolder]).toEqual([String(place.who.uid), `${place.who.uid} 700`])
    await eventually(() =>
      expect([
        existsSync(file!),
        existsSync(path.dirname(file!)),
        existsSync(path.dirname(path.dirname(file!))),
      ]).toEqual([false, false, false]),
    )

    const person = await onTerminal(
      `SSH_AUTH_SOCK=${socket} exec ssh ${quoted([...place.args(), '-A', '-tt', `${place.who.name}@127.0.0.1`])}`,
    )
    await person.type('ssh-add -L; exit\n')
    await person.program.ended
    expect(person.shown()).toContain(place.where.read('olga.pub').trim())
    expect((await place.ssh('echo "<$SSH_AUTH_SOCK>"', { env })).stdout.toString()).toBe('<>\n')
  })

  test('a client that refuses its keys after all is no failure of the program', async () => {
    await using connection = await place.connect()
    const session = await startSession(connection, {
      program: { type: 'exec', command: 'ssh-add -L; echo status $?' },
      agent: true,
    })
    expect((await all(session.channel)).stdout.toString()).toMatch(/^status [1-9]\d*\n$/m)
  })
})

asUsersOfTheSystem((place) => {
  test('-R on a port below 1024 is for root alone', async () => {
    await using connection = await place.connect()
    expect(await connection.request('tcpip-forward', writeListen('', 987))).toBeUndefined()
    await using rootsDevice = await startDevice()
    await using roots = await rootsDevice.connect()
    expect(await roots.request('tcpip-forward', writeListen('', 987))).toBeDefined()
  })

  test('root’s sockets and folders are not for users', async () => {
    const inside = place.where.file('roots')
    const file = answering()
    await listening(file, { path: inside })
    chmodSync(place.where.path, 0o711)
    chmodSync(inside, 0o600)
    await using connection = await place.connect()
    const open = async () => connection.open('direct-streamlocal@openssh.com', writeDirectPath(inside))
    await expect(open()).rejects.toMatchObject({ reason: 2, message: 'Permission denied' })
    expect(
      await connection.request('streamlocal-forward@openssh.com', writePath('/etc/hawser-test')),
    ).toBeUndefined()
    // The user has the rights of their groups.
    chownSync(inside, 0, place.who.groups[1]!)
    chmodSync(inside, 0o660)
    await (await open()).close('now')
    file.close()
  })
})

// Streams between two nodes, over TCP and over Unix sockets: bytes pass at the reader's pace, and a refusal
// is told with its reason. Over TCP whoever does not have the secret gets no further than the handshake; a
// Unix socket opens for nobody but the user of the nodes.
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { PassThrough, type Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import tls from 'node:tls'
import { afterAll, describe, expect, test } from 'vitest'
import { eventually } from '../../../tests/harness/eventually.ts'
import { startPeers, type PeerAddress, type PeerRequest, type Peers } from './peers.ts'
import { Unreachable } from '../tunnel/tunnel.ts'

const secret = randomBytes(32)
const signal = new AbortController().signal

const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-peers-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let sockets = 0
const onTcp = (): PeerAddress => ({ host: '127.0.0.1', port: 0 })
const onUnix = (): PeerAddress => ({ path: path.join(folder, `${sockets++}.sock`) })

async function node(
  serve: (request: PeerRequest) => Promise<Duplex>,
  listen: PeerAddress = onTcp(),
  masterKey = secret,
): Promise<Peers & { problems: Error[] }> {
  const problems: Error[] = []
  const peers = await startPeers({
    listen,
    masterKey,
    serve,
    onError: (error) => void problems.push(error),
  })
  return Object.assign(peers, { problems })
}

const nothing = (): Promise<Duplex> => Promise.reject(new Error('There is nothing here.'))
const at = ({ address }: Peers): PeerAddress => address
const portOf = ({ address }: Peers): number => ('port' in address ? address.port : 0)

describe.each([
  ['TCP', onTcp],
  ['a Unix socket', onUnix],
])('over %s', (_, where) => {
  test('bytes come back as they went, in several streams at once', async () => {
    const asked: PeerRequest[] = []
    await using far = await node(async (request) => {
      asked.push(request)
      return new PassThrough()
    }, where())
    await using near = await node(nothing)
    await Promise.all(
      [1, 2, 3].map(async (n) => {
        const stream = await near.open(at(far), { kind: 'echo', n }, signal)
        const sent = randomBytes(2_000_000)
        const got = buffer(stream)
        stream.end(sent)
        expect((await got).equals(sent)).toBe(true)
      }),
    )
    expect(new Set(asked.map(({ n }) => n))).toEqual(new Set([1, 2, 3]))
  })

  test('a reader that stops makes the other node wait', async () => {
    let given = 0
    const source = new PassThrough()
    await using far = await node(async () => source, where())
    await using near = await node(nothing)
    const stream = await near.open(at(far), { kind: 'flood' }, signal)
    const piece = Buffer.alloc(64 * 1024)
    const pump = (): void => {
      for (let room = true; room && given < 1000; given += 1) room = source.write(piece)
    }
    source.on('drain', pump)
    pump()
    let before = -1
    await eventually(() => {
      const same = before === given
      before = given
      expect(same && given > 0).toBe(true)
    })
    expect(given).toBeLessThan(1000)
    stream.resume()
    await eventually(() => expect(given).toBe(1000))
  })

  test('what the other node cannot give is refused with its reason', async () => {
    await using far = await node(nothing, where())
    await using near = await node(nothing)
    await expect(near.open(at(far), { kind: 'ssh' }, signal)).rejects.toThrow('There is nothing here.')
  })

  test('a node that has stopped opens nothing, also what it was about to open', async () => {
    await using far = await node(async () => new PassThrough(), where())
    const near = await node(nothing)
    const opening = near.open(at(far), { kind: 'echo' }, signal).catch((error: unknown) => error)
    await near[Symbol.asyncDispose]()
    expect(await opening).toBeInstanceOf(Unreachable)
    await expect(near.open(at(far), { kind: 'echo' }, signal)).rejects.toThrow('This node is stopping.')
    // Nobody is connected to it: its own end waits for all connections.
    await far[Symbol.asyncDispose]()
  })

  test('a node that is not there is unreachable, and is dialled again when it is', async () => {
    await using near = await node(nothing)
    const far = await node(async () => new PassThrough(), where())
    const address = at(far)
    await far[Symbol.asyncDispose]()
    await expect(near.open(address, { kind: 'echo' }, signal)).rejects.toBeInstanceOf(Unreachable)
    await using again = await startPeers({
      listen: address,
      masterKey: secret,
      serve: async () => new PassThrough(),
      onError: () => undefined,
    })
    expect(again.address).toEqual(address)
    const stream = await near.open(address, { kind: 'echo' }, signal)
    stream.destroy()
  })
})

test('whoever has another secret, or none, gets nothing', async () => {
  await using far = await node(async () => new PassThrough())
  await using stranger = await node(nothing, onTcp(), randomBytes(32))
  await expect(stranger.open(at(far), { kind: 'echo' }, signal)).rejects.toBeInstanceOf(Unreachable)
  const plain = net.connect(portOf(far), '127.0.0.1')
  plain.write('GET / HTTP/1.1\r\n\r\n')
  plain.resume()
  await once(plain, 'close')
  const modern = tls.connect({ host: '127.0.0.1', port: portOf(far), rejectUnauthorized: false })
  await once(modern, 'error')
  expect(far.problems.length).toBe(3)
})

test('somebody who connects and says nothing does not keep a node from stopping', async () => {
  const far = await node(nothing)
  const silent = net.connect(portOf(far), '127.0.0.1').on('error', () => undefined)
  await once(silent, 'connect')
  await far[Symbol.asyncDispose]()
  silent.destroy()
})

test('a Unix socket belongs to its user alone, and is removed when the node stops', async () => {
  const where = onUnix()
  const { path: file } = where as { path: string }
  {
    await using _ = await node(nothing, where)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  }
  expect(existsSync(file)).toBe(false)
})

test('a node takes the place of a killed one at its Unix socket, and not of one that is alive', async () => {
  const where = onUnix()
  const { path: file } = where as { path: string }
  const killed = spawnSync(process.execPath, [
    '-e',
    `require('node:net').createServer().listen(${JSON.stringify(file)}, () => process.kill(process.pid, 'SIGKILL'))`,
  ])
  expect([killed.signal, existsSync(file)]).toEqual(['SIGKILL', true])
  await using far = await node(async () => new PassThrough(), where)
  await expect(node(nothing, where)).rejects.toThrow(`Another node listens at ${file}.`)
  await using near = await node(nothing)
  const stream = await near.open(at(far), { kind: 'echo' }, signal)
  stream.destroy()
})

test('a file that is no socket is left alone', async () => {
  const file = path.join(folder, 'letter')
  writeFileSync(file, 'dear Olga')
  await expect(node(nothing, { path: file })).rejects.toThrow('EADDRINUSE')
  expect(readFileSync(file, 'utf8')).toBe('dear Olga')
})

test('the socket of a node that is too busy to accept is left alone', async () => {
  const where = onUnix()
  const { path: file } = where as { path: string }
  const busy = spawn(
    process.execPath,
    [
      '-e',
      `require('node:net').createServer().listen({ path: ${JSON.stringify(file)}, backlog: 1 }, () => {
         console.log('listening')
         Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
       })`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const waiting: net.Socket[] = []
  try {
    await once(busy.stdout, 'data')
    for (let full = false; !full;) {
      const socket = net.connect(file)
      waiting.push(socket)
      full = await once(socket, 'connect').then(
        () => false,
        () => true,
      )
      expect(waiting.length).toBeLessThan(100)
    }
    await expect(node(nothing, where)).rejects.toThrow(`Another node listens at ${file}.`)
    expect(existsSync(file)).toBe(true)
  } finally {
    for (const socket of waiting) socket.destroy()
    busy.kill('SIGKILL')
  }
})

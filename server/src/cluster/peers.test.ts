// Streams between two nodes: bytes pass at the reader's pace, a refusal is told with its reason, and whoever
// does not have the secret gets no further than the handshake.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import { PassThrough, type Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import tls from 'node:tls'
import { expect, test, vi } from 'vitest'
import { startPeers, type PeerRequest, type Peers } from './peers.ts'
import { Unreachable } from '../tunnel/tunnel.ts'

const secret = randomBytes(32)
const signal = AbortSignal.timeout(20_000)

async function node(
  serve: (request: PeerRequest) => Promise<Duplex>,
  masterKey = secret,
): Promise<Peers & { problems: Error[] }> {
  const problems: Error[] = []
  const peers = await startPeers({
    listen: { host: '127.0.0.1', port: 0 },
    masterKey,
    serve,
    onError: (error) => void problems.push(error),
  })
  return Object.assign(peers, { problems })
}

const nothing = (): Promise<Duplex> => Promise.reject(new Error('There is nothing here.'))
const at = ({ port }: Peers) => ({ host: '127.0.0.1', port })

test('bytes come back as they went, in several streams at once', async () => {
  const asked: PeerRequest[] = []
  await using far = await node(async (request) => {
    asked.push(request)
    return new PassThrough()
  })
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
  await using far = await node(async () => source)
  await using near = await node(nothing)
  const stream = await near.open(at(far), { kind: 'flood' }, signal)
  const piece = Buffer.alloc(64 * 1024)
  const pump = (): void => {
    for (let room = true; room && given < 1000; given += 1) room = source.write(piece)
  }
  source.on('drain', pump)
  pump()
  let before = -1
  await vi.waitFor(() => {
    const same = before === given
    before = given
    expect(same && given > 0).toBe(true)
  })
  expect(given).toBeLessThan(1000)
  stream.resume()
  await vi.waitFor(() => expect(given).toBe(1000), { timeout: 20_000 })
})

test('what the other node cannot give is refused with its reason', async () => {
  await using far = await node(nothing)
  await using near = await node(nothing)
  await expect(near.open(at(far), { kind: 'ssh' }, signal)).rejects.toThrow('There is nothing here.')
})

test('a node that is not there is unreachable, and is dialled again when it is', async () => {
  await using near = await node(nothing)
  const far = await node(async () => new PassThrough())
  const address = at(far)
  await far[Symbol.asyncDispose]()
  await expect(near.open(address, { kind: 'echo' }, signal)).rejects.toBeInstanceOf(Unreachable)
  await using again = await startPeers({
    listen: address,
    masterKey: secret,
    serve: async () => new PassThrough(),
    onError: () => undefined,
  })
  expect(again.port).toBe(address.port)
  const stream = await near.open(address, { kind: 'echo' }, signal)
  stream.destroy()
})

test('whoever has another secret, or none, gets nothing', async () => {
  await using far = await node(async () => new PassThrough())
  await using stranger = await node(nothing, randomBytes(32))
  await expect(stranger.open(at(far), { kind: 'echo' }, signal)).rejects.toBeInstanceOf(Unreachable)
  const plain = net.connect(far.port, '127.0.0.1')
  plain.write('GET / HTTP/1.1\r\n\r\n')
  plain.resume()
  await once(plain, 'close')
  const modern = tls.connect({ host: '127.0.0.1', port: far.port, rejectUnauthorized: false })
  await once(modern, 'error')
  expect(far.problems.length).toBe(3)
})

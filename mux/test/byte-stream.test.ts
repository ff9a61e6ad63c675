// WebSockets that carry bytes, against `ws` as the other end and against themselves: nothing is lost or
// changed however it is cut, masked or slow; what breaks the protocol is let go with the code that says why.
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import net from 'node:net'
import { PassThrough, type Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { acceptBytes, dialBytes } from '../src/websocket/handshake.ts'
import { SocketLost, UpgradeFailed } from '../src/errors.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** A server that hands over what it accepts, or refuses with a status. */
async function served(take: (stream: Duplex) => void, refuse?: number): Promise<string> {
  const server = createServer((_, answer) => answer.writeHead(refuse ?? 404, { 'retry-after': '7' }).end())
  if (refuse === undefined)
    server.on('upgrade', (request: IncomingMessage, socket, head) => take(acceptBytes(request, socket, head)))
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

test('both ends of ours carry megabytes both ways at once', async () => {
  const sent = { up: randomBytes(5_000_001), down: randomBytes(7_000_003) }
  const far = Promise.withResolvers<Duplex>()
  const near = await dialBytes(await served(far.resolve))
  const there = await far.promise
  const down = buffer(near)
  near.write(sent.up)
  there.write(sent.down)
  const up: Buffer[] = []
  let left = sent.up.length
  // A goodbye is for both directions, so it comes when everything is there.
  for await (const piece of there as AsyncIterable<Buffer>) {
    up.push(piece)
    left -= piece.length
    if (left === 0) there.end()
  }
  expect([digest(await down), digest(Buffer.concat(up))]).toEqual([digest(sent.down), digest(sent.up)])
})

test('a client of `ws`, which masks, is understood, in messages of any size and in fragments', async () => {
  const far = Promise.withResolvers<Duplex>()
  const client = new WebSocket(await served(far.resolve), { perMessageDeflate: false })
  await once(client, 'open')
  const there = await far.promise
  const sent: Buffer[] = []
  for (const size of [0, 1, 2, 3, 4, 5, 125, 126, 127, 65_535, 65_536, 300_007]) {
    const message = randomBytes(size)
    sent.push(Buffer.from(message))
    client.send(message)
  }
  for (const [index, fin] of [false, false, true].entries()) {
    const piece = Buffer.alloc(1001, index)
    sent.push(Buffer.from(piece))
    client.send(piece, { fin })
  }
  client.close()
  expect(digest(await buffer(there))).toBe(digest(Buffer.concat(sent)))
})

test('a server of `ws` understands us, answers our pings’ answers and our goodbye', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false })
  await once(server, 'listening')
  const arrived = once(server, 'connection') as Promise<[WebSocket]>
  const near = await dialBytes(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  const [there] = await arrived
  const messages: Buffer[] = []
  there.on('message', (message: Buffer) => messages.push(message))
  const ponged = once(there, 'pong')
  there.ping('are you there')
  expect(String((await ponged)[0])).toBe('are you there')
  const [first, second] = [randomBytes(100_000), randomBytes(70_000)]
  // A chunk whose callback was awaited is a message of its own.
  await new Promise<void>((resolve) => void near.write(first, () => resolve()))
  near.end(second)
  const [code] = (await once(there, 'close')) as [number]
  expect(code).toBe(1000)
  expect(messages.map(digest)).toEqual([first, second].map(digest))
  server.close()
})

test('a reader that stops makes the writer wait, and gets all of it later', async () => {
  const far = Promise.withResolvers<Duplex>()
  const near = await dialBytes(await served(far.resolve))
  const there = await far.promise
  let written = 0
  let taken = true
  for (let turn = 0; turn < 2_000 && taken; turn += 1) {
    const chunk = Buffer.alloc(64 * 1024, turn)
    written += chunk.length
    // Long enough for the kernel to say that it took it, if it does.
    taken = await new Promise<boolean>((resolve) => {
      const limit = setTimeout(() => resolve(false), 500)
      near.write(chunk, () => {
        clearTimeout(limit)
        resolve(true)
      })
    })
  }
  expect(taken).toBe(false)
  const got = buffer(there)
  near.end()
  expect((await got).length).toBe(written)
})

interface Sent {
  readonly opcode: number
  readonly payload: Uint8Array
  readonly mask: Uint8Array
}

/** A frame of a client. */
function frameOf({ opcode, payload, mask }: Sent): Buffer {
  const long = payload.length < 126 ? 0 : 2
  const head = Buffer.alloc(2 + long)
  head[0] = 0x80 | opcode
  head[1] = 0x80 | (long === 0 ? payload.length : 126)
  if (long === 2) head.writeUInt16BE(payload.length, 2)
  return Buffer.concat([head, mask, payload.map((byte, at) => byte ^ mask[at % 4]!)])
}

/** Our end of a WebSocket whose client says these pieces, each of which is a read. */
function heard(reads: readonly Uint8Array[]): { stream: Duplex; line: PassThrough } {
  const line = Object.assign(new PassThrough(), { write: () => true })
  const headers = {
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  }
  const stream = acceptBytes({ method: 'GET', headers } as unknown as IncomingMessage, line, Buffer.alloc(0))
  for (const read of reads) line.emit('data', Buffer.from(read))
  return { stream, line }
}

test('data between pings, in frames of any size, comes out whole, whoever reads when, and before the goodbye', async () => {
  const frame = fc.record({
    opcode: fc.constantFrom(2, 2, 0, 9, 10),
    payload: fc.uint8Array({ maxLength: 125 }),
    mask: fc.uint8Array({ minLength: 4, maxLength: 4 }),
  })
  const goodbye = { opcode: 8, payload: Uint8Array.of(3, 232), mask: Uint8Array.of(1, 2, 3, 4) }
  await fc.assert(
    fc.asyncProperty(
      fc.array(frame, { maxLength: 30 }),
      fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1 }),
      async (frames, cuts) => {
        const wire = Buffer.concat([...frames, goodbye].map(frameOf))
        const reads: Buffer[] = []
        for (let at = 0, turn = 0; at < wire.length; turn++)
          reads.push(wire.subarray(at, (at += cuts[turn % cuts.length]!)))
        const { stream } = heard(reads)
        const sent = Buffer.concat(frames.filter(({ opcode }) => opcode < 8).map(({ payload }) => payload))
        expect((await buffer(stream)).equals(sent)).toBe(true)
      },
    ),
    { numRuns: 300 },
  )
})

test('all payloads of a read are one piece: frames cost no piece each', () => {
  const mask = Uint8Array.of(9, 8, 7, 6)
  const frames = Array.from({ length: 16 }, (_, index) =>
    frameOf({ opcode: index === 0 ? 2 : 0, payload: Buffer.alloc(4_000, index), mask }),
  )
  const { stream, line } = heard([])
  const pieces: Buffer[] = []
  stream.on('data', (piece: Buffer) => pieces.push(piece))
  stream.resume()
  line.emit('data', Buffer.concat(frames))
  return expect.poll(() => pieces.map((piece) => piece.length)).toEqual([16 * 4_000])
})

test('however the bytes are cut on the way, they come out the same', async () => {
  // Frames of a client with a mask, one byte at a time.
  const payloads = [randomBytes(3), randomBytes(200), randomBytes(70_000)]
  const wire = Buffer.concat(
    payloads.map((payload) => {
      const mask = randomBytes(4)
      const masked = Buffer.from(payload.map((byte, at) => byte ^ mask[at % 4]!))
      const long = payload.length < 126 ? 0 : payload.length < 65_536 ? 2 : 8
      const head = Buffer.alloc(2 + long)
      head[0] = 0x82
      head[1] = 0x80 | (long === 0 ? payload.length : long === 2 ? 126 : 127)
      if (long === 2) head.writeUInt16BE(payload.length, 2)
      if (long === 8) head.writeBigUInt64BE(BigInt(payload.length), 2)
      return Buffer.concat([head, mask, masked])
    }),
  )
  for (const size of [1, 2, 3, 7, 13, 1_021]) {
    const line = new PassThrough()
    const request = {
      method: 'GET',
      headers: {
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      },
    }
    const socket = Object.assign(line, { write: () => true }) as unknown as Duplex
    const stream = acceptBytes(request as unknown as IncomingMessage, socket, Buffer.alloc(0))
    const got: Buffer[] = []
    stream.on('data', (chunk: Buffer) => got.push(Buffer.from(chunk)))
    for (let at = 0; at < wire.length; at += size) line.push(Buffer.from(wire.subarray(at, at + size)))
    const length = payloads.reduce((sum, payload) => sum + payload.length, 0)
    await expect.poll(() => got.reduce((sum, chunk) => sum + chunk.length, 0)).toBe(length)
    expect(digest(Buffer.concat(got))).toBe(digest(Buffer.concat(payloads)))
  }
})

describe('what is against the rules', () => {
  test.each<[string, number[], number]>([
    ['a text message', [0x81, 0x80, 0, 0, 0, 0], 1003],
    ['an extension', [0xc2, 0x80, 0, 0, 0, 0], 1002],
    ['a frame without a mask', [0x82, 0x01, 0x41], 1002],
    ['an unknown kind', [0x83, 0x80, 0, 0, 0, 0], 1002],
    ['another unknown kind', [0x8b, 0x80, 0, 0, 0, 0], 1002],
    ['a ping that is too long', [0x89, 0xfe, 0, 200, 0, 0, 0, 0], 1002],
    ['a ping in pieces', [0x09, 0x80, 0, 0, 0, 0], 1002],
    ['a length beyond all measure', [0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0], 1009],
  ])('%s ends it, with the code that says why', async (_, bytes, code) => {
    const far = Promise.withResolvers<Duplex>()
    const address = new URL(await served(far.resolve))
    const socket = net.connect(Number(address.port), '127.0.0.1')
    socket.write(
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    )
    await once(socket, 'data')
    const stream = await far.promise
    const failed = once(stream, 'error') as Promise<[SocketLost]>
    socket.write(Buffer.from(bytes))
    const [error] = await failed
    expect(error).toBeInstanceOf(SocketLost)
    expect(error.code).toBe(code)
    socket.destroy()
  })

  test('an abrupt end is an error after what had come', async () => {
    const far = Promise.withResolvers<Duplex>()
    const near = await dialBytes(await served(far.resolve))
    const there = await far.promise
    await new Promise<void>((resolve) => void near.write('last words', () => resolve()))
    near.destroy()
    const got: Buffer[] = []
    await expect(
      (async () => {
        for await (const chunk of there as AsyncIterable<Buffer>) got.push(chunk)
      })(),
    ).rejects.toThrow(SocketLost)
    expect(Buffer.concat(got).toString()).toBe('last words')
  })

  test('an answer that is no 101 is told with its status and when to come back', async () => {
    const refused = await dialBytes(await served(() => undefined, 503)).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(UpgradeFailed)
    expect(refused).toMatchObject({ status: 503, retryAfter: '7' })
  })

  test('a dial that nobody answers can be given up, and gives up by itself', async () => {
    const silent = net.createServer()
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const url = `ws://127.0.0.1:${(silent.address() as AddressInfo).port}/`
    await expect(dialBytes(url, { signal: AbortSignal.timeout(50) })).rejects.toThrow(/timeout/i)
    await expect(dialBytes(url, { timeout_ms: 50 })).rejects.toThrow('no answer in time')
    silent.close()
  })

  test('a request that is no proper one is refused', () => {
    const ask = (headers: object, method = 'GET') =>
      acceptBytes({ method, headers } as unknown as IncomingMessage, new PassThrough(), Buffer.alloc(0))
    const good = {
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    }
    expect(() => ask(good)).not.toThrow()
    expect(() => ask(good, 'POST')).toThrow(UpgradeFailed)
    for (const name of Object.keys(good))
      expect(() => ask({ ...good, [name]: 'other' })).toThrow(UpgradeFailed)
  })
})

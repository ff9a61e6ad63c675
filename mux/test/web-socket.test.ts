// A WebSocket as a stream of bytes, over loopback: messages, back-pressure, and the ways it can end.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import type { WebSocket } from 'ws'
import { acceptWebSocket, dialWebSocket, SocketLost, UpgradeFailed, webSocketStream } from '../src/index.ts'
import { closed, socketPair, takeAll, takeBytes, turns, written } from './lines.ts'

/** Messages that come, as they come. */
function messages(socket: WebSocket): number[] {
  const sizes: number[] = []
  socket.on('message', (message: Buffer) => sizes.push(message.length))
  socket.resume()
  return sizes
}

test('bytes go both ways, whatever the sizes of the messages', async () => {
  await using pair = await socketPair()
  const near = webSocketStream(pair.client)
  const far = webSocketStream(pair.server)
  for (const [from, to] of [
    [near, far],
    [far, near],
  ] as const) {
    for (const size of [1, 125, 126, 65_535, 65_536, 3_000_000]) {
      const bytes = Buffer.alloc(size, size % 251)
      from.write(bytes)
      expect((await takeBytes(to, size)).equals(bytes)).toBe(true)
    }
  }
})

test('a chunk that is written alone is a message of its own; those that wait are joined', async () => {
  await using pair = await socketPair()
  const near = webSocketStream(pair.client)
  const sizes = messages(pair.server)
  await written(near, 'head')
  await written(near, 'next')
  for (let count = 0; count < 50; count++) near.write('x')
  await written(near, 'y')
  near.write(Buffer.alloc(60_000))
  near.write(Buffer.alloc(60_000))
  near.write(Buffer.alloc(5_000))
  await written(near, Buffer.alloc(70_000))
  await written(near, Buffer.alloc(600_000))
  near.end()
  await once(pair.server, 'close')
  expect(sizes).toEqual([4, 4, 1, 50, 60_000, 65_000, 70_000, 262_144, 262_144, 75_712])
})

test('a reader that stops makes the writer wait, and little is kept on both sides', async () => {
  await using pair = await socketPair()
  const near = webSocketStream(pair.client)
  const far = webSocketStream(pair.server)
  let through = 0
  for (;;) {
    let done = false
    near.write(Buffer.alloc(64 * 1024, 1), () => (done = true))
    await turns(50)
    if (!done) break
    through += 64 * 1024
    expect(through, 'somebody keeps all of it').toBeLessThan(64 * 1024 * 1024)
  }
  expect(pair.client.bufferedAmount).toBeLessThan(512 * 1024)
  expect(far.readableLength).toBeLessThan(512 * 1024)
  const taken = takeAll(far)
  near.end()
  expect((await taken).length).toBe(through + 64 * 1024)
})

test('ending says goodbye: both sides end without an error', async () => {
  await using pair = await socketPair()
  const near = webSocketStream(pair.client)
  const far = webSocketStream(pair.server)
  const code = new Promise((resolve) => pair.server.once('close', resolve))
  near.end('last')
  expect((await takeAll(far)).toString()).toBe('last')
  expect(await code).toBe(1000)
  near.resume()
  expect(await closed(near)).toBeUndefined()
  expect(await closed(far)).toBeUndefined()
})

test("a peer's goodbye ends a stream that nobody reads", async () => {
  await using pair = await socketPair()
  const far = webSocketStream(pair.server)
  pair.server.resume()
  pair.client.close(1001)
  pair.client.resume()
  expect(await closed(far)).toBeUndefined()
})

test('a connection that is cut is an error, after what had come was read', async () => {
  await using pair = await socketPair()
  const near = webSocketStream(pair.client)
  const far = webSocketStream(pair.server)
  await written(far, 'the last words')
  await once(near, 'readable')
  pair.tcp.resetAndDestroy()
  expect(await closed(far)).toMatchObject({ name: 'SocketLost', code: 1006 })
  await turns(50)
  expect((await takeBytes(near, 14)).toString()).toBe('the last words')
  near.resume()
  expect(await closed(near)).toMatchObject({ name: 'SocketLost', code: 1006 })
})

test('a write that waits fails when the connection is cut', async () => {
  await using pair = await socketPair()
  const near = webSocketStream(pair.client)
  const writing = written(near, Buffer.alloc(50_000_000))
  await turns()
  pair.tcp.destroy()
  await expect(writing).rejects.toThrow(SocketLost)
  await expect(written(near, 'more')).rejects.toThrow()
})

test('a write that waits fails when the peer says goodbye, after what had come was read', async () => {
  await using pair = await socketPair()
  const near = webSocketStream(pair.client)
  const far = webSocketStream(pair.server)
  near.write('the last words')
  await once(far, 'readable')
  const writing = written(far, Buffer.alloc(50_000_000))
  writing.catch(() => undefined)
  near.end()
  near.resume()
  expect((await takeBytes(far, 14)).toString()).toBe('the last words')
  far.resume()
  await expect(writing).rejects.toThrow(SocketLost)
  expect(await closed(far)).toBeInstanceOf(SocketLost)
})

test('destroying the stream drops the connection', async () => {
  await using pair = await socketPair()
  const near = webSocketStream(pair.client)
  const far = webSocketStream(pair.server)
  far.resume()
  near.destroy()
  expect(await closed(far)).toMatchObject({ code: 1006 })
})

test('a text message is an error', async () => {
  await using pair = await socketPair()
  const far = webSocketStream(pair.server)
  far.resume()
  pair.client.resume()
  const code = new Promise((resolve) => pair.client.once('close', resolve))
  pair.client.send('text')
  expect(await closed(far)).toMatchObject({ name: 'SocketLost', code: 1003 })
  expect(await code).toBe(1003)
})

test('bytes that are no WebSocket are an error', async () => {
  await using pair = await socketPair()
  const near = webSocketStream(pair.client)
  near.resume()
  pair.tcp.write(Buffer.of(0xff, 0xff, 0xff))
  expect(await closed(near)).toMatchObject({ name: 'SocketLost', code: 1002 })
})

test('a message that is larger than any window is an error', async () => {
  await using pair = await socketPair()
  const far = webSocketStream(pair.server)
  far.resume()
  pair.client.on('error', () => undefined)
  pair.client.send(Buffer.alloc(1024 * 1024))
  pair.client.send(Buffer.alloc(1024 * 1024 + 1))
  expect(await closed(far)).toMatchObject({ name: 'SocketLost' })
})

test('messages in fragments are bytes like others', async () => {
  await using pair = await socketPair()
  const far = webSocketStream(pair.server)
  pair.client.send(Buffer.from('ab'), { fin: false })
  pair.client.send(Buffer.from('cd'), { fin: false })
  pair.client.send(Buffer.from('ef'), { fin: true })
  expect((await takeBytes(far, 6)).toString()).toBe('abcdef')
})

test('a request that is none for a WebSocket is refused to whoever accepts', async () => {
  const http = createServer()
  const outcome = Promise.withResolvers<unknown>()
  http.on('upgrade', (request, socket, head) => {
    acceptWebSocket(request, socket, head).then(outcome.resolve, (error: unknown) => {
      socket.destroy()
      outcome.resolve(error)
    })
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const line = connect((http.address() as AddressInfo).port, '127.0.0.1')
  line.on('error', () => undefined)
  line.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n')
  expect(await outcome.promise).toBeInstanceOf(UpgradeFailed)
  line.destroy()
  http.close()
  await once(http, 'close')
})

test('whoever dials learns how it was refused', async () => {
  const http = createServer((_, answer) => void answer.writeHead(503, { 'retry-after': '7' }).end('busy'))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const url = `ws://127.0.0.1:${(http.address() as AddressInfo).port}/`
  await expect(dialWebSocket(url)).rejects.toMatchObject({ name: 'UpgradeFailed', status: 503, retryAfter: '7' })
  http.closeAllConnections()
  http.close()
  await once(http, 'close')
  await expect(dialWebSocket(url)).rejects.toMatchObject({ name: 'UpgradeFailed', status: undefined })
  await expect(dialWebSocket(url, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
})

test('a dial that nobody answers can be given up', async () => {
  const http = createServer()
  http.on(
    'upgrade',
    (_, socket) =>
      void socket
        .on('error', () => undefined)
        .on('end', () => socket.end())
        .resume(),
  )
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const url = `ws://127.0.0.1:${(http.address() as AddressInfo).port}/`
  const stop = new AbortController()
  const asked = once(http, 'upgrade')
  const dialled = dialWebSocket(url, { signal: stop.signal })
  await asked
  stop.abort(new Error('enough'))
  await expect(dialled).rejects.toThrow('enough')
  await expect(dialWebSocket(url, { timeout_ms: 20 })).rejects.toThrow(UpgradeFailed)
  http.close()
  await once(http, 'close')
})

test('what comes together with the upgrade is not lost, however late the stream is made', async () => {
  await using pair = await socketPair()
  pair.client.send(Buffer.from('early'))
  await turns(50)
  expect((await takeBytes(webSocketStream(pair.server), 5)).toString()).toBe('early')
})

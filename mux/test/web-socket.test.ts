// A WebSocket as a stream of bytes, over loopback: messages, back-pressure, and the ways it can end; and how
// one is accepted or dialled that is used message by message.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { acceptWebSocket, dialWebSocket, UpgradeFailed } from '../src/index.ts'
import { bytePair, closed, takeAll, takeBytes, turns, written } from './pairs.ts'

test('bytes go both ways, whatever the sizes of the messages', async () => {
  await using pair = await bytePair()
  const { client: near, server: far } = pair
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

test('ending says goodbye: both sides end without an error', async () => {
  await using pair = await bytePair()
  const { client: near, server: far } = pair
  near.end('last')
  expect((await takeAll(far)).toString()).toBe('last')
  near.resume()
  expect(await closed(near)).toBeUndefined()
  expect(await closed(far)).toBeUndefined()
})

test("a peer's goodbye ends a stream that nobody reads", async () => {
  await using pair = await bytePair()
  const far = pair.server
  pair.client.end()
  expect(await closed(far)).toBeUndefined()
})

test('a connection that is cut is an error, after what had come was read', async () => {
  await using pair = await bytePair()
  const { client: near, server: far } = pair
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
  await using pair = await bytePair()
  const near = pair.client
  const writing = written(near, Buffer.alloc(50_000_000))
  await turns()
  pair.tcp.destroy()
  await expect(writing).rejects.toThrow()
  await expect(written(near, 'more')).rejects.toThrow()
})

test('destroying the stream drops the connection', async () => {
  await using pair = await bytePair()
  const { client: near, server: far } = pair
  far.resume()
  near.destroy()
  expect(await closed(far)).toMatchObject({ code: 1006 })
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
  line.write(
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n',
  )
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
  await expect(dialWebSocket(url)).rejects.toMatchObject({
    name: 'UpgradeFailed',
    status: 503,
    retryAfter: '7',
  })
  http.closeAllConnections()
  http.close()
  await once(http, 'close')
  await expect(dialWebSocket(url)).rejects.toMatchObject({ name: 'UpgradeFailed', status: undefined })
  await expect(dialWebSocket(url, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow(
    'enough',
  )
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

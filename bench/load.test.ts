// The client of the HTTP benches, against servers that answer in pieces, refuse, or hang up.
import net from 'node:net'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { openLoad, requestBytes } from './load.ts'

/** A server with a scripted answer to every chunk; each of our requests is one. */
async function serve(
  answer: (socket: net.Socket, request: string) => void,
): Promise<{ port: number } & AsyncDisposable> {
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket.setNoDelay(true).on('error', () => undefined))
    socket.on('data', (chunk) => answer(socket, chunk.toString()))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as net.AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const ok = (body: string): string =>
  `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

test('an answer that comes in pieces is read whole', async () => {
  await using server = await serve((socket, request) => {
    const bytes = Buffer.from(ok(request.split(' ')[1] ?? ''))
    const [third, half] = [Math.floor(bytes.length / 3), bytes.length - 2]
    socket.write(bytes.subarray(0, third), () => {
      setImmediate(() =>
        socket.write(bytes.subarray(third, half), () =>
          setImmediate(() => socket.write(bytes.subarray(half))),
        ),
      )
    })
  })
  using load = await openLoad(server.port, 2)
  const [first, second] = await Promise.all([
    load.call(requestBytes('GET', '/moor')),
    load.call(requestBytes('GET', '/hülle')),
  ])
  expect([first.body, second.body]).toEqual(['/moor', '/hülle'])
})

test('a body is sent with its length and a token with its scheme', async () => {
  await using server = await serve((socket, request) => socket.write(ok(request)))
  using load = await openLoad(server.port, 1)
  const { body } = await load.call(requestBytes('POST', '/x', { token: 'abc', body: { name: 'ä' } }))
  expect(body.split('\r\n')).toEqual([
    'POST /x HTTP/1.1',
    'Host: 127.0.0.1',
    'Authorization: Bearer abc',
    'Content-Type: application/json',
    'Content-Length: 13',
    '',
    '{"name":"ä"}',
  ])
})

test('a refusal fails the call and says why', async () => {
  await using server = await serve((socket) =>
    socket.write('HTTP/1.1 429 Too Many\r\nContent-Length: 4\r\n\r\nwait'),
  )
  using load = await openLoad(server.port, 1)
  await expect(load.call(requestBytes('GET', '/'))).rejects.toThrow('answered 429: wait')
})

test('a server that hangs up fails the call under way, and a later call gets a new connection', async () => {
  await using server = await serve((socket, request) => {
    if (request.startsWith('GET /end')) socket.end(ok('bye'))
    else if (request.startsWith('GET /cut')) socket.destroy()
    else socket.write(ok('back'))
  })
  using load = await openLoad(server.port, 1)
  expect((await load.call(requestBytes('GET', '/end'))).body).toBe('bye')
  await expect.poll(async () => (await load.call(requestBytes('GET', '/'))).body).toBe('back')
  await expect(load.call(requestBytes('GET', '/cut'))).rejects.toThrow('closed')
})

// A stranger asks for a WebSocket, is refused, and keeps his half of the connection open: without a limit he
// holds as many sockets of the server as he likes, for ever.
import { once } from 'node:events'
import net from 'node:net'
import { expect, test } from 'vitest'
import { startService } from '../harness/service.ts'

test.each([
  '/agent/connection',
  '/ssh/connection',
  '/ssh/revdial?revdial.dialer=0123456789abcdef0123456789abcdef',
])('whoever is refused at %s is let go, though he stays', async (path) => {
  await using service = await startService()
  const socket = net.connect({
    port: Number(new URL(service.url).port),
    host: '127.0.0.1',
    allowHalfOpen: true,
  })
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  )
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString('latin1')).toMatch(/^HTTP\/1\.1 40[01] /)
  // The server has finished its half. When it lets go of the other one too, what is said there is answered
  // with a reset.
  socket.resume()
  await once(socket, 'end')
  const gone = once(socket, 'error') as Promise<[NodeJS.ErrnoException]>
  const talking = setInterval(() => socket.write('still here'), 100)
  try {
    expect((await gone)[0].code).toMatch(/ECONNRESET|EPIPE/)
  } finally {
    clearInterval(talking)
    socket.destroy()
  }
})

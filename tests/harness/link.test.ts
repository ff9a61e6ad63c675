// The link itself: what its users measure with it is only as right as the link is.
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { atRest, eventually } from './eventually.ts'
import { startLink, type LinkShape } from './link.ts'

/** A server that greets and echoes, and a link in front of it. */
async function echo(shape: Partial<LinkShape> = {}) {
  const sockets = new Set<Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    socket.write('!')
    socket.pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const link = await startLink({ port: (server.address() as AddressInfo).port }, shape)
  onTestFinished(async () => {
    await link[Symbol.asyncDispose]()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const dial = async (): Promise<Socket> => {
    const socket = net.connect(link.port, link.host)
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    return socket
  }
  return { link, dial, sockets }
}

const closed = async (socket: Socket): Promise<void> => eventually(() => expect(socket.closed).toBe(true))

async function read(socket: Socket, bytes: number): Promise<string> {
  const parts: Buffer[] = []
  let got = 0
  while (got < bytes) {
    const [part] = (await once(socket, 'data')) as [Buffer]
    parts.push(part)
    got += part.length
  }
  return Buffer.concat(parts).toString()
}

test('a greeting takes two round trips, an answer one', async () => {
  // A timer may fire a millisecond early.
  const { dial } = await echo({ delay_ms: 51 })
  const begun = performance.now()
  const socket = await dial()
  expect(await read(socket, 1)).toBe('!')
  expect(performance.now() - begun).toBeGreaterThanOrEqual(200)
  const asked = performance.now()
  socket.write('question')
  expect(await read(socket, 8)).toBe('question')
  expect(performance.now() - asked).toBeGreaterThanOrEqual(100)
})

test('bytes keep their order under jitter, and the rate holds for all connections together', async () => {
  const { link, dial } = await echo({ jitter_ms: 20, bytesPerSecond: 1_000_000 })
  const sockets = await Promise.all([dial(), dial()])
  await Promise.all(sockets.map(async (socket) => read(socket, 1)))
  const begun = performance.now()
  const text = Array.from({ length: 12_500 }, (_, n) => String(n).padStart(8, '0')).join('')
  await Promise.all(
    sockets.map(async (socket) => {
      socket.write(text)
      expect(await read(socket, text.length)).toBe(text)
    }),
  )
  expect(performance.now() - begun).toBeGreaterThanOrEqual(199)
  expect(link.up.payload).toBe(200_000)
  expect(link.down.payload).toBe(200_002)
  expect(link.up.wire).toBeGreaterThan(200_000 + 138 * 52)
  expect(link.opened).toBe(2)
})

test('a slow reader stops the sender', async () => {
  const { link, dial } = await echo()
  const socket = await dial()
  await read(socket, 1)
  socket.pause()
  const piece = Buffer.alloc(1024 * 1024)
  let taken = 0
  for (let n = 0; n < 64; n++) socket.write(piece, () => void taken++)
  await eventually(() => expect(taken).toBeGreaterThan(0))
  await atRest(() => taken, 300)
  expect(taken).toBeLessThan(40)
  socket.on('data', () => undefined)
  socket.resume()
  await eventually(() => expect(link.down.payload).toBe(64 * 1024 * 1024 + 1))
})

test('a stall delays and loses nothing', async () => {
  const { link, dial } = await echo()
  const socket = await dial()
  await read(socket, 1)
  link.stall()
  socket.write('later')
  const late = dial()
  const answer = read(socket, 5)
  expect(await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 100, 'nothing'))])).toBe(
    'nothing',
  )
  link.resume()
  expect(await answer).toBe('later')
  expect(await read(await late, 1)).toBe('!')
})

test('a cut resets both ends; a refusal meets new connections', async () => {
  const { link, dial, sockets } = await echo()
  const socket = await dial()
  await read(socket, 1)
  link.cut()
  await closed(socket)
  await eventually(() => expect(sockets.size).toBe(0))
  link.refuse(true)
  // The reset comes before or after the client knows of its connection.
  await dial().then(closed, (error: NodeJS.ErrnoException) => expect(error.code).toBe('ECONNRESET'))
  link.refuse(false)
  expect(await read(await dial(), 1)).toBe('!')
})

test('silence is told to nobody; what was open stays dead, what comes after resume lives', async () => {
  const { link, dial, sockets } = await echo()
  const socket = await dial()
  await read(socket, 1)
  link.silence()
  const meanwhile = await dial()
  socket.write('lost')
  link.resume()
  expect(await read(await dial(), 1)).toBe('!')
  socket.write('lost too')
  meanwhile.write('lost as well')
  expect(
    await Promise.race([
      read(socket, 1),
      read(meanwhile, 1),
      new Promise((r) => setTimeout(r, 100, 'nothing')),
    ]),
  ).toBe('nothing')
  expect(socket.destroyed).toBe(false)
  expect(sockets.size).toBe(2)
})

test('counts round trips, however long the ends take', async () => {
  const { link, dial } = await echo({ delay_ms: 5 })
  const socket = await dial()
  await read(socket, 1)
  const count = link.countRoundTrips()
  const exchange = async (): Promise<void> => {
    socket.write('a')
    await read(socket, 1)
  }
  await exchange()
  // So far the server has answered once and nothing has answered the server.
  expect(count()).toBe(0)
  for (const _ of [1, 2, 3]) await exchange()
  expect(count()).toBe(3)
})

// WebSockets that are used message by message (terminals, viewers): whoever has one asks for answers that he
// does not read, or sends a message in as many pieces as it has bytes.
import type { IncomingMessage } from 'node:http'
import { duplexPair, type Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import { acceptWebSocket } from '@hawser/mux'
import { held_bytes, mib } from './held.ts'
import { repeated, turns, wsPing } from './mux-device.ts'

const request = {
  method: 'GET',
  headers: {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  },
} as unknown as IncomingMessage

async function visitor(): Promise<{ line: Duplex; socket: Awaited<ReturnType<typeof acceptWebSocket>> }> {
  const [line, ours] = duplexPair()
  line.on('error', () => undefined)
  const socket = await acceptWebSocket(request, ours, Buffer.alloc(0))
  socket.on('error', () => undefined)
  socket.resume()
  return { line, socket }
}

test('300,000 pings whose answers are not read hold nothing', async () => {
  const { line, socket } = await visitor()
  const seen = { pings: 0 }
  socket.on('ping', () => (seen.pings += 1))
  async function ask(pings: number): Promise<void> {
    const until = seen.pings + pings
    for (let sent = 0; sent < pings; sent += 10_000)
      await new Promise<void>((resolve) => void line.write(repeated(wsPing, 10_000), () => resolve()))
    while (seen.pings < until) await turns(1)
  }
  // What the first of them leave is needed once.
  await ask(100_000)
  const before = await held_bytes()
  await ask(300_000)
  expect((await held_bytes()) - before).toBeLessThan(4 * mib)
  socket.terminate()
})

test('a ping whose answer is read is answered', async () => {
  const { line, socket } = await visitor()
  await turns()
  line.read()
  const answers: Buffer[] = []
  line.on('data', (chunk: Buffer) => answers.push(chunk))
  line.write(Buffer.from('89840000000061626364', 'hex'))
  await turns()
  expect(Buffer.concat(answers).toString('hex')).toBe('8a0461626364')
  socket.terminate()
})

test('a message of 1 MiB in pieces of one byte is not put together for ever', async () => {
  const { line, socket } = await visitor()
  const before = await held_bytes()
  // The head of a frame of 1 MiB, and then its bytes one by one.
  line.write(Buffer.from('82ff000000000010000000000000', 'hex'))
  for (let count = 0; count < 200_000 && socket.readyState === socket.OPEN; count++) {
    line.write(Buffer.alloc(1))
    if (count % 50 === 0) await turns(1)
  }
  await turns()
  expect((await held_bytes()) - before).toBeLessThan(4 * mib)
  expect(socket.readyState).not.toBe(socket.OPEN)
  socket.terminate()
})

// A device, or anybody who is logged in, sends a burst of the smallest messages that there are. Each is
// little work, but all together are much: others on the event loop have their turn after some hundred.
// So it is with WebSockets: 15 viewers that sent empty messages stopped the server until all were worked off.
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { socketPair } from '../../mux/test/pairs.ts'
import { Message } from '../../ssh/src/messages.ts'
import { message } from '../../ssh/src/wire.ts'
import { pair } from '../../ssh/test/pairs.ts'

const burst = 5_000

test.each(['client', 'server'] as const)(
  'a burst of small messages of a %s is worked off in many turns, and all of it is',
  async (rude) => {
    await using both = await pair()
    const { transport } = both[rude === 'client' ? 'server' : 'client']
    const before = transport.received
    for (let sent = 0; sent < burst; sent += 1) both[rude].transport.send(message(Message.ignore).string(''))
    let [most, seen] = [0, before]
    while (seen < before + burst) {
      await turn()
      most = Math.max(most, transport.received - seen)
      seen = transport.received
    }
    expect(seen).toBe(before + burst)
    expect(most).toBeLessThan(1_000)
  },
)

test('a burst of empty messages over a WebSocket is worked off one in a turn, however it is read', async () => {
  await using pair = await socketPair()
  const { client, server } = pair
  const seen = { messages: 0 }
  server.on('message', () => {
    seen.messages += 1
    // As the sockets of terminals and viewers do: one message is taken, and then the next.
    server.pause()
    queueMicrotask(() => server.resume())
  })
  server.resume()
  for (let sent = 0; sent < burst; sent += 1) client.send(Buffer.alloc(0))
  let [most, before] = [0, 0]
  while (before < burst) {
    await turn()
    most = Math.max(most, seen.messages - before)
    before = seen.messages
  }
  expect(most).toBeLessThan(10)
})

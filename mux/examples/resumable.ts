// A stream that outlives its connection: the server hangs up in the middle, the client connects again, and
// what was said is complete.
//   node mux/examples/resumable.ts
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { ResumableMemory, ResumableStream, resumableWindow_bytes, StreamLost } from '@hawser/mux'

/** All streams of this process share one bound. */
const memory = new ResumableMemory(16 * resumableWindow_bytes)
const served = new ResumableStream({ grace_ms: 60_000, memory })
const sockets: Socket[] = []
const listener = net.createServer((socket) => {
  sockets.push(socket)
  // The first connection begins the stream. A later one would name it first, and prove that it may have it.
  if (sockets.length === 1) served.attach(socket)
})
listener.listen(0, '127.0.0.1')
await once(listener, 'listening')
const { port } = listener.address() as AddressInfo

const stream = new ResumableStream({ grace_ms: 60_000, memory })
stream.attach(net.connect(port, '127.0.0.1'))
stream.write('Hello, ')
assert.equal(String((await once(served, 'data'))[0]), 'Hello, ')
served.pause()

// The connection breaks. Both ends wait, and what is written waits with them.
sockets[0]?.destroy()
await once(stream, 'away')
stream.end('world.')

// Each end gets the next connection with the counts of the other, and sends again what that one lacks.
const next = net.connect(port, '127.0.0.1')
await once(listener, 'connection')
const [carrier] = sockets.slice(1)
assert.ok(carrier)
const ours = stream.detach()
const theirs = served.detach()
stream.attach(next, theirs)
served.attach(carrier, ours)
assert.equal(String((await once(served.resume(), 'data'))[0]), 'world.')
served.end()
stream.resume()
await once(stream, 'close')
assert.equal(stream.errored, null)

// Without a next connection in time, a stream ends.
const lost = new ResumableStream({ grace_ms: 10 })
lost.attach(net.connect(port, '127.0.0.1'))
lost.detach()
await assert.rejects(once(lost, 'close'), StreamLost)
listener.close()
for (const socket of sockets) socket.destroy()

// Many streams on one TCP connection: the client opens them, the server echoes each.
//   node mux/examples/yamux.ts
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { isReleasing, MuxClosed, openMux, StreamRefused } from '@hawser/mux'

async function echo(socket: Socket): Promise<void> {
  using mux = openMux(socket, { role: 'server', mostStreams: 100 })
  for await (const stream of mux.incoming) stream.pipe(stream)
}

const listener = net.createServer((socket) => void echo(socket))
listener.listen(0, '127.0.0.1')
await once(listener, 'listening')

const socket = net.connect((listener.address() as AddressInfo).port, '127.0.0.1')
const mux = openMux(socket, { role: 'client', mostStreams: 2 })

// A stream is a Duplex of Node. The first bytes can leave with the opening.
const stream = mux.open(Buffer.from('Hello, '))
stream.end('world.')
assert.equal(await text(stream), 'Hello, world.')

// On a socket, a buffer may be used again after the callback of its write.
assert.ok(isReleasing(stream))

// A stream that cannot be opened fails with the reason.
const [first, second, third] = [mux.open(), mux.open(), mux.open()]
const closed = Promise.all(
  [first, second, third].map((one) => new Promise((resolve) => one.once('close', resolve))),
)
assert.ok((await mux.ping()) >= 0)
mux.close()
await closed
assert.ok(third.errored instanceof StreamRefused)
assert.ok(first.errored instanceof MuxClosed && second.errored instanceof MuxClosed)
assert.equal(await mux.ended, undefined)
listener.close()

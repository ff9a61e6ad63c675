// WebSockets on an HTTP server: one path carries bytes, and yamux on them; the other carries messages, as
// browsers use them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import {
  acceptBytes,
  acceptWebSocket,
  dialBytes,
  dialWebSocket,
  keepalive,
  openMux,
  SocketLost,
  UpgradeFailed,
} from '@hawser/mux'

const ping = { every_ms: 30_000, timeout_ms: 10_000 }

async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  if (request.url === '/bytes') {
    const bytes = acceptBytes(request, socket, head, { ping })
    for await (const stream of openMux(bytes, { role: 'server' }).incoming) stream.pipe(stream)
    return
  }
  if (request.url === '/cut') {
    acceptBytes(request, socket, head)
    return void socket.end()
  }
  const messages = await acceptWebSocket(request, socket, head)
  keepalive(messages, ping)
  messages.on('message', (message: Buffer, isBinary) => messages.send(message, { binary: isBinary }))
  // The connection is paused at first, so that no message is lost before somebody listens.
  messages.resume()
}

const listener = createServer((_, answer) => answer.writeHead(404).end())
listener.on('upgrade', (request, socket, head) => {
  upgrade(request, socket, head).catch(() => socket.destroy())
})
listener.listen(0, '127.0.0.1')
await once(listener, 'listening')
const { port } = listener.address() as AddressInfo

// Bytes, and streams on them.
const bytes = await dialBytes(`ws://127.0.0.1:${port}/bytes`)
const mux = openMux(bytes, { role: 'client' })
const stream = mux.open()
stream.end('over a WebSocket')
assert.equal(await text(stream), 'over a WebSocket')
mux.close()

// Messages.
const messages = await dialWebSocket(`ws://127.0.0.1:${port}/messages`)
messages.resume()
messages.send('hello')
const [echoed] = (await once(messages, 'message')) as [Buffer]
assert.equal(echoed.toString(), 'hello')
messages.terminate()

// A connection that ends without a close frame.
const cut = await dialBytes(`ws://127.0.0.1:${port}/cut`)
await new Promise((resolve) => cut.once('close', resolve))
assert.ok(cut.errored instanceof SocketLost)

// An answer that is no WebSocket.
listener.close()
await assert.rejects(dialBytes(`ws://127.0.0.1:${port}/bytes`), UpgradeFailed)

// How a session or a stream ends when it does not end well, by the class of the error.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { duplexPair } from 'node:stream'
import { ConnectionLost, liveness, openMux, ProtocolError, StreamEvicted, StreamReset } from '@hawser/mux'

// The peer resets a stream: no other stream is concerned.
{
  const [near, far] = duplexPair()
  using client = openMux(near, { role: 'client' })
  using server = openMux(far, { role: 'server' })
  const stream = client.open(Buffer.from('unwanted'))
  const closed = new Promise((resolve) => stream.once('close', resolve))
  for await (const incoming of server.incoming) {
    incoming.destroy()
    break
  }
  await closed
  assert.ok(stream.errored instanceof StreamReset)
}

// Nobody reads what the peer sends: above the limit of the session, the stream that holds most is reset.
{
  const [near, far] = duplexPair()
  using client = openMux(near, { role: 'client' })
  using server = openMux(far, { role: 'server', mostUnread_bytes: 64 * 1024 })
  const stream = client.open()
  for await (const incoming of server.incoming) {
    const closed = new Promise((resolve) => incoming.once('close', resolve))
    stream.write(Buffer.alloc(256 * 1024))
    await closed
    assert.ok(incoming.errored instanceof StreamEvicted)
    break
  }
}

// The peer breaks a rule: the session ends, for all of its streams.
{
  const [near, far] = duplexPair()
  using mux = openMux(near, { role: 'client' })
  far.write('GET / HTTP/1.1\r\n')
  const reason = await mux.ended
  assert.ok(reason instanceof ProtocolError && reason.rule === 'version')
}

// The connection breaks.
{
  const [near] = duplexPair()
  using mux = openMux(near, { role: 'client' })
  near.destroy()
  await once(near, 'close')
  assert.ok((await mux.ended) instanceof ConnectionLost)
}

// The peer is gone without a word: a check while waiting for it finds out.
{
  const [near] = duplexPair()
  using mux = openMux(near, { role: 'client' })
  const peer = liveness(near, mux, 10)
  const checking = setInterval(() => peer.check(), 1)
  assert.ok((await mux.ended) instanceof ConnectionLost)
  clearInterval(checking)
}

// The protocol of a stream, said at its beginning (multistream-select 1.0.0). The client need not wait for
// the answer: its proposal and what follows can leave together.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { duplexPair } from 'node:stream'
import { multistream, NegotiationFailed, openMux } from '@hawser/mux'

const { agreement, negotiate, propose, readLine, readReply, token } = multistream

// Both know the protocol.
{
  const [client, server] = duplexPair()
  client.write(Buffer.concat([propose('/echo/1.0.0'), Buffer.from('a line\n')]))
  const { protocol } = await negotiate(server, ['/chat/2.0.0', '/echo/1.0.0'])
  assert.equal(protocol, '/echo/1.0.0')
  assert.equal(await readLine(server, 1024), 'a line')
  assert.equal(await readReply(client, '/echo/1.0.0'), true)
}

// The answer of a server that knows the protocol is known before, so a mux can take it off the stream.
{
  const [near, far] = duplexPair()
  using client = openMux(near, { role: 'client' })
  using server = openMux(far, { role: 'server' })
  const stream = client.open(propose('/echo/1.0.0'), agreement('/echo/1.0.0'))
  for await (const accepted of server.incoming) {
    await negotiate(accepted, ['/echo/1.0.0'])
    accepted.write('hello')
    break
  }
  assert.equal(String((await once(stream, 'data'))[0]), 'hello')
}

// The server does not know the protocol, and continues with another proposal.
{
  const [client, server] = duplexPair()
  client.write(Buffer.concat([propose('/chat/2.0.0'), token('/echo/1.0.0')]))
  assert.equal((await negotiate(server, ['/echo/1.0.0'])).protocol, '/echo/1.0.0')
  assert.equal(await readReply(client, '/chat/2.0.0'), false)
}

// The peer speaks something else.
{
  const [client, server] = duplexPair()
  client.end('GET / HTTP/1.1\r\n')
  await assert.rejects(negotiate(server, ['/echo/1.0.0']), NegotiationFailed)
}

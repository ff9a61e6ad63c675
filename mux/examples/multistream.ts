// The protocol of a stream, said at its beginning (multistream-select 1.0.0). The client need not wait for the
// answer: its proposal and what follows can leave together.
import assert from 'node:assert/strict'
import { duplexPair } from 'node:stream'
import { multistream, NegotiationFailed } from '@hawser/mux'

const { negotiate, propose, readLine, readReply, token } = multistream

// Both know the protocol.
{
  const [client, server] = duplexPair()
  client.write(Buffer.concat([propose('/echo/1.0.0'), Buffer.from('a line\n')]))
  const { protocol } = await negotiate(server, ['/chat/2.0.0', '/echo/1.0.0'])
  assert.equal(protocol, '/echo/1.0.0')
  assert.equal(await readLine(server, 1024), 'a line')
  assert.equal(await readReply(client, '/echo/1.0.0'), true)
}

// The server does not, and goes on with another proposal.
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

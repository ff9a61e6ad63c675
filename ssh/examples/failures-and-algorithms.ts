// Failures by their class, and the algorithms to offer to the peer.
import assert from 'node:assert/strict'
import {
  acceptConnection,
  allAlgorithms,
  ChannelClosed,
  cipherImplementation,
  clientAlgorithms,
  compatibleAlgorithms,
  connect,
  ConnectionEnded,
  contextMemory,
  generatePrivateKey,
  NothingInCommon,
  ownCompression,
  ProtocolError,
  Reason,
  receiveSession,
  serverAlgorithms,
  SessionRefused,
  SshError,
  startSession,
} from '@hawser/ssh'
import { connected, socketPair } from './loopback.ts'

/** A server with these options on a socket. */
const serve = (socket: Parameters<typeof acceptConnection>[0], algorithms = serverAlgorithms) =>
  acceptConnection(socket, {
    hostKeys: [generatePrivateKey()],
    methods: ['none'],
    authenticate: async () => 'accept',
    algorithms,
  })

// The default offer of a server has no MAC that an audit objects to; old clients need one.
assert.ok(!serverAlgorithms.macs.includes('hmac-sha2-256'))
assert.ok(compatibleAlgorithms.macs.includes('hmac-sha2-256'))
assert.ok(allAlgorithms.kex.includes('ecdh-sha2-nistp256'))

// No algorithm that both know.
{
  const [near, far] = await socketPair()
  const accepting = serve(far, { ...serverAlgorithms, kex: ['mlkem768x25519-sha256'] })
  const algorithms = { ...clientAlgorithms, kex: ['curve25519-sha256'] }
  const connecting = connect(near, { user: 'olga', proofs: [], checkHostKey: () => true, algorithms })
  const [failure] = await Promise.allSettled([accepting, connecting])
  assert.ok(failure.status === 'rejected' && failure.reason instanceof ConnectionEnded)
  assert.ok(failure.reason.cause instanceof NothingInCommon)
  assert.equal(failure.reason.reason, Reason.keyExchangeFailed)
}

// A peer that breaks the protocol. Its connection ends; every such failure is an SshError.
{
  const [near, far] = await socketPair()
  near.write('SSH-2.0-Nonsense\r\n\0\0\0\0')
  const failure: unknown = await serve(far).catch((error: unknown) => error)
  assert.ok(failure instanceof SshError && failure.cause instanceof ProtocolError)
  near.destroy()
}

// A server that refuses a program, a channel that is closed, and a connection that is over.
{
  await using both = await connected()
  const { client, server } = both
  void server.channels.next().then((opening) => opening && receiveSession(opening.accept(), () => false))
  await assert.rejects(startSession(client, { program: { type: 'shell' } }), SessionRefused)
  const opening = client.open('session')
  ;(await server.channels.next())?.accept()
  const channel = await opening
  void channel.close()
  await assert.rejects(channel.write(Buffer.from('too late')), ChannelClosed)
  await client.end()
  await assert.rejects(client.open('session'), ConnectionEnded)
}

// Two ends of this package may compress what a slow link carries. The memory for it has a
// limit for the process.
{
  const compression = ownCompression
  const [near, far] = await socketPair()
  const accepting = serve(far, { ...serverAlgorithms, compression })
  const algorithms = { ...clientAlgorithms, compression }
  const proofs = [{ method: 'none' }] as const
  const client = await connect(near, { user: 'olga', proofs, checkHostKey: () => true, algorithms })
  assert.equal(client.transport.negotiated.toServer.compression?.name, ownCompression[0])
  await client.end()
  await accepting
  assert.ok(contextMemory.held_bytes <= contextMemory.limit_bytes)
}

// Which code encrypts: OpenSSL called directly, or node:crypto where that is not possible.
const implementation = cipherImplementation()
assert.ok(implementation.name === 'openssl' || implementation.reason.length > 0)

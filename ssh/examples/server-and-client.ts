// A server that lets in one key and runs one command, and a client that calls it.
//   node ssh/examples/server-and-client.ts
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import {
  acceptConnection,
  connect,
  fingerprintSha256,
  generatePrivateKey,
  receiveSession,
  startSession,
} from '@hawser/ssh'

const hostKey = generatePrivateKey()
const userKey = generatePrivateKey()

async function serve(socket: Socket): Promise<void> {
  const connection = await acceptConnection(socket, {
    hostKeys: [hostKey],
    methods: ['publickey'],
    // Asked twice for a key: whether it would do, and once its signature was verified.
    authenticate: async (attempt) =>
      attempt.user === 'olga' && 'key' in attempt && attempt.key.blob.equals(userKey.blob)
        ? 'accept'
        : 'refuse',
    channelTypes: ['session'],
  })
  for await (const opening of connection.channels) {
    const session = await receiveSession(opening.accept(), (request) => request.type !== 'pty-req')
    if (session?.program.type !== 'exec') continue
    await session.channel.write(Buffer.from(`you said: ${session.program.command}\n`))
    await session.exit(0)
  }
}

const listener = net.createServer((socket) => void serve(socket).catch(() => undefined))
listener.listen(0, '127.0.0.1')
await once(listener, 'listening')

const { port } = listener.address() as AddressInfo
await using connection = await connect(net.connect(port, '127.0.0.1'), {
  user: 'olga',
  proofs: [{ method: 'publickey', key: userKey }],
  checkHostKey: (key) => fingerprintSha256(key) === fingerprintSha256(hostKey.blob),
})
const { channel, exit } = await startSession(connection, { program: { type: 'exec', command: 'hello' } })
let output = ''
for await (const { bytes } of channel) output += bytes.toString()
assert.equal(output, 'you said: hello\n')
assert.deepEqual(await exit, { type: 'exit-status', status: 0 })
listener.close()

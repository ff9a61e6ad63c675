// Port forwarding, of TCP and of Unix sockets, in both directions (ssh -L and ssh -R).
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import {
  ChannelRefused,
  channelStream,
  joinSocket,
  OpenFailure,
  readListen,
  readPath,
  readPort,
  readTcpForward,
  writeDirectPath,
  writeForwardedPath,
  writeListen,
  writePath,
  writePort,
  writeTcpForward,
} from '@hawser/ssh'
import { connected } from './loopback.ts'

await using both = await connected()
const { client, server } = both

// ssh -L: the client opens a channel for each connection, and the server dials.
const target = net.createServer((socket) => socket.end('from the target')).listen(0, '127.0.0.1')
await once(target, 'listening')
const { port } = target.address() as AddressInfo
const opened = client.open(
  'direct-tcpip',
  writeTcpForward({ host: '127.0.0.1', port, origin: '::1', originPort: 1 }),
)
const asked = await server.channels.next()
assert.ok(asked)
const { host, port: wanted } = readTcpForward(asked.payload)
void joinSocket(asked.accept(), net.connect(wanted, host))
// A channel as a stream of Node.
assert.equal(await text(channelStream(await opened)), 'from the target')
target.close()

// A channel can be refused.
const refused = client.open('direct-streamlocal@openssh.com', writeDirectPath('/run/docker.sock'))
const unwanted = await server.channels.next()
assert.equal(unwanted && readPath(unwanted.payload), '/run/docker.sock')
unwanted?.refuse(OpenFailure.prohibited, 'Not this one.')
await assert.rejects(refused, ChannelRefused)

// ssh -R: the server listens, and opens a channel for each connection.
const listening = client.request('tcpip-forward', writeListen('127.0.0.1', 0))
const request = await server.requests.next()
assert.ok(request)
assert.deepEqual(readListen(request.payload), { host: '127.0.0.1', port: 0 })
request.accept(writePort(4_321))
const answer = await listening
assert.equal(answer && readPort(answer), 4_321)

// The same for a Unix socket.
const listeningPath = client.request('streamlocal-forward@openssh.com', writePath('/run/app.sock'))
const pathRequest = await server.requests.next()
assert.equal(pathRequest && readPath(pathRequest.payload), '/run/app.sock')
pathRequest?.accept()
assert.ok(await listeningPath)
const forwarded = server.open('forwarded-streamlocal@openssh.com', writeForwardedPath('/run/app.sock'))
const arrived = await client.channels.next()
assert.equal(arrived && readPath(arrived.payload), '/run/app.sock')
arrived?.accept()
await (await forwarded).close()

// The child behind user-sockets.ts: drops its privileges before it reads anything, then connects and listens
// as the agent asks and hands the sockets over. It ends when the agent disconnects, and removes its socket
// files.
import type net from 'node:net'
import { localSockets, type SocketRequest, type SocketReply } from './user-sockets.ts'
import { parseCredentials, dropPrivileges } from './privileges.ts'

dropPrivileges(parseCredentials(process.argv.slice(2)))

const sockets = localSockets()

function reply(answer: SocketReply, socket?: net.Socket): void {
  if (process.connected) process.send!(answer, socket, {}, () => undefined)
  else socket?.destroy()
}

async function run({ action, file }: SocketRequest): Promise<net.Socket | undefined> {
  if (action === 'connect') return sockets.connect(file)
  if (action === 'listen') await sockets.listen(file, (socket) => reply({ arrived: file }, socket))
  else await sockets.stop(file)
  return undefined
}

process.on('message', (asked: SocketRequest) => {
  run(asked).then(
    (socket) => reply({ number: asked.number, done: true }, socket),
    (error: NodeJS.ErrnoException) => reply({ number: asked.number, failure: error.code ?? 'EIO' }),
  )
})
process.once('disconnect', () => {
  void (async () => {
    await sockets[Symbol.asyncDispose]()
    process.exit(0)
  })()
})

// Agent forwarding: the socket (SSH_AUTH_SOCK) through which programs use the keys of the person's own SSH
// agent. Every connection to it becomes a channel back to the client. The socket lies in a folder that only
// the user may enter, inside a folder of root's that nobody else may change, so that the paths we remove at
// the end are still the ones we made.
import { chmod, chown, mkdir, rmdir, unlink } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { joinSocket, type Connection } from '@hawser/ssh'
import { isOwnFolder, ownFolder } from './folders.ts'
import { credentialsFor } from './privileges.ts'
import type { Account } from './users.ts'

export interface AgentSocket extends AsyncDisposable {
  readonly path: string
}

const mostAtATime = 64

export async function openAgentSocket(connection: Connection, account: Account): Promise<AgentSocket> {
  const outer = ownFolder('agent')
  const folder = path.join(outer, 'user')
  const file = path.join(folder, 'agent')
  const sockets = new Set<net.Socket>()
  const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    connection.open('auth-agent@openssh.com').then(
      async (channel) => joinSocket(channel, socket),
      () => socket.destroy(),
    )
  })
  server.maxConnections = mostAtATime
  const remove = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    // Closing the server unlinks the socket, unless the user has done so.
    await new Promise<void>((resolve) => void server.close(() => resolve()))
    if (!isOwnFolder(outer)) return
    await unlink(file).catch(() => undefined)
    await rmdir(folder).catch(() => undefined)
    await rmdir(outer).catch(() => undefined)
  }
  try {
    await mkdir(folder, { mode: 0o700 })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(file, resolve)
    })
    const credentials = credentialsFor(account)
    if (credentials) {
      await chown(file, credentials.uid, credentials.gid)
      await chown(folder, credentials.uid, credentials.gid)
      await chmod(outer, 0o711)
    }
  } catch (error) {
    await remove()
    throw error
  }
  return { path: file, [Symbol.asyncDispose]: remove }
}

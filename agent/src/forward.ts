// Forwarded connections: to a port or a socket that the device can reach (-L, -D, -J), and from one on the
// device (-R). A user can do no more here than with a shell: ports below 1024 are root's, sockets are opened
// with the user's privileges (user-sockets.ts), and listeners are on the loopback only, as with sshd's
// defaults. Which targets may be forwarded to is the server's policy. Listeners and connections are bounded.
import net, { type AddressInfo } from 'node:net'
import {
  joinSocket,
  OpenFailure,
  ProtocolError,
  readListen,
  readPath,
  readTcpForward,
  writeForwardedPath,
  writePort,
  writeTcpForward,
  type Connection,
  type GlobalRequest,
  type Opening,
} from '@hawser/ssh'
import { userSocketsOf, type UserSockets } from './user-sockets.ts'
import type { Account } from './users.ts'

export const forwardChannels: readonly string[] = ['direct-tcpip', 'direct-streamlocal@openssh.com']
export const forwardRequests: readonly string[] = [
  'tcpip-forward',
  'cancel-tcpip-forward',
  'streamlocal-forward@openssh.com',
  'cancel-streamlocal-forward@openssh.com',
]

const mostListeners = 32
const mostPerListener = 128
const mostDialling = 128
const dial_ms = 30_000
const firstFreePort = 1_024
const loopback = ['127.0.0.1', '::1'] as const

export interface Forwards extends AsyncDisposable {
  open(opening: Opening): Promise<void>
  request(request: GlobalRequest): Promise<void>
}

export function forwardsOf(
  connection: Connection,
  account: Account,
  log: (event: Record<string, unknown>) => void,
): Forwards {
  const userSockets = userSocketsOf(account)
  const sockets = new Set<net.Socket>()
  let dialling = 0

  const track = (socket: net.Socket): net.Socket => {
    sockets.add(socket)
    return socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
  }

  const dial = async (opening: Opening): Promise<net.Socket> => {
    if (opening.type === 'direct-streamlocal@openssh.com')
      return track(await userSockets.connect(readPath(opening.payload)))
    const { host, port } = readTcpForward(opening.payload)
    const socket = track(net.connect({ host, port, allowHalfOpen: true, noDelay: true }))
    await connected(socket)
    return socket
  }

  /** Passes a connection that arrives on the device to the client. */
  const passBack: PassBack = (type, payload) => (socket) => {
    track(socket)
    connection.open(type, payload(socket)).then(
      async (channel) => joinSocket(channel, socket),
      () => socket.destroy(),
    )
  }
  const listeners = listenersOf(userSockets, account, passBack)

  return {
    async open(opening) {
      if (dialling >= mostDialling)
        return opening.refuse(OpenFailure.resourceShortage, 'Too many connections are being opened.')
      dialling += 1
      let socket: net.Socket
      try {
        socket = await dial(opening)
      } catch (error) {
        log({ event: 'forward.refused', type: opening.type, code: codeOf(error) })
        return opening.refuse(OpenFailure.connectFailed, sentences[codeOf(error)] ?? 'The connection failed.')
      } finally {
        dialling -= 1
      }
      await joinSocket(opening.accept(), socket)
    },
    async request(request) {
      const { listen, cancel } = listeners
      const answer = await (request.name.startsWith('cancel-') ? cancel(request) : listen(request)).catch(
        (error: unknown) => {
          log({ event: 'forward.refused', type: request.name, code: codeOf(error) })
          return undefined
        },
      )
      if (answer) request.accept(answer)
      else request.refuse()
    },
    async [Symbol.asyncDispose]() {
      listeners.close()
      for (const socket of sockets) socket.destroy()
      await userSockets[Symbol.asyncDispose]()
    },
  }
}

async function connected(socket: net.Socket): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const limit = setTimeout(
      () => socket.destroy(Object.assign(new Error('It took too long.'), { code: 'ETIMEDOUT' })),
      dial_ms,
    )
    socket.once('connect', resolve).once('error', reject)
    socket.once('close', () => reject(new Error('The connection ended.')))
    socket.once('connect', () => clearTimeout(limit)).once('close', () => clearTimeout(limit))
  })
}

type PassBack = (type: string, payload: (socket: net.Socket) => Buffer) => (socket: net.Socket) => void

interface Listeners {
  /** Returns the payload of the answer; undefined refuses. */
  listen(request: GlobalRequest): Promise<Buffer | undefined>
  cancel(request: GlobalRequest): Promise<Buffer | undefined>
  /** The open sockets are closed by their owner. */
  close(): void
}

function listenersOf(userSockets: UserSockets, account: Account, passBack: PassBack): Listeners {
  /** By address and port as the client requested them. */
  const ports = new Map<string, net.Server[]>()
  const files = new Set<string>()

  async function listenOnPort(host: string, wanted: number): Promise<number | undefined> {
    let port = wanted
    const servers: net.Server[] = []
    for (const address of loopback) {
      const server = net.createServer(
        { allowHalfOpen: true, pauseOnConnect: true, noDelay: true },
        passBack('forwarded-tcpip', ({ remoteAddress = '', remotePort = 0 }) =>
          writeTcpForward({ host, port, origin: remoteAddress, originPort: remotePort }),
        ),
      )
      server.maxConnections = mostPerListener
      const listening = await new Promise<boolean>((resolve) => {
        server.once('error', () => resolve(false))
        server.listen({ host: address, port, exclusive: true }, () => resolve(true))
      })
      if (listening) {
        port = (server.address() as AddressInfo).port
        servers.push(server)
      } else if (address === loopback[0]) break
    }
    if (servers.length === 0) return undefined
    ports.set(`${host} ${port}`, servers)
    return port
  }

  return {
    async listen(request) {
      if (ports.size + files.size >= mostListeners) return undefined
      if (request.name === 'streamlocal-forward@openssh.com') {
        const file = readPath(request.payload)
        await userSockets.listen(
          file,
          passBack('forwarded-streamlocal@openssh.com', () => writeForwardedPath(file)),
        )
        files.add(file)
        return Buffer.alloc(0)
      }
      const { host, port } = readListen(request.payload)
      if (port > 65_535 || (port !== 0 && port < firstFreePort && account.uid !== 0)) return undefined
      const listening = await listenOnPort(host, port)
      if (listening === undefined) return undefined
      return port === 0 ? writePort(listening) : Buffer.alloc(0)
    },
    async cancel(request) {
      if (request.name === 'cancel-streamlocal-forward@openssh.com') {
        const file = readPath(request.payload)
        files.delete(file)
        return (await userSockets.stop(file)) ? Buffer.alloc(0) : undefined
      }
      const { host, port } = readListen(request.payload)
      const servers = ports.get(`${host} ${port}`)
      ports.delete(`${host} ${port}`)
      for (const server of servers ?? []) server.close()
      return servers && Buffer.alloc(0)
    },
    close() {
      for (const server of [...ports.values()].flat()) server.close()
    },
  }
}

const sentences: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Connection refused',
  ETIMEDOUT: 'Connection timed out',
  EHOSTUNREACH: 'No route to host',
  ENETUNREACH: 'Network is unreachable',
  ENOTFOUND: 'Name or service not known',
  EAI_AGAIN: 'Name or service not known',
  EACCES: 'Permission denied',
  EPERM: 'Permission denied',
  ENOENT: 'No such file or directory',
  ERR_SOCKET_BAD_PORT: 'Bad port',
}

function codeOf(error: unknown): string {
  if (error instanceof ProtocolError) return 'EBADMSG'
  return (error as NodeJS.ErrnoException).code ?? 'EIO'
}

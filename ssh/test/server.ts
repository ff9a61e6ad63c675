// A small server on our own package, for tests: runs what it is asked to with the shell of the machine,
// forwards whatever it is asked to, and remembers what it saw.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { constants, tmpdir } from 'node:os'
import path from 'node:path'
import type { Opening } from '../src/connection/connection.ts'
import { OpenFailure } from '../src/connection/connection.ts'
import {
  joinSocket,
  readListen,
  readPath,
  readTcpForward,
  writeForwardedPath,
  writePort,
  writeTcpForward,
} from '../src/connection/forwarding.ts'
import { receiveSession, type Session, type SessionEvent } from '../src/connection/session.ts'
import { generatePrivateKey } from '../src/keys/private-key.ts'
import { acceptConnection, type ServerConnection, type ServerOptions } from '../src/server.ts'

export interface TestServer extends AsyncDisposable {
  readonly port: number
  /** Every connection that got in. */
  readonly connections: ServerConnection[]
  readonly sessions: Session[]
  readonly events: SessionEvent[]
  /** How connections ended, or why they never began. */
  readonly endings: string[]
  readonly failures: unknown[]
}

export const hostKey = generatePrivateKey('ed25519')

export interface TestServerOptions extends Partial<ServerOptions> {
  /** Instead of running a program. */
  onSession?(session: Session): Promise<void>
}

export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const { onSession = runProgram, ...rest } = options
  const connections: ServerConnection[] = []
  const sessions: Session[] = []
  const events: SessionEvent[] = []
  const endings: string[] = []
  const failures: unknown[] = []
  const working = new Set<Promise<void>>()
  const sockets = new Set<net.Socket>()

  const track = (work: Promise<void>): void => {
    const tracked = work
      .catch((error: unknown) => void failures.push(error))
      .finally(() => working.delete(tracked))
    working.add(tracked)
  }

  const onConnection = async (socket: net.Socket): Promise<void> => {
    let connection: ServerConnection
    try {
      connection = await acceptConnection(socket, {
        hostKeys: [hostKey],
        methods: ['none'],
        authenticate: async () => 'accept',
        channelTypes: ['session', 'direct-tcpip', 'direct-streamlocal@openssh.com'],
        globalRequests: ['tcpip-forward', 'cancel-tcpip-forward', 'streamlocal-forward@openssh.com'],
        ...rest,
      })
    } catch (error) {
      endings.push((error as Error).message)
      return
    }
    connections.push(connection)
    await using cleanUp = new AsyncDisposableStack()
    cleanUp.use(connection)
    track(serveForwards(connection))
    for await (const opening of connection.channels) {
      if (opening.type === 'session') track(onOpening(connection, opening))
      else track(dial(opening))
    }
    endings.push((await connection.ended).message)
  }

  const onOpening = async (connection: ServerConnection, opening: Opening): Promise<void> => {
    const session = await receiveSession(opening.accept(), () => true)
    if (!session) return
    sessions.push(session)
    track(
      (async () => {
        for await (const event of session.events) events.push(event)
      })(),
    )
    if (session.agent) await withAgent(connection, session, onSession, track)
    else await onSession(session)
  }

  const listener = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    track(onConnection(socket))
  })
  listener.listen(0, '127.0.0.1')
  await new Promise((resolve) => void listener.once('listening', resolve))
  return {
    port: (listener.address() as AddressInfo).port,
    connections,
    sessions,
    events,
    endings,
    failures,
    async [Symbol.asyncDispose]() {
      listener.close()
      for (const connection of connections) await connection.end()
      for (const socket of sockets) socket.destroy()
      while (working.size > 0) await Promise.all(working)
    },
  }
}

const signalNames = new Set(Object.keys(constants.signals))

export async function runProgram(session: Session, env: Record<string, string> = {}): Promise<void> {
  const { channel, program } = session
  const command = program.type === 'exec' ? ['-c', program.command] : []
  const child = spawn('/bin/sh', command, {
    env: { ...process.env, ...Object.fromEntries(session.env), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.on('error', () => undefined)
  void channel.closed.then(() => child.kill('SIGHUP'))
  const input = async (): Promise<void> => {
    for await (const { bytes } of channel) {
      if (!child.stdin.write(bytes) && !child.stdin.destroyed) {
        const abort = new AbortController()
        const { signal } = abort
        await Promise.race(
          [once(child.stdin, 'drain', { signal }), once(child.stdin, 'close', { signal })].map(async (p) =>
            p.catch(() => []),
          ),
        )
        abort.abort()
      }
    }
    child.stdin.end()
  }
  const output = async (from: AsyncIterable<Buffer>, stream: number): Promise<void> => {
    for await (const bytes of from) await channel.write(bytes, stream)
  }
  const exited = new Promise<{ status: number | null; signal: string | null }>((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (status, signal) => resolve({ status, signal }))
  })
  void input().catch(() => child.stdin.destroy())
  try {
    await Promise.all([output(child.stdout, 0), output(child.stderr, 1)])
  } catch {
    child.kill('SIGHUP')
  }
  const { status, signal } = await exited
  if (signal !== null && signalNames.has(signal)) {
    await session.exit({ type: 'exit-signal', signal: signal.slice(3), coreDumped: false, message: '' })
  } else {
    await session.exit(status ?? 255)
  }
}

export async function dial(opening: Opening): Promise<void> {
  const to =
    opening.type === 'direct-tcpip'
      ? (({ host, port }) => net.connect({ host, port, allowHalfOpen: true }))(
          readTcpForward(opening.payload),
        )
      : net.connect({ path: readPath(opening.payload), allowHalfOpen: true })
  const connected = await new Promise<boolean>((resolve) => {
    to.once('connect', () => resolve(true))
    to.once('error', () => resolve(false))
  })
  if (connected) await joinSocket(opening.accept(), to)
  else opening.refuse(OpenFailure.connectFailed, 'Connection refused')
}

async function serveForwards(connection: ServerConnection): Promise<void> {
  const listeners = new Map<string, net.Server>()
  const joining = new Set<Promise<void>>()
  const listenOn = async (server: net.Server, where: net.ListenOptions): Promise<boolean> =>
    new Promise((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(where, () => resolve(true))
    })
  const forward = (type: string, payload: () => Buffer) => (socket: net.Socket) => {
    const join = async (): Promise<void> => {
      const channel = await connection.open(type, payload())
      await joinSocket(channel, socket)
    }
    const joined: Promise<void> = join()
      .catch(() => void socket.destroy())
      .finally(() => joining.delete(joined))
    joining.add(joined)
  }
  for await (const request of connection.requests) {
    if (request.name === 'tcpip-forward') {
      const { host, port } = readListen(request.payload)
      const server: net.Server = net.createServer(
        { allowHalfOpen: true },
        forward('forwarded-tcpip', () =>
          writeTcpForward({
            host,
            port: (server.address() as AddressInfo).port,
            origin: '127.0.0.1',
            originPort: 1,
          }),
        ),
      )
      const listening = await listenOn(server, { port, host: '127.0.0.1' })
      if (listening) {
        const actual = (server.address() as AddressInfo).port
        listeners.set(`${host}:${actual}`, server)
        request.accept(port === 0 ? writePort(actual) : undefined)
      } else request.refuse()
    } else if (request.name === 'cancel-tcpip-forward') {
      const { host, port } = readListen(request.payload)
      listeners.get(`${host}:${port}`)?.close()
      if (listeners.delete(`${host}:${port}`)) request.accept()
      else request.refuse()
    } else {
      const socketPath = readPath(request.payload)
      const server = net.createServer(
        { allowHalfOpen: true },
        forward('forwarded-streamlocal@openssh.com', () => writeForwardedPath(socketPath)),
      )
      if (await listenOn(server, { path: socketPath })) {
        listeners.set(socketPath, server)
        request.accept()
      } else request.refuse()
    }
  }
  for (const server of listeners.values()) server.close()
  await Promise.all(joining)
}

/** A socket for the program behind which is the agent of the client. */
async function withAgent(
  connection: ServerConnection,
  session: Session,
  work: (session: Session, env: Record<string, string>) => Promise<void>,
  track: (work: Promise<void>) => void,
): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'hawser-agent-'))
  const socketPath = path.join(folder, 'agent')
  const server = net.createServer((socket) =>
    track((async () => joinSocket(await connection.open('auth-agent@openssh.com'), socket))()),
  )
  server.listen(socketPath)
  await new Promise((resolve) => void server.once('listening', resolve))
  try {
    await work(session, { SSH_AUTH_SOCK: socketPath })
  } finally {
    server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

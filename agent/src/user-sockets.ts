// Unix sockets with the privileges of the user, for forwarding. Root could connect to any socket on the
// device and create one in any folder, so an agent that runs as root does neither itself: a child that runs
// as the user opens the sockets and hands them over. The child starts when it is first needed and ends with
// the SSH connection. An agent that is that user already opens the sockets itself.
import { spawn, type ChildProcess } from 'node:child_process'
import { unlink } from 'node:fs/promises'
import net from 'node:net'
import { stdioWith } from './children.ts'
import { compileCache } from './folders.ts'
import { ownProgram } from './own-programs.ts'
import { credentialsFor, formatCredentials } from './privileges.ts'
import type { Account } from './users.ts'

export interface UserSockets extends AsyncDisposable {
  connect(file: string): Promise<net.Socket>
  /** Listens until `stop`; connections wait until they are read from. */
  listen(file: string, arrived: (socket: net.Socket) => void): Promise<void>
  stop(file: string): Promise<boolean>
}

/** Requests to the child, which answers each under its number. */
export type SocketRequest = {
  readonly number: number
  readonly action: 'connect' | 'listen' | 'stop'
  readonly file: string
}
/** Answers of the child. A connection that arrived names its socket. */
export type SocketReply =
  | { readonly number: number; readonly failure?: string; readonly done?: boolean }
  | { readonly arrived: string }

const limit_ms = 10_000
const mostAtATime = 128

export function userSocketsOf(account: Account): UserSockets {
  return credentialsFor(account) ? socketsOfChild(account) : localSockets()
}

export function localSockets(): UserSockets {
  const servers = new Map<string, net.Server>()
  const stop = async (file: string): Promise<boolean> => {
    const server = servers.get(file)
    if (!server) return false
    servers.delete(file)
    // Open connections may stay, so nobody waits for the end. Closing unlinks the file.
    server.close()
    await unlink(file).catch(() => undefined)
    return true
  }
  return {
    async connect(file) {
      return new Promise((resolve, reject) => {
        const socket = net.connect({ path: file, allowHalfOpen: true })
        // Nothing is read before the socket has its new owner.
        socket.pause()
        socket.once('error', reject)
        socket.once('connect', () => resolve(socket))
      })
    },
    async listen(file, arrived) {
      if (servers.has(file))
        throw Object.assign(new Error('This path is already in use.'), { code: 'EADDRINUSE' })
      const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, arrived)
      server.maxConnections = mostAtATime
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(file, resolve)
      })
      servers.set(file, server)
    },
    stop,
    async [Symbol.asyncDispose]() {
      for (const file of servers.keys()) await stop(file)
    },
  }
}

function socketsOfChild(account: Account): UserSockets {
  let child: ChildProcess | undefined
  let next = 0
  const waiting = new Map<
    number,
    { resolve: (socket?: net.Socket) => void; reject: (error: Error) => void }
  >()
  const arrivals = new Map<string, (socket: net.Socket) => void>()

  const start = (): ChildProcess => {
    const { file, args, env } = ownProgram('user-sockets-child', formatCredentials(account))
    const started = spawn(file, args, {
      cwd: '/',
      env: { ...compileCache(), ...env },
      stdio: stdioWith(['ignore', 'ignore', 'ignore', 'ipc']),
    })
    started.on('message', (report: SocketReply, handle: unknown) => {
      const socket = handle instanceof net.Socket ? handle : undefined
      if (socket) {
        socket.allowHalfOpen = true
        socket.on('error', () => undefined)
      }
      if ('arrived' in report) {
        const taker = arrivals.get(report.arrived)
        if (taker && socket) taker(socket)
        else socket?.destroy()
        return
      }
      const asked = waiting.get(report.number)
      waiting.delete(report.number)
      if (!asked) socket?.destroy()
      else if (report.failure === undefined) asked.resolve(socket)
      else asked.reject(Object.assign(new Error('The request failed.'), { code: report.failure }))
    })
    const gone = (): void => {
      if (child === started) child = undefined
      arrivals.clear()
      for (const asked of waiting.values()) asked.reject(new Error('The child is gone.'))
      waiting.clear()
    }
    started.once('error', gone)
    started.once('exit', gone)
    return started
  }

  const ask = async (action: SocketRequest['action'], file: string): Promise<net.Socket | undefined> => {
    child ??= start()
    const number = (next += 1)
    const asked = Promise.withResolvers<net.Socket | undefined>()
    const limit = setTimeout(() => asked.reject(new Error('The request took too long.')), limit_ms)
    waiting.set(number, asked)
    child.send({ number, action, file } satisfies SocketRequest, (error) => error && asked.reject(error))
    return asked.promise.finally(() => {
      clearTimeout(limit)
      waiting.delete(number)
    })
  }

  return {
    async connect(file) {
      const socket = await ask('connect', file)
      if (!socket) throw new Error('The child sent no socket.')
      return socket
    },
    async listen(file, arrived) {
      if (arrivals.has(file))
        throw Object.assign(new Error('This path is already in use.'), { code: 'EADDRINUSE' })
      arrivals.set(file, arrived)
      await ask('listen', file).catch((error: unknown) => {
        arrivals.delete(file)
        throw error
      })
    },
    async stop(file) {
      if (!arrivals.delete(file)) return false
      await ask('stop', file)
      return true
    },
    async [Symbol.asyncDispose]() {
      const ending = child
      if (!ending) return
      const ended = new Promise<void>((resolve) => void ending.once('exit', () => resolve()))
      // The child removes its sockets and ends when we disconnect.
      if (ending.connected) ending.disconnect()
      const limit = setTimeout(() => ending.kill('SIGKILL'), limit_ms)
      await ended
      clearTimeout(limit)
    },
  }
}

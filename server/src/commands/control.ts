// The control socket, by which the administrator's commands reach a running server. It is in the data folder,
// and only the owner of the process can open it; there is no other credential. One JSON line goes in, one
// comes out:
//   → {"words": "user create", "given": ["ann", …]}
//   ← {"lines": [...]} or {"failure": "sentence"}
import { chmodSync, closeSync, constants, openSync, rmSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { Failure } from '@hawser/contract/failures'
import { runCommand, type Parsed } from './admin.ts'
import type { Log } from '../kit/log.ts'
import type { Rooms } from '../compose/rooms.ts'

const longest_line = 1024 * 1024

/** A socket's path may have about a hundred bytes; through a handle on its folder it is always short enough. */
function shortPath(folder: string): { path: string } & Disposable {
  const handle = openSync(folder, constants.O_DIRECTORY | constants.O_RDONLY)
  return { path: `/proc/self/fd/${handle}/control.sock`, [Symbol.dispose]: () => closeSync(handle) }
}

export async function serveControl(folder: string, rooms: Rooms, log: Log): Promise<AsyncDisposable> {
  const file = path.join(folder, 'control.sock')
  rmSync(file, { force: true })
  /** Connections that have not sent a command yet; a server that stops does not wait for them. */
  const silent = new Set<net.Socket>()
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    socket.setTimeout(60_000, () => socket.destroy())
    silent.add(socket)
    socket.on('close', () => silent.delete(socket))
    void answer(socket)
  })
  async function answer(socket: net.Socket): Promise<void> {
    const reply = (body: object): void => void socket.end(`${JSON.stringify(body)}\n`)
    try {
      const command = JSON.parse(await firstLine(socket)) as Parsed
      silent.delete(socket)
      const lines = await runCommand(rooms, command)
      log.info({ event: 'admin.ran', command: command.words })
      reply({ lines })
    } catch (error) {
      if (!(error instanceof Failure)) log.error({ event: 'admin.failed', err: error })
      reply({ failure: sentence(error) })
    }
  }
  // The umask keeps others out even between the creation of the socket and the chmod.
  const before = process.umask(0o177)
  try {
    using short = shortPath(folder)
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(short.path, resolve))
  } finally {
    process.umask(before)
  }
  chmodSync(file, 0o600)
  return {
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of silent) socket.destroy()
      await closed
      rmSync(file, { force: true })
    },
  }
}

export function sentence(error: unknown): string {
  if (!(error instanceof Failure)) return error instanceof Error ? error.message : String(error)
  return error.fields ? `${error.message} ${error.fields.join(', ')}` : error.message
}

function firstLine(socket: net.Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => {
      text += chunk
      const end = text.indexOf('\n')
      if (end >= 0) resolve(text.slice(0, end))
      else if (text.length > longest_line) reject(new Error('the line is too long'))
    })
    socket.on('end', () => reject(new Error('the line was broken off')))
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the connection was closed')))
  })
}

/** Undefined when no server runs on this data folder. */
async function connect(folder: string): Promise<net.Socket | undefined> {
  try {
    using short = shortPath(folder)
    return await new Promise<net.Socket>((resolve, reject) => {
      const connecting = net.connect(short.path, () => resolve(connecting))
      connecting.once('error', reject)
    })
  } catch {
    return undefined
  }
}

export async function isServed(folder: string): Promise<boolean> {
  const socket = await connect(folder)
  socket?.destroy()
  return socket !== undefined
}

/** Undefined when no server runs on this data folder. */
export async function askServer(
  folder: string,
  command: Parsed,
): Promise<{ lines: string[] } | { failure: string } | undefined> {
  const socket = await connect(folder)
  if (!socket) return undefined
  socket.write(`${JSON.stringify(command)}\n`)
  return JSON.parse(await firstLine(socket)) as { lines: string[] } | { failure: string }
}

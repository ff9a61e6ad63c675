// A program in a container, by the engine's exec API: started, its input and outputs, its terminal's size,
// how it ended. Without a terminal the engine sends both outputs on one connection, in frames:
//   byte stream (1 standard output, 2 errors), three bytes of nothing, uint32 length, then that many bytes
// Frames are handed on as their bytes come, never put together. Reading is what keeps the engine sending, so
// that a slow reader slows the program.
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineFailure, type EngineClient } from './client.ts'

export interface ExecRequest {
  readonly container: string
  readonly command: readonly string[]
  /** A name or number that the container knows. */
  readonly user: string
  readonly env?: Readonly<Record<string, string>>
  readonly terminal?: { readonly columns: number; readonly rows: number } | undefined
}

export interface Output {
  /** 0: standard output, 1: errors. */
  readonly stream: 0 | 1
  readonly bytes: Buffer
}

export interface Exec {
  /** Can be read once. Ends with the program, and also when the engine is lost: `exit` knows. */
  readonly output: AsyncIterable<Output>
  /** Resolves when there is room for more; false: the program no longer reads. */
  write(bytes: Uint8Array): Promise<boolean>
  endInput(): void
  resize(size: { readonly columns: number; readonly rows: number }): Promise<void>
  /** The status, after the output has ended. Throws an EngineFailure when it can no longer be found out. */
  exit(): Promise<number>
  /** Closes the connection; the program may continue. */
  close(): void
}

/** Between the end of a program's output and its status. */
const ending_ms = 10_000
/** The engine takes sizes only once the program runs. */
const resizeTries = 5

export async function startExec(
  client: EngineClient,
  request: ExecRequest,
  signal: AbortSignal,
): Promise<Exec> {
  const { terminal } = request
  const created = await client.json('POST', `/containers/${request.container}/exec`, {
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: terminal !== undefined,
    User: request.user,
    Env: Object.entries(request.env ?? {}).map(([name, value]) => `${name}=${value}`),
    Cmd: request.command,
  })
  const { Id: id = '' } = (created ?? {}) as { Id?: string }
  if (!/^[0-9a-f]{1,128}$/.test(id)) throw new EngineFailure('What answers there is not a container engine.')
  const size = terminal ? { ConsoleSize: [terminal.rows, terminal.columns] } : {}
  const socket = await client.hijack(
    `/exec/${id}/start`,
    { Detach: false, Tty: terminal !== undefined, ...size },
    signal,
  )
  socket.on('error', () => undefined)

  async function resize({
    columns,
    rows,
  }: {
    readonly columns: number
    readonly rows: number
  }): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await client.json('POST', `/exec/${id}/resize?h=${rows}&w=${columns}`)
        return
      } catch (error) {
        if (
          attempt === resizeTries ||
          socket.destroyed ||
          !(error instanceof EngineFailure) ||
          error.status === 0
        )
          return
        await sleep(20 * attempt)
      }
    }
  }
  if (terminal) void resize(terminal)

  return {
    output: terminal ? plain(socket) : frames(socket),
    async write(bytes) {
      if (socket.destroyed || socket.writableEnded) return false
      return new Promise((resolve) => {
        const gone = (): void => resolve(false)
        socket.once('close', gone)
        socket.write(bytes, (error) => {
          socket.off('close', gone)
          resolve(!error)
        })
      })
    },
    endInput() {
      if (!socket.destroyed) socket.end()
    },
    resize,
    async exit() {
      const late = performance.now() + ending_ms
      for (let wait_ms = 5; ; wait_ms = Math.min(wait_ms * 2, 200)) {
        const { Running, ExitCode } = (await client.json('GET', `/exec/${id}/json`)) as {
          Running?: unknown
          ExitCode?: unknown
        }
        if (Running === false && typeof ExitCode === 'number') return ExitCode & 0xff
        if (performance.now() > late)
          throw new EngineFailure('The engine did not report how the program ended.')
        await sleep(wait_ms)
      }
    },
    close: () => void socket.destroy(),
  }
}

async function* plain(socket: Duplex): AsyncGenerator<Output> {
  try {
    for await (const bytes of socket as AsyncIterable<Buffer>) yield { stream: 0, bytes }
  } catch {
    // Lost: `exit` reports it.
  }
}

const head_bytes = 8

async function* frames(socket: Duplex): AsyncGenerator<Output> {
  const head = Buffer.alloc(head_bytes)
  let filled = 0
  let left = 0
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      for (let at = 0; at < chunk.length;) {
        if (left === 0) {
          const copied = chunk.copy(head, filled, at)
          filled += copied
          at += copied
          if (filled < head_bytes) break
          filled = 0
          left = head.readUInt32BE(4)
          continue
        }
        const bytes = chunk.subarray(at, at + left)
        at += bytes.length
        left -= bytes.length
        yield { stream: head[0] === 1 ? 0 : 1, bytes }
      }
    }
  } catch {
    // Lost: `exit` reports it.
  }
}

// Files beside a terminal, on a WebSocket of their own: a folder is listed, a file comes or goes, one wish
// after the other (contract/src/terminals.ts says what is spoken). Nothing is held but what is on its way: a
// download is read from the device no faster than the browser takes it, an upload from the browser no faster
// than the device does, and the browser is told how far it is.
import { Failure } from '@hawser/contract/failures'
import { mostUntaken_bytes, type FileNews, type FileRequest } from '@hawser/contract/terminals'
import type { Terminal } from '../gateway/terminal.ts'
import type { Message, MessageSocket } from './message-socket.ts'

export type RemoteFiles = Awaited<ReturnType<Terminal['files']>>

const longestPath = 4_096
const mostWish_bytes = 16_384
/** The browser hears of an upload's progress in steps of this. */
const step_bytes = mostUntaken_bytes / 8

export interface TerminalFiles {
  files(): Promise<RemoteFiles>
  /** When the terminal is over, and its files with it. */
  readonly ended: Promise<unknown>
}

export async function serveFiles(line: MessageSocket, { files, ended }: TerminalFiles): Promise<void> {
  await using remote = await files()
  const over = ended.then((): never => {
    throw new Failure('unavailable', { message: 'The terminal is closed.' })
  })
  // A wish that is under way learns of it from the device.
  over.catch(() => undefined)
  const say = async (news: FileNews): Promise<void> => line.send(JSON.stringify(news))
  for (;;) {
    const message = await Promise.race([line.next(), over])
    if (!message) return
    const wish = wishOf(message)
    if (wish.kind === 'get') await get(wish.path)
    else if (wish.kind === 'put') await put(wish)
    else await answer(wish)
  }

  /** A wish that is answered by one message. */
  async function answer(wish: Exclude<FileRequest, { kind: 'get' | 'put' }>): Promise<void> {
    try {
      if (wish.kind === 'list') {
        using folder = await remote.list(wish.path)
        const { path, entries, more } = folder
        return await say({ kind: 'folder', path, entries, more })
      }
      if (wish.kind === 'make') await remote.makeFolder(wish.path)
      else if (wish.kind === 'move') await remote.move(wish.path, wish.to)
      else await remote.remove(wish.path)
      await say({ kind: 'done' })
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      await say({ kind: 'error', message: error.message })
    }
  }

  async function get(path: string): Promise<void> {
    const { size, changed_at, bytes } = await remote.read(path)
    await say({ kind: 'file', size, changed_at })
    let left = false
    void line.closed.then(() => (left = true))
    for await (const piece of bytes) {
      await line.send(piece)
      if (left) return
    }
    await say({ kind: 'end' })
  }

  async function put(wish: FileRequest & { kind: 'put' }): Promise<void> {
    const { path, size } = wish
    async function* incoming(from: number): AsyncGenerator<Buffer> {
      // Asked for the first time when the file is open there.
      await say({ kind: 'ready', from })
      let taken = from
      let told = from
      while (taken < size) {
        const message = await line.next()
        // Lost, not stopped.
        if (!message) return
        if (isStop(message)) throw new UploadStopped()
        if (!message.binary || message.bytes.length === 0 || taken + message.bytes.length > size)
          throw notUnderstood()
        yield message.bytes
        taken += message.bytes.length
        if (taken - told < step_bytes && taken < size) continue
        told = taken
        await say({ kind: 'taken', bytes: taken })
      }
    }
    try {
      await remote.write(path, incoming, { ...wish, id: wish.upload })
    } catch (error) {
      if (error instanceof UploadStopped) return say({ kind: 'stopped' })
      if (!(error instanceof Failure) || error.kind !== 'conflict') throw error
      // The file is as it was: the person is asked, and may wish it again.
      return say({ kind: 'error', message: error.message, exists: true })
    }
    await say({ kind: 'done' })
  }
}

/** The person stopped an upload. */
class UploadStopped extends Error {}

const isStop = ({ bytes, binary }: Message): boolean =>
  !binary && bytes.length < 64 && bytes.toString() === '{"kind":"stop"}'

const notUnderstood = (): Failure =>
  new Failure('invalid', { message: 'A message of the browser was not understood.' })

function wishOf({ bytes, binary }: Message): FileRequest {
  if (binary || bytes.length > mostWish_bytes) throw notUnderstood()
  let given: Readonly<Record<string, unknown>>
  try {
    given = (JSON.parse(bytes.toString()) ?? {}) as typeof given
  } catch {
    throw notUnderstood()
  }
  const { kind, path, to } = given
  if (!isPath(path)) throw notUnderstood()
  if (kind === 'list') return { kind, path }
  if (path === '') throw notUnderstood()
  if (kind === 'get' || kind === 'make' || kind === 'remove') return { kind, path }
  if (kind === 'move' && isPath(to) && to !== '') return { kind, path, to }
  if (kind === 'put') return { kind, path, ...putOf(given) }
  throw notUnderstood()
}

const isPath = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= longestPath && !value.includes('\0')
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

function putOf({ size, replace, expected, upload }: Readonly<Record<string, unknown>>) {
  const isName = (value: unknown): value is string => typeof value === 'string' && /^[\w-]{8,64}$/.test(value)
  if (!isCount(size) || (upload !== undefined && !isName(upload))) throw notUnderstood()
  return { size, replace: replace === true, expected: expectedOf(expected), upload }
}

function expectedOf(given: unknown): { size: number; changed_at: number } | undefined {
  if (given === undefined) return undefined
  const { size, changed_at } = (given ?? {}) as Record<string, unknown>
  if (!isCount(size) || !isCount(changed_at)) throw notUnderstood()
  return { size, changed_at }
}

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
    if (wish.kind === 'list') await list(wish.path)
    else if (wish.kind === 'get') await get(wish.path)
    else await put(wish)
  }

  async function list(path: string): Promise<void> {
    try {
      await say({ kind: 'folder', ...(await remote.list(path)) })
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      await say({ kind: 'error', message: error.message })
    }
  }

  async function get(path: string): Promise<void> {
    const { size, bytes } = await remote.read(path)
    await say({ kind: 'file', size })
    let left = false
    void line.closed.then(() => (left = true))
    for await (const piece of bytes) {
      await line.send(piece)
      if (left) return
    }
    await say({ kind: 'end' })
  }

  async function put({ path, size, replace }: FileRequest & { kind: 'put' }): Promise<void> {
    async function* incoming(): AsyncGenerator<Buffer> {
      // Asked for the first time when the file is open there.
      await say({ kind: 'ready' })
      let taken = 0
      let told = 0
      while (taken < size) {
        const message = await line.next()
        if (!message) throw new Failure('invalid', { message: 'The upload was given up.' })
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
      await remote.write(path, incoming(), { replace })
    } catch (error) {
      if (!(error instanceof Failure) || error.kind !== 'conflict') throw error
      // Nothing has begun: the person is asked, and may wish it again.
      return say({ kind: 'error', message: error.message, exists: true })
    }
    await say({ kind: 'done' })
  }
}

const notUnderstood = (): Failure =>
  new Failure('invalid', { message: 'A message of the browser was not understood.' })

function wishOf({ bytes, binary }: Message): FileRequest {
  if (binary || bytes.length > mostWish_bytes) throw notUnderstood()
  let given: Partial<Record<'kind' | 'path' | 'size' | 'replace', unknown>>
  try {
    given = JSON.parse(bytes.toString()) as typeof given
  } catch {
    throw notUnderstood()
  }
  const { kind, path, size, replace } = given ?? {}
  if (typeof path !== 'string' || path.length > longestPath || path.includes('\0')) throw notUnderstood()
  if (kind === 'list' || (kind === 'get' && path !== '')) return { kind, path }
  if (kind === 'put' && path !== '' && Number.isSafeInteger(size) && (size as number) >= 0)
    return { kind, path, size: size as number, replace: replace === true }
  throw notUnderstood()
}

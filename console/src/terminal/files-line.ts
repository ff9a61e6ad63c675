// Files beside an open terminal, each transfer on a line of its own (contract/terminals.ts says what is
// spoken): so that a large one does not hold up a look into a folder. Progress is what the device has taken,
// not what this page has sent.
import { mostUntaken_bytes, piece_bytes, type FileNews, type FileWish } from '@hawser/contract/terminals'
import { api } from '../api.ts'
import { Told } from '../parts/told.ts'
import { NotOpened, socketAt } from './line.ts'

export type Folder = FileNews & { kind: 'folder' }

/** What the server says of a wish, or cannot do. */
export class FileTrouble extends Told {
  override readonly name = 'FileTrouble'
  /** There is a file of that name; it can be replaced if that is wished for. */
  readonly exists: boolean
  constructor(message: string, exists = false) {
    super(message)
    this.exists = exists
  }
}

const away = 'The terminal, and with it the way to its files, is closed.'

/** Message by message. */
interface Line {
  wish(wish: FileWish): void
  send(bytes: Uint8Array<ArrayBuffer>): void
  next(): Promise<FileNews | Uint8Array<ArrayBuffer>>
  close(): void
}

async function openFiles(session: string, signal?: AbortSignal): Promise<Line> {
  const { token } = (await api.terminals.files({ body: { session } })).body
  const socket = socketAt(token)
  socket.binaryType = 'arraybuffer'
  const waiting: (FileNews | Uint8Array<ArrayBuffer>)[] = []
  let taker: PromiseWithResolvers<FileNews | Uint8Array<ArrayBuffer>> | undefined
  let over = false
  const opened = Promise.withResolvers<void>()
  socket.addEventListener('open', () => opened.resolve())
  socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
    const news = typeof data === 'string' ? (JSON.parse(data) as FileNews) : new Uint8Array(data)
    if (taker) taker.resolve(news)
    else waiting.push(news)
    taker = undefined
  })
  socket.addEventListener('close', () => {
    over = true
    opened.reject(new NotOpened(away))
    taker?.reject(new FileTrouble(away))
  })
  signal?.addEventListener('abort', () => socket.close(), { once: true })
  await opened.promise
  return {
    wish: (wish) => socket.send(JSON.stringify(wish)),
    send(bytes) {
      signal?.throwIfAborted()
      // What the server said before it left is read next.
      if (socket.readyState === WebSocket.OPEN) socket.send(bytes)
    },
    async next() {
      signal?.throwIfAborted()
      const first = waiting.shift()
      if (first) return first
      if (over) throw new FileTrouble(away)
      taker = Promise.withResolvers()
      return taker.promise.catch((error: unknown) => {
        signal?.throwIfAborted()
        throw error
      })
    },
    close: () => socket.close(),
  }
}

/** The next news that are of this kind; an error is thrown. */
async function expecting<K extends FileNews['kind']>(line: Line, kind: K): Promise<FileNews & { kind: K }> {
  const news = await line.next()
  if (news instanceof Uint8Array) throw new FileTrouble('The server sent something else than was asked for.')
  if (news.kind === 'error') throw new FileTrouble(news.message, news.exists ?? false)
  if (news.kind !== kind) throw new FileTrouble('The server sent something else than was asked for.')
  return news as FileNews & { kind: K }
}

export async function listFolder(session: string, path: string): Promise<Folder> {
  const line = await openFiles(session)
  try {
    line.wish({ kind: 'list', path })
    return await expecting(line, 'folder')
  } finally {
    line.close()
  }
}

type Progress = (bytes: number, of: number) => void

export async function download(
  session: string,
  path: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<Blob> {
  const line = await openFiles(session, signal)
  try {
    line.wish({ kind: 'get', path })
    const { size } = await expecting(line, 'file')
    const pieces: Uint8Array<ArrayBuffer>[] = []
    let got = 0
    for (;;) {
      const news = await line.next()
      if (news instanceof Uint8Array) {
        pieces.push(news)
        got += news.length
        progress(got, Math.max(size, got))
      } else if (news.kind === 'end') return new Blob(pieces)
      else
        throw new FileTrouble(
          news.kind === 'error' ? news.message : 'The server sent something else than was asked for.',
        )
    }
  } finally {
    line.close()
  }
}

export async function upload(
  session: string,
  path: string,
  file: Blob,
  replace: boolean,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const line = await openFiles(session, signal)
  try {
    line.wish({ kind: 'put', path, size: file.size, replace })
    await expecting(line, 'ready')
    let sent = 0
    let taken = 0
    while (sent < file.size) {
      const piece = new Uint8Array(await file.slice(sent, sent + piece_bytes).arrayBuffer())
      line.send(piece)
      sent += piece.length
      while (sent - taken > mostUntaken_bytes - piece_bytes) {
        taken = (await expecting(line, 'taken')).bytes
        progress(taken, file.size)
      }
    }
    while (taken < file.size) {
      taken = (await expecting(line, 'taken')).bytes
      progress(taken, file.size)
    }
    await expecting(line, 'done')
  } finally {
    line.close()
  }
}

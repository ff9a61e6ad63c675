// Files beside an open terminal (contract/src/terminals.ts describes the messages). Each transfer has a
// connection of its own, so that a large one does not block the listing of a folder. Progress counts what the
// device has taken, not what this page has sent.
import { mostUntaken_bytes, piece_bytes, type FileNews, type FileRequest } from '@hawser/contract/terminals'
import { api } from '../api.ts'
import { UserError } from '../error-text.ts'
import { OpenError, socketAt } from './connection.ts'

export type Folder = FileNews & { kind: 'folder' }

/** A file operation that failed. */
export class FileError extends UserError {
  override readonly name = 'FileTrouble'
  /** A file of that name exists; the person may choose to replace it. */
  readonly exists: boolean
  constructor(message: string, exists = false) {
    super(message)
    this.exists = exists
  }
}

const away = 'The terminal is closed, and with it the access to its files.'

/** One WebSocket for file operations, read message by message. */
interface FilesConnection {
  wish(wish: FileRequest): void
  send(bytes: Uint8Array<ArrayBuffer>): void
  next(): Promise<FileNews | Uint8Array<ArrayBuffer>>
  close(): void
}

async function openFiles(session: string, signal?: AbortSignal): Promise<FilesConnection> {
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
    opened.reject(new OpenError(away))
    taker?.reject(new FileError(away))
  })
  signal?.addEventListener('abort', () => socket.close(), { once: true })
  await opened.promise
  return {
    wish: (wish) => socket.send(JSON.stringify(wish)),
    send(bytes) {
      signal?.throwIfAborted()
      // When it is closed, `next` gives the last message of the server.
      if (socket.readyState === WebSocket.OPEN) socket.send(bytes)
    },
    async next() {
      signal?.throwIfAborted()
      const first = waiting.shift()
      if (first) return first
      if (over) throw new FileError(away)
      taker = Promise.withResolvers()
      return taker.promise.catch((error: unknown) => {
        signal?.throwIfAborted()
        throw error
      })
    },
    close: () => socket.close(),
  }
}

/** The next message, which must be of this kind; throws an error message. */
async function expecting<K extends FileNews['kind']>(
  connection: FilesConnection,
  kind: K,
): Promise<FileNews & { kind: K }> {
  const news = await connection.next()
  if (news instanceof Uint8Array) throw new FileError('The server sent something else than was asked for.')
  if (news.kind === 'error') throw new FileError(news.message, news.exists ?? false)
  if (news.kind !== kind) throw new FileError('The server sent something else than was asked for.')
  return news as FileNews & { kind: K }
}

export async function listFolder(session: string, path: string): Promise<Folder> {
  const connection = await openFiles(session)
  try {
    connection.wish({ kind: 'list', path })
    return await expecting(connection, 'folder')
  } finally {
    connection.close()
  }
}

type Progress = (bytes: number, of: number) => void

export async function download(
  session: string,
  path: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<Blob> {
  const connection = await openFiles(session, signal)
  try {
    connection.wish({ kind: 'get', path })
    const { size } = await expecting(connection, 'file')
    const pieces: Uint8Array<ArrayBuffer>[] = []
    let got = 0
    for (;;) {
      const news = await connection.next()
      if (news instanceof Uint8Array) {
        pieces.push(news)
        got += news.length
        progress(got, Math.max(size, got))
      } else if (news.kind === 'end') return new Blob(pieces)
      else
        throw new FileError(
          news.kind === 'error' ? news.message : 'The server sent something else than was asked for.',
        )
    }
  } finally {
    connection.close()
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
  const connection = await openFiles(session, signal)
  try {
    connection.wish({ kind: 'put', path, size: file.size, replace })
    await expecting(connection, 'ready')
    let sent = 0
    let taken = 0
    while (sent < file.size) {
      const piece = new Uint8Array(await file.slice(sent, sent + piece_bytes).arrayBuffer())
      connection.send(piece)
      sent += piece.length
      while (sent - taken > mostUntaken_bytes - piece_bytes) {
        taken = (await expecting(connection, 'taken')).bytes
        progress(taken, file.size)
      }
    }
    while (taken < file.size) {
      taken = (await expecting(connection, 'taken')).bytes
      progress(taken, file.size)
    }
    await expecting(connection, 'done')
  } finally {
    connection.close()
  }
}

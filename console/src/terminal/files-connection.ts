// Files next to an open terminal (contract/src/terminals.ts describes the messages). Each transfer has a
// connection of its own, so that a large one does not block the listing of a folder. Progress counts what the
// device has taken, not what this page has sent.
import { defined } from '@hawser/contract/defined'
import {
  mostUntaken_bytes,
  piece_bytes,
  terminalPath,
  type FileNews,
  type FileRequest,
} from '@hawser/contract/terminals'
import { ApiError } from '@hawser/contract/client'
import { api } from '../api.ts'
import { UserError } from '../error-text.ts'
import { OpenError } from './connection.ts'
import { webSocketAt } from './terminal-socket.ts'
import { msg, t } from '../language/language.ts'

export type Folder = FileNews & { kind: 'folder' }

export class FileError extends UserError {
  override readonly name: string = 'FileTrouble'
  /** A file of that name exists; the person may replace it. */
  readonly exists: boolean
  constructor(message: string, exists = false) {
    super(message)
    this.exists = exists
  }
}

/** The connection was lost; the terminal may still be there. */
class LineLost extends FileError {
  override readonly name = 'LineLost'
}

const away = msg('The terminal is closed, so its files are no longer accessible.')

interface FilesConnection {
  wish(wish: FileRequest): void
  send(bytes: Uint8Array<ArrayBuffer>): void
  next(): Promise<FileNews | Uint8Array<ArrayBuffer>>
  close(): void
}

async function openFiles(session: string, signal?: AbortSignal): Promise<FilesConnection> {
  const { token } = (await api.terminals.files({ body: { session } })).body
  const socket = webSocketAt(terminalPath, { token })
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
    opened.reject(new OpenError(t(away)))
    taker?.reject(new LineLost(t(away)))
  })
  signal?.addEventListener(
    'abort',
    () => {
      // Sent so that the server does not wait for the rest.
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ kind: 'stop' }))
      socket.close()
    },
    { once: true },
  )
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
      if (over) throw new LineLost(t(away))
      taker = Promise.withResolvers()
      return taker.promise.catch((error: unknown) => {
        signal?.throwIfAborted()
        throw error
      })
    },
    close: () => socket.close(),
  }
}

/** Throws an error message, and for another kind. */
async function expecting<K extends FileNews['kind']>(
  connection: FilesConnection,
  kind: K,
): Promise<FileNews & { kind: K }> {
  const news = await connection.next()
  if (news instanceof Uint8Array) throw new FileError(t('The server sent an unexpected response.'))
  if (news.kind === 'error') throw new FileError(t(news.message), news.exists ?? false)
  if (news.kind !== kind) throw new FileError(t('The server sent an unexpected response.'))
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

export async function changeFiles(
  session: string,
  wish: FileRequest & { kind: 'make' | 'move' | 'remove' },
): Promise<void> {
  const connection = await openFiles(session)
  try {
    connection.wish(wish)
    await expecting(connection, 'done')
  } finally {
    connection.close()
  }
}

/** Makes a folder unless there is one. */
export async function makeFolder(session: string, path: string): Promise<void> {
  try {
    await changeFiles(session, { kind: 'make', path })
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    // A folder that is there already is no failure: the error counts only if the folder cannot be listed.
    await listFolder(session, path).catch(() => {
      throw error
    })
  }
}

/** A whole file, as it was at a moment. */
export interface ReadFile {
  readonly blob: Blob
  readonly size: number
  readonly changed_at: number
}

type Progress = (bytes: number, of: number) => void

export async function download(
  session: string,
  path: string,
  progress: Progress,
  signal: AbortSignal,
  most_bytes = Infinity,
): Promise<ReadFile> {
  const connection = await openFiles(session, signal)
  const tooLarge = (): FileError =>
    new FileError(t('The file is too large to show here. Download it instead.'))
  try {
    connection.wish({ kind: 'get', path })
    const { size, changed_at } = await expecting(connection, 'file')
    if (size > most_bytes) throw tooLarge()
    const pieces: Uint8Array<ArrayBuffer>[] = []
    let got = 0
    for (;;) {
      const news = await connection.next()
      if (news instanceof Uint8Array) {
        pieces.push(news)
        got += news.length
        // A file may grow during the download, or have no size at all.
        if (got > most_bytes) throw tooLarge()
        progress(got, Math.max(size, got))
      } else if (news.kind === 'end') return { blob: new Blob(pieces), size, changed_at }
      else
        throw new FileError(
          news.kind === 'error' ? t(news.message) : t('The server sent an unexpected response.'),
        )
    }
  } finally {
    connection.close()
  }
}

/** Nothing, any file, or only the file as it was read. */
export type Replace = boolean | { readonly size: number; readonly changed_at: number }

const firstTry_ms = 500
const lastTry_ms = 8000
/** These take most of a minute together. */
const tries = 9

/** Whether trying again may help: the server cannot be reached, or the terminal is not back yet. */
function mayPass(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === 404 || error.status === 429 || error.status >= 500
  if (error instanceof LineLost || error instanceof OpenError) return true
  // A DOMException is about the file to read.
  return !(error instanceof UserError) && !(error instanceof DOMException)
}

/** A lost connection is retried, later each time, and the upload continues. Closing the terminal stops it. */
export async function upload(
  session: string,
  path: string,
  file: Blob,
  replace: Replace,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const id = crypto.randomUUID()
  let left = tries
  let wait_ms = firstTry_ms
  let furthest = 0
  const goesOn: Progress = (bytes, of) => {
    // Sending the same bytes again is no progress.
    if (bytes > furthest) {
      furthest = bytes
      left = tries
      wait_ms = firstTry_ms
    }
    progress(bytes, of)
  }
  for (;;)
    try {
      return await uploadOnce(session, path, file, replace, goesOn, signal, id)
    } catch (error) {
      signal.throwIfAborted()
      if (!mayPass(error) || left === 0) throw error
      left -= 1
      await waited(wait_ms, signal)
      signal.throwIfAborted()
      wait_ms = Math.min(lastTry_ms, wait_ms * 2)
    }
}

const waited = async (ms: number, signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
    signal.addEventListener('abort', resolve, { once: true })
  })

async function uploadOnce(
  session: string,
  path: string,
  file: Blob,
  replace: Replace,
  progress: Progress,
  signal: AbortSignal,
  id: string,
): Promise<void> {
  const connection = await openFiles(session, signal)
  try {
    connection.wish({
      kind: 'put',
      path,
      size: file.size,
      replace: replace !== false,
      ...defined({ expected: typeof replace === 'object' ? replace : undefined }),
      upload: id,
    })
    const { from } = await expecting(connection, 'ready')
    let sent = from
    let taken = from
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

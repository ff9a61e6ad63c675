// The files of a device for a user in a browser: an SFTP client on a channel of the user's session, with its
// failures in plain words. Nothing is replaced unless the user asked for that.
import { Failure } from '@hawser/contract/failures'
import type { FolderEntry } from '@hawser/contract/terminals'
import {
  ProtocolError,
  SessionRefused,
  SftpFailure,
  Status,
  type Attributes,
  type SftpClient,
} from '@hawser/ssh'
import { safeText } from '../kit/log.ts'
import { moveTo, putFile, type Upload, type Uploads } from './uploads.ts'

export interface Folder {
  readonly path: string
  readonly entries: readonly FolderEntry[]
  /** Whether the folder has more entries than were listed. */
  readonly more: boolean
}

/** Every method throws a Failure. */
export interface RemoteFiles extends AsyncDisposable {
  /** An empty path is the user's home folder. */
  list(path: string): Promise<Folder>
  read(path: string): Promise<ReadFile>
  /** `bytes` gives what follows a position; it ends early when the browser is lost. */
  write(path: string, bytes: (from: number) => AsyncIterable<Uint8Array>, upload: Upload): Promise<void>
  makeFolder(path: string): Promise<void>
  /** The new name must be free. */
  move(path: string, to: string): Promise<void>
  /** A folder with all that is in it. */
  remove(path: string): Promise<void>
}

export interface ReadFile {
  readonly size: number
  readonly changed_at: number
  readonly bytes: AsyncIterable<Buffer>
}

const mostEntries = 5_000
/** A folder with more files and folders in it is not removed as a whole. */
const mostRemoved = 10_000
const newFolderMode = 0o755
const typeMask = 0o170_000
const types: Readonly<Record<number, FolderEntry['is']>> = {
  0o040_000: 'folder',
  0o100_000: 'file',
  0o120_000: 'link',
}

export async function remoteFiles(open: () => Promise<SftpClient>, uploads: Uploads): Promise<RemoteFiles> {
  const sftp = await plainly(open)

  async function listed(path: string): Promise<Folder> {
    const full = await sftp.resolve(path === '' ? '.' : path)
    const entries: FolderEntry[] = []
    let more = false
    for await (const { name, attributes } of sftp.list(full)) {
      if (name === '.' || name === '..') continue
      if (entries.length === mostEntries) {
        more = true
        break
      }
      entries.push({
        name,
        is: kindOf(attributes),
        size: attributes.size ?? 0,
        changed_at: attributes.mtime ?? 0,
      })
    }
    return { path: full, entries, more }
  }

  /** Looks through a folder first, so that one that is too large is left as it is. */
  async function removeFolder(top: string): Promise<void> {
    const files: string[] = []
    const folders = [top]
    for (const folder of folders)
      for await (const { name, attributes } of sftp.list(folder)) {
        if (name === '.' || name === '..') continue
        const full = `${folder.replace(/\/$/, '')}/${name}`
        ;(kindOf(attributes) === 'folder' ? folders : files).push(full)
        if (files.length + folders.length > mostRemoved)
          throw new Failure('invalid', {
            message: `The folder has more than ${mostRemoved} files: remove it in the terminal.`,
          })
      }
    for (const file of files) await sftp.remove(file)
    for (const folder of folders.toReversed()) await sftp.removeFolder(folder)
  }

  return {
    list: async (path) => plainly(async () => listed(path)),
    read: async (path) =>
      plainly(async () => {
        const there = await sftp.stat(path)
        if (kindOf(there) !== 'file')
          throw new Failure('invalid', { message: 'This is not a file that can be downloaded.' })
        return { size: there.size ?? 0, changed_at: there.mtime ?? 0, bytes: reading(sftp, path) }
      }),
    write: async (path, bytes, upload) =>
      plainly(async () =>
        uploads.run(async (over) => putFile(sftp, uploads, path, (from) => over(bytes(from)), upload)),
      ),
    makeFolder: async (path) => plainly(async () => sftp.makeFolder(path, newFolderMode)),
    move: async (path, to) => plainly(async () => moveTo(sftp, path, to)),
    remove: async (path) =>
      plainly(async () =>
        kindOf(await sftp.lstat(path)) === 'folder' ? removeFolder(path) : sftp.remove(path),
      ),
    async [Symbol.asyncDispose]() {
      try {
        await sftp[Symbol.asyncDispose]()
      } catch {
        // The session has ended before.
      }
    },
  }
}

async function* reading(sftp: SftpClient, path: string): AsyncGenerator<Buffer> {
  try {
    yield* sftp.read(path)
  } catch (error) {
    throw plain(error)
  }
}

function kindOf({ mode }: Attributes): FolderEntry['is'] {
  return types[(mode ?? 0) & typeMask] ?? 'other'
}

async function plainly<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw plain(error)
  }
}

/**
 * A device refuses in the usual two words. Any other text comes from a policy of the namespace and is shown.
 */
function deniedText(message: string): string {
  return /^permission denied$/i.test(message) ? 'permission denied.' : safeText(message)
}

function plain(error: unknown): unknown {
  if (error instanceof SessionRefused)
    return new Failure('forbidden', { message: 'The device does not let this user see files.', cause: error })
  if (error instanceof ProtocolError)
    return new Failure('unavailable', { message: 'The connection to the device was lost.', cause: error })
  if (!(error instanceof SftpFailure)) return error
  if (error.code === Status.noSuchFile)
    return new Failure('notFound', { message: 'There is no such file or folder.', cause: error })
  if (error.code === Status.permissionDenied)
    return new Failure('forbidden', {
      message: `The user may not do this there: ${deniedText(error.message)}`,
      cause: error,
    })
  return new Failure('invalid', {
    message: `The device says: ${safeText(error.message)}`,
    cause: error,
  })
}

// The files of a device for a user in a browser: an SFTP client on a channel of the user's session, with its
// failures in plain words. A new file that did not arrive whole is removed again; an existing one is replaced
// only when the user asked for that.
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
  read(path: string): Promise<{ readonly size: number; readonly bytes: AsyncIterable<Buffer> }>
  write(path: string, bytes: AsyncIterable<Uint8Array>, options: { readonly replace: boolean }): Promise<void>
}

const mostEntries = 5_000
const newFileMode = 0o644
const typeMask = 0o170_000
const types: Readonly<Record<number, FolderEntry['is']>> = {
  0o040_000: 'folder',
  0o100_000: 'file',
  0o120_000: 'link',
}

export async function remoteFiles(open: () => Promise<SftpClient>): Promise<RemoteFiles> {
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

  const find = async (path: string): Promise<Attributes | undefined> =>
    sftp.stat(path).catch((error: unknown) => {
      if (error instanceof SftpFailure && error.code === Status.noSuchFile) return undefined
      throw error
    })

  return {
    list: async (path) => plainly(async () => listed(path)),
    read: async (path) =>
      plainly(async () => {
        const there = await sftp.stat(path)
        if (kindOf(there) !== 'file')
          throw new Failure('invalid', { message: 'This is not a file that can be downloaded.' })
        return { size: there.size ?? 0, bytes: reading(sftp, path) }
      }),
    write: async (path, bytes, { replace }) =>
      plainly(async () => {
        const there = await find(path)
        if (there && kindOf(there) !== 'file')
          throw new Failure('invalid', { message: 'There is a folder of this name already.' })
        if (there && !replace)
          throw new Failure('conflict', { message: 'There is a file of this name already.' })
        try {
          await sftp.write(path, bytes, newFileMode)
        } catch (error) {
          if (!there) await sftp.remove(path).catch(() => undefined)
          throw error
        }
      }),
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
      message: 'The user may not do this there: permission denied.',
      cause: error,
    })
  return new Failure('invalid', {
    message: `The device says: ${error.message.replaceAll(/\p{Cc}/gu, ' ').slice(0, 200)}`,
    cause: error,
  })
}

// The files of a device for a user in a browser: an SFTP client on a channel of the user's session, with its
// failures in plain words. Nothing is replaced unless the user asked for that. A device may lie about its files:
// a listing is bounded by what it holds, not only by its entries, and so are all listings of a namespace together.
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
import { object_bytes, processMemory } from '@hawser/ssh/memory'
import { safeText } from '../../kit/log.ts'
import { moveTo, putFile, type Upload, type Uploads } from './uploads.ts'

/** Counts as memory of its namespace until it is disposed. */
export interface Folder extends Disposable {
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
  /** `bytes` gives the file from a position on; it ends early when the browser disconnects. */
  write(path: string, bytes: (from: number) => AsyncIterable<Uint8Array>, upload: Upload): Promise<void>
  makeFolder(path: string): Promise<void>
  /** The new name must be free. */
  move(path: string, to: string): Promise<void>
  remove(path: string): Promise<void>
}

export interface ReadFile {
  readonly size: number
  readonly changed_at: number
  readonly bytes: AsyncIterable<Buffer>
}

const mostEntries = 5_000
/** A larger folder is not removed as a whole. */
const mostRemoved = 10_000
/** The most that one listing, or one removal with all folders below, may hold. */
const mostFound_bytes = 4 * 1024 * 1024
/** The most that all listings and removals of one namespace may hold together. */
const mostOfNamespace_bytes = 16 * 1024 * 1024
/** The limit of Linux. */
const longestPath_bytes = 4_096
const newFolderMode = 0o755
const typeMask = 0o170_000
const types: Readonly<Record<number, FolderEntry['is']>> = {
  0o040_000: 'folder',
  0o100_000: 'file',
  0o120_000: 'link',
}

export async function remoteFiles(
  open: () => Promise<SftpClient>,
  uploads: Uploads,
  tenant_id: string,
): Promise<RemoteFiles> {
  const sftp = await plainly(open)

  async function listed(path: string): Promise<Folder> {
    using stack = new DisposableStack()
    const memory = stack.use(heldFor(tenant_id))
    const full = await sftp.resolve(path === '' ? '.' : path)
    const entries: FolderEntry[] = []
    let read = 0
    let more = false
    for await (const { name, attributes } of sftp.list(full)) {
      read += 1
      more = read > mostEntries + 2 || !memory.hold(shown_bytes(name))
      if (more) break
      if (name === '.' || name === '..') continue
      entries.push({
        name,
        is: kindOf(attributes),
        size: attributes.size ?? 0,
        changed_at: attributes.mtime ?? 0,
      })
    }
    const held = stack.move()
    return { path: full, entries, more, [Symbol.dispose]: () => held.dispose() }
  }

  /** Looks through the folder first, so that one that is too large is left as it is. */
  async function removeFolder(top: string): Promise<void> {
    using memory = heldFor(tenant_id)
    const files: Found[] = []
    const folders: Found[] = [{ name: top.replace(/\/$/, ''), path_bytes: Buffer.byteLength(top) }]
    for (const folder of folders)
      for await (const { name, attributes } of sftp.list(pathOf(folder) || '/')) {
        const path_bytes = folder.path_bytes + 1 + Buffer.byteLength(name)
        if (path_bytes > longestPath_bytes || !memory.hold(object_bytes + name.length * 2))
          throw new Failure('invalid', {
            message: 'The folder is too large or too deep to be removed here: remove it in the terminal.',
          })
        if (name === '.' || name === '..') continue
        ;(kindOf(attributes) === 'folder' ? folders : files).push({ name, folder, path_bytes })
        if (files.length + folders.length > mostRemoved)
          throw new Failure('invalid', {
            message: `The folder has more than ${mostRemoved} files: remove it in the terminal.`,
          })
      }
    for (const file of files) await sftp.remove(pathOf(file))
    for (const folder of folders.toReversed()) await sftp.removeFolder(pathOf(folder))
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
        // The session has already ended.
      }
    },
  }
}

/** A file or folder below one that is removed. The path is put together when it is needed. */
interface Found {
  readonly name: string
  readonly folder?: Found
  readonly path_bytes: number
}

function pathOf({ name, folder }: Found): string {
  return folder ? `${pathOf(folder)}/${name}` : name
}

/** The memory of an entry, of its name in the message to the browser, and of that message as bytes. */
function shown_bytes(name: string): number {
  return object_bytes + JSON.stringify(name).length * 4
}

interface Held extends Disposable {
  /** Counts an entry. False: the folder is too large. Throws when all listings together are. */
  hold(bytes: number): boolean
}

const namespaces = new Map<string, ReturnType<typeof openNamespace>>()

function openNamespace(tenant_id: string) {
  const state = { folders: 0, isFull: false }
  const account = processMemory.open({
    limit_bytes: mostOfNamespace_bytes,
    pause: () => void (state.isFull = true),
    resume: () => void (state.isFull = false),
    evict: () => void (state.isFull = true),
  })
  return Object.assign(state, {
    account,
    leave() {
      state.folders -= 1
      if (state.folders > 0) return
      account.close()
      namespaces.delete(tenant_id)
    },
  })
}

function heldFor(tenant_id: string): Held {
  const namespace = namespaces.get(tenant_id) ?? openNamespace(tenant_id)
  namespaces.set(tenant_id, namespace)
  namespace.folders += 1
  let held_bytes = 0
  return {
    hold(bytes) {
      held_bytes += bytes
      namespace.account.hold(bytes)
      if (namespace.isFull || namespace.account.crowded)
        throw new Failure('unavailable', {
          message: 'Too many folders of this namespace are being listed; try again in a moment.',
        })
      return held_bytes <= mostFound_bytes
    },
    [Symbol.dispose]() {
      namespace.account.release(held_bytes)
      namespace.leave()
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
    return new Failure('forbidden', { message: 'The device does not offer SFTP to this user.', cause: error })
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
  if (error.code === Status.badMessage)
    return new Failure('invalid', {
      message: `The answer of the device cannot be used: ${safeText(error.message)}`,
      cause: error,
    })
  return new Failure('invalid', { message: `The device reports: ${safeText(error.message)}`, cause: error })
}

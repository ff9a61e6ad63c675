// Uploads to a device. The bytes go into a part next to the file, which takes the file's name when it is
// complete: readers see the former file or the new one, and a stopped upload leaves the former. The part of a
// lost browser stays for a while, so that the same upload can continue; parts are known to this process only,
// because a part that somebody else made could be a trap.
import { randomBytes } from 'node:crypto'
import path from 'node:path/posix'
import { Failure } from '@hawser/contract/failures'
import { SftpFailure, Status, type Attributes, type SftpClient } from '@hawser/ssh'

export interface Upload {
  readonly size: number
  readonly replace: boolean
  /** The file that the browser saw; if it has changed since, it is not replaced. */
  readonly expected?: { readonly size: number; readonly changed_at: number } | undefined
  /** The browser's name for this upload, by which an interrupted one continues. */
  readonly id?: string | undefined
}

/** The browser was lost before all bytes arrived. Stopping an upload is another error. */
class UploadInterrupted extends Error {}

interface Part {
  readonly path: string
  readonly target: string
  readonly size: number
  readonly timer: NodeJS.Timeout
}

/** The uploads next to one terminal. */
export interface Uploads {
  /** Keeps the part of an interrupted upload, unless the terminal is left. */
  keep(id: string, part: Omit<Part, 'timer'>): boolean
  take(id: string): Omit<Part, 'timer'> | undefined
  /** `bytes` fail when the terminal is left. */
  run(upload: (over: (bytes: Bytes) => Bytes) => Promise<void>): Promise<void>
  clear(): Promise<void>
}

type Bytes = AsyncIterable<Uint8Array>

const newFileMode = 0o644
const typeMask = 0o170_000
const isFile = ({ mode = 0 }: Attributes): boolean => (mode & typeMask) === 0o100_000
const keep_ms = 10 * 60_000
const mostParts = 8
const clear_ms = 3_000
/** The end of a part that may lack bytes, and is sent again. No more is ever in flight. */
const unsure_bytes = 4 * 1024 * 1024
/** Goes into the name of the part, which may have 255 bytes at most. */
const mostNameInPart_bytes = 200

export function terminalUploads(open: () => Promise<SftpClient>): Uploads {
  const parts = new Map<string, Part>()
  const running = new Set<Promise<void>>()
  const left = Promise.withResolvers<never>()
  left.promise.catch(() => undefined)
  let isLeft = false

  async function drop(ids: readonly string[]): Promise<void> {
    const paths = ids.map((id) => parts.get(id)!.path)
    for (const id of ids) {
      clearTimeout(parts.get(id)!.timer)
      parts.delete(id)
    }
    await using sftp = await open()
    for (const part of paths) await sftp.remove(part).catch(() => undefined)
  }
  const dropQuietly = async (ids: readonly string[]): Promise<void> => {
    if (ids.length > 0) await drop(ids).catch(() => undefined)
  }
  async function* over(bytes: Bytes): AsyncGenerator<Uint8Array> {
    const source = bytes[Symbol.asyncIterator]()
    for (;;) {
      const next = await Promise.race([source.next(), left.promise])
      if (next.done) return
      yield next.value
    }
  }
  return {
    keep(id, part) {
      if (isLeft) return false
      void dropQuietly([...parts.keys()].slice(0, Math.max(0, parts.size + 1 - mostParts)))
      parts.set(id, { ...part, timer: setTimeout(() => void dropQuietly([id]), keep_ms).unref() })
      return true
    },
    take(id) {
      const found = parts.get(id)
      clearTimeout(found?.timer)
      parts.delete(id)
      return found
    },
    async run(upload) {
      const done = upload(over)
      const settled = done.catch(() => undefined)
      running.add(settled)
      void settled.then(() => running.delete(settled))
      return done
    },
    async clear() {
      isLeft = true
      left.reject(new Failure('unavailable', { message: 'The terminal is closed.' }))
      if (running.size === 0 && parts.size === 0) return
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, clear_ms)))
      await Promise.race([Promise.all([...running, dropQuietly([...parts.keys()])]), late])
      clearTimeout(timer)
    },
  }
}

/** `bytes` gives what follows a position, which is not 0 when an interrupted upload continues. */
export async function putFile(
  sftp: SftpClient,
  uploads: Uploads,
  name: string,
  bytes: (from: number) => Bytes,
  upload: Upload,
): Promise<void> {
  const there = await find(sftp, name)
  requireFree(there, upload)
  // The target of a link is the file that is meant.
  const target = there ? await sftp.resolve(name) : name
  const kept = upload.id === undefined ? undefined : uploads.take(upload.id)
  const { part, from } = await partOf(sftp, kept, target, upload)
  const mode = (there?.mode ?? newFileMode) & 0o777
  try {
    await sftp
      .write(part, whole(bytes(from), upload.size - from), mode, from > 0 ? { from } : { fresh: true })
      .catch(explained)
    if (there) await keepRights(sftp, part, there)
    await moveInto(sftp, part, target, name, upload)
  } catch (error) {
    const { id, size } = upload
    const isKept =
      error instanceof UploadInterrupted && id !== undefined && uploads.keep(id, { path: part, target, size })
    if (!isKept) await sftp.remove(part).catch(() => undefined)
    if (error instanceof UploadInterrupted)
      throw new Failure('unavailable', { message: 'The upload was interrupted.' })
    throw error
  }
}

async function* whole(bytes: Bytes, size: number): AsyncGenerator<Uint8Array> {
  let missing = size
  for await (const piece of bytes) {
    missing -= piece.length
    yield piece
  }
  if (missing > 0) throw new UploadInterrupted()
}

async function partOf(
  sftp: SftpClient,
  kept: Omit<Part, 'timer'> | undefined,
  target: string,
  { size }: Upload,
): Promise<{ part: string; from: number }> {
  if (kept && kept.target === target && kept.size === size) {
    const found = await sftp.lstat(kept.path).catch(() => undefined)
    const from = Math.max(0, Math.min(found?.size ?? 0, size) - unsure_bytes)
    if (found && isFile(found) && from > 0) return { part: kept.path, from }
  }
  if (kept) await sftp.remove(kept.path).catch(() => undefined)
  const name = Buffer.from(path.basename(target)).subarray(0, mostNameInPart_bytes).toString()
  const part = `.${name.replaceAll('\uFFFD', '')}.${randomBytes(4).toString('hex')}.part`
  return { part: path.join(path.dirname(target), part), from: 0 }
}

/** A folder that takes no new file is the usual reason, so the sentence names it. */
function explained(error: unknown): never {
  if (error instanceof SftpFailure && error.code === Status.permissionDenied)
    throw new Failure('forbidden', {
      message: 'You do not have permission to create files in this folder.',
      cause: error,
    })
  throw error
}

/** The owner only where the user may give files away. */
async function keepRights(sftp: SftpClient, part: string, { mode, uid, gid }: Attributes): Promise<void> {
  if (uid !== undefined && gid !== undefined) await sftp.change(part, { uid, gid }).catch(() => undefined)
  if (mode !== undefined) await sftp.change(part, { mode: mode & 0o777 })
}

async function moveInto(
  sftp: SftpClient,
  part: string,
  target: string,
  name: string,
  upload: Upload,
): Promise<void> {
  // The file may have changed during the upload.
  const there = await find(sftp, name)
  requireFree(there, upload)
  if (!there) return moveTo(sftp, part, target)
  if (sftp.extensions.has('posix-rename@openssh.com')) return sftp.rename(part, target)
  // The standard cannot replace a file: the former one steps aside, and comes back if need be.
  const aside = `${part}.old`
  await sftp.rename(target, aside)
  try {
    await sftp.rename(part, target)
  } catch (error) {
    await sftp.rename(aside, target)
    throw error
  }
  await sftp.remove(aside).catch(() => undefined)
}

/** The new name must be free. */
export async function moveTo(sftp: SftpClient, from: string, to: string): Promise<void> {
  try {
    await sftp.rename(from, to, { keep: true })
  } catch (error) {
    // A file system without links.
    const taken = await sftp.lstat(to).then(
      () => true,
      () => false,
    )
    if (taken) throw new Failure('conflict', { message: 'There is something of this name already.' })
    if (!(error instanceof SftpFailure) || error.code !== Status.failure) throw error
    await sftp.rename(from, to)
  }
}

function requireFree(there: Attributes | undefined, { replace, expected }: Upload): void {
  if (there && !isFile(there))
    throw new Failure('invalid', { message: 'There is a folder of this name already.' })
  if (there && !replace) throw new Failure('conflict', { message: 'There is a file of this name already.' })
  if (expected && (there?.size !== expected.size || there.mtime !== expected.changed_at))
    throw new Failure('conflict', {
      message: there ? 'The file has changed since it was opened.' : 'The file is gone.',
    })
}

async function find(sftp: SftpClient, name: string): Promise<Attributes | undefined> {
  return sftp.stat(name).catch((error: unknown) => {
    if (error instanceof SftpFailure && error.code === Status.noSuchFile) return undefined
    throw error
  })
}

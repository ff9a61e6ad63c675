// An SFTP client on a connection. A whole file is read or written with many requests in flight, which keeps a
// long line full. Their number is bounded, and with it the memory. A server may lie: its names, paths, handles
// and sentences have a longest length, and bytes that are read ahead count as memory until they are taken.
import type { Channel } from '../connection/channel.ts'
import type { Connection } from '../connection/connection.ts'
import { startSession } from '../connection/session.ts'
import { ProtocolError } from '../errors.ts'
import { compact, heldBy, processMemory } from '../memory.ts'
import { Reader, Writer } from '../wire.ts'
import type { Entry } from './files.ts'
import {
  Open,
  packetsOf,
  readAttributes,
  Sftp,
  SftpFailure,
  Status,
  version,
  writeAttributes,
  type Attributes,
} from './protocol.ts'
import { longestName_bytes, Requests, textOf } from './requests.ts'

interface WriteOptions {
  /** The file must not exist yet, not even as a link. */
  readonly fresh?: boolean
  /** Content before this position stays. */
  readonly from?: number
}

/** Failures are SftpFailure. */
export interface SftpClient extends AsyncDisposable {
  readonly extensions: ReadonlyMap<string, string>
  stat(path: string): Promise<Attributes>
  lstat(path: string): Promise<Attributes>
  change(path: string, attributes: Attributes): Promise<void>
  list(folder: string): AsyncIterable<Entry>
  read(path: string): AsyncIterable<Buffer>
  /** Creates or replaces a file, unless the options differ. */
  write(
    path: string,
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    mode?: number,
    options?: WriteOptions,
  ): Promise<void>
  remove(path: string): Promise<void>
  makeFolder(path: string, mode?: number): Promise<void>
  removeFolder(path: string): Promise<void>
  /** Replaces the target where the server supports it; with `keep` it fails instead. */
  rename(from: string, to: string, options?: { readonly keep?: boolean }): Promise<void>
  resolve(path: string): Promise<string>
  readLink(path: string): Promise<string>
  link(target: string, path: string): Promise<void>
}

/** Every server accepts this much in one packet. */
const piece_bytes = 32 * 1024
/** Two megabytes in flight. */
const mostAhead = 64
const wantedVersion = version
const mostExtensions = 64
/** Answers to READDIR without a name; a server without more names answers EOF. */
const mostEmpty = 16

/** In a session of its own. */
export async function openSftp(connection: Pick<Connection, 'open'>): Promise<SftpClient> {
  const { channel } = await startSession(connection, { program: { type: 'subsystem', name: 'sftp' } })
  const packets = packetsOf(channel)
  await channel.write(new Writer().uint32(5).byte(Sftp.init).uint32(wantedVersion).bytes())
  const first = await packets.next()
  if (first.done) throw new ProtocolError('The SFTP server did not answer.')
  const hello = new Reader(first.value)
  if (hello.byte() !== Sftp.version || hello.uint32() < wantedVersion)
    throw new ProtocolError('The SFTP server is too old.')
  const extensions = new Map<string, string>()
  while (!hello.done && extensions.size < mostExtensions)
    extensions.set(hello.text(longestName_bytes), hello.text(longestName_bytes))
  return clientOn(channel, new Requests(channel, packets), extensions)
}

function clientOn(channel: Channel, requests: Requests, extensions: ReadonlyMap<string, string>): SftpClient {
  const overwrites = extensions.has('posix-rename@openssh.com')
  return {
    extensions,
    stat: async (path) => requests.attributes(Sftp.stat, path),
    lstat: async (path) => requests.attributes(Sftp.lstat, path),
    change: async (path, changed) =>
      requests.done(Sftp.setstat, (writer) => writeAttributes(writer.string(path), changed)),
    list: (folder) => listFolder(requests, folder),
    read: (path) => readFile(requests, path, () => void channel.close('now')),
    write: async (path, bytes, mode, options) => writeFile(requests, path, bytes, mode, options),
    remove: async (path) => requests.done(Sftp.remove, (writer) => writer.string(path)),
    makeFolder: async (path, mode = 0o777) =>
      requests.done(Sftp.mkdir, (writer) => writeAttributes(writer.string(path), { mode })),
    removeFolder: async (path) => requests.done(Sftp.rmdir, (writer) => writer.string(path)),
    rename: async (from, to, { keep = false } = {}) =>
      overwrites && !keep
        ? requests.done(Sftp.extended, (writer) =>
            writer.string('posix-rename@openssh.com').string(from).string(to),
          )
        : requests.done(Sftp.rename, (writer) => writer.string(from).string(to)),
    resolve: async (path) => requests.name(Sftp.realpath, path),
    readLink: async (path) => requests.name(Sftp.readlink, path),
    link: async (target, path) => requests.done(Sftp.symlink, (writer) => writer.string(target).string(path)),
    async [Symbol.asyncDispose]() {
      await channel.end()
      await channel.close()
    },
  }
}

/** Shorter at the end of the file; empty behind it. */
async function readPiece(requests: Requests, handle: Buffer, start: number, size: number): Promise<Buffer> {
  let whole: Buffer | undefined
  let filled = 0
  while (filled < size) {
    const [at, missing] = [BigInt(start + filled), size - filled]
    const fields = await requests.expectUntilEnd(Sftp.data, Sftp.read, (writer) =>
      writer.string(handle).uint64(at).uint32(missing),
    )
    const got = fields?.string()
    if (!got || got.length === 0) break
    if (got.length > missing) throw new ProtocolError('The SFTP server sent more of a file than requested.')
    if (got.length === size) return compact(got)
    // A server may send less than was requested.
    whole ??= Buffer.allocUnsafeSlow(size)
    filled += got.copy(whole, filled)
  }
  return whole?.subarray(0, filled) ?? Buffer.alloc(0)
}

async function* readFile(requests: Requests, path: string, evict: () => void): AsyncGenerator<Buffer> {
  const handle = await requests.openFile(path, Open.read)
  const ahead: Promise<Buffer>[] = []
  const account = processMemory.open({
    limit_bytes: Infinity,
    pause: () => undefined,
    resume: () => undefined,
    evict,
  })
  try {
    let position = 0
    for (;;) {
      while (ahead.length < (account.crowded ? 1 : mostAhead)) {
        const piece = readPiece(requests, handle, position, piece_bytes)
        piece.then(
          (bytes) => account.hold(heldBy(bytes)),
          () => undefined,
        )
        ahead.push(piece)
        position += piece_bytes
      }
      const bytes = await ahead.shift()!
      if (bytes.length > 0) yield bytes
      account.release(heldBy(bytes))
      if (bytes.length < piece_bytes) return
    }
  } finally {
    await Promise.allSettled(ahead)
    account.close()
    await requests.closeHandle(handle)
  }
}

async function writeFile(
  requests: Requests,
  path: string,
  bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  mode?: number,
  { fresh = false, from }: WriteOptions = {},
): Promise<void> {
  const start = from === undefined ? Open.create | Open.truncate | (fresh ? Open.exclusive : 0) : 0
  const handle = await requests.openFile(path, Open.write | start, mode)
  const ahead = new Set<Promise<void>>()
  let failure: unknown
  const noteFailure = (error: unknown): void => {
    failure ??= error
  }
  try {
    let position = from ?? 0
    for await (const chunk of bytes) {
      for (let at = 0; at < chunk.length; at += piece_bytes) {
        if (failure !== undefined) break
        const part = chunk.subarray(at, at + piece_bytes)
        const start = BigInt(position + at)
        const written: Promise<void> = requests
          .done(Sftp.write, (writer) => writer.string(handle).uint64(start).string(part), part.length + 64)
          .catch(noteFailure)
          .finally(() => ahead.delete(written))
        ahead.add(written)
        if (ahead.size >= mostAhead) await Promise.race(ahead)
      }
      if (failure !== undefined) break
      position += chunk.length
    }
  } catch (error) {
    // The source of the bytes has failed; the file is still closed.
    noteFailure(error)
  }
  await Promise.all(ahead)
  await requests.closeHandle(handle).catch(noteFailure)
  if (failure !== undefined) throw failure as Error
}

async function* listFolder(requests: Requests, folder: string): AsyncGenerator<Entry> {
  const handle = await requests.openFolder(folder)
  try {
    for (let empty = 0; ;) {
      const fields = await requests.expectUntilEnd(Sftp.name, Sftp.readdir, (writer) => writer.string(handle))
      if (!fields) return
      let count = fields.uint32()
      if (count === 0 && (empty += 1) > mostEmpty)
        throw new SftpFailure(Status.badMessage, 'The listing of the folder never ends.')
      for (; count > 0; count -= 1) {
        const name = textOf(fields, longestName_bytes, 'name')
        fields.string()
        yield { name, attributes: readAttributes(fields) }
      }
    }
  } finally {
    await requests.closeHandle(handle)
  }
}

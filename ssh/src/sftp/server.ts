// An SFTP server on a line, as a rule a channel, over a file system face. Requests are done one after the
// other, as they came: the answers are in order, a write is on disk before the CLOSE behind it, and a client
// that sends many ahead of the answers is held back by the channel's window. Handles are counted and all
// closed at the end, however it came. A copy, which can take as long as it likes, stops when the client
// closes one of its files or is gone.
import { ProtocolError } from '../errors.ts'
import { Reader, Writer } from '../wire.ts'
import type { Entry, FileSystem, OpenFile } from './files.ts'
import {
  largestData_bytes,
  largestPacket_bytes,
  packetsOf,
  readAttributes,
  Sftp,
  SftpFailure,
  Status,
  version,
  writeAttributes,
  type Attributes,
  type SftpStream,
} from './protocol.ts'

const mostHandles = 256
const longestPath = 4_096
/** Entries in one answer to READDIR. */
const mostEntries = 100
const extensions: readonly (readonly [name: string, version: string])[] = [
  ['posix-rename@openssh.com', '1'],
  ['statvfs@openssh.com', '2'],
  ['fstatvfs@openssh.com', '2'],
  ['hardlink@openssh.com', '1'],
  ['fsync@openssh.com', '1'],
  ['lsetstat@openssh.com', '1'],
  ['limits@openssh.com', '1'],
  ['copy-data', '1'],
]

interface FileHandle {
  readonly kind: 'file'
  readonly path: string
  readonly file: OpenFile
}

type Handle =
  | FileHandle
  | { readonly kind: 'folder'; readonly path: string; readonly entries: AsyncIterator<Entry> }

/** Resolves when the client has ended its requests. */
export async function serveSftp(line: SftpStream, files: FileSystem): Promise<void> {
  const handles = new Map<number, Handle>()
  const packets = packetsOf(line)
  /** The request behind a copy, which is looked at while that goes on. */
  let ahead: ReturnType<typeof packets.next> | undefined
  let nextHandle = 0
  let begun = false
  let gone = false
  void line.closed?.then(() => {
    gone = true
  })

  const answer = (type: number, id: number, room = 64): Writer =>
    new Writer(room + 9).uint32(0).byte(type).uint32(id)
  const send = async (written: Writer): Promise<void> => {
    const packet = written.bytes()
    packet.writeUInt32BE(packet.length - 4, 0)
    await line.write(packet)
  }
  const status = (id: number, code: number, text = ''): Writer =>
    answer(Sftp.status, id).uint32(code).string(text).string('')

  const keep = (id: number, handle: Handle): Writer => {
    nextHandle = (nextHandle + 1) >>> 0
    handles.set(nextHandle, handle)
    return answer(Sftp.handle, id).string(new Writer(4).uint32(nextHandle).bytes())
  }
  const numberOf = (reader: Reader): number => {
    const name = reader.string()
    return name.length === 4 ? name.readUInt32BE(0) : -1
  }
  const handleOf = (reader: Reader): Handle => {
    const handle = handles.get(numberOf(reader))
    if (!handle) throw new SftpFailure(Status.failure, 'There is no such handle.')
    return handle
  }
  const fileHandleOf = (reader: Reader): FileHandle => {
    const handle = handleOf(reader)
    if (handle.kind !== 'file') throw new SftpFailure(Status.failure, 'That handle is of a folder.')
    return handle
  }
  const fileOf = (reader: Reader): OpenFile => fileHandleOf(reader).file
  const requireRoom = (): void => {
    if (handles.size >= mostHandles) throw new SftpFailure(Status.failure, 'Too many files are open.')
  }

  const read = async (id: number, reader: Reader): Promise<Writer> => {
    const file = fileOf(reader)
    const position = Number(reader.uint64())
    const size = Math.min(reader.uint32(), largestData_bytes)
    // Read to where it will be sent from.
    const room = Buffer.allocUnsafe(size)
    const got = await file.read(room, position)
    if (got === 0 && size > 0) return status(id, Status.eof, 'End of file')
    return answer(Sftp.data, id, got + 4).string(room.subarray(0, got))
  }

  const readFolder = async (id: number, reader: Reader): Promise<Writer> => {
    const handle = handleOf(reader)
    if (handle.kind !== 'folder') throw new SftpFailure(Status.failure, 'That handle is of a file.')
    const found: Entry[] = []
    while (found.length < mostEntries) {
      const next = await handle.entries.next()
      if (next.done) break
      found.push(next.value)
    }
    if (found.length === 0) return status(id, Status.eof, 'End of folder')
    const written = answer(Sftp.name, id, 12_000).uint32(found.length)
    for (const { name, attributes } of found)
      writeAttributes(written.string(name).string(longName(name, attributes)), attributes)
    return written
  }

  const close = async (id: number, reader: Reader): Promise<Writer> => {
    const number = numberOf(reader)
    const handle = handles.get(number)
    if (!handle) throw new SftpFailure(Status.failure, 'There is no such handle.')
    handles.delete(number)
    await release(handle)
    return status(id, Status.ok)
  }

  /** What is true once the client has closed one of these, or is gone. */
  const abandoned = (...copied: FileHandle[]): (() => boolean) => {
    let closed = false
    ahead = packets.next()
    void ahead
      .then(({ done, value }) => {
        if (done || value[0] !== Sftp.close) return
        const closing = handles.get(numberOf(new Reader(value, 5)))
        closed = copied.some((handle) => handle === closing)
      })
      // Whoever comes to that request finds the failure there.
      .catch(() => undefined)
    return () => closed || gone
  }

  const copyData = async (reader: Reader): Promise<void> => {
    const [from, start, asked] = [fileHandleOf(reader), Number(reader.uint64()), Number(reader.uint64())]
    // Nothing means all of it.
    const length = asked === 0 ? Number.MAX_SAFE_INTEGER : asked
    const [to, target] = [fileHandleOf(reader), Number(reader.uint64())]
    // As it grew it would be copied, without end.
    if (from === to || (await isSame(files, from.path, to.path)))
      throw new SftpFailure(Status.failure, 'A file is not copied onto itself.')
    const isAbandoned = abandoned(from, to)
    const room = Buffer.allocUnsafe(largestData_bytes)
    for (let done = 0; done < length;) {
      if (isAbandoned()) throw new SftpFailure(Status.failure, 'The copy was stopped.')
      const wanted = Math.min(room.length, length - done)
      const got = await from.file.read(room.subarray(0, wanted), start + done)
      if (got === 0) break
      await to.file.write(room.subarray(0, got), target + done)
      done += got
    }
  }

  const extended = async (id: number, reader: Reader): Promise<Writer> => {
    const name = reader.text()
    const text = (): string => reader.text(longestPath)
    switch (name) {
      case 'posix-rename@openssh.com':
        await files.rename(text(), text(), true)
        return status(id, Status.ok)
      case 'hardlink@openssh.com':
        await files.link(text(), text(), false)
        return status(id, Status.ok)
      case 'fsync@openssh.com':
        await fileOf(reader).sync()
        return status(id, Status.ok)
      case 'lsetstat@openssh.com': {
        const [path, attributes] = [text(), readAttributes(reader)]
        if (attributes.size !== undefined)
          throw new SftpFailure(Status.badMessage, 'A link has no size to be changed.')
        await files.change(path, attributes, false)
        return status(id, Status.ok)
      }
      case 'copy-data':
        await copyData(reader)
        return status(id, Status.ok)
      case 'statvfs@openssh.com':
      case 'fstatvfs@openssh.com': {
        const space = await files.space(name.startsWith('f') ? handleOf(reader).path : text())
        const { block_bytes, blocks, free, available, files: all, filesFree } = space
        const written = answer(Sftp.extendedReply, id, 100)
        // bsize, frsize, blocks, bfree, bavail, files, ffree, favail, fsid, flag, namemax
        for (const field of [
          block_bytes,
          block_bytes,
          blocks,
          free,
          available,
          all,
          filesFree,
          filesFree,
          0,
          0,
          255,
        ])
          written.uint64(BigInt(field))
        return written
      }
      case 'limits@openssh.com': {
        const written = answer(Sftp.extendedReply, id)
        for (const limit of [largestPacket_bytes, largestData_bytes, largestData_bytes, mostHandles])
          written.uint64(BigInt(limit))
        return written
      }
      default:
        return status(id, Status.unsupported, 'This extension is not known here.')
    }
  }

  const perform = async (type: number, id: number, reader: Reader): Promise<Writer> => {
    const text = (): string => reader.text(longestPath)
    const attributes = (found: Attributes): Writer => writeAttributes(answer(Sftp.attrs, id), found)
    const names = (name: string): Writer =>
      writeAttributes(
        answer(Sftp.name, id, 200 + name.length * 2)
          .uint32(1)
          .string(name)
          .string(name),
        {},
      )
    switch (type) {
      case Sftp.open: {
        requireRoom()
        const [path, flags] = [text(), reader.uint32()]
        return keep(id, {
          kind: 'file',
          path,
          file: await files.open(path, flags, readAttributes(reader).mode ?? 0o666),
        })
      }
      case Sftp.opendir: {
        requireRoom()
        const path = text()
        const entries = files.list(path)[Symbol.asyncIterator]()
        // Now, so that a folder that is not there is known at once.
        const first = await entries.next()
        return keep(id, { kind: 'folder', path, entries: startingWith(first, entries) })
      }
      case Sftp.close:
        return close(id, reader)
      case Sftp.read:
        return read(id, reader)
      case Sftp.readdir:
        return readFolder(id, reader)
      case Sftp.write: {
        const [file, position] = [fileOf(reader), Number(reader.uint64())]
        await file.write(reader.string(), position)
        break
      }
      case Sftp.stat:
        return attributes(await files.stat(text()))
      case Sftp.lstat:
        return attributes(await files.lstat(text()))
      case Sftp.fstat:
        return attributes(await fileOf(reader).stat())
      case Sftp.setstat:
        await files.change(text(), readAttributes(reader), true)
        break
      case Sftp.fsetstat:
        await fileOf(reader).change(readAttributes(reader))
        break
      case Sftp.remove:
        await files.remove(text())
        break
      case Sftp.mkdir:
        await files.makeFolder(text(), readAttributes(reader).mode ?? 0o777)
        break
      case Sftp.rmdir:
        await files.removeFolder(text())
        break
      case Sftp.rename:
        await files.rename(text(), text(), false)
        break
      case Sftp.symlink:
        // OpenSSH has these the other way round than the draft, and everybody follows it.
        await files.link(text(), text(), true)
        break
      case Sftp.realpath:
        return names(await files.resolve(text()))
      case Sftp.readlink:
        return names(await files.readLink(text()))
      case Sftp.extended:
        return extended(id, reader)
      default:
        return status(id, Status.unsupported, 'This request is not known here.')
    }
    return status(id, Status.ok)
  }

  try {
    for (;;) {
      const next = ahead ?? packets.next()
      ahead = undefined
      const request = await next
      if (request.done) break
      const reader = new Reader(request.value)
      const type = reader.byte()
      if (!begun) {
        if (type !== Sftp.init) throw new ProtocolError('SFTP begins with INIT.')
        begun = true
        const hello = new Writer(300).uint32(0).byte(Sftp.version).uint32(version)
        for (const [name, number] of extensions) hello.string(name).string(number)
        await send(hello)
        continue
      }
      const id = reader.uint32()
      await send(
        await perform(type, id, reader).catch((error: unknown) =>
          failed(error, (code, text) => status(id, code, text)),
        ),
      )
    }
  } finally {
    void packets.return(undefined).catch(() => undefined)
    for (const handle of handles.values()) await release(handle).catch(() => undefined)
  }
}

async function isSame(files: FileSystem, one: string, other: string): Promise<boolean> {
  try {
    return (await files.resolve(one)) === (await files.resolve(other))
  } catch {
    // One of them has no name any more.
    return false
  }
}

async function release(handle: Handle): Promise<void> {
  if (handle.kind === 'file') await handle.file.close()
  else await handle.entries.return?.()
}

async function* startingWith(
  first: IteratorResult<Entry>,
  rest: AsyncIterator<Entry>,
): AsyncGenerator<Entry> {
  try {
    for (let next = first; !next.done; next = await rest.next()) yield next.value
  } finally {
    await rest.return?.()
  }
}

const codes: Readonly<Record<string, readonly [code: number, text: string]>> = {
  ENOENT: [Status.noSuchFile, 'No such file or directory'],
  ENOTDIR: [Status.noSuchFile, 'Not a directory'],
  ELOOP: [Status.noSuchFile, 'Too many links'],
  EACCES: [Status.permissionDenied, 'Permission denied'],
  EPERM: [Status.permissionDenied, 'Operation not permitted'],
  EROFS: [Status.permissionDenied, 'Read-only file system'],
  EEXIST: [Status.failure, 'File exists'],
  ENOTEMPTY: [Status.failure, 'Directory not empty'],
  EISDIR: [Status.failure, 'Is a directory'],
  ENOSPC: [Status.failure, 'No space left on device'],
  EOPNOTSUPP: [Status.failure, 'Operation not supported'],
}

function failed(error: unknown, status: (code: number, text: string) => Writer): Writer {
  if (error instanceof SftpFailure) return status(error.code, error.message)
  if (error instanceof ProtocolError) return status(Status.badMessage, error.message)
  const code = (error as NodeJS.ErrnoException).code
  // What else went wrong is not for the client.
  const [number, text] = codes[code ?? ''] ?? [Status.failure, 'Failure']
  return status(number, text)
}

const kinds: Readonly<Record<number, string>> = {
  0o040000: 'd',
  0o120000: 'l',
  0o140000: 's',
  0o060000: 'b',
  0o020000: 'c',
  0o010000: 'p',
}

/** A line as `ls -l` would write it, which some clients show as it is. */
function longName(name: string, { mode = 0, uid = 0, gid = 0, size = 0, mtime = 0 }: Attributes): string {
  const bits = [...'rwxrwxrwx'].map((letter, at) => (mode & (0o400 >> at) ? letter : '-')).join('')
  const date = new Date(mtime * 1000).toUTCString()
  const when = `${date.slice(8, 11)} ${date.slice(5, 7)} ${date.slice(17, 22)}`
  const owner = `${String(uid).padEnd(8)} ${String(gid).padEnd(8)}`
  return `${kinds[mode & 0o170000] ?? '-'}${bits}    1 ${owner} ${String(size).padStart(8)} ${when} ${name}`
}

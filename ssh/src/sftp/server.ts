// An SFTP server on a line, usually a channel, over a file system face. Requests are served in the order they
// arrive: the answers are in order, a write is on disk before the CLOSE behind it, and a client that sends many
// ahead of the answers is held back by the channel's window. All handles are closed at the end, whatever the
// reason for it. A copy has no time limit; it stops when the client closes one of its files or disconnects.
import { ProtocolError } from '../errors.ts'
import { Reader, type Writer } from '../wire.ts'
import {
  attributesAnswer,
  dataAnswer,
  entriesAnswer,
  failed,
  greeting,
  handleAnswer,
  nameAnswer,
  numbersAnswer,
  sealed,
  spaceAnswer,
  status,
} from './answers.ts'
import type { Entry, FileSystem } from './files.ts'
import { mostHandles, OpenFiles } from './open-files.ts'
import {
  largestData_bytes,
  largestPacket_bytes,
  packetsOf,
  readAttributes,
  Sftp,
  SftpFailure,
  Status,
  type SftpStream,
} from './protocol.ts'

const longestPath = 4_096
/** Entries in one answer to READDIR. */
const mostEntries = 100

/** Resolves when the client has ended its requests. */
export async function serveSftp(line: SftpStream, files: FileSystem): Promise<void> {
  return new SftpServer(line, files).serve()
}

class SftpServer {
  readonly #line: SftpStream
  readonly #files: FileSystem
  readonly #handles = new OpenFiles()
  readonly #packets: AsyncGenerator<Buffer>
  /** The request after the current one, once it was looked at. */
  #ahead: Promise<IteratorResult<Buffer>> | undefined
  #gone = false

  constructor(line: SftpStream, files: FileSystem) {
    this.#line = line
    this.#files = files
    this.#packets = packetsOf(line)
    void line.closed?.then(() => (this.#gone = true))
  }

  async serve(): Promise<void> {
    try {
      const first = await this.#packets.next()
      if (first.done) return
      if (first.value[0] !== Sftp.init) throw new ProtocolError('SFTP begins with INIT.')
      await this.#line.write(sealed(greeting()))
      for (;;) {
        const next = this.#ahead ?? this.#packets.next()
        this.#ahead = undefined
        const request = await next
        if (request.done) break
        const reader = new Reader(request.value)
        const [type, id] = [reader.byte(), reader.uint32()]
        const answer = await this.#perform(type, id, reader).catch((error: unknown) => failed(id, error))
        await this.#line.write(sealed(answer))
      }
    } finally {
      void this.#packets.return(undefined).catch(() => undefined)
      await this.#handles.closeAll()
    }
  }

  async #perform(type: number, id: number, reader: Reader): Promise<Writer> {
    const files = this.#files
    const handles = this.#handles
    const text = (): string => reader.text(longestPath)
    switch (type) {
      case Sftp.open: {
        handles.requireRoom()
        const [path, flags] = [text(), reader.uint32()]
        const file = await files.open(path, flags, readAttributes(reader).mode ?? 0o666)
        return handleAnswer(id, handles.add({ kind: 'file', path, file }))
      }
      case Sftp.opendir: {
        handles.requireRoom()
        const path = text()
        const entries = files.list(path)[Symbol.asyncIterator]()
        // Read now, so that a missing folder is reported at once.
        const first = await entries.next()
        return handleAnswer(id, handles.add({ kind: 'folder', path, entries: startingWith(first, entries) }))
      }
      case Sftp.close:
        await handles.close(reader)
        break
      case Sftp.read:
        return this.#read(id, reader)
      case Sftp.readdir:
        return this.#readFolder(id, reader)
      case Sftp.write: {
        const [{ file }, position] = [handles.readFile(reader), Number(reader.uint64())]
        await file.write(reader.string(), position)
        break
      }
      case Sftp.stat:
        return attributesAnswer(id, await files.stat(text()))
      case Sftp.lstat:
        return attributesAnswer(id, await files.lstat(text()))
      case Sftp.fstat:
        return attributesAnswer(id, await handles.readFile(reader).file.stat())
      case Sftp.setstat:
        await files.change(text(), readAttributes(reader), true)
        break
      case Sftp.fsetstat:
        await handles.readFile(reader).file.change(readAttributes(reader))
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
        // OpenSSH reverses the draft's order of the two, and all others follow OpenSSH.
        await files.link(text(), text(), true)
        break
      case Sftp.realpath:
        return nameAnswer(id, await files.resolve(text()))
      case Sftp.readlink:
        return nameAnswer(id, await files.readLink(text()))
      case Sftp.extended:
        return this.#extended(id, reader)
      default:
        return status(id, Status.unsupported, 'This request is not supported.')
    }
    return status(id, Status.ok)
  }

  async #extended(id: number, reader: Reader): Promise<Writer> {
    const files = this.#files
    const name = reader.text()
    const text = (): string => reader.text(longestPath)
    switch (name) {
      case 'posix-rename@openssh.com':
        await files.rename(text(), text(), true)
        break
      case 'hardlink@openssh.com':
        await files.link(text(), text(), false)
        break
      case 'fsync@openssh.com':
        await this.#handles.readFile(reader).file.sync()
        break
      case 'lsetstat@openssh.com': {
        const [path, attributes] = [text(), readAttributes(reader)]
        if (attributes.size !== undefined)
          throw new SftpFailure(Status.badMessage, 'The size of a link cannot be changed.')
        await files.change(path, attributes, false)
        break
      }
      case 'copy-data':
        await this.#copy(reader)
        break
      case 'statvfs@openssh.com':
        return spaceAnswer(id, await files.space(text()))
      case 'fstatvfs@openssh.com':
        return spaceAnswer(id, await files.space(this.#handles.read(reader).path))
      case 'limits@openssh.com':
        return numbersAnswer(id, [largestPacket_bytes, largestData_bytes, largestData_bytes, mostHandles])
      default:
        return status(id, Status.unsupported, 'This extension is not supported.')
    }
    return status(id, Status.ok)
  }

  async #read(id: number, reader: Reader): Promise<Writer> {
    const { file } = this.#handles.readFile(reader)
    const position = Number(reader.uint64())
    const size = Math.min(reader.uint32(), largestData_bytes)
    const room = Buffer.allocUnsafe(size)
    const got = await file.read(room, position)
    if (got === 0 && size > 0) return status(id, Status.eof, 'End of file')
    return dataAnswer(id, room.subarray(0, got))
  }

  async #readFolder(id: number, reader: Reader): Promise<Writer> {
    const { entries } = this.#handles.readFolder(reader)
    const found: Entry[] = []
    while (found.length < mostEntries) {
      const next = await entries.next()
      if (next.done) break
      found.push(next.value)
    }
    return found.length === 0 ? status(id, Status.eof, 'End of folder') : entriesAnswer(id, found)
  }

  async #copy(reader: Reader): Promise<void> {
    const [from, start, wanted] = [
      this.#handles.readFile(reader),
      Number(reader.uint64()),
      Number(reader.uint64()),
    ]
    const length = wanted === 0 ? Number.MAX_SAFE_INTEGER : wanted
    const [to, target] = [this.#handles.readFile(reader), Number(reader.uint64())]
    // The file would grow without end.
    if (from === to || (await isSame(this.#files, from.path, to.path)))
      throw new SftpFailure(Status.failure, 'A file cannot be copied onto itself.')
    const isAbandoned = this.#watchAhead(from, to)
    const room = Buffer.allocUnsafe(largestData_bytes)
    for (let done = 0; done < length;) {
      if (isAbandoned()) throw new SftpFailure(Status.failure, 'The copy was stopped.')
      const got = await from.file.read(room.subarray(0, Math.min(room.length, length - done)), start + done)
      if (got === 0) break
      await to.file.write(room.subarray(0, got), target + done)
      done += got
    }
  }

  /** True: the client has disconnected, or closes one of these files next. */
  #watchAhead(...copied: object[]): () => boolean {
    let closed = false
    this.#ahead = this.#packets.next()
    void this.#ahead
      .then(({ done, value }) => {
        if (done || value[0] !== Sftp.close) return
        const closing = this.#handles.find(new Reader(value, 5))
        closed = copied.some((handle) => handle === closing)
      })
      // `serve` meets the same failure when it takes the request.
      .catch(() => undefined)
    return () => closed || this.#gone
  }
}

async function isSame(files: FileSystem, one: string, other: string): Promise<boolean> {
  try {
    return (await files.resolve(one)) === (await files.resolve(other))
  } catch {
    // One of them was removed.
    return false
  }
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

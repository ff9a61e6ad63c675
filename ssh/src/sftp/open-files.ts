// The files and folders that an SFTP client has open, by the number that stands for each. Their count is
// bounded.
import { type Reader, Writer } from '../wire.ts'
import type { Entry, OpenFile } from './files.ts'
import { SftpFailure, Status } from './protocol.ts'

export const mostHandles = 256

interface FileHandle {
  readonly kind: 'file'
  readonly path: string
  readonly file: OpenFile
}

interface FolderHandle {
  readonly kind: 'folder'
  readonly path: string
  readonly entries: AsyncIterator<Entry>
}

type Handle = FileHandle | FolderHandle

export class OpenFiles {
  readonly #open = new Map<number, Handle>()
  #last = 0

  requireRoom(): void {
    if (this.#open.size >= mostHandles) throw new SftpFailure(Status.failure, 'Too many files are open.')
  }

  /** Returns the client's handle. */
  add(handle: Handle): Buffer {
    this.#last = (this.#last + 1) >>> 0
    this.#open.set(this.#last, handle)
    return new Writer(4).uint32(this.#last).bytes()
  }

  /** Undefined: the handle is not open. */
  find(reader: Reader): Handle | undefined {
    return this.#open.get(numberOf(reader))
  }

  read(reader: Reader): Handle {
    const handle = this.find(reader)
    if (!handle) throw new SftpFailure(Status.failure, 'This handle is not open.')
    return handle
  }

  readFile(reader: Reader): FileHandle {
    const handle = this.read(reader)
    if (handle.kind !== 'file') throw new SftpFailure(Status.failure, 'This handle is a folder.')
    return handle
  }

  readFolder(reader: Reader): FolderHandle {
    const handle = this.read(reader)
    if (handle.kind !== 'folder') throw new SftpFailure(Status.failure, 'This handle is a file.')
    return handle
  }

  async close(reader: Reader): Promise<void> {
    const number = numberOf(reader)
    const handle = this.#open.get(number)
    if (!handle) throw new SftpFailure(Status.failure, 'This handle is not open.')
    this.#open.delete(number)
    await release(handle)
  }

  async closeAll(): Promise<void> {
    for (const handle of this.#open.values()) await release(handle).catch(() => undefined)
  }
}

function numberOf(reader: Reader): number {
  const name = reader.string()
  return name.length === 4 ? name.readUInt32BE(0) : -1
}

async function release(handle: Handle): Promise<void> {
  if (handle.kind === 'file') await handle.file.close()
  else await handle.entries.return?.()
}

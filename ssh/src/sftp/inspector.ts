// Reads the SFTP that passes between a client and a server, in both directions, and says what became of
// files: which were read and written, how many bytes, and the SHA-256 of those that passed whole and in
// order. It may refuse to let a client read or write files. A refused request never reaches the server: a
// harmless one with the same number goes there instead, and the answer to that becomes "permission denied".
// So each request keeps one answer, in its place, whatever else is on its way.
//
// A refusal depends on the request alone. Everything else, such as which handle is which file, is kept
// within a bound, and no more is said of files behind it. Only version 3 is understood.
import { createHash } from 'node:crypto'
import { ProtocolError } from '../errors.ts'
import type { Side } from '../join-channels.ts'
import { Reader } from '../wire.ts'
import { answerNeeds, begin, denied, harmlessRequest, headEnd, requestNeeds } from './inspected-packets.ts'
import { PacketScanner, type PacketReader } from './packet-scanner.ts'
import { Open, readAttributes, Sftp, Status, version } from './protocol.ts'

/** An operation on a file or a folder, and its outcome. */
export interface SftpOperation {
  readonly kind:
    | 'read'
    | 'write'
    | 'remove'
    | 'make-folder'
    | 'remove-folder'
    | 'rename'
    | 'link'
    | 'change'
    | 'copy'
    | 'request'
  readonly path: string
  /** The other path of a rename, a link or a copy. */
  readonly target?: string
  /** The bytes that were read or written. */
  readonly bytes: number
  /** In hex: the whole file passed, in order and without a failure of the server. */
  readonly sha256?: string
  /** The sentence of the refusal; absent: the operation succeeded. */
  readonly refused?: string
}

/** Forbidden operations, each with a sentence for the client. */
export interface SftpRestrictions {
  readonly reads?: string | undefined
  readonly writes?: string | undefined
}

/** Takes the bytes of one file, in order. */
export interface SftpHash {
  update(bytes: Uint8Array): void
  /** In hex; undefined: it could not be computed. */
  digest(): string | Promise<string | undefined>
  /** The hash is not needed. */
  drop?(): void
}

/** The receiver of reports, and the restrictions. */
export interface SftpInspectorOptions {
  readonly restrictions?: SftpRestrictions
  /** In the order of the answers. */
  done(operation: SftpOperation): void
  /** Makes the SHA-256 of a file; absent: on this thread. */
  hash?(): SftpHash
  /** Files can no longer be told apart, and no more operations are reported. */
  lost?(why: string): void
}

/** Reads one SFTP connection. */
export interface SftpInspector {
  /** The bytes that pass instead. Throws ProtocolError for anything but SFTP of version 3. */
  pass(from: Side, bytes: Buffer): Buffer[]
  /** The connection is over: open files were not transferred completely. */
  end(): void
}

/** The memory of paths, handles and requests in progress, with the cost of each in addition to its text. */
const mostHeld_bytes = 1024 * 1024
const request_bytes = 256
/** A file has the states of two hashes. */
const file_bytes = 1_024
/** Refused requests without an answer. */
const mostRefused = 4_096
/** The longest path in a report. */
const longestPath_bytes = 4_096
const mostSizes = 16

type Change = Exclude<SftpOperation['kind'], 'read' | 'write'>
const changes: Readonly<Record<number, Change>> = {
  [Sftp.remove]: 'remove',
  [Sftp.mkdir]: 'make-folder',
  [Sftp.rmdir]: 'remove-folder',
  [Sftp.rename]: 'rename',
  [Sftp.symlink]: 'link',
  [Sftp.setstat]: 'change',
}
/** Extensions that OpenSSH's PROTOCOL file describes. */
const extendedChanges: Readonly<Record<string, Change>> = {
  'posix-rename@openssh.com': 'rename',
  'hardlink@openssh.com': 'link',
  'lsetstat@openssh.com': 'change',
}
/** Extended requests that neither read nor change a file. */
const harmless = new Set([
  'statvfs@openssh.com',
  'fstatvfs@openssh.com',
  'fsync@openssh.com',
  'limits@openssh.com',
  'expand-path@openssh.com',
  'home-directory',
  'users-groups-by-id@openssh.com',
])
const looks: ReadonlySet<number> = new Set([
  Sftp.close,
  Sftp.lstat,
  Sftp.fstat,
  Sftp.stat,
  Sftp.opendir,
  Sftp.readdir,
  Sftp.realpath,
  Sftp.readlink,
])

interface Progress {
  bytes: number
  /** Undefined: the bytes came out of order. */
  hash: SftpHash | undefined
  /** The place of the next bytes in order. */
  next: number
  /** The end of the file, by the server or by a cut of the client. */
  end: number | undefined
}

interface OpenFile {
  readonly path: string
  readonly flags: number
  read: Progress | undefined
  write: Progress | undefined
  /** The server refused a write. */
  failed: boolean
  /** Writes without an answer. */
  unanswered: number
  readonly cost: number
}

/** A request in progress. */
type Waiting = { readonly cost: number } & (
  | { readonly kind: 'open'; readonly path: string; readonly flags: number }
  | { readonly kind: 'close'; readonly file: OpenFile }
  | { readonly kind: 'read'; readonly file: OpenFile; readonly offset: number }
  | { readonly kind: 'write'; readonly file: OpenFile }
  | { readonly kind: 'cut'; readonly file: OpenFile; readonly size: number }
  | { readonly kind: 'size'; readonly of: OpenFile | string }
  | { readonly kind: 'change'; readonly operation: SftpOperation }
)

type Request = Waiting extends infer W ? (W extends Waiting ? Omit<W, 'cost'> : never) : never

/** Without restrictions the same bytes pass. */
export function sftpInspector(options: SftpInspectorOptions): SftpInspector {
  return new Inspector(options)
}

class Inspector implements SftpInspector {
  readonly #options: SftpInspectorOptions
  readonly #restrictions: SftpRestrictions
  readonly #near: PacketScanner
  readonly #far: PacketScanner
  readonly #files = new Map<string, OpenFile>()
  readonly #waiting = new Map<number, Waiting>()
  /** With the sentence for the answer. */
  readonly #refused = new Map<number, string>()
  /** Sizes of paths, in the server's last answer. */
  readonly #sizes = new Map<string, number>()
  /** The memory of the tables above. */
  #held_bytes = 0
  #isLost = false
  /** Operations behind one that waits for its hash. */
  #behind: Promise<void> | undefined
  /** The target of the current packet's data. */
  #into: Progress | undefined

  constructor(options: SftpInspectorOptions) {
    this.#options = options
    this.#restrictions = options.restrictions ?? {}
    this.#near = this.#scanner(requestNeeds, (head) => this.#request(head))
    this.#far = this.#scanner(answerNeeds, (head) => this.#answer(head))
  }

  #scanner(needs: PacketReader['needs'], look: (head: Buffer) => Buffer | undefined): PacketScanner {
    // Kept for each direction: the other one may have its turn in the middle of a packet.
    let into: Progress | undefined
    return new PacketScanner({
      needs,
      packet: (head) => {
        this.#into = undefined
        const other = look(head)
        into = this.#into
        return other
      },
      more: (bytes) => into?.hash?.update(bytes),
    })
  }

  pass(from: Side, bytes: Buffer): Buffer[] {
    return (from === 'near' ? this.#near : this.#far).scan(bytes)
  }

  end(): void {
    for (const file of this.#files.values()) this.#finished(file, false)
    for (const waiting of this.#waiting.values())
      if (waiting.kind === 'close') this.#finished(waiting.file, false)
    this.#files.clear()
    this.#waiting.clear()
    this.#sizes.clear()
    this.#held_bytes = 0
  }

  /** False: there is no room, and reports end here. */
  #hold(cost: number): boolean {
    if (this.#isLost) return false
    this.#held_bytes += cost
    if (this.#held_bytes <= mostHeld_bytes) return true
    this.#lose('too many files are open, or too many requests wait for their answer')
    return false
  }

  #lose(why: string): void {
    this.#isLost = true
    this.end()
    this.#options.lost?.(why)
  }

  #wait(id: number, request: Request, text = ''): void {
    const cost = request_bytes + text.length * 2
    if (!this.#hold(cost)) return
    if (this.#waiting.has(id)) return this.#lose('two requests have the same number')
    this.#waiting.set(id, { ...request, cost })
  }

  /** A request of the client. Returns what the server gets instead. */
  #request(head: Buffer): Buffer | undefined {
    const reader = new Reader(head, 4)
    const type = reader.byte()
    const id = reader.uint32()
    const { reads, writes } = this.#restrictions
    const isRestricted = reads !== undefined || writes !== undefined
    if (type === Sftp.init) return isRestricted ? begin() : undefined
    const extended = type === Sftp.extended ? reader.text() : ''
    const opened = type === Sftp.open ? { path: pathOf(reader), flags: reader.uint32() } : undefined
    if (isRestricted) {
      const why = this.#whyNot(type, extended, opened?.flags ?? 0)
      if (why !== undefined) return this.#refuse(id, why, type, extended, opened?.path ?? '', head)
    }
    if (this.#isLost) return undefined
    if (opened) this.#wait(id, { kind: 'open', ...opened }, opened.path)
    else this.#note(type, id, extended, reader)
    return undefined
  }

  /** Undefined: the request passes. */
  #whyNot(type: number, extended: string, flags: number): string | undefined {
    const { reads, writes } = this.#restrictions
    if (looks.has(type) || harmless.has(extended)) return undefined
    if (type === Sftp.read) return reads
    if (type !== Sftp.open) return writes ?? (isKnown(type, extended) ? undefined : reads)
    // Without any flag a file is opened for reading.
    const opensForReading = (flags & Open.read) !== 0 || (flags & Open.write) === 0
    return (opensForReading ? reads : undefined) ?? ((flags & ~Open.read) === 0 ? undefined : writes)
  }

  #refuse(id: number, why: string, type: number, extended: string, opened: string, head: Buffer): Buffer {
    if (this.#refused.size >= mostRefused)
      throw new ProtocolError('Too many refused requests wait for their answer.')
    this.#refused.set(id, why)
    const kind = changes[type] ?? extendedChanges[extended]
    const reader = new Reader(head, headEnd)
    if (extended !== '') reader.string()
    const path =
      type === Sftp.open ? opened : kind ? pathOf(reader) : isOfHandle(type) ? this.#pathOfHandle(reader) : ''
    const named = type === Sftp.read || (type === Sftp.open && why === this.#restrictions.reads)
    const what = type === Sftp.write || type === Sftp.open ? 'write' : (kind ?? 'request')
    // Only the first refusal of data is reported: the client repeats it.
    if (type !== Sftp.read && type !== Sftp.write)
      this.#tell({ kind: named ? 'read' : what, path: path || extended, bytes: 0, refused: why })
    return harmlessRequest(id)
  }

  #pathOfHandle(reader: Reader): string {
    return this.#files.get(keyOf(reader.string()))?.path ?? ''
  }

  #note(type: number, id: number, extended: string, reader: Reader): void {
    const kind = changes[type] ?? extendedChanges[extended]
    if (kind) return this.#noteChange(kind, id, type, reader)
    if (type === Sftp.stat || type === Sftp.lstat) {
      const path = pathOf(reader)
      return this.#wait(id, { kind: 'size', of: path }, path)
    }
    if (extended === 'copy-data') return this.#noteCopy(id, reader)
    if (!isOfHandle(type)) return
    const key = keyOf(reader.string())
    const file = this.#files.get(key)
    if (!file) {
      // A handle can be guessed before the server has given it.
      if (type === Sftp.read || type === Sftp.write) this.#lose('a file was used that is not open')
      return
    }
    if (type === Sftp.close) {
      this.#files.delete(key)
      this.#wait(id, { kind: 'close', file })
    } else if (type === Sftp.fstat) this.#wait(id, { kind: 'size', of: file })
    else if (type === Sftp.read) this.#wait(id, { kind: 'read', file, offset: Number(reader.uint64()) })
    else if (type === Sftp.write) this.#noteWrite(id, file, reader)
    else {
      const { size } = readAttributes(reader)
      if (size !== undefined) this.#wait(id, { kind: 'cut', file, size })
    }
  }

  #noteWrite(id: number, file: OpenFile, reader: Reader): void {
    const offset = Number(reader.uint64())
    const length = reader.uint32()
    file.write ??= this.#beginning()
    file.unanswered += 1
    this.#into = advanced(file.write, offset, length)
    this.#wait(id, { kind: 'write', file })
  }

  #noteChange(kind: Change, id: number, type: number, reader: Reader): void {
    const path = pathOf(reader)
    const hasTarget = kind === 'rename' || kind === 'link'
    const target = hasTarget ? pathOf(reader) : ''
    // OpenSSH has the paths of a symbolic link the other way round than the draft: first what it points to.
    const [about, other] = type === Sftp.symlink ? [target, path] : [path, target]
    const operation = { kind, path: about, ...(hasTarget ? { target: other } : {}), bytes: 0 }
    this.#wait(id, { kind: 'change', operation }, path + target)
  }

  #noteCopy(id: number, reader: Reader): void {
    const from = this.#files.get(keyOf(reader.string()))
    reader.uint64()
    reader.uint64()
    const to = this.#files.get(keyOf(reader.string()))
    if (!from || !to) return
    // The bytes do not pass here.
    to.failed = true
    const operation = { kind: 'copy' as const, path: from.path, target: to.path, bytes: 0 }
    this.#wait(id, { kind: 'change', operation }, from.path + to.path)
  }

  /** An answer of the server. Returns what the client gets instead. */
  #answer(head: Buffer): Buffer | undefined {
    const reader = new Reader(head, 4)
    const type = reader.byte()
    const id = reader.uint32()
    if (type === Sftp.version) {
      if (id !== version) throw new ProtocolError(`This is SFTP of version ${id}.`)
      return undefined
    }
    const why = this.#refused.get(id)
    if (why !== undefined) {
      this.#refused.delete(id)
      return denied(id, why)
    }
    const waiting = this.#waiting.get(id)
    if (!waiting) return undefined
    this.#waiting.delete(id)
    this.#held_bytes -= waiting.cost
    const status = type === Sftp.status ? reader.uint32() : undefined
    this.#answered(waiting, type, status, reader)
    return undefined
  }

  #answered(waiting: Waiting, type: number, status: number | undefined, reader: Reader): void {
    switch (waiting.kind) {
      case 'open':
        if (type === Sftp.handle) this.#opened(keyOf(reader.string()), waiting.path, waiting.flags)
        return
      case 'close':
        this.#held_bytes -= waiting.file.cost
        return this.#finished(waiting.file, status === Status.ok)
      case 'read':
        return this.#readAnswered(waiting.file, waiting.offset, type, status, reader)
      case 'write':
        waiting.file.unanswered -= 1
        if (status !== Status.ok) waiting.file.failed = true
        return
      case 'cut':
        if (status === Status.ok && waiting.file.write) waiting.file.write.end = waiting.size
        else waiting.file.failed ||= status !== Status.ok
        return
      case 'size':
        return this.#sized(waiting.of, type, reader)
      case 'change':
        if (status === Status.ok) this.#tell(waiting.operation)
    }
  }

  #readAnswered(
    file: OpenFile,
    offset: number,
    type: number,
    status: number | undefined,
    reader: Reader,
  ): void {
    if (type === Sftp.data) {
      file.read ??= this.#beginning()
      this.#into = advanced(file.read, offset, reader.uint32())
    } else if (status === Status.eof) {
      file.read ??= this.#beginning()
      if (offset === file.read.next) file.read.end = offset
    }
  }

  #sized(of: OpenFile | string, type: number, reader: Reader): void {
    if (type !== Sftp.attrs || (reader.uint32() & 1) === 0) return
    const size = Number(reader.uint64())
    if (typeof of !== 'string') {
      if (of.read) of.read.end = size
      else this.#remember(of.path, size)
      return
    }
    this.#remember(of, size)
  }

  #remember(path: string, size: number): void {
    this.#sizes.delete(path)
    if (this.#sizes.size >= mostSizes)
      for (const [oldest] of this.#sizes) {
        this.#sizes.delete(oldest)
        break
      }
    this.#sizes.set(path, size)
  }

  #opened(key: string, path: string, flags: number): void {
    const cost = file_bytes + path.length * 2
    if (!this.#hold(cost)) return
    const former = this.#files.get(key)
    // A server that gives one handle twice has closed the first.
    if (former) {
      this.#held_bytes -= former.cost
      this.#finished(former, false)
    }
    const isCut = (flags & (Open.truncate | Open.exclusive)) !== 0
    const write =
      (flags & Open.write) === 0 ? undefined : { ...this.#beginning(), ...(isCut ? {} : { end: -1 }) }
    if (write && (flags & Open.append) !== 0) unhashed(write)
    this.#files.set(key, { path, flags, read: undefined, write, failed: false, unanswered: 0, cost })
  }

  /** `closed`: the server closed the file without a failure. */
  #finished({ path, read, write, failed, unanswered }: OpenFile, closed: boolean): void {
    if (read) {
      const isWhole = closed && (read.end ?? this.#sizes.get(path)) === read.next
      this.#tell({ kind: 'read', path, bytes: read.bytes }, digestOf(read, isWhole))
    }
    if (!write) return
    const isWhole = closed && !failed && unanswered === 0 && (write.end ?? write.next) === write.next
    this.#tell({ kind: 'write', path, bytes: write.bytes }, digestOf(write, isWhole))
  }

  /** Reports now, or behind operations that wait for their hash. */
  #tell(operation: SftpOperation, digest?: ReturnType<SftpHash['digest']>): void {
    const say = (sha256: string | undefined): void =>
      this.#options.done(sha256 === undefined ? operation : { ...operation, sha256 })
    if (!this.#behind && !(digest instanceof Promise)) return say(digest)
    const told = Promise.resolve(this.#behind)
      .then(() => digest)
      .then(say)
    this.#behind = told
    void told.then(() => {
      if (this.#behind === told) this.#behind = undefined
    })
  }

  #beginning(): Progress {
    return { bytes: 0, hash: this.#options.hash?.() ?? ownHash(), next: 0, end: undefined }
  }
}

function ownHash(): SftpHash {
  const hash = createHash('sha256')
  return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest('hex') }
}

function unhashed(progress: Progress): void {
  progress.hash?.drop?.()
  progress.hash = undefined
}

/** Bytes in order go into the hash. */
function advanced(progress: Progress, offset: number, length: number): Progress {
  progress.bytes += length
  if (offset === progress.next) progress.next += length
  else unhashed(progress)
  return progress
}

function digestOf(progress: Progress, isWhole: boolean): ReturnType<SftpHash['digest']> | undefined {
  if (isWhole) return progress.hash?.digest()
  unhashed(progress)
  return undefined
}

const keyOf = (handle: Buffer): string => handle.toString('latin1')
const pathOf = (reader: Reader): string => reader.string().subarray(0, longestPath_bytes).toString('utf8')

const ofHandles: ReadonlySet<number> = new Set([
  Sftp.close,
  Sftp.read,
  Sftp.write,
  Sftp.fstat,
  Sftp.fsetstat,
  Sftp.readdir,
])
const isOfHandle = (type: number): boolean => ofHandles.has(type)

/** Requests that change a file, so that unknown ones count as changes. */
function isKnown(type: number, extended: string): boolean {
  if (type === Sftp.extended) return extended in extendedChanges || extended === 'copy-data'
  return type in changes || type === Sftp.write || type === Sftp.fsetstat
}

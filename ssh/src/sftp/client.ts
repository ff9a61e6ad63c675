// An SFTP client on a connection. Requests are pipelined: each has a number, answers may come in any order,
// and a whole file is read or written with many requests on their way, so that a long line is kept full. How
// many is bounded, and with it the memory. A server may lie: names, paths, handles and sentences of it have a
// longest length, and what is read ahead of its reader is counted as the memory that it holds.
import type { Channel } from '../connection/channel.ts'
import type { Connection } from '../connection/connection.ts'
import { startSession } from '../connection/session.ts'
import { ProtocolError } from '../errors.ts'
import { compact, heldBy, processMemory } from '../memory.ts'
import { Reader, Writer } from '../wire.ts'
import type { Entry } from './files.ts'
import {
  longestHandle_bytes,
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

/** How a file is written. */
interface WriteOptions {
  /** The file must not be there yet, not even as a link. */
  readonly fresh?: boolean
  /** Keeps what is there and writes from this position on. */
  readonly from?: number
}

/** Files of the server. Failures are SftpFailure. */
export interface SftpClient extends AsyncDisposable {
  /** What the server said it knows beyond the standard. */
  readonly extensions: ReadonlyMap<string, string>
  stat(path: string): Promise<Attributes>
  lstat(path: string): Promise<Attributes>
  change(path: string, attributes: Attributes): Promise<void>
  list(folder: string): AsyncIterable<Entry>
  /** The bytes of a file, in order. */
  read(path: string): AsyncIterable<Buffer>
  /** Makes or replaces a file, unless the options say otherwise. */
  write(
    path: string,
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    mode?: number,
    options?: WriteOptions,
  ): Promise<void>
  remove(path: string): Promise<void>
  makeFolder(path: string, mode?: number): Promise<void>
  removeFolder(path: string): Promise<void>
  /** Replaces what is there, where the server can do that; with `keep` it fails instead. */
  rename(from: string, to: string, options?: { readonly keep?: boolean }): Promise<void>
  resolve(path: string): Promise<string>
  readLink(path: string): Promise<string>
  link(target: string, path: string): Promise<void>
}

/** What every server takes in one packet. */
const piece_bytes = 32 * 1024
/** Two megabytes on their way. */
const mostAhead = 64
const wantedVersion = version
/** Linux allows 255 bytes in a name and 4,096 in a path; other systems allow a little more in a name. */
const longestName_bytes = 1_024
const longestPath_bytes = 4_096
/** The reason of a failure is cut after this. */
const longestReason_bytes = 1_024
const mostExtensions = 64
/** Answers to READDIR without a name; a server that has no more names answers with EOF. */
const mostEmpty = 16

/** Starts the subsystem `sftp` in a session of its own. */
export async function openSftp(connection: Pick<Connection, 'open'>): Promise<SftpClient> {
  const { channel } = await startSession(connection, { program: { type: 'subsystem', name: 'sftp' } })
  const packets = packetsOf(channel)
  await channel.write(new Writer().uint32(5).byte(Sftp.init).uint32(wantedVersion).bytes())
  const first = await packets.next()
  if (first.done) throw new ProtocolError('The SFTP server said nothing.')
  const hello = new Reader(first.value)
  if (hello.byte() !== Sftp.version || hello.uint32() < wantedVersion)
    throw new ProtocolError('The SFTP server is too old.')
  const extensions = new Map<string, string>()
  while (!hello.done && extensions.size < mostExtensions)
    extensions.set(hello.text(longestName_bytes), hello.text(longestName_bytes))
  return clientOn(channel, packets, extensions)
}

type Answered = { readonly type: number; readonly fields: Reader }

function clientOn(
  channel: Channel,
  packets: AsyncGenerator<Buffer>,
  extensions: ReadonlyMap<string, string>,
): SftpClient {
  const waiting = new Map<number, PromiseWithResolvers<Answered>>()
  let nextId = 0
  let over: Error | undefined

  const listen = async (): Promise<void> => {
    let reason = new ProtocolError('The SFTP server is gone.')
    try {
      for await (const packet of packets) {
        const fields = new Reader(packet)
        const [type, id] = [fields.byte(), fields.uint32()]
        const answered = waiting.get(id)
        if (!answered) throw new ProtocolError('An answer came to no request.')
        waiting.delete(id)
        answered.resolve({ type, fields })
      }
    } catch (error) {
      reason = new ProtocolError('The SFTP server is gone.', { cause: error })
    }
    over = reason
    for (const answered of waiting.values()) answered.reject(reason)
    await channel.close('now')
  }
  void listen()

  const ask = async (type: number, write: (writer: Writer) => Writer, room = 256): Promise<Answered> => {
    if (over) throw over
    nextId = (nextId + 1) >>> 0
    const answered = Promise.withResolvers<Answered>()
    waiting.set(nextId, answered)
    const packet = write(new Writer(room).uint32(0).byte(type).uint32(nextId)).bytes()
    packet.writeUInt32BE(packet.length - 4, 0)
    await Promise.all([channel.write(packet), answered.promise])
    return answered.promise
  }

  const failureOf = ({ type, fields }: Answered): SftpFailure => {
    if (type !== Sftp.status) throw new ProtocolError('An answer is not of the expected kind.')
    const code = fields.uint32()
    const reason = fields.done ? 'Failure' : fields.string().toString('utf8', 0, longestReason_bytes)
    return new SftpFailure(code, reason)
  }
  const expecting = async (type: number, asked: Promise<Answered>): Promise<Reader> => {
    const answered = await asked
    if (answered.type !== type) throw failureOf(answered)
    return answered.fields
  }
  const done = async (asked: Promise<Answered>): Promise<void> => {
    const failure = failureOf(await asked)
    if (failure.code !== Status.ok) throw failure
  }
  const attributes = async (type: number, path: string): Promise<Attributes> =>
    readAttributes(
      await expecting(
        Sftp.attrs,
        ask(type, (writer) => writer.string(path)),
      ),
    )
  const nameOf = async (type: number, path: string): Promise<string> => {
    const fields = await expecting(
      Sftp.name,
      ask(type, (writer) => writer.string(path)),
    )
    if (fields.uint32() !== 1) throw new ProtocolError('One name was expected.')
    return textOf(fields, longestPath_bytes, 'path')
  }
  const openHandle = async (path: string, flags: number, mode?: number): Promise<Buffer> => {
    const asked = ask(Sftp.open, (writer) =>
      writeAttributes(writer.string(path).uint32(flags), mode === undefined ? {} : { mode }),
    )
    return handleOf(await expecting(Sftp.handle, asked))
  }
  const closeHandle = async (handle: Buffer): Promise<void> =>
    done(ask(Sftp.close, (writer) => writer.string(handle)))

  /** One piece, whole but at the end of the file; empty there. */
  const piece = async (handle: Buffer, start: number, size: number): Promise<Buffer> => {
    let whole: Buffer | undefined
    let filled = 0
    while (filled < size) {
      const [at, missing] = [BigInt(start + filled), size - filled]
      const answered = await ask(Sftp.read, (writer) => writer.string(handle).uint64(at).uint32(missing))
      if (answered.type !== Sftp.data) {
        const failure = failureOf(answered)
        if (failure.code === Status.eof) break
        throw failure
      }
      const got = answered.fields.string()
      if (got.length > missing) throw new ProtocolError('More of a file came than was asked for.')
      if (got.length === size) return compact(got)
      if (got.length === 0) break
      // A server may give less than was asked for.
      whole ??= Buffer.allocUnsafeSlow(size)
      filled += got.copy(whole, filled)
    }
    return whole?.subarray(0, filled) ?? Buffer.alloc(0)
  }

  async function* readFile(path: string): AsyncGenerator<Buffer> {
    const handle = await openHandle(path, Open.read)
    const ahead: Promise<Buffer>[] = []
    const account = processMemory.open({
      limit_bytes: Infinity,
      pause: () => undefined,
      resume: () => undefined,
      evict: () => void channel.close('now'),
    })
    try {
      let position = 0
      for (;;) {
        while (ahead.length < (account.crowded ? 1 : mostAhead)) {
          const asked = piece(handle, position, piece_bytes)
          asked.then(
            (bytes) => account.hold(heldBy(bytes)),
            () => undefined,
          )
          ahead.push(asked)
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
      await closeHandle(handle)
    }
  }

  const writeFile = async (
    path: string,
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    mode?: number,
    { fresh = false, from }: WriteOptions = {},
  ): Promise<void> => {
    const start = from === undefined ? Open.create | Open.truncate | (fresh ? Open.exclusive : 0) : 0
    const handle = await openHandle(path, Open.write | start, mode)
    const ahead = new Set<Promise<void>>()
    let failure: unknown
    try {
      let position = from ?? 0
      for await (const chunk of bytes) {
        for (let at = 0; at < chunk.length; at += piece_bytes) {
          if (failure !== undefined) break
          const part = chunk.subarray(at, at + piece_bytes)
          const start = BigInt(position + at)
          const written: Promise<void> = done(
            ask(Sftp.write, (writer) => writer.string(handle).uint64(start).string(part), part.length + 64),
          )
            .catch((error: unknown) => {
              failure ??= error
            })
            .finally(() => ahead.delete(written))
          ahead.add(written)
          if (ahead.size >= mostAhead) await Promise.race(ahead)
        }
        if (failure !== undefined) break
        position += chunk.length
      }
    } catch (error) {
      // Of the bytes, not of the file; what is written so far is closed as well.
      failure ??= error
    }
    await Promise.all(ahead)
    await closeHandle(handle).catch((error: unknown) => {
      failure ??= error
    })
    if (failure !== undefined) throw failure as Error
  }

  async function* listFolder(folder: string): AsyncGenerator<Entry> {
    const opened = await expecting(
      Sftp.handle,
      ask(Sftp.opendir, (writer) => writer.string(folder)),
    )
    const handle = handleOf(opened)
    try {
      for (let empty = 0; ;) {
        const answered = await ask(Sftp.readdir, (writer) => writer.string(handle))
        if (answered.type !== Sftp.name) {
          const failure = failureOf(answered)
          if (failure.code === Status.eof) return
          throw failure
        }
        let count = answered.fields.uint32()
        if (count === 0 && (empty += 1) > mostEmpty)
          throw new SftpFailure(Status.badMessage, 'The list of the folder has no end.')
        for (; count > 0; count -= 1) {
          const name = textOf(answered.fields, longestName_bytes, 'name')
          answered.fields.string()
          yield { name, attributes: readAttributes(answered.fields) }
        }
      }
    } finally {
      await closeHandle(handle)
    }
  }

  const overwrites = extensions.has('posix-rename@openssh.com')
  return {
    extensions,
    stat: async (path) => attributes(Sftp.stat, path),
    lstat: async (path) => attributes(Sftp.lstat, path),
    change: async (path, changed) =>
      done(ask(Sftp.setstat, (writer) => writeAttributes(writer.string(path), changed))),
    list: listFolder,
    read: readFile,
    write: writeFile,
    remove: async (path) => done(ask(Sftp.remove, (writer) => writer.string(path))),
    makeFolder: async (path, mode = 0o777) =>
      done(ask(Sftp.mkdir, (writer) => writeAttributes(writer.string(path), { mode }))),
    removeFolder: async (path) => done(ask(Sftp.rmdir, (writer) => writer.string(path))),
    rename: async (from, to, { keep = false } = {}) =>
      done(
        overwrites && !keep
          ? ask(Sftp.extended, (writer) => writer.string('posix-rename@openssh.com').string(from).string(to))
          : ask(Sftp.rename, (writer) => writer.string(from).string(to)),
      ),
    resolve: async (path) => nameOf(Sftp.realpath, path),
    readLink: async (path) => nameOf(Sftp.readlink, path),
    link: async (target, path) => done(ask(Sftp.symlink, (writer) => writer.string(target).string(path))),
    async [Symbol.asyncDispose]() {
      await channel.end()
      await channel.close()
    },
  }
}

function textOf(fields: Reader, most: number, what: 'name' | 'path'): string {
  const bytes = fields.string()
  if (bytes.length > most) throw new SftpFailure(Status.badMessage, `A ${what} has more than ${most} bytes.`)
  return bytes.toString('utf8')
}

/** A copy, since a handle outlives its packet. */
function handleOf(fields: Reader): Buffer {
  const bytes = fields.string()
  if (bytes.length > longestHandle_bytes) throw new ProtocolError('An SFTP handle is too long.')
  return Buffer.from(bytes)
}

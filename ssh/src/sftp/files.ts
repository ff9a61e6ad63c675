// The files that an SFTP server shows: a face, and the one implementation of it over the files of this
// machine, as far as the user who runs it may see them. To show less, wrap the face.
import { constants, type Dirent, type Stats } from 'node:fs'
import * as fs from 'node:fs/promises'
import path from 'node:path'
import type { Attributes } from './protocol.ts'
import { Open } from './protocol.ts'

/** A file in the listing of a folder. */
export interface Entry {
  readonly name: string
  readonly attributes: Attributes
}

/** A file that a client has open. */
export interface OpenFile {
  /** Fills what it can from the position; 0 at the end of the file. */
  read(into: Buffer, position: number): Promise<number>
  write(bytes: Buffer, position: number): Promise<void>
  stat(): Promise<Attributes>
  change(attributes: Attributes): Promise<void>
  sync(): Promise<void>
  close(): Promise<void>
}

/** The sizes of a file system, as in `statvfs`. */
export interface Space {
  readonly block_bytes: number
  readonly blocks: number
  readonly free: number
  readonly available: number
  readonly files: number
  readonly filesFree: number
}

/** Failures are those of Node: errors with a `code` such as ENOENT. */
export interface FileSystem {
  /** `flags` are those of `Open`. */
  open(file: string, flags: number, mode: number): Promise<OpenFile>
  stat(file: string): Promise<Attributes>
  lstat(file: string): Promise<Attributes>
  /** Without following a link, neither the size nor the mode of a link can be changed. */
  change(file: string, attributes: Attributes, followLink: boolean): Promise<void>
  list(folder: string): AsyncIterable<Entry>
  remove(file: string): Promise<void>
  makeFolder(folder: string, mode: number): Promise<void>
  removeFolder(folder: string): Promise<void>
  /** The absolute path; the last part need not exist. */
  resolve(file: string): Promise<string>
  rename(from: string, to: string, overwrite: boolean): Promise<void>
  readLink(file: string): Promise<string>
  link(target: string, file: string, symbolic: boolean): Promise<void>
  space(file: string): Promise<Space>
}

/** Paths are relative to a home. The process, not this, limits access. */
export function localFiles(home: string): FileSystem {
  const at = (file: string): string => path.resolve(home, file)
  return {
    async open(file, flags, mode) {
      return openFile(await fs.open(at(file), openFlags(flags), mode), (flags & Open.append) !== 0)
    },
    stat: async (file) => attributesOf(await fs.stat(at(file))),
    lstat: async (file) => attributesOf(await fs.lstat(at(file))),
    async change(file, { size, uid, gid, mode, atime, mtime }, followLink) {
      const where = at(file)
      if (size !== undefined) {
        if (!followLink) throw notSupported()
        await fs.truncate(where, size)
      }
      if (mode !== undefined) await (followLink ? fs.chmod : chmodItself)(where, mode & 0o7777)
      if (atime !== undefined && mtime !== undefined)
        await (followLink ? fs.utimes : fs.lutimes)(where, atime, mtime)
      if (uid !== undefined && gid !== undefined) await (followLink ? fs.chown : fs.lchown)(where, uid, gid)
    },
    async *list(folder) {
      const where = at(folder)
      for (const name of ['.', '..'])
        yield { name, attributes: attributesOf(await fs.lstat(path.join(where, name))) }
      for await (const entry of await fs.opendir(where)) yield* entryOf(where, entry)
    },
    remove: async (file) => fs.unlink(at(file)),
    makeFolder: async (folder, mode) => fs.mkdir(at(folder), { mode: mode & 0o7777 }),
    removeFolder: async (folder) => fs.rmdir(at(folder)),
    async resolve(file) {
      const where = at(file)
      try {
        return await fs.realpath(where)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
        return path.join(await fs.realpath(path.dirname(where)), path.basename(where))
      }
    },
    async rename(from, to, overwrite) {
      if (overwrite) return fs.rename(at(from), at(to))
      // Version 3 does not overwrite (section 6.5): a link fails where something is, and never exists
      // half-way.
      const moved = await fs.lstat(at(from))
      if (moved.isDirectory()) {
        if (await exists(at(to))) throw Object.assign(new Error('The file exists.'), { code: 'EEXIST' })
        return fs.rename(at(from), at(to))
      }
      await fs.link(at(from), at(to))
      return fs.unlink(at(from))
    },
    readLink: async (file) => fs.readlink(at(file)),
    link: async (target, file, symbolic) =>
      symbolic ? fs.symlink(target, at(file)) : fs.link(at(target), at(file)),
    async space(file) {
      const { bsize, blocks, bfree, bavail, files, ffree } = await fs.statfs(at(file))
      return { block_bytes: bsize, blocks, free: bfree, available: bavail, files, filesFree: ffree }
    },
  }
}

/** Opens the name and not its target: needs no right to read it. Node does not name this flag of Linux. */
const O_PATH = 0o10000000

/** As fchmodat(3) does it, because there is no call for it that does not follow links. */
async function chmodItself(file: string, mode: number): Promise<void> {
  const handle = await fs.open(file, O_PATH | constants.O_NOFOLLOW)
  try {
    if ((await handle.stat()).isSymbolicLink()) throw notSupported()
    await fs.chmod(`/proc/self/fd/${handle.fd}`, mode)
  } finally {
    await handle.close()
  }
}

const notSupported = (): Error => Object.assign(new Error('This cannot be changed.'), { code: 'EOPNOTSUPP' })

async function exists(file: string): Promise<boolean> {
  return fs.lstat(file).then(
    () => true,
    () => false,
  )
}

async function* entryOf(folder: string, entry: Dirent): AsyncGenerator<Entry> {
  try {
    yield { name: entry.name, attributes: attributesOf(await fs.lstat(path.join(folder, entry.name))) }
  } catch {
    // The file was removed while we were reading the folder.
  }
}

function openFlags(flags: number): number {
  const access =
    flags & Open.write ? (flags & Open.read ? constants.O_RDWR : constants.O_WRONLY) : constants.O_RDONLY
  return (
    access |
    (flags & Open.append ? constants.O_APPEND : 0) |
    (flags & Open.create ? constants.O_CREAT : 0) |
    (flags & Open.truncate ? constants.O_TRUNC : 0) |
    (flags & Open.exclusive ? constants.O_EXCL : 0)
  )
}

function openFile(file: fs.FileHandle, appends: boolean): OpenFile {
  return {
    read: async (into, position) => (await file.read(into, 0, into.length, position)).bytesRead,
    async write(bytes, position) {
      for (let done = 0; done < bytes.length;) {
        const { bytesWritten } = await file.write(
          bytes,
          done,
          bytes.length - done,
          appends ? null : position + done,
        )
        done += bytesWritten
      }
    },
    stat: async () => attributesOf(await file.stat()),
    async change({ size, uid, gid, mode, atime, mtime }) {
      if (size !== undefined) await file.truncate(size)
      if (mode !== undefined) await file.chmod(mode & 0o7777)
      if (atime !== undefined && mtime !== undefined) await file.utimes(atime, mtime)
      if (uid !== undefined && gid !== undefined) await file.chown(uid, gid)
    },
    sync: async () => file.sync(),
    close: async () => file.close(),
  }
}

function attributesOf(stats: Stats): Attributes {
  const { size, uid, gid, mode } = stats
  return {
    size,
    uid,
    gid,
    mode,
    atime: Math.max(0, Math.floor(stats.atimeMs / 1000)),
    mtime: Math.max(0, Math.floor(stats.mtimeMs / 1000)),
  }
}

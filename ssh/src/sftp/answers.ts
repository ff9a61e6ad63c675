// The answers of an SFTP server. Each begins with room for its length, which `sealed` fills in.
import { ProtocolError } from '../errors.ts'
import { Writer } from '../wire.ts'
import type { Entry, Space } from './files.ts'
import { Sftp, SftpFailure, Status, version, writeAttributes, type Attributes } from './protocol.ts'

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

const answer = (type: number, id: number, room = 64): Writer =>
  new Writer(room + 9).uint32(0).byte(type).uint32(id)

export function sealed(written: Writer): Buffer {
  const packet = written.bytes()
  packet.writeUInt32BE(packet.length - 4, 0)
  return packet
}

export function greeting(): Writer {
  const written = new Writer(300).uint32(0).byte(Sftp.version).uint32(version)
  for (const [name, number] of extensions) written.string(name).string(number)
  return written
}

export const status = (id: number, code: number, text = ''): Writer =>
  answer(Sftp.status, id).uint32(code).string(text).string('')

export const handleAnswer = (id: number, handle: Buffer): Writer => answer(Sftp.handle, id).string(handle)

export const dataAnswer = (id: number, bytes: Buffer): Writer =>
  answer(Sftp.data, id, bytes.length + 4).string(bytes)

export const attributesAnswer = (id: number, attributes: Attributes): Writer =>
  writeAttributes(answer(Sftp.attrs, id), attributes)

export function nameAnswer(id: number, name: string): Writer {
  const written = answer(Sftp.name, id, 200 + name.length * 2).uint32(1)
  return writeAttributes(written.string(name).string(name), {})
}

export function entriesAnswer(id: number, entries: readonly Entry[]): Writer {
  const written = answer(Sftp.name, id, 12_000).uint32(entries.length)
  for (const { name, attributes } of entries)
    writeAttributes(written.string(name).string(longName(name, attributes)), attributes)
  return written
}

export function spaceAnswer(id: number, space: Space): Writer {
  const { block_bytes: size, blocks, free, available, files, filesFree } = space
  // bsize, frsize, blocks, bfree, bavail, files, ffree, favail, fsid, flag, namemax
  return numbersAnswer(id, [size, size, blocks, free, available, files, filesFree, filesFree, 0, 0, 255])
}

export function numbersAnswer(id: number, numbers: readonly number[]): Writer {
  const written = answer(Sftp.extendedReply, id, 100)
  for (const number of numbers) written.uint64(BigInt(number))
  return written
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

/** Errors other than SftpFailure stay with the server. */
export function failed(id: number, error: unknown): Writer {
  if (error instanceof SftpFailure) return status(id, error.code, error.message)
  if (error instanceof ProtocolError) return status(id, Status.badMessage, error.message)
  const code = (error as NodeJS.ErrnoException).code
  return status(id, ...(codes[code ?? ''] ?? ([Status.failure, 'Failure'] as const)))
}

const kinds: Readonly<Record<number, string>> = {
  0o040000: 'd',
  0o120000: 'l',
  0o140000: 's',
  0o060000: 'b',
  0o020000: 'c',
  0o010000: 'p',
}

/** A line of `ls -l`, which some clients show unchanged. */
function longName(name: string, { mode = 0, uid = 0, gid = 0, size = 0, mtime = 0 }: Attributes): string {
  const bits = [...'rwxrwxrwx'].map((letter, at) => (mode & (0o400 >> at) ? letter : '-')).join('')
  const date = new Date(mtime * 1000).toUTCString()
  const when = `${date.slice(8, 11)} ${date.slice(5, 7)} ${date.slice(17, 22)}`
  const owner = `${String(uid).padEnd(8)} ${String(gid).padEnd(8)}`
  return `${kinds[mode & 0o170000] ?? '-'}${bits}    1 ${owner} ${String(size).padStart(8)} ${when} ${name}`
}

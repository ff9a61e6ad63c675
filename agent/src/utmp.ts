// The records of who is logged in (utmp) and of all logins (wtmp), so that `who`, `w` and `last` name the
// person: `olga@198.51.100.7` is where the account is used from. Written for shells on a terminal, by root
// only. Files that are not there are not made: the system does not keep such records then. A record
// (utmp(5)), numbers in the machine's own order, here little-endian; where two numbers stand the second is
// for machines that never had 32-bit programs (arm64), whose times are wider:
//     0  int16 type (7 login, 8 ended)       4  int32 pid       8  char[32] line, without /dev/     40  char[4] id
//    44  char[32] user    76  char[256] host    332  int16 × 2 exit status    336  int32 | int64 session
//   340 | 344  int32 × 2 | int64 × 2 seconds, microseconds    348 | 360  char[16] address     384 | 400 bytes in all
import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { isIPv4, isIPv6 } from 'node:net'
import { arch } from 'node:os'

const Type = { login: 7, ended: 8 } as const

export type LoginFiles = Partial<typeof usualFiles>

const usualFiles = { utmp: '/var/run/utmp', wtmp: '/var/log/wtmp' }
/** Records of every terminal are a few hundred; a larger file is damaged. */
const most_bytes = 16 * 1024 * 1024

export interface LoginRecord {
  readonly user: string
  readonly terminal: string
  readonly pid: number
  readonly address: string
  /** Undefined: unknown. */
  readonly person?: string | undefined
}

export interface LoginRecordsOptions {
  readonly files?: LoginFiles
  readonly wide?: boolean
  now_ms?(): number
}

/** Returns what writes the record of the end. */
export function recordLogin(login: LoginRecord, options: LoginRecordsOptions = {}): () => void {
  const { wide = isWide(arch()), now_ms = Date.now } = options
  const files = { ...usualFiles, ...options.files }
  const note = (type: number): void => {
    const record = writeRecord(type, login, wide, now_ms())
    replaceRecord(files.utmp, record)
    appendRecord(files.wtmp, record)
  }
  note(Type.login)
  return () => note(Type.ended)
}

export function isWide(machine: string): boolean {
  return machine === 'arm64' || machine === 'loong64'
}

export function writeRecord(
  type: number,
  { user, terminal, pid, address, person }: LoginRecord,
  wide: boolean,
  now_ms: number,
): Buffer {
  const record = Buffer.alloc(wide ? 400 : 384)
  const line = terminal.replace(/^\/dev\//, '')
  const text = (value: string, at: number, room: number): void =>
    void Buffer.from(value).copy(record, at, 0, room)
  record.writeInt16LE(type, 0)
  record.writeInt32LE(pid, 4)
  text(line, 8, 32)
  text(line.slice(-4), 40, 4)
  if (type === Type.login) {
    text(user, 44, 32)
    text(person === undefined ? address : `${person}@${address}`, 76, 256)
    addressOf(address).copy(record, wide ? 360 : 348)
  }
  const [seconds, microseconds] = [Math.floor(now_ms / 1000), (now_ms % 1000) * 1000]
  if (wide) {
    record.writeBigInt64LE(BigInt(pid), 336)
    record.writeBigInt64LE(BigInt(seconds), 344)
    record.writeBigInt64LE(BigInt(Math.floor(microseconds)), 352)
  } else {
    record.writeInt32LE(pid, 336)
    // Until 2038 as it is, after that as the unsigned number that readers have agreed on.
    record.writeUInt32LE(seconds >>> 0, 340)
    record.writeInt32LE(Math.floor(microseconds), 344)
  }
  return record
}

/** The slot of a terminal is the one with its id; nobody else writes there while the terminal is ours. */
function replaceRecord(file: string, record: Buffer): void {
  whileOpen(file, constants.O_RDWR, (fd) => {
    const size = fstatSync(fd).size
    if (size > most_bytes) return
    const all = Buffer.alloc(size)
    readSync(fd, all, 0, size, 0)
    const id = record.subarray(40, 44)
    for (let at = 0; at + record.length <= all.length; at += record.length) {
      const [type, found] = [all.readInt16LE(at), all.subarray(at + 40, at + 44)]
      // 5 to 8 are the types of records that belong to a terminal.
      if (type >= 5 && type <= 8 && found.equals(id)) return writeSync(fd, record, 0, record.length, at)
    }
    return appendRecord(file, record)
  })
}

function appendRecord(file: string, record: Buffer): void {
  whileOpen(file, constants.O_WRONLY | constants.O_APPEND, (fd) => writeSync(fd, record))
}

function whileOpen(file: string, flags: number, work: (fd: number) => unknown): void {
  try {
    const fd = openSync(file, flags)
    try {
      work(fd)
    } finally {
      closeSync(fd)
    }
  } catch {
    // Missing, or not writable: a login works without its record.
  }
}

function addressOf(host: string): Buffer {
  if (isIPv4(host)) return Buffer.from(host.split('.').map(Number))
  if (!isIPv6(host) || host.includes('.')) return Buffer.alloc(0)
  const [head = '', tail] = host.replace(/%.*$/, '').split('::')
  const groups = (part: string | undefined): number[] =>
    part ? part.split(':').map((group) => Number.parseInt(group, 16)) : []
  const [before, after] = [groups(head), groups(tail)]
  const words = [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after]
  return Buffer.from(words.flatMap((word) => [word >> 8, word & 0xff]))
}

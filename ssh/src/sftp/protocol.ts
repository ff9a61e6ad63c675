// SFTP version 3 (draft-ietf-secsh-filexfer-02, with the extensions of OpenSSH's PROTOCOL file): what both
// sides share.
//   every packet   uint32 length, byte type, fields; all but INIT and VERSION begin with uint32 id
//   attributes     uint32 flags, then as flagged: uint64 size; uint32 uid, gid; uint32 permissions; uint32 atime, mtime;
//                  uint32 count of extended pairs of strings
import type { Channel } from '../connection/channel.ts'
import { ProtocolError } from '../errors.ts'
import type { Reader } from '../wire.ts'
import type { Writer } from '../wire.ts'

export const Sftp = {
  init: 1,
  version: 2,
  open: 3,
  close: 4,
  read: 5,
  write: 6,
  lstat: 7,
  fstat: 8,
  setstat: 9,
  fsetstat: 10,
  opendir: 11,
  readdir: 12,
  remove: 13,
  mkdir: 14,
  rmdir: 15,
  realpath: 16,
  stat: 17,
  rename: 18,
  readlink: 19,
  symlink: 20,
  status: 101,
  handle: 102,
  data: 103,
  name: 104,
  attrs: 105,
  extended: 200,
  extendedReply: 201,
} as const

/** The codes of STATUS (draft-ietf-secsh-filexfer-02 section 7). */
export const Status = {
  ok: 0,
  eof: 1,
  noSuchFile: 2,
  permissionDenied: 3,
  failure: 4,
  badMessage: 5,
  unsupported: 8,
} as const

/** Flags of OPEN (section 6.3). */
export const Open = { read: 1, write: 2, append: 4, create: 8, truncate: 16, exclusive: 32 } as const

export const version = 3
/** The limit of OpenSSH, and enough for its largest write. */
export const largestPacket_bytes = 256 * 1024
/** The most data in one packet. */
export const largestData_bytes = 255 * 1024
export const longestHandle_bytes = 256

/** Known, or to be set; absent: unknown, or unchanged. */
export interface Attributes {
  readonly size?: number
  readonly uid?: number
  readonly gid?: number
  /** Type and permission bits, as in `st_mode`. */
  readonly mode?: number
  /** Seconds since 1970. */
  readonly atime?: number
  readonly mtime?: number
}

/** A request failed; the code is one of `Status`. */
export class SftpFailure extends Error {
  override readonly name = 'SftpFailure'
  readonly code: number
  constructor(code: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

const Has = { size: 1, owner: 2, mode: 4, times: 8, extended: 0x8000_0000 } as const
const mostExtended = 64

export function readAttributes(reader: Reader): Attributes {
  const flags = reader.uint32()
  const size = flags & Has.size ? { size: Number(reader.uint64()) } : {}
  const owner = flags & Has.owner ? { uid: reader.uint32(), gid: reader.uint32() } : {}
  const mode = flags & Has.mode ? { mode: reader.uint32() } : {}
  const times = flags & Has.times ? { atime: reader.uint32(), mtime: reader.uint32() } : {}
  if (flags & Has.extended) {
    const count = reader.uint32()
    if (count > mostExtended) throw new ProtocolError('A file has too many extended attributes.')
    for (let pair = 0; pair < count * 2; pair += 1) reader.string()
  }
  return { ...size, ...owner, ...mode, ...times }
}

export function writeAttributes(writer: Writer, attributes: Attributes): Writer {
  const { size, uid, gid, mode, atime, mtime } = attributes
  const owned = uid !== undefined && gid !== undefined
  const timed = atime !== undefined && mtime !== undefined
  writer.uint32(
    (size === undefined ? 0 : Has.size) |
      (owned ? Has.owner : 0) |
      (mode === undefined ? 0 : Has.mode) |
      (timed ? Has.times : 0),
  )
  if (size !== undefined) writer.uint64(BigInt(size))
  if (owned) writer.uint32(uid).uint32(gid)
  if (mode !== undefined) writer.uint32(mode)
  if (timed) writer.uint32(atime).uint32(mtime)
  return writer
}

/** A channel, or a stream like it, such as the input and output of a process. */
export type SftpStream = Pick<Channel, 'write' | typeof Symbol.asyncIterator> &
  Partial<Pick<Channel, 'closed'>>

/** Without their length. Pieces are joined once, in a buffer of the packet's size. */
export async function* packetsOf(
  line: Pick<SftpStream, typeof Symbol.asyncIterator>,
): AsyncGenerator<Buffer> {
  const head = Buffer.alloc(4)
  let headFilled = 0
  let packet: Buffer | undefined
  let filled = 0
  for await (const { bytes, stream } of line) {
    if (stream !== 0) continue
    let at = 0
    while (at < bytes.length) {
      if (!packet) {
        const copied = bytes.copy(head, headFilled, at, at + 4 - headFilled)
        headFilled += copied
        at += copied
        if (headFilled < 4) break
        const length = head.readUInt32BE(0)
        if (length < 1 || length > largestPacket_bytes)
          throw new ProtocolError('An SFTP packet has an impossible length.')
        headFilled = 0
        if (bytes.length - at >= length) {
          yield bytes.subarray(at, at + length)
          at += length
          continue
        }
        packet = Buffer.allocUnsafe(length)
        filled = 0
      }
      const copied = bytes.copy(packet, filled, at)
      filled += copied
      at += copied
      if (filled === packet.length) {
        const whole = packet
        packet = undefined
        yield whole
      }
    }
  }
}

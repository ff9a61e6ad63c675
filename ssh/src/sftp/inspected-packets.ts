// How much of a packet the inspector looks at, refused where its lengths contradict each other; and the
// packets that it puts in place of others.
import { ProtocolError } from '../errors.ts'
import { Writer } from '../wire.ts'
import { longestHandle_bytes, Sftp, Status, version } from './protocol.ts'

/** The longest request without data: two paths and more. */
const longestRequest_bytes = 34_000
/** Length, type and number. */
export const headEnd = 9
const shortestAnswer = 5

/** A request with data is inspected up to its data, any other as a whole. */
export function requestNeeds(head: Buffer, length: number): number {
  const type = head.readUInt8(4)
  if (type !== Sftp.write) {
    if (length > longestRequest_bytes) throw new ProtocolError('An SFTP request is too long.')
    return length + 4
  }
  if (head.length < headEnd + 4) return headEnd + 4
  const handle = head.readUInt32BE(headEnd)
  if (handle > longestHandle_bytes) throw new ProtocolError('An SFTP handle is too long.')
  const needed = headEnd + 4 + handle + 8 + 4
  if (needed > length + 4) throw new ProtocolError('An SFTP request is cut short.')
  if (head.length >= needed && head.readUInt32BE(needed - 4) !== length + 4 - needed)
    throw new ProtocolError('An SFTP request has a wrong data length.')
  return needed
}

export function answerNeeds(head: Buffer, length: number): number {
  const type = head.readUInt8(4)
  switch (type) {
    case Sftp.handle:
      if (length > shortestAnswer + 4 + longestHandle_bytes)
        throw new ProtocolError('An SFTP handle is too long.')
      return length + 4
    case Sftp.status:
    case Sftp.data:
      if (length < shortestAnswer + 4) throw new ProtocolError('An SFTP answer is cut short.')
      if (type === Sftp.data && head.length > headEnd && head.readUInt32BE(headEnd) !== length - 9)
        throw new ProtocolError('An SFTP answer has a wrong data length.')
      return headEnd + 4
    case Sftp.attrs:
      return Math.min(length + 4, headEnd + 12)
    default:
      return headEnd
  }
}

/** INIT of version 3: another version would have other requests. */
export function begin(): Buffer {
  return new Writer(headEnd).uint32(5).byte(Sftp.init).uint32(version).bytes()
}

/** A request that every server answers, and that reveals nothing. */
export function harmlessRequest(id: number): Buffer {
  return new Writer(16).uint32(10).byte(Sftp.lstat).uint32(id).string('/').bytes()
}

export function denied(id: number, why: string): Buffer {
  const body = new Writer().byte(Sftp.status).uint32(id).uint32(Status.permissionDenied).string(why)
  body.string('en')
  return new Writer().string(body.bytes()).bytes()
}

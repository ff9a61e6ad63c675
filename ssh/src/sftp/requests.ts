// The requests of an SFTP client. Each has a number, and answers may come in any order. A failure is an
// SftpFailure; when the server is gone or breaks the protocol, all open requests fail.
import type { Channel } from '../connection/channel.ts'
import { ProtocolError } from '../errors.ts'
import { Reader, Writer } from '../wire.ts'
import {
  longestHandle_bytes,
  readAttributes,
  Sftp,
  SftpFailure,
  Status,
  writeAttributes,
  type Attributes,
} from './protocol.ts'

/** Linux allows 255 bytes in a name and 4,096 in a path; other systems allow a little more in a name. */
export const longestName_bytes = 1_024
const longestPath_bytes = 4_096
/** A longer reason of a failure is cut. */
const longestReason_bytes = 1_024

type Answered = { readonly type: number; readonly fields: Reader }
type Fields = (writer: Writer) => Writer

export class Requests {
  readonly #channel: Channel
  readonly #waiting = new Map<number, PromiseWithResolvers<Answered>>()
  #lastId = 0
  #over: Error | undefined

  constructor(channel: Channel, packets: AsyncGenerator<Buffer>) {
    this.#channel = channel
    void this.#listen(packets)
  }

  async #listen(packets: AsyncGenerator<Buffer>): Promise<void> {
    let reason = new ProtocolError('The SFTP server is gone.')
    try {
      for await (const packet of packets) {
        const fields = new Reader(packet)
        const [type, id] = [fields.byte(), fields.uint32()]
        const answered = this.#waiting.get(id)
        if (!answered) throw new ProtocolError('An SFTP answer belongs to no request.')
        this.#waiting.delete(id)
        answered.resolve({ type, fields })
      }
    } catch (error) {
      reason = new ProtocolError('The SFTP server is gone.', { cause: error })
    }
    this.#over = reason
    for (const answered of this.#waiting.values()) answered.reject(reason)
    await this.#channel.close('now')
  }

  async #send(type: number, write: Fields, room: number): Promise<Answered> {
    if (this.#over) throw this.#over
    this.#lastId = (this.#lastId + 1) >>> 0
    const answered = Promise.withResolvers<Answered>()
    this.#waiting.set(this.#lastId, answered)
    const packet = write(new Writer(room).uint32(0).byte(type).uint32(this.#lastId)).bytes()
    packet.writeUInt32BE(packet.length - 4, 0)
    await Promise.all([this.#channel.write(packet), answered.promise])
    return answered.promise
  }

  /** Resolves when the server has done it. */
  async done(type: number, write: Fields, room = 256): Promise<void> {
    const failure = failureOf(await this.#send(type, write, room))
    if (failure.code !== Status.ok) throw failure
  }

  async expect(kind: number, type: number, write: Fields): Promise<Reader> {
    const answered = await this.#send(type, write, 256)
    if (answered.type !== kind) throw failureOf(answered)
    return answered.fields
  }

  /** Undefined at the end of the file or folder. */
  async expectUntilEnd(kind: number, type: number, write: Fields): Promise<Reader | undefined> {
    try {
      return await this.expect(kind, type, write)
    } catch (error) {
      if (error instanceof SftpFailure && error.code === Status.eof) return undefined
      throw error
    }
  }

  async attributes(type: number, path: string): Promise<Attributes> {
    return readAttributes(await this.expect(Sftp.attrs, type, (writer) => writer.string(path)))
  }

  async name(type: number, path: string): Promise<string> {
    const fields = await this.expect(Sftp.name, type, (writer) => writer.string(path))
    if (fields.uint32() !== 1) throw new ProtocolError('An SFTP answer has more or less than one name.')
    return textOf(fields, longestPath_bytes, 'path')
  }

  async openFile(path: string, flags: number, mode?: number): Promise<Buffer> {
    const attributes = mode === undefined ? {} : { mode }
    return this.#handle(Sftp.open, (writer) => writeAttributes(writer.string(path).uint32(flags), attributes))
  }

  async openFolder(path: string): Promise<Buffer> {
    return this.#handle(Sftp.opendir, (writer) => writer.string(path))
  }

  async closeHandle(handle: Buffer): Promise<void> {
    return this.done(Sftp.close, (writer) => writer.string(handle))
  }

  /** Returns a copy, since a handle outlives its packet. */
  async #handle(type: number, write: Fields): Promise<Buffer> {
    const bytes = (await this.expect(Sftp.handle, type, write)).string()
    if (bytes.length > longestHandle_bytes) throw new ProtocolError('An SFTP handle is too long.')
    return Buffer.from(bytes)
  }
}

function failureOf({ type, fields }: Answered): SftpFailure {
  if (type !== Sftp.status) throw new ProtocolError('An SFTP answer is of an unexpected kind.')
  const code = fields.uint32()
  const reason = fields.done ? 'Failure' : fields.string().toString('utf8', 0, longestReason_bytes)
  return new SftpFailure(code, reason)
}

export function textOf(fields: Reader, most: number, what: 'name' | 'path'): string {
  const bytes = fields.string()
  if (bytes.length > most) throw new SftpFailure(Status.badMessage, `A ${what} has more than ${most} bytes.`)
  return bytes.toString('utf8')
}

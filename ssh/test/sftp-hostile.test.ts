// An SFTP server and a client that is anything but: malformed, endless, out of order, and never an exception.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Channel } from '../src/connection/channel.ts'
import { ProtocolError } from '../src/errors.ts'
import { localFiles, type FileSystem } from '../src/sftp/files.ts'
import { Open, packetsOf, Sftp, Status, writeAttributes } from '../src/sftp/protocol.ts'
import { serveSftp } from '../src/sftp/server.ts'
import { Reader, Writer } from '../src/wire.ts'
import { pair } from './pairs.ts'

let home: string
beforeAll(() => void (home = mkdtempSync(path.join(tmpdir(), 'hawser-sftp-'))))
afterAll(() => rmSync(home, { recursive: true, force: true }))

interface Line extends AsyncDisposable {
  readonly channel: Channel
  readonly served: Promise<unknown>
  ask(type: number, write: (writer: Writer) => Writer): Promise<{ type: number; fields: Reader }>
}

/** A line on which INIT was said. */
async function sftpLine(files: FileSystem): Promise<Line> {
  const two = await pair()
  const opening = two.client.open('session')
  const there = (await two.server.channels.next())!.accept()
  const channel = await opening
  const served = serveSftp(there, files).catch((error: unknown) => error)
  const packets = packetsOf(channel)
  await channel.write(new Writer().uint32(5).byte(Sftp.init).uint32(3).bytes())
  await packets.next()
  return {
    channel,
    served,
    async ask(type, write) {
      const packet = write(new Writer().uint32(0).byte(type).uint32(1)).bytes()
      packet.writeUInt32BE(packet.length - 4, 0)
      await channel.write(packet)
      const { value } = (await packets.next()) as { value: Buffer }
      const fields = new Reader(value)
      const answered = fields.byte()
      fields.uint32()
      return { type: answered, fields }
    },
    [Symbol.asyncDispose]: async () => two[Symbol.asyncDispose](),
  }
}

/** Whatever is asked, nothing is there to be broken. */
const nothing = new Proxy({} as FileSystem, {
  get: (_, name) =>
    name === 'list'
      ? async function* () {}
      : async () => {
          throw Object.assign(new Error('nothing here'), { code: 'ENOENT' })
        },
})

test('any request of any kind is answered, or ends the session with a reason', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 255 }),
      fc.uint8Array({ maxLength: 80 }),
      async (type, bytes) => {
        await using line = await sftpLine(nothing)
        const answered = line.ask(type, (writer) => writer.raw(bytes)).catch(() => undefined)
        await line.channel.end()
        const outcome = await line.served
        if (outcome !== undefined) expect(outcome).toBeInstanceOf(ProtocolError)
        await answered
      },
    ),
    { numRuns: 60 },
  )
})

test('a packet without end is refused before it is read', async () => {
  await using line = await sftpLine(nothing)
  await line.channel.write(Buffer.of(0x7f, 0xff, 0xff, 0xff, 5))
  expect(((await line.served) as Error).message).toBe('An SFTP packet has an impossible length.')
})

test('handles are counted, and those that are left open are closed at the end', async () => {
  const open = new Set<number>()
  let count = 0
  const files: FileSystem = {
    ...nothing,
    async open() {
      const id = (count += 1)
      open.add(id)
      return {
        read: async () => 0,
        write: async () => undefined,
        stat: async () => ({}),
        change: async () => undefined,
        sync: async () => undefined,
        close: async () => void open.delete(id),
      }
    },
  }
  await using line = await sftpLine(files)
  const types: number[] = []
  for (let turn = 0; turn < 260; turn += 1) {
    types.push(
      (await line.ask(Sftp.open, (writer) => writeAttributes(writer.string('x').uint32(Open.read), {}))).type,
    )
  }
  expect(types.filter((type) => type === Sftp.handle).length).toBe(256)
  expect(open.size).toBe(256)
  await line.channel.end()
  expect(await line.served).toBeUndefined()
  expect(open.size).toBe(0)
})

test('a handle that was never given, or of the wrong kind, is refused', async () => {
  await using line = await sftpLine(localFiles(home))
  const code = ({ type, fields }: { type: number; fields: Reader }): number =>
    type === Sftp.status ? fields.uint32() : -1
  expect(code(await line.ask(Sftp.read, (writer) => writer.string('odd').uint64(0n).uint32(1)))).toBe(
    Status.failure,
  )
  const { fields } = await line.ask(Sftp.opendir, (writer) => writer.string('.'))
  const handle = fields.string()
  expect(code(await line.ask(Sftp.read, (writer) => writer.string(handle).uint64(0n).uint32(1)))).toBe(
    Status.failure,
  )
  expect(code(await line.ask(Sftp.close, (writer) => writer.string(handle)))).toBe(Status.ok)
  expect(code(await line.ask(Sftp.close, (writer) => writer.string(handle)))).toBe(Status.failure)
  expect(code(await line.ask(Sftp.extended, (writer) => writer.string('no-such@example.com')))).toBe(
    Status.unsupported,
  )
})

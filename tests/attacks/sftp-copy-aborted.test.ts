// A copy on the server that would never end: it ends when the client closes one of its files, or is gone, and
// a file is not copied onto itself.
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { localFiles, type FileSystem } from '../../ssh/src/sftp/files.ts'
import { Open, packetsOf, Sftp, Status, writeAttributes } from '../../ssh/src/sftp/protocol.ts'
import { serveSftp } from '../../ssh/src/sftp/server.ts'
import { Reader, Writer } from '../../ssh/src/wire.ts'
import { pair } from '../../ssh/test/pairs.ts'
import { eventually } from '../harness/eventually.ts'

let home: string
beforeAll(() => void (home = mkdtempSync(path.join(tmpdir(), 'hawser-copy-'))))
afterAll(() => rmSync(home, { recursive: true, force: true }))

/** The files of this machine, and how many bytes were copied so far. */
function counted(): FileSystem & { copied(): number } {
  const files = localFiles(home)
  let bytes = 0
  return {
    ...files,
    copied: () => bytes,
    async open(...wish) {
      const file = await files.open(...wish)
      return {
        ...file,
        async write(part, position) {
          await file.write(part, position)
          bytes += part.length
        },
      }
    },
  }
}

/** A line on which nothing is awaited unless the test does. */
async function sftp(files: FileSystem) {
  const two = await pair()
  const opening = two.client.open('session')
  const there = (await two.server.channels.next())!.accept()
  const channel = await opening
  const served = serveSftp(there, files).catch((error: unknown) => error)
  const packets = packetsOf(channel)
  await channel.write(new Writer().uint32(5).byte(Sftp.init).uint32(3).bytes())
  await packets.next()
  const send = async (type: number, write: (writer: Writer) => Writer): Promise<void> => {
    const packet = write(new Writer().uint32(0).byte(type).uint32(1)).bytes()
    packet.writeUInt32BE(packet.length - 4, 0)
    await channel.write(packet)
  }
  const answer = async (): Promise<{ type: number; fields: Reader }> => {
    const fields = new Reader(((await packets.next()) as { value: Buffer }).value)
    const type = fields.byte()
    fields.uint32()
    return { type, fields }
  }
  return {
    ...two,
    served,
    send,
    answer,
    async open(file: string, flags: number): Promise<Buffer> {
      await send(Sftp.open, (writer) => writeAttributes(writer.string(file).uint32(flags), {}))
      return (await answer()).fields.string()
    },
    copy: (from: Buffer, to: Buffer) =>
      send(Sftp.extended, (writer) =>
        writer.string('copy-data').string(from).uint64(0n).uint64(0n).string(to).uint64(0n),
      ),
    status: async () => (await answer()).fields.uint32(),
  }
}

async function endless(files: FileSystem & { copied(): number }) {
  const line = await sftp(files)
  const [from, to] = [await line.open('/dev/zero', Open.read), await line.open('/dev/null', Open.write)]
  await line.copy(from, to)
  await eventually(() => expect(files.copied()).toBeGreaterThan(1_000_000))
  return { line, from, to }
}

test.each(['from', 'to'] as const)('the file that it copies %s is closed', async (which) => {
  const { line, ...handles } = await endless(counted())
  await line.send(Sftp.close, (writer) => writer.string(handles[which]))
  expect(await line.status()).toBe(Status.failure)
  expect(await line.status()).toBe(Status.ok)
  await line[Symbol.asyncDispose]()
  await line.served
})

test('the client is gone', async () => {
  const files = counted()
  const { line } = await endless(files)
  // Behind which it could not see that the client leaves.
  await line.send(Sftp.stat, (writer) => writer.string('.'))
  await line[Symbol.asyncDispose]()
  await line.served
  const copied = files.copied()
  await new Promise(setImmediate)
  expect(files.copied()).toBe(copied)
})

test('a file is not copied onto itself', async () => {
  const files = counted()
  const line = await sftp(files)
  writeFileSync(path.join(home, 'snake'), Buffer.alloc(100))
  const whole = await line.open('snake', Open.read | Open.write)
  const tail = await line.open('./snake', Open.write | Open.append)
  await line.copy(whole, whole)
  expect(await line.status()).toBe(Status.failure)
  await line.copy(whole, tail)
  expect(await line.status()).toBe(Status.failure)
  expect(statSync(path.join(home, 'snake')).size).toBe(100)
  await line[Symbol.asyncDispose]()
  await line.served
})

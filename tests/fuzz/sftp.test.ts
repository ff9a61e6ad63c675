// Bytes of a client and a device between which the gateway reads SFTP, both without rules. What passes is
// what came, as far as packets are whole; where writing is forbidden, a device gets nothing that could write,
// which a parser of this file's own looks for. What is no SFTP ends with a named reason.
import { expect, test, vi } from 'vitest'
import { ProtocolError } from '../../ssh/src/errors.ts'
import { sftpInspector } from '../../ssh/src/sftp/inspector.ts'
import { Writer } from '../../ssh/src/wire.ts'
import { messagesIn } from './bare-transport.ts'
import { fuzz } from './fuzz.ts'

vi.setConfig({ testTimeout: 1_800_000 })

const packet = (type: number, id: number, write: (writer: Writer) => Writer = (writer) => writer): Buffer =>
  Buffer.from(new Writer().string(write(new Writer().byte(type).uint32(id)).bytes()).bytes())
const near = Buffer.concat([
  packet(1, 3),
  packet(3, 1, (writer) => writer.string('/a').uint32(0x1a).uint32(0)),
  packet(6, 2, (writer) => writer.string('h').uint64(0n).string('some data')),
  packet(5, 3, (writer) => writer.string('h').uint64(0n).uint32(32_768)),
  packet(18, 4, (writer) => writer.string('/a').string('/b')),
  packet(200, 5, (writer) => writer.string('posix-rename@openssh.com').string('/a').string('/b')),
  packet(200, 6, (writer) => writer.string('statvfs@openssh.com').string('/a')),
  packet(4, 7, (writer) => writer.string('h')),
])
const far = Buffer.concat([
  packet(2, 3),
  packet(102, 1, (writer) => writer.string('h')),
  packet(101, 2, (writer) => writer.uint32(0).string('').string('')),
  packet(103, 3, (writer) => writer.string('some data')),
  packet(105, 4, (writer) => writer.uint32(1).uint64(9n)),
  packet(101, 7, (writer) => writer.uint32(0).string('').string('')),
])
/** A chunk with a byte before it that says whose it is. */
const chunk = (side: 0 | 1, bytes: Buffer): Buffer => {
  const length = bytes.length + 1
  return Buffer.concat([Buffer.of(length >> 8, length & 0xff, side), bytes])
}
const seeds = [
  Buffer.concat([chunk(0, near), chunk(1, far)]),
  Buffer.concat([chunk(0, near.subarray(0, 40)), chunk(1, far), chunk(0, near.subarray(40))]),
  Buffer.concat([chunk(0, near.subarray(0, 5)), chunk(0, near.subarray(5, 60)), chunk(0, near.subarray(60))]),
]

const looks = new Set([4, 5, 7, 8, 11, 12, 16, 17, 19])
const harmless = new Set([
  'statvfs@openssh.com',
  'fstatvfs@openssh.com',
  'fsync@openssh.com',
  'limits@openssh.com',
  'expand-path@openssh.com',
  'home-directory',
  'users-groups-by-id@openssh.com',
])

/** Whether a device could not write anything because of these bytes. */
function writesNothing(bytes: Buffer): boolean {
  for (let at = 0; at + 9 <= bytes.length;) {
    const length = bytes.readUInt32BE(at)
    const body = bytes.subarray(at + 4, at + 4 + length)
    at += 4 + length
    const type = body.readUInt8(0)
    if (looks.has(type) || (type === 1 && length === 5 && body.readUInt32BE(1) === 3)) continue
    if (type !== 3 && type !== 200) return false
    const name = body.subarray(9, 9 + body.readUInt32BE(5))
    if (type === 3 ? (body.readUInt32BE(9 + name.length) & ~1) !== 0 : !harmless.has(name.toString()))
      return false
  }
  return true
}

test.each([
  ['sftp', {}],
  ['sftp-restricted', { writes: 'No.' }],
] as const)('%s', async (name, restrictions) => {
  const { inputs, endings } = await fuzz({
    name,
    seeds,
    feed(input) {
      const done: string[] = []
      const inspector = sftpInspector({
        restrictions,
        done: ({ kind, refused, sha256 }) =>
          void done.push(`${kind} ${refused ?? (sha256 ? 'whole' : 'part')}`),
        lost: (why) => void done.push(why),
      })
      const came: Buffer[][] = [[], []]
      const passed: Buffer[][] = [[], []]
      let ending = 'whole'
      try {
        for (const message of messagesIn(input)) {
          const side = (message[0] ?? 0) & 1
          const bytes = Buffer.from(message.subarray(1))
          came[side]?.push(bytes)
          passed[side]?.push(...inspector.pass(side === 0 ? 'near' : 'far', bytes))
        }
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError)
        ending = (error as Error).message.replaceAll(/\d+/g, 'n')
      }
      inspector.end()
      const [toDevice, toClient] = passed.map((all) => Buffer.concat(all)) as [Buffer, Buffer]
      if (name === 'sftp-restricted') expect(writesNothing(toDevice)).toBe(true)
      else
        for (const [side, bytes] of [toDevice, toClient].entries())
          expect(
            Buffer.concat(came[side] ?? [])
              .subarray(0, bytes.length)
              .equals(bytes),
          ).toBe(true)
      return `${ending} ${[...new Set(done)].toSorted().join()}`
    },
  })
  expect(inputs).toBeGreaterThan(100)
  expect(endings.size).toBeGreaterThan(5)
})

// Packets under every cipher: what was sealed is opened, however it is cut on the way, and nothing else is.
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ciphers, macs } from '../algorithms.ts'
import { message, payloadOf } from '../wire.ts'
import { packetReader, packetWriter } from './packets.ts'

const usualMac = 'hmac-sha2-256-etm@openssh.com'
/** A cipher, and a MAC if it is not the usual one. */
const suites = [
  ...ciphers.keys(),
  ...[...macs.keys()].filter((name) => name !== usualMac).map((name) => `aes192-ctr ${name}`),
]

function ends(suite: string) {
  const [name = '', macName = usualMac] = suite.split(' ')
  const [cipher, mac] = [ciphers.get(name)!, macs.get(macName)!]
  const keys = {
    key: randomBytes(cipher.key_bytes),
    iv: randomBytes(cipher.iv_bytes),
    mac: randomBytes(mac.bytes),
  }
  const [writer, reader] = [packetWriter(), packetReader()]
  writer.use(cipher.sealer(keys, mac), true)
  reader.use(cipher.opener(keys, mac), true)
  return { writer, reader }
}

describe.each(['none', ...suites])('%s', (name) => {
  const fresh = () => (name === 'none' ? { writer: packetWriter(), reader: packetReader() } : ends(name))

  test('payloads of all lengths come back, in pieces of all sizes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 600 }), { minLength: 1, maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 5 }),
        (payloads, sizes) => {
          const { writer, reader } = fresh()
          const sent = payloads.map((bytes) => message(94).raw(bytes))
          const expected = sent.map((written) => Buffer.from(payloadOf(written)))
          const wire = Buffer.concat(sent.flatMap((written) => writer.seal(written)))
          const got: Buffer[] = []
          for (let at = 0, turn = 0; at < wire.length; turn += 1) {
            reader.push(wire.subarray(at, (at += sizes[turn % sizes.length]!)))
            for (let payload = reader.next(); payload; payload = reader.next()) got.push(Buffer.from(payload))
          }
          expect(got).toEqual(expected)
        },
      ),
      { numRuns: 40 },
    )
  })
})

describe('memory of large packets that span chunks', () => {
  /** `keep`: whether a payload is held or released. */
  function read(keep: (count: number) => boolean): { same: boolean; memories: number } {
    const { writer, reader } = ends('aes128-gcm@openssh.com')
    reader.allow(256 * 1024)
    const sent = Array.from({ length: 24 }, (_, at) => randomBytes(at % 2 === 0 ? 100_000 : 33_000))
    const wire = Buffer.concat(sent.flatMap((bytes) => writer.seal(message(94, bytes.length).raw(bytes))))
    const kept: { readonly payload: Buffer; readonly at: number }[] = []
    const memories = new Set<ArrayBufferLike>()
    let [count, same] = [0, true]
    for (let at = 0; at < wire.length;) {
      reader.push(Buffer.from(wire.subarray(at, (at += 30_000))))
      for (let payload = reader.next(); payload; payload = reader.next()) {
        same &&= payload.subarray(1).equals(sent[count]!)
        memories.add(payload.buffer)
        if (keep(count)) kept.push({ payload, at: count })
        else reader.release()
        count += 1
      }
    }
    same &&= kept.every(({ payload, at }) => payload.subarray(1).equals(sent[at]!))
    return { same: same && count === sent.length, memories: memories.size }
  }

  test('is used again when nobody kept them', () => {
    const { same, memories } = read(() => false)
    expect(same).toBe(true)
    expect(memories).toBeLessThan(10)
  })

  test.each([1, 2, 3, 5])('is not when somebody did: every payload but each %i. is kept', (every) => {
    expect(read((count) => count % every !== 0).same).toBe(true)
  })
})

describe.each(suites)('%s', (name) => {
  test('a changed, repeated or missing packet is noticed', () => {
    const seal = (writer: ReturnType<typeof packetWriter>, text: string): Buffer =>
      Buffer.concat(writer.seal(message(94).string(text)))
    for (const spoil of [
      (packets: Buffer[]) => [packets[1]!, packets[0]!],
      (packets: Buffer[]) => [packets[0]!, packets[0]!],
      (packets: Buffer[]) => [
        packets[0]!,
        Buffer.concat([packets[1]!.subarray(0, -1), Buffer.of(packets[1]!.at(-1)! ^ 1)]),
      ],
      (packets: Buffer[]) => [
        packets[0]!,
        Buffer.concat([packets[1]!.subarray(0, 9), Buffer.of(packets[1]![9]! ^ 1), packets[1]!.subarray(10)]),
      ],
    ]) {
      const { writer, reader } = ends(name)
      const spoiled = spoil([seal(writer, 'one'), seal(writer, 'two')])
      expect(() => {
        for (const packet of spoiled) {
          reader.push(packet)
          reader.next()
        }
      }).toThrow(/changed on its way|impossible length|whole blocks/)
    }
  })
})

test('padding never repeats', () => {
  const writer = packetWriter()
  const seen = new Set<string>()
  for (let turn = 0; turn < 5_000; turn += 1) {
    const [packet] = writer.seal(message(2))
    seen.add(packet!.subarray(6).toString('hex'))
  }
  expect(seen.size).toBe(5_000)
})

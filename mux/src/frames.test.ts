// The bytes of frames, and that it does not matter how they are cut.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Flag, frame, FrameReader, GoAway, Type } from './frames.ts'

interface Seen {
  readonly version: number
  readonly type: number
  readonly flags: number
  readonly id: number
  readonly length: number
  payload: string
}

function readFrames(chunks: readonly Buffer[]): { seen: Seen[]; within: boolean } {
  const reader = new FrameReader()
  const seen: Seen[] = []
  for (const chunk of chunks) {
    reader.take(chunk, {
      header: (version, type, flags, id, length) =>
        seen.push({ version, type, flags, id, length, payload: '' }) > 0,
      payload: (piece) => ((seen.at(-1)!.payload += piece.toString('hex')), true),
    })
  }
  return { seen, within: reader.within }
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const borders = [0, ...at.toSorted((a, b) => a - b), bytes.length]
  return borders.slice(1).map((end, index) => bytes.subarray(borders[index], end))
}

test.each([
  [
    'opening a stream with a window of 1 MiB',
    frame(Type.windowUpdate, Flag.syn, 1, 768 * 1024),
    '0001000100000001000c0000',
  ],
  ['accepting one', frame(Type.windowUpdate, Flag.ack, 1, 0), '000100020000000100000000'],
  ['data', frame(Type.data, 0, 0x01020304, 0x05060708), '000000000102030405060708'],
  ['credit', frame(Type.windowUpdate, 0, 3, 131072), '000100000000000300020000'],
  ['finishing', frame(Type.windowUpdate, Flag.fin, 5, 0), '000100040000000500000000'],
  ['resetting', frame(Type.windowUpdate, Flag.rst, 7, 0), '000100080000000700000000'],
  ['a ping', frame(Type.ping, Flag.syn, 0, 42), '00020001000000000000002a'],
  ['its answer', frame(Type.ping, Flag.ack, 0, 42), '00020002000000000000002a'],
  ['going away', frame(Type.goAway, 0, 0, GoAway.protocolError), '000300000000000000000001'],
])('a frame for %s has the bytes that others expect', (_, bytes, hex) => {
  expect(bytes.toString('hex')).toBe(hex)
})

test('frames are read alike wherever the bytes are cut', () => {
  const bytes = Buffer.concat([
    frame(Type.windowUpdate, Flag.syn, 1, 9),
    frame(Type.data, 0, 1, 5),
    Buffer.from('hello'),
    frame(Type.data, Flag.fin, 1, 0),
    frame(Type.ping, Flag.syn, 0, 0xffffffff),
  ])
  const whole = readFrames([bytes])
  expect(whole.seen.map(({ type, flags, id, length }) => [type, flags, id, length])).toEqual([
    [1, 1, 1, 9],
    [0, 0, 1, 5],
    [0, 4, 1, 0],
    [2, 1, 0, 0xffffffff],
  ])
  expect(whole.seen[1]!.payload).toBe(Buffer.from('hello').toString('hex'))
  expect(whole.within).toBe(false)
  for (let at = 0; at <= bytes.length; at++) expect(readFrames(cut(bytes, [at]))).toEqual(whole)
  expect(readFrames(Array.from(bytes, (byte) => Buffer.of(byte)))).toEqual(whole)
})

test('a reader that ends early knows whether it was within a frame', () => {
  const bytes = Buffer.concat([frame(Type.data, 0, 1, 2), Buffer.from('ab')])
  for (let end = 0; end <= bytes.length; end++) {
    expect(readFrames([bytes.subarray(0, end)]).within).toBe(end > 0 && end < bytes.length)
  }
})

test('any frames, cut anyhow, are those that were written', () => {
  const written = fc.oneof(
    fc.record({
      type: fc.constantFrom(1, 2, 3),
      flags: fc.nat(15),
      id: fc.nat(0xffffffff),
      length: fc.nat(0xffffffff),
    }),
    fc.record({
      type: fc.constant(0),
      flags: fc.nat(15),
      id: fc.nat(0xffffffff),
      body: fc.uint8Array({ maxLength: 60 }),
    }),
  )
  fc.assert(
    fc.property(
      fc.array(written, { maxLength: 8 }),
      fc.array(fc.nat(600), { maxLength: 12 }),
      (frames, cuts) => {
        const bytes = Buffer.concat(
          frames.flatMap((one) =>
            'body' in one
              ? [frame(one.type, one.flags, one.id, one.body.length), Buffer.from(one.body)]
              : [frame(one.type, one.flags, one.id, one.length)],
          ),
        )
        const borders = cuts.map((at) => Math.min(at, bytes.length))
        const { seen, within } = readFrames(cut(bytes, borders))
        expect(within).toBe(false)
        expect(seen).toEqual(
          frames.map((one) => ({
            version: 0,
            type: one.type,
            flags: one.flags,
            id: one.id,
            length: 'body' in one ? one.body.length : one.length,
            payload: 'body' in one ? Buffer.from(one.body).toString('hex') : '',
          })),
        )
      },
    ),
  )
})

test('a payload that came whole is not copied', () => {
  const chunk = Buffer.concat([frame(Type.data, 0, 1, 4), Buffer.from('whole')])
  const pieces: Buffer[] = []
  new FrameReader().take(chunk.subarray(0, 16), {
    header: () => true,
    payload: (piece) => pieces.push(piece) > 0,
  })
  chunk.write('W', 12)
  expect(Buffer.concat(pieces).toString()).toBe('Whol')
})

// Data that waits for a reader comes out as it went in, and costs little more than its bytes.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ReceiveBuffer } from './receive-buffer.ts'

function takeAll(buffer: ReceiveBuffer): Buffer[] {
  const pieces: Buffer[] = []
  for (let piece = buffer.take(); piece; piece = buffer.take()) pieces.push(piece)
  return pieces
}

test('bytes come out in the order in which they went in, whatever the sizes', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.nat(20), fc.integer({ min: 3_000, max: 9_000 })), { maxLength: 30 }),
      fc.nat(30),
      (sizes, takeAt) => {
        const buffer = new ReceiveBuffer()
        const out: Buffer[] = []
        const pieces = sizes.map((size, index) => Buffer.alloc(size, index + 1))
        for (const [index, piece] of pieces.entries()) {
          if (index === takeAt) out.push(...takeAll(buffer))
          buffer.put(piece)
        }
        expect(buffer.size + Buffer.concat(out).length).toBe(Buffer.concat(pieces).length)
        out.push(...takeAll(buffer))
        expect(Buffer.concat(out).equals(Buffer.concat(pieces))).toBe(true)
        expect(buffer.size).toBe(0)
      },
    ),
  )
})

test('small pieces of large chunks keep neither the chunks nor a buffer each', () => {
  const buffer = new ReceiveBuffer()
  for (let count = 0; count < 10_000; count++) buffer.put(Buffer.alloc(64 * 1024).subarray(0, 1))
  for (let count = 0; count < 4; count++) buffer.put(Buffer.alloc(64 * 1024).subarray(0, 5_000))
  const pieces = takeAll(buffer)
  const kept = pieces.reduce((sum, piece) => sum + piece.buffer.byteLength, 0)
  expect(Buffer.concat(pieces).length).toBe(30_000)
  expect(pieces.length).toBeLessThan(10)
  expect(kept).toBeLessThan(2 * 30_000)
})

test('a piece that is most of its chunk is kept as it is', () => {
  const buffer = new ReceiveBuffer()
  const chunk = Buffer.allocUnsafeSlow(16 * 1024)
  buffer.put(chunk.subarray(100))
  expect(buffer.take()!.buffer).toBe(chunk.buffer)
})

// What waits for a reader comes out as it went in, and costs little more than its bytes.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Inbox } from './inbox.ts'

function takeAll(inbox: Inbox): Buffer[] {
  const pieces: Buffer[] = []
  for (let piece = inbox.take(); piece; piece = inbox.take()) pieces.push(piece)
  return pieces
}

test('bytes come out in the order in which they went in, whatever the sizes', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.nat(20), fc.integer({ min: 3_000, max: 9_000 })), { maxLength: 30 }),
      fc.nat(30),
      (sizes, takeAt) => {
        const inbox = new Inbox()
        const out: Buffer[] = []
        const pieces = sizes.map((size, index) => Buffer.alloc(size, index + 1))
        for (const [index, piece] of pieces.entries()) {
          if (index === takeAt) out.push(...takeAll(inbox))
          inbox.put(piece)
        }
        expect(inbox.size + Buffer.concat(out).length).toBe(Buffer.concat(pieces).length)
        out.push(...takeAll(inbox))
        expect(Buffer.concat(out).equals(Buffer.concat(pieces))).toBe(true)
        expect(inbox.size).toBe(0)
      },
    ),
  )
})

test('small pieces of large chunks keep neither the chunks nor a buffer each', () => {
  const inbox = new Inbox()
  for (let count = 0; count < 10_000; count++) inbox.put(Buffer.alloc(64 * 1024).subarray(0, 1))
  for (let count = 0; count < 4; count++) inbox.put(Buffer.alloc(64 * 1024).subarray(0, 5_000))
  const pieces = takeAll(inbox)
  const kept = pieces.reduce((sum, piece) => sum + piece.buffer.byteLength, 0)
  expect(Buffer.concat(pieces).length).toBe(30_000)
  expect(pieces.length).toBeLessThan(10)
  expect(kept).toBeLessThan(2 * 30_000)
})

test('a piece that is most of its chunk is kept as it is', () => {
  const inbox = new Inbox()
  const chunk = Buffer.allocUnsafeSlow(16 * 1024)
  inbox.put(chunk.subarray(100))
  expect(inbox.take()!.buffer).toBe(chunk.buffer)
})

// Hashes on another thread are those of this one, whatever files are mixed and however their bytes are cut;
// those that nobody wants leave nothing behind, and a fast writer waits.
import { createHash, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { hashThread } from './hash-thread.ts'

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

test('many files at once, in pieces of every size', async () => {
  await using thread = hashThread()
  const files = [0, 1, 17, 262_143, 262_144, 262_145, 1_000_003].map((size) => ({
    bytes: randomBytes(size),
    hash: thread.hash(),
    at: 0,
  }))
  for (let round = 0; files.some(({ at, bytes }) => at < bytes.length); round += 1)
    for (const [index, file] of files.entries()) {
      const size = 1 + ((round * 7_919 + index * 104_729) % 90_000)
      const piece = Buffer.from(file.bytes.subarray(file.at, file.at + size))
      file.hash.update(piece)
      // Packets reuse their memory.
      piece.fill(0)
      file.at += size
    }
  const dropped = thread.hash()
  dropped.update(Buffer.alloc(100))
  dropped.drop?.()
  expect(await Promise.all(files.map(async ({ hash }) => hash.digest()))).toEqual(
    files.map(({ bytes }) => sha256(bytes)),
  )
})

test('many small files that are complete at once take no more memory than their bytes need', async () => {
  await using thread = hashThread()
  const before = process.memoryUsage().arrayBuffers
  const sums = Array.from({ length: 2_000 }, async (_, index) => {
    const hash = thread.hash()
    hash.update(Buffer.from(`file ${index}`))
    return hash.digest()
  })
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * 1024 * 1024)
  expect(await Promise.all(sums)).toEqual(sums.map((_, index) => sha256(Buffer.from(`file ${index}`))))
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * 1024 * 1024)
})

test('whoever is faster than the thread waits for room', async () => {
  await using thread = hashThread()
  const hash = thread.hash()
  const piece = Buffer.alloc(1024 * 1024, 7)
  let [sent, waits] = [0, 0]
  while (sent < 64) {
    const room = thread.room()
    if (room) {
      waits += 1
      await room
    }
    hash.update(piece)
    sent += 1
  }
  expect(waits).toBeGreaterThan(0)
  expect(await hash.digest()).toBe(sha256(Buffer.alloc(sent * piece.length, 7)))
})

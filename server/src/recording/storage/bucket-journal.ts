// A journal in a bucket as readers see it: ranges of it, read ahead.
import type { Reading } from './storage.ts'
import type { Bucket } from './s3.ts'

/** A sequential reader gets larger ranges each time. */
const leastRead_bytes = 256 * 1024
const mostRead_bytes = 4 * 1024 * 1024

export async function bucketJournal(bucket: Bucket, key: string): Promise<Reading> {
  const size = await bucket.size(key)
  let chunk: Buffer = Buffer.alloc(0)
  let chunkAt = 0
  let ahead_bytes = leastRead_bytes
  return {
    size: () => Promise.resolve(size),
    async at(offset, length) {
      const end = Math.min(size, offset + length)
      if (offset >= end) return Buffer.alloc(0)
      if (offset < chunkAt || end > chunkAt + chunk.length) {
        const straight = chunk.length > 0 && offset >= chunkAt && offset <= chunkAt + chunk.length
        ahead_bytes = straight ? Math.min(mostRead_bytes, ahead_bytes * 2) : leastRead_bytes
        chunk = await bucket.read(key, offset, Math.min(size, Math.max(end, offset + ahead_bytes)))
        chunkAt = offset
      }
      return chunk.subarray(offset - chunkAt, end - chunkAt)
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

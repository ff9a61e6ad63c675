// The thread that hashes files. A message has bytes of several files, one after the other.
import { createHash, type Hash } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { invariant } from '@hawser/contract/failures'
import type { HashBatch, HashAnswer } from './hash-thread.ts'

invariant(parentPort, 'this file is a worker')
const port = parentPort
const hashes = new Map<number, Hash>()

port.on('message', ({ memory, parts, ends, drops }: HashBatch) => {
  let at = 0
  for (const { id, length } of parts) {
    const hash = hashes.get(id) ?? createHash('sha256')
    hashes.set(id, hash.update(new Uint8Array(memory, at, length)))
    at += length
  }
  const sums = ends.map((id) => [id, (hashes.get(id) ?? createHash('sha256')).digest('hex')] as const)
  for (const id of [...ends, ...drops]) hashes.delete(id)
  const answer: HashAnswer = { memory, sums }
  port.postMessage(answer, [memory])
})

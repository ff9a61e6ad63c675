// Hashes the files that pass the gateway on another thread: a hash takes a quarter of the time that the
// gateway needs to move the same bytes, and others wait for the gateway's thread. Bytes of all files are
// collected in one block of memory and sent to the thread together, when the block is full or when a file is
// complete: once for all files that are complete in the same turn, because a block is large and many files are
// small. The thread starts with the first file. A writer waits while 16 blocks are with the thread, which
// bounds the memory.
import { Worker } from 'node:worker_threads'
import type { SftpHash } from '@hawser/ssh'

export interface HashBatch {
  readonly memory: ArrayBuffer
  /** The file of each part of the bytes, in order. */
  readonly parts: readonly { readonly id: number; readonly length: number }[]
  readonly ends: readonly number[]
  /** Files whose hash is no longer needed. */
  readonly drops: readonly number[]
}

export interface HashAnswer {
  readonly memory: ArrayBuffer
  readonly sums: readonly (readonly [id: number, sha256: string])[]
}

export interface HashThread extends AsyncDisposable {
  hash(): SftpHash
  /** Resolves when there is room for more bytes; undefined: there is. */
  room(): Promise<void> | undefined
}

const block_bytes = 256 * 1024
const mostParts = 4_096
const mostOnTheWay = 16
/** Blocks that are kept when none is in use; only then are others freed. */
const mostSpare = 4

export function hashThread(): HashThread {
  let worker: Worker | undefined
  /** The number of failed threads: a hash that began before a failure has no result. */
  let generation = 0
  let nextId = 0
  let onTheWay = 0
  const spare: ArrayBuffer[] = []
  let memory = new ArrayBuffer(0)
  let filled = 0
  let parts: { id: number; length: number }[] = []
  let ends: number[] = []
  let drops: number[] = []
  let turn: NodeJS.Immediate | undefined
  const waiting = new Map<number, (sha256: string | undefined) => void>()
  let room: PromiseWithResolvers<void> | undefined

  function failed(): void {
    worker = undefined
    generation += 1
    onTheWay = 0
    clearImmediate(turn)
    turn = undefined
    ;[filled, parts, ends, drops] = [0, [], [], []]
    for (const resolve of waiting.values()) resolve(undefined)
    waiting.clear()
    room?.resolve()
    room = undefined
  }

  function start(): Worker {
    const started = new Worker(new URL('./hash-worker.ts', import.meta.url), {
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    })
    started.unref()
    started.on('message', (answer: HashAnswer) => {
      if (worker !== started) return
      onTheWay -= 1
      spare.push(answer.memory)
      if (onTheWay === 0) spare.length = Math.min(spare.length, mostSpare)
      for (const [id, sha256] of answer.sums) {
        waiting.get(id)?.(sha256)
        waiting.delete(id)
      }
      if (!room || onTheWay > mostOnTheWay / 2) return
      room.resolve()
      room = undefined
    })
    started.on('error', () => undefined)
    started.on('exit', () => {
      if (worker === started) failed()
    })
    return started
  }

  function send(): void {
    clearImmediate(turn)
    turn = undefined
    if (memory.byteLength === 0) memory = spare.pop() ?? new ArrayBuffer(block_bytes)
    worker ??= start()
    const batch: HashBatch = { memory, parts, ends, drops }
    worker.postMessage(batch, [memory])
    onTheWay += 1
    memory = new ArrayBuffer(0)
    ;[filled, parts, ends, drops] = [0, [], [], []]
  }

  function add(id: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      if (memory.byteLength === 0) memory = spare.pop() ?? new ArrayBuffer(block_bytes)
      const piece = bytes.subarray(at, at + block_bytes - filled)
      new Uint8Array(memory, filled).set(piece)
      const last = parts.at(-1)
      if (last?.id === id) last.length += piece.length
      else parts.push({ id, length: piece.length })
      filled += piece.length
      at += piece.length
      if (filled === block_bytes || parts.length >= mostParts) send()
    }
  }

  return {
    hash() {
      const id = (nextId += 1)
      const begun = generation
      let used = false
      return {
        update(bytes) {
          used = true
          if (begun === generation) add(id, bytes)
        },
        digest() {
          if (begun !== generation) return Promise.resolve(undefined)
          const { promise, resolve } = Promise.withResolvers<string | undefined>()
          waiting.set(id, resolve)
          ends.push(id)
          turn ??= setImmediate(send)
          return promise
        },
        drop() {
          if (used && begun === generation) drops.push(id)
        },
      }
    },
    room() {
      if (onTheWay <= mostOnTheWay) return undefined
      room ??= Promise.withResolvers<void>()
      return room.promise
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...waiting].map(([id]) => settled(id)))
      const ended = worker
      worker = undefined
      await ended?.terminate()
    },
  }

  function settled(id: number): Promise<void> {
    const resolve = waiting.get(id)
    return new Promise((done) => {
      waiting.set(id, (sha256) => {
        resolve?.(sha256)
        done()
      })
    })
  }
}

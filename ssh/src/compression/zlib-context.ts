// One context of zlib or zstd, run by calls that return with the result. Node offers contexts that live from
// one packet to the next only as streams, which hand each packet to another thread: 70 to 110 µs of processor
// time for 200 bytes, and packets would have to wait for each other. The stream's own handle has `writeSync`,
// by which Node implements deflateSync and the like: 3 to 10 µs for the same packet. The handle is not
// documented so that all of it is in this file, and it is tried once before anybody offers
// a method that needs it. The memory of all contexts of the process is counted and has a limit.
import { totalmem } from 'node:os'
import zlib from 'node:zlib'
import { Reason, SshError } from '../errors.ts'

interface Handle {
  writeSync(
    flush: number,
    input: Buffer,
    input_at: number,
    input_bytes: number,
    output: Buffer,
    output_at: number,
    output_bytes: number,
  ): void
}

interface Stream {
  readonly _handle: Handle
  /** The remaining room and input of the last call. */
  readonly _writeState: Uint32Array
  close(): void
}

/** The least: no stream of Node's needs a buffer of its own here. */
const chunkSize = 64
const { constants } = zlib
/** The window of zstd, with which its memory, and that of the peer, grow. */
const zstdWindow_bits = 16
/** The window of zlib. OpenSSH's own has 15, which its peers must be able to read. */
const zlibWindow_bits = 14
const zlibMemory_level = 7

const kinds = {
  /** Level 3 takes half the time of OpenSSH's 6, and 22 % of text is left instead of 20. */
  deflate: {
    held_bytes: 192 * 1024,
    flush: constants.Z_SYNC_FLUSH,
    make: () =>
      zlib.createDeflateRaw({
        level: 3,
        windowBits: zlibWindow_bits,
        memLevel: zlibMemory_level,
        chunkSize,
      }),
  },
  inflate: {
    held_bytes: 48 * 1024,
    flush: constants.Z_SYNC_FLUSH,
    make: () => zlib.createInflate({ chunkSize }),
  },
  zstd: {
    held_bytes: 312 * 1024,
    flush: constants.ZSTD_e_flush,
    make: () =>
      zlib.createZstdCompress({
        chunkSize,
        params: {
          [constants.ZSTD_c_compressionLevel]: 1,
          [constants.ZSTD_c_windowLog]: zstdWindow_bits,
        },
      }),
  },
  unzstd: {
    held_bytes: 240 * 1024,
    flush: constants.ZSTD_e_flush,
    make: () =>
      zlib.createZstdDecompress({
        chunkSize,
        params: { [constants.ZSTD_d_windowLogMax]: zstdWindow_bits },
      }),
  },
} satisfies Record<string, { held_bytes: number; flush: number; make(): unknown }>

export type ContextKind = keyof typeof kinds

const [least_bytes, most_bytes] = [4 * 1024 * 1024, 256 * 1024 * 1024]
/** Contexts may use this part of the memory of the machine, or of the process's limit: 1/32. */
const part = 32

/** Times the limit, for input: it has to be read, so that a limit for it ends connections. */
const farTooMuch = 4

/** The memory of all contexts of this process. */
export const contextMemory = {
  held_bytes: 0,
  /** Above it no new context is made for output. */
  limit_bytes: Math.min(
    most_bytes,
    Math.max(least_bytes, Math.min(totalmem(), process.constrainedMemory() || Infinity) / part),
  ),
}

export type Outcome =
  | { readonly done: true; readonly bytes: number }
  /** The input was malformed, too long, or its output exceeded the room. */
  | { readonly done: false; readonly why: 'broken' | 'too large' }

/** Memory of C: the maker of a context frees it. */
export class ZlibContext {
  readonly #held_bytes: number
  readonly #flush: number
  #stream: Stream | undefined
  #isBroken = false

  constructor(kind: ContextKind) {
    const { held_bytes, flush, make } = kinds[kind]
    this.#held_bytes = held_bytes
    this.#flush = flush
    const stream = make() as unknown as Stream
    const { _handle: handle } = stream
    // Instead of Node's own, which would end the stream with an event.
    Object.assign(handle, { onerror: () => (this.#isBroken = true) })
    this.#stream = stream
    contextMemory.held_bytes += held_bytes
  }

  /** All of the input, and everything that follows from it, into the caller's memory. */
  run(input: Buffer, output: Buffer): Outcome {
    if (!this.#stream) throw new Error('A context was used after it was freed.')
    const { _handle: handle, _writeState: state } = this.#stream
    handle.writeSync(this.#flush, input, 0, input.length, output, 0, output.length)
    if (this.#isBroken) return { done: false, why: 'broken' }
    const [room = 0, left = 0] = state
    if (room === 0) return { done: false, why: 'too large' }
    return left === 0 ? { done: true, bytes: output.length - room } : { done: false, why: 'broken' }
  }

  free(): void {
    if (!this.#stream) return
    this.#stream.close()
    this.#stream = undefined
    contextMemory.held_bytes -= this.#held_bytes
  }

  [Symbol.dispose](): void {
    this.free()
  }
}

/** Undefined: there is no memory for more. */
export function sendingContext(kind: 'deflate' | 'zstd'): ZlibContext | undefined {
  return contextMemory.held_bytes < contextMemory.limit_bytes ? new ZlibContext(kind) : undefined
}

/** Ends the connection when all contexts together hold far too much. */
export function receivingContext(kind: 'inflate' | 'unzstd'): ZlibContext {
  if (contextMemory.held_bytes < contextMemory.limit_bytes * farTooMuch) return new ZlibContext(kind)
  throw new SshError(Reason.byApplication, 'There is no memory for compression.')
}

/** The beginning of a stream of zlib (RFC 1950): deflate, a window of at most 32 KiB, no dictionary. */
export const zlibHead = Buffer.from([0x78, 0x9c])

let found: { readonly zlib: boolean; readonly zstd: boolean } | undefined

/** Which of the two work in this Node. The first call tries them. */
export function available(): { readonly zlib: boolean; readonly zstd: boolean } {
  return (found ??= {
    zlib: works('deflate', 'inflate', zlibHead),
    // Node has it from version 22.15 on.
    zstd: typeof zlib.createZstdCompress === 'function' && works('zstd', 'unzstd', Buffer.alloc(0)),
  })
}

/** Two packets there and back, and one that must be refused. */
function works(packing: ContextKind, unpacking: ContextKind, head: Buffer): boolean {
  try {
    using packer = new ZlibContext(packing)
    using unpacker = new ZlibContext(unpacking)
    const [packed, unpacked] = [Buffer.alloc(1_024), Buffer.alloc(1_024)]
    for (const [round, text] of ['a rope and a rope and a rope', 'a rope, again'].entries()) {
      const outcome = packer.run(Buffer.from(text), packed)
      if (!outcome.done) return false
      const sent = packed.subarray(0, outcome.bytes)
      const back = unpacker.run(round === 0 ? Buffer.concat([head, sent]) : sent, unpacked)
      if (!back.done || unpacked.toString('utf8', 0, back.bytes) !== text) return false
    }
    return !unpacker.run(Buffer.alloc(64, 0xff), unpacked).done
  } catch {
    return false
  }
}

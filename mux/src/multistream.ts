// multistream-select 1.0.0: what a stream is to be used for, said at its beginning. A token is an unsigned
// varint (the length of what follows), a text and a newline. Both sides begin with the header token; then the
// client proposes, and the server repeats the proposal or says `na` and waits for another. Whatever came
// after the tokens is put back on the stream.
import type { Duplex } from 'node:stream'
import { NegotiationFailed } from './errors.ts'
import { compact } from './receive-buffer.ts'

const header = '/multistream/1.0.0'
const refusal = 'na'
const mostToken_bytes = 1024
const mostProposals = 16

/** Encodes a token: its length, the text and a newline. */
export function token(text: string): Buffer {
  const length = Buffer.byteLength(text) + 1
  if (length > mostToken_bytes) throw new RangeError('The name of a protocol is too long.')
  const prefix = length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >> 7]
  return Buffer.concat([Buffer.from(prefix), Buffer.from(`${text}\n`)])
}

/** The client's header and proposal. What follows can be sent at once, before the server's answer. */
export function propose(protocol: string): Buffer {
  return Buffer.concat([token(header), token(protocol)])
}

/** The answer of a server that supports the protocol. */
export function agreement(protocol: string): Buffer {
  return propose(protocol)
}

/** Takes the server's two tokens off the stream. False: the server does not know the protocol. */
export async function readReply(stream: Duplex, protocol: string, signal?: AbortSignal): Promise<boolean> {
  await readHeader(stream, signal)
  const reply = await read(stream, parseToken, signal)
  if (reply === protocol) return true
  if (reply === refusal) return false
  throw new NegotiationFailed('The peer answered with a protocol that was not proposed.')
}

/** Takes the first proposal that is supported. */
export async function negotiate(
  stream: Duplex,
  supported: readonly string[],
  signal?: AbortSignal,
): Promise<{ protocol: string }> {
  stream.write(token(header))
  await readHeader(stream, signal)
  for (let proposals = 0; proposals < mostProposals; proposals++) {
    const protocol = await read(stream, parseToken, signal)
    const known = supported.includes(protocol)
    stream.write(token(known ? protocol : refusal))
    if (known) return { protocol }
  }
  throw new NegotiationFailed('The peer proposed nothing that is known here.')
}

/** Takes the text before the next newline, of at most `limit` bytes, off the stream. */
export function readLine(stream: Duplex, limit: number, signal?: AbortSignal): Promise<string> {
  return read(
    stream,
    (bytes) => {
      const end = bytes.indexOf(0x0a)
      if (end > limit || (end < 0 && bytes.length > limit))
        throw new NegotiationFailed('The line is too long.')
      return end < 0 ? undefined : { value: bytes.toString('utf8', 0, end), used: end + 1 }
    },
    signal,
  )
}

async function readHeader(stream: Duplex, signal: AbortSignal | undefined): Promise<void> {
  if ((await read(stream, parseToken, signal)) !== header)
    throw new NegotiationFailed('The peer does not speak multistream-select 1.0.0.')
}

interface Parsed<T> {
  readonly value: T
  readonly used: number
}

function parseToken(bytes: Buffer): Parsed<string> | undefined {
  const [low, high] = bytes
  if (low === undefined) return undefined
  let length = low
  let start = 1
  if (low >= 0x80) {
    if (high === undefined) return undefined
    if (high >= 0x80 || high === 0) throw new NegotiationFailed('The length of a token is malformed.')
    length = (low & 0x7f) | (high << 7)
    start = 2
  }
  if (length > mostToken_bytes) throw new NegotiationFailed('A token is too long.')
  if (length === 0) throw new NegotiationFailed('A token is empty.')
  const end = start + length
  if (bytes.length < end) return undefined
  if (bytes[end - 1] !== 0x0a) throw new NegotiationFailed('A token does not end with a newline.')
  return { value: bytes.toString('utf8', start, end - 1), used: end }
}

/** Reads until `parse` succeeds. The rest, also after a failure, is put back. */
function read<T>(
  stream: Duplex,
  parse: (bytes: Buffer) => Parsed<T> | undefined,
  signal: AbortSignal | undefined,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let have: Buffer = Buffer.alloc(0)

    const stop = (): void => {
      stream.off('readable', onReadable)
      stream.off('end', onEnd)
      stream.off('close', onEnd)
      stream.off('error', fail)
      signal?.removeEventListener('abort', onAbort)
      if (have.length > 0 && !stream.destroyed && !stream.readableEnded) stream.unshift(compact(have))
    }
    const fail = (error: Error): void => {
      stop()
      reject(error)
    }
    const onEnd = (): void => fail(stream.errored ?? new NegotiationFailed('The stream ended too early.'))
    const onAbort = (): void => fail(signal?.reason as Error)
    const onReadable = (): void => {
      try {
        for (;;) {
          const chunk = stream.read() as Buffer | null
          if (chunk === null) return
          have = have.length === 0 ? chunk : Buffer.concat([have, chunk])
          const parsed = parse(have)
          if (!parsed) continue
          have = have.subarray(parsed.used)
          stop()
          return resolve(parsed.value)
        }
      } catch (error) {
        fail(error as Error)
      }
    }

    if (signal?.aborted) return reject(signal.reason as Error)
    if (stream.destroyed || stream.readableEnded) return onEnd()
    stream.on('end', onEnd)
    stream.on('close', onEnd)
    stream.on('error', fail)
    signal?.addEventListener('abort', onAbort, { once: true })
    stream.on('readable', onReadable)
    onReadable()
  })
}

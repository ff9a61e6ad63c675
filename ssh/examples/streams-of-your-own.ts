// SSH over any Duplex of Node, here two in memory. A stream that is done with a buffer when it calls back may
// declare that, and packets for it are then sealed in memory that is used again. One that hands buffers on,
// as these do, must not.
import assert from 'node:assert/strict'
import { Duplex, duplexPair } from 'node:stream'
import {
  acceptConnection,
  connect,
  generatePrivateKey,
  releasesBuffers,
  type ReleasesBuffers,
} from '@hawser/ssh'

/** Copies what is written before it calls back: so it releases the buffer, though what it wraps does not. */
class Copying extends Duplex implements ReleasesBuffers {
  readonly [releasesBuffers] = true
  readonly #inner: Duplex

  constructor(inner: Duplex) {
    super()
    this.#inner = inner
    inner.on('data', (chunk: Buffer) => void (this.push(chunk) || inner.pause()))
    inner.on('end', () => this.push(null))
  }

  override _read(): void {
    this.#inner.resume()
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.#inner.write(Buffer.from(chunk), done)
  }

  override _final(done: () => void): void {
    this.#inner.end(done)
  }
}

const hostKey = generatePrivateKey()
const [near, far] = duplexPair()
const accepting = acceptConnection(far, {
  hostKeys: [hostKey],
  methods: ['none'],
  authenticate: async () => 'accept',
})
const client = await connect(new Copying(near), {
  user: 'olga',
  proofs: [{ method: 'none' }],
  checkHostKey: (key) => key.equals(hostKey.blob),
})
assert.equal((await accepting).user, 'olga')
await client.end()

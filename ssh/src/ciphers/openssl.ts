// The OpenSSL that is part of Node's own executable, called directly. node:crypto makes an object for every
// packet and new memory for every result, which costs more than the encryption itself (and again when it is
// collected); here one context lives as long as its key, and bytes are written where the caller wants them.
// node:ffi is experimental, so that all of it is in this file. Where it is missing, or fails the self-test
// below, the ciphers use node:crypto, and `cipherImplementation` says why. Two things C does not check are
// checked here: every length against the memory it is about, and that no context is used once it was freed.
// A call by node:ffi costs 50 ns with up to three arguments that are addresses or numbers, 0.8 µs with more
// of them, and twice that where it has to find the address of a buffer. So nonces and tags are exchanged by
// parameters (OSSL_PARAM), which are two arguments, and addresses are looked up once for each packet.
import { createCipheriv, randomBytes } from 'node:crypto'
import type * as Ffi from 'node:ffi'

/**
 * Authenticated encryption with one key, in one direction. The nonce begins with the IV, and its last eight
 * bytes count packets. The first `clear_bytes` of a packet are authenticated and not encrypted.
 */
export interface Aead {
  /** Writes the sealed packet, and the tag behind it, to `into`. */
  seal(packet: Buffer, clear_bytes: number, into: Buffer): void
  /** In place, the tag being behind the ciphertext; false for a wrong tag. */
  open(packet: Buffer, clear_bytes: number): boolean
  /** Wipes the key and frees its memory. Everything else throws from then on. */
  free(): void
}

/** A key stream that begins anew with each nonce. */
export interface KeyStream {
  begin(nonce: Buffer): void
  /** `into` may be the same memory. */
  run(bytes: Buffer, into: Buffer): void
  /** Wipes the key and frees its memory. Everything else throws from then on. */
  free(): void
}

/** Poly1305, whose key is used once. */
export type OneTimeMac = (key: Buffer, bytes: Buffer) => Buffer

export interface OpenSsl {
  readonly aead: typeof aead
  readonly keyStream: typeof keyStream
  readonly oneTimeMac: OneTimeMac
}

/** The implementation of AES-GCM and ChaCha20-Poly1305, and the reason if it is not OpenSSL itself. */
export type CipherImplementation =
  | { readonly name: 'openssl' }
  | { readonly name: 'node:crypto'; readonly reason: string }

export const tag_bytes = 16
const nonce_bytes = 12
const counter_bytes = 8
const streamNonce_bytes = 16
const macKey_bytes = 32
/** EVP_CTRL_AEAD_SET_IV_FIXED, and the length with which it takes a whole IV. */
const [setIv, wholeIv] = [0x12, -1]
const [decrypt, encrypt, unchanged] = [0, 1, -1]
const none = 0n

const definitions = {
  EVP_get_cipherbyname: { arguments: ['string'], return: 'pointer' },
  EVP_CIPHER_CTX_new: { arguments: [], return: 'pointer' },
  EVP_CIPHER_CTX_free: { arguments: ['pointer'], return: 'void' },
  EVP_CIPHER_CTX_ctrl: { arguments: ['pointer', 'int32', 'int32', 'buffer'], return: 'int32' },
  EVP_CipherInit_ex: {
    arguments: ['pointer', 'pointer', 'pointer', 'pointer', 'pointer', 'int32'],
    return: 'int32',
  },
  EVP_CIPHER_CTX_get_params: { arguments: ['pointer', 'pointer'], return: 'int32' },
  EVP_CIPHER_CTX_set_params: { arguments: ['pointer', 'pointer'], return: 'int32' },
  EVP_CipherUpdate: { arguments: ['pointer', 'pointer', 'pointer', 'pointer', 'int32'], return: 'int32' },
  EVP_CipherFinal_ex: { arguments: ['pointer', 'pointer', 'pointer'], return: 'int32' },
  EVP_MAC_fetch: { arguments: ['pointer', 'string', 'pointer'], return: 'pointer' },
  EVP_MAC_CTX_new: { arguments: ['pointer'], return: 'pointer' },
  EVP_MAC_CTX_set_params: { arguments: ['pointer', 'pointer'], return: 'int32' },
  EVP_MAC_update: { arguments: ['pointer', 'pointer', 'uint64'], return: 'int32' },
  EVP_MAC_final: { arguments: ['pointer', 'pointer', 'pointer', 'uint64'], return: 'int32' },
} as const satisfies Ffi.FunctionDefinitions

/** Open for good: its functions are valid only until it is closed. */
let library: Ffi.DynamicLibraryResult<typeof definitions> | undefined
const evp = (): Functions => library!.functions

type Functions = Ffi.WrappedFunctionsFromDefinitions<typeof definitions>

/** The address of a buffer's memory, valid as long as the buffer is referenced. */
let addressOf: typeof Ffi.getRawPointer

/**
 * One OSSL_PARAM for bytes and the empty one that ends a list, each of five words: name, type, address and
 * number of the bytes, and how many were returned.
 */
class Parameter {
  readonly address: bigint
  readonly #words = new BigUint64Array(10)
  /** Prevents the collection of the pointed-at memory. */
  readonly #kept: Buffer[]

  constructor(name: string, bytes: Buffer) {
    const octets = 5n
    this.#kept = [Buffer.from(`${name}\0`), bytes]
    this.#words.set([addressOf(this.#kept[0]!), octets, addressOf(bytes), BigInt(bytes.length)])
    this.address = addressOf(this.#words)
  }

  /** Points at as many bytes elsewhere, whose memory the caller holds. */
  pointAt(address: bigint): void {
    this.#words[2] = address
  }
}

/** Memory that all contexts share: no use of it lasts longer than a packet. */
interface Shared {
  /** The output for OpenSSL's count of written bytes, which we know. */
  readonly written: Buffer
  readonly tag: Parameter
  /** Reading it puts the next nonce in force. */
  readonly nextNonce: Parameter
}

let shared: Shared

const makeShared = (): Shared => ({
  written: Buffer.alloc(8),
  tag: new Parameter('tag', Buffer.alloc(tag_bytes)),
  nextNonce: new Parameter('tlsivgen', Buffer.alloc(counter_bytes)),
})

function must(done: number): void {
  if (done !== 1) throw new Error('OpenSSL refused to go on.')
}

let contexts = 0

/** Cipher contexts that were made and not freed: two to four for each connection with keys. */
export const contextsInUse = (): number => contexts

/** An EVP_CIPHER_CTX with its key, in C's memory: its maker frees it. */
class Context {
  #pointer: bigint

  constructor(algorithm: string, key: Buffer, key_bytes: number, direction: number) {
    if (key.length !== key_bytes) throw new RangeError('This is no key for the cipher.')
    const cipher = evp().EVP_get_cipherbyname(algorithm)
    if (cipher === none) throw new Error(`OpenSSL has no ${algorithm}.`)
    this.#pointer = evp().EVP_CIPHER_CTX_new()
    if (this.#pointer === none) throw new Error('OpenSSL has no memory for a cipher.')
    contexts += 1
    if (evp().EVP_CipherInit_ex(this.#pointer, cipher, none, addressOf(key), none, direction) === 1) return
    this.free()
    throw new Error(`OpenSSL does not take the key for ${algorithm}.`)
  }

  get pointer(): bigint {
    if (this.#pointer === none) throw new Error('The cipher was used after its key was freed.')
    return this.#pointer
  }

  free(): void {
    if (this.#pointer === none) return
    evp().EVP_CIPHER_CTX_free(this.#pointer)
    this.#pointer = none
    contexts -= 1
  }
}

export type Gcm = 'aes-128-gcm' | 'aes-256-gcm'

const gcmKey_bytes: Readonly<Record<Gcm, number>> = { 'aes-128-gcm': 16, 'aes-256-gcm': 32 }

function aead(algorithm: Gcm, key: Buffer, iv: Buffer, direction: 'seal' | 'open'): Aead {
  if (iv.length !== nonce_bytes) throw new RangeError('This is no IV for the cipher.')
  const context = new Context(
    algorithm,
    key,
    gcmKey_bytes[algorithm],
    direction === 'seal' ? encrypt : decrypt,
  )
  const { EVP_CIPHER_CTX_get_params, EVP_CIPHER_CTX_set_params, EVP_CipherUpdate, EVP_CipherFinal_ex } = evp()
  must(evp().EVP_CIPHER_CTX_ctrl(context.pointer, setIv, wholeIv, iv))
  const { tag, nextNonce } = shared
  const written = addressOf(shared.written)
  return {
    seal(packet, clear_bytes, into) {
      if (clear_bytes > packet.length || into.length !== packet.length + tag_bytes)
        throw new RangeError('The memory does not fit.')
      const { pointer } = context
      const [from, to, clear] = [addressOf(packet), addressOf(into), BigInt(clear_bytes)]
      for (let at = 0; at < clear_bytes; at += 1) into[at] = packet[at]!
      tag.pointAt(to + BigInt(packet.length))
      must(EVP_CIPHER_CTX_get_params(pointer, nextNonce.address))
      must(EVP_CipherUpdate(pointer, none, written, from, clear_bytes))
      must(EVP_CipherUpdate(pointer, to + clear, written, from + clear, packet.length - clear_bytes))
      must(EVP_CipherFinal_ex(pointer, written, written))
      must(EVP_CIPHER_CTX_get_params(pointer, tag.address))
    },
    open(packet, clear_bytes) {
      const end = packet.length - tag_bytes
      if (clear_bytes > end) throw new RangeError('The memory does not fit.')
      const { pointer } = context
      const [start, clear] = [addressOf(packet), BigInt(clear_bytes)]
      tag.pointAt(start + BigInt(end))
      must(EVP_CIPHER_CTX_get_params(pointer, nextNonce.address))
      must(EVP_CIPHER_CTX_set_params(pointer, tag.address))
      must(EVP_CipherUpdate(pointer, none, written, start, clear_bytes))
      must(EVP_CipherUpdate(pointer, start + clear, written, start + clear, end - clear_bytes))
      return EVP_CipherFinal_ex(pointer, written, written) === 1
    },
    free: () => context.free(),
  }
}

function keyStream(key: Buffer): KeyStream {
  const context = new Context('chacha20', key, 32, encrypt)
  const { EVP_CipherInit_ex, EVP_CipherUpdate } = evp()
  const written = addressOf(shared.written)
  return {
    begin(nonce) {
      if (nonce.length !== streamNonce_bytes) throw new RangeError('This is no nonce for the cipher.')
      must(EVP_CipherInit_ex(context.pointer, none, none, none, addressOf(nonce), unchanged))
    },
    run(bytes, into) {
      if (into.length < bytes.length) throw new RangeError('The memory does not fit.')
      must(EVP_CipherUpdate(context.pointer, addressOf(into), written, addressOf(bytes), bytes.length))
    },
    free: () => context.free(),
  }
}

/** One context for the whole process: each packet gives it a key of its own. */
function oneTimeMac(): OneTimeMac {
  const context = evp().EVP_MAC_CTX_new(evp().EVP_MAC_fetch(none, 'POLY1305', none))
  if (context === none) throw new Error('OpenSSL has no Poly1305.')
  const { EVP_MAC_CTX_set_params, EVP_MAC_update, EVP_MAC_final } = evp()
  const keyParameter = new Parameter('key', Buffer.alloc(macKey_bytes))
  const written = addressOf(shared.written)
  return (key, bytes) => {
    if (key.length !== macKey_bytes) throw new RangeError('This is no key for the MAC.')
    const mac = Buffer.allocUnsafe(tag_bytes)
    keyParameter.pointAt(addressOf(key))
    must(EVP_MAC_CTX_set_params(context, keyParameter.address))
    must(EVP_MAC_update(context, addressOf(bytes), BigInt(bytes.length)))
    must(EVP_MAC_final(context, addressOf(mac), written, BigInt(mac.length)))
    return mac
  }
}

type Loaded = { readonly openSsl: OpenSsl } | { readonly openSsl: undefined; readonly reason: string }

/** The result of the only attempt to load it. */
let loaded: Loaded | undefined

/** Undefined: it cannot be called, or does not give the answers of node:crypto. */
export function openSsl(): OpenSsl | undefined {
  return (loaded ??= load()).openSsl
}

/** The first call, here or by the first connection, tries OpenSSL, which takes some milliseconds. */
export function cipherImplementation(): CipherImplementation {
  loaded ??= load()
  return loaded.openSsl ? { name: 'openssl' } : { name: 'node:crypto', reason: loaded.reason }
}

function load(): Loaded {
  try {
    const ffi = process.getBuiltinModule('node:ffi')
    if (!ffi) return { openSsl: undefined, reason: 'this Node has no node:ffi, or it is switched off' }
    // The layout of a parameter in C is known for these.
    if (process.arch !== 'x64' && process.arch !== 'arm64')
      return { openSsl: undefined, reason: `it was not tried on ${process.arch}` }
    // No library but the executable itself: it has the same OpenSSL as node:crypto.
    library = ffi.dlopen(null, definitions)
    addressOf = ffi.getRawPointer
    shared = makeShared()
    const openSsl: OpenSsl = { aead, keyStream, oneTimeMac: oneTimeMac() }
    const wrong = selfTest(openSsl)
    return wrong === undefined
      ? { openSsl }
      : { openSsl: undefined, reason: `the self-test of ${wrong} failed` }
  } catch (error) {
    return { openSsl: undefined, reason: error instanceof Error ? error.message : String(error) }
  }
}

/** The first cipher whose results differ from node:crypto; undefined: all are right. */
function selfTest({ oneTimeMac }: OpenSsl): string | undefined {
  const gcm = Object.keys(gcmKey_bytes) as Gcm[]
  return (
    gcm.find((algorithm) => !gcmIsRight(algorithm)) ??
    (chachaIsRight(oneTimeMac) ? undefined : 'chacha20-poly1305')
  )
}

function gcmIsRight(algorithm: Gcm): boolean {
  const [key, iv] = [randomBytes(gcmKey_bytes[algorithm]), randomBytes(nonce_bytes)]
  // Counting up has to carry.
  iv.fill(0xff, nonce_bytes - 3)
  const nonce = Buffer.from(iv)
  const [sealer, opener] = [aead(algorithm, key, iv, 'seal'), aead(algorithm, key, iv, 'open')]
  try {
    // Two packets, because the second one has another nonce.
    for (let round = 0; round < 2; round += 1) {
      const packet = randomBytes(1_004)
      const cipher = createCipheriv(algorithm, key, nonce).setAAD(packet.subarray(0, 4))
      const expected = Buffer.concat([
        packet.subarray(0, 4),
        cipher.update(packet.subarray(4)),
        cipher.final(),
        cipher.getAuthTag(),
      ])
      const sealed = Buffer.alloc(packet.length + tag_bytes)
      sealer.seal(packet, 4, sealed)
      if (!sealed.equals(expected) || !opener.open(sealed, 4)) return false
      if (!sealed.subarray(0, packet.length).equals(packet)) return false
      nonce.writeBigUInt64BE(BigInt.asUintN(64, nonce.readBigUInt64BE(4) + 1n), 4)
    }
    return !opener.open(Buffer.alloc(1_000), 4)
  } finally {
    sealer.free()
    opener.free()
  }
}

function chachaIsRight(oneTimeMac: OneTimeMac): boolean {
  const [key, nonce, plaintext] = [randomBytes(32), randomBytes(streamNonce_bytes), randomBytes(1_000)]
  const stream = keyStream(key)
  const into = Buffer.alloc(plaintext.length)
  try {
    // Twice, because a packet must not depend on the one before.
    for (let round = 0; round < 2; round += 1) {
      stream.begin(nonce)
      stream.run(plaintext, into)
    }
  } finally {
    stream.free()
  }
  // RFC 8439 section 2.5.2
  const macKey = Buffer.from('85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b', 'hex')
  const mac = oneTimeMac(macKey, Buffer.from('Cryptographic Forum Research Group'))
  return (
    into.equals(createCipheriv('chacha20', key, nonce).update(plaintext)) &&
    mac.toString('hex') === 'a8061dc1305136c6c22b8baf0c0127a9'
  )
}

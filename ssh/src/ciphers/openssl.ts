// The OpenSSL that is part of Node's own executable, called directly. node:crypto makes an object for every
// packet and new memory for every result, which costs more than the encryption itself (and again when it is
// collected); here one context lives as long as its key, and bytes are written where the caller wants them.
// node:ffi is young, so that all of it is in this file: whatever it does not offer, or gets wrong in the
// trial below, is left to node:crypto by those who ask. C believes every length it is told. Nothing leaves
// this file that is not held against the memory it is about.
import { createCipheriv, randomBytes } from 'node:crypto'
import type * as Ffi from 'node:ffi'

/** Authenticated encryption with one key, in one direction. */
export interface Aead {
  /** Writes what was sealed, and the tag behind it, to `into`. */
  seal(nonce: Buffer, known: Buffer, plain: Buffer, into: Buffer): void
  /** Opens the bytes where they lie, the tag being behind them; false when it is wrong. */
  open(nonce: Buffer, known: Buffer, sealed: Buffer): boolean
}

/** A key stream that begins anew with each nonce. */
export interface KeyStream {
  begin(nonce: Buffer): void
  /** `into` may be the same memory. */
  run(bytes: Buffer, into: Buffer): void
}

/** Poly1305, whose key is used once. */
export type OneTimeMac = (key: Buffer, bytes: Buffer) => Buffer

export const tag_bytes = 16
const nonce_bytes = 12
const streamNonce_bytes = 16
const macKey_bytes = 32
/** EVP_CTRL_AEAD_GET_TAG, EVP_CTRL_AEAD_SET_TAG */
const [getTag, setTag] = [0x10, 0x11]
const [decrypt, encrypt, unchanged] = [0, 1, -1]
const none = 0n

const definitions = {
  EVP_get_cipherbyname: { arguments: ['string'], return: 'pointer' },
  EVP_CIPHER_CTX_new: { arguments: [], return: 'pointer' },
  EVP_CIPHER_CTX_free: { arguments: ['pointer'], return: 'void' },
  EVP_CIPHER_CTX_ctrl: { arguments: ['pointer', 'int32', 'int32', 'buffer'], return: 'int32' },
  EVP_CipherInit_ex: {
    arguments: ['pointer', 'pointer', 'pointer', 'buffer', 'buffer', 'int32'],
    return: 'int32',
  },
  EVP_CipherUpdate: { arguments: ['pointer', 'buffer', 'buffer', 'buffer', 'int32'], return: 'int32' },
  EVP_CipherFinal_ex: { arguments: ['pointer', 'buffer', 'buffer'], return: 'int32' },
  EVP_MAC_fetch: { arguments: ['pointer', 'string', 'pointer'], return: 'pointer' },
  EVP_MAC_CTX_new: { arguments: ['pointer'], return: 'pointer' },
  EVP_MAC_init: { arguments: ['pointer', 'buffer', 'uint64', 'pointer'], return: 'int32' },
  EVP_MAC_update: { arguments: ['pointer', 'buffer', 'uint64'], return: 'int32' },
  EVP_MAC_final: { arguments: ['pointer', 'buffer', 'buffer', 'uint64'], return: 'int32' },
} as const satisfies Ffi.FunctionDefinitions

/** Kept whole: its functions are good for as long as it is open. */
let library: ReturnType<typeof load>
const evp = (): Functions => library!.functions

type Functions = Ffi.WrappedFunctionsFromDefinitions<typeof definitions>

function load(): Ffi.DynamicLibraryResult<typeof definitions> | undefined {
  // Whoever runs us need not be told at every start that Node calls this an experiment.
  const { emitWarning } = process
  process.emitWarning = () => undefined
  try {
    // No library but the executable itself: it has the very OpenSSL that node:crypto uses.
    return process.getBuiltinModule('node:ffi')?.dlopen(null, definitions)
  } catch {
    return undefined
  } finally {
    process.emitWarning = emitWarning
  }
}

/** Gives back, and wipes, the contexts of those who are gone. */
const contexts = new FinalizationRegistry<bigint>((context) => evp().EVP_CIPHER_CTX_free(context))
/** Where OpenSSL says how much it wrote, which we know. */
const written = Buffer.alloc(8)

function must(done: number): void {
  if (done !== 1) throw new Error('OpenSSL refused to go on.')
}

function contextOf(
  owner: object,
  algorithm: string,
  key: Buffer,
  key_bytes: number,
  direction: number,
): bigint {
  if (key.length !== key_bytes) throw new RangeError('This is no key for the cipher.')
  const cipher = evp().EVP_get_cipherbyname(algorithm)
  const context = evp().EVP_CIPHER_CTX_new()
  if (cipher === none || context === none) throw new Error(`OpenSSL has no ${algorithm}.`)
  contexts.register(owner, context)
  must(evp().EVP_CipherInit_ex(context, cipher, none, key, null, direction))
  return context
}

function aead(algorithm: Gcm, key: Buffer, direction: 'seal' | 'open'): Aead {
  const aead: Aead = {
    seal(nonce, known, plain, into) {
      if (nonce.length !== nonce_bytes || into.length !== plain.length + tag_bytes)
        throw new RangeError('The memory does not fit.')
      must(evp().EVP_CipherInit_ex(context, none, none, null, nonce, unchanged))
      must(evp().EVP_CipherUpdate(context, null, written, known, known.length))
      must(evp().EVP_CipherUpdate(context, into, written, plain, plain.length))
      must(evp().EVP_CipherFinal_ex(context, written, written))
      must(evp().EVP_CIPHER_CTX_ctrl(context, getTag, tag_bytes, into.subarray(plain.length)))
    },
    open(nonce, known, sealed) {
      const end = sealed.length - tag_bytes
      if (nonce.length !== nonce_bytes || end < 0) throw new RangeError('The memory does not fit.')
      must(evp().EVP_CipherInit_ex(context, none, none, null, nonce, unchanged))
      must(evp().EVP_CIPHER_CTX_ctrl(context, setTag, tag_bytes, sealed.subarray(end)))
      must(evp().EVP_CipherUpdate(context, null, written, known, known.length))
      must(evp().EVP_CipherUpdate(context, sealed, written, sealed, end))
      return evp().EVP_CipherFinal_ex(context, written, written) === 1
    },
  }
  const context = contextOf(
    aead,
    algorithm,
    key,
    algorithm === 'aes-128-gcm' ? 16 : 32,
    direction === 'seal' ? encrypt : decrypt,
  )
  return aead
}

function keyStream(key: Buffer): KeyStream {
  const stream: KeyStream = {
    begin(nonce) {
      if (nonce.length !== streamNonce_bytes) throw new RangeError('This is no nonce for the cipher.')
      must(evp().EVP_CipherInit_ex(context, none, none, null, nonce, unchanged))
    },
    run(bytes, into) {
      if (into.length < bytes.length) throw new RangeError('The memory does not fit.')
      must(evp().EVP_CipherUpdate(context, into, written, bytes, bytes.length))
    },
  }
  const context = contextOf(stream, 'chacha20', key, 32, encrypt)
  return stream
}

/** One for all: it is set up anew for each packet. */
function oneTimeMac(): OneTimeMac {
  const context = evp().EVP_MAC_CTX_new(evp().EVP_MAC_fetch(none, 'POLY1305', none))
  if (context === none) throw new Error('OpenSSL has no Poly1305.')
  return (key, bytes) => {
    if (key.length !== macKey_bytes) throw new RangeError('This is no key for the MAC.')
    const mac = Buffer.allocUnsafe(tag_bytes)
    must(evp().EVP_MAC_init(context, key, BigInt(key.length), none))
    must(evp().EVP_MAC_update(context, bytes, BigInt(bytes.length)))
    must(evp().EVP_MAC_final(context, mac, written, BigInt(mac.length)))
    return mac
  }
}

export type Gcm = 'aes-128-gcm' | 'aes-256-gcm'

export interface OpenSsl {
  readonly aead: typeof aead
  readonly keyStream: typeof keyStream
  readonly oneTimeMac: OneTimeMac
}

let known: { readonly openSsl: OpenSsl | undefined } | undefined

/** Undefined where it cannot be called, or does not give the answers of node:crypto. */
export function openSsl(): OpenSsl | undefined {
  known ??= { openSsl: tried() }
  return known.openSsl
}

function tried(): OpenSsl | undefined {
  try {
    library = load()
    if (!library) return undefined
    const openSsl: OpenSsl = { aead, keyStream, oneTimeMac: oneTimeMac() }
    return gcmIsRight('aes-128-gcm') && gcmIsRight('aes-256-gcm') && chachaIsRight(openSsl)
      ? openSsl
      : undefined
  } catch {
    return undefined
  }
}

function gcmIsRight(algorithm: Gcm): boolean {
  const key = randomBytes(algorithm === 'aes-128-gcm' ? 16 : 32)
  const [nonce, known, plain] = [randomBytes(nonce_bytes), randomBytes(4), randomBytes(1_000)]
  const sealed = Buffer.alloc(plain.length + tag_bytes)
  aead(algorithm, key, 'seal').seal(nonce, known, plain, sealed)
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(known)
  const expected = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  const opener = aead(algorithm, key, 'open')
  const forged = Buffer.from(sealed)
  forged[plain.length]! ^= 1
  return (
    sealed.equals(expected) &&
    !opener.open(nonce, known, forged) &&
    opener.open(nonce, known, sealed) &&
    sealed.subarray(0, plain.length).equals(plain)
  )
}

function chachaIsRight({ oneTimeMac }: OpenSsl): boolean {
  const [key, nonce, plain] = [randomBytes(32), randomBytes(streamNonce_bytes), randomBytes(1_000)]
  const stream = keyStream(key)
  const into = Buffer.alloc(plain.length)
  // Twice, because a packet must not depend on the one before.
  for (let round = 0; round < 2; round += 1) {
    stream.begin(nonce)
    stream.run(plain, into)
  }
  // RFC 8439 section 2.5.2
  const macKey = Buffer.from('85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b', 'hex')
  const mac = oneTimeMac(macKey, Buffer.from('Cryptographic Forum Research Group'))
  return (
    into.equals(createCipheriv('chacha20', key, nonce).update(plain)) &&
    mac.toString('hex') === 'a8061dc1305136c6c22b8baf0c0127a9'
  )
}

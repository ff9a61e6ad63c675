// mlkem768x25519-sha256 (draft-ietf-sshm-mlkem-hybrid-kex): safe as long as either of ML-KEM-768 and X25519
// is.
//   client sends  1184 bytes of ML-KEM public key, 32 bytes of X25519
//   server sends  1088 bytes of ML-KEM ciphertext, 32 bytes of X25519
//   secret        SHA-256(ML-KEM shared key, X25519 product), hashed as a string, not as a number
import { createHash, createPublicKey, decapsulate, encapsulate, generateKeyPairSync } from 'node:crypto'
import { Reason, SshError } from '../errors.ts'
import { x25519Pair } from './curve25519.ts'
import { direct, secretAsString } from './method.ts'

const publicBytes = 1184
const ciphertextBytes = 1088
const x25519Bytes = 32

const combined = (kem: Uint8Array, product: Uint8Array): Buffer =>
  secretAsString(createHash('sha256').update(kem).update(product).digest())

export const mlkem768x25519 = direct('mlkem768x25519-sha256', 'sha256', {
  async start() {
    const { privateKey, publicKey } = generateKeyPairSync('ml-kem-768')
    const pair = x25519Pair()
    return {
      value: Buffer.concat([publicKey.export({ format: 'raw-public' }), pair.value]),
      async finish(theirs) {
        if (theirs.length !== ciphertextBytes + x25519Bytes) throw unusable()
        const kem = decapsulate(privateKey, theirs.subarray(0, ciphertextBytes))
        return combined(kem, pair.product(theirs.subarray(ciphertextBytes)))
      },
    }
  },
  async respond(theirs) {
    if (theirs.length !== publicBytes + x25519Bytes) throw unusable()
    const pair = x25519Pair()
    const { sharedKey, ciphertext } = encapsulateFor(theirs.subarray(0, publicBytes))
    return {
      value: Buffer.concat([ciphertext, pair.value]),
      secret: combined(sharedKey, pair.product(theirs.subarray(publicBytes))),
    }
  },
})

function encapsulateFor(key: Buffer): { sharedKey: Buffer; ciphertext: Buffer } {
  try {
    // Refuses a key whose coefficients are out of range, as the standard demands.
    return encapsulate(createPublicKey({ key, format: 'raw-public', asymmetricKeyType: 'ml-kem-768' }))
  } catch (cause) {
    throw unusable(cause)
  }
}

function unusable(cause?: unknown): SshError {
  return new SshError(Reason.keyExchangeFailed, 'The ML-KEM value is not usable.', { cause })
}

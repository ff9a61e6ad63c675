// curve25519-sha256 (RFC 8731): each side sends 32 bytes of X25519; the secret is their product, read as a
// big-endian number. A peer whose value would make the product zero is refused, which node:crypto does by
// itself.
import { createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { Reason, SshError } from '../errors.ts'
import { direct, paired } from './method.ts'

export function x25519Pair(): { readonly value: Buffer; product(theirs: Buffer): Buffer } {
  const { privateKey, publicKey } = generateKeyPairSync('x25519')
  return {
    value: publicKey.export({ format: 'raw-public' }),
    product: (theirs) => product(privateKey, theirs),
  }
}

function product(privateKey: KeyObject, theirs: Buffer): Buffer {
  try {
    const publicKey = createPublicKey({ key: theirs, format: 'raw-public', asymmetricKeyType: 'x25519' })
    return diffieHellman({ privateKey, publicKey })
  } catch (cause) {
    throw new SshError(Reason.keyExchangeFailed, 'The X25519 value is not usable.', { cause })
  }
}

const agreement = paired(x25519Pair, (theirs) => {
  if (theirs.length !== 32)
    throw new SshError(Reason.keyExchangeFailed, 'The X25519 value does not have 32 bytes.')
})

export const curve25519 = direct('curve25519-sha256', 'sha256', agreement)
/** Under its name from before it was standardised. */
export const curve25519Libssh = direct('curve25519-sha256@libssh.org', 'sha256', agreement)

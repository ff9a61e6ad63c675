// ecdh-sha2-nistp256, -nistp384 and -nistp521 (RFC 5656 section 4): uncompressed points; the secret is the x
// coordinate of their product. node:crypto refuses a point that is not on the curve.
import { createPublicKey, diffieHellman, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { Reason, SshError } from '../errors.ts'
import { direct, paired, type Hash, type KexMethod } from './method.ts'

function ecdh(name: string, namedCurve: string, hash: Hash): KexMethod {
  const pointOf = (value: Buffer): KeyObject => {
    if (value[0] !== 4)
      throw new SshError(Reason.keyExchangeFailed, 'The ECDH value is not an uncompressed point.')
    try {
      return createPublicKey({ key: value, format: 'raw-public', asymmetricKeyType: 'ec', namedCurve })
    } catch (cause) {
      throw new SshError(Reason.keyExchangeFailed, 'The ECDH value is not a point of the curve.', { cause })
    }
  }
  const pair = async () => {
    const { privateKey, publicKey } = await promisify(generateKeyPair)('ec', { namedCurve })
    return {
      value: publicKey.export({ format: 'raw-public' }),
      product: async (theirs: Buffer) => promisify(diffieHellman)({ privateKey, publicKey: pointOf(theirs) }),
    }
  }
  return direct(name, hash, paired(pair, pointOf))
}

export const ecdhP256 = ecdh('ecdh-sha2-nistp256', 'prime256v1', 'sha256')
export const ecdhP384 = ecdh('ecdh-sha2-nistp384', 'secp384r1', 'sha384')
export const ecdhP521 = ecdh('ecdh-sha2-nistp521', 'secp521r1', 'sha512')

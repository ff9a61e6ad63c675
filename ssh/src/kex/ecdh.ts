// ecdh-sha2-nistp256, -nistp384 and -nistp521 (RFC 5656 section 4): uncompressed points; the secret is the x coordinate of
// their product. node:crypto refuses a point that is not on the curve.
import { createECDH } from 'node:crypto'
import { Reason, SshError } from '../errors.ts'
import { direct, secretAsMpint, type Hash, type KexMethod } from './method.ts'

function ecdh(name: string, curve: string, hash: Hash): KexMethod {
  const pair = (): { value: Buffer; product(theirs: Buffer): Buffer } => {
    const own = createECDH(curve)
    return {
      value: own.generateKeys(),
      product(theirs) {
        if (theirs[0] !== 4) throw new SshError(Reason.keyExchangeFailed, 'The ECDH value is not an uncompressed point.')
        try {
          return secretAsMpint(own.computeSecret(theirs))
        } catch (cause) {
          throw new SshError(Reason.keyExchangeFailed, 'The ECDH value is not a point of the curve.', { cause })
        }
      },
    }
  }
  return direct(name, hash, {
    start() {
      const { value, product } = pair()
      return { value, finish: product }
    },
    respond(theirs) {
      const { value, product } = pair()
      return { value, secret: product(theirs) }
    },
  })
}

export const ecdhP256 = ecdh('ecdh-sha2-nistp256', 'prime256v1', 'sha256')
export const ecdhP384 = ecdh('ecdh-sha2-nistp384', 'secp384r1', 'sha384')
export const ecdhP521 = ecdh('ecdh-sha2-nistp521', 'secp521r1', 'sha512')

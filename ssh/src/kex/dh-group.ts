// diffie-hellman-group14-sha256 and -group16-sha512 (RFC 8268, over the primes of RFC 3526), for peers that know nothing
// newer. The values are mpints, which on the wire look like strings; those not between 1 and p-1 are refused (RFC 4253
// section 8).
import { getDiffieHellman } from 'node:crypto'
import { Reason, SshError } from '../errors.ts'
import { mpintBytes } from '../wire.ts'
import { direct, secretAsMpint, type Hash, type KexMethod } from './method.ts'

function group(name: string, modp: string, hash: Hash): KexMethod {
  const pair = (): { value: Buffer; product(theirs: Buffer): Buffer } => {
    const own = getDiffieHellman(modp)
    return {
      value: mpintBytes(own.generateKeys()),
      product(theirs) {
        requireInRange(theirs, own.getPrime())
        return secretAsMpint(own.computeSecret(theirs))
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

/** Throws unless 1 < value < prime - 1. */
export function requireInRange(value: Buffer, prime: Buffer): void {
  // The length first: a number of a megabyte is not worth reading.
  if (value.length <= prime.length + 1 && (value[0] ?? 0) < 0x80) {
    const number = toBigInt(value)
    if (number > 1n && number < toBigInt(prime) - 1n) return
  }
  throw new SshError(Reason.keyExchangeFailed, 'The Diffie-Hellman value is out of range.')
}

function toBigInt(bytes: Buffer): bigint {
  return bytes.length === 0 ? 0n : BigInt(`0x${bytes.toString('hex')}`)
}

export const dhGroup14 = group('diffie-hellman-group14-sha256', 'modp14', 'sha256')
export const dhGroup16 = group('diffie-hellman-group16-sha512', 'modp16', 'sha512')

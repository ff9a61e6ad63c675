// diffie-hellman-group14-sha256 and -group16-sha512 (RFC 8268, over the primes of RFC 3526), for peers that
// know nothing newer, and the exchange over any such group. The values are mpints, which on the wire look
// like strings; those not between 1 and p-1 are refused (RFC 4253 section 8).
import { createPublicKey, diffieHellman, generateKeyPair, getDiffieHellman } from 'node:crypto'
import { promisify } from 'node:util'
import { Reason, SshError } from '../errors.ts'
import { mpintBytes } from '../wire.ts'
import { direct, paired, type Agreement } from './method.ts'

export interface Group {
  readonly prime: Buffer
  readonly generator: Buffer
}

/** One of RFC 3526, by OpenSSL's name. */
export function knownGroup(modp: string): Group {
  const group = getDiffieHellman(modp)
  return { prime: group.getPrime(), generator: group.getGenerator() }
}

export function agreementOver(group: Group): Agreement {
  const { prime } = group
  const generator = smallNumber(group.generator)
  const pair = async () => {
    // Made from its parts as a key: `createDiffieHellman` would test the prime first.
    const { privateKey, publicKey } = await promisify(generateKeyPair)('dh', { prime, generator })
    return {
      value: valueIn(publicKey.export({ format: 'der', type: 'spki' })),
      async product(theirs: Buffer) {
        const key = createPublicKey({ key: subjectPublicKey(group, theirs), format: 'der', type: 'spki' })
        return promisify(diffieHellman)({ privateKey, publicKey: key })
      },
    }
  }
  return paired(pair, (theirs) => requireInRange(theirs, prime))
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

function smallNumber(magnitude: Buffer): number {
  if (magnitude.length > 3)
    throw new SshError(Reason.keyExchangeFailed, 'The generator of the group is too large.')
  return magnitude.readUIntBE(0, magnitude.length)
}

// The key as node:crypto takes it, SubjectPublicKeyInfo (RFC 5280 section 4.1, PKCS#3 section 9):
//   SEQUENCE { SEQUENCE { OID dhKeyAgreement, SEQUENCE { INTEGER p, INTEGER g } }, BIT STRING { INTEGER y } }
const dhKeyAgreement = Buffer.from('06092a864886f70d010301', 'hex')

function der(tag: number, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const long = mpintBytes(Buffer.of(body.length >> 16, (body.length >> 8) & 0xff, body.length & 0xff))
  const length = body.length < 0x80 ? Buffer.of(body.length) : Buffer.of(0x80 + long.length, ...long)
  return Buffer.concat([Buffer.of(tag), length, body])
}

function subjectPublicKey({ prime, generator }: Group, value: Buffer): Buffer {
  const integer = (magnitude: Buffer): Buffer => der(0x02, mpintBytes(magnitude))
  const algorithm = der(0x30, dhKeyAgreement, der(0x30, integer(prime), integer(generator)))
  return der(0x30, algorithm, der(0x03, Buffer.of(0), integer(value)))
}

/** The y of a key of our own. */
function valueIn(spki: Buffer): Buffer {
  const step = (at: number): { body: number; end: number } => {
    const short = spki[at + 1]!
    const count = short < 0x80 ? 0 : short - 0x80
    const length = count === 0 ? short : spki.readUIntBE(at + 2, count)
    const body = at + 2 + count
    return { body, end: body + length }
  }
  const algorithm = step(step(0).body)
  // One byte into the bit string says how many bits its last byte lacks: none.
  const integer = step(step(algorithm.end).body + 1)
  return spki.subarray(integer.body, integer.end)
}

export const dhGroup14 = direct(
  'diffie-hellman-group14-sha256',
  'sha256',
  agreementOver(knownGroup('modp14')),
)
export const dhGroup16 = direct(
  'diffie-hellman-group16-sha512',
  'sha512',
  agreementOver(knownGroup('modp16')),
)

// diffie-hellman-group-exchange-sha256 (RFC 4419): the client says how large a prime it wants, the server sends one. As a
// server we answer with a prime of RFC 3526; as a client we must take any prime of a good size. That server signs its
// choice, so that it is trusted as much as the server itself; to test a large prime would stop us for seconds.
//   client  byte 34, uint32 min, uint32 wanted, uint32 max
//   server  byte 31, mpint p, mpint g
//   client  byte 32, mpint e      server  byte 33, string host key, mpint f, string signature
import { createPublicKey, diffieHellman, generateKeyPairSync, getDiffieHellman } from 'node:crypto'
import { Reason, SshError } from '../errors.ts'
import type { Writer } from '../wire.ts'
import { mpintBytes, Reader } from '../wire.ts'
import { requireInRange } from './dh-group.ts'
import { secretAsMpint, type Agreement, type KexMethod } from './method.ts'

export const groupExchange: KexMethod = { name: 'diffie-hellman-group-exchange-sha256', hash: 'sha256', kind: 'group-exchange' }

export interface Wish {
  readonly min: number
  readonly wanted: number
  readonly max: number
}

export interface Group {
  readonly prime: Buffer
  readonly generator: Buffer
}

/** What our client asks for. */
export const ourWish: Wish = { min: 2048, wanted: 3072, max: 8192 }
const ourGroups: readonly (readonly [bits: number, name: string])[] = [
  [2048, 'modp14'],
  [3072, 'modp15'],
  [4096, 'modp16'],
  [6144, 'modp17'],
  [8192, 'modp18'],
]

/** The smallest of our groups that is as large as was wanted, or else the largest that the client takes. */
export function groupFor(wish: Wish): Group {
  const allowed = ourGroups.filter(([bits]) => bits >= wish.min && bits <= wish.max)
  const chosen = allowed.find(([bits]) => bits >= wish.wanted) ?? allowed.at(-1)
  if (!chosen || wish.min > wish.max) throw new SshError(Reason.keyExchangeFailed, 'No group of the wanted size is here.')
  const group = getDiffieHellman(chosen[1])
  return { prime: group.getPrime(), generator: group.getGenerator() }
}

export function requireGoodGroup({ prime, generator }: Group, wish: Wish): void {
  const bits = prime.length * 8 - Math.clz32(prime[0] ?? 0) + 24
  const odd = (prime.at(-1)! & 1) === 1
  if (bits < wish.min || bits > wish.max || !odd) throw new SshError(Reason.keyExchangeFailed, 'The group of the server has a wrong size.')
  requireInRange(generator, prime)
}

/** The exchange over a group that was only just agreed on. */
export function agreementOver(group: Group): Agreement {
  const pair = (): { value: Buffer; product(theirs: Buffer): Buffer } => {
    // Made from its parts as a key: `createDiffieHellman` would test the prime first.
    const { privateKey, publicKey } = generateKeyPairSync('dh', { prime: group.prime, generator: smallNumber(group.generator) })
    return {
      value: valueIn(publicKey.export({ format: 'der', type: 'spki' })),
      product(theirs) {
        requireInRange(theirs, group.prime)
        const key = createPublicKey({ key: subjectPublicKey(group, theirs), format: 'der', type: 'spki' })
        return secretAsMpint(diffieHellman({ privateKey, publicKey: key }))
      },
    }
  }
  return {
    start() {
      const { value, product } = pair()
      return { value, finish: product }
    },
    respond(theirs) {
      const { value, product } = pair()
      return { value, secret: product(theirs) }
    },
  }
}

function smallNumber(magnitude: Buffer): number {
  if (magnitude.length > 3) throw new SshError(Reason.keyExchangeFailed, 'The generator of the group is too large.')
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

/** The y of such a key of our own. */
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

export function writeWish(writer: Writer, wish: Wish): Writer {
  return writer.uint32(wish.min).uint32(wish.wanted).uint32(wish.max)
}

export function readWish(payload: Buffer): Wish {
  const reader = new Reader(payload, 1)
  const wish = { min: reader.uint32(), wanted: reader.uint32(), max: reader.uint32() }
  reader.end()
  return wish
}

export function readGroup(payload: Buffer): Group {
  const reader = new Reader(payload, 1)
  const group = { prime: reader.mpint(), generator: reader.mpint() }
  reader.end()
  return group
}

// bcrypt_pbkdf, which makes the key of an encrypted OpenSSH private key file from its passphrase: PBKDF2 with
// bcrypt's expensive Blowfish key schedule in the place of HMAC. node:crypto has neither, so that this one
// primitive is ours; it only ever protects files that we read or write for their owner. Blowfish's tables are
// the fraction of pi, which is computed when first needed rather than carried along as a thousand numbers.
import { createHash } from 'node:crypto'

/** 18 subkeys, then four boxes of 256. */
const subkeys = 18
const tableWords = subkeys + 4 * 256
const resultBytes = 32
const magic = Buffer.from('OxychromaticBlowfishSwatDynamite')

let pi: Uint32Array | undefined

/** The fraction of pi in words of 32 bits, by Machin's formula: pi = 16 atan(1/5) - 4 atan(1/239). */
function fractionOfPi(): Uint32Array {
  if (pi) return pi
  const guard_bits = 64n
  const bits = BigInt(tableWords) * 32n + guard_bits
  const atanInverse = (x: bigint): bigint => {
    let power = (1n << bits) / x
    let sum = power
    for (let n = 3n, sign = -1n; power > 0n; n += 2n, sign = -sign) {
      power /= x * x
      sum += (sign * power) / n
    }
    return sum
  }
  const value = 16n * atanInverse(5n) - 4n * atanInverse(239n)
  const hex = ((value - (3n << bits)) >> guard_bits).toString(16).padStart(tableWords * 8, '0')
  pi = Uint32Array.from({ length: tableWords }, (_, word) =>
    Number.parseInt(hex.slice(word * 8, word * 8 + 8), 16),
  )
  return pi
}

/** One block of Blowfish, in place. */
function encipher(table: Uint32Array, block: Uint32Array, at: number): void {
  let left = block[at]! ^ table[0]!
  let right = block[at + 1]!
  for (let round = 1; round <= 16; round += 2) {
    right ^= feistel(table, left) ^ table[round]!
    left ^= feistel(table, right) ^ table[round + 1]!
  }
  block[at] = right ^ table[17]!
  block[at + 1] = left
}

function feistel(table: Uint32Array, x: number): number {
  const a = table[18 + (x >>> 24)]!
  const b = table[274 + ((x >>> 16) & 0xff)]!
  const c = table[530 + ((x >>> 8) & 0xff)]!
  const d = table[786 + (x & 0xff)]!
  return (((a + b) ^ c) + d) | 0
}

function words(bytes: Buffer): Uint32Array {
  return Uint32Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readUInt32BE(at * 4))
}

/**
 * Mixes a key into the subkeys, then replaces the whole table by its encryption, with the salt if there is
 * one.
 */
function expand(table: Uint32Array, key: Uint32Array, salt: Uint32Array | undefined): void {
  for (let at = 0; at < subkeys; at += 1) table[at]! ^= key[at % key.length]!
  const block = new Uint32Array(2)
  for (let at = 0; at < tableWords; at += 2) {
    if (salt) {
      block[0]! ^= salt[at % salt.length]!
      block[1]! ^= salt[(at + 1) % salt.length]!
    }
    encipher(table, block, 0)
    table[at] = block[0]!
    table[at + 1] = block[1]!
  }
}

function bcryptHash(passphrase: Buffer, salt: Buffer): Buffer {
  const table = Uint32Array.from(fractionOfPi())
  const [key, salted] = [words(passphrase), words(salt)]
  expand(table, key, salted)
  for (let round = 0; round < 64; round += 1) {
    expand(table, salted, undefined)
    expand(table, key, undefined)
  }
  const text = words(magic)
  for (let round = 0; round < 64; round += 1) {
    for (let at = 0; at < text.length; at += 2) encipher(table, text, at)
  }
  const result = Buffer.alloc(resultBytes)
  text.forEach((word, at) => result.writeUInt32LE(word, at * 4))
  return result
}

const sha512 = (bytes: Buffer): Buffer => createHash('sha512').update(bytes).digest()

export function bcryptPbkdf(passphrase: Buffer, salt: Buffer, rounds: number, length: number): Buffer {
  const blocks = Math.ceil(length / resultBytes)
  const result = Buffer.alloc(length)
  const pass = sha512(passphrase)
  for (let block = 1; block <= blocks; block += 1) {
    const count = Buffer.alloc(4)
    count.writeUInt32BE(block)
    let last = bcryptHash(pass, sha512(Buffer.concat([salt, count])))
    const sum = Buffer.from(last)
    for (let round = 1; round < rounds; round += 1) {
      last = bcryptHash(pass, sha512(last))
      last.forEach((byte, at) => void (sum[at]! ^= byte))
    }
    // Unlike PBKDF2, the bytes of the blocks are interleaved.
    sum.forEach((byte, at) => {
      const to = at * blocks + (block - 1)
      if (to < length) result[to] = byte
    })
  }
  return result
}

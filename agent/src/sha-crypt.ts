// The password hashes $5$ (SHA-256) and $6$ (SHA-512), after "Unix crypt using SHA-256 and SHA-512" by Ulrich
// Drepper.
//   $6$salt$hash   or   $6$rounds=N$salt$hash     5000 rounds unless told; N is brought between 1000 and 999999999
// The rounds are done in portions, so that a hash with many of them does not stop everybody else on the
// device.
import { createHash, timingSafeEqual } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'

interface Kind {
  readonly digest: 'sha256' | 'sha512'
  /** The bytes of the digest in the order of the text, three at a time, most significant first. */
  readonly order: readonly (readonly number[])[]
}

const leastRounds = 1_000
const mostRounds = 999_999_999
const usualRounds = 5_000
const longestSalt = 16
/** About a millisecond of work. */
const portion = 500
const letters = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Each group is the one before, rotated and advanced by one; the last one is the rest. */
function groups(
  count: number,
  first: readonly [number, number, number],
  turned: 'left' | 'right',
  last: readonly number[],
): number[][] {
  const all: number[][] = []
  let [a, b, c] = first
  for (let group = 0; group < count; group += 1) {
    all.push([a, b, c])
    ;[a, b, c] = turned === 'left' ? [b + 1, c + 1, a + 1] : [c + 1, a + 1, b + 1]
  }
  return [...all, [...last]]
}

const kinds: Readonly<Record<string, Kind>> = {
  5: { digest: 'sha256', order: groups(10, [0, 10, 20], 'right', [31, 30]) },
  6: { digest: 'sha512', order: groups(21, [0, 21, 42], 'left', [63]) },
}

interface Setting {
  readonly kind: Kind
  readonly salt: Buffer
  readonly rounds: number
  readonly prefix: string
}

function readSetting(setting: string): Setting | undefined {
  const read = /^\$([56])\$(?:rounds=(\d{1,10})\$)?([^$:\n]*)/.exec(setting)
  const kind = kinds[read?.[1] ?? '']
  if (!read || !kind) return undefined
  const [, number, told, salt = ''] = read
  const rounds = told === undefined ? usualRounds : Math.min(mostRounds, Math.max(leastRounds, Number(told)))
  const kept = salt.slice(0, longestSalt)
  return {
    kind,
    rounds,
    salt: Buffer.from(kept),
    prefix: `$${number}$${told === undefined ? '' : `rounds=${rounds}$`}${kept}$`,
  }
}

export function isShaCrypt(hash: string): boolean {
  return readSetting(hash) !== undefined
}

/** `setting`: another hash, or its beginning, with the kind, the rounds and the salt. */
export async function shaCrypt(password: string, setting: string): Promise<string> {
  const read = readSetting(setting)
  if (!read) throw new TypeError('This is no setting of SHA-crypt.')
  const { kind, salt, rounds, prefix } = read
  const key = Buffer.from(password)
  const hash = (...parts: readonly Buffer[]): Buffer => {
    const hashing = createHash(kind.digest)
    for (const part of parts) hashing.update(part)
    return hashing.digest()
  }

  const inner = hash(key, salt, key)
  const mixed: Buffer[] = [key, salt, repeated(inner, key.length)]
  for (let bits = key.length; bits > 0; bits >>= 1) mixed.push(bits & 1 ? inner : key)
  let result = hash(...mixed)

  const keys = repeated(hash(...Array.from({ length: key.length }, () => key)), key.length)
  const salts = repeated(hash(...Array.from({ length: 16 + result[0]! }, () => salt)), salt.length)
  for (let round = 0; round < rounds; round += 1) {
    const odd = round % 2 === 1
    const parts = [odd ? keys : result]
    if (round % 3 !== 0) parts.push(salts)
    if (round % 7 !== 0) parts.push(keys)
    parts.push(odd ? result : keys)
    result = hash(...parts)
    if (round % portion === portion - 1) await turn()
  }
  return prefix + kind.order.map((group) => written(group.map((at) => result[at]!))).join('')
}

export async function checkShaCrypt(password: string, hash: string): Promise<boolean> {
  const [expected, found] = [Buffer.from(hash), Buffer.from(await shaCrypt(password, hash))]
  return expected.length === found.length && timingSafeEqual(expected, found)
}

function repeated(bytes: Buffer, length: number): Buffer {
  return Buffer.alloc(length, bytes)
}

/** Six bits to a letter, lowest first. */
function written(bytes: readonly number[]): string {
  let value = bytes.reduce((whole, byte) => whole * 256 + byte, 0)
  let text = ''
  for (let letter = 0; letter <= bytes.length; letter += 1) {
    text += letters[value % 64]
    value = Math.floor(value / 64)
  }
  return text
}

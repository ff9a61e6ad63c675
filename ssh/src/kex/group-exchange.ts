// diffie-hellman-group-exchange-sha256 (RFC 4419): the client says how large a prime it wants, the server sends one. As a
// server we answer with a prime of RFC 3526; as a client we must take any prime of a good size. That server signs its
// choice, so that it is trusted as much as the server itself; to test a large prime would stop us for seconds.
//   client  byte 34, uint32 min, uint32 wanted, uint32 max
//   server  byte 31, mpint p, mpint g
//   client  byte 32, mpint e      server  byte 33, string host key, mpint f, string signature
import { Reason, SshError } from '../errors.ts'
import { Reader, type Writer } from '../wire.ts'
import { knownGroup, requireInRange, type Group } from './dh-group.ts'
import type { KexMethod } from './method.ts'

export const groupExchange: KexMethod = { name: 'diffie-hellman-group-exchange-sha256', hash: 'sha256', kind: 'group-exchange' }

export interface Wish {
  readonly min: number
  readonly wanted: number
  readonly max: number
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
  return knownGroup(chosen[1])
}

export function requireGoodGroup({ prime, generator }: Group, wish: Wish): void {
  const bits = prime.length * 8 - Math.clz32(prime[0] ?? 0) + 24
  const odd = (prime.at(-1)! & 1) === 1
  if (bits < wish.min || bits > wish.max || !odd) throw new SshError(Reason.keyExchangeFailed, 'The group of the server has a wrong size.')
  requireInRange(generator, prime)
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

// diffie-hellman-group-exchange-sha256 (RFC 4419): the client says how large a prime it wants, the server
// sends one. As a server we answer with a prime of RFC 3526, and as a client we take those alone, up to 4096
// bits: the number comes from a device that nobody has accepted yet. Whether another one is a safe prime
// would take OpenSSL 128 rounds of Miller-Rabin for it and as many for its half, seconds of a thread at
// the wish of any peer. So an sshd that has primes of its own (/etc/ssh/moduli) is not reached in this way. It need
// not be: every OpenSSH whose host key signatures we take (SHA-2 or ECDSA, from 5.7 on) has ECDH, too, unless
// its owner has taken away all but this; which is why this is the last that our client offers.
//   client  byte 34, uint32 min, uint32 wanted, uint32 max
//   server  byte 31, mpint p, mpint g
//   client  byte 32, mpint e      server  byte 33, string host key, mpint f, string signature
import { Reason, SshError } from '../errors.ts'
import { Reader, type Writer } from '../wire.ts'
import { knownGroup, type Group } from './dh-group.ts'
import type { KexMethod } from './method.ts'

export const groupExchange: KexMethod = {
  name: 'diffie-hellman-group-exchange-sha256',
  hash: 'sha256',
  kind: 'group-exchange',
}

export interface GroupRequest {
  readonly min: number
  readonly wanted: number
  readonly max: number
}

/**
 * The request of our client; a server without primes of its own, such as OpenSSH without its file, answers
 * with a group of RFC 3526.
 */
export const ourWish: GroupRequest = { min: 2048, wanted: 3072, max: 4096 }
const ourGroups: readonly (readonly [bits: number, name: string])[] = [
  [2048, 'modp14'],
  [3072, 'modp15'],
  [4096, 'modp16'],
  [6144, 'modp17'],
  [8192, 'modp18'],
]

/** The smallest of our groups that is as large as requested, or else the largest that the client accepts. */
export function groupFor(wish: GroupRequest): Group {
  const allowed = ourGroups.filter(([bits]) => bits >= wish.min && bits <= wish.max)
  const chosen = allowed.find(([bits]) => bits >= wish.wanted) ?? allowed.at(-1)
  if (!chosen || wish.min > wish.max)
    throw new SshError(Reason.keyExchangeFailed, 'No group of the wanted size is here.')
  return knownGroup(chosen[1])
}

const taken: readonly Group[] = ourGroups
  .filter(([bits]) => bits <= ourWish.max)
  .map(([, name]) => knownGroup(name))

/** Compared whole, before anything is computed with it. */
export function requireKnownGroup({ prime, generator }: Group): void {
  if (!taken.some((group) => group.prime.equals(prime) && group.generator.equals(generator)))
    throw new SshError(
      Reason.keyExchangeFailed,
      'The server sent a group of its own; only those of RFC 3526 up to 4096 bits are used here.',
    )
}

export function writeWish(writer: Writer, wish: GroupRequest): Writer {
  return writer.uint32(wish.min).uint32(wish.wanted).uint32(wish.max)
}

export function readWish(payload: Buffer): GroupRequest {
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

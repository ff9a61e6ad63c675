// A key exchange, reduced to what differs between methods. Two values cross the wire as strings, the client's and the
// server's, and both sides arrive at a secret. The secret is given as it goes into the hash: as an mpint or, for the
// hybrid method, as a string, in each case with its length before it.
import { mpintBytes, Writer } from '../wire.ts'

export interface Agreement {
  /** The client's half: its value, and what it makes of the server's. */
  start(): { readonly value: Buffer; finish(theirs: Buffer): Buffer }
  /** The server's half, in one go. */
  respond(theirs: Buffer): { readonly value: Buffer; readonly secret: Buffer }
}

export type Hash = 'sha256' | 'sha384' | 'sha512'

export type KexMethod =
  | { readonly name: string; readonly hash: Hash; readonly kind: 'direct'; readonly agreement: Agreement }
  | { readonly name: string; readonly hash: Hash; readonly kind: 'group-exchange' }

export function direct(name: string, hash: Hash, agreement: Agreement): KexMethod {
  return { name, hash, kind: 'direct', agreement }
}

export function secretAsMpint(magnitude: Buffer): Buffer {
  return new Writer(magnitude.length + 8).string(mpintBytes(magnitude)).bytes()
}

export function secretAsString(bytes: Buffer): Buffer {
  return new Writer(bytes.length + 4).string(bytes).bytes()
}

// A key exchange, reduced to what differs between methods. Two values cross the wire as strings, the client's
// and the server's, and both sides arrive at a secret. The secret is given as it goes into the hash: as an
// mpint or, for the hybrid method, as a string, in each case with its length before it. What takes long is
// done by other threads of the process (the asynchronous forms of node:crypto): a stranger may ask for it.
// X25519 and ML-KEM take a tenth of a millisecond, less than it takes to hand them to a thread, and are done
// at once.
import { mpintBytes, Writer } from '../wire.ts'

export interface Started {
  readonly value: Buffer
  finish(theirs: Buffer): Promise<Buffer>
}

export interface Agreement {
  /** The client's half: its value, and the function of the server's. */
  start(): Promise<Started>
  respond(theirs: Buffer): Promise<{ readonly value: Buffer; readonly secret: Buffer }>
}

/** One side's half of one exchange: a value for the other side, and the product with the other's. */
export interface Pair {
  readonly value: Buffer
  product(theirs: Buffer): Buffer | Promise<Buffer>
}

/**
 * Both sides do the same, and the secret is the product, as a number. `check` throws for a bad value before
 * any work is done.
 */
export function paired(make: () => Pair | Promise<Pair>, check: (theirs: Buffer) => void): Agreement {
  const finish = async (pair: Pair, theirs: Buffer): Promise<Buffer> =>
    secretAsMpint(await pair.product(theirs))
  return {
    async start() {
      const pair = await make()
      return {
        value: pair.value,
        async finish(theirs) {
          check(theirs)
          return finish(pair, theirs)
        },
      }
    },
    async respond(theirs) {
      check(theirs)
      const pair = await make()
      return { value: pair.value, secret: await finish(pair, theirs) }
    },
  }
}

export type Hash = 'sha256' | 'sha384' | 'sha512'

export type KexMethod =
  | { readonly name: string; readonly hash: Hash; readonly kind: 'direct'; readonly agreement: Agreement }
  | { readonly name: string; readonly hash: Hash; readonly kind: 'group-exchange' }

export function direct(name: string, hash: Hash, agreement: Agreement): KexMethod {
  return { name, hash, kind: 'direct', agreement }
}

function secretAsMpint(magnitude: Buffer): Buffer {
  return new Writer(magnitude.length + 8).string(mpintBytes(magnitude)).bytes()
}

export function secretAsString(bytes: Buffer): Buffer {
  return new Writer(bytes.length + 4).string(bytes).bytes()
}

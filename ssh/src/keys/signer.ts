// Anything that can sign for a public key: a private key in memory, a key in an agent, or either with a
// certificate. A client that authenticates needs no more than this.
import { certificateName, plainName } from './certified-key.ts'
import { KeyFormatError } from './public-key.ts'

/** Signs for a public key. */
export interface Signer {
  /** The blob for the server: of the key or of its certificate. */
  readonly blob: Buffer
  /** Names for the request, best first. */
  readonly algorithms: readonly string[]
  /** Signing may bother a person, so the server is asked first whether the key is of use. */
  readonly askFirst?: boolean
  sign(algorithm: string, data: Buffer): Buffer | Promise<Buffer>
}

/** `line`: of a `…-cert.pub` file. */
export function withCertificate(key: Signer, line: string): Signer {
  const [type = '', base64 = ''] = line.trim().split(/\s+/)
  if (plainName(type) === undefined) throw new KeyFormatError('This is not a certificate.')
  return {
    ...key,
    blob: Buffer.from(base64, 'base64'),
    algorithms: key.algorithms.map(certificateName),
    sign: (algorithm, data) => key.sign(plainName(algorithm) ?? algorithm, data),
  }
}

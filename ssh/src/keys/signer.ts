// Whatever can sign for a public key: a private key in memory, a key in an agent, or either with a
// certificate. A client that authenticates needs no more than this.
import { certificateName, plainName } from './certified-key.ts'
import { KeyFormatError } from './public-key.ts'

/** Whatever can sign for a public key. */
export interface Signer {
  /** What is shown to the server: the blob of the key or of its certificate. */
  readonly blob: Buffer
  /** Names for the request, best first. */
  readonly algorithms: readonly string[]
  /** True where signing may bother a person, so that the server is asked first whether the key is of use. */
  readonly askFirst?: boolean
  sign(algorithm: string, data: Buffer): Buffer | Promise<Buffer>
}

/** The key with a certificate for it, from the line of a `…-cert.pub` file. */
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

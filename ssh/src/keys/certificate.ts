// OpenSSH certificates (its PROTOCOL.certkeys): a public key, who may log in with it, when and from where,
// signed by an authority. Reading one proves that its authority signed it; whether that authority is trusted,
// and what the certificate then allows, is `judgeCertificate`'s to say. The format:
//   string type, string nonce, the fields of the public key, uint64 serial, uint32 kind (1 user, 2 host), string key id,
//   string principals (strings), uint64 valid after, uint64 valid before (seconds), string critical options and
//   string extensions (pairs of strings), string reserved, string authority's key, string signature over all before it
import { BlockList, isIP } from 'node:net'
import { ProtocolError } from '../errors.ts'
import { Reader, Writer } from '../wire.ts'
import { plainName, readCertifiedKey } from './certified-key.ts'
import { KeyFormatError } from './public-key.ts'
import { signatureAlgorithms, verifySignature } from './signature.ts'

/** OpenSSH's format, signed by the authority that it names. */
export interface Certificate {
  readonly key: Buffer
  readonly kind: 'user' | 'host'
  readonly serial: bigint
  readonly id: string
  readonly principals: readonly string[]
  /** Seconds since 1970. */
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly criticalOptions: ReadonlyMap<string, Buffer>
  readonly extensions: ReadonlyMap<string, Buffer>
  readonly authority: Buffer
}

const mostPrincipals = 256

export function isCertificate(blob: Buffer): boolean {
  try {
    return plainName(new Reader(blob).text()) !== undefined
  } catch {
    return false
  }
}

/** Throws a KeyFormatError unless the certificate is whole and signed by the key that it names. */
export async function parseCertificate(blob: Buffer): Promise<Certificate> {
  try {
    return await parse(blob)
  } catch (error) {
    if (error instanceof ProtocolError)
      throw new KeyFormatError('The certificate is malformed.', { cause: error })
    throw error
  }
}

async function parse(blob: Buffer): Promise<Certificate> {
  const reader = new Reader(blob)
  const key = readCertifiedKey(reader)
  const serial = reader.uint64()
  const kind = reader.uint32()
  const id = reader.text()
  const principals = strings(reader.string()).map(String)
  const [validAfter, validBefore] = [reader.uint64(), reader.uint64()]
  const [criticalOptions, extensions] = [pairs(reader.string()), pairs(reader.string())]
  reader.string()
  const authority = Buffer.from(reader.string())
  const signed_bytes = blob.length - reader.rest().length
  const signature = new Reader(blob, signed_bytes)
  const bytes = signature.string()
  signature.end()

  if (kind !== 1 && kind !== 2)
    throw new KeyFormatError('The certificate is neither for a user nor for a host.')
  if (isCertificate(authority))
    throw new KeyFormatError('The authority of a certificate is itself a certificate.')
  const algorithm = new Reader(bytes).text()
  if (
    !signatureAlgorithms.includes(algorithm) ||
    !(await verifySignature(authority, algorithm, blob.subarray(0, signed_bytes), bytes))
  ) {
    throw new KeyFormatError('The certificate is not signed by the authority that it names.')
  }
  return {
    key,
    kind: kind === 1 ? 'user' : 'host',
    serial,
    id,
    principals,
    validAfter,
    validBefore,
    criticalOptions,
    extensions,
    authority,
  }
}

function strings(packed: Buffer): Buffer[] {
  const reader = new Reader(packed)
  const found: Buffer[] = []
  while (!reader.done) {
    found.push(reader.string())
    if (found.length > mostPrincipals) throw new KeyFormatError('The certificate lists too much.')
  }
  return found
}

function pairs(packed: Buffer): Map<string, Buffer> {
  const found = new Map<string, Buffer>()
  const flat = strings(packed)
  if (flat.length % 2 !== 0) throw new KeyFormatError('An option of the certificate has no value.')
  for (let at = 0; at < flat.length; at += 2) {
    const name = flat[at]!.toString()
    if (found.has(name)) throw new KeyFormatError('An option of the certificate is there twice.')
    found.set(name, flat[at + 1]!)
  }
  return found
}

/** The intended use of a certificate. */
export interface CertificateUse {
  readonly kind: 'user' | 'host'
  /** Trusted, as blobs. */
  readonly authorities: readonly Buffer[]
  /** The user or host name that must be among the principals. */
  readonly principal: string
  /** Undefined: times do not count, because no clock can be trusted and something else limits the use. */
  readonly now: Date | undefined
  /** The address of the holder, for `source-address`. */
  readonly address?: string | undefined
  /** Options that the certificate must have, with these values. */
  readonly criticalOptions?: ReadonlyMap<string, Uint8Array>
}

/** Whether a certificate allows its use, and under which condition. */
export type CertificateResult =
  | { readonly allowed: true; /** The one command that may run. */ readonly forceCommand: string | undefined }
  | { readonly allowed: false; readonly because: string }

/** An unknown critical option forbids everything. */
export function judgeCertificate(certificate: Certificate, use: CertificateUse): CertificateResult {
  const refused = (because: string): CertificateResult => ({ allowed: false, because })
  const now = use.now && BigInt(Math.floor(use.now.getTime() / 1000))
  const demanded = use.criticalOptions ?? new Map<string, Uint8Array>()
  if (!use.authorities.some((trusted) => trusted.equals(certificate.authority)))
    return refused('Its authority is not trusted.')
  if (certificate.kind !== use.kind) return refused(`It is a certificate for a ${certificate.kind}.`)
  if (now !== undefined && now < certificate.validAfter) return refused('It is not valid yet.')
  if (now !== undefined && now >= certificate.validBefore) return refused('It has expired.')
  // OpenSSH once took an empty list for everyone; nobody is the safer reading.
  if (!certificate.principals.includes(use.principal)) return refused('It is for another user or host.')
  for (const [name, value] of demanded)
    if (!certificate.criticalOptions.get(name)?.equals(new Writer(value.length + 4).string(value).bytes()))
      return refused(`It is for another ${name}.`)
  let forceCommand: string | undefined
  for (const [name, value] of certificate.criticalOptions) {
    if (demanded.has(name)) continue
    const argument = new Reader(value)
    if (name === 'force-command') forceCommand = argument.text()
    else if (name !== 'source-address') return refused(`It demands ${name}, which is not known here.`)
    else if (!addressWithin(use.address, argument.text()))
      return refused('It may not be used from this address.')
  }
  return { allowed: true, forceCommand }
}

function addressWithin(address: string | undefined, list: string): boolean {
  const version = isIP(address ?? '')
  if (version === 0) return false
  const allowed = new BlockList()
  for (const entry of list.split(',')) {
    const [network = '', prefix] = entry.trim().split('/')
    const family = isIP(network) === 6 ? 'ipv6' : 'ipv4'
    const longest = family === 'ipv6' ? 128 : 32
    const bits = prefix === undefined ? longest : Number(prefix)
    if (isIP(network) === 0 || !Number.isInteger(bits) || bits < 0 || bits > longest) return false
    allowed.addSubnet(network, bits, family)
  }
  return allowed.check(address!, version === 6 ? 'ipv6' : 'ipv4')
}

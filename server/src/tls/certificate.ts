// A TLS certificate with its chain and its private key, as PEM, checked so that it can be served: the key
// belongs to the certificate and OpenSSL takes both. Every refusal is a sentence for the operator.
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'
import { createSecureContext } from 'node:tls'

export interface Certificate {
  /** PEM, the server's own certificate first. */
  readonly chain: string
  /** PEM. */
  readonly key: string
  /** The names and addresses it is valid for. */
  readonly names: readonly string[]
  /** Milliseconds since 1970. */
  readonly begins_at: number
  readonly expires_at: number
}

export class BadCertificate extends Error {
  override readonly name = 'BadCertificate'
}

/** Throws BadCertificate. */
export function readCertificate(chain: string, key: string): Certificate {
  const certificate = parsed('the certificate is not a PEM file', () => new X509Certificate(chain))
  if (!certificate.checkPrivateKey(privateKey(key)))
    throw new BadCertificate('the key does not belong to the certificate')
  parsed('OpenSSL refuses the certificate', () => createSecureContext({ cert: chain, key }))
  return {
    chain,
    key,
    names: (certificate.subjectAltName ?? '')
      .split(', ')
      .map((name) => name.replace(/^(DNS|IP Address):/, ''))
      .filter(Boolean),
    begins_at: Date.parse(certificate.validFrom),
    expires_at: Date.parse(certificate.validTo),
  }
}

function privateKey(pem: string): KeyObject {
  if (/ENCRYPTED/.test(pem))
    throw new BadCertificate('the key is encrypted: `openssl pkey` writes it without a passphrase')
  return parsed('the key is not a PEM file', () => createPrivateKey(pem))
}

function parsed<T>(sentence: string, parse: () => T): T {
  try {
    return parse()
  } catch (cause) {
    throw new BadCertificate(`${sentence} (${(cause as Error).message})`, { cause })
  }
}

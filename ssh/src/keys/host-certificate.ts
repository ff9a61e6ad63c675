// Host certificates of our own making: a server with a slow key, such as RSA, signs a certificate for a quick
// one once, and each exchange of keys is then signed by the quick one. A client that knows the slow key
// trusts the certificate instead. The format is in certificate.ts.
import { isCertificate, judgeCertificate, parseCertificate } from './certificate.ts'
import { certify } from './certify.ts'
import type { PrivateKey } from './private-key.ts'
import { KeyFormatError } from './public-key.ts'

/** The beginning and the end of time. */
const [always, never] = [0n, 2n ** 64n - 1n]

/**
 * The certificate is valid for ever, because clocks of small devices are wrong: it is as good as the
 * authority's own key, and must be as short-lived as the process that holds both.
 */
export async function certifyHostKey(
  key: PrivateKey,
  authority: PrivateKey,
  principal: string,
): Promise<PrivateKey> {
  const fields = { kind: 'host', id: principal, principals: [principal] } as const
  return certify(key, authority, { ...fields, validAfter: always, validBefore: never })
}

/** Whether a host key is a certificate for a host of this name, signed by this authority. */
export async function isCertifiedHostKey(
  blob: Buffer,
  authority: Buffer,
  principal: string,
  now = new Date(),
): Promise<boolean> {
  if (!isCertificate(blob)) return false
  try {
    const certificate = await parseCertificate(blob)
    return judgeCertificate(certificate, { kind: 'host', authorities: [authority], principal, now }).allowed
  } catch (error) {
    if (error instanceof KeyFormatError) return false
    throw error
  }
}

// The plain key that the blob of a certificate is for. Reading it proves nothing: whether
// the certificate is signed, and by which key, is for certificate.ts. The blob begins with
//   string type, string nonce, the fields of the public key
import { Writer, type Reader } from '../wire.ts'
import { KeyFormatError, parsePublicKeyBlob } from './public-key.ts'

const suffix = /-cert-v01@openssh\.com$/
/** Strings between the nonce and the serial; all but the last are those of the plain key. */
const keyFields: Readonly<Record<string, number>> = {
  'ssh-rsa': 2,
  'ssh-ed25519': 1,
  'ecdsa-sha2-nistp256': 2,
  'ecdsa-sha2-nistp384': 2,
  'ecdsa-sha2-nistp521': 2,
  'sk-ssh-ed25519@openssh.com': 2,
  'sk-ecdsa-sha2-nistp256@openssh.com': 3,
}

/** `ssh-ed25519-cert-v01@openssh.com` is about `ssh-ed25519`; undefined: not the name of a certificate. */
export function plainName(name: string): string | undefined {
  if (!suffix.test(name)) return undefined
  return name.startsWith('sk-') ? name.replace(suffix, '@openssh.com') : name.replace(suffix, '')
}

export function certificateName(plain: string): string {
  return `${plain.replace(/@openssh\.com$/, '')}-cert-v01@openssh.com`
}

/** Returns the blob of the plain key. Throws a KeyFormatError. */
export function readCertifiedKey(reader: Reader): Buffer {
  const type = plainName(reader.text())
  const fields = type === undefined ? undefined : keyFields[type]
  if (type === undefined || fields === undefined)
    throw new KeyFormatError('Certificates of this type are not supported.')
  reader.string()
  const key = new Writer(600).string(type)
  for (let field = 0; field < fields; field += 1) key.string(reader.string())
  parsePublicKeyBlob(key.bytes())
  return Buffer.from(key.bytes())
}

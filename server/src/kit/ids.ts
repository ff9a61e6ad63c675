// Identifiers: random, so that one reveals nothing about another; only the uids of devices are derived.
import { createHash, randomBytes, randomUUID } from 'node:crypto'

export const newUuid = (): string => randomUUID()
/** 24 hex characters, as clients of the original expect. */
export const newUserId = (): string => randomBytes(12).toString('hex')
/** For sessions: 64 hex characters. */
export const newUid = (): string => randomBytes(32).toString('hex')

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
/** `length` characters of RFC 4648 base32, 5 bits each: secrets and recovery codes. */
export function newBase32(length: number): string {
  return Array.from(randomBytes(length), (byte) => base32[byte & 31]).join('')
}

/** No 0, O, 1, I or L: codes that people copy from an e-mail by hand. */
const legible = '23456789ABCDEFGHJKMNPQRSTUVWXYZ'
export function newLegibleCode(length: number): string {
  let code = ''
  while (code.length < length) {
    const value = randomBytes(1)[0]! & 31
    // 31 letters do not divide 32: folding a value past the end would favour some, so it is drawn again.
    if (value < legible.length) code += legible[value]
  }
  return code
}

/**
 * Identity, key and namespace make a device: this text is hashed byte for byte as the original does (the
 * key's line breaks included, nothing escaped), because existing agents' uids must stay the same.
 */
export function deviceUid(device: {
  mac: string | undefined
  public_key: string
  tenant_id: string
}): string {
  const identity = device.mac === undefined ? '<invalid Value>' : `{MAC:"${device.mac}"}`
  const text = `{Identity:${identity},PublicKey:"${device.public_key}",TenantID:"${device.tenant_id}"}`
  return createHash('sha256').update(text).digest('hex')
}

/**
 * A device without an agent is its SSH server's host key in a namespace. No uid of the other kind is the hash
 * of such a text, so nobody can ask for the device's token by knowing the key.
 */
export function hostKeyUid(tenant_id: string, public_key: string): string {
  return createHash('sha256').update(`host key\n${tenant_id}\n${public_key}`).digest('hex')
}

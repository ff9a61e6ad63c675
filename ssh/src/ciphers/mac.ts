// The MACs that go with AES-CTR. Those of the encrypt-then-MAC kind (OpenSSH's PROTOCOL file, section 1.5)
// are over the packet as it is on the wire, so that nothing of a changed packet is ever decrypted:
//   mac = HMAC(key, uint32 sequence, uint32 packet_length, encrypted bytes)
// The others (RFC 6668) are for old peers that know nothing else, libssh2 before 1.11 for one, and over what
// was encrypted:
//   mac = HMAC(key, uint32 sequence, packet)
import { createHmac } from 'node:crypto'
import type { Mac } from './cipher.ts'

export const hmacSha256Etm: Mac = {
  name: 'hmac-sha2-256-etm@openssh.com',
  hash: 'sha256',
  bytes: 32,
  encryptThenMac: true,
}
export const hmacSha512Etm: Mac = {
  name: 'hmac-sha2-512-etm@openssh.com',
  hash: 'sha512',
  bytes: 64,
  encryptThenMac: true,
}
export const hmacSha256: Mac = { name: 'hmac-sha2-256', hash: 'sha256', bytes: 32, encryptThenMac: false }
export const hmacSha512: Mac = { name: 'hmac-sha2-512', hash: 'sha512', bytes: 64, encryptThenMac: false }

export function macOf(mac: Mac, key: Buffer, sequence: number, ...parts: Buffer[]): Buffer {
  const hmac = createHmac(mac.hash, key)
  const counted = Buffer.allocUnsafe(4)
  counted.writeUInt32BE(sequence)
  hmac.update(counted)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

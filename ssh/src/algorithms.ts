// Every algorithm that this package knows, and the lists that are offered unless a caller says otherwise. The
// default lists of a server hold nothing that an audit objects to: no NIST curves, no SHA-1, no group below
// 3072 bits, nothing but authenticated encryption or encrypt-then-MAC. Who must be reached by older clients
// takes `compatibleAlgorithms`, and who must reach older peers chooses from `allAlgorithms`.
import { aes128Ctr, aes192Ctr, aes256Ctr } from './ciphers/aes-ctr.ts'
import { aes128Gcm, aes256Gcm } from './ciphers/aes-gcm.ts'
import { chacha20Poly1305, hasPoly1305 } from './ciphers/chacha20-poly1305.ts'
import type { Cipher, Mac } from './ciphers/cipher.ts'
import type { Compression } from './compression/compression.ts'
import { zlibOpenssh } from './compression/zlib.ts'
import { available } from './compression/zlib-context.ts'
import { zstdHawser } from './compression/zstd.ts'
import { hmacSha256, hmacSha256Etm, hmacSha512, hmacSha512Etm } from './ciphers/mac.ts'
import { curve25519, curve25519Libssh } from './kex/curve25519.ts'
import { dhGroup14, dhGroup16 } from './kex/dh-group.ts'
import { ecdhP256, ecdhP384, ecdhP521 } from './kex/ecdh.ts'
import { groupExchange } from './kex/group-exchange.ts'
import type { KexMethod } from './kex/method.ts'
import { mlkem768x25519 } from './kex/mlkem768x25519.ts'
import { certificateName } from './keys/certified-key.ts'

function byName<T extends { readonly name: string }>(list: readonly T[]): ReadonlyMap<string, T> {
  return new Map(list.map((item) => [item.name, item]))
}

export const kexMethods: ReadonlyMap<string, KexMethod> = byName([
  mlkem768x25519,
  curve25519,
  curve25519Libssh,
  ecdhP256,
  ecdhP384,
  ecdhP521,
  dhGroup16,
  dhGroup14,
  groupExchange,
])

export const ciphers: ReadonlyMap<string, Cipher> = byName([
  aes128Gcm,
  aes256Gcm,
  ...(hasPoly1305 ? [chacha20Poly1305] : []),
  aes256Ctr,
  aes192Ctr,
  aes128Ctr,
])

export const macs: ReadonlyMap<string, Mac> = byName([hmacSha256Etm, hmacSha512Etm, hmacSha256, hmacSha512])

export const compressions: ReadonlyMap<string, Compression> = byName([zlibOpenssh, zstdHawser])

/** Node's zlib is tried at the first call. */
export function canCompress(name: string): boolean {
  return name === zlibOpenssh.name ? available().zlib : name === zstdHawser.name ? available().zstd : true
}

/** Names, best first. A client's order decides (RFC 4253 section 7.1). */
export interface Algorithms {
  readonly kex: readonly string[]
  readonly hostKey: readonly string[]
  readonly ciphers: readonly string[]
  readonly macs: readonly string[]
  /** `none` is no compression. */
  readonly compression: readonly string[]
}

/** Everything that this package knows, old algorithms included; to choose from, not to offer. */
export const allAlgorithms: Algorithms = {
  kex: [...kexMethods.keys()],
  hostKey: [
    'ssh-ed25519',
    'ecdsa-sha2-nistp256',
    'ecdsa-sha2-nistp384',
    'ecdsa-sha2-nistp521',
    'rsa-sha2-512',
    'rsa-sha2-256',
  ],
  ciphers: [...ciphers.keys()],
  macs: [...macs.keys()],
  compression: ['none', ...compressions.keys()],
}

/** The default of a server: nothing that an audit objects to. */
export const serverAlgorithms: Algorithms = {
  kex: [mlkem768x25519.name, curve25519.name, curve25519Libssh.name, dhGroup16.name],
  // The first is for servers that have such a certificate.
  hostKey: [certificateName('ssh-ed25519'), 'ssh-ed25519', 'rsa-sha2-512', 'rsa-sha2-256'],
  ciphers: allAlgorithms.ciphers,
  macs: [hmacSha256Etm.name, hmacSha512Etm.name],
  // For clients that ask for it (ssh -C), and only after their login.
  compression: ['none', zlibOpenssh.name],
}

/**
 * For a server that old clients must reach, such as programs with libssh2 before 1.11, which lack the better
 * MACs.
 */
export const compatibleAlgorithms: Algorithms = { ...serverAlgorithms, macs: allAlgorithms.macs }

/** Ciphers that cost half of the others here. Most clients have them, but prefer others. */
export const quickCiphers: readonly string[] = [aes128Gcm.name, aes256Gcm.name]

/** Between ends of this package, where the sender decides what to compress. */
export const ownCompression: readonly string[] = [zstdHawser.name, 'none']

/** A client takes what a server has, best first. */
export const clientAlgorithms: Algorithms = {
  ...allAlgorithms,
  macs: serverAlgorithms.macs,
  compression: ['none'],
}

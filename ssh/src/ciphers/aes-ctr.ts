// aes128-ctr, aes192-ctr and aes256-ctr (RFC 4344 section 4), under one key stream that runs on from packet
// to packet, with one of the MACs of ciphers/mac.ts. On the wire with an encrypt-then-MAC one:
//   uint32 packet_length in clear, packet_length encrypted bytes, the MAC of all that
// and with another, whose packet_length is encrypted, too:
//   4 + packet_length encrypted bytes, the MAC of what they were
import { createCipheriv, createDecipheriv, timingSafeEqual } from 'node:crypto'
import { Reason, SshError } from '../errors.ts'
import {
  macFailure,
  nothingToFree,
  type Cipher,
  type Keys,
  type Mac,
  type Opener,
  type Sealer,
} from './cipher.ts'
import { macOf } from './mac.ts'

const block = 16
const length_bytes = 4

function ctr(bits: 128 | 192 | 256): Cipher {
  const algorithm = `aes-${bits}-ctr`
  return {
    name: `aes${bits}-ctr`,
    key_bytes: bits / 8,
    iv_bytes: 16,
    needsMac: true,
    sealer: (keys, mac) =>
      (mac!.encryptThenMac ? encryptThenMacSealer : encryptAndMacSealer)(algorithm, keys, mac!),
    opener: (keys, mac) =>
      (mac!.encryptThenMac ? encryptThenMacOpener : encryptAndMacOpener)(algorithm, keys, mac!),
  }
}

function requireSame(made: Buffer, came: Buffer): void {
  if (!timingSafeEqual(made, came)) throw new SshError(Reason.macError, macFailure)
}

function encryptThenMacSealer(algorithm: string, keys: Keys, mac: Mac): Sealer {
  const cipher = createCipheriv(algorithm, keys.key, keys.iv)
  return {
    block,
    padsLength: false,
    seal(packet, sequence) {
      const length = Buffer.from(packet.subarray(0, length_bytes))
      const body = cipher.update(packet.subarray(length_bytes))
      return [length, body, macOf(mac, keys.mac, sequence, length, body)]
    },
    free: nothingToFree,
  }
}

function encryptThenMacOpener(algorithm: string, keys: Keys, mac: Mac): Opener {
  const decipher = createDecipheriv(algorithm, keys.key, keys.iv)
  return {
    tag: mac.bytes,
    block,
    padsLength: false,
    length: (head) => head.readUInt32BE(0),
    open(packet, sequence) {
      const end = packet.length - mac.bytes
      requireSame(macOf(mac, keys.mac, sequence, packet.subarray(0, end)), packet.subarray(end))
      return decipher.update(packet.subarray(length_bytes, end))
    },
    free: nothingToFree,
  }
}

function encryptAndMacSealer(algorithm: string, keys: Keys, mac: Mac): Sealer {
  const cipher = createCipheriv(algorithm, keys.key, keys.iv)
  return {
    block,
    padsLength: true,
    seal: (packet, sequence) => [cipher.update(packet), macOf(mac, keys.mac, sequence, packet)],
    free: nothingToFree,
  }
}

function encryptAndMacOpener(algorithm: string, keys: Keys, mac: Mac): Opener {
  const decipher = createDecipheriv(algorithm, keys.key, keys.iv)
  /** packet_length of the current packet, decrypted: the key stream has advanced from there. */
  let length: Buffer = Buffer.alloc(length_bytes)
  return {
    tag: mac.bytes,
    block,
    padsLength: true,
    length(head) {
      length = decipher.update(head)
      return length.readUInt32BE(0)
    },
    open(packet, sequence) {
      const end = packet.length - mac.bytes
      const body = decipher.update(packet.subarray(length_bytes, end))
      requireSame(macOf(mac, keys.mac, sequence, length, body), packet.subarray(end))
      return body
    },
    free: nothingToFree,
  }
}

export const aes128Ctr = ctr(128)
export const aes192Ctr = ctr(192)
export const aes256Ctr = ctr(256)
